# SPDX-License-Identifier: Apache-2.0
"""Spans, counters and flows as Perfetto's trace processor sees them, in both formats that have them; the tracks of src/trace/spans.c and counters.c with them."""

import json
import os
import re

import pytest

from exported import EPOCH_NS, export  # noqa: F401  (export: a fixture)
from trace_processor import FAULTS, ask

from conftest import verb_json
from package import PACKAGE
from tasks_made import NAMES, TASKS

SPANS = """
    select s.ts, s.dur, s.name, t.name, extract_arg(s.arg_set_id, 'debug.fields'), thread.tid
    from slice s join thread_track t on s.track_id = t.id join thread using (utid)
    where s.category = 'span' order by s.ts, s.dur desc"""
VALUES = "select c.ts, c.value, t.name from counter c join counter_track t on c.track_id = t.id order by t.name, c.ts"
FLOWS = "select a.ts, b.ts from flow f join slice a on f.slice_out = a.id join slice b on f.slice_in = b.id order by a.ts"


def seen(path, query):
    faults, rows = ask(path, FAULTS, query)
    assert faults == []
    return rows


def spans(path):
    """(begin, end, name, track, fields, thread) of each; times in nanoseconds from the script's 0."""
    return [(ts - EPOCH_NS, ts - EPOCH_NS + dur, name, track, json.loads(fields or "{}"), tid) for ts, dur, name, track, fields, tid in seen(path, SPANS)]


# What Chrome's format makes of the same: spans are of their process, times count from the recording's beginning.
CHROME_SPANS = "select ts, dur, name, track_id, extract_arg(arg_set_id, 'args.file') from slice where category = 'span' order by ts, dur desc"


def begin_of(path):
    return int(json.loads(path.read_text())["otherData"]["begin_ns"]) - EPOCH_NS


def chrome_spans(path):
    """(begin, end, name, lane, the field "file") of each, as spans() has them; lanes are numbered as they come."""
    begin, lanes = begin_of(path), {}
    return [(ts + begin, ts + begin + dur, name, lanes.setdefault(track, len(lanes)), file) for ts, dur, name, track, file in seen(path, CHROME_SPANS)]


def test_spans_nest_and_have_their_fields(export, synth):
    folder = synth(
        NAMES
        + """
        thread 100 MainThread
        10us call 1
        20us spanbegin 1 2 0 {"file":"a.csv"}
        30us spanbegin 2 3 0
        35us spanbegin 3 6 2
        40us spanend 3 {"file":"/json.py"}
        60us spanend 2
        70us spanend 1 {"exception":"KeyError"}
        90us return
        """
    )
    assert spans(export(folder, "perfetto")) == [
        (20000, 70000, "load", "spans", {"file": "a.csv", "exception": "KeyError"}, 100),
        (30000, 60000, "parse", "spans", {}, 100),
        (35000, 40000, "json", "imports", {"file": "/json.py"}, 100),
    ]
    path = export(folder, "chrome")
    assert chrome_spans(path) == [(20000, 70000, "load", 0, "a.csv"), (30000, 60000, "parse", 0, None), (35000, 40000, "json", 1, "/json.py")]
    events = json.loads(path.read_text())["traceEvents"]
    assert [e["args"] for e in events if e["ph"] == "b" and "args" in e] == [{"file": "a.csv", "exception": "KeyError"}, {"file": "/json.py"}]


def test_fields_that_are_no_json_are_chromes_text(export, synth):
    folder = synth(
        NAMES
        + """
        thread 100 MainThread
        10us call 1
        20us spanbegin 1 2 0 {"file":nan}
        30us spanend 1
        40us spanbegin 2 3 0 ["]
        50us spanend 2
        90us return
        """
    )
    events = json.loads(export(folder, "chrome").read_text())["traceEvents"]
    assert [e["args"] for e in events if e["ph"] == "b"] == [{"fields": '{"file":nan}'}, {"fields": '["]'}]


def test_spans_that_cross_have_lanes_of_their_own(export, synth):
    folder = synth(
        NAMES
        + """
        thread 100 MainThread
        1us call 1
        10us spanbegin 1 2 0
        20us spanbegin 2 3 0
        25us spanbegin 3 7 0
        30us spanend 1
        40us spanend 2
        50us spanend 3
        60us spanbegin 4 2 0
        70us spanend 4
        99us return
        """
    )
    lanes = {(name, begin): track for begin, _, name, track, _, _ in spans(export(folder, "perfetto"))}
    assert lanes == {("load", 10000): "spans", ("parse", 20000): "spans 2", ("third", 25000): "spans 3", ("load", 60000): "spans"}
    crossing = chrome_spans(export(folder, "chrome"))
    assert [(begin, end, name) for begin, end, name, _, _ in crossing] == [(10000, 30000, "load"), (20000, 40000, "parse"), (25000, 50000, "third"), (60000, 70000, "load")]
    assert [lane for *_, lane, _ in crossing] == [0, 1, 2, 0]


def test_spans_end_in_other_threads_with_the_process_or_at_the_edges(export, synth):
    folder = synth(
        NAMES
        + """
        thread 100 MainThread
        1us call 1
        10us spanbegin 1 2 0
        20us spanbegin 2 3 0
        30us spanend 99
        99us return
        thread 101 Other
        40us call 1
        50us spanend 1
        60us spanbegin 5 7 0
        80us return
        """
    )
    path = export(folder, "perfetto")
    assert [(b, e, name, tid) for b, e, name, _, _, tid in spans(path)] == [
        (10000, 50000, "load", 100),
        (20000, 99000, "parse", 100),
        (60000, 99000, "third", 101),
    ]
    assert {track for *_, track, _, _ in spans(path)} == {"spans", "spans 2"}
    part = [(b, e, name) for b, e, name, *_ in spans(export(folder, "perfetto", "--from", "29us", "--until", "69us"))]
    assert part == [(29000, 69000, "parse"), (29000, 50000, "load"), (60000, 69000, "third")]


def test_counters_are_their_processs_and_keep_fractions(export, synth):
    folder = synth(
        NAMES
        + """
        thread 100 MainThread
        1us call 1
        10us counter 4 3
        30us counter 4 5
        40us counter 5 0.25
        50us counter 5 -1.5
        60us counter 5 nan
        99us return
        thread 101 Other
        2us call 1
        20us counter 4 4
        98us return
        """
    )
    rows = seen(export(folder, "perfetto"), VALUES)
    assert [(ts - EPOCH_NS, value, name) for ts, value, name in rows] == [
        *((10000, 3, "queue"), (20000, 4, "queue"), (30000, 5, "queue")),
        *((40000, 0.25, "share"), (50000, -1.5, "share")),
    ]
    places = "select t.name, p.pid from process_counter_track t join process p using (upid)", "select t.name, h.tid from thread_counter_track t join thread h using (utid)"
    for chosen in ([], ["--thread", "Other"]):  # of several threads, a counter is the process's
        assert seen(export(folder, "perfetto", *chosen), places[0]) == [("queue", 100)]
    assert seen(export(folder, "perfetto"), places[1]) == [("share", 100)]
    path = export(folder, "chrome")
    assert [(ts + begin_of(path), value) for ts, value, _ in seen(path, VALUES)] == [(ts - EPOCH_NS, value) for ts, value, _ in rows]


def test_flows_are_arrows_from_one_place_to_the_next(export, synth):
    folder = synth(
        NAMES
        + """
        thread 100 MainThread
        1us call 1
        10us flow 7
        12us flow 8
        99us return
        thread 101 Other
        2us call 1
        20us flow 7
        98us return
        process 200 worker
        code 1 python app main app.py 1
        thread 200 MainThread
        3us call 1
        30us flow 7
        97us return
        """
    )
    rows = seen(export(folder, "perfetto"), FLOWS)
    assert [(a - EPOCH_NS, b - EPOCH_NS) for a, b in rows] == [(10000, 20000), (20000, 30000)]
    assert chrome_arrows(export(folder, "chrome")) == [("s", 10000, 100), ("f", 20000, 101), ("s", 20000, 101), ("f", 30000, 200)]
    ends = seen(export(folder, "chrome"), "select a.name, b.name from flow f join slice a on f.slice_out = a.id join slice b on f.slice_in = b.id")
    assert len(ends) == 2 and {name for pair in ends for name in pair} <= {"app.main", "user:flow"}
    # What crosses the edge, or leads to a thread that is not there, is no arrow.
    assert chrome_arrows(export(folder, "chrome", "--from", "12us")) == [("s", 20000, 101), ("f", 30000, 200)]
    assert chrome_arrows(export(folder, "chrome", "--process", "python3")) == [("s", 10000, 100), ("f", 20000, 101)]


def test_work_stays_on_its_host(export, run, synth, tmp_path):
    """Two hosts may have pipes of the same number, of which ids of work are made."""
    text = """
    process PID python3
    code 1 python app main app.py 1
    thread PID
    10us submit 4611687119087796225
    process WORKER python3
    code 1 python app main app.py 1
    thread WORKER
    20us start 4611687119087796225
    """
    folders = [synth(text.replace("PID", pid).replace("WORKER", worker), pid) for pid, worker in [("100", "200"), ("300", "400")]]
    arrows = [("s", 10000, 100), ("f", 20000, 200), ("s", 10000, 300), ("f", 20000, 400)]
    for metadata in folders[1].rglob("metadata"):
        said = metadata.read_bytes()
        metadata.write_bytes(re.sub(rb'hostname = "[^"]*"', b'hostname = "other"', said))
        assert metadata.read_bytes() != said
    for to in ("chrome", "perfetto"):
        run("export", *folders, "--to", to, "-o", tmp_path / to)
    assert sorted(chrome_arrows(tmp_path / "chrome"), key=lambda arrow: arrow[2]) == sorted(arrows, key=lambda arrow: arrow[2])
    assert len(seen(tmp_path / "perfetto", FLOWS)) == 2


def test_links_all_lead_from_the_span_that_they_name(export, synth):
    folder = synth(
        NAMES
        + """
        thread 100 MainThread
        10us linkfrom 7
        15us linkto 9
        thread 101 Other
        20us linkto 7
        30us linkto 7
        40us linkfrom 8
        process 200 worker
        thread 200 MainThread
        25us linkto 7
        35us linkto 8
        """
    )
    ends = [(20000, 101), (25000, 200), (30000, 101)]  # that of 8 would lead back in time
    rows = seen(export(folder, "perfetto"), FLOWS)
    assert sorted((a - EPOCH_NS, b - EPOCH_NS) for a, b in rows) == [(10000, end) for end, _ in ends]
    arrows = chrome_arrows(export(folder, "chrome"))
    assert [a for a in arrows if a[0] == "s"] == [("s", 10000, 100)] * 3 and sorted(a[1:] for a in arrows if a[0] == "f") == ends


def chrome_arrows(path):
    """(phase, time, thread) of each end, the ends of an arrow one after the other."""
    ends = [e for e in json.loads(path.read_text())["traceEvents"] if e["ph"] in "sf"]
    assert [e["id"] for e in ends] == [i // 2 + 1 for i in range(len(ends))]
    return [(e["ph"], round(e["ts"] * 1000) + begin_of(path), e["tid"]) for e in ends]


def test_what_tracks_show_is_no_mark_besides(export, synth):
    folder = synth(
        NAMES
        + """
        thread 100 MainThread
        1us call 1
        10us mark here {"n":1}
        20us spanbegin 1 2 0
        25us counter 4 1
        30us spanend 1
        99us return
        """
    )
    rows = seen(export(folder, "perfetto"), "select name from slice where category = 'mark'")
    assert rows == [("user:mark",)]
    marks = [e for e in json.loads(export(folder, "chrome").read_text())["traceEvents"] if e["ph"] == "i"]
    assert [(e["name"], e["s"], e["tid"]) for e in marks] == [("user:mark", "t", 100)]


@pytest.mark.few_pythons
def test_spans_of_tasks_are_told_apart(record, python, export):
    run = record.text(
        python,
        """
        import asyncio, gc, krait
        async def work(name, turns):
            with krait.span(name):
                for n in range(turns):
                    with krait.span("step", n=n):
                        await asyncio.sleep(0)
                    krait.counter("left", turns - n)
        async def main():
            with krait.span("all"):
                await asyncio.gather(work("a", 2), work("b", 5), work("c", 3))
        asyncio.run(main())
        gc.collect()
        """,
        options=["--gc", "--imports"],
        env={**os.environ, **PACKAGE},
    )
    path = export(run.path, "perfetto")
    rows = spans(path)
    found = [(name, track) for _, _, name, track, _, _ in rows]
    names = [name for name, _ in found]
    assert [names.count(n) for n in ("all", "a", "b", "c", "step")] == [1, 1, 1, 1, 10]
    assert {track for name, track in found if name == "asyncio"} == {"imports"}
    assert any(track == "gc" for name, track in found if name == "gc generation 2")
    by_track = {}
    for begin, end, name, track in seen(path, "select ts, ts + dur, name, track_id from slice where category = 'span'"):
        by_track.setdefault(track, []).append((begin, end, name))
    for lane in by_track.values():  # they nest
        assert not any(a < b < c < d for a, c, _ in lane for b, d, _ in lane)
    own = [sorted({name for *_, name in lane}) for lane in by_track.values()]
    assert all(names in own for names in (["a", "step"], ["b", "step"], ["c", "step"], ["all"]))
    assert {track for name, track in found if name in ("a", "b", "c", "step", "all")} == {"spans"}
    assert len(seen(path, VALUES)) == 10


# -- states of tasks --

FIRST = [("running", 20, 30, None, None), ("task", 30, 50, 2, None), ("ready", 50, 60, None, 2), ("running", 60, 70, None, None)]
SECOND = [("running", 10, 15, None, None), ("future", 15, 25, None, None), ("ready", 25, 40, None, 1), ("running", 40, 50, None, None)]
STATES = {
    "perfetto": """
        select p.name, t.name, s.name, s.ts, s.dur, extract_arg(s.arg_set_id, 'debug.waits_for'), extract_arg(s.arg_set_id, 'debug.woken_by')
        from slice s join track t on s.track_id = t.id join track p on t.parent_id = p.id where s.category = 'task' order by s.ts""",
    "chrome": """
        select 'Tasks', substr(s.name, 1, instr(s.name, ':') - 1), substr(s.name, instr(s.name, ':') + 2), s.ts, s.dur,
        extract_arg(s.arg_set_id, 'args.waits_for'), extract_arg(s.arg_set_id, 'args.woken_by')
        from slice s join process_track t on s.track_id = t.id where s.category = 'task' order by s.ts""",
}


def states(path, fmt):
    """{task: [(state, begin, end, the task that it waits for, that woke it)]} in us."""
    found, begin = {}, begin_of(path) if fmt == "chrome" else -EPOCH_NS
    for group, task, state, ts, dur, *whom in seen(path, STATES[fmt]):
        assert group == "Tasks"
        found.setdefault(task, []).append((state, (ts + begin) // 1000, (ts + begin + dur) // 1000, *whom))
    return found


@pytest.mark.parametrize("fmt", ["perfetto", "chrome"])
def test_states_of_tasks_are_tracks_of_their_process(export, synth, fmt):
    folder = synth(TASKS)
    assert states(export(folder, fmt), fmt) == {"main Task-1": FIRST, "second main": SECOND}
    part = export(folder, fmt, "--from", "21us", "--until", "44us")
    assert states(part, fmt) == {
        "main Task-1": [("running", 21, 30, None, None), ("task", 30, 44, 2, None)],
        "second main": [("future", 21, 25, None, None), ("ready", 25, 40, None, 1), ("running", 40, 44, None, None)],
    }


@pytest.mark.parametrize("fmt", ["perfetto", "chrome"])
def test_states_of_tasks_are_of_the_threads_that_are_chosen(export, synth, fmt):
    folder = synth(TASKS + "    thread 102 Third\n    3us call 1\n    90us return\n")
    assert set(states(export(folder, fmt, "--thread", "Other"), fmt)) == {"main Task-1", "second main"}
    assert not states(export(folder, fmt, "--thread", "Third"), fmt)


@pytest.mark.few_pythons
def test_states_of_tasks_are_those_of_the_report(record, python, export, krait):
    path = record.text(
        python,
        """
        import asyncio
        async def leaf(lock):
            async with lock: await asyncio.sleep(0.002)
        async def main():
            lock = asyncio.Lock()
            await asyncio.create_task(leaf(lock))
            await asyncio.gather(*(leaf(lock) for _ in range(3)))
        asyncio.run(main())
        """,
    ).path
    rows = verb_json(krait, "report", path, "--by", "task")["tasks"]
    sums = {state: sum(row[f"{state}_ns"] for row in rows) for state in ("running", "ready", "timer", "lock", "task", "future")}
    for fmt in STATES:
        found = seen(export(path, fmt), STATES[fmt])
        assert {state: sum(row[4] for row in found if row[2] == state) for state in sums} == sums
        assert [row[2] for row in found if row[5] is not None] == ["task"] and any(row[6] for row in found if row[2] == "ready")  # gather() waits for several
