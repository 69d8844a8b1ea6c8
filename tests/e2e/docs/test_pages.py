# SPDX-License-Identifier: Apache-2.0
"""The form of the pages: what no program that they show would notice."""

import pytest

from recording import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_blocks_of_code_have_content_and_stand_between_blank_lines(page):
    lines = ["", *page.read_text().split("\n"), ""]
    fences = [i for i, line in enumerate(lines) if line.startswith("```")]
    assert len(fences) % 2 == 0
    for begin, end in zip(fences[::2], fences[1::2]):
        assert "".join(lines[begin + 1 : end]).strip(), f"line {begin}: nothing is in it"
        assert not lines[begin - 1].strip() and not lines[end + 1].strip(), f"line {begin}: no blank line around it"
