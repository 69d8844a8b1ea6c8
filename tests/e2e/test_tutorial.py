# SPDX-License-Identifier: Apache-2.0
"""The tutorial's commands work as they stand, in its order; the pages that README names are there."""

import os
import re
import subprocess

import pytest

from conftest import BUILD
from recording import ROOT


def blocks(text):
    """Its fenced blocks: (info words, body)."""
    return [(info.split(), body) for info, body in re.findall(r"^```(\S[^\n]*)\n(.*?)^```$", text, re.M | re.S)]


def test_every_command_of_the_tutorial_works(krait, any_python, tmp_path):
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    (bin_folder / "krait").symlink_to(krait)
    (bin_folder / "python3").symlink_to(any_python.exe)
    home = tmp_path / "home"
    home.mkdir()
    env = {**os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}", "PYTHONPATH": str(BUILD / "python"), "NO_COLOR": "1"}
    ran = 0
    for info, body in blocks((ROOT / "docs" / "tutorial.md").read_text()):
        if info[0] == "python":
            (home / info[1]).write_text(body)
        for line in re.findall(r"^\$ (.*)$", body, re.M) if info[0] == "console" else []:
            run = subprocess.run(line, shell=True, cwd=home, env=env, capture_output=True, text=True, timeout=120)
            assert run.returncode == 0, f"{line}\n{run.stdout}\n{run.stderr}"
            assert run.stdout or run.stderr or not line.startswith("krait"), f"{line} says nothing"
            ran += 1
    assert ran >= 10
    for name in ("before.svg", "change.svg", "before.pftrace", "before.speedscope.json", "callgrind.out.before"):
        assert (home / name).stat().st_size > 1000, name


def test_the_change_of_the_tutorial_makes_the_program_faster(any_python, tmp_path):
    text = dict((i[1], b) for i, b in blocks((ROOT / "docs" / "tutorial.md").read_text()) if i[0] == "python")["shop.py"]
    (tmp_path / "shop.py").write_text(text)
    sed = re.search(r"^\$ (sed .*)$", (ROOT / "docs" / "tutorial.md").read_text(), re.M)[1]
    before = any_python.run("shop.py", cwd=tmp_path).stdout
    subprocess.run(sed, shell=True, cwd=tmp_path, check=True)
    assert "re.compile(r\"\\b%s\\b\" % w).search" in (tmp_path / "shop.py").read_text()
    assert any_python.run("shop.py", cwd=tmp_path).stdout == before != ""


@pytest.mark.parametrize("page", ["README.md", "docs/tutorial.md", "ARCHITECTURE.md", "docs/benchmarks.md", "docs/flame.md", "docs/export.md", "docs/kernel.md", "docs/states.md", "docs/path.md", "docs/gil.md", "docs/reference.md"])
def test_links_between_the_pages_lead_somewhere(page):
    path = ROOT / page
    for target, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", path.read_text()):
        to = (path.parent / target).resolve() if target else path
        assert to.exists(), f"{page}: {target}"
        if anchor:
            anchors = {re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in re.findall(r"^#+ (.*)$", to.read_text(), re.M)}
            assert anchor in anchors, f"{page}: {target}#{anchor}"
