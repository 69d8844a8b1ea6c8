# SPDX-License-Identifier: Apache-2.0
"""krait dump --native: frames of C functions, merged with the Python ones."""

import json
import os
import platform
import re
import select
import signal
import subprocess
from pathlib import Path

import pytest

import traced
from pairs import PAIRS, never_was
from running import wait_for

# Python calls C, which calls Python: qsort() of the C library, through ctypes.
THROUGH_QSORT = """
import ctypes, os, threading, time
waits = threading.Event()
@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
def compare(a, b):
    print(os.getpid(), flush=True)
    waits.wait()
    return 0
def sort():
    libc = ctypes.CDLL(None)
    libc.qsort.argtypes = None
    libc.qsort((ctypes.c_int * 2)(2, 1), 2, 4, compare)
sort()
"""


@pytest.fixture
def native_dumps(krait):
    def read(*words):
        run = subprocess.run([krait, "dump", "--json", "--native", *map(str, words)], capture_output=True, text=True, timeout=120)
        assert run.returncode == 0 and not run.stderr, run.stderr
        return [json.loads(line) for line in run.stdout.splitlines()]

    return read


def python_names(thread):
    return [f["function"].rpartition(".")[2] for f in thread["frames"] if not f["native"]]


def place(frames, name):
    return next(i for i, f in enumerate(frames) if f["function"].rpartition(".")[2] == name and not f["native"])


def test_native_frames_stand_between_the_python_functions_that_they_are_between(programs, native_dumps, python):
    app = programs.start(python, THROUGH_QSORT)
    (dump,) = wait_for(lambda: [d for d in native_dumps(app.pid) if d["threads"][0]["system_call"] == "futex"], "the wait")
    (thread,) = dump["threads"]
    frames = thread["frames"]
    assert thread["native"] == "whole" and thread["proved"]
    assert python_names(thread)[-3:] == ["compare", "sort", "<module>"]
    between = frames[place(frames, "compare") + 1 : place(frames, "sort")]
    assert all(f["native"] and f["line"] is None for f in between)
    files = [f["file"].rpartition("/")[2] for f in between]
    assert re.search(r"ctypes.*libffi.*libc\.so.*libffi.*ctypes", " ".join(files)), files
    assert any("qsort" in f["function"] or "msort" in f["function"] for f in between)
    assert frames[0]["native"] and "libc.so" in frames[0]["file"]
    outer = frames[place(frames, "<module>") + 1 :]
    assert {"Py_BytesMain", "_start"} <= {f["function"] for f in outer} and all(f["offset"] >= 0 for f in outer)


def test_a_thread_that_runs_has_the_native_frames_of_one_moment(programs, native_dumps, python):
    seen = set()
    for loop in ("plain", "through_c"):
        app = programs.start(python, PAIRS, loop)
        threads = [t for d in native_dumps(app.pid, "--repeat", 60) for t in d["threads"]]
        app.end()
        assert len(threads) == 60 and all(t["proved"] for t in threads)
        assert not [t for t in threads if never_was(python_names(t))]
        threads = [t for t in threads if t["native"]]  # one that gets no CPU in time cannot be stopped
        assert len(threads) > 30 and {t["native"] for t in threads} == {"whole"}
        assert all(f["native"] for t in threads for f in t["frames"][place(t["frames"], "<module>") + 1 :])
        for frames in (t["frames"] for t in threads):
            called = [i for i, f in enumerate(frames) if f["function"] in ("fa", "fc") and not f["native"]]
            assert not called or frames[called[0] + 1]["native"], "map() calls it"
            seen |= {f["function"] for f in frames}
    assert {"fa", "fc", "plain", "through_c"} & seen


@pytest.mark.few_pythons
def test_a_thread_that_waits_is_not_stopped_and_a_stopped_program_stays_so(programs, native_dumps, python):
    app = programs.start(python, THROUGH_QSORT)
    wait_for(lambda: native_dumps(app.pid)[0]["threads"][0]["system_call"], "the wait")
    switches = re.findall(r"^\w*voluntary.*", open(f"/proc/{app.pid}/status").read(), re.M)
    native_dumps(app.pid, "--repeat", 20)
    assert re.findall(r"^\w*voluntary.*", open(f"/proc/{app.pid}/status").read(), re.M) == switches
    os.kill(app.pid, signal.SIGSTOP)
    wait_for(lambda: "T (stopped)" in open(f"/proc/{app.pid}/status").read(), "the stop")
    (thread,) = native_dumps(app.pid)[0]["threads"]
    assert thread["state"] == "stopped" and python_names(thread)[-3:] == ["compare", "sort", "<module>"]
    assert "T (stopped)" in open(f"/proc/{app.pid}/status").read()


# Waits as vfork(2) does, for a child that opens a FIFO: nothing stops it. ctypes calls by a frame pointer, which only a stop tells.
VFORKS = """
import ctypes, os, sys, time
CLONE, VFORK, SIGCHLD = {"x86_64": 56, "aarch64": 220}[os.uname().machine], 0x4000, 17
print(os.getpid(), flush=True)
child = ctypes.PyDLL(None).syscall(CLONE, VFORK | SIGCHLD, 0, 0, 0, 0)
if not child:
    os.close(os.open(sys.argv[1], os.O_RDONLY))
    os._exit(0)
os.waitpid(child, 0)
print("goes on", flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("words", [["dump", "--native", "--repeat", 1000000], ["record", "-q", "--sample", 100, "--native-stacks", "--pid"]], ids=["dump", "sample"])
def test_a_thread_that_stops_too_late_goes_on_while_krait_reads(programs, krait, any_python, tmp_path, words):
    os.mkfifo(tmp_path / "fifo")
    app = programs.start(any_python, VFORKS, tmp_path / "fifo")
    wait_for(lambda: Path(f"/proc/{app.pid}/stat").read_text().rpartition(")")[2].split()[0] == "D", "the wait of vfork")
    out = [] if words[0] == "dump" else ["-o", tmp_path / "trace"]
    with open(tmp_path / "stacks", "w") as stacks, subprocess.Popen([str(w) for w in [krait, *words, app.pid, *out]], stdout=stacks) as reader:
        try:
            # It is waited for once, not in each of these dumps.
            dumps = lambda: (tmp_path / "stacks").read_text().count("Process ")
            wait_for(lambda: dumps() > 30 or any((tmp_path / "trace").glob("*/thread*")), "stacks")
            (tmp_path / "fifo").write_text("")
            assert select.select([app.process.stdout], [], [], 30)[0], "it stands still"
            assert reader.poll() is None
        finally:
            reader.send_signal(signal.SIGINT)
    assert app.process.stdout.readline() == "goes on\n"


@pytest.mark.few_pythons
def test_threads_that_run_no_python_are_shown_too(programs, native_dumps, python):
    app = programs.start(
        python,
        """
        import ctypes, os, time
        libc, thread = ctypes.CDLL(None), ctypes.c_ulong()
        assert not libc.pthread_create(ctypes.byref(thread), None, libc.pause, None)
        print(os.getpid(), flush=True)
        time.sleep(60)
        """,
    )
    _, other = wait_for(lambda: [d["threads"] for d in native_dumps(app.pid) if len(d["threads"]) == 2 and d["threads"][1]["system_call"] == "pause"], "it")[0]
    # From glibc 2.41 on pause() makes the system call in two functions that are not exported: sysdeps/unix/sysv/linux/x86_64/syscall_cancel.S.
    innermost = [f["function"] for f in other["frames"][:4]]
    assert other["native"] == "whole" and all(f["native"] for f in other["frames"]) and any("pause" in name for name in innermost), innermost


def test_as_text_native_frames_stand_in_the_stack_with_their_file(programs, run, any_python):
    app = programs.start(any_python, THROUGH_QSORT)
    text = wait_for(lambda: (t := run("dump", "--native", app.pid).stdout) and "sleeps in futex" in t and t, "the wait")
    assert re.search(r"^    compare +/.*app1\.py:7\n(    \S+ +/\S+\n)+    sort +/.*app1\.py:12\n(    \S+ +/\S+\n)*    <module> +/.*app1\.py:13\n(    \S+ +/\S+\n)+\Z", text, re.M), text


def test_a_thread_that_another_tracer_has_keeps_its_python_stack(programs, run, any_python):
    app = programs.start(any_python, "import os\nprint(os.getpid(), flush=True)\nwhile True: pass\n")
    with traced.by_another(app.pid):
        text = run("dump", "--native", app.pid).stdout
    assert "its native frames could not be read\n    <module>" in text


@pytest.mark.few_pythons
def test_threads_without_python_that_come_and_go_do_no_harm(programs, native_dumps, python):
    app = programs.start(
        python,
        """
        import ctypes, itertools, os
        libc, thread = ctypes.CDLL(None), ctypes.c_ulong()
        print(os.getpid(), flush=True)
        for i in itertools.count():  # one in a hundred is there for long enough to be seen on a busy machine
            for life in (200, 200, 200 if i % 33 else 500000):
                libc.pthread_create(ctypes.byref(thread), None, libc.usleep, ctypes.c_void_p(life))
                libc.pthread_detach(thread)
            libc.usleep(300)
        """,
    )
    seen = native_dumps(app.pid, "--repeat", 150)
    assert len(seen) == 150 and all(d["threads"][0]["tid"] == app.pid for d in seen)
    assert any(len(d["threads"]) > 1 for d in seen)


# Greenlets begin at different depths of the stack. Where they are switched to again, others are above them, or nothing that still is.
GREENLETS = """
import os, threading
import greenlet
def below(n, call): return max([n], key=lambda n: below(n - 1, call)) if n else call() or 1
def computes():
    main.switch()
    while True: sorted(range(1000), key=lambda x: -x)
def waits():
    main.switch()
    print(os.getpid(), flush=True)
    threading.Event().wait()
main = greenlet.getcurrent()
both = [greenlet.greenlet(computes), greenlet.greenlet(waits)]
below(20, both[0].switch)
below(5, both[1].switch)
both[WHICH].switch()
"""


@pytest.mark.parametrize("which", [0, 1], ids=["computes", "waits"])
def test_a_greenlets_stack_ends_where_the_greenlet_begins(programs, native_dumps, any_python, venv, which):
    begin = "print(os.getpid(), flush=True)\n" if not which else ""
    app = programs.start(venv(any_python, "greenlet"), GREENLETS.replace("both[WHICH]", begin + f"both[{which}]"))
    if which:
        wait_for(lambda: native_dumps(app.pid)[0]["threads"][0]["system_call"] == "futex", "the wait")
    threads = [t for d in native_dumps(app.pid, "--repeat", 60) for t in d["threads"]]
    threads = [t for t in threads if t["native"]]  # one that gets no CPU in time cannot be stopped
    assert len(threads) > 30 and {t["native"] for t in threads} == {"whole"}
    for thread in threads:
        assert python_names(thread)[-1] == ("waits" if which else "computes") and not {"below", "<module>"} & set(python_names(thread))
        assert thread["frames"][-1]["file"].rpartition("/")[2].startswith("_greenlet.")


ALIASES = """
void __waits_inside(void (*callback)(void)) { callback(); callback(); }
#define ALSO(name) void name(void (*callback)(void)) __attribute__((alias("__waits_inside")));
ALSO(waits_here_too) ALSO(_waits) ALSO(waits_here) ALSO(waits_herf) ALSO(waits_here_versioned)
__asm__(".symver waits_here_versioned,waits@@V1");
"""


@pytest.mark.parametrize("strip", [[], ["-s"]], ids=["symtab", "dynsym"])
def test_of_several_names_a_function_is_called_by_the_plainest(programs, native_dumps, any_python, tmp_path, strip):
    (tmp_path / "aliases.c").write_text(ALIASES)
    (tmp_path / "versions").write_text("V1 {};\n")
    words = ["cc", *strip, "-O1", "-shared", "-fPIC", "-Wl,--version-script=versions", "-o", "aliases.so", "aliases.c"]
    subprocess.run(words, cwd=tmp_path, check=True)
    app = programs.start(
        any_python,
        f"""
        import ctypes, os, time
        @ctypes.CFUNCTYPE(None)
        def callback():
            print(os.getpid(), flush=True)
            time.sleep(60)
        ctypes.CDLL("{tmp_path}/aliases.so").waits_here(callback)
        """,
    )
    frames = native_dumps(app.pid)[0]["threads"][0]["frames"]
    assert [f["function"] for f in frames if f["file"].endswith("aliases.so")] == ["waits"]


@pytest.mark.few_pythons
@pytest.mark.skipif(platform.machine() != "x86_64", reason="krait knows what it looks like on x86-64")
def test_code_that_python_makes_for_perf_is_neither_shown_nor_cuts_a_stack(programs, native_dumps, python):
    if python.number < (3, 12):
        pytest.skip("it has no -X perf")
    app = programs.start(python, THROUGH_QSORT, env={**os.environ, "PYTHONPERFSUPPORT": "1"})
    (dump,) = wait_for(lambda: [d for d in native_dumps(app.pid) if d["threads"][0]["system_call"] == "futex"], "the wait")
    (thread,) = dump["threads"]
    assert thread["native"] == "whole" and python_names(thread)[-3:] == ["compare", "sort", "<module>"]
    assert thread["frames"][-1]["function"] == "_start" and not [f for f in thread["frames"] if f["file"] == "[no file]"]
