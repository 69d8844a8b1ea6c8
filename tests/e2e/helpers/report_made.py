# SPDX-License-Identifier: Apache-2.0
"""What tests of `krait report` on recordings whose times are known share."""

import os
import subprocess

import pytest

from terminal import on_terminal

CODES = """
process 4711 python3
code 1 python app main app.py 1
code 2 python app fib app.py 10
code 3 c builtins len - 0
code 4 python lib.gen numbers lib/gen.py 5
thread 4711 MainThread
"""

# Standard error, of so many runs.
CUT_NOTE = "cut: the begin or the end of %s was not recorded, or is not in the chosen time; mean to p99 leave these out\n"


@pytest.fixture
def run(krait):
    """run(*arguments) runs `krait report` with its outputs piped."""

    def report(*args, **env):
        return subprocess.run(
            [krait, "report", *map(str, args)], capture_output=True, text=True, timeout=60, env={**os.environ, **env}
        )

    return report


@pytest.fixture
def rows(report):
    """rows(folder, *options) is {name: row}."""
    return lambda folder, *options: {row["name"]: row for row in report(folder, *options)}


def figures(row, *keys):
    return tuple(row[key] for key in keys)


TWO = """
process 100 python3
code 1 python app main app.py 1
code 2 python app work app.py 9
thread 100 MainThread
0 call 1
1000 return
thread 101 worker
100 call 2
400 return
process 200 gunicorn 100
code 5 python app main app.py 1
code 6 python app serve app.py 20
thread 200 MainThread
500 call 5
600 call 6
650 return
700 return
"""


def report_on_terminal(krait, columns, *args, notes=False, **env):
    """What is printed, with what goes to standard error where `notes` is true."""
    env = {"LC_ALL": "C.UTF-8", "TERM": "xterm-256color", "NO_COLOR": None, **env}
    env = {key: value for key, value in {**os.environ, **env}.items() if value is not None}
    streams = ("stdout", "stderr") if notes else ("stdout",)
    text, status = on_terminal([krait, "report", *args], columns, streams, env)
    assert status == 0
    return text
