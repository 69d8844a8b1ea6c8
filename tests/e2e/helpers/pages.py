# SPDX-License-Identifier: Apache-2.0
"""The pages of docs/: their programs and commands, as a reader would run them."""

import os
import re
import subprocess

from conftest import BUILD
from recording import ROOT


def page_text(name):
    return (ROOT / "docs" / name).read_text()


def blocks(text):
    """Its fenced blocks: (info words, body)."""
    return [(info.split(), body) for info, body in re.findall(r"^```(\S[^\n]*)\n(.*?)^```$", text, re.M | re.S)]


def run_page(name, krait, python, folder, programs_of=None, places=()):
    """Puts a page's programs, or another's, into the folder and runs its commands there, in their order: {command: its run}."""
    bin_folder = folder / "bin"
    bin_folder.mkdir()
    for command, target in ("krait", krait), ("python3", python.exe):
        (bin_folder / command).symlink_to(target)
    env = {**os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}", "PYTHONPATH": ":".join([str(BUILD / "python"), *places]), "NO_COLOR": "1"}
    runs = {}
    for info, body in blocks(page_text(programs_of or name)):
        if info[0] in ("python", "toml"):
            (folder / info[1]).write_text(body)
    for info, body in blocks(page_text(name)):
        for line in re.findall(r"^\$ (.*)$", body, re.M) if info[0] == "console" else []:
            run = subprocess.run(line, shell=True, cwd=folder, env=env, capture_output=True, text=True, timeout=120)
            assert run.returncode == 0, f"{line}\n{run.stdout}\n{run.stderr}"
            assert run.stdout or run.stderr or not line.startswith("krait"), f"{line} says nothing"
            runs[line] = run
    return runs
