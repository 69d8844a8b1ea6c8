# SPDX-License-Identifier: Apache-2.0
"""Traces made up by dice: krait cat prints them as babeltrace2 does, and the C interface finds the same events.

KRAIT_RANDOM_TRACES says how many (by default a hundred of each kind with --long, else the first forty), KRAIT_RANDOM_SEED which is
the first.
"""

import csv
import io
import json
import os
import random
import re
import shutil
import subprocess

import pytest

from conftest import found_pythons
from corpus import UTC, cat_bytes
from random_trace import Trace
from read_checks import batch_check, read_check

COUNT = int(os.environ.get("KRAIT_RANDOM_TRACES", "100"))
FIRST = int(os.environ.get("KRAIT_RANDOM_SEED", "1"))
AT_ONCE = 20
FIRST_ONES = COUNT if "KRAIT_RANDOM_TRACES" in os.environ else 40  # the others are for --long
STARTS = [pytest.param(at, marks=pytest.mark.long if at >= FIRST + FIRST_ONES else ()) for at in range(FIRST, FIRST + COUNT, AT_ONCE)]

# babeltrace2 2.1 puts several labels of one value in braces; of CTF 1.8, krait prints what 2.0 does.
LABELS = re.compile(rb'\{ ("label [^}]*") \}(?= : container)')


def babeltrace(ctf2):
    """The command: 2.1, which alone reads CTF 2, is in the folder of Debian's unstable release."""
    newer = next((p.prefix + ("babeltrace2",) for p in found_pythons()[0] if p.prefix), None)
    if ctf2 or not shutil.which("babeltrace2"):
        return newer
    return ("babeltrace2",)


def csv_rows(text):
    return list(csv.DictReader(io.StringIO(text, newline=""), strict=True))


@pytest.mark.parametrize("ctf2", [False, True], ids=["ctf1", "ctf2"])
def test_forms_of_random_traces_agree(krait, tmp_path, ctf2):
    """JSON, both forms of CSV, and as many lines as text."""
    for seed in range(FIRST, FIRST + max(COUNT // 10, 1)):
        folder = Trace(random.Random(seed), ctf2).write(tmp_path / str(seed))
        objects = [json.loads(line) for line in cat_bytes(krait, "--json", folder).stdout.splitlines()]
        assert len(objects) == cat_bytes(krait, folder).stdout.count(b"\n"), seed
        for row, said in zip(csv_rows(cat_bytes(krait, "--csv", folder).stdout.decode()), objects, strict=True):
            for scope in ("packet_context", "common_context", "event_context", "payload"):
                assert json.loads(row.get(scope) or "null") == said.get(scope) or scope not in row, seed
        tables = tmp_path / f"{seed}.tables"
        assert cat_bytes(krait, f"--csv-dir={tables}", folder).returncode == 0
        rows = [row for table in tables.iterdir() for row in csv_rows(table.read_text())]
        key = lambda row: (row["event"], int(row.get("time_ns") or 0), int(row["stream"]))  # noqa: E731
        assert sorted(map(key, rows)) == sorted(map(key, objects)), seed
        for name in {row["event"] for row in rows}:
            alone = [o for o in objects if o["event"] == name]
            for row, said in zip((row for row in rows if row["event"] == name), alone, strict=True):
                for field, value in said.get("payload", {}).items():
                    cell = row.get(f"payload.{field}", row.get(field))
                    if isinstance(value, dict) and set(value) == {"value", "label"}:
                        value = value["label"] or value["value"]
                    assert cell == (value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False)), (seed, field)


@pytest.mark.parametrize("first", STARTS)
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
        assert ours.stdout == (theirs.stdout if ctf2 else LABELS.sub(rb"\1", theirs.stdout)), seed
        lines = [str(ours.stdout.count(b"\n"))]
        assert read_check(folder)["events"] == lines, seed
        for interpret in ("", "1"):
            assert batch_check(folder, interpret=interpret)["events"] == lines, seed
            assert batch_check("--some", folder, interpret=interpret)["events"] == lines, seed
