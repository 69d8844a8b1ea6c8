# SPDX-License-Identifier: Apache-2.0
"""krait record --sample --native-stacks, of libraries that a test compiles."""

import contextlib
import shutil
import signal
import subprocess

import pytest

from running import wait_for

pytestmark = pytest.mark.skipif(not shutil.which("cc") or not shutil.which("c++"), reason="needs compilers")


@pytest.fixture
def compiled(tmp_path):
    def compile(name, source, *options, compiler="cc"):
        (tmp_path / name).with_suffix(".c").write_text(source)
        words = [compiler, "-shared", "-fPIC", "-O2", *options, "-o", tmp_path / name, (tmp_path / name).with_suffix(".c")]
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
