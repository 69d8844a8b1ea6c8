# SPDX-License-Identifier: Apache-2.0
"""import krait: recording from inside a program."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

from conftest import BUILD
from recording import Recording

PACKAGE = {"PYTHONPATH": str(BUILD / "python")}


def run(python, record, text, *args):
    env = {**os.environ, **PACKAGE}
    result = python.run(record.script(text), *args, env=env, cwd=record.folder)
    assert result.returncode == 0, result.stderr
    return result


def test_a_part_of_a_program_is_recorded(record, python, tmp_path):
    run(
        python,
        record,
        """
        import sys, krait
        def f(): pass
        def unseen(): pass
        unseen()
        with krait.recording(sys.argv[1]) as path:
            assert krait.is_recording()
            for _ in range(100): f()
        assert not krait.is_recording()
        unseen()
        """,
        tmp_path / "trace",
    )
    recording = Recording(tmp_path / "trace").check(ended=False)
    calls = recording.calls()
    assert calls["f"] == 100 and not calls["unseen"]


def test_starting_in_mid_call_seeds_the_stacks_of_all_threads(record, python, tmp_path, report):
    run(
        python,
        record,
        """
        import sys, threading, krait
        go, there = threading.Event(), threading.Event()
        def other():
            waiting()
        def waiting():
            there.set()
            go.wait()
            work()
        def work(): pass
        def outer():
            inner()
        def inner():
            krait.start(path=sys.argv[1])
            work()
            go.set()
            thread.join()
        thread = threading.Thread(target=other)
        thread.start()
        there.wait()
        outer()
        work()
        krait.stop()
        """,
        tmp_path / "trace",
    )
    recording = Recording(tmp_path / "trace").check(ended=False)
    assert recording.calls()["work"] == 3
    process = recording.main
    frames = {process.codes[e.code].qualname for t in process.threads for e in t.events if e.name == "python:frame"}
    assert {"outer", "inner", "other", "waiting"} <= frames
    functions = {f["name"]: f for f in report(tmp_path / "trace")}
    outer = functions["outer"]
    assert outer["calls"] == 0 and outer["total_ns"] > 0  # it was called before, and ran on


ROUNDS = 2_000_000  # of a loop, each of which takes more than a nanosecond anywhere


@pytest.mark.parametrize("options", [{}, {"call_sites": True}, {"exclude": ["nothing"]}, {"c_calls": False}], ids=str)
def test_kraits_own_functions_are_not_the_programs(record, python, tmp_path, report, options):
    run(
        python,
        record,
        f"""
        import sys, krait
        def f(): pass
        def outer():
            krait.start(path=sys.argv[1], **{options})
            assert krait.is_recording()
            f()
            compute = 0
            for _ in range({ROUNDS}): compute += 1
            krait.stop()
        def quiet():
            compute = 0
            with krait.recording(sys.argv[1] + "2", **{options}):
                for _ in range({ROUNDS}): compute += 1
        outer()
        quiet()
        """,
        tmp_path / "trace",
    )
    for path, names in ((tmp_path / "trace", ["outer", "<module>", "f"]), (tmp_path / "trace2", ["quiet", "<module>"])):
        recording = Recording(path).check(ended=False)
        assert {c.qualname for c in recording.main.codes.values() if c.kind == "python"} == set(names)
        assert not any("krait" in c.module for c in recording.main.codes.values())
        (thread,) = recording.main.threads
        assert recording.main.shape(thread)[1] == []
        functions = {f["name"]: f for f in report(path)}
        assert functions[names[0]]["self_ns"] > ROUNDS and functions["<module>"]["total_ns"] > ROUNDS


def test_options_are_those_of_the_command(record, any_python, tmp_path):
    run(
        any_python,
        record,
        """
        import sys, krait
        def kept(): len("")
        def left_out(): pass
        krait.start(path=sys.argv[1], c_calls=False, exclude=["left_*"])
        kept(); left_out()
        krait.stop()
        krait.start(path=sys.argv[1] + "2")
        kept()
        krait.stop()
        """,
        tmp_path / "trace",
    )
    calls = Recording(tmp_path / "trace").check(ended=False).calls()
    assert (calls["kept"], calls["left_out"], calls["len"]) == (1, 0, 0)
    calls = Recording(tmp_path / "trace2").check(ended=False).calls()
    assert (calls["kept"], calls["len"]) == (1, 1)


def test_wrong_use_is_said(record, any_python, tmp_path):
    result = run(
        any_python,
        record,
        """
        import sys, krait
        for wrong in (dict(path="/proc/nowhere/trace"), dict(path=sys.argv[1], max_overhead="much")):
            try:
                krait.start(**wrong)
            except RuntimeError as e:
                print(e)
        krait.start(path=sys.argv[1])
        try:
            krait.start(path=sys.argv[1] + "2")
        except RuntimeError as e:
            print(str(e).splitlines()[0])
        krait.stop()
        """,
        tmp_path / "trace",
    )
    first, second, third = result.stdout.splitlines()
    assert first.startswith("krait.start: cannot make the folder /proc/nowhere")
    assert second.startswith("krait.start: --max-overhead: 'much'")
    assert "krait collect" not in result.stdout and "Try: " not in result.stdout
    assert third == f"krait.start('{tmp_path}/trace2'): krait.start() already records this process, into {tmp_path}/trace; call krait.stop() first"


def test_an_option_that_there_is_not_is_said_with_those_that_there_are(record, python, tmp_path):
    result = run(
        python,
        record,
        """
        import sys, krait
        def attempt(begin):
            try:
                begin(sys.argv[1], bogus=1)
            except TypeError as e:
                print(e)
        attempt(krait.start)
        attempt(krait.recording)
        assert not krait.is_recording()
        """,
        tmp_path / "trace",
    )
    first, second = result.stdout.splitlines()
    assert first == second and first.startswith("krait.start: no option 'bogus'; there are include, exclude, c_calls, ")
    assert not (tmp_path / "trace").exists()


def test_every_option_of_a_recording_is_one_of_start(krait):
    """Those of the command that the collector of krait.start() takes."""
    said = subprocess.run([krait, "collect", "--help"], capture_output=True, text=True, check=True).stdout
    names = set(re.findall(r"^ +(?:-\w, )?--([a-z-]+)", said, re.M)) - {"help", "output"}
    known = subprocess.run(
        [sys.executable, "-c", "import krait; print(*krait._OPTIONS)"], env={**os.environ, **PACKAGE}, capture_output=True, text=True, check=True
    )
    assert {n[3:] if n.startswith("no-") else n for n in names} == {n.replace("_", "-") for n in known.stdout.split()}


def test_starting_under_krait_record_names_both(record, any_python, tmp_path):
    run = record.text(
        any_python,
        """
        import sys, krait
        def f(): pass
        try:
            krait.start(sys.argv[1])
        except RuntimeError as e:
            print(e)
        f()
        """,
        tmp_path / "inner",
        env=PACKAGE,
    )
    assert run.stdout.startswith(f"krait.start('{tmp_path}/inner'): this process is already recorded by process ")
    assert f" record -o {run.path} -- " in run.stdout and "krait.is_recording()" in run.stdout
    assert run.check().calls()["f"] == 1 and not (tmp_path / "inner").exists()


@pytest.mark.parametrize("options", [[], ["--no-children"]], ids=str)
def test_a_second_copy_of_krait_sees_that_the_first_records(record, python, tmp_path, options):
    """As pip's package does, when the command is of another build."""
    shutil.copytree(BUILD / "python" / "krait", tmp_path / "copy" / "krait")
    run = record.text(
        python,
        """
        import sys, krait
        def f(): pass
        assert krait.is_recording()
        try:
            krait.start(sys.argv[1])
        except RuntimeError as e:
            print(e)
        assert krait.stop() is None
        f()
        """,
        tmp_path / "inner",
        options=options,
        env={"PYTHONPATH": str(tmp_path / "copy"), "KRAIT": os.environ.get("KRAIT", str(BUILD / "krait"))},
    )
    assert run.stdout.startswith(f"krait.start('{tmp_path}/inner'): this process is already recorded by process ")
    assert run.check().calls()["f"] == 1 and not (tmp_path / "inner").exists()


def test_a_recording_is_finished_when_its_program_has_ended(record, python, tmp_path, info):
    """Without krait.stop(), and with exit functions that run after krait's own."""
    run(
        python,
        record,
        """
        import atexit, sys
        def last(): pass
        atexit.register(last)
        import krait
        def f(): pass
        atexit.register(f)
        krait.start(sys.argv[1])
        f()
        """,
        tmp_path / "trace",
    )
    facts = info(tmp_path / "trace")  # at once
    assert facts["finished"] is True
    calls = Recording(tmp_path / "trace").check(ended=False).calls()
    assert (calls["f"], calls["last"]) == (2, 0)


def test_a_forked_child_that_exits_leaves_its_parents_recording_alone(record, any_python, tmp_path):
    run(
        any_python,
        record,
        """
        import os, sys, krait
        krait.start(sys.argv[1])
        def f(): pass
        pid = os.fork()
        if pid == 0:
            f()
            sys.exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        assert krait.is_recording()
        f()
        """,
        tmp_path / "trace",
    )
    parent, child = Recording(tmp_path / "trace").check(ended=False).processes
    assert parent.calls()["f"] == child.calls()["f"] == 1


def test_a_collector_that_hangs_does_not_keep_a_program_from_ending(record, any_python, tmp_path):
    result = run(
        any_python,
        record,
        """
        import os, signal, sys, krait
        krait.start(sys.argv[1])
        krait._PATIENCE = 0.2
        print(krait._state["session"], flush=True)
        os.kill(int(krait._state["session"].split("/")[2]), signal.SIGSTOP)
        def f(): pass
        f()
        """,
        tmp_path / "trace",
    )
    os.kill(int(result.stdout.split("/")[2]), signal.SIGCONT)
    wait_for_end(result.stdout.strip())
    assert Recording(tmp_path / "trace").check(ended=False).calls()["f"] == 1


@pytest.mark.parametrize("how", ["exit", "kill"])
def test_a_program_that_ends_without_stop_leaves_a_whole_recording(record, python, tmp_path, how):
    result = python.run(
        record.script(
            """
            import os, signal, sys, krait
            krait.start(path=sys.argv[1])
            print(krait._state["session"], flush=True)
            def f(): pass
            for _ in range(1000): f()
            if sys.argv[2] == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            """
        ),
        tmp_path / "trace",
        how,
        env={**os.environ, **PACKAGE},
    )
    wait_for_end(result.stdout.strip())
    assert Recording(tmp_path / "trace").check(ended=False).calls()["f"] == 1000


def wait_for_end(session):
    """The collector is a process of its own and may still be writing, as long as its file is there."""
    deadline = time.monotonic() + 60
    while os.path.exists(session):
        assert time.monotonic() < deadline, "the collector does not end"
        time.sleep(0.01)
