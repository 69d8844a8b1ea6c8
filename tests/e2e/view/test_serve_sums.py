# SPDX-License-Identifier: Apache-2.0
"""States, system calls, waits for the GIL and counters of a range and of chosen tracks are what the verbs print of them."""

import json
import struct
from collections import Counter

import pytest
from conftest import verb_json
from gil_oracle import GilOracle
from kernel_made import begins, ends, event, switch
from kernel_made import write as write_kernel
from reads_made import CALLS, GIL_CALLS, GIL_KERNEL, KERNEL
from served import serve  # noqa: F401  (a fixture)

GIL = """
import threading, time
def spin(n):
    end = time.perf_counter() + 0.05
    while time.perf_counter() < end:
        sum(range(2000))
threads = [threading.Thread(target=spin, args=(i,), name=f"spin{i}") for i in range(3)]
[t.start() for t in threads]
[t.join() for t in threads]
"""


def named(server, rows, column):
    texts = server.api("texts")
    return {texts[row[column]]: row for row in rows}


def syscalls(server, **params):
    answer = server.api("syscalls", **params)
    return {name: dict(zip(answer["columns"], row)) for name, row in named(server, answer["rows"], 0).items()}


def test_system_calls_are_those_of_krait_states(krait, serve, both):
    trace = both(CALLS, [e for e in KERNEL if "write" not in e[2]])
    server = serve(trace)
    mine = syscalls(server, own=1)
    told = {row["name"]: row for row in verb_json(krait, "states", trace, "--by", "syscall")["syscalls"]}
    assert set(mine) == set(told) == {"read", "openat"}
    for name, row in told.items():
        for key, at in {"calls": "count", "errors": "errors", "total_ns": "ns", "max_ns": "longest", "min_ns": "min", "p50_ns": "p50", "p99_ns": "p99"}.items():
            assert mine[name][at] == row[key], (name, key)


def test_system_calls_that_do_not_return_are_not_counted(krait, serve, both):
    trace = both(CALLS, [*[e for e in KERNEL if "write" not in e[2]][:-1], begins(800, "exit_group"), switch(1000, 5, 0)])
    assert set(syscalls(serve(trace), own=1)) == {"read", "openat"} == {row["name"] for row in verb_json(krait, "states", trace, "--by", "syscall")["syscalls"]}


def test_a_range_and_tracks_are_obeyed(serve, both):
    server = serve(both(CALLS, KERNEL))
    tracks = [t for t in server.trace["tracks"] if t["name"] == "system calls"]
    other = next(t["id"] for t in tracks if t["number"] == 7)
    assert set(syscalls(server)) == {"read", "openat", "write"} and set(syscalls(server, own=1)) == {"read", "openat"}
    assert set(syscalls(server, tracks=other)) == {"write"} and syscalls(server, tracks="") == {}
    assert set(syscalls(server, tracks=f"{min(t['id'] for t in tracks)}-{max(t['id'] for t in tracks)}")) == {"read", "openat", "write"}
    part = syscalls(server, own=1, **{"from": 205_000, "until": 550_000})["read"]
    assert (part["count"], part["ns"], part["errors"]) == (3, 5_000 + 100_000 + 50_000, 1)
    states = server.api("states", own=1)["rows"]
    assert {server.trace["tracks"][row[0]]["number"] for row in states if server.trace["tracks"][row[0]]["of"] == "thread"} == {5}
    assert {row[0] for row in server.api("states", tracks=states[0][0])["rows"]} == {states[0][0]}


# The whole; inside of the first wait up to inside of the second one; a part of the time in which it is ready to ask for the GIL; between them.
GIL_RANGES = [(0, 400), (120, 320), (151, 154), (181, 299)]


@pytest.mark.parametrize("edges", GIL_RANGES)
def test_waits_for_the_gil_are_states_as_in_krait_states_and_report(krait, serve, both, edges):
    folder = both(GIL_CALLS, GIL_KERNEL)
    server = serve(folder)
    (track,) = [t["id"] for t in server.trace["tracks"] if t["name"] == "state" and t["number"] == 5]
    answer = server.api("states", tracks=track, **{"from": edges[0] * 1000, "until": edges[1] * 1000})
    mine = {name: row[answer["columns"].index("ns")] for name, row in named(server, answer["rows"], answer["columns"].index("name")).items()}
    range_of = ["--from", f"{edges[0]}us", "--until", f"{edges[1]}us"]
    (told,) = [row for row in verb_json(krait, "states", folder, "--by", "thread", *range_of)["threads"] if row["tid"] == 5]
    gil = verb_json(krait, "report", folder, "--by", "thread", "--thread", "5", *range_of)["wall_ns"]["gil"]
    states = ("gil", "user", "system", "woken", "preempted", "blocked_lock", "blocked_other")
    assert {name.replace("waits for the GIL", "gil"): ns for name, ns in mine.items()} == {name: told[f"{name}_ns"] for name in states if told[f"{name}_ns"]}
    assert mine.get("waits for the GIL", 0) == told["gil_ns"] == gil


def test_each_time_in_a_wait_for_the_gil_counts_with_its_whole_length(serve, both):
    server = serve(both(GIL_CALLS, GIL_KERNEL))
    for params, expected in (({}, (3, 119_000, 55_000)), ({"from": 110_000, "until": 120_000}, (1, 10_000, 55_000))):
        (row,) = [row for name, row in named(server, server.api("states", own=1, **params)["rows"], 1).items() if name == "waits for the GIL"]
        assert tuple(row[2:]) == expected


def test_how_many_are_busy_is_added_up_exactly(serve, both, synth):
    server = serve(synth("process 5 python3\ncode 1 python app main app.py 1\nthread 5 a\n0 call 1\n1000 return\n2000 call 1\n2100 return\nthread 6 b\n500 call 1\n3000 return\nexit 0 0\n"))
    calls = ",".join(str(t["id"]) for t in server.trace["tracks"] if t["kind"] == "calls")
    answer = server.api("busy", tracks=calls, level=8, tile=0)  # bins of 256 ns

    def share(bin, *calls):
        return sum(max(min(end, (bin + 1) * 256) - max(begin, bin * 256), 0) for begin, end in calls) / 256

    assert answer["tracks"] == 2 and not answer["unfinished"]
    assert answer["busy"] == [pytest.approx(share(i, (0, 1000), (2000, 2100), (500, 3000)), abs=1e-5) for i in range(512)]
    kernel = serve(both(CALLS, KERNEL))
    states = next(t["id"] for t in kernel.trace["tracks"] if t["name"] == "state" and t["number"] == 5)
    busy = kernel.api("busy", tracks=states, level=13, tile=0)["busy"]
    assert sum(busy) * 8192 == pytest.approx(1_000_000 - 85_000, rel=1e-4)  # from 510 to 595 us it was off the CPU
    for query in ({"level": 8, "tile": 0}, {"tracks": states, "level": 55, "tile": 0}, {"tracks": states, "level": 54, "tile": 1}):
        kernel.api("busy", code=400, **query)


def test_tiles_of_several_tracks_are_those_of_each(serve, both):
    server = serve(both(CALLS, KERNEL))
    wanted = [t["id"] for t in server.trace["tracks"]]
    status, _, body = server.ask(f"api/tiles?tracks={wanted[0]}-{wanted[-1] + 5}&level=11&tile=0")
    found = []
    while body:
        track, size = struct.unpack_from("<II", body)
        found.append((track, body[8 : 8 + size]))
        body = body[8 + size :]
    assert status == 200 and found == [(track, server.ask(f"api/tile?track={track}&level=11&tile=0")[2]) for track in wanted]
    assert server.ask("api/tiles?tracks=1000000&level=11&tile=0")[::2] == (200, b"")
    for query in ("level=11&tile=0", "tracks=0&level=55&tile=0", "tracks=0&level=54&tile=1", "tracks=0&tile=0"):
        assert server.ask(f"api/tiles?{query}")[0] == 400


def cells(server, **params):
    answer = server.api("scatter", **params)
    return answer, [dict(zip(answer["columns"], row)) for row in answer["cells"]]


def test_the_scatter_has_every_call_in_a_cell(serve, both):
    server = serve(both(CALLS, KERNEL))
    answer, found = cells(server, own=1, columns=1000)
    assert answer["total"] == len(found) == 5 and all(cell["count"] == 1 for cell in found)
    assert sorted((int(c["begin"]), int(c["end"]) - int(c["begin"]), c["errors"]) for c in found) == [
        (100_000, 1_000, 0), (200_000, 10_000, 0), (300_000, 100_000, 1), (500_000, 100_000, 0), (700_000, 3_000, 0)]  # fmt: skip
    _, folded = cells(server, own=1, columns=1)
    assert [(c["column"], c["count"], c["errors"], c["ns"]) for c in folded if c["count"] > 1] == [(0, 2, 1, 200_000)]
    openat = server.api("texts").index("openat")
    _, _, body = server.ask(f"api/scatter?own=1&name={openat}")
    assert json.loads(body)["total"] == 1
    assert cells(server, own=1, **{"from": 650_000, "until": 690_000})[1] == []


def test_a_bucket_of_the_scatter_holds_its_durations(serve, both):
    durations = [1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 100, 1000]
    calls = [e for i, us in enumerate(durations) for e in (begins(i * 2000 + 10, "read"), ends(i * 2000 + 10 + us, "read"))]
    server = serve(both(CALLS.replace("1000us", "30000us"), [switch(0, 0, 5), *calls, switch(29_000, 5, 0)]))
    answer, found = cells(server, own=1, columns=8192)
    for cell in found:
        bucket, octave = cell["bucket"], answer["octave"]
        begin, end = ((octave + b % octave) << (b // octave - 1) if b >= octave else b for b in (bucket, bucket + 1))
        assert begin <= int(cell["end"]) - int(cell["begin"]) < end


def test_waits_for_the_gil_are_told_by_holder(serve, record, any_python):
    trace = record.text(any_python, GIL).path
    server = serve(trace)
    answer = server.api("gil")
    rows = [dict(zip(answer["columns"], row)) for row in answer["rows"]]
    by_thread = Counter()
    for row in rows:
        by_thread[row["waiter"]] += row["ns"]
        assert row["holder"] != row["waiter"] and row["ns"] > 0
    tracks = server.trace["tracks"]
    sums = {t["thread"]: server.api("bin", track=t["id"], level=40, tile=0, bin=0, depth=0)["busy"] for t in tracks if t["name"] == "GIL"}
    sums = {thread: ns for thread, ns in sums.items() if ns}
    if not sums:
        pytest.skip("no thread waited for the GIL")
    assert dict(by_thread) == sums
    for thread in sums:
        assert {row[0] for row in server.api("gil", threads=thread)["rows"]} == {thread}
    half = int(server.trace["duration"]) // 2
    parts = [sum(row[3] for row in server.api("gil", **part)["rows"]) for part in ({"until": half}, {"from": half})]
    assert sum(parts) == sum(sums.values())


def test_holders_of_the_gil_are_those_of_its_events(krait, serve, record, any_python):
    trace = record.text(any_python, GIL).path
    server, oracle = serve(trace), GilOracle(krait, trace)
    threads = [t["tid"] for t in server.trace["threads"]]
    told, expected = Counter(), Counter()
    for waiter, holder, _, ns, *_ in server.api("gil")["rows"]:
        told[threads[waiter], None if holder is None else "free" if holder == -1 else threads[holder]] += ns
    for tid in threads:
        for since, until, part, who in oracle.parts(tid):
            expected[tid, "free" if part == "free" else who] += until - since
    assert set(told) == set(expected) and all(told[pair] == pytest.approx(ns, abs=1000) for pair, ns in expected.items())  # times are rounded twice


def test_counters_are_summed_over_time(serve, tmp_path):
    def frequency(us, cpu, mhz):
        return event(us, "power_cpu_frequency", cpu=cpu, state=mhz * 1000, cpu_id=cpu)

    server = serve(write_kernel(tmp_path / "lttng", [switch(0, 0, 5), frequency(0, 0, 1000), frequency(100, 0, 3000), switch(400, 5, 0)]))
    answer = server.api("counters", **{"until": 400_000})
    (row,) = [dict(zip(answer["columns"], row)) for row in answer["rows"]]
    assert (row["min"], row["mean"], row["max"], row["first"], row["last"], row["known"]) == (1e6, 2.5e6, 3e6, 1e6, 3e6, 400_000)
    assert server.trace["tracks"][row["track"]]["kind"] == "counter" and row["changes"] == 2
    part = server.api("counters", **{"from": 200_000, "until": 300_000})["rows"]
    assert [r[1:7] for r in part] == [[0, 3e6, 3e6, 3e6, 3e6, 3e6]]
