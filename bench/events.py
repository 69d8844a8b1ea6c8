# SPDX-License-Identifier: Apache-2.0
"""What one event costs from C: through krait's ring, as an LTTng-UST tracepoint, as a write to trace_marker.

What cannot be had here (no LTTng, not root) is left out, with the reason in the results.
"""

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import time

import lib
import lttng_session

EVENTS = 20_000_000
SYSTEM_CALLS = 500_000


def answer(command, **options):
    run = subprocess.run([str(w) for w in command], capture_output=True, text=True, **options)
    if run.returncode:
        raise lib.Missing((run.stderr.strip().splitlines() or ["exit status %d" % run.returncode])[-1])
    return json.loads(run.stdout)


def ring(events):
    sources = [lib.HERE / "ring_events.c", lib.ROOT / "src" / "record" / "writer.c"]
    flags = ["-I", lib.ROOT / "src", "-D_GNU_SOURCE", "-DKRAIT_VERSION=\"bench\""]
    program = lib.compile_c("ring_events", sources, flags, [lib.BUILD / "src" / "libkrait.a", "-lpthread", "-lm"])
    folder = lib.OUT / "ring-trace"
    shutil.rmtree(folder, ignore_errors=True)
    data = answer([program, folder, events // 2])
    data["bytes_event"] = data["bytes"] / (data["events"] - data["lost"])
    shutil.rmtree(folder, ignore_errors=True)
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


def run(options):
    share = 5 if options.quick else 1
    measures = {
        "krait": lambda: ring(EVENTS // share),
        "LTTng-UST": lambda: lttng(EVENTS // share // 4),
        "trace_marker": lambda: marker(SYSTEM_CALLS // share),
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
        result[name] = dict(r[-1], ns_event=lib.median([x["ns_event"] for x in r]))
    return result
