# SPDX-License-Identifier: Apache-2.0
"""The version rule of src/ctf/format.h: a krait reads older and newer minor versions, and tells that one is newer."""

import re
import subprocess

import pytest
from recording import ENUMS, EVENTS

CALLS = """
process 7 python3
code 1 python main work app.py 1
thread 7
0us call 1
10us return
"""


def said(krait, verb, folder):
    run = subprocess.run([krait, verb, str(folder)], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    return " ".join((run.stdout + run.stderr).split())


def with_minor(folder, minor):
    metadata = next(folder.glob("*/metadata"))
    text, n = re.subn(r"(krait_format_minor = )\d+;", rf"\g<1>{minor};", metadata.read_text())
    assert n == 1
    metadata.write_text(text)
    return folder


def test_the_minor_version_is_the_number_of_rows_of_the_table(synth):
    text = next(synth(CALLS).glob("*/metadata")).read_text()
    assert int(re.search(r"krait_format_minor = (\d+);", text)[1]) == len(EVENTS) + sum(map(len, ENUMS.values()))


@pytest.mark.parametrize("verb", ["info", "report"])
def test_a_newer_minor_version_is_read_with_a_note(krait, synth, verb):
    text = said(krait, verb, with_minor(synth(CALLS), 4711))
    assert "format 1.4711" in text and "a newer krait" in text
    assert verb == "info" or "main.work" in text


@pytest.mark.parametrize("verb", ["info", "report"])
def test_older_minor_versions_are_read_without_one(krait, synth, verb):
    text = said(krait, verb, with_minor(synth(CALLS), 0))
    assert "newer" not in text
