# SPDX-License-Identifier: Apache-2.0
"""Spans of tasks are in their task's lane, where they nest: its tracks, and what reports, intervals, pages, pictures and exports make of them."""

import re
from collections import Counter

import pytest
from browser import ask, opened, served
from exported import export  # noqa: F401  (a fixture)
from trace_processor import FAULTS
from trace_processor import ask as query

from conftest import verb_json
from package import PACKAGE
from svg import lanes, view  # noqa: F401  (view: a fixture)
from tasks_made import IN_PERFETTO, spans
from tracks_read import text_of, tracks

HEAD = """
    process 100 python3
    code 1 python app main app.py 1
    code 2 name - outer - 0
    code 3 name - inner - 0
    code 4 name - json - 0
    task 1 1 Task-1
    task 2 1 second
    """
# The first task begins a span in a span.
BEGINS = (
    HEAD
    + """
    thread 100 MainThread
    1us call 1
    10us run 1
    11us spanbegin 1 2 0
    12us spanbegin 2 3 0
    """
)
# Two tasks by turns, each with a span in a span; then a span and an import of the thread itself.
TURNS = (
    BEGINS
    + """
    13us leave 1 1
    20us run 2
    21us spanbegin 3 2 0
    22us spanbegin 4 3 0
    23us spanbegin 5 4 2
    24us spanend 5
    25us leave 2 1
    30us run 1
    31us spanend 2
    32us spanend 1
    33us leave 1 3
    40us run 2
    41us spanend 4
    42us spanend 3
    43us leave 2 3
    50us spanbegin 6 2 0
    60us spanend 6
    99us return
    """
)


def test_spans_are_of_the_task_that_began_them(synth):
    folder = synth(TURNS)
    assert spans(folder) == {
        ("TASK", 1, "spans"): [(12, 31, "inner"), (11, 32, "outer")],
        ("TASK", 2, "spans"): [(22, 41, "inner"), (21, 42, "outer")],
        ("THREAD", 100, "imports"): [(23, 24, "json")],
        ("THREAD", 100, "spans"): [(50, 60, "outer")],
    }
    assert text_of(folder, together=True) == text_of(folder)
    part = spans(folder, 25_000, 41_000)
    assert part["TASK", 2, "spans"] == [(25, 41, "inner"), (25, 41, "outer")]


def test_steps_within_steps_and_tasks_that_are_not_known(synth):
    folder = synth(
        HEAD
        + """
        thread 100 MainThread
        1us call 1
        2us run 1
        3us run 2
        4us spanbegin 1 2 0
        5us leave 2 1
        6us spanbegin 2 2 0
        7us spanend 2
        8us leave 1 1
        10us run 77
        11us spanbegin 3 3 0
        12us spanend 3
        13us leave 77 3
        20us run 1
        21us spanbegin 4 3 0
        22us run 1
        23us leave 1 1
        24us spanbegin 5 4 0
        25us spanend 4
        26us spanend 5
        30us spanend 1
        99us return
        """
    )
    assert spans(folder) == {
        ("TASK", 1, "spans"): [(6, 7, "outer"), (21, 25, "inner")],
        ("TASK", 2, "spans"): [(4, 30, "outer")],
        ("THREAD", 100, "spans"): [(11, 12, "inner"), (24, 26, "json")],
    }


def test_a_task_of_two_threads_has_lanes_of_each_and_its_spans_end_anywhere(synth):
    folder = synth(
        BEGINS
        + """
        13us spanend 1
        14us leave 1 1
        99us return
        thread 101 Other
        2us call 1
        20us run 1
        21us spanbegin 3 4 0
        22us leave 1 1
        30us spanend 2
        98us return
        """
    )
    assert spans(folder) == {
        ("TASK", 1, "spans"): [(11, 13, "outer")],
        ("TASK", 1, "spans 2"): [(12, 30, "inner")],
        ("TASK", 1, "spans 3"): [(21, 99, "json")],
    }
    assert text_of(folder, together=True) == text_of(folder)


# Both threads run the first task, by turns: its loop is run in one, and in the other. The second one waits in the first thread.
SHARED = (
    HEAD
    + """
    thread 100 MainThread
    1us call 1
    10us run 1
    12us leave 1 1 4096
    20us run 2
    22us leave 2 2 1
    60us run 1
    65us leave 1 0
    90us run 1
    92us leave 1 3
    99us return
    thread 101 Other
    2us call 1
    28us wake 4096
    30us run 1
    40us leave 1 1 4096
    50us wake 4096
    98us return
    """
)


# The first task's wait is ended by a thread that runs no task; another thread has a greenlet, whose C function tells what it waits for.
BESIDE = (
    SHARED.replace("28us wake 4096", "")
    + """
    task 3 1 green
    code 5 c gevent._gevent_c_hub_primitives wait_read - 0
    thread 102 Waker
    2us call 1
    28us wake 4096
    98us return
    thread 103 Greenlets
    2us call 1
    5us run 3
    6us leave 3 5
    7us run 3
    8us ccall 5
    9us leave 3 5
    50us run 3
    51us creturn
    52us leave 3 3
    98us return
    """
)


def states(folder):
    """{task: [(begin, end, state, whom)]}; times in us."""
    return {number: [(int(a) // 1000, int(b) // 1000, state, int(value)) for a, b, state, value, *_ in entries] for (kind, place, number, _), entries in tracks(folder).items() if (kind, place) == ("STATES", "TASK")}


def test_threads_beside_those_that_share_a_task_are_read_as_without_them(synth):
    shared, found = states(synth(SHARED)), states(synth(BESIDE, "beside"))
    assert found.pop(3) == [(5, 6, "running", 0), (6, 7, "switch", 0), (7, 9, "running", 0), (9, 50, "socket", 0), (50, 52, "running", 0)]
    assert found == shared


def test_states_of_a_task_that_two_threads_run_are_in_the_order_of_time(synth):
    folder = synth(SHARED)
    found = states(folder)
    assert found[1] == [
        (10, 12, "running", 0),
        (12, 28, "future", 0),
        (28, 30, "ready", 0),
        (30, 40, "running", 0),
        (40, 50, "future", 0),
        (50, 60, "ready", 0),
        (60, 65, "running", 0),
        (65, 90, "ready", 0),
        (90, 92, "running", 0),
    ]
    assert found[2] == [(20, 22, "running", 0), (22, 92, "task", 1), (92, 99, "ready", 1)]
    assert text_of(folder, together=True) == text_of(folder)


def untasked(script):
    """The same recording without the events of tasks."""
    return "".join(line + "\n" for line in script.splitlines() if not re.match(r" *(task|\d+us (run|leave)) ", line))


def test_reports_and_intervals_are_the_same_as_without_tasks(krait, synth):
    with_tasks, without = synth(TURNS), synth(untasked(TURNS), "without")
    for command in (
        ("report", "--by", "span"),
        ("report", "--by", "span", "--thread", "MainThread"),
        ("report", "--by", "span", "--from", "25us", "--until", "40us"),
        ("intervals", "--span", "*"),
        ("intervals", "--span", "*", "--list"),
        ("intervals", "--span", "*", "--thread", "MainThread"),
    ):
        both = [verb_json(krait, command[0], folder, *command[1:]) for folder in (with_tasks, without)]
        assert both[0] == both[1] and re.search("'(total|duration)_ns': [1-9]", str(both[0])), command
    assert not verb_json(krait, "report", with_tasks, "--by", "span", "--thread", "nobody")["spans"]


def test_the_server_and_the_picture_have_them_in_the_tasks_lane(krait, synth, view):  # noqa: F811
    folder = synth(TURNS)
    with served(krait, folder) as link:
        told = ask(link, "trace")["tracks"]
    mine = {(t["of"], t["kind"], t["name"], t["number"], t["threadName"]) for t in told if t["of"] == "task"}
    assert mine == {("task", kind, name, *task) for kind, name in (("states", "task"), ("slices", "spans")) for task in ((1, "main Task-1"), (2, "second main"))}
    found = lanes(view(folder)[0])
    assert list(found) == ["MainThread 100", "main Task-1 1", "second main 2"]
    assert Counter(box[3][0] for box in found["MainThread 100"]["spans"]) == {"outer": 1}
    for lane in ("main Task-1 1", "second main 2"):
        assert {part for part in found[lane] if part != "states"} == {"task", "spans"}
        assert Counter(box[3][0] for box in found[lane]["spans"]) == {"outer": 1, "inner": 1}


# The coroutine of a task begins, and then its step; a call of another thread is in no step.
CALLS = (
    HEAD
    + """
    code 5 python app work app.py 9
    task 3 5 third
    thread 100 MainThread
    1us call 1
    10us call 5
    11us run 3
    12us call 1
    19us return
    20us leave 3 0
    21us yield
    22us call 1
    25us return
    30us resume 5
    31us run 3
    39us leave 3 3
    40us return
    99us return
    thread 101 Other
    2us call 5
    35us return
    task 4 5 patient
    thread 102 Long
    1us call 5
    2us run 4
    99s call 1
    100s return
    101s leave 4 0
    102s return
    """
)


def tasks_of_calls(krait, folder, *calls):
    """The labels of the tasks that the details of calls name, or None; a call is (thread, at in us, depth)."""
    with served(krait, folder) as link:
        told = ask(link, "trace")["tracks"]
        threads = {t["number"]: t["id"] for t in told if t["kind"] == "calls"}
        details = [ask(link, "call", track=threads[thread], at=at * 1000, depth=depth) for thread, at, depth in calls]
    return [told[call["task"]]["threadName"] if "task" in call else None for call in details]


def test_the_details_of_a_call_have_its_task(krait, synth):
    folder = synth(CALLS)
    assert tasks_of_calls(krait, folder, *((100, 15, depth) for depth in (0, 1, 2))) == [None, "third work", "third work"]
    assert tasks_of_calls(krait, folder, (100, 23, 1), (100, 35, 1), (101, 15, 0)) == [None, "third work", None]


# In a step that has lasted long, another task has one: it was begun eagerly.
NESTED = (
    HEAD
    + """
    thread 100 MainThread
    1us call 1
    10us run 1
    repeat 20000
    20us call 1
    30us return
    end
    1us run 2
    2us call 1
    3us return
    4us leave 2 3
    5us call 1
    6us return
    7us leave 1 3
    8us call 1
    9us return
    99us return
    """
)


def test_a_call_behind_a_step_within_a_step_is_in_the_outer_one(krait, synth):
    calls = [(100, 20_000 * 30 + at, 1) for at in (2, 5, 8)]
    assert tasks_of_calls(krait, synth(NESTED), *calls) == ["second main", "main Task-1", None]


# The end of the first step is lost in one thread, and in the others while the recording is switched off; the thread of the second
# task is in its step still when its stack is stated.
BROKEN = (
    HEAD
    + """
    30us recording 0
    40us recording 1
    thread 100 MainThread
    1us call 1
    10us run 1
    11us call 1
    12us return
    packet 2
    20us stack 1
    21us call 1
    22us return
    29us return
    thread 101 Off
    1us call 1
    10us run 1
    11us call 1
    12us return
    50us stack 1
    51us call 1
    52us return
    60us run 1
    61us call 1
    62us return
    63us leave 1 3
    99us return
    thread 102 Stated
    1us call 1
    10us run 2
    11us call 1
    12us return
    packet 2
    20us stack 1
    20us run 2
    21us call 1
    22us return
    29us leave 2 3
    30us return
    """
)


def test_a_call_behind_a_loss_is_in_no_step_that_is_not_stated(krait, synth):
    folder = synth(BROKEN)
    assert tasks_of_calls(krait, folder, (100, 11, 1), (100, 21, 1)) == ["main Task-1", None]
    assert tasks_of_calls(krait, folder, (101, 11, 1), (101, 51, 1), (101, 61, 1)) == ["main Task-1", None, "main Task-1"]
    assert tasks_of_calls(krait, folder, (102, 11, 1), (102, 21, 1)) == ["second main"] * 2


def test_the_page_shows_the_task_of_a_call(krait, chromium, synth):
    folder = synth(CALLS)
    with served(krait, folder) as link:
        tracks = {t["number"]: t["id"] for t in ask(link, "trace")["tracks"] if t["kind"] == "calls"}
    for thread, depth, at_ns, own in ((100, 2, 15000, ["third work"]), (100, 0, 15000, []), (102, 1, 99_500_000_000, ["patient work"])):
        with opened(krait, chromium, folder, f"#p=details;c={tracks[thread]},{depth},{at_ns}") as page:
            facts = zip(page.page.locator(".details dt").all_inner_texts(), page.page.locator(".details dd").all_inner_texts())
            assert [text for name, text in facts if name == "task"] == own and page.text(".details h2") == "app.main"


PROGRAM = """
import asyncio, krait
async def work(turns):
    with krait.span("outer", turns=turns):
        for n in range(turns):
            with krait.span("inner", n=n):
                await asyncio.sleep(0)
async def main():
    with krait.span("all"):
        tasks = [asyncio.get_running_loop().create_task(work(turns)) for turns in (3, 5)]
        for task, name in zip(tasks, ("first", "second")):
            task.set_name(name)
        await asyncio.gather(*tasks)
with krait.span("program"):
    asyncio.run(main())
"""


@pytest.mark.few_pythons
def test_tasks_of_a_program(record, krait, python, export):  # noqa: F811
    folder = record.text(python, PROGRAM, env=PACKAGE).path
    found = spans(folder)
    own = {(number, name): entries for (place, number, name), entries in found.items() if place == "TASK"}
    assert sorted(len(entries) for entries in own.values()) == [1, 4, 6] and {name for _, name in own} == {"spans"}
    assert [name for *_, name in found.pop(next(key for key in found if key[0] == "THREAD"))] == ["program"]
    sums = {row["name"]: row for row in verb_json(krait, "report", folder, "--by", "span")["spans"]}
    assert {name: row["spans"] for name, row in sums.items()} == {"all": 1, "program": 1, "outer": 2, "inner": 8}
    mine = [row for row in verb_json(krait, "report", folder, "--by", "task")["tasks"] if row["coroutine"].startswith("__main__.")]
    assert {row["name"]: row["tasks"] for row in mine} == {None: 1, "first": 1, "second": 1}
    faults, rows = query(export(folder, "perfetto"), FAULTS, IN_PERFETTO)
    assert faults == [] and {row[2] for row in rows} == {"MainThread"}
    assert Counter((track, parent, n) for track, parent, _, n in rows) == Counter([("spans", None, 1), ("spans", "first work", 4), ("spans", "main Task-1", 1), ("spans", "second work", 6)])
    faults, rows = query(export(folder, "chrome"), FAULTS, "select name, count(*) from slice where category = 'span' group by name")
    assert faults == [] and dict(rows) == {"all": 1, "inner": 8, "outer": 2, "program": 1}


def test_the_page_has_them_in_the_tasks_lanes(record, krait, any_python, chromium):
    folder = record.text(any_python, PROGRAM, env=PACKAGE).path
    with opened(krait, chromium, folder) as page:
        parts = page.page.evaluate("() => krait.context.timeline.lanes.lanes.map((lane) => [lane.title, lane.parts.map((part) => part.track.name)])")
        assert [names for title, names in parts if title in ("first work", "second work", "main Task-1")] == [["task", "spans"]] * 3
        assert any(title == "MainThread" and "spans" in names for title, names in parts)
        assert page.errors == []
