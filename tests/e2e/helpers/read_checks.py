# SPDX-License-Identifier: Apache-2.0
"""The programs that check libkrait-read, built beside krait."""

import os
import subprocess

from conftest import BUILD

EXAMPLES = BUILD / "docs" / "examples"


def run(tool, *args, env=None):
    return subprocess.run([tool, *map(str, args)], capture_output=True, text=True, timeout=120, env=env)


def found(done):
    """What one of the checks counted; it fails where two ways to read differ."""
    assert done.returncode == 0, done.stderr
    return {words[0]: words[1:] for words in (line.split(" ") for line in done.stdout.splitlines())}


def read_check(*traces):
    return found(run(BUILD / "tests" / "read_check", *traces))


def batch_check(*args, interpret=""):
    return found(run(BUILD / "tests" / "batch_check", *args, env={**os.environ, "KRAIT_READ_INTERPRET": interpret}))


def seek_check(*traces):
    return found(run(BUILD / "tests" / "seek_check", *traces))
