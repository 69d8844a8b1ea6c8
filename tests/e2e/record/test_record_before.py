# SPDX-License-Identifier: Apache-2.0
"""What keeps a program from being recorded: told before the program runs where it can be known then, with the true reason,
what to do, and an exit status that is not the program's."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

NOT_RECORDED, CANNOT_RUN, NOT_FOUND = 125, 126, 127


@pytest.fixture
def run(krait, tmp_path):
    """run(*words): `krait record` in the test's folder."""

    def words(*args, command=krait, **options):
        return subprocess.run([command, "record", *map(str, args)], cwd=tmp_path, capture_output=True, text=True, timeout=60, **options)

    return words


def was_refused(run, status):
    """The program printed nothing: it did not run."""
    assert (run.returncode, run.stdout) == (status, ""), run.stderr
    return run.stderr


# -- where to --


@pytest.mark.parametrize(
    "folder, why",
    [
        ("full", "the folder full is not empty; choose another with -o"),
        ("full/precious", "full/precious: Not a directory; choose another with -o"),
        ("full/precious/deeper", "cannot make the folder full/precious/deeper: Not a directory; choose another with -o"),
    ],
)
def test_a_folder_that_cannot_be_written(run, tmp_path, folder, why):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "precious").write_text("x")
    said = was_refused(run("-o", folder, "--", "echo", "ran"), NOT_RECORDED)
    assert why in said and "echo was not run" in said
    assert (tmp_path / "full" / "precious").read_text() == "x" and len(list((tmp_path / "full").iterdir())) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="to become another user")
def test_a_folder_of_another_user(everyones_krait, tmp_path):
    command = [everyones_krait, "record", "-o", "/root-of-nobody/trace", "--", "echo", "ran"]
    said = was_refused(subprocess.run(command, user=65534, capture_output=True, text=True, timeout=60), NOT_RECORDED)
    assert "/root-of-nobody: Permission denied; choose another with -o" in said


# -- which krait --


@pytest.fixture
def installed(krait, tmp_path):
    """A copy of krait in a folder: the command, and its parts beside it."""

    def copy(folder, *parts):
        (tmp_path / folder / "python" / "krait").mkdir(parents=True)
        shutil.copy(krait, tmp_path / folder)
        for part in parts:
            shutil.copy(Path(krait).parent / "python" / "krait" / part, tmp_path / folder / "python" / "krait")
        return tmp_path / folder / "krait"

    return copy


PARTS = ("libkrait-preload.so", "_agent.abi3.so")


def test_a_command_that_was_copied_alone(run, installed):
    alone = installed("bin")
    said = was_refused(run("--", "echo", "ran", command=alone), NOT_RECORDED)
    assert f"{alone} is alone: libkrait-preload.so is neither beside it nor" in said and "make install" in said


def test_a_part_that_is_missing(run, installed):
    command = installed("bin", PARTS[0])
    said = was_refused(run("--", "echo", "ran", command=command), NOT_RECORDED)
    assert f"{command.parent}/python/krait/_agent.abi3.so is missing: the installation of krait is incomplete" in said


def test_a_link_to_the_command_is_whole(run, installed, tmp_path):
    (tmp_path / "link").symlink_to(installed("bin", *PARTS))
    assert run("--", "echo", "ran", command=tmp_path / "link").stdout == "ran\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="to become another user")
@pytest.mark.parametrize("part, below", [*((part, "bin/python/krait") for part in PARTS), (PARTS[0], "lib/python3.9/site-packages/krait")])
def test_a_part_that_cannot_be_read(installed, tmp_path, part, below):
    """A file, or the packages of a Python where krait is installed."""
    command, package = installed("bin", *PARTS), tmp_path / below
    if package.parts[-2] == "site-packages":
        package.parent.mkdir(parents=True)
        (command.parent / "python" / "krait").rename(package)
        package.parent.chmod(0o700)
    else:
        (package / part).chmod(0o600)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.geteuid() and str(folder).startswith("/tmp/pytest-of"):
            folder.chmod(0o755)
    if subprocess.run([command, "--version"], user=65534, capture_output=True).returncode:
        pytest.skip("another user cannot run a krait there")
    run = subprocess.run([command, "record", "--", "echo", "ran"], user=65534, capture_output=True, text=True, timeout=60)
    said = was_refused(run, NOT_RECORDED)
    assert f"cannot read {package}/{part}: Permission denied; make krait's folder readable" in said


def test_a_folder_that_the_loader_cannot_preload_from(run, installed):
    command = installed("with a blank", *PARTS)
    said = was_refused(run("--", "echo", "ran", command=command), NOT_RECORDED)
    assert "the loader cannot preload a file whose path has a blank or a colon" in said


def test_limits_that_leave_no_room(krait, tmp_path):
    shell = ["sh", "-c", 'ulimit -f 1000; exec "$@"', "sh", krait, "record", "-o", tmp_path / "trace", "--", "echo", "ran"]
    said = was_refused(subprocess.run(shell, capture_output=True, text=True, timeout=60), NOT_RECORDED)
    assert "ulimit" in said and not (tmp_path / "trace").exists()


# -- what command --


@pytest.mark.parametrize("options", [[], ["--kernel"]], ids=["", "kernel"])
@pytest.mark.parametrize(
    "text, mode, typed, status, why",
    [
        (None, 0, "no-such-command", NOT_FOUND, "cannot run no-such-command: no such command on PATH\n"),
        (None, 0, "./no-such-command", NOT_FOUND, "cannot run ./no-such-command: No such file or directory\n"),
        ("print(1)", 0o644, "app.py", NOT_FOUND, "cannot run app.py: no such command on PATH; name its interpreter: krait record -- python3 app.py\n"),
        ("print(1)", 0o644, "./app.py", CANNOT_RUN, "Permission denied; name its interpreter: krait record -- python3 ./app.py\n"),
        ("print(1)", 0o755, "./app.py", CANNOT_RUN, "Exec format error; name its interpreter: krait record -- python3 ./app.py\n"),
        ("#!/usr/bin/env python3\n", 0o644, "./app", CANNOT_RUN, "Permission denied; name its interpreter: krait record -- python3 ./app\n"),
        ("#!/no/such/python3\n", 0o755, "./app", CANNOT_RUN, "its first line names /no/such/python3, which is not there\n"),
        ("#!/bin/sh\r\n", 0o755, "./app", CANNOT_RUN, "its first line names /bin/sh\\x0d, which is not there\n"),
        ("", 0o644, "./text", CANNOT_RUN, "cannot run ./text: Permission denied\n"),
    ],
)
def test_a_command_that_cannot_be_started(run, tmp_path, options, text, mode, typed, status, why):
    if text is not None:
        (tmp_path / typed).write_bytes(text.encode())
        (tmp_path / typed).chmod(mode)
    before = set(tmp_path.iterdir())
    said = was_refused(run(*options, "--", typed), status)
    assert said.endswith(why)
    assert set(tmp_path.iterdir()) == before, "no folder is left"


OTHER_PYTHON = """
    #include <stdio.h>
    int Py_IsInitialized(void) { return 0; }
    void *PyGILState_GetThisThreadState(void) { return 0; }
    const char *Py_GetVersion(void) { return "3.7.17 (default)"; }
    int main(int argc, char **argv) { puts("ran"); return argc - 1; }
"""


@pytest.fixture(scope="module")
def other_python(tmp_path_factory):
    """other_python(name, *flags) compiles what looks like a Python 3.7."""
    folder = tmp_path_factory.mktemp("pythons")
    (folder / "python.c").write_text(OTHER_PYTHON)

    def compile_as(name, *flags):
        subprocess.run(["cc", *(flags or ["-rdynamic"]), "-o", folder / name, folder / "python.c"], check=True)
        return folder / name

    return compile_as


def test_a_python_that_is_too_old(run, other_python):
    python = other_python("python3.7")
    said = was_refused(run("--", python), NOT_RECORDED)
    assert f"{python} is Python before 3.8; krait records CPython 3.8 to 3.15" in said


def test_a_script_of_a_python_that_is_too_old(run, other_python, tmp_path):
    (tmp_path / "script").write_text(f"#!{other_python('python3.7')}\n")
    (tmp_path / "script").chmod(0o755)
    assert "is Python before 3.8" in was_refused(run("./script"), NOT_RECORDED)


def test_a_python_without_a_loader(run, other_python):
    python = other_python("python3", "-static")
    assert f"{python} is linked statically" in was_refused(run("--", python), NOT_RECORDED)


@pytest.mark.parametrize("args, status", [((), NOT_RECORDED), (("fails",), 1)])
def test_a_program_that_turns_out_to_hold_an_old_python(run, other_python, args, status):
    """Its own failure is told before ours."""
    done = run("--", other_python("app"), *args)
    assert (done.returncode, done.stdout) == (status, "ran\n")
    assert "was not recorded: Python 3.7.17 is too old; krait records CPython 3.8 to 3.15" in done.stderr
    assert "No Python was seen" not in done.stderr


# -- what of it --


@pytest.mark.parametrize("python", [(3, 11), (3, 13)], ids=str)
@pytest.mark.parametrize(
    "globs, c, unmet",
    [
        (["zz*", "f", "*.f", "builtins.len", "*.nothing"], [], ["zz*", "*.nothing"]),
        (["f", "builtins.len"], ["--no-c-calls"], ["builtins.len"]),
        (["*"], ["--include", "zz*"], []),
    ],
)
def test_an_exclude_that_matches_nothing(record, python, globs, c, unmet):
    """A function may be like several; each matches it."""
    found = [p for p in record_pythons() if p.number == python]
    if not found:
        pytest.skip("not here")
    done = record.text(found[0], "def f(): return len('')\nf()\n", options=[*c, *(w for g in globs for w in ("--exclude", g))], ok=False)
    said = [line.split("'")[1] for line in done.stderr.splitlines() if line.strip().startswith("--exclude") and "matched no function" in line]
    assert said == unmet and done.status == (NOT_RECORDED if "--include" in c else 0)


@pytest.mark.parametrize("python", [(3, 11), (3, 13)], ids=str)
@pytest.mark.parametrize("globs, status, unmet", [(["zz*"], NOT_RECORDED, ["zz*"]), (["zz*", "__main__"], 0, ["zz*"]), (["*.py"], 0, [])])
def test_an_include_that_matches_nothing(record, python, globs, status, unmet):
    found = [p for p in record_pythons() if p.number == python]
    if not found:
        pytest.skip("not here")
    done = record.text(found[0], "def f(): pass\nf()\n", options=[w for g in globs for w in ("--include", g)], ok=False)
    assert done.status == status
    assert [line.split("'")[1] for line in done.stderr.splitlines() if "matched no function" in line] == unmet
    assert ("Next:" in done.stderr) == (status == 0)


def record_pythons():
    from conftest import found_pythons

    return found_pythons()[0]


def test_an_include_that_matches_nothing_leaves_a_failure_its_status(record, any_python):
    assert record(any_python, "-c", "raise SystemExit(3)", options=["--include", "zz*"]).status == 3
    killed = record(any_python, "-c", "import os; os.kill(os.getpid(), 9)", options=["--include", "zz*"])
    assert killed.status == -signal.SIGKILL
