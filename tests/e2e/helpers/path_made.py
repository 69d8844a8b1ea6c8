# SPDX-License-Identifier: Apache-2.0
"""What tests of krait path on traces made up event by event share."""

import pytest

import kernel_made as made
from conftest import verb_json
from kernel_made import event
from kernel_oracle import text_of
from path_compared import expected, first_difference, segments
from path_oracle import PathOracle

ASLEEP = 1


@pytest.fixture
def path(krait, tmp_path):
    """path(events, tid): [(what, tid, from, to, depth)] in microseconds, checked against the oracle. The same list as in the
    call before is not written and worked out again."""
    last = []

    def find(events, tid, *options, **made_with):
        folder = tmp_path / "made"
        if not last or last[0] is not events or last[1] != made_with:
            made.write(folder, events, **made_with)
            last[:] = [events, made_with]
        if not options and len(last) == 2:
            last.append(PathOracle(text_of(krait, folder)))
        found = verb_json(krait, "path", folder, "--thread", tid, *options)
        if not options:
            oracle = last[2]
            ours, wanted = segments(found, oracle), expected(oracle, tid)
            assert first_difference(ours, wanted) is None and len(ours) == len(wanted)
        assert sum(m["path_ns"] for m in found["path"]) == found["duration_ns"]
        rows = found["segments"]
        assert all(a["time_ns"] + a["duration_ns"] == b["time_ns"] for a, b in zip(rows, rows[1:]))
        return [(r["kind"], r["tid"], r["time_ns"] // 1000, (r["time_ns"] + r["duration_ns"]) // 1000, r["depth"]) for r in rows]

    return find


def irq(us, *does, cpu=0):
    return [event(us, "irq_handler_entry", cpu=cpu, irq=1), *does, event(us + 2, "irq_handler_exit", cpu=cpu, irq=1)]


def packet(us, name, address, cpu=0):
    return event(us, name, cpu=cpu, skbaddr=address, len=60)
