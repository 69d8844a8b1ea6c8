# SPDX-License-Identifier: Apache-2.0
"""krait path beside the oracle (path_oracle.py)."""

import subprocess

from path_oracle import Segment


def run(krait, *words, **options):
    return subprocess.run([krait, "path", *map(str, words)], capture_output=True, text=True, timeout=120, **options)


def segments(found, oracle, begin=None):
    """What JSON has, as the oracle's; `begin`: the recording's, where it is not the kernel's first event."""
    origin = oracle.begin if begin is None else begin
    rows = found["segments"]
    return [
        Segment(
            origin + r["time_ns"],
            origin + r["time_ns"] + r["duration_ns"],
            r["kind"],
            r["tid"],
            r["syscall"],
            r["by_tid"] or 0,
            r["depth"],
            r["device"],
        )
        for r in rows
    ]


def expected(oracle, *range):
    """The oracle's, without a CPU's idle task and those that no event names."""
    known = {t.tid for t in oracle.lives}
    found = oracle.path(*range)
    for s in found:
        s.by = s.by if s.by in known else 0
    return found


def first_difference(ours, theirs):
    return next(((a, b) for a, b in zip(ours, theirs) if a != b), None)
