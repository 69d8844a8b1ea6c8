# SPDX-License-Identifier: Apache-2.0
"""The traces that readers are measured with: made by programs, kept in build/bench, made anew when those change.

The kernel-like one repeats a recorded trace, which is not part of krait; KRAIT_CTF_CORPUS names the folder that has it.
"""

import mmap
import os
import pathlib
import shutil
import subprocess

import lib

EVENTS = 20_000_000
QUICK_EVENTS = 5_000_000
FUNCTIONS, THREADS = 3000, 4  # of krait's recording
CORPUS = pathlib.Path(os.environ.get("KRAIT_CTF_CORPUS", lib.ROOT.parent / "shared" / "ctf-corpus"))
KERNEL = CORPUS / "lttng-ref-traces" / "basic-kernel-analysis" / "kernel"


def generator(name):
    return lib.BUILD / "tests" / name


def make_user_space(folder, events):
    subprocess.run([generator("gen_ust"), folder, str(events)], check=True)


def make_kernel(folder, events):
    subprocess.run([generator("gen_kernel"), KERNEL, folder / "trace", str(events)], check=True)


def make_recording(folder, events):
    subprocess.run([generator("gen_trace"), folder, str(events), str(FUNCTIONS), str(THREADS)], check=True)
    next(p for p in folder.iterdir() if p.is_dir()).rename(folder / "trace")


# what is made -> (its program, how, which files decide what comes out)
MAKERS = {
    "user space": ("gen_ust", make_user_space, ["bench/gen_ust.c", "bench/lttng_packet.h", "bench/ust_events.c", "bench/ust_metadata.c"]),
    "kernel": ("gen_kernel", make_kernel, ["bench/gen_kernel.c", "bench/lttng_packet.h"]),
    "krait": ("gen_trace", make_recording, ["bench/gen_trace.c", "src/event/events.def", "src/ctf/write/tsdl_write.c"]),
}

# name -> (what has to be made, its folder in that, the other trace that has the same bytes)
TRACES = {
    "LTTng user space": ("user space", "ctf1", None),
    "LTTng user space, CTF 2": ("user space", "ctf2", "LTTng user space"),
    "LTTng kernel, repeated": ("kernel", "trace", None),
    "krait's recording": ("krait", "trace", None),
}


def folder_of(what, events):
    """The folder with a trace of that many events, made when it is not there."""
    program, make, sources = MAKERS[what]
    folder = lib.OUT / "traces" / ("%s-%d" % (program, events))
    mark = folder / "made"
    newest = max((lib.ROOT / source).stat().st_mtime for source in sources)
    if not mark.exists() or mark.stat().st_mtime < newest:
        lib.say("making %s" % folder)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        make(folder, events)
        mark.touch()
    return folder


def trace(name, events):
    what, inner, _ = TRACES[name]
    return folder_of(what, events) / inner


def missing():
    """{trace: why it cannot be made here}"""
    return {} if KERNEL.exists() else {"LTTng kernel, repeated": "%s is not there" % KERNEL}


def stream_files(path):
    return [f for f in sorted(path.iterdir()) if f.is_file() and f.name != "metadata"]


def stream_bytes(path):
    return sum(f.stat().st_size for f in stream_files(path))


def cool(path):
    """The page cache forgets the trace, and nothing else."""
    for file in stream_files(path):
        fd = os.open(file, os.O_RDONLY)
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)


def warm(path):
    """The page cache has the trace as a first reading by krait leaves it, in the largest pieces that the file system has:
    all that is mapped afterwards gains by it."""
    cool(path)
    for file in stream_files(path):
        with open(file, "rb") as f, mmap.mmap(f.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ) as bytes_:
            bytes_.madvise(mmap.MADV_HUGEPAGE)
            bytes_[:: mmap.PAGESIZE]
