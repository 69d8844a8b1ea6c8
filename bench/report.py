# SPDX-License-Identifier: Apache-2.0
"""krait report on a large trace: events a second, and how much memory; on a fourth of it, to see what grows."""

import os
import shutil
import subprocess
import time

import lib
import programs

EVENTS = 20_000_000
PROGRAM = "richards"


def record(python, loops, trace):
    shutil.rmtree(trace, ignore_errors=True)
    data = lib.run(python, "krait", programs.command(python, PROGRAM), loops)
    os.rename(data["trace"], trace)
    return lib.info(trace)["events"]


def measure(trace):
    start = time.monotonic()
    with open(lib.OUT / "report.txt", "w") as out:
        child = subprocess.Popen([lib.KRAIT, "report", str(trace)], stdout=out, stderr=out)
        _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise RuntimeError("krait report: " + lib.last_line(lib.OUT / "report.txt"))
    return {
        "seconds": time.monotonic() - start,
        "cpu": usage.ru_utime + usage.ru_stime,
        "rss_kib": usage.ru_maxrss,
    }


def run(options):
    if not options.krait or subprocess.run([lib.KRAIT, "report", "--help"], capture_output=True).returncode:
        return {"missing": "this krait has no report yet"}
    python = lib.environment([p for p in lib.pythons() if not p.prefix][-1])
    trace = lib.OUT / "large-trace"
    result = {"program": PROGRAM, "traces": []}
    one = record(python, 1, trace)
    for share in (4, 1):
        loops = max(1, round(EVENTS / share / (10 if options.quick else 1) / one))
        events = record(python, loops, trace)
        lib.say("report: %d events" % events)
        runs = [measure(trace) for _ in range(options.reps)]
        result["traces"].append(
            {
                "events": events,
                "bytes": lib.folder_bytes(trace),
                **{key: lib.median([r[key] for r in runs]) for key in runs[0]},
            }
        )
    shutil.rmtree(trace, ignore_errors=True)
    return result
