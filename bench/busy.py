# SPDX-License-Identifier: Apache-2.0
"""What is lost on a machine whose CPUs are taken: the programs under krait beside processes that compute for ever."""

import contextlib
import subprocess
import sys

import lib
import programs

HOGS = 4


@contextlib.contextmanager
def hogs(count):
    made = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for hog in made:
            hog.kill()
            hog.wait()


def measure(python, name, loops):
    data = lib.run(python, "krait", programs.command(python, name), loops)
    info = lib.info(data["trace"])
    lost = sum(info["lost"].values())
    return {"seconds": data["process"], "events": info["events"], "lost": lost, "grown": info["rings"]["grown_bytes"]}


def run(python, options):
    """{python, hogs, reps, programs: {name: [a run's seconds, events, lost, grown]}}"""
    python = lib.environment(python)
    wanted = [p for p in programs.PROGRAMS if not options.programs or p[0] in options.programs]
    reps = 1 if options.quick else 3
    result = {"python": python.version, "hogs": HOGS, "reps": reps, "programs": {}}
    with hogs(HOGS):
        for name, loops in wanted:
            runs = [measure(python, name, loops) for _ in range(reps)]
            lib.say("%s: %d events lost, rings grew by %d MiB" % (name, *worst(runs)))
            result["programs"][name] = runs
    return result


def worst(runs):
    """(events lost in all runs, the most that rings grew by in MiB)"""
    return sum(r["lost"] for r in runs), max(r["grown"] for r in runs) >> 20
