# SPDX-License-Identifier: Apache-2.0
"""The agent's life in a program: recordings one after the other, forks, interpreters that end, other profilers."""

import os
import shutil
import struct
import subprocess

import pytest

from conftest import BUILD
from recording import Recording

PACKAGE = {"PYTHONPATH": str(BUILD / "python")}


def run(python, record, text, *args):
    result = python.run(record.script(text), *args, env={**os.environ, **PACKAGE}, cwd=record.folder, timeout=60)
    assert result.returncode == 0, result.stderr
    return result


@pytest.mark.few_pythons
@pytest.mark.parametrize("options, env", [(["-X", "dev"], {}), ([], {"PYTHONMALLOC": "debug"}), ([], {"PYTHONMALLOC": "malloc"})])
def test_any_of_the_interpreters_allocators(record, python, options, env):
    """The debug ones end a program that frees by them what others have allocated."""
    run = record(python, *options, "-c", "def f(): pass\nf()", env={**os.environ, **env})
    assert (run.status, run.lost) == (0, 0), run.stderr
    assert run.check().calls()["f"] == 1


def test_what_one_recording_leaves_out_the_next_has(record, python, tmp_path):
    run(
        python,
        record,
        """
        import sys, krait
        def f(): g()
        def g(): pass
        for n, options in enumerate((dict(exclude=["f"]), dict(), dict(exclude=["g"], c_calls=False), dict())):
            with krait.recording(sys.argv[1] + str(n), **options):
                for _ in range(5): f()
        """,
        tmp_path / "trace",
    )
    seen = [Recording(f"{tmp_path}/trace{n}").check(ended=False).calls() for n in range(4)]
    assert [(c["f"], c["g"]) for c in seen] == [(0, 5), (5, 5), (5, 0), (5, 5)]


@pytest.mark.few_pythons
def test_stop_in_a_forked_child_does_not_wait_for_the_parent(record, python, tmp_path):
    result = run(
        python,
        record,
        """
        import os, sys, krait
        def f(): pass
        krait.start(sys.argv[1])
        pid = os.fork()
        f()
        if pid == 0:
            krait.stop()
            f()
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        f()
        print(krait.stop())
        """,
        tmp_path / "trace",
    )
    assert result.stdout.strip() == str(tmp_path / "trace")
    parent, child = Recording(tmp_path / "trace").check(ended=False).processes
    assert (parent.calls()["f"], child.calls()["f"]) == (2, 1)


@pytest.mark.pythons(least=(3, 12))
def test_a_start_that_fails_leaves_no_collector(record, python, tmp_path):
    run(
        python,
        record,
        """
        import os, sys, time, krait
        for n in range(6):
            sys.monitoring.use_tool_id(n, "other")
        killed = []
        kill, os.kill = os.kill, lambda pid, number: (killed.append(pid), kill(pid, number))
        try:
            krait.start(sys.argv[1])
        except RuntimeError as e:
            assert "tool ids" in str(e)
        else:
            raise SystemExit("started")
        assert killed and krait.stop() is None and not krait.is_recording()
        for _ in range(1000):
            if not os.path.exists("/proc/%d/fd/3" % killed[0]):
                break
            time.sleep(0.01)
        else:
            raise SystemExit("the collector is still there")
        """,
        tmp_path / "trace",
    )


@pytest.mark.pythons(least=(3, 12))
def test_other_tools_do_not_inherit_the_callbacks(record, python, tmp_path):
    run(
        python,
        record,
        """
        import sys, krait
        def f(): pass
        with krait.recording(sys.argv[1]):
            ours = [n for n in range(6) if sys.monitoring.get_tool(n) == "krait"]
        sys.monitoring.use_tool_id(ours[0], "other")
        assert sys.monitoring.register_callback(ours[0], sys.monitoring.events.PY_START, print) is None
        """,
        tmp_path / "trace",
    )


@pytest.mark.every_python
@pytest.mark.pythons(most=(3, 11))
def test_a_thread_that_waits_when_recording_ends_can_be_traced(record, python, tmp_path):
    """krait has a trace function in a thread whose exception C code has caught, and 3.8 and 3.9 count trace functions."""
    result = run(
        python,
        record,
        """
        import sys, threading, krait
        class Owner:
            def __getattr__(self, name): raise AttributeError
        def traced():
            return 1
        def trace(frame, what, arg):
            seen.append((frame.f_code.co_name, what))
            return trace
        def waits(): hasattr(owner, "no"); ready.release(); go.acquire(); sys.settrace(trace); traced()
        owner, ready, go, seen = Owner(), threading.Lock(), threading.Lock(), []
        ready.acquire()
        go.acquire()
        krait.start(sys.argv[1])
        thread = threading.Thread(target=waits)
        thread.start()
        ready.acquire()
        krait.stop()
        go.release()
        thread.join()
        print([what for name, what in seen if name == "traced"])
        """,
        tmp_path / "trace",
    )
    assert result.stdout == "['call', 'line', 'return']\n"


@pytest.mark.pythons(most=(3, 11))
def test_recording_goes_on_when_the_program_takes_its_profiler_off(record, python):
    run = record.text(
        python,
        """
        import cProfile, sys, threading
        def before(): pass
        def unseen(): pass
        def after(): pass
        def thread():
            kept = sys.getprofile()
            sys.setprofile(lambda *args: None)
            unseen()
            sys.setprofile(kept)  # what a program does that means to leave no trace
            for _ in range(3): after()
        before()
        profile = cProfile.Profile()
        profile.enable()
        unseen()
        profile.disable()
        for _ in range(3): after()
        t = threading.Thread(target=thread)
        t.start()
        t.join()
        """,
    )
    calls = run.calls()
    assert set(run.losses()) == {"displaced"}
    assert (calls["before"], calls["unseen"], calls["after"]) == (1, 0, 6)
    run.main.check_balanced()


@pytest.mark.few_pythons
def test_subinterpreters_one_after_the_other(record, python):
    """Their memory is used again: each is one of its own all the same."""
    run = record.text(
        python,
        """
        try:
            import _interpreters as interpreters
        except ImportError:
            import _xxsubinterpreters as interpreters
        execute = interpreters.exec if hasattr(interpreters, "exec") else interpreters.run_string
        for n in range(6):
            i = interpreters.create()
            assert execute(i, "def inside(): pass\\nfor _ in range(10): inside()") is None
            interpreters.destroy(i)
        """,
        options=["--lossless"],
    )
    run.check()
    assert run.calls()["inside"] == 60


@pytest.mark.parametrize("options", [(), ("--exclude", "nothing.at.all"), ("--no-c-calls",)], ids=["short", "selective", "no C calls"])
@pytest.mark.parametrize("how", ["set_events(3, 0)", "free_tool_id(3); monitoring.use_tool_id(3, 'mine')"], ids=["off", "freed"])
def test_recording_goes_on_when_the_program_takes_the_tool_away(record, python, how, options):
    if not python.has_monitoring:
        pytest.skip("there is no sys.monitoring before Python 3.12")
    run = record.text(
        python,
        f"""
        import sys
        def f():
            pass
        def main():
            monitoring = sys.monitoring
            monitoring.{how}
            for _ in range(1000):
                f()
            print(monitoring.get_tool(3))
        main()
        """,
        options=options,
    )
    assert run.stdout.strip() == ("krait" if "set_events" in how else "mine")
    assert run.losses() == {"displaced": 1}
    run.main.check_balanced()
    assert 998 <= run.calls()["f"] <= 1000  # the interpreter lets krait look after the call, not always before the next


@pytest.mark.parametrize("options", [(), ("--exclude", "nothing.at.all")], ids=["short", "selective"])
def test_another_tool_that_comes_and_goes_displaces_nothing(record, python, options):
    if not python.has_monitoring:
        pytest.skip("there is no sys.monitoring before Python 3.12")
    run = record.text(
        python,
        """
        import sys
        def f():
            pass
        monitoring = sys.monitoring
        monitoring.use_tool_id(1, "coverage")
        monitoring.set_events(1, monitoring.events.PY_START)
        f()
        monitoring.set_events(1, 0)
        monitoring.free_tool_id(1)
        f()
        """,
        options=options,
    )
    run.check()
    assert run.calls()["f"] == 2


def test_an_audit_event_with_the_name_of_the_end_is_not_the_end(record, python):
    run = record.text(
        python,
        """
        import sys
        def f():
            pass
        for _ in range(3):
            f()
            sys.audit("cpython._PySys_ClearAuditHooks")
        """,
    )
    run.check()
    assert run.calls()["f"] == 3
    assert [code.qualname for code in run.main.codes.values()].count("f") == 1


def test_functions_that_are_called_first_add_no_object_for_the_collector(record, python):
    run = record.text(
        python,
        """
        import gc
        class C:
            def method(self): pass
        def f(): pass
        def count():
            f()
            c.method()
            list(x for x in ())
        def g():
            return len(gc.get_objects())
        c = C()
        gc.disable()
        g()
        before = g()
        count()
        print(g() - before)
        """,
    )
    assert run.stdout.strip() == "0"
    run.check()


@pytest.mark.every_python
@pytest.mark.pythons(least=(3, 12))
def test_immortal_objects_keep_their_count(record, python):
    """PEP 683: nobody counts their references. krait reads numbers of all functions, such as their lines."""
    functions = "".join(f"def f{i}(a, b): pass\nf{i}(1, 2)\n" for i in range(60))
    count = "import sys\nprint(len({sys.getrefcount(i) for i in (None, True, False, ..., *range(-5, 257))}))\n"
    run = record.text(python, functions + count, options=["--log=", "--gc", "--imports", "--args", "f1(a)", "--call-sites"])
    assert run.stdout == python.run("-c", count).stdout == "1\n"


@pytest.mark.few_pythons
def test_functions_made_and_dropped_cost_no_memory(record, python):
    """The table stays as large as the live functions need: a slot is 32 bytes, eight are kept for one function."""
    run = record.text(
        python,
        """
        import resource
        def make(n):
            for i in range(n):
                space = {}
                exec("def f(): pass\\ndef unused(): pass\\nf()", space)
        make(3000)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        make(30000)
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
        """,
        options=["--no-c-calls", "--lossless"],
    )
    assert run.calls()["f"] == 33000
    assert int(run.stdout) < 8000  # KiB


LOADS = """
#include <dlfcn.h>
void *load(const char *path) { return dlopen(path, RTLD_NOW); }
"""
TAKES_THE_GIL = """
#include <unistd.h>
int PyGILState_Ensure(void);
void PyGILState_Release(int);
static __attribute__((constructor)) void begin(void)
{
    usleep(200000);
    PyGILState_Release(PyGILState_Ensure());
}
"""


@pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")
def test_functions_are_met_while_a_library_that_is_loaded_waits_for_the_gil(record, python, tmp_path):
    """The loader holds its lock meanwhile: who has the GIL must not wait for that."""
    for name, text in ("loads", LOADS), ("takes", TAKES_THE_GIL):
        (tmp_path / f"{name}.c").write_text(text)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / f"{name}.so", tmp_path / f"{name}.c"], check=True)
    run = record.text(
        python,
        f"""
        import ctypes, threading
        load = ctypes.CDLL({str(tmp_path / "loads.so")!r}).load
        sleep_with_the_gil = ctypes.PyDLL(None).usleep
        other = threading.Thread(target=load, args=({str(tmp_path / "takes.so").encode()!r},))
        other.start()
        sleep_with_the_gil(400000)
        exec("def met(): pass\\nmet()")
        other.join()
        """
    )
    assert run.calls()["met"] == 1


def test_the_agent_takes_little_of_the_static_tls_block():
    """What is left of it for libraries that are loaded later is little, and all share it (rtld in the manual of glibc)."""
    data = (BUILD / "python" / "krait" / "_agent.abi3.so").read_bytes()
    at, size, count = (struct.unpack_from(form, data, offset)[0] for form, offset in (("<Q", 32), ("<H", 54), ("<H", 56)))
    parts = [struct.unpack_from("<II6Q", data, at + n * size) for n in range(count)]
    (tls,) = (memory_bytes for kind, _, _, _, _, _, memory_bytes, _ in parts if kind == 7)  # PT_TLS
    assert tls <= 256


def test_children_that_are_forked_meanwhile_do_not_hold_a_start_up(record, python, tmp_path):
    """They have whatever the program has open while it starts the collector, and live until the recordings are over."""
    run(
        python,
        record,
        """
        import os, sys, threading, time, krait
        ends, begins = os.pipe()
        done, forked = threading.Event(), threading.Event()
        def child():
            os.close(begins)
            os.read(ends, 1)
            os._exit(0)
        def forks():
            for i in range(300):
                os.fork() or child()
                forked.set()
                if done.is_set(): break
        forker = threading.Thread(target=forks)
        forker.start()
        forked.wait()
        for i in range(5):
            krait.start(f"{sys.argv[1]}{i}", children=False)
            krait.stop()
        done.set()
        forker.join()
        os.close(begins)
        """,
        tmp_path / "trace",
    )
    assert all((tmp_path / f"trace{i}").is_dir() for i in range(5))
