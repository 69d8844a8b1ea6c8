# SPDX-License-Identifier: Apache-2.0
"""Traces made up by dice: krait cat prints them as babeltrace2 does, and the C interface finds the same events.

KRAIT_RANDOM_TRACES says how many (a hundred of each kind by default), KRAIT_RANDOM_SEED which is the first.
"""

import os
import random
import re
import shutil
import subprocess

import pytest

from conftest import found_pythons
from random_trace import Trace
from test_cat import UTC, cat_bytes
from test_trace_read import batch_check, read_check

COUNT = int(os.environ.get("KRAIT_RANDOM_TRACES", "100"))
FIRST = int(os.environ.get("KRAIT_RANDOM_SEED", "1"))
AT_ONCE = 20

# babeltrace2 2.1 puts several labels of one value in braces; krait prints what 2.0 does.
LABELS = re.compile(rb'\{ ("label [^}]*") \}(?= : container)')


def babeltrace(ctf2):
    """The command: 2.1, which alone reads CTF 2, is in the folder of Debian's unstable release."""
    newer = next((p.prefix + ("babeltrace2",) for p in found_pythons()[0] if p.prefix), None)
    if ctf2 or not shutil.which("babeltrace2"):
        return newer
    return ("babeltrace2",)


@pytest.mark.parametrize("first", range(FIRST, FIRST + COUNT, AT_ONCE))
@pytest.mark.parametrize("ctf2", [False, True], ids=["ctf1", "ctf2"])
def test_random_traces_print_as_babeltrace2_prints_them(krait, tmp_path, ctf2, first):
    tool = babeltrace(ctf2)
    if not tool:
        pytest.skip("no babeltrace2 that reads this")
    for seed in range(first, min(first + AT_ONCE, FIRST + COUNT)):
        folder = Trace(random.Random(seed), ctf2).write(tmp_path / str(seed))
        theirs = subprocess.run([*tool, str(folder)], capture_output=True, env=UTC, timeout=60)
        assert (theirs.returncode, theirs.stderr) == (0, b""), (seed, theirs.stderr[-2000:])
        ours = cat_bytes(krait, folder)
        assert (ours.returncode, ours.stderr) == (0, b""), (seed, ours.stderr)
        assert ours.stdout == LABELS.sub(rb"\1", theirs.stdout), seed
        lines = [str(ours.stdout.count(b"\n"))]
        assert read_check(folder)["events"] == lines, seed
        for interpret in ("", "1"):
            assert batch_check(folder, interpret=interpret)["events"] == lines, seed
            assert batch_check("--some", folder, interpret=interpret)["events"] == lines, seed
