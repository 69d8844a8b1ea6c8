# SPDX-License-Identifier: Apache-2.0
"""What sampling costs a program, and how many of its stacks never were: krait, py-spy, Austin, Python 3.15's own sampler.

The program runs all the time; samplers come and go. Each is stopped and let go on (SIGSTOP, SIGCONT) many times a second, so that the program is
compared with itself just before and just after, and the machine's own speed does not matter. One that stops the program itself cannot be stopped
safely: it runs for one long turn.
"""

import pathlib
import re
import shutil
import signal
import subprocess
import time

import lib
import peers
import turns

TURNS, QUICK_TURNS = 10, 3  # beside a sampler that runs, and as many beside one that is stopped
SECONDS = 0.1  # of a turn
GAP = 0.02  # until a sampler has stopped or goes on
START = 1.5  # until each sampler samples, and what it may go on too long
SLOW, FAST = 1000, 10000  # samples a second
FAST_RUNS = 2
PROGRAMS = ("calls", "tasks")
DEEP = ("10", "30")  # the same calls below so many frames, for what native frames cost
NATIVE = "krait --native-stacks"
CALLERS = {"rates": {"<lambda>", "below"}, "turns": {"rates", "worker"}, "b": {"a", "ga", "fa"}, "d": {"c", "gc", "fc"}, "fa": {"ma"}, "fc": {"mc"}}
CALLERS.update({f: {"turns"} for f in ("a", "c", "ga", "gc", "ma", "mc")})


def krait_command(python, pid, rate, seconds, out, more=()):
    return [lib.KRAIT, "record", "-q", "--sample", rate, *more, "--pid", pid, "--for", "%gs" % seconds, "-o", out]


def spy_command(python, pid, rate, seconds, out, more=()):
    return [peers.py_spy(), "record", "--format", "raw", "--duration", "%d" % round(seconds), "--rate", rate, *more, "--output", out, "--pid", pid]


def austin_command(python, pid, rate, seconds, out):
    return [*peers.austin(python), "-i", "%dus" % (1e6 / rate), "-x", "%d" % round(seconds), "-o", out, "-p", pid]


def own_command(python, pid, rate, seconds, out):
    return [*peers.inside(python, pid), python.path, "-m", "profiling.sampling", "attach", "-r", rate, "-d", "%d" % round(seconds), "--collapsed", "-o", out, pid]


TOOLS = {
    "krait": krait_command,
    NATIVE: lambda *args: krait_command(*args, more=["--native-stacks"]),
    "krait --no-tasks": lambda *args: krait_command(*args, more=["--no-tasks"]),
    "py-spy": spy_command,
    "py-spy --nonblocking": lambda *args: spy_command(*args, more=["--nonblocking"]),
    "Austin": austin_command,
    "profiling.sampling": own_command,
}


def why_not(python, tool):
    """Why a tool cannot sample this interpreter; None: it can."""
    if tool == "profiling.sampling" and lib.quiet([*python.prefix, python.path, "-c", "import profiling.sampling"]).returncode:
        return "it comes with Python 3.15"
    if tool.startswith("py-spy") and python.numbers >= (3, 15):
        return "it does not read Python 3.15"
    try:
        if tool == "Austin":
            peers.austin(python)
    except lib.Missing as e:
        return str(e)
    return None


def samples_of(tool, out):
    """[(functions, outermost first; how often)]"""
    if tool.startswith("krait"):
        lines = lib.quiet([lib.KRAIT, "cat", "--filter", 'name == "python:sample" || name == "python:frame" || name == "python:stack"', out]).stdout
        return [(python_part(s) if tool == NATIVE else s, n) for s, n in krait_samples(lines.splitlines())]
    text = peers.folded_of_austin(out) if tool == "Austin" else out
    found = []
    for line in pathlib.Path(text).read_text().splitlines():
        stack, _, count = line.rpartition(" ")
        found.append(([name_of(frame) for frame in stack.split(";")], 1 if tool == "Austin" else int(count)))  # it counts us
    return found


def name_of(frame):
    """Of `name (file:line)` and of `file:name:line`."""
    parts = frame.split(" (")[0].split(":")
    return parts[1] if len(parts) > 2 else parts[0]


def krait_samples(lines):
    stack, found = [], []
    for line in lines:
        if "python:sample:" in line:
            found.append(None)
        elif "python:frame:" in line:
            name, depth = re.search(r'code = \( "([^"]*)".*depth = (\d+)', line).groups()
            stack[int(depth) :] = [name.rpartition(".")[2]]
        else:
            del stack[int(re.search(r"depth = (\d+)", line).group(1)) :]
        if found:
            found[-1] = list(stack)
    return [(s, 1) for s in found]


def python_part(stack):
    """Without the functions of C between those of the program."""
    own = set(CALLERS).union(*CALLERS.values())
    return [name for name in stack if name in own]


def never_was(stack):
    return any(callee in CALLERS and caller not in CALLERS[callee] for caller, callee in zip(stack, stack[1:]))


def start(python, tool, pid, rate, seconds, out):
    command = [str(w) for w in TOOLS[tool](python, pid, rate, seconds, out)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def signalled(sampler, number):
    if sampler and sampler.poll() is None:
        sampler.send_signal(number)
    time.sleep(GAP)


def in_turns(worker, sampler, count):
    """Rates in turns: beside no sampling, beside sampling, ..., beside no sampling."""
    signalled(sampler, signal.SIGSTOP)
    rates = [worker.turn(SECONDS)]
    for _ in range(count):
        for number in (signal.SIGCONT, signal.SIGSTOP):
            signalled(sampler, number)
            rates.append(worker.turn(SECONDS))
    signalled(sampler, signal.SIGCONT)
    return rates


def measure(python, worker, item, count):
    """{rates: in turns; samples, wrong: how many}"""
    tool, rate = item
    stops_it = tool == "py-spy"
    folder = lib.OUT / "sampling"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    out = folder / "samples"
    before = worker.turn(count * SECONDS) if stops_it else None
    sampler = start(python, tool, worker.pid, rate, count * 2 * (SECONDS + GAP) + 2 * START, out) if tool else None
    time.sleep(START if tool else 0)
    rates = [before, worker.turn(count * SECONDS)] if stops_it else in_turns(worker, sampler, count)
    found = {}
    if sampler:
        _, error = sampler.communicate(timeout=120)
        stacks = [(s, n) for s, n in samples_of(tool, out) if "turns" in s] if out.exists() else None
        if not stacks:
            lib.say("%s: %s" % (tool, lib.last_line_of(error)))
            raise lib.Missing("it found no stack")
        found.update(samples=sum(n for _, n in stacks), wrong=sum(n for s, n in stacks if never_was(s)))
    rates += [worker.turn(count * SECONDS)] if stops_it else []
    return dict(found, rates=rates)


def slower(run, key):
    """Its time during the sampling to that just before and after, each time."""
    rates = [r[key] for r in run["rates"]]
    return [(rates[i - 1] + rates[i + 1]) / 2 / rates[i] - 1 for i in range(1, len(rates), 2)]


def row_of(item, runs, count):
    tool, rate = item
    row = {"tool": tool, "rate": rate, "runs": len(runs)}
    for key in ("wall", "cpu"):
        values = sorted(lib.median(slower(r, key)) for r in runs)
        row[key] = {"slower": lib.median([v for r in runs for v in slower(r, key)]), "least": values[0], "most": values[-1]}
    if tool:
        seconds = len(runs) * count * SECONDS
        row.update({key: sum(r[key] for r in runs) for key in ("samples", "wrong")}, per_second=sum(r["samples"] for r in runs) / seconds)
    return row


def items_of(python, program):
    only = {NATIVE: DEEP, "krait --no-tasks": ("tasks",)}
    tools = [t for t in TOOLS if program in only.get(t, (program,)) and (program not in DEEP or t.startswith("krait")) and not why_not(python, t)]
    return [("", 0)] + [(t, SLOW) for t in tools] + ([(t, FAST) for t in tools] if program == "calls" else [])


def is_able(python, worker, item, missing):
    """Whether a tool samples the program; if not, says why in `missing`."""
    if item[1] == SLOW:
        try:
            measure(python, worker, item, QUICK_TURNS)
        except lib.Missing as e:
            missing[item[0]] = str(e)
    return item[0] not in missing


def run_program(python, program, options):
    count = QUICK_TURNS if options.quick else TURNS
    items, missing = items_of(python, program), {}
    runs = {item: [] for item in items}
    with turns.Worker([*python.prefix, python.path, lib.HERE / "sampling_program.py", program]) as worker:
        worker.turn(1)
        items = [item for item in items if is_able(python, worker, item, missing)]
        for rep in range(options.reps):
            turn = rep % len(items)
            for item in items[turn:] + items[:turn]:
                if item[1] == FAST and rep >= FAST_RUNS:
                    continue
                lib.say("sampling: Python %s, %s, %s at %d Hz" % (python.version, program, item[0] or "nothing", item[1]))
                runs[item].append(measure(python, worker, item, count))
    return {"rows": [row_of(item, runs[item], count) for item in items], "missing": missing}


def run(python, options):
    """For a Python that py-spy knows, and for the one that has a sampler of its own."""
    pythons = [python] + [p for p in lib.pythons() if p.numbers >= (3, 15)][:1]
    rows = {p.version: {program: run_program(p, program, options) for program in PROGRAMS + (DEEP if p is python else ())} for p in pythons}
    for p in pythons:
        for program in PROGRAMS:
            of = rows[p.version][program]
            of["missing"].update({t: why for t in TOOLS if (why := why_not(p, t))})
    return {"versions": peers.versions(), "reps": options.reps, "rows": rows}
