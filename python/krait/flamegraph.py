"""`python -m krait.flamegraph -o perf.log -i 0.001 -f REGEX script.py` writes folded stacks, as the package flamegraph does.

A frame is the thread's name, a backquote and the function's name; lines are sorted. Source: create_flamegraph_entry, _write_results
and main in flamegraph/flamegraph.py of github.com/evanhempel/python-flamegraph.

Nothing is sampled: the script is recorded, and a stack counts as often as its own time holds the interval. Stacks below half of
it are left out, as a sampler would rarely see them.
"""
import argparse
import collections
import os
import re
import subprocess
import sys
import tempfile

from krait import command


def _options(words):
    parser = argparse.ArgumentParser(prog="python -m krait.flamegraph", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", metavar="FILE", help="write the stacks into FILE (default: standard output)")
    parser.add_argument("-i", "--interval", metavar="SECONDS", type=float, default=0.001, help="time of one count (default: 0.001)")
    parser.add_argument("-f", "--filter", metavar="REGEX", default="", help="only stacks in which this is found, such as MainThread")
    parser.add_argument("-c", "--collapse-recursion", action="store_true", help="a function that calls itself is one frame")
    parser.add_argument("-F", "--format", default="%(threadname)s`%(fun)s", help="text of a frame, of threadname, fun and qualname, which has the "
                        "module and class (default: %(default)r)")
    parser.add_argument("script", help="the script, with its arguments")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args(words)
    if not options.interval > 0:
        parser.error("argument -i: %g is no time above 0" % options.interval)
    try:
        options.filter = re.compile(options.filter)
    except re.error as e:
        parser.error("argument -f: %r is no regular expression: %s" % (options.filter, e))
    try:
        _frame("", "", options.format)
    except (KeyError, TypeError, ValueError) as e:
        parser.error("argument -F: %r: %s; there are threadname, fun and qualname" % (options.format, e))
    return options


SCRIPT = "__main__.<module>"


def _frame(thread, function, form):
    return form % {"threadname": thread, "fun": function.rpartition(".")[2], "qualname": function}


def _stack(thread, functions, options):
    """A line's text. Recursion is told by the function's name alone, as that package does."""
    names = [function.rpartition(".")[2] for function in functions]
    kept = [i for i in range(len(names)) if not (options.collapse_recursion and i and names[i] == names[i - 1])]
    return ";".join(_frame(thread, functions[i], options.format) for i in kept)


def _counted(lines, options):
    """Folded lines of nanoseconds as lines of counts, without the process, which is one, and without what the interpreter itself runs
    in the main thread before and after the script."""
    times = collections.defaultdict(int)
    for line in lines:
        stack, _, ns = line.rstrip("\n").rpartition(" ")
        _, thread, *functions = stack.split(";")
        name = thread.rpartition(" ")[0]
        if functions and (name != "MainThread" or functions[0] == SCRIPT):
            times[_stack(name, functions, options)] += int(ns)
    for stack in sorted(times):
        count = times[stack] / 1e9 / options.interval
        if count >= 0.5 and options.filter.search(stack):
            yield "%s %d\n" % (stack, round(count))


def main(words=None):
    """Runs the script; returns its exit status, or 1 where it could not be recorded or the stacks could not be written."""
    options = _options(words)
    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, "trace")
        run = [command(), "record", "--quiet", "--no-children", "--no-c-calls", "-o", trace, "--", sys.executable, options.script, *options.arguments]
        status = subprocess.call(run)
        if not os.path.isdir(trace):
            return status or 1
        export = subprocess.Popen([command(), "export", trace, "--to", "folded", "-o", "-"], stdout=subprocess.PIPE, universal_newlines=True)
        with export:
            lines = list(_counted(export.stdout, options))
        if export.returncode:
            return 1
    try:
        with open(options.output, "w") if options.output else sys.stdout as out:
            out.writelines(lines)
    except OSError as e:
        print("krait.flamegraph: %s: %s" % (options.output, e.strerror), file=sys.stderr)
        return 1
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main())
