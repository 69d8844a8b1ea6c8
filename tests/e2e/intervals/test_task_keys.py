# SPDX-License-Identifier: Apache-2.0
"""$task as a key: the task in whose step an event happened, whatever its name."""

import subprocess

import pytest

from conftest import verb_json
from intervals_made import declare  # noqa: F401  (declare: a fixture)
from package import PACKAGE

# The second and the third task are called alike. The last mark comes behind lost events: its task is not known.
STEPS = """
thread 4711 T0
0us mark Start
1us run 1
2us mark Start {"task":"own"}
4us spanbegin 1 3 0 {}
5us call 4
6us return
7us leave 1 1
8us mark between
11us run 2
12us mark Start
14us leave 2 1
21us run 3
22us mark Start
24us leave 3 1
31us run 2
32us mark Stop
34us leave 2 3
41us run 1
42us mark Stop
43us spanend 1 {}
44us leave 1 3
51us run 3
packet
packet 5
60us mark Stop
"""
TASKS = "code 1 python app work app.py 1\ncode 3 name - serve - 0\ncode 4 python app inner app.py 9\ntask 1 1 Task-1\ntask 2 1 same\ntask 3 1 same\n"
PROCESS = "process {} python3\nexit 0 0\n" + TASKS + "{}"
FOUND = [("work Task-1", 40000), ("same work #2", 20000)]


def listed(krait, folder, *words):
    return [(row["key"], row["duration_ns"]) for row in verb_json(krait, "intervals", folder, *words, "--list")["list"]]


def asked(krait, folder, *words):
    return subprocess.run([krait, "intervals", folder, *words], capture_output=True, text=True, check=True).stderr


MARKS = ["--start", "Start", "--stop", "Stop"]


def test_marks_of_a_task_are_pairs(synth, krait, declare):  # noqa: F811
    folder = synth(PROCESS.format(4711, STEPS))
    assert listed(krait, folder, *MARKS, "--key", "$task") == FOUND
    rows = verb_json(krait, "intervals", folder, *MARKS, "--key", "$task", "--by", "key")["rows"]
    assert {(row["key"], row["starts"], row["no_key"]) for row in rows} >= {("same work #3", 1, 0), (None, 0, 2)}
    text = "[interval.a]\nstart = { message = 'Start', where = { '$task' = '*Task-1' } }\nstop = 'Stop'\nby = '$task'\n"
    assert listed(krait, folder, "-f", declare(text)) == [("work Task-1", 30000)]
    states = "[state.s]\nmessage = '(Start|Stop)'\nkey = '$task'\n"
    assert listed(krait, folder, "-f", declare(states)) == [("Start", 40000), ("Start", 20000)]
    signals = "[signal.s]\nmessage = 'St(?P<value>.*)'\nkey = '$task'\n"
    rows = verb_json(krait, "intervals", folder, "-f", declare(signals))["signals"]
    assert {row["key"]: row["no_number"] + row["no_key"] for row in rows} == {None: 2, "work Task-1": 2, "same work #2": 2, "same work #3": 1}


def test_a_range_does_not_hide_when_a_step_began(synth, krait):
    folder = synth(PROCESS.format(4711, STEPS))
    assert listed(krait, folder, "--start", "Start", "--stop", "Stop", "--key", "$task", "--from", "1.5us") == FOUND


def test_names_of_several_processes_have_their_pids(synth, krait):
    folder = synth(PROCESS.format(4711, STEPS) + PROCESS.format(4712, STEPS.replace("4711", "4712")))
    found = listed(krait, folder, *MARKS, "--key", "$task")
    assert sorted(found) == sorted((f"{key.split(' #')[0]} #{task} of {pid}", ns) for pid in (4711, 4712) for task, (key, ns) in enumerate(FOUND, 1))


def test_spans_and_calls_have_their_task_as_a_key(synth, krait):
    folder = synth(PROCESS.format(4711, STEPS))
    for words, ns in ((["--call", "*inner"], 1000), (["--span", "serve"], 39000)):
        assert listed(krait, folder, *words, "--key", "$task") == [("work Task-1", ns)]
    (span,) = verb_json(krait, "report", folder, "--by", "span", "--key", "$task")["spans"]
    assert (span["key"], span["total_ns"]) == ("work Task-1", 39000)


def test_who_asks_for_a_task_is_told_its_name(synth, krait):
    """Log records have a field task, marks have none; one has it from the program."""
    folder = synth(PROCESS.format(4711, STEPS))
    assert "'Start .. Stop': 6 events have no field 'task'; did you mean '$task'?\n" in asked(krait, folder, *MARKS, "--key", "task")
    assert "'task'" not in asked(krait, folder, *MARKS, "--key", "$task")


PROGRAM = """
import asyncio, krait
async def work(n):
    krait.mark("Start", n=n)
    await asyncio.sleep(0.002 * (3 - n))
    krait.mark("Stop", n=n)
async def main():
    await asyncio.gather(*(work(n) for n in range(3)))
asyncio.run(main())
"""


@pytest.mark.few_pythons
def test_tasks_of_asyncio_are_not_mixed(record, krait, python):
    """What the tasks say of themselves is the oracle."""
    run = record.text(python, PROGRAM, env=PACKAGE)
    by_number = sorted(ns for _, ns in listed(krait, run.path, *MARKS, "--key", "n"))
    by_task = listed(krait, run.path, *MARKS, "--key", "$task")
    assert sorted(ns for _, ns in by_task) == by_number and len({key for key, _ in by_task}) == len(by_number) == 3
    assert all(key.startswith("work Task-") for key, _ in by_task)
    calls = verb_json(krait, "intervals", run.path, "--call", "work", "--key", "$task", "--by", "key")["rows"]
    assert {(row["key"], row["intervals"]) for row in calls} == {(key, 1) for key, _ in by_task}
