# SPDX-License-Identifier: Apache-2.0
"""import krait: recording from inside a program."""

import os

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
                print(str(e).splitlines()[0])
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
    assert "/proc/nowhere" in first
    assert "max-overhead" in second
    assert "already" in third


@pytest.mark.parametrize("how", ["exit", "kill"])
def test_a_program_that_ends_without_stop_leaves_a_whole_recording(record, python, tmp_path, how):
    python.run(
        record.script(
            """
            import os, signal, sys, krait
            krait.start(path=sys.argv[1])
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
    wait_for_end(tmp_path / "trace")
    assert Recording(tmp_path / "trace").check(ended=False).calls()["f"] == 1000


def wait_for_end(folder):
    """The collector is a process of its own and may still be writing: until nothing has changed for a while."""
    import time

    deadline, last = time.monotonic() + 30, None
    while time.monotonic() < deadline:
        now = sorted((str(p), p.stat().st_size) for p in folder.rglob("*") if p.is_file())
        if now and now == last:
            return
        last = now
        time.sleep(0.5)
