# SPDX-License-Identifier: Apache-2.0
"""What the parts of the benchmark share: interpreters, tools, one measured run, and the arithmetic."""

import atexit
import functools
import json
import os
import pathlib
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
BUILD = ROOT / "build"
OUT = pathlib.Path(os.environ.get("KRAIT_BENCH_DIR", str(BUILD / "bench")))
SCRATCH = OUT / ("run-%d" % os.getpid())  # two benchmarks at once disturb each other's times, but not their files
KRAIT = os.environ.get("KRAIT", str(BUILD / "krait"))

# name -> (krait's options, or None when krait is not in it; runner's tool)
TOOLS = {
    "none": (None, "none"),
    "floor": (None, "floor"),
    "floor, no C calls": (None, "floor-python"),
    "krait": ([], "none"),
    "krait --no-c-calls": (["--no-c-calls"], "none"),
    "krait --max-overhead 5": (["--max-overhead", "5"], "none"),
    "VizTracer": (None, "viztracer"),
    "VizTracer, no C calls": (None, "viztracer-python"),
    "cProfile": (None, "cprofile"),
    "trace0": (None, "trace0"),
}

# Of the parts `kernel` and `governor` alone.
MORE_TOOLS = {"krait --kernel": (["--kernel"], "none"), "sampled": (None, "sampler")}


def tool_of(name):
    """(krait's options or None, runner's tool)"""
    return TOOLS.get(name) or MORE_TOOLS[name]


def say(text):
    print(text, file=sys.stderr, flush=True)


class Python:
    """An interpreter and what has to stand before it (tools/pythons)."""

    def __init__(self, version, command, linked):
        self.version = version
        words = shlex.split(command)
        self.prefix, self.path = words[:-1], words[-1]
        self.linked = linked

    @property
    def numbers(self):
        return tuple(int(n) for n in self.version.split("-")[0].rstrip("abcr+").split(".")[:2])


@functools.lru_cache(maxsize=None)
def pythons():
    """Every interpreter that krait is for and that this machine has; the last of equal versions' feature releases."""
    lines = subprocess.run([ROOT / "tools" / "pythons", "list"], capture_output=True, text=True).stdout.splitlines()
    found = {}
    for line in lines:
        fields = line.split("\t")
        if fields[0] == "skip":
            say("skipped: Python %s (%s)" % (fields[1], fields[2]))
        elif len(fields) == 3 and "freethreaded" not in fields[0]:
            python = Python(*fields)
            found[python.numbers, python.linked] = python
    return [found[key] for key in sorted(found)]


def environment(python):
    """A virtual environment with the other tools and the programs, made once; the path of its python."""
    venv = OUT / ("venv-" + python.version)
    path = venv / "bin" / "python"
    if not (venv / "made").exists():
        say("making %s" % venv)
        shutil.rmtree(venv, ignore_errors=True)
        subprocess.run([*python.prefix, python.path, "-m", "venv", venv], check=True)
        pip = [*python.prefix, path, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "viztracer", "sqlglot", "flake8", "black", "django", "greenlet"], check=True)
        subprocess.run([*pip, "--no-deps", "pyperformance"], check=True)
        if subprocess.run([*pip, "trace0"], capture_output=True).returncode:
            say("trace0 has no package for Python %s" % python.version)
        (venv / "made").touch()
    return Python(python.version, shlex.join([*python.prefix, str(path)]), python.linked)


def packages(python):
    """{name: version} of the tools in an environment."""
    listing = subprocess.run(
        [*python.prefix, python.path, "-m", "pip", "list", "--format=json", "--disable-pip-version-check"],
        capture_output=True,
        text=True,
        check=True,
    )
    wanted = ("viztracer", "trace0", "pyperformance", "sqlglot")
    return {p["name"]: p["version"] for p in json.loads(listing.stdout) if p["name"] in wanted}


class Missing(Exception):
    """What cannot be had here, and why."""


def compile_c(target, sources, flags=(), libs=(), compiler=None):
    """Compiles C into build/bench when a source is newer; returns the path. With a compiler: what that compiles."""
    OUT.mkdir(parents=True, exist_ok=True)
    target = OUT / target
    sources = [str(s) for s in sources]
    if not target.exists() or any(os.path.getmtime(s) > target.stat().st_mtime for s in sources):
        cc = [compiler] if compiler else [os.environ.get("CC", "cc"), "-std=gnu17"]
        subprocess.run([*cc, "-O2", "-g", *flags, "-o", target, *sources, *libs], check=True)
    return target


def floor_module():
    """Builds the floor with the headers of some interpreter; the stable ABI makes it fit them all."""
    code = "import sysconfig; print(sysconfig.get_path('include'))"
    for python in pythons():
        if python.prefix:
            continue
        answer = subprocess.run([python.path, "-c", code], capture_output=True, text=True)
        include = pathlib.Path(answer.stdout.strip())
        if (include / "Python.h").exists():
            return compile_c("krait_floor.abi3.so", [HERE / "floor.c"], ["-shared", "-fPIC", "-I", include])
    sys.exit("bench: no Python here has its headers (Debian: python3-dev)")


def sampler_module(python):
    """Builds the sampler for this interpreter alone, in a folder of its own (bench/runner.py)."""
    answer = quiet([*python.prefix, python.path, "-c", "import sysconfig; print(sysconfig.get_path('include'))"])
    include = pathlib.Path(answer.stdout.strip())
    if python.numbers > (3, 13) or not (include / "Python.h").exists():
        sys.exit("bench: the sampler that the governor is judged with is for Python 3.8 to 3.13 with its headers (--python 3.13)")
    folder = OUT / ("sampler-%d.%d" % python.numbers)
    folder.mkdir(parents=True, exist_ok=True)
    return compile_c(folder / "krait_sampler.so", [HERE / "sampler.c"], ["-shared", "-fPIC", "-I", include])


def krait_can_record():
    return subprocess.run([KRAIT, "record", "--help"], capture_output=True).returncode == 0


def run(python, tool, program, loops):
    """One run of a program under a tool: {wall, cpu: of the timed part; process: seconds from start to end;
    program_cpu, all_cpu: CPU seconds of the program's process, and with the recorder's; rss_kib; trace: folder}."""
    options, inner = tool_of(tool)
    shutil.rmtree(SCRATCH, ignore_errors=True)
    SCRATCH.mkdir(parents=True)
    atexit.register(shutil.rmtree, SCRATCH, ignore_errors=True)
    result, trace, log_path = SCRATCH / "run.json", SCRATCH / "trace", SCRATCH / "log"
    command = [python.path, HERE / "runner.py", "--tool", inner, "--loops", str(loops), "--out", result, "--", *program]
    if options is not None:
        command = [KRAIT, "record", "-q", "-o", trace, *options, "--", *command]
    env = {**os.environ, "KRAIT_BENCH_BUILD": str(OUT), "KRAIT_BENCH_OUT": str(SCRATCH / "other"), "PYTHONHASHSEED": "0"}
    with open(log_path, "w") as log:
        start = time.monotonic()
        child = subprocess.Popen([str(w) for w in [*python.prefix, *command]], stdout=log, stderr=log, env=env)
        _, status, usage = os.wait4(child.pid, 0)
        took = time.monotonic() - start
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode or not result.exists():
        raise RuntimeError("%s under %s: exit status %d, %s" % (program, tool, child.returncode, last_line(log_path)))
    data = json.loads(result.read_text())
    data.update(process=took, all_cpu=usage.ru_utime + usage.ru_stime, trace=str(trace))
    return data


def last_line_of(text):
    lines = text.strip().splitlines()
    return lines[-1] if lines else "no output"


def last_line(path):
    return last_line_of(path.read_text(errors="replace"))


def quiet(command, **options):
    """A command's end and output, as text."""
    return subprocess.run([str(w) for w in command], capture_output=True, text=True, **options)


def callgrind(out):
    """What stands before a command to count its instructions into the file."""
    return ["valgrind", "--tool=callgrind", "--callgrind-out-file=%s" % out, "--compress-strings=no", "--compress-pos=no"]


def callgrind_counts(out):
    """{function: instructions} of such a file. Code that the program made itself has no name."""
    listing = quiet(["callgrind_annotate", "--threshold=100", "--auto=no", "--show-percs=no", out]).stdout
    counts = {}
    for line in listing.splitlines():
        match = re.match(r"\s*([\d,]+)\s+\S*?:?([^:\s]+)( \[.*)?$", line)
        if match and "PROGRAM TOTALS" not in line:
            name = "emitted code" if match.group(3) == " [???]" else match.group(2)
            counts[name] = counts.get(name, 0) + int(match.group(1).replace(",", ""))
    return counts


def anon_kib(command):
    """The most memory in KiB that is no mapped file, looked at every few ms of a run that nobody times."""
    most = 0
    with subprocess.Popen([str(w) for w in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
        while child.poll() is None:
            with open("/proc/%d/status" % child.pid) as status:
                sizes = [int(line.split()[1]) for line in status if line.startswith("RssAnon:")]
            most = max([most] + sizes)
            time.sleep(0.003)
    return most


def folder_bytes(folder):
    return sum(f.stat().st_size for f in pathlib.Path(folder).rglob("*") if f.is_file())


def info(trace):
    out = subprocess.run([KRAIT, "info", "--json", trace], capture_output=True, text=True)
    return json.loads(out.stdout) if out.returncode == 0 else {}


def interleaved(items, reps, measure):
    """Calls measure(item) for every item, reps times, so that what changes on the machine changes for all of them;
    the order turns by one each time. {item: [results]}."""
    results = {item: [] for item in items}
    for rep in range(reps):
        turn = rep % len(items)
        for item in items[turn:] + items[:turn]:
            results[item].append(measure(item))
    return results


def median(values):
    return statistics.median(values)


def quartiles(values):
    return statistics.quantiles(values, n=4)


def spread(values):
    """Distance between the quartiles, as a share of the median: the noise of a measurement."""
    if len(values) < 3:
        return (max(values) - min(values)) / median(values)
    q = quartiles(values)
    return (q[2] - q[0]) / median(values)
