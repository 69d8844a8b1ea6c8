# SPDX-License-Identifier: Apache-2.0
"""What sampling from outside costs a program, and how many of its stacks never were: krait, py-spy, Python 3.15's own sampler."""

import pathlib
import re
import shutil
import subprocess
import time
import venv

import lib

SECONDS, QUICK_SECONDS = 5, 2
RATES = (1000, 10000)
CALLERS = {"main": {"<module>"}, "turns": {"main"}, "b": {"a", "ga", "fa"}, "d": {"c", "gc", "fc"}, "fa": {"ma"}, "fc": {"mc"}}
CALLERS.update({f: {"turns"} for f in ("a", "c", "ga", "gc", "ma", "mc")})


def py_spy():
    """Its path: in an environment of its own, made once."""
    folder = lib.OUT / "venv-py-spy"
    if not (folder / "made").exists():
        lib.say("making %s" % folder)
        venv.create(folder, clear=True, with_pip=True)
        subprocess.run([folder / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", "py-spy"], check=True)
        (folder / "made").touch()
    return folder / "bin" / "py-spy"


def krait_command(python, pid, rate, seconds, out):
    return [lib.KRAIT, "record", "-q", "--sample", rate, "--pid", pid, "--for", "%gs" % seconds, "-o", out]


def spy_command(python, pid, rate, seconds, out, more=()):
    return [py_spy(), "record", "--format", "raw", "--duration", "%d" % seconds, "--rate", rate, *more, "--output", out, "--pid", pid]


def unpaused_command(*args):
    return spy_command(*args, more=["--nonblocking"])


def own_command(python, pid, rate, seconds, out):
    inside = ["nsenter", "--target", pid, "--mount", "--root", "--wd"] if python.prefix else []  # it opens the interpreter by its path there
    return [*inside, python.path, "-m", "profiling.sampling", "attach", "-r", rate, "-d", "%d" % seconds, "--collapsed", "-o", out, pid]


TOOLS = {"none": None, "krait": krait_command, "py-spy": spy_command, "py-spy --nonblocking": unpaused_command, "profiling.sampling": own_command}


def is_there(python, tool):
    if tool == "profiling.sampling":
        return lib.quiet([*python.prefix, python.path, "-c", "import profiling.sampling"]).returncode == 0
    return not tool.startswith("py-spy") or python.numbers < (3, 15)


def samples_of(tool, out):
    """[(functions, outermost first; how often)]"""
    if tool == "krait":
        lines = lib.quiet([lib.KRAIT, "cat", "--filter", 'name == "python:sample" || name == "python:frame" || name == "python:stack"', out]).stdout
        return krait_samples(lines.splitlines())
    found = []
    for line in pathlib.Path(out).read_text().splitlines():
        stack, _, count = line.rpartition(" ")
        found.append(([name_of(frame) for frame in stack.split(";")], int(count)))
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


def never_was(stack):
    return any(callee in CALLERS and caller not in CALLERS[callee] for caller, callee in zip(stack, stack[1:]))


def measure(python, tool, rate, seconds):
    folder = lib.OUT / "sampling"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    out = folder / "samples"
    program = [*python.prefix, python.path, lib.HERE / "sampling_program.py", seconds]
    child = subprocess.Popen([str(w) for w in program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    pid = int(child.stdout.readline())
    sampler = None
    if TOOLS[tool]:
        command = [str(w) for w in TOOLS[tool](python, pid, rate, seconds + 2, out)]
        sampler = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        time.sleep(1)  # until it samples
    said, _ = child.communicate("\n")
    wall, cpu = map(float, said.split())
    found = {"wall": wall, "cpu": cpu}
    if sampler:
        _, error = sampler.communicate(timeout=60)
        stacks = [(s, n) for s, n in samples_of(tool, out) if "turns" in s] if out.exists() else None
        if not stacks:
            raise RuntimeError("%s: %s" % (tool, lib.last_line_of(error)))
        found.update(samples=sum(n for _, n in stacks), wrong=sum(n for s, n in stacks if never_was(s)))
    return found


def run_python(python, options):
    seconds = QUICK_SECONDS if options.quick else SECONDS
    tools = [t for t in TOOLS if is_there(python, t)]
    items = [("none", 0)] + [(tool, rate) for tool in tools if tool != "none" for rate in RATES]

    def one(item):
        lib.say("sampling: Python %s, %s at %d Hz" % (python.version, *item))
        return measure(python, *item, seconds)

    runs = lib.interleaved(items, options.reps, one)
    base = {key: lib.median([r[key] for r in runs["none", 0]]) for key in ("wall", "cpu")}
    rows = []
    for (tool, rate), of in runs.items():
        row = {"tool": tool, "rate": rate, "noise": lib.spread([r["wall"] for r in of])}
        row.update({key: base[key] / lib.median([r[key] for r in of]) - 1 for key in base})
        if tool != "none":
            row.update({key: sum(r[key] for r in of) for key in ("samples", "wrong")}, per_second=sum(r["samples"] for r in of) / len(of) / seconds)
        rows.append(row)
    return rows


def run(python, options):
    """For a Python that py-spy knows, and for the one that has a sampler of its own."""
    pythons = [python] + [p for p in lib.pythons() if p.numbers >= (3, 15)][:1]
    version = lib.quiet([py_spy(), "--version"]).stdout.split()[-1]
    return {"py-spy": version, "reps": options.reps, "rows": {p.version: run_python(p, options) for p in pythons}}
