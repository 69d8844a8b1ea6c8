# SPDX-License-Identifier: Apache-2.0
"""krait top of a process that executes one program after the other."""

import json
import os
import signal
import subprocess

import pytest

import executed
from running import wait_for


@pytest.mark.parametrize("fixed", [False, True], ids=["other addresses", "same addresses"])
def test_a_program_that_executes_others_is_read_until_it_ends(programs, krait, any_python, tmp_path, fixed):
    before = executed.at_fixed_addresses() if fixed else ()
    seen = f"'\"program%d\"' % len(others) in open('{tmp_path}/tables').read()"
    app = programs.start(any_python, executed.BEGINS, *executed.chain(tmp_path, seen, *[[any_python.exe]] * 4), before=before)
    with open(tmp_path / "tables", "w") as file:
        top = subprocess.Popen([krait, "top", "--json", "--rate", "1000", "--interval", "300ms", str(app.pid)], stdout=file, stderr=subprocess.PIPE, text=True)
        wait_for(lambda: (tmp_path / "tables").stat().st_size, "the first table")
        os.kill(app.pid, signal.SIGUSR1)
        app.process.wait(timeout=60)
        said = top.communicate(timeout=20)[1]
    functions = json.loads((tmp_path / "tables").read_text().splitlines()[-1])["functions"]
    assert top.returncode == 0 and "has ended" in said, said
    assert {f"program{n}" for n in range(4)} <= {f["function"] for f in functions}
