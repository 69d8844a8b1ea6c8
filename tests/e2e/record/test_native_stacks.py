# SPDX-License-Identifier: Apache-2.0
"""krait record --sample --native-stacks, of libraries that a test compiles."""

import contextlib
import html
import json
import os
import shutil
import signal
import subprocess

import pytest

from running import wait_for

pytestmark = pytest.mark.skipif(not shutil.which("cc") or not shutil.which("c++"), reason="needs compilers")


@pytest.fixture
def compiled(tmp_path):
    def compile(name, source, *options, compiler="cc"):
        path = (tmp_path / name).with_suffix(".c" if compiler == "cc" else ".cpp")
        path.write_text(source)
        words = [compiler, "-shared", "-fPIC", "-O2", *options, "-o", tmp_path / name, path]
        subprocess.run([str(word) for word in words], check=True)
        return tmp_path / name

    return compile


@pytest.fixture
def sampling(krait, tmp_path):
    """A recording of a running program, which can be read meanwhile: while sampling(app) as folder."""

    @contextlib.contextmanager
    def record(app, *options):
        words = [krait, "record", "-q", "--sample", "--native-stacks", *options, "--pid", app.pid, "-o", tmp_path / "samples"]
        with subprocess.Popen([str(word) for word in words]) as recorder:
            wait_for(lambda: any(tmp_path.glob("samples/*/metadata")), "the recording")
            try:
                yield tmp_path / "samples"
            finally:
                recorder.send_signal(signal.SIGINT)

    return record


def folded(run, folder):
    return run("export", "--to", "folded", "-o", "-", folder).stdout.splitlines()


# Two libraries that differ in a function's name and in the room that it takes on the stack.
WAITS = """
#include <unistd.h>
void NAME(volatile int *goes_on, void (*wait)(unsigned))
{
    volatile char room[ROOM];
    do { room[0] = 1; wait(1000); } while (*goes_on);
}
"""
LOADS = """
import _ctypes, ctypes, os, sys, threading
wait = ctypes.cast(ctypes.CDLL(None).usleep, ctypes.c_void_p)
print(os.getpid(), flush=True)
def runs(library, name, goes_on):
    getattr(library, name)(ctypes.byref(goes_on), wait)
for path, name in zip(sys.argv[1::2], sys.argv[2::2]):
    library, goes_on = ctypes.CDLL(path), ctypes.c_int(1)
    address = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
    thread = threading.Thread(target=runs, args=(library, name, goes_on))
    thread.start()
    print(address, flush=True)
    sys.stdin.readline()
    goes_on.value = 0
    thread.join()
    _ctypes.dlclose(library._handle)
"""


def test_a_library_is_known_that_takes_the_addresses_of_another(programs, compiled, sampling, run, any_python):
    first = compiled("first.so", WAITS, "-DNAME=old_one", "-DROOM=24")
    other = compiled("other.so", WAITS, "-DNAME=new_one", "-DROOM=88")
    words = [word for names in [(first, "old_one"), (other, "new_one"), (first, "old_one")] for word in names]
    app = programs.start(any_python, LOADS, *words, stdin=subprocess.PIPE)
    addresses, threads = set(), set()

    def of_new_thread(folder):
        """Of the thread that has come last, below the library's function."""
        found = [(line.split(";")[1], line) for line in folded(run, folder) if f";{name};" in line]
        return [(thread, line) for thread, line in found if thread not in threads and ";threading.Thread.run;" in line and ";app1.runs;" in line]

    with sampling(app) as folder:
        for name in words[1::2]:
            addresses.add(app.process.stdout.readline())
            ((thread, _), *_) = wait_for(lambda: of_new_thread(folder), name)
            threads.add(thread)
            app.process.stdin.write("\n")
            app.process.stdin.flush()
    assert len(addresses) == 1, "the loader took other addresses"


# Functions that call each other: a C++ template, one in no other file, an operator, and what rustc writes for a method of a trait.
BASKET = """
extern "C" void next(void (*)(unsigned)) __asm__("_ZN50_$LT$app..Cart$u20$as$u20$core..iter..Iterator$GT$4next17h930b740aa94f1d3aE");
namespace shop {
struct Sleeper {
    __attribute__((noinline)) void operator()(void (*wait)(unsigned)) const { next(wait); wait(0); }
};
namespace { __attribute__((noinline)) void pack(void (*wait)(unsigned)) { Sleeper()(wait); wait(0); } }
template <typename T> struct Basket {
    template <typename U> __attribute__((noinline)) U total(U u, void (*wait)(unsigned)) const { pack(wait); wait(0); return u; }
};
}
extern "C" void next(void (*wait)(unsigned)) { for (;;) wait(60000000); }
extern "C" void work(void (*wait)(unsigned)) { shop::Basket<int>().total<double>(1, wait); wait(0); }
"""
NAMED = ["<app::Cart as core::iter::Iterator>::next", "shop::Sleeper::operator()", "shop::(anonymous namespace)::pack", "shop::Basket<int>::total<double>", "work"]
WORKS = """
import ctypes, os, sys
print(os.getpid(), flush=True)
ctypes.CDLL(sys.argv[1]).work(ctypes.cast(ctypes.CDLL(None).usleep, ctypes.c_void_p))
"""


def test_cpp_and_rust_functions_have_the_names_of_their_source(programs, compiled, sampling, run, any_python):
    app = programs.start(any_python, WORKS, compiled("basket.so", BASKET, "-O0", compiler="c++"))
    with sampling(app) as folder:
        wait_for(lambda: ";" + ";".join(reversed(NAMED)) + ";" in "\n".join(folded(run, folder)), "the functions")
    (dump,) = [json.loads(line) for line in run("dump", "--native", "--json", app.pid).stdout.splitlines()]
    assert [f["function"] for f in dump["threads"][0]["frames"] if f["file"].endswith("basket.so")] == NAMED
    app.end()
    found = {f["name"]: f for f in json.loads(run("report", "--json", "--limit", 0, folder).stdout)["functions"]}
    assert found["shop::Basket<int>::total<double>"]["total_ns"] > 0
    assert "shop::Basket<int>::total<double>" in html.unescape(run("flame", folder, "-o", "-").stdout)


LONG = "a_name_of_three_hundred_characters".ljust(300, "s")
CALLS_LONG = f"""
void {LONG}(void (*wait)(unsigned)) {{ wait(60000000); }}
void work(void (*wait)(unsigned)) {{ {LONG}(wait); wait(0); }}
"""


def test_a_long_name_does_not_move_the_files_of_others_away(programs, compiled, run, any_python):
    app = programs.start(any_python, WORKS, compiled("long.so", CALLS_LONG, "-fno-optimize-sibling-calls"))
    lines = wait_for(lambda: (text := run("dump", "--native", app.pid).stdout) and LONG in text and text.splitlines(), "the function")
    (long,) = [line for line in lines if LONG in line]
    (work,) = [line for line in lines if line.split()[:1] == ["work"]]
    assert long.split() == [LONG, work.split()[1]] and len(work) < 300


# A function with a frame pointer, which the kernel does not report.
COMPUTES = """
static volatile int n;
void spins(void) { for (;;) n++; }
void work(void (*wait)(unsigned)) { spins(); wait(0); }
"""


def test_a_thread_that_a_signal_has_stopped_has_native_frames_and_stays_stopped(programs, compiled, run, any_python):
    app = programs.start(any_python, WORKS, compiled("computes.so", COMPUTES, "-O0", "-fno-omit-frame-pointer"))
    dumped = lambda: json.loads(run("dump", "--native", "--json", app.pid).stdout)["threads"][0]
    wait_for(lambda: "spins" in [f["function"] for f in dumped()["frames"]], "the function")
    os.kill(app.pid, signal.SIGSTOP)
    thread = wait_for(lambda: (t := dumped())["state"] == "stopped" and t, "the stop")
    assert thread["native"] == "whole" and [f["function"] for f in thread["frames"][:2]] == ["spins", "work"]
    assert dumped() == thread and "T (stopped)" in open(f"/proc/{app.pid}/status").read()
    os.kill(app.pid, signal.SIGCONT)
    wait_for(lambda: dumped()["state"] == "running", "the end of the stop")


# A function whose frame is where a register points that functions do not keep.
LOSES = """
void loses(void (*wait)(unsigned))
{
    __asm__ volatile(".cfi_remember_state\\n.cfi_def_cfa 11, 16");
    wait(60000000);
    __asm__ volatile(".cfi_restore_state");
}
void work(void (*wait)(unsigned)) { loses(wait); wait(0); }
"""


def test_a_stack_is_cut_where_a_register_is_lost(programs, compiled, run, any_python):
    app = programs.start(any_python, WORKS, compiled("loses.so", LOSES, "-fno-optimize-sibling-calls"))
    dumped = lambda: json.loads(run("dump", "--native", "--json", app.pid).stdout)["threads"][0]
    thread = wait_for(lambda: (t := dumped())["system_call"] and t, "the wait")
    assert thread["native"] == "cut" and [f["function"] for f in thread["frames"][-2:]] == ["loses", "<module>"]


# Greenlets with large parts of the stack, through C, which are copied at each switch.
SWITCHES = """
import os
import greenlet
print(os.getpid(), flush=True)
def below(n, call): return max([n], key=lambda n: below(n - 1, call)) if n else call() or 1
def ping():
    while True: main.switch()
def pong():
    while True: let.switch()
main = greenlet.getcurrent()
let = greenlet.greenlet(lambda: below(100, ping))
below(70, pong)
"""


@pytest.mark.few_pythons
def test_no_frames_are_shown_above_a_greenlet_that_is_being_copied(programs, sampling, run, python, venv):
    if python.number >= (3, 12):
        pytest.skip("Python's frames cannot be read there")
    app = programs.start(venv(python, "greenlet"), SWITCHES)
    copied = lambda folder: [line.rpartition(" ")[0].split(";") for line in folded(run, folder) if "slp_restore_state" in line]
    with sampling(app) as folder:
        stacks = wait_for(lambda: copied(folder), "a copy")
    for stack in stacks:
        above = stack[next(i for i, name in enumerate(stack) if "slp_restore_state" in name) - 1]
        assert above in ("app1.ping", "app1.pong"), stack


# It runs until its end, so that krait has it stopped at most moments, and also when it ends.
ENDS = """
import os, time
end = time.monotonic() + 0.1
while time.monotonic() < end:
    sum(range(100))
os._exit(7)
"""


def test_a_command_that_ends_while_it_is_stopped_has_its_exit_status(run, info, any_python, tmp_path, rounds):
    """krait is its parent and its tracer."""
    for i in range(rounds(4, 40)):
        folder = tmp_path / f"ends{i}"
        run("record", "-q", "--sample", 5000, "--native-stacks", "-o", folder, "--", any_python.exe, "-c", ENDS, code=7)
        (process,) = info(folder)["process_list"]
        assert (process["end"], process["status"]) == ("exit", 7)
