# SPDX-License-Identifier: Apache-2.0
"""krait flame of folded stacks that others wrote."""

import json
import os
import pathlib
import subprocess
import xml.etree.ElementTree as ET

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
KRAIT = pathlib.Path(os.environ.get("KRAIT", ROOT / "build" / "krait"))
SVG = "{http://www.w3.org/2000/svg}"

PY_SPY = """\
thread (12): MainThread;<module> (app.py:40);main (app.py:30);dumps (json/__init__.py:231) 30
thread (12): MainThread;<module> (app.py:40);main (app.py:31) 9
thread (12): MainThread;<module> (app.py:40);main (app.py:31);read (libc.so.6) 1
"""
AUSTIN = """\
# austin: 3.4.1
# mode: wall

P1;T0:12;/srv/app.py:<module>:3;/srv/app.py:main:9 10023
P1;T0:12;/srv/app.py:<module>:3;/srv/app.py:main:11;/srv/x.py:work:1 2023
"""
PERF = """\
python3;_PyEval_EvalFrameDefault;py::main:/srv/app.py;read.constprop.0;vfs_read_[k] 3
python3;_PyEval_EvalFrameDefault;std::vector<int, std::allocator<int> >::push_back(int const&) 1
"""


def flame(*args, code=0, text=None, cwd=None):
    run = subprocess.run([KRAIT, "flame", *map(str, args)], input=text, capture_output=True, text=True, timeout=60, cwd=cwd)
    assert run.returncode == code, run.stderr
    return run


def titles(svg):
    """The lines of each frame's title, by its name."""
    group = next(g for g in ET.fromstring(svg).iter(SVG + "g") if g.get("id") == "frames")
    texts = [g.find(SVG + "title").text.split("\n") for g in group.iter(SVG + "g") if g is not group]
    return {lines[0]: lines[1:] for lines in texts}


def drawn(text, *args):
    return titles(flame("-", "-o", "-", *args, text=text).stdout)


def test_frames_of_py_spy_are_functions_whatever_line_ran():
    found = drawn(PY_SPY)
    assert found["app.main"] == ["app.py", "total 40 samples (100.0\u202f% of all, 100.0\u202f% of parent)", "self 9 samples"]
    assert found["json.dumps"] == ["json/__init__.py", "total 30 samples (75.0\u202f% of all, 75.0\u202f% of parent)", "self 30 samples"]
    assert set(found) == {"all", "thread (12): MainThread", "app.<module>", "app.main", "json.dumps", "read"}


def test_numbers_of_austin_are_times():
    found = drawn(AUSTIN)
    assert found["main"] == ["/srv/app.py", "total 12.0\u202fms (100.0\u202f% of all, 100.0\u202f% of parent)", "self 10.0\u202fms"]
    assert set(found) == {"all", "P1", "T0:12", "<module>", "main", "work"}
    assert drawn(AUSTIN, "--folded-unit", "samples")["main"][2] == "self 10,023 samples"


def test_symbols_of_perf_stay_whole_and_kernel_functions_have_one_colour():
    found = drawn(PERF)
    assert set(found) == {
        "all", "python3", "_PyEval_EvalFrameDefault", "main", "read.constprop.0", "vfs_read",
        "std::vector<int, std::allocator<int> >::push_back(int const&)"}
    assert found["vfs_read"][0] == "[kernel]" and found["main"][0] == "/srv/app.py"


def test_krait_reads_its_own_export_and_finds_the_same_shares(tmp_path):
    script = "process 7 python3\ncode 1 python app.core a;b /srv/app.py 1\ncode 2 c builtins len - 0\nthread 8 MainThread\n"
    script += "0 call 1\n10ms ccall 2\n40ms creturn\n100ms return\nexit 0 0\n"
    subprocess.run([KRAIT.parent / "tests" / "synth", tmp_path / "trace"], input=script.encode(), check=True, timeout=60)
    subprocess.run([KRAIT, "export", tmp_path / "trace", "-o", tmp_path / "a.folded"], check=True, timeout=60)
    found = titles(flame(tmp_path / "a.folded", "-o", "-", "--folded-unit", "ns").stdout)
    assert found["app.core.a;b"][-2:] == ["total 100\u202fms (100.0\u202f% of all, 100.0\u202f% of parent)", "self 70.0\u202fms"]
    assert found["builtins.len"][-1] == "self 30.0\u202fms" and "python3 7" in found and "MainThread 8" in found


def test_several_files_are_one_graph_and_two_are_compared(tmp_path):
    (tmp_path / "a").write_text("main;load 10\nmain;parse 10\n")
    (tmp_path / "b").write_text("main;load 30\nmain;parse 10\n")
    both = flame("a", "b", "-o", "-", cwd=tmp_path)
    assert titles(both.stdout)["load"][0].startswith("total 40 samples")
    run = flame("b", "--diff", "a", "-o", "diff.svg", cwd=tmp_path)
    assert "samples are compared" in run.stderr
    load = titles((tmp_path / "diff.svg").read_text())["load"]
    assert any("25.0" in line for line in load), load


def test_lines_that_are_no_stacks_are_told(tmp_path):
    (tmp_path / "a").write_text("main 1\nrubbish\n\nmain;x 2.6\nmain;y 0\n;; 4\n12\n")
    run = flame("a", "-o", "a.svg", cwd=tmp_path)
    assert "a: left out 2 lines that are no folded stack, line 2 first" in run.stderr.replace("\n  ", " ")
    assert titles((tmp_path / "a.svg").read_text())["x"][-1] == "self 3 samples"


ODD = {"bytes": b"main;\xff\x00\x1b[31m;</script>]]> 3\n", "wide": b"a" * 3_000_000 + b" 1\n", "deep": b"f;" * 20_000 + b"g 1\n"}


@pytest.mark.parametrize("what", ODD)
def test_odd_files_are_drawn(tmp_path, what):
    (tmp_path / "odd").write_bytes(ODD[what])
    flame("odd", "-o", "odd.svg", cwd=tmp_path)
    ET.parse(tmp_path / "odd.svg")


@pytest.mark.parametrize(
    "args, code, says",
    [
        (["bad"], 1, "bad:1: not a folded stack"),
        (["empty"], 1, "empty: no stacks in it"),
        (["gone"], 1, "gone"),
        (["good", "--by", "thread"], 2, "--by needs a recording; good is a file of folded stacks"),
        (["good", "--state", "cpu"], 2, "--state needs a recording"),
        (["good", "--diff", "folder"], 2, "folder is a recording, good is a file of folded stacks"),
        (["good", "--diff", "austin"], 1, "--folded-unit says what both are"),
        (["folder", "--folded-unit", "us"], 2, "--folded-unit: folder is no file of folded stacks"),
    ],
)
def test_what_cannot_be_drawn_is_said(tmp_path, args, code, says):
    (tmp_path / "folder").mkdir()
    for name, text in {"bad": "no number\n", "empty": "", "good": "main 1\n", "austin": AUSTIN}.items():
        (tmp_path / name).write_text(text)
    run = flame(*args, code=code, cwd=tmp_path)
    assert says in " ".join(run.stderr.split()), run.stderr


def test_the_script_of_the_page_counts_samples():
    page = flame("-", "-o", "-", text=PY_SPY).stdout
    data = json.loads(next(s.text for s in ET.fromstring(page).iter(SVG + "script") if s.get("id") == "data"))
    assert data["measures"] == 2 and data["unit"] == 1
