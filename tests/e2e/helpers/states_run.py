# SPDX-License-Identifier: Apache-2.0
"""krait states, and the kernel traces that others recorded."""

import shutil
import subprocess

import pytest

from corpus import CORPUS

LTTNG = CORPUS / "lttng-ref-traces" / "basic-kernel-analysis" / "kernel"
KERNEL = [
    LTTNG,
    CORPUS / "lttng-ref-traces" / "picotrace" / "kernel",
    CORPUS / "babeltrace" / "succeed" / "lttng-tracefile-rotation" / "kernel",
    CORPUS / "tracecompass" / "uneven-streams",
    CORPUS / "tracecompass" / "flipping-endianness",
    CORPUS / "tracecompass" / "perf-taskset2",
]


def corpus(path):
    if not path.exists():
        pytest.skip("the corpus of traces is not here")
    return path


def cut_in_half(trace, copy):
    """A copy whose two streams end in their middle."""
    shutil.copytree(trace, copy)
    for stream in copy.glob("*_[01]"):
        stream.write_bytes(stream.read_bytes()[: stream.stat().st_size // 2])
    return copy


def run(krait, *words):
    return subprocess.run([krait, "states", *map(str, words)], capture_output=True, text=True, timeout=120)


def times_of(row):
    """{state: ns} of a row, without what is 0 and what is a sum of others."""
    return {k[:-3]: v for k, v in row.items() if k.endswith("_ns") and k not in ("on_cpu_ns", "ready_ns", "blocked_ns", "clocked_ns") and v}
