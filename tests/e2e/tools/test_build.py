# SPDX-License-Identifier: Apache-2.0
"""tools/build in a small project: the tests take what it makes, and a compiler that knows more warnings builds it too."""

import os
import runpy
import shutil
import subprocess

import pytest

from recording import ROOT

TOOLS = ("build", "environment", "libdir", "packages", "setup.sh")
QUIET = "int main(void)\n{\n    return 0;\n}\n"
WRONG = "int main(void)\n{\n    return nothing;\n}\n"
WARNS = "int main(void)\n{\n    int n;\n    return 0;\n}\n"


@pytest.fixture
def build(tmp_path):
    """build(a program's text): runs tools/build; the process, and the folder that it made."""
    (tmp_path / "tools").mkdir()
    for name in TOOLS:
        shutil.copy2(ROOT / "tools" / name, tmp_path / "tools")
    (tmp_path / "meson.build").write_text("project('a', 'c', default_options: ['warning_level=2'])\nexecutable('a', 'a.c')\n")
    env = {name: value for name, value in os.environ.items() if name not in ("CC", "CXX")}

    def make(text):
        (tmp_path / "a.c").write_text(text)
        run = subprocess.run([tmp_path / "tools" / "build"], env=env, capture_output=True, text=True, timeout=120)
        return run, tmp_path / "build"

    return make


def is_strict(folder):
    """Whether the tests need no other build by gcc."""
    return runpy.run_path(str(ROOT / "tools" / "run-tests"), run_name="run_tests")["strict_by_gcc"](folder)


def test_the_tests_take_what_make_has_built_and_a_later_warning_is_an_error(build):
    run, folder = build(QUIET)
    assert run.returncode == 0, run.stderr
    assert is_strict(folder)
    run, _ = build(WARNS)
    assert run.returncode != 0 and "[-Werror=unused-variable]" in run.stdout and is_strict(folder)


def test_a_new_folder_is_built_whatever_its_compiler_warns_of(build):
    run, folder = build(WARNS)
    assert run.returncode == 0 and (folder / "a").exists(), run.stdout + run.stderr
    assert "once more with warnings allowed" in run.stderr
    assert not is_strict(folder)


def test_a_real_error_is_shown_once_and_ends_the_build(build):
    run, folder = build(WRONG)
    assert run.returncode != 0 and "once more" not in run.stderr
    assert run.stdout.count("(first use in this function)") == 1, run.stdout
    run, folder = build(WARNS)  # nothing of the folder has been built yet
    assert run.returncode == 0 and (folder / "a").exists(), run.stdout + run.stderr
