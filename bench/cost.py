# SPDX-License-Identifier: Apache-2.0
"""Is a recording truer when what recording took is taken off? Judged by the program's own clock (cost_program.py).

    bench/cost.py [--reps N]      every Python that is here

A part's true time is what its own clock says when nothing records it, as a multiple of `plain`, which calls nothing. The same
multiple comes from the recording: the median total time of a call of the part, as it was recorded and as krait shows it.
"""

import argparse
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import lib  # noqa: E402

PROGRAM = lib.HERE / "cost_program.py"


def multiples(times):
    return {name: ns / times["plain"] for name, ns in times.items() if name != "plain"}


def untraced(python):
    return multiples(json.loads(lib.quiet([*python.prefix, python.path, PROGRAM], check=True).stdout))


def shown_times(trace, wanted, *options):
    rows = json.loads(lib.quiet([lib.KRAIT, "report", trace, "--json", *options], check=True).stdout)
    return {row["name"]: row["p50_ns"] for row in rows["functions"] if row["name"] in wanted}, rows.get("recording_cost_ns")


def recorded(python, wanted):
    """Multiples as recorded and as shown, and what a call costs."""
    trace = lib.OUT / "cost.trace"
    lib.quiet(["rm", "-rf", trace])
    lib.quiet([*python.prefix, lib.KRAIT, "record", "-q", "-o", trace, "--", python.path, PROGRAM], check=True)
    wanted = {*wanted, "plain"}
    raw, _ = shown_times(trace, wanted)
    shown, cost = shown_times(trace, wanted, "--compensate")
    return multiples(raw), multiples(shown), cost


def measure(python, reps):
    true, raw, shown, costs = [], [], [], []
    for _ in range(reps):
        true.append(untraced(python))
        one = recorded(python, true[0])
        raw.append(one[0])
        shown.append(one[1])
        costs.append(one[2])
    middle = lambda maps: {name: lib.median([one[name] for one in maps]) for name in maps[0]}  # noqa: E731
    return middle(true), middle(raw), middle(shown), middle(costs)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--reps", type=int, default=5)
    parser.add_argument("--versions", default="", help="only these, such as 3.8,3.13")
    options = parser.parse_args()
    lib.OUT.mkdir(parents=True, exist_ok=True)
    print("| Python | cost ns, Python; C | part | recorded / true | shown / true |\n|---|---|---|---:|---:|")
    for python in lib.pythons():
        if options.versions and "%d.%d" % python.numbers not in options.versions.split(","):
            continue
        true, raw, shown, cost = measure(python, options.reps)
        for name in true:
            what = (python.version, "%(python)d; %(c)d" % cost, name, raw[name] / true[name], shown[name] / true[name])
            print("| %s | %s | %s | %.2f | %.2f |" % what, flush=True)


main()
