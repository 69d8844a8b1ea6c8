# SPDX-License-Identifier: Apache-2.0
"""The step "layout" of the tests looks at every C file that `make format` lays out: those of tools/c_files."""

import shutil
import subprocess

import pytest
from recording import ROOT

FILES = {"src/base/a.c": "", "include/krait/a.h": "", "tests/unit/a.c": "", "bench/a.c": "", "bench/a.py": "", "tests/node_modules/a/a.h": ""}


@pytest.fixture
def project(tmp_path):
    """A small tree with what the step runs."""
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("int n;\n")
    (tmp_path / "tools").mkdir()
    for name in ("tools/c_files", "tools/run-tests", ".clang-format"):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def run_layout(project):
    done = subprocess.run([project / "tools/run-tests", "layout"], capture_output=True, text=True, timeout=60)
    return done.returncode, [line for line in done.stdout.splitlines() if "not laid out" in line]


def test_the_files_of_every_folder(project):
    listed = subprocess.run([project / "tools/c_files"], capture_output=True, text=True, timeout=60, check=True).stdout.split()
    assert listed == ["bench/a.c", "include/krait/a.h", "src/base/a.c", "tests/unit/a.c"]


@pytest.mark.parametrize("name", ["src/base/a.c", "include/krait/a.h", "tests/unit/a.c", "bench/a.c"])
def test_a_file_that_is_not_laid_out(project, name):
    assert run_layout(project) == (0, [])
    (project / name).write_text("int  n;\n")
    assert run_layout(project) == (1, [f"{name}: not laid out as .clang-format says; run: make format"])
