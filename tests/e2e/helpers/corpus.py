# SPDX-License-Identifier: Apache-2.0
"""krait cat as bytes, and the traces that others recorded: a folder that KRAIT_CTF_CORPUS names."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from recording import ROOT

CORPUS = Path(os.environ.get("KRAIT_CTF_CORPUS", ROOT.parent / "shared" / "ctf-corpus"))
UTC = {**os.environ, "TZ": "UTC", "LC_ALL": "C"}


def cat_bytes(krait, *args, **options):
    return subprocess.run([krait, "cat", *map(str, args)], capture_output=True, env=UTC, timeout=120, **options)


def corpus_rows():
    table = CORPUS / "expected.tsv"
    if not table.exists():
        reason = f"no corpus of CTF traces at {CORPUS}; KRAIT_CTF_CORPUS names it"
        return [pytest.param(None, id="corpus", marks=pytest.mark.skip(reason=reason))]
    lines = table.read_text().splitlines()[1:]
    return [pytest.param(line.split("\t"), id=line.split("\t")[0]) for line in lines]


SCRIPT = """\
process 10 app
code 1 python pkg.mod Class.method%20<locals> /src/f.py 3
code 2 c builtins len - 0
thread 10 Main%22Thread
repeat 3000
1us call 1
2us ccall 2
3us creturn
4us return
end
packet 7
300ms call 1
301ms unwind
thread 11 worker
2us call 1
2us call 99
3us resume 1
5us yield
9us return
400ms return
exit 0 0
lost 0 5
process 20 other 10
code 1 python m%22q g%0Ah%3F f.py 9
thread 20
2us call 1
9us frame 1 0
9us stack 1
500ms return
exit 0 0
"""


def babeltrace_but_losses(*args):
    """Its text; of its stderr, only what tells of discarded events may be there."""
    tool = shutil.which("babeltrace2")
    if not tool:
        pytest.skip("babeltrace2 is not installed")
    run = subprocess.run([tool, *map(str, args)], capture_output=True, env=UTC, timeout=120)
    others = [line for line in run.stderr.decode().splitlines() if "discarded" not in line]
    assert run.returncode == 0 and not others, others
    return run.stdout
