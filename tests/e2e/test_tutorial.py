# SPDX-License-Identifier: Apache-2.0
"""The tutorial's commands work as they stand, in its order; the pages that README names are there."""

import re
import subprocess

import pytest

from pages import blocks, page_text, run_page
from recording import ROOT


def test_every_command_of_the_tutorial_works(krait, any_python, tmp_path, alone):
    assert len(run_page("tutorial.md", krait, any_python, tmp_path)) >= 10
    for name in ("before.svg", "change.svg", "before.pftrace", "before.speedscope.json", "callgrind.out.before"):
        assert (tmp_path / name).stat().st_size > 1000, name


def test_the_change_of_the_tutorial_makes_the_program_faster(any_python, tmp_path):
    text = dict((i[1], b) for i, b in blocks(page_text("tutorial.md")) if i[0] == "python")["shop.py"]
    (tmp_path / "shop.py").write_text(text)
    sed = re.search(r"^\$ (sed .*)$", page_text("tutorial.md"), re.M)[1]
    before = any_python.run("shop.py", cwd=tmp_path).stdout
    subprocess.run(sed, shell=True, cwd=tmp_path, check=True)
    assert "re.compile(r\"\\b%s\\b\" % w).search" in (tmp_path / "shop.py").read_text()
    assert any_python.run("shop.py", cwd=tmp_path).stdout == before != ""


@pytest.mark.pythons(most=(3, 13))  # what is in a folder of its own is no command `python3`
def test_a_recorded_program_may_use_a_profiler_of_its_own(krait, python, tmp_path):
    runs = run_page("record.md", krait, python, tmp_path)
    profiled, info = runs.values()
    assert re.search(r"^ +\d+ .* shop.py:1\(price\)$", profiled.stdout, re.M)
    assert ("displaced" in info.stdout) != python.has_monitoring


@pytest.mark.parametrize("page", ["README.md", "docs/tutorial.md", "ARCHITECTURE.md", "docs/benchmarks.md", "docs/flame.md", "docs/export.md", "docs/kernel.md", "docs/states.md", "docs/path.md", "docs/gil.md", "docs/record.md", "docs/reference.md"])
def test_links_between_the_pages_lead_somewhere(page):
    path = ROOT / page
    for target, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", path.read_text()):
        to = (path.parent / target).resolve() if target else path
        assert to.exists(), f"{page}: {target}"
        if anchor:
            anchors = {re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in re.findall(r"^#+ (.*)$", to.read_text(), re.M)}
            assert anchor in anchors, f"{page}: {target}#{anchor}"
