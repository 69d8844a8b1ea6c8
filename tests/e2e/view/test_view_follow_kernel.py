# SPDX-License-Identifier: Apache-2.0
"""What a page shows of the kernel while it is recorded: as much as krait view shows of a finished recording with the same events."""

import os
import random
import shutil
import struct

import pytest

import kernel_made
from followed import wait_until
from growing import Growing
from kernel_made import begins, dump, ends, event, fork, switch, wake
from kernel_made import write as write_kernel
from served import Server

CALLS = "process 5 python3\ncode 1 python app main app.py 1\n" + "".join(
    f"thread {5 + i} {name}\n{1 + i}us call 1\n700us gilwait 6\n5000us giltake\n8000us call 1\n30000us return\n70000us return\n" for i, name in enumerate(["main", "worker"])
)
BEGIN = kernel_made.EPOCH // 1000
LENGTH, CUTS = 60_000, [9_000, 9_700, 40_000, 70_000]  # us
NAMES = ("read", "write", "futex", "epoll_wait", "nanosleep")
DEVICES = ("nvme", "eth0", "timer")


def made_up(seed, length, every, burst):
    """Events of two CPUs, mostly plausible: switches, wake-ups, system calls, interrupts in each other, frequencies, new threads."""
    dice, us, running, threads = random.Random(seed), 10, {0: 0, 1: 0}, [5, 6, 7, 8]
    events = [dump(1, t, 0, 5) for t in threads]
    # Threads that ran before, and CPUs whose first events are not among the first ones, are known later only.
    events += [switch(2 + cpu, 0, 5 + cpu, cpu=cpu) for cpu in (0, 1)]
    running = {0: 5, 1: 6}
    while us < length:
        us += dice.choice([0, 1, 1, 2, 3, every])
        cpu = dice.randrange(2)
        kind = dice.choice(["burst"] + ["switch"] * 5 + ["wake"] * 3 + ["begin", "end"] * 6 + ["irq"] * 2 + ["soft", "frequency", "fork", "wrong"])
        if kind == "burst":  # so many that there is a pyramid of them
            name = dice.choice(NAMES)
            events += [made for i in range(burst) for made in (begins(us + i // 10, name, cpu), ends(us + i // 10, name, 0, cpu))]
            us += burst // 10
        elif kind == "switch":
            after = dice.choice([0, *threads])
            if after in running.values() and after:
                continue
            events.append(switch(us, running[cpu], after, dice.choice([0, 1, 1, 2, 0x10] if running[cpu] > 8 else [0, 1, 1, 2]), cpu=cpu))
            running[cpu] = after
        elif kind == "wake":
            events.append(wake(us, dice.choice(threads), cpu))
        elif kind == "begin":
            events.append(begins(us, dice.choice(NAMES), cpu))
        elif kind == "end":
            events.append(ends(us, dice.choice(NAMES), dice.choice([0, 1, -11]), cpu))
        elif kind == "irq":
            own = [event(us, "irq_handler_entry", cpu=cpu, irq=1, name=dice.choice(DEVICES))]
            own += [event(us + 1, "irq_handler_entry", cpu=cpu, irq=2, name="inner"), event(us + 2, "irq_handler_exit", cpu=cpu, irq=2, ret=1)]
            events += [*own, event(us + 3, "irq_handler_exit", cpu=cpu, irq=1, ret=1)][: dice.choice([1, 3, 4, 4, 4])]
            us += 3
        elif kind == "soft":
            events += [event(us, "irq_softirq_entry", cpu=cpu, vec=dice.randrange(9)), event(us + 2, "irq_softirq_exit", cpu=cpu, vec=0)]
            us += 2
        elif kind == "frequency":
            events.append(event(us, "power_cpu_frequency", cpu=cpu, state=dice.choice([800_000, 2_000_000]), cpu_id=dice.randrange(2)))
        elif kind == "fork" and len(threads) < 20:
            threads.append(100 + len(threads))
            events += [fork(us, running[cpu] or 5, threads[-1], cpu), wake(us, threads[-1], cpu, name="sched_wakeup_new")]
        elif kind == "wrong":  # as where events were lost
            events.append(switch(us, dice.choice(threads), running[cpu], 1, cpu=cpu))
    return events


def packets(data):
    """(begin of the bytes, their end, end of the time in us) of each packet."""
    at = 0
    while at < len(data):
        _, _, end, _, size, *_ = kernel_made.PACKET.unpack_from(data, at)
        yield at, at + size // 8, end // 1000 - BEGIN
        at += size // 8


class GrowingKernel(Growing):
    """A recording whose kernel's streams have what happened up to a time (us)."""

    def __init__(self, whole, folder, until):
        super().__init__(whole, folder, 1)
        self.names = sorted(path.name for path in (whole / "kernel").glob("channel*"))
        self.shown = dict.fromkeys(self.names, 0)  # bytes
        for name in self.names:
            os.truncate(folder / "kernel" / name, 0)
        self.show(until)

    def show(self, until):
        """Up to a later time. Returns how many bytes that adds."""
        added = 0
        for name in self.names:
            data = (self.whole / "kernel" / name).read_bytes()
            with open(self.folder / "kernel" / name, "ab") as file:
                ends = [end for _, end, us in packets(data) if us <= until]
                added += file.write(data[self.shown[name] : max(ends, default=0)])
                self.shown[name] = max(ends, default=0)
        return added

    def drop_kernel(self, until):
        """Writes the streams anew without the packets up to a time, as krait record --last does."""
        for name in self.names:
            data = (self.folder / "kernel" / name).read_bytes()
            ends = [end for _, end, us in packets(data) if us <= until]
            beside = self.folder / ".new"
            beside.write_bytes(data[max(ends, default=0) :])
            beside.rename(self.folder / "kernel" / name)


def decoded(tile, texts):
    """A tile with the texts of its names: other servers give these other ids (src/view/wire.h)."""
    head, at = tile[:40], 40
    rows, slices, marks = struct.unpack_from("<3I", head, 16)
    row = []
    for _ in range(rows):
        depth, *bins = struct.unpack_from("<I1536B", tile, at)
        row.append((depth, bins[1::3], bins[2::3]))  # which of several longest gives a bin its hue depends on the ids
        at += 4 + 3 * 512
    found = []
    for _ in range(slices):
        begin, end, name, depth, hue, flags, value = struct.unpack_from("<qqIHBBq", tile, at)
        found.append((begin, end, texts[name], depth, hue, flags, value))
        at += 32
    assert not marks
    return head, row, found, tile[at:]


def shown(server, trace):
    """What the lanes of the kernel show: parts of the picture from the finest on, and the sums of their states and calls."""
    texts = [text for page in range(trace["texts"] // 1000 + 1) for text in server.api("texts", page=page)]
    tracks = {t["id"]: (t["of"], t["number"], t["name"]) for t in trace["tracks"] if t["kind"] in ("states", "slices", "counter")}
    assert {name for _, _, name in tracks.values()} >= {"state", "threads", "system calls", "interrupts", "frequency"}
    places = [(6, 3), (6, 100), (8, 5), (10, 0), (10, 7), (12, 1), (14, 0), (16, 0), (18, 0), (22, 0)]
    found = {}
    for level, tile in places:
        body = server.ask(f"api/tiles?tracks={min(tracks)}-{max(tracks)}&level={level}&tile={tile}")[2]
        while body:
            track, size = struct.unpack_from("<II", body)
            if track in tracks:
                found[(*tracks[track], level, tile)] = decoded(body[8 : 8 + size], texts)
            body = body[8 + size :]
    for name in ("states", "syscalls", "counters"):
        answer = server.api(name, until=CUTS[0] * 1000)  # the last values of counters last up to now
        for row in answer["rows"]:
            first = {"syscalls": lambda row: (texts[row[0]],), "states": lambda row: (tracks[row[0]], texts[row[1]]), "counters": lambda row: (tracks[row[0]],)}[name](row)
            found[(name, *first)] = row[len(first) :]
    return found


def panels(server, trace, until):
    """What panels say of the states of threads up to a time (us): the time of functions, of calls and the causes of their waits."""
    tracks = [t for t in trace["tracks"] if t["kind"] == "calls"]
    found = {(name, at): server.api(name, until=at * 1000) for name in ("functions", "states") for at in (8_000, until)}
    for at in (8_000, until):
        rows, texts = found[("states", at)]["rows"], server.api("texts", page=0)
        found[("states", at)] = sorted((trace["tracks"][row[0]]["of"], trace["tracks"][row[0]]["number"], texts[row[1]], *row[2:]) for row in rows)
    for track in tracks:
        call = server.api("call", track=track["id"], at=9_000_000, depth=1)
        if int(call["end"]) <= until * 1000:
            found[("call", track["number"])] = (call["wall"], call["waits"])
    return found


def whole_of(krait, folder, beside, show=shown):
    """The same of a finished recording with these files."""
    shutil.rmtree(beside, ignore_errors=True)
    server = Server(krait, shutil.copytree(folder, beside))
    found = show(server, server.built())
    assert server.end()[0] == 0
    return found


def next_update(server, before):
    return wait_until(lambda t: t["index"]["done"] and t["generation"] > before["generation"], lambda: server.api("trace"))


@pytest.fixture
def growing(synth, tmp_path):
    made = []

    def make(seed, every=40, burst=100, **options):
        folder = synth(CALLS)
        events = [(BEGIN + us, *rest) for us, *rest in made_up(seed, LENGTH, every, burst)]
        write_kernel(folder / "kernel", events, cuts=[BEGIN + us for us in range(100, LENGTH, 300)] + [BEGIN + us for us in CUTS], **options)
        made.append(GrowingKernel(folder, tmp_path / "growing", CUTS[0]))
        return made[-1]

    yield make
    for each in made:
        each.end()


@pytest.mark.parametrize("burst", [20, pytest.param(12_000, marks=pytest.mark.long)])  # with the latter, some tracks have a pyramid
def test_an_update_reads_the_kernels_new_events_and_shows_what_a_whole_recording_does(krait, growing, tmp_path, burst):
    """Each of them twice: to find the tracks, and for their contents. The index is asked how many bytes it has read."""
    recording = growing(1, burst=burst)
    server = Server(krait, recording.folder)
    trace = wait_until(lambda t: t["growing"] and t["index"]["done"], lambda: server.api("trace"))
    for until in CUTS[1:]:
        trace = next_update(server, trace)
        idle, added, read = trace["index"]["read"], recording.show(until), 0
        while read < 2 * added:  # an update that has begun before has none of them
            trace = next_update(server, trace)
            read += trace["index"]["read"] - idle
        assert added > 2000 and read <= 2 * added + 2 * idle
        assert shown(server, trace) == whole_of(krait, recording.folder, tmp_path / "whole")
    recording.end()
    last = wait_until(lambda t: not t["growing"] and t["index"]["done"], lambda: server.api("trace"))
    assert shown(server, last) == whole_of(krait, recording.whole, tmp_path / "whole")
    assert server.end()[0] == 0


@pytest.mark.parametrize("how", ["drop", "late", "losses"])
def test_an_update_begins_anew_if_what_was_read_is_not_true_any_more(krait, growing, tmp_path, how):
    """Packets are dropped by krait record --last; come though later ones were there; or tell that earlier events were lost."""
    recording = growing(2, burst=5, **({"losses": [(0, BEGIN + us, None) for us in (350, 9_350, 20_050)]} if how == "losses" else {}))
    if how == "late":
        late = recording.folder / "kernel" / recording.names[0]
        missing = late.read_bytes()
        os.truncate(late, 0)
    server = Server(krait, recording.folder)
    wait_until(lambda t: t["growing"] and t["index"]["done"], lambda: server.api("trace"))
    for until in CUTS[1:]:
        if how == "late":
            late.write_bytes(missing)
        recording.show(until)
        if how == "drop":
            recording.drop_kernel(min(until, LENGTH) - 8_000)
        trace = next_update(server, next_update(server, server.api("trace")))  # the first may have begun before
        assert shown(server, trace) == whole_of(krait, recording.folder, tmp_path / "whole")
        missing = b""
        how = how.replace("late", "came")
    assert server.end()[0] == 0


def read_for_states(server):
    """How many bytes of kernel events a panel reads that is the first one of an update: the second one reads calls alone."""
    generations = read = []
    while len(set(generations)) != 1:  # an update came meanwhile
        asked = [server.api("trace"), server.api("functions") and server.api("trace"), server.api("functions") and server.api("trace")]
        generations, read = [t["generation"] for t in asked], [t["index"]["read"] for t in asked]
    return (read[1] - read[0]) - (read[2] - read[1])


def test_panels_read_the_kernels_new_events_and_say_what_they_say_of_a_whole_recording(krait, growing, tmp_path):
    recording = growing(3, burst=20)
    server = Server(krait, recording.folder)
    trace = wait_until(lambda t: t["growing"] and t["index"]["done"], lambda: server.api("trace"))
    panels(server, trace, CUTS[0])
    for until in CUTS[1:]:
        added, end = recording.show(until), min(until, LENGTH)
        trace = next_update(server, next_update(server, trace))  # the first may have begun before
        assert read_for_states(server) <= added + 2 * trace["index"]["read"]  # an update without new events reads the last packets too
        found = panels(server, trace, end)
        assert found == whole_of(krait, recording.folder, tmp_path / "whole", lambda s, t: panels(s, t, end))  # noqa: B023
    assert len(found) == 6
    recording.end()
    last = wait_until(lambda t: not t["growing"] and t["index"]["done"], lambda: server.api("trace"))
    assert panels(server, last, LENGTH) == found
    assert server.end()[0] == 0


def test_who_had_the_cpu_of_a_thread_that_is_ready_is_as_unknown_as_in_a_whole_recording(krait, synth, tmp_path):
    """It was woken up, and nobody knows for which CPU."""
    folder = synth(CALLS)
    events = [*[dump(1, t, 0, 5) for t in (5, 6, 7)], switch(2, 0, 5), switch(3, 0, 6, cpu=1), switch(10_000, 6, 0, 1, cpu=1), wake(15_000, 6)]
    for us in range(15_100, CUTS[2], 200):
        events += [switch(us, 5, 7), switch(us + 100, 7, 5)]
    write_kernel(folder / "kernel", [(BEGIN + us, *rest) for us, *rest in events], cuts=[BEGIN + us for us in range(100, CUTS[2], 300)])
    recording = GrowingKernel(folder, tmp_path / "growing", CUTS[2])
    server = Server(krait, recording.folder)
    waits = lambda server, trace: server.api("call", track=[t["id"] for t in trace["tracks"] if t["kind"] == "calls"][1], at=9_000_000, depth=0)["waits"]
    found = waits(server, wait_until(lambda t: t["growing"] and t["index"]["done"], lambda: server.api("trace")))
    assert [wait["by"] for wait in found if wait["state"] == "ready"] == [""] and found == whole_of(krait, recording.folder, tmp_path / "whole", waits)
    recording.end()
    assert server.end()[0] == 0


DECLARED = """
[interval.waits]
start = { event = "syscall_entry_futex" }
stop = { event = "syscall_exit_futex" }
key = "$thread"
pairing = "latest"

[[state.cpu]]
event = "sched_switch"
key = "$cpu"
state = "{next_tid}"

[signal.kHz]
event = "power_cpu_frequency"
key = "cpu_id"
value = "state"
"""


def lanes(server, trace, until):
    """What declared lanes show up to a time (us), and their panel."""
    tracks = [t for t in trace["tracks"] if t["of"] == "lane"]
    texts, found = server.api("texts", page=0), {}
    for track in tracks:
        for level, tile in [(6, 100), (10, 2), (14, 0), (16, 0)]:
            if (tile + 1) * 512 << level <= until * 1000:
                body = server.ask(f"api/tile?track={track['id']}&level={level}&tile={tile}")[2]
                found[(track["name"], track["number"], level, tile)] = decoded(body, texts)
    assert {"cpu", "kHz", "waits"} <= {name.split()[0] for name, *_ in found}
    return found, [{key: rule[key] for key in ("name", "rows", "transitions") if key in rule} for rule in server.api("intervals", until=until * 1000)["rules"]]


@pytest.mark.parametrize("how", ["grow", "drop"])
def test_declared_lanes_show_what_those_of_a_whole_recording_do(krait, growing, tmp_path, how):
    """Also if krait record --last drops the oldest events, and if other lanes are declared meanwhile."""
    recording, declared = growing(4, burst=5), tmp_path / "declared.toml"
    declared.write_text(DECLARED)
    server = Server(krait, recording.folder, "-f", declared)
    trace = wait_until(lambda t: t["growing"] and t["index"]["done"], lambda: server.api("trace"))
    for until in CUTS[1:]:
        recording.show(until)
        if how == "drop":
            recording.drop_kernel(min(until, LENGTH) - 8_000)
        elif until == CUTS[2]:
            declared.write_text(DECLARED.replace("futex", "read"))
        trace, end = next_update(server, next_update(server, trace)), min(until, LENGTH) - 100
        whole = shutil.copytree(recording.folder, tmp_path / f"whole{until}")
        other = Server(krait, whole, "-f", declared)
        assert lanes(server, trace, end) == lanes(other, other.built(), end)
        assert other.end()[0] == 0
    assert server.end()[0] == 0
