# SPDX-License-Identifier: Apache-2.0
"""What an event from C costs, and how many a second arrive: krait's ring within a process and between two, LTTng-UST, the rings
of perf and ftrace, a pipe, TCP on the loopback interface. An event is its time and a 32-bit value: 8 bytes where the way allows.

What cannot be had here (no LTTng, not root) is left out, with the reason in the results.
"""

import contextlib
import json
import os
import shutil
import subprocess
import tempfile

import lib
import lttng_session

EVENTS = 20_000_000
SLOWER = 40  # times fewer where each event is a system call


def answer(command, **options):
    run = subprocess.run([str(w) for w in command], capture_output=True, text=True, **options)
    if run.returncode:
        raise lib.Missing((run.stderr.strip().splitlines() or ["exit status %d" % run.returncode])[-1])
    return json.loads(run.stdout)


def with_krait(name, sources):
    """Compiles a program that uses krait's own code."""
    flags = ["-I", lib.ROOT / "src", "-D_GNU_SOURCE", "-DKRAIT_VERSION=\"bench\""]
    return lib.compile_c(name, [lib.HERE / (name + ".c"), *sources], flags, [lib.BUILD / "src" / "libkrait.a", "-lpthread", "-lm"])


def ring(events, beside):
    program = with_krait("ring_events", [lib.ROOT / "src" / "record" / name for name in ("writer.c", "writer_map.c")])
    folder = lib.OUT / "ring-trace"
    shutil.rmtree(folder, ignore_errors=True)
    data = answer([program, folder, events, beside])
    shutil.rmtree(folder, ignore_errors=True)
    return data


def stream(events, way, at_once):
    out = lib.OUT / "stream-events"
    data = answer([with_krait("stream_events", []), way, events, at_once, out])
    out.unlink()
    return data


def lttng(events):
    try:
        program = lib.compile_c(
            "lttng_events", [lib.HERE / "lttng_events.c"], ["-I", lib.HERE], ["-llttng-ust", "-ldl"]
        )
    except subprocess.CalledProcessError:
        raise lib.Missing("liblttng-ust-dev is not installed")
    folder = tempfile.mkdtemp(prefix="lttng-", dir=lib.OUT)
    channel = ["enable-channel", "-u", "bench", "--subbuf-size=2M", "--num-subbuf=8"]
    try:
        with lttng_session.session(folder, channel, ["enable-event", "-u", "krait_bench:call", "-c", "bench"]):
            data = answer([program, events])
        data["bytes"] = lib.folder_bytes(folder)
        data["lost"] = data.pop("written") - lib.info(folder)["events"]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return data


@contextlib.contextmanager
def tracefs():
    """A mounted tracefs: the one that is there, else one for the while."""
    if os.path.exists("/sys/kernel/tracing/trace_marker"):
        yield "/sys/kernel/tracing"
        return
    if os.geteuid():
        raise lib.Missing("tracefs is not mounted, and only root can mount it")
    at = tempfile.mkdtemp(prefix="tracing-", dir=lib.OUT)
    mounted = subprocess.run(["mount", "-t", "tracefs", "nodev", at], capture_output=True, text=True)
    if mounted.returncode:
        os.rmdir(at)
        raise lib.Missing(mounted.stderr.strip())
    try:
        yield at
    finally:
        subprocess.run(["umount", at], check=True)
        os.rmdir(at)


def marker(count):
    program = lib.compile_c("marker_events", [lib.HERE / "marker_events.c"])
    with tracefs() as at:
        instance = os.path.join(at, "instances", "krait-bench")
        try:
            os.mkdir(instance)
        except OSError as e:
            raise lib.Missing("%s: %s" % (instance, e.strerror))
        try:
            return answer([program, os.path.join(instance, "trace_marker"), count])
        finally:
            os.rmdir(instance)


def perf(count):
    with tracefs() as at:
        try:
            with open(os.path.join(at, "events", "raw_syscalls", "sys_enter", "id")) as file:
                tracepoint = file.read().strip()
        except OSError as e:
            raise lib.Missing("the tracepoint raw_syscalls:sys_enter: %s" % e.strerror)
        out = lib.OUT / "perf-events"
        data = answer([with_krait("perf_events", []), tracepoint, count, out])
        out.unlink()
        return data


PACKET = 32 * 1024 // 8  # events that krait hands over at once


def run(options):
    count = options.events or EVENTS // (5 if options.quick else 1)
    measures = {
        "krait, thread": lambda: ring(count, "thread"),
        "krait": lambda: ring(count, "process"),
        "pipe, packets": lambda: stream(count, "pipe", PACKET),
        "TCP, packets": lambda: stream(count, "tcp", PACKET),
        "LTTng-UST": lambda: lttng(count // 4),
        "pipe": lambda: stream(count // SLOWER, "pipe", 1),
        "TCP": lambda: stream(count // SLOWER, "tcp", 1),
        "perf": lambda: perf(count // SLOWER),
        "trace_marker": lambda: marker(count // SLOWER),
    }
    result = {}
    for name in list(measures):
        try:
            measures[name]()  # compiles, mounts, warms up
        except lib.Missing as e:
            lib.say("%s left out: %s" % (name, e))
            result[name] = {"missing": str(e)}
            del measures[name]
    lib.say("events: %s" % ", ".join(measures))
    runs = lib.interleaved(list(measures), options.reps, lambda name: measures[name]())
    for name, r in runs.items():
        result[name] = median_of(r)
    return result


def median_of(runs):
    """Of what the runs of one way say; what they all lost."""
    data = {key: lib.median([r[key] for r in runs]) for key in runs[0]}
    data["ns_noise"] = lib.spread([r["ns_event"] for r in runs])
    if "lost" in data:
        data.update(lost=sum(r["lost"] for r in runs), of=sum(r["events"] for r in runs))
    return data
