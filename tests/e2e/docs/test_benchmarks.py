# SPDX-License-Identifier: Apache-2.0
"""docs/benchmarks.md is what `make bench` writes: nothing in it is lost when the page is written anew."""

import ast
import json
import re
import subprocess
from functools import lru_cache

import pytest

from recording import ROOT

BENCH = ROOT / "bench"
PAGE = (ROOT / "docs" / "benchmarks.md").read_text()
LEAST = 7  # characters that a template says itself, beside what is filled in: fewer would match anything
DIRECTIVE = re.compile(r"%(?:%|[-+0-9.]*[sdfgr])")


def blocks(text):
    """Its headings, paragraphs, tables, and items of lists, each in one line; a table is its first line."""
    for block in re.split(r"\n{2,}", text.strip("\n")):
        lines = block.split("\n")
        if lines[0].startswith("|"):
            yield lines[0]
        elif lines[0].startswith("- "):
            yield from (" ".join(item.split()) for item in re.split(r"\n(?=- )", block))
        elif lines[0].startswith("#"):
            yield lines[0]
            if lines[1:]:
                yield " ".join(" ".join(lines[1:]).split())
        else:
            yield " ".join(block.split())


def pattern(template):
    said = re.sub(r"\s", "", DIRECTIVE.sub("", template))
    parts = re.split(f"({DIRECTIVE.pattern})", " ".join(template.split()))
    text = "".join(re.escape(part) if i % 2 == 0 else "%" if part == "%%" else ".*?" for i, part in enumerate(parts))
    return text if len(said) >= LEAST else None


@lru_cache
def constants(names):
    found = set()
    for file in BENCH.glob(names):
        found.update(node.value for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Constant) and isinstance(node.value, str))
    return found


@lru_cache
def templates():
    pieces = {piece for text in constants("render*.py") for piece in blocks(text)}
    found = [p for p in map(pattern, pieces) if p]
    return re.compile("|".join(f"(?:{p})" for p in sorted(found, key=len, reverse=True)))


@lru_cache
def by_hand():
    found = {block for file in (BENCH / "by_hand").glob("*.md") for block in blocks(file.read_text())}
    return {block for block in found if not block.startswith("<!-- ")}  # where they belong


def is_made(block):
    """Whether bench/render*.py makes it: a table's columns, a goal behind whether it is met, any other block."""
    if block.startswith("|"):
        cells = [cell.strip() for cell in block.strip("|").split("|")]
        words = constants("*.py")
        return all(cell in words or cell.split(" ", 1)[-1] in words or cell.split(", ")[-1] in words for cell in cells if cell)
    if block.startswith("### ") and block[4:] in constants("*.py"):  # a trace's name
        return True
    goal = re.fullmatch(r"- \*\*(?:Not met|Met):\*\* (?:.*?: )?(.*)", block)
    return any(templates().fullmatch(text) for text in (block, goal and re.sub(r"^.*?: ", "", goal[1]), goal and goal[1], goal and block.split("** ", 1)[1]) if text)


@pytest.mark.parametrize("block", [pytest.param(b, id=b[:60]) for b in dict.fromkeys(blocks(PAGE))])
def test_each_block_of_the_page_is_made_or_written_in_by_hand(block):
    assert block in by_hand() or is_made(block), "make bench would take this out of the page: write it into bench/by_hand/"


@pytest.fixture
def render(monkeypatch):
    monkeypatch.syspath_prepend(BENCH)
    import render

    return render


@pytest.mark.parametrize("file", sorted((BENCH / "by_hand").glob("*.md")), ids=lambda file: file.stem)
def test_what_is_written_by_hand_stands_where_make_bench_puts_it(render, file):
    remarks = [text.strip("\n") for _, _, text in render.remarks_in(file.read_text())]
    assert remarks and all(PAGE.count(text) == 1 for text in remarks)
    begin = PAGE.rindex("\n## ", 0, min(map(PAGE.index, remarks))) + 1
    last = max(PAGE.index(text) + len(text) for text in remarks)
    part = PAGE[begin : PAGE.find("\n## ", last) + 1 or len(PAGE)].strip("\n")
    made = part
    for text in remarks:
        made = made.replace(text + "\n\n", "").replace("\n\n" + text, "")
    assert made != part and render.with_remarks(made, file).strip("\n") == part


MACHINE = {"krait": "krait 0.1.0", "date": "2026-01-02", "cpu": "CPU", "cpus": 2, "virtual": False, "memory_gib": 4, "kernel": "6.1", "libc": "glibc 2.36", "load": 0.1}


def test_a_page_written_anew_keeps_all_that_is_written_by_hand(tmp_path):
    """Also of parts that were not measured."""
    row = {"untraced": 30, "floor": 20, "krait": 25}
    (tmp_path / "results.json").write_text(json.dumps({"machine": MACHINE, "calls": {"3.13.0": {"fib": row, "len": row}}}))
    done = subprocess.run([BENCH / "run", "--render", tmp_path / "results.json"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    page = list(blocks(done.stdout))
    assert "## A call" in page and "| Python" in done.stdout
    assert by_hand() <= set(page)
    assert "<!--" not in done.stdout


def test_a_part_that_is_measured_alone_leaves_the_rest_of_the_page_as_it_is(tmp_path):
    row = {"untraced": 30, "floor": 20, "krait": 25}
    (tmp_path / "results.json").write_text(json.dumps({"machine": MACHINE, "calls": {"3.99.0": {"fib": row, "len": row}}}))
    (tmp_path / "page.md").write_text(PAGE)
    done = subprocess.run([BENCH / "run", "--render", tmp_path / "results.json", "--page", tmp_path / "page.md"], capture_output=True, text=True, timeout=60)
    page = (tmp_path / "page.md").read_text()
    assert (done.returncode, done.stderr, done.stdout) == (0, "", page)
    before, after = (re.split(r"(?m)^(?=## )", text) for text in (PAGE, page))
    changed = [(b, a) for b, a in zip(before, after) if b != a]
    assert len(before) == len(after) and len(changed) == 1 and changed[0][0].startswith("## A call\n")
    assert changed[0][1].startswith("## A call\n\nkrait 0.1.0, 2026-01-02: CPU, 2 CPUs, 4 GiB") and "| 3.99.0 " in changed[0][1]


@pytest.mark.parametrize("block", ["Two more runs were faster, by 3 %.", "- **Met:** all that was asked for.", "| what | before | after |", "### A remark"])
def test_a_block_that_somebody_wrote_into_the_page_is_found(block):
    assert not is_made(block) and block not in by_hand()


def module(name):
    return ast.parse((BENCH / f"{name}.py").read_text())


def taken_of_others(tree):
    """(module, name) of each `module.name`, where the module is one of bench/."""
    known = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names if (BENCH / f"{alias.name}.py").exists()}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in known:
            yield node.value.id, node.attr


@lru_cache
def defined(name):
    """What a module has at its outermost level."""
    found = set()
    for node in module(name).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
            continue
        found.update(at.id for at in ast.walk(node) if isinstance(at, ast.Name) and isinstance(at.ctx, ast.Store))
        found.update(alias.asname or alias.name for alias in getattr(node, "names", ()))
    return found


@pytest.mark.parametrize("name", sorted(file.stem for file in BENCH.glob("*.py")))
def test_the_parts_of_the_bench_find_each_other(name):
    assert not [f"{of}.{what}" for of, what in taken_of_others(module(name)) if what not in defined(of)]


@pytest.mark.parametrize("path", [BENCH / "run", *sorted(BENCH.glob("*.py"))], ids=lambda path: path.name)
def test_what_a_part_takes_of_lib_is_there(path):
    """The parts run too long for the tests."""
    defined = {name for line in (BENCH / "lib.py").read_text().splitlines() for name in re.findall(r"^(?:def |class |from \S+ import )?(\w+)", line)}
    assert set(re.findall(r"\blib\.(\w+)", path.read_text())) - {"py"} <= defined
