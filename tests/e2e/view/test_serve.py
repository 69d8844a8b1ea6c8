# SPDX-License-Identifier: Apache-2.0
"""What the endpoints of `krait view` answer is what the verbs print of the same range."""

import io
import json
import os
import struct
import subprocess
import tarfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import verb_json
from kernel_made import begins, dump, ends, event, switch, wake
from kernel_made import write as write_kernel
from lossy_recordings import CODES, CUT, MISSED
from served import Server, serve  # noqa: F401  (serve: a fixture)
from tasks_made import GREENLETS

CALLS = CODES + "0us call 1\n100us call 2\n400us ccall 3\n500us creturn\n600us return\n700us call 2\n750us return\n1000us return\n"
KERNEL = [
    switch(0, 0, 5), begins(390, "clock_nanosleep"), switch(400, 5, 6, 1), wake(490, 5), switch(495, 6, 5), ends(500, "clock_nanosleep"),
    switch(999, 5, 0, 1), switch(1000, 0, 0),
]  # fmt: skip
SAID = "krait view: open this link in a browser; Ctrl-C ends the server\n"
PROGRAM = """
import json, threading, time
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
def work():
    for i in range(20):
        json.dumps({"a": [i] * 50})
    time.sleep(0.002)
threads = [threading.Thread(target=work, name=f"w{i}") for i in range(3)]
[t.start() for t in threads]
fib(13)
[t.join() for t in threads]
"""


def names(server):
    """(module, name) of each function, by id."""
    count, found = server.trace["funcs"], []
    while len(found) < count:
        found += server.api("funcs", page=len(found) // 1024)
    return [(f[1], f[0]) for f in found]


def texts(server):
    found = []
    while page := server.api("texts", page=len(found) // 1024):
        found += page
    return found


def as_reported(server, **params):
    """The function table with the keys of krait report."""
    keys = {"calls": "calls", "self": "self_ns", "total": "total_ns", "min": "min_ns", "p50": "p50_ns", "p99": "p99_ns", "max": "max_ns"}
    table, known = server.api("functions", **params), names(server)
    rows = [dict(zip(table["columns"], row)) for row in table["rows"]]
    return sorted((*known[r["func"]], *(r[k] for k in keys)) for r in rows), list(keys.values())


def reported(krait, trace, keys, *options):
    rows = verb_json(krait, "report", trace, "--limit", "0", *options)["functions"]
    return sorted((r["module"] or "", r["name"], *(r[k] or 0 for k in keys)) for r in rows)


def test_the_function_table_is_krait_reports(krait, serve, record, any_python):
    trace = record.text(any_python, PROGRAM).path
    server = serve(trace)
    rows, keys = as_reported(server)
    assert len(rows) > 20 and rows == reported(krait, trace, keys)
    length = int(server.trace["duration"])
    for begin, end in ((length // 3, length // 2), (length // 2, length // 2 + 100_000)):
        rows, keys = as_reported(server, **{"from": begin, "until": end})
        assert rows == reported(krait, trace, keys, "--from", f"{begin}ns", "--until", f"{end}ns")
    for i, thread in enumerate(server.trace["threads"]):
        rows, keys = as_reported(server, threads=i)
        assert rows == reported(krait, trace, keys, "--thread", thread["tid"])


def test_the_call_tree_has_the_tables_sums(serve, record, any_python):
    server = serve(record.text(any_python, PROGRAM).path)
    table, tree = server.api("functions"), server.api("flame")
    own, calls = Counter(), Counter()
    for parent, func, count, self_ns, _ in tree["nodes"][1:]:
        own[func] += self_ns
        calls[func] += count
        assert parent >= 0
    assert tree["left_out"] == 0
    assert own == Counter({r[0]: r[2] for r in table["rows"]}) and calls == Counter({r[0]: r[1] for r in table["rows"]})
    few = server.api("flame", limit=10)
    assert len(few["nodes"]) <= 11 and few["left_out"] == len(tree["nodes"]) - len(few["nodes"])


def test_calls_of_a_function_are_all_of_them(serve, record, any_python):
    server = serve(record.text(any_python, PROGRAM).path)
    fib = names(server).index(("__main__", "fib"))
    row = next(r for r in server.api("functions")["rows"] if r[0] == fib)
    found = server.api("calls", func=fib, limit=5000)
    lasted = [int(c["end"]) - int(c["begin"]) for c in found["calls"]]
    assert found["matched"] == len(lasted) == row[1] == sum(n for *_, n in found["histogram"])
    assert lasted == sorted(lasted, reverse=True) and lasted[0] == row[8] and lasted[-1] == row[4]
    for begin, end, count in found["histogram"]:
        assert count == sum(begin <= ns < end for ns in lasted)
    half = lasted[len(lasted) // 2]
    some = server.api("calls", func=fib, min=half, limit=1)
    assert some["matched"] == sum(ns >= half for ns in lasted)
    for answer, fastest in ((found, lasted[-1]), (some, half)):
        assert int(answer["fastest"]["end"]) - int(answer["fastest"]["begin"]) == fastest
    assert server.api("calls", func=fib, min=lasted[0] + 1)["fastest"] is None


def test_a_call_and_its_neighbours(serve, synth):
    server = serve(synth(CALLS))
    known = names(server)
    main, load, sleep = (known.index(f) for f in (("app", "main"), ("app", "load"), ("time", "sleep")))
    call = server.api("call", track=0, at=450_000, depth=1)
    assert (call["func"], call["begin"], call["end"], call["self"]) == (load, "100000", "600000", 400_000)
    assert [a["func"] for a in call["ancestors"]] == [main] and call["callees"] == [[sleep, 1, 100_000, 100_000]]
    assert server.api("next", track=0, at=100_000, func=load)["begin"] == "700000"
    assert server.api("next", track=0, at=700_000, func=load, forward=0)["begin"] == "100000"
    assert "error" in server.api("next", code=404, track=0, at=700_000, func=load)
    assert "error" in server.api("next", code=404, track=0, at=0, func=2**32 + load)
    assert "error" in server.api("call", code=404, track=0, at=650_000, depth=1)


def test_a_call_says_what_kept_its_begin_or_end_from_being_recorded(serve, synth):
    server = serve(synth(CUT))
    calls = [server.api("call", track=0, at=at, depth=depth) for at, depth in ((100_000, 0), (750_000, 0), (820_000, 1))]
    off = {"off": True, "events": 0, "begin": "200000", "end": "700000", "ns": 500_000}
    lost = {"off": False, "events": 5, "begin": "900000", "end": "1200000", "ns": 300_000}
    assert [(c.get("before"), c.get("inside"), c.get("after")) for c in calls] == [(None, None, off), (off, lost, None), (None, None, lost)]


def all_events(server, **params):
    place, found = {}, []
    while place is not None:
        page = server.api("events", **{**params, **place})
        found += page["events"]
        assert page["damage"] is None
        place = page["next"]
    return found


@pytest.mark.parametrize("limit", [1, 3, 200, 5000])
def test_events_are_krait_cats(serve, both, events, limit):
    trace = both(CALLS, [*KERNEL, *(event(300, "same", n=i) for i in range(7))])
    server = serve(trace)
    expected = events(trace)
    assert len(expected) > 20
    assert sorted(map(json.dumps, all_events(server, limit=limit))) == sorted(map(json.dumps, expected))
    times = [int(e["time_ns"]) for e in all_events(server, limit=limit)]
    assert times == sorted(times)
    origin = int(server.trace["origin"])
    part = [e for e in expected if origin + 300_000 <= int(e["time_ns"]) < origin + 500_000]
    mine = all_events(server, limit=limit, **{"from": 300_000, "until": 500_000})
    assert sorted(map(json.dumps, mine)) == sorted(map(json.dumps, part)) and len(part) > 7


def find_all(server, forward, **params):
    """Times and numbers of all that are found, from one to the next."""
    found, place = [], {}
    while (hit := server.api("find", forward=forward, **params, **place))["time"] is not None:
        found.append((int(hit["time"]), hit["nth"]))
        place = {"at": hit["time"], "skip": hit["nth"] + forward}
    return found


def test_every_event_with_a_text_is_found_forward_and_backward(serve, both, events):
    trace = both(CALLS, KERNEL)
    server = serve(trace)
    origin = int(server.api("trace")["origin"])
    for words, text in [("SCHED_switch", None), ("next_tid = 5", None), ("sched", 'name == "sched_wakeup"'), ("sched_switch", "payload.next_tid == 5")]:
        name, _, value = words.partition(" = ")
        filtered = {} if text is None else {"text": text}
        taken = [(int(e["time_ns"]) - origin, e) for e in events(trace, *filtered.values())]
        places = [(at, sum(t == at for t, _ in taken[:i])) for i, (at, _) in enumerate(taken)]
        has = [name.lower() in e["event"] or (value and e["payload"].get(name) == value) for _, e in taken]
        expected = [place for place, fits in zip(places, has) if fits]
        assert expected and find_all(server, 1, words=words, **filtered) == expected, (words, text)
        assert find_all(server, 0, words=words, **filtered) == expected[::-1]
        middle = {"from": expected[0][0] + 1, "until": expected[-1][0]}
        assert find_all(server, 0, words=words, **filtered, **middle) == [place for place in expected[::-1] if middle["from"] <= place[0] < middle["until"]]
    for words in ('code = ( "app.load" : container = 2 )', "code = app.load"):  # as krait cat writes it, and as the page does
        assert [at for at, _ in find_all(server, 1, words=words)] == [100_000, 700_000], words
    assert server.api("find", words="code = app.lo = 2")["time"] is None
    assert server.api("find", words="no such text")["time"] is None
    assert server.api("find", words="x", at=2**64 - 1, forward=0)["looked_at"] > 0
    assert "error" in server.api("find", code=400) and "error" in server.api("find", code=400, words="x", text="name ==")


def test_a_range_of_several_recordings_is_handed_out_as_krait_cut_writes_it(krait, synth, both, tmp_path, monkeypatch):
    folders = [synth(CALLS.replace("process 5", "process 6"), "one"), both(CALLS, KERNEL, "two")]
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    server = Server(krait, *folders)
    server.built()
    status, _, body = server.ask("api/cut?from=200000&until=600000")
    assert status == 200
    with tarfile.open(fileobj=io.BytesIO(body)) as archive:
        archive.extractall(tmp_path / "out")
    for i, folder in enumerate(folders, 1):
        subprocess.run([krait, "cut", folder, "--from", "0.0002", "--until", "0.0006", "-o", tmp_path / f"part{i}"], check=True, capture_output=True)
        subprocess.run(["diff", "-r", tmp_path / f"part{i}", tmp_path / "out" / f"part{i}"], check=True)
    assert server.api("cut", code=400, **{"from": 10**12, "until": 10**12 + 5})["error"] == "no events lie in the range"
    assert list((tmp_path / "tmp").iterdir()) == []
    (tmp_path / "tmp").rmdir()
    assert "cannot make the folder" in server.api("cut", code=500)["error"]
    assert server.end()[0] == 0


@pytest.mark.parametrize("length", [4096, 4097, 100_000])
def test_names_of_any_length_are_no_damage(krait, serve, synth, events, length):
    name = "p" * length
    folder = synth(f"process 5 {name} 1 {name}\ncode 1 python {name} {name} {name} 1\nthread 5 {name}\n0 call 1\n1000 return\nexit 0 0\n")
    server = serve(folder)
    trace = server.api("trace")
    assert trace["damage"] is None and len(trace["threads"]) == 1
    assert len(all_events(server)) == len(events(folder)) > 2


def test_events_are_filtered_as_krait_cat_does(serve, both, events):
    trace = both(CALLS, KERNEL)
    server = serve(trace)
    for text in ("name == sched_switch", "name == \"*call*\"", "name == nothing"):
        assert all_events(server, text=text, limit=2) == events(trace, text)
    assert "error" in server.api("events", code=400, text="name ==")
    assert "error" in server.api("events", code=400, text="no_such_field == 1")


def test_the_path_is_krait_paths(krait, serve, both):
    trace = both(CALLS, KERNEL)
    server = serve(trace)
    expected = verb_json(krait, "path", trace, "--thread", "5")
    track = next(t["id"] for t in server.trace["tracks"] if t["kind"] == "calls")
    found = server.api("path", track=track)
    rows = [dict(zip(found["columns"], s)) for s in found["segments"]]
    assert len(rows) >= 3 and len(rows) == len(expected["segments"])
    for row, segment in zip(rows, expected["segments"]):
        assert int(row["begin"]) == segment["time_ns"] and int(row["end"]) - int(row["begin"]) == segment["duration_ns"]
        for key in ("kind", "depth", "tid", "name", "syscall", "device", "by_tid", "by_name"):
            assert row[key] == segment[key], key
        on = server.trace["tracks"][row["track"]]
        assert (on["of"], on["name"], on["number"]) == ("thread", "state", row["tid"])
    part = server.api("path", track=track, **{"from": 400_000, "until": 498_000})["segments"]
    cut = verb_json(krait, "path", trace, "--thread", "5", "--from", "400us", "--until", "498us")["segments"]
    assert [(int(s[0]), s[2]) for s in part] == [(s["time_ns"], s["kind"]) for s in cut]


def test_what_threads_did_while_the_recording_was_off_is_unknown(serve, tmp_path):
    """Where nothing tells what they did before that, too; in the sums, in the part of the range alone, and as no CPU's work."""
    off = [event(20, "krait_off", switched_off=1, cpu=cpu) for cpu in (0, 1)]
    told = [switch(0, 0, 5), switch(5, 0, 8, cpu=1), *off, dump(40, 5, 0, 5), dump(41, 8, 0, 5), switch(50, 0, 5), switch(80, 5, 0, state=1)]
    server = serve(write_kernel(tmp_path / "off", told))
    named, tracks = texts(server), server.trace["tracks"]

    def threads(**params):
        rows = [row for row in server.api("states", own=0, **params)["rows"] if tracks[row[0]]["of"] == "thread"]
        return {(tracks[track]["number"], named[name]): ns for track, name, _, ns, _ in rows}

    whole, within = threads(), threads(**{"from": 25_000, "until": 35_000})
    assert {key: whole[key] for key in ((5, "user"), (5, "unknown"), (8, "user"))} == {(5, "user"): 20_000 + 30_000, (5, "unknown"): 20_000, (8, "user"): 15_000}
    assert within == {(5, "unknown"): 10_000, (8, "unknown"): 10_000}
    cpus = ",".join(str(t["id"]) for t in tracks if (t["of"], t["kind"]) == ("cpu", "states"))
    busy = server.api("busy", tracks=cpus, level=10, tile=0)["busy"]
    assert sum(busy[22:38]) == 0 < min(busy[6:18])


def test_a_trace_without_the_kernel_has_no_path(serve, synth):
    server = serve(synth(CALLS))
    assert "--kernel" in server.api("path", code=404, track=0)["error"]
    assert server.api("wakeups")["wakeups"] == []


def test_wakeups_lead_from_waker_to_woken(serve, both):
    server = serve(both(CALLS, KERNEL))
    tracks = server.trace["tracks"]
    found = server.api("wakeups")["wakeups"]
    pairs = [(tracks[a]["number"], int(at), tracks[b]["number"], int(until)) for a, at, b, until, _ in found]
    assert pairs == [(6, 490_000, 5, 495_000)]
    track = next(t["id"] for t in tracks if t["kind"] == "calls")
    assert server.api("wakeups", track=track)["wakeups"] == found
    for begin, end in (480_000, 490_000), (491_000, 494_000), (495_000, 600_000), (496_000, 600_000):
        wanted = found if begin <= 495_000 else []  # whole, if they touch the selected time
        assert server.api("wakeups", track=track, begin=begin, end=end)["wakeups"] == wanted
        assert server.api("wakeups", **{"track": track, "from": begin, "until": end + 1})["wakeups"] == wanted
    assert server.api("wakeups", limit=0) == {"columns": ["track", "at", "to", "until", "function"], "wakeups": [], "more": 1}


def test_switches_of_greenlets_lead_from_one_to_the_other(serve, synth):
    """Those of gevent's hub, which is the third, are left out."""
    server = serve(synth(GREENLETS))
    tracks = {t["number"]: t["id"] for t in server.trace["tracks"] if (t["of"], t["kind"]) == ("task", "states")}
    found = sorted([[tracks[1], "10000", tracks[2], "10000", None], [tracks[2], "20000", tracks[1], "20000", None]])
    assert [sorted(server.api("wakeups", track=tracks[number])["wakeups"]) for number in (1, 2, 3)] == [found, found, []]


SAID = """
    process 100 python3
    code 1 python app main app.py 1
    code 2 name - load - 0
    code 3 name - queue - 0
    thread 100 MainThread
    1us call 1
    10us spanbegin 1 2 0
    12us counter 3 2
    20us flow 7
    25us counter 3 0.5
    30us spanend 1
    99us return
    thread 101 Other
    2us call 1
    40us flow 7
    98us return
    """


def test_the_first_flows_are_the_first_in_time(serve, synth):
    """Not those of the first thread: each of three threads passes on every third flow to the next thread."""
    threads = [[], [], []]
    for flow in range(30):
        threads[flow % 3].append((10 * flow, flow))
        threads[(flow + 1) % 3].append((10 * flow + 5, flow))
    script = "process 4711 python3\nexit 0 0\ncode 1 python app main app.py 1\n"
    for number, flows in enumerate(threads):
        lines = "".join(f"{at + 1}us flow {flow + 1}\n" for at, flow in sorted(flows))
        script += f"thread {4711 + number} T{number}\n0 call 1\n{lines}1ms return\n"
    server = serve(synth(script))
    found = server.api("wakeups", limit=8)
    begins = [int(row[1]) for row in found["wakeups"]]
    assert begins == [1_000 + 10_000 * i for i in range(8)] and found["more"] == 22


def test_spans_counters_and_flows_are_tracks_of_their_thread(serve, synth):
    server = serve(synth(SAID))
    tracks = server.trace["tracks"]
    mine = [(t["name"], t["kind"], t["unit"]) for t in tracks if t["number"] == 100 and t["name"] not in ("calls", "marks", "GIL")]
    assert sorted(mine) == [("flows", "flows", ""), ("queue", "counter", "× 10⁻³"), ("spans", "slices", "")]
    at = {t["name"]: t["id"] for t in tracks}
    columns = server.api("counters")
    (row,) = [dict(zip(columns["columns"], r)) for r in columns["rows"]]
    assert (row["track"], row["min"], row["max"], row["changes"]) == (at["queue"], 500, 2000, 2)
    ((by, begin, to, end, function),) = server.api("wakeups")["wakeups"]
    assert (tracks[by]["number"], int(begin), tracks[to]["number"], int(end)) == (100, 20_000, 101, 40_000)
    (cut,) = server.api("wakeups", **{"from": 30_000, "until": 35_000, "columns": 10})["wakeups"]
    assert cut == [by, begin, to, end, None] and function is None  # whole


def drawn_marks(server, track):
    """The bins of a tile of the whole recording that have marks, with their number: src/view/wire.h."""
    _, _, tile = server.ask(f"api/tile?track={track}&level=8&tile=0")
    rows, slices, marks = struct.unpack_from("<3I", tile, 16)
    return [struct.unpack_from("<2I", tile, 40 + rows * (4 + 3 * 512) + slices * 32 + i * 16) for i in range(marks)]


def test_the_lane_of_marks_leaves_out_values_of_counters(serve, synth):
    """They have lanes of their own, as in pictures; the list of marks has them."""
    script = SAID.replace("25us counter 3 0.5", "25us counter 3 0.5\n    25us mark here\n    25us counter 3 0.6").replace("20us flow 7", "").replace("40us flow 7", "")
    server = serve(synth(script))
    (track,) = {t["id"] for t in server.trace["tracks"] if t["kind"] == "instants" and t["number"] == 100}
    texts = server.api("texts", page=0)
    names = [texts[mark["name"]] for mark in server.api("marks", tracks=track)["marks"]]
    assert sorted(names) == ["user:counter"] * 3 + ["user:mark"]
    drawn = server.api("marks", tracks=track, drawn=1, limit=1)
    assert [texts[mark["name"]] for mark in drawn["marks"]] == ["user:mark"] and drawn["more"] == 0
    assert drawn_marks(server, track) == [(25_000 // 256, 1)]


def test_a_counter_of_two_threads_is_a_track_of_their_process(serve, synth):
    tracks = serve(synth(SAID.replace("40us flow", "30us counter 3 4\n    40us flow"))).trace["tracks"]
    assert [(t["of"], t["process"], t["thread"], t["number"], t["pid"]) for t in tracks if t["name"] == "queue"] == [("process", 0, None, 0, 100)]


def test_the_fields_of_a_slice_go_by_its_exact_extent(serve, record, any_python):
    run = record.text(any_python, "def add(item, n): return item * n\nadd('pen', 2)\nadd('ink', 3)\n", options=["--args", "add(item, n) -> return"])
    server = serve(run.path)
    track = next(t["id"] for t in server.trace["tracks"] if t["name"] == "arguments")
    (func,) = [f for f in server.api("search", text="__main__.add", limit=5)["funcs"]]
    calls = sorted(server.api("calls", func=func, limit=5)["calls"], key=lambda c: int(c["begin"]))
    told = [server.api("fields", track=track, **{"from": c["begin"], "until": c["end"]})["list"] for c in calls]
    assert [[json.loads(each["fields"]) for each in list] for list in told] == [[{"item": "pen", "n": 2, "return": "penpen"}], [{"item": "ink", "n": 3, "return": "inkinkink"}]]
    assert told[0][0]["name"] == "__main__.add"
    begin, end = int(calls[0]["begin"]), int(calls[0]["end"])
    for extent in ((begin, end - 1), (begin + 1, end), (begin - 1, end), (end, begin), (0, 2**64 - 1)):
        assert server.api("fields", track=track, **{"from": extent[0], "until": extent[1]})["list"] == []
    assert "slices" in server.api("fields", 404, track=calls[0]["track"], **{"from": 0, "until": 1})["error"]


@pytest.mark.parametrize("calls", [CALLS, MISSED], ids=["whole", "with other tracks of states"])
def test_states_are_krait_states(krait, serve, both, calls):
    trace = both(calls, KERNEL)
    server = serve(trace)
    named, tracks = texts(server), server.trace["tracks"]
    mine = Counter()
    for track, name, _, ns, _ in server.api("states")["rows"]:
        if tracks[track]["of"] != "cpu":
            mine[tracks[track]["number"], named[name]] += ns
    rows = verb_json(krait, "states", trace, "--by", "thread", "--limit", "0")["threads"]
    for row in rows:
        for key, ns in row.items():
            if key.endswith("_ns") and (row["tid"], key.removesuffix("_ns")) in mine:
                assert mine.pop((row["tid"], key.removesuffix("_ns"))) == ns
    assert not +mine, mine
    assert {t["name"] for t in tracks if t["kind"] == "states" and t["thread"] == 0} == ({"state"} if calls == CALLS else {"state", "GIL", "lost"})


def test_source_is_the_file_that_the_recording_names(serve, record, any_python):
    server = serve(record.text(any_python, PROGRAM).path)
    known = names(server)
    fib = known.index(("__main__", "fib"))
    found = server.api("source", func=fib)
    text = PROGRAM.split("\n")
    assert found["lines"] == text[: len(found["lines"])] and found["first"] == 1 and found["changed"] is False
    assert text[found["line"] - 1].startswith("def fib")
    os.utime(found["file"], (2**33, 2**33))
    assert server.api("source", func=fib)["changed"] is True
    os.remove(found["file"])
    assert "No such file" in server.api("source", code=404, func=fib)["error"]
    os.mkfifo(found["file"])  # is neither waited for nor read
    assert "error" in server.api("source", code=404, func=fib)


@pytest.mark.parametrize("path", ["/etc/passwd", "/dev/zero", "/proc/self/environ", "relative.py", "<string>", "/", "/nothing/../etc/passwd"])
def test_what_is_no_source_is_not_handed_out(serve, synth, path):
    trace = synth(f"process 5 python3\ncode 1 python app main {path} 1\nthread 5 Main\n0us call 1\n100us return\n")
    server = serve(trace)
    main = names(server).index(("app", "main"))
    assert "root:" not in json.dumps(server.api("source", code=404, func=main))
    assert "error" in server.api("source", code=404, func=2**40)
    assert "error" in server.api("source", code=400)


def test_notes_are_kept_beside_the_recording(krait, serve, synth):
    trace = synth(CALLS)
    server = serve(trace)
    assert server.api("notes") == {}
    notes = {"marks": [{"at": "5", "text": 'a "<script>" \u202e\u0007 é'}]}
    status, _, _ = server.ask("api/notes", method="PUT", body=json.dumps(notes).encode())
    assert status == 200 and server.api("notes") == notes
    assert serve(trace).api("notes") == notes
    assert verb_json(krait, "report", trace)["functions"]
    for body, code in ((b"", 400), (b"[]", 400), (b"{", 400), (b'{"a":"\xff"}', 400), (b'{"a":"' + b"a" * 65536 + b'"}', 413)):
        status, _, said = server.ask("api/notes", method="PUT", body=body)
        assert status == code and json.loads(said)["error"], (status, said)
    assert server.api("notes") == notes
    status, _, _ = server.ask("api/trace", method="PUT", body=b"{}")
    assert status == 405
    status, _, _ = server.ask("api/notes", method="PUT", body=b"{}", headers={"Origin": "http://evil.example"})
    assert status == 403 and server.api("notes") == notes
    (trace / ".krait-notes.json").write_text("damaged")
    assert server.api("notes") == {}


def test_notes_that_cannot_be_kept_are_told(serve, synth, tmp_path):
    trace = synth(CALLS)
    server = serve(trace)
    (trace / ".krait-notes.json").mkdir()
    status, _, said = server.ask("api/notes", method="PUT", body=b"{}")
    assert status == 500 and "notes" in json.loads(said)["error"]
    assert server.api("notes") == {}


def test_names_of_a_trace_are_text(serve, synth):
    odd = "</script><img/src=x>&\"'\\x"
    trace = synth(f"process 5 python3\ncode 1 python app {odd} app.py 1\nthread 5 {odd}\n0us call 1\n100us return\n")
    server = serve(trace)
    assert ("app", odd) in names(server) and server.trace["threads"][0]["name"] == odd
    _, headers, body = server.ask("api/funcs")
    assert headers["Content-Type"] == "application/json" and body.decode("utf-8")
    assert server.api("search", text="</SCRIPT")["funcs"] == [names(server).index(("app", odd))]


def test_control_characters_and_broken_utf8_are_json(serve, record, any_python):
    trace = record.text(
        any_python,
        """
        import threading
        names = ["a\\x07\\x1b[31m", "\\u202eright", "\\udcff\\udc80", "x" * 10000, "line\\nbreak"]
        for name in names:
            t = threading.Thread(target=len, args=("",), name=name); t.start(); t.join()
        """,
    ).path
    server = serve(trace)
    _, _, body = server.ask("api/trace")
    assert json.loads(body.decode("utf-8", "strict")) and b"\x1b" not in body and b"\x07" not in body
    assert len(server.trace["threads"]) == 6


def test_several_folders_are_one_timeline(serve, synth):
    later = CALLS.replace("process 5", "process 7").replace("thread 5", "thread 7")
    server = serve(synth(CALLS, "one"), synth(later, "two"))
    assert [p["pid"] for p in server.trace["processes"]] == [5, 7]
    assert sum(t["kind"] == "calls" for t in server.trace["tracks"]) == 2
    assert len(all_events(server)) >= 16


def test_a_kernel_trace_alone_opens(krait, serve, tmp_path):
    folder = write_kernel(tmp_path / "lttng", KERNEL)
    server = serve(folder)
    assert not server.trace["processes"] and any(t["of"] == "cpu" for t in server.trace["tracks"])
    assert server.api("functions")["rows"] == [] and len(all_events(server)) == len(KERNEL)
    track = next(t["id"] for t in server.trace["tracks"] if t["number"] == 5 and t["of"] == "thread")
    expected = verb_json(krait, "path", folder, "--thread", "5")["segments"]
    assert [s[2] for s in server.api("path", track=track)["segments"]] == [s["kind"] for s in expected]


def test_function_events_of_lttng_open(krait, serve, tmp_path):
    prefix, of = "lttng_ust_cyg_profile:func_", "{} of context"
    who = {of.format("vpid"): 9, of.format("vtid"): 9}
    rows = [event(10, prefix + "entry", addr=64, call_site=1, **who), event(20, prefix + "entry", addr=80, call_site=2, **who)]
    rows += [event(30, prefix + "exit", addr=80, call_site=2, **who), event(50, prefix + "exit", addr=64, call_site=1, **who)]
    folder = write_kernel(tmp_path / "ust", rows, domain="ust")
    server = serve(folder)
    table, keys = as_reported(server)
    assert len(table) == 2 and table == reported(krait, folder, keys)
    assert len(all_events(server)) == 4


def test_what_is_no_trace_is_refused(krait, tmp_path):
    run = subprocess.run([krait, "view", tmp_path, "--no-open"], capture_output=True, text=True, timeout=60)
    assert run.returncode == 1 and not run.stdout and "Traceback" not in run.stderr


def test_what_is_asked_while_the_index_is_built_is_right(krait, both):
    """The kernel's events are walked by one at a time: the index, the function table, and the path."""
    calls = CODES + "0us call 1\n" + "".join(f"{i * 10 + 1}us call 2\n{i * 10 + 8}us return\n" for i in range(4000)) + "50000us return\n"
    rounds = [(switch(i * 10 + 2, 5, 6, 1), wake(i * 10 + 4, 5), switch(i * 10 + 5, 6, 5)) for i in range(4000)]
    trace = both(calls, [switch(0, 0, 5), *(e for three in rounds for e in three)])
    asked = [("functions", {}), ("path", {"track": 0}), ("wakeups", {"limit": 20000}), ("functions", {})]
    for _ in range(2):
        (trace / ".krait-view").unlink(missing_ok=True)
        server = Server(krait, trace)
        with ThreadPoolExecutor(len(asked)) as pool:
            at_once = list(pool.map(lambda a, s=server: s.api(a[0], **a[1]), asked))
        server.built()
        assert at_once == [server.api(name, **params) for name, params in asked]
        assert sum(r[1] for r in at_once[0]["rows"]) == 4001 and len(at_once[2]["wakeups"]) == 4000
        assert server.end()[0] == 0
