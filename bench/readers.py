# SPDX-License-Identifier: Apache-2.0
"""The programs that read traces, krait's and others': what there is here, and one measured run of one.

A reader that is not here is left out, with the reason. yactfr is looked for in the folder that KRAIT_YACTFR names, else
in build/bench/yactfr; bench/README.md says how it gets there.
"""

import dataclasses
import json
import os
import pathlib
import subprocess
import time

import lib

# What is asked of a reader. The sum of the mapped bytes is the floor of all of them.
MODES = {
    "limit": "sum of the mapped bytes",
    "stream": "every field, in stream order",
    "time": "every field, in order of time",
    "count": "count by class",
    "text": "text",
}


@dataclasses.dataclass(frozen=True)
class Reader:
    name: str
    mode: str
    command: tuple  # the trace is its last argument, which is not in here
    threads: int = 1
    slow: bool = False  # gets fewer runs
    cold: bool = False  # is run with a cold cache too
    ctf2: bool = True

    def __str__(self):
        return "%s, %s, %d" % (self.name, self.mode, self.threads)


def limit_readers():
    program = lib.compile_c("sum_bytes", [lib.HERE / "sum_bytes.c"], ["-O3"], ["-lpthread"])
    return [Reader("sum of the bytes", "limit", (program, str(n)), threads=n, cold=True) for n in (1, 2)]


def krait_readers():
    program = lib.BUILD / "tests" / "read_trace"
    own = [("stream", 1), ("stream", 2), ("time", 1), ("time", 2), ("count", 1), ("count", 2)]
    readers = [Reader("krait", mode, (program, mode, str(n)), threads=n, cold=mode == "stream") for mode, n in own]
    readers.append(Reader("krait, event by event", "stream", (program, "single", "1")))
    readers.append(Reader("krait info", "count", (lib.KRAIT, "info", "--json")))
    readers.append(Reader("krait cat", "text", (lib.KRAIT, "cat")))
    return readers


def krait_checks():
    """What is not timed: the same reading with sums that can be compared with other readers'."""
    program = lib.BUILD / "tests" / "read_trace"
    return [
        Reader("krait's check", mode, (program, inner, str(n)), threads=n)
        for mode, inner in (("stream", "check"), ("time", "check-time"))
        for n in (1, 2)
    ]


def yactfr_readers():
    prefix = pathlib.Path(os.environ.get("KRAIT_YACTFR", lib.OUT / "yactfr"))
    if not (prefix / "include" / "yactfr").exists():
        raise lib.Missing("yactfr is not in %s" % prefix)
    flags = ["-std=c++17", "-I", prefix / "include"]
    libs = ["-L%s" % (prefix / "lib"), "-Wl,-rpath,%s" % (prefix / "lib"), "-lyactfr", "-lpthread"]
    try:
        program = lib.compile_c("read_yactfr", [lib.HERE / "read_yactfr.cpp"], flags, libs, os.environ.get("CXX", "c++"))
    except (OSError, subprocess.CalledProcessError):
        raise lib.Missing("read_yactfr.cpp does not compile here")
    return [Reader("yactfr", "stream", (program, str(n)), threads=n, slow=True, cold=n == 1) for n in (1, 2)]


def babeltrace_version(prefix):
    try:
        done = subprocess.run([*prefix, "babeltrace2", "--version"], capture_output=True, text=True)
    except OSError:
        raise lib.Missing("babeltrace2 is not installed")
    if done.returncode:
        raise lib.Missing(lib.last_line_of(done.stderr))
    return done.stdout.split()[1]


def babeltrace_readers(prefix):
    """Those of one babeltrace2; prefix is what stands before its command. The program is built with this machine's
    headers; 2.1 has the same soname."""
    version = babeltrace_version(prefix)
    ctf2 = tuple(int(n) for n in version.split(".")[:2]) >= (2, 1)
    name = "babeltrace2 " + version
    more = {"slow": True, "ctf2": ctf2}
    try:
        program = lib.compile_c("read_babeltrace", [lib.HERE / "read_babeltrace.c"], libs=["-lbabeltrace2"])
    except subprocess.CalledProcessError:
        raise lib.Missing("libbabeltrace2-dev is not installed")
    readers = [
        Reader(name, mode, (*prefix, program, mode), cold=mode == "stream", **more) for mode in ("stream", "time", "count")
    ]
    return readers + [Reader(name, "text", (*prefix, "babeltrace2"), **more)]


def sid_babeltrace_readers():
    prefixes = [tuple(p.prefix) for p in lib.pythons() if p.prefix]
    if not prefixes:
        raise lib.Missing("there is no folder with Debian sid (tools/pythons make)")
    return babeltrace_readers(prefixes[0])


def found():
    """([Reader], {name: why it is left out})"""
    readers, missing = [], {}
    kinds = [
        ("sum of the bytes", limit_readers),
        ("krait", krait_readers),
        ("yactfr", yactfr_readers),
        ("babeltrace2 2.0", lambda: babeltrace_readers(())),
        ("babeltrace2 2.1", sid_babeltrace_readers),
    ]
    for name, make in kinds:
        try:
            readers += make()
        except lib.Missing as why:
            lib.say("%s left out: %s" % (name, why))
            missing[name] = str(why)
    return readers, missing


def run(reader, trace):
    """One run: {seconds, cpu: of the whole process; says: what it printed of the trace}."""
    log = lib.OUT / "reader.log"
    out = lib.OUT / "reader.json"
    with open(log, "w") as stderr, open(os.devnull if reader.mode == "text" else out, "w") as stdout:
        start = time.monotonic()
        child = subprocess.Popen([str(w) for w in [*reader.command, trace]], stdout=stdout, stderr=stderr)
        _, status, usage = os.wait4(child.pid, 0)
        took = time.monotonic() - start
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode or log.stat().st_size:
        raise RuntimeError("%s on %s: exit status %d, %s" % (reader, trace, child.returncode, lib.last_line(log)))
    says = json.loads(out.read_text()) if reader.mode != "text" else {}
    return {"seconds": took, "cpu": usage.ru_utime + usage.ru_stime, "says": says}
