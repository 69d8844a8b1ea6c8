# SPDX-License-Identifier: Apache-2.0
"""krait cut: a range of a recording is a recording that tells the same as the range of the whole."""

import json
import shutil
import subprocess

import pytest

from kernel_made import switch
from pages import run_page
from tasks_made import GEVENT
from wall_made import CODES

PROGRAM = """
import json, threading
def leaf(n): return sum(range(n))
def numbers(n):
    for i in range(n): yield leaf(i % 7)
def work(n):
    for i in range(n):
        sorted(numbers(20), key=lambda x: leaf(3))
        json.dumps({"a": i})
def deep(n, times):
    return deep(n - 1, times) if n else work(times)
def main():
    threads = [threading.Thread(target=deep, args=(5, 150), name=f"worker {i}") for i in range(2)]
    for thread in threads: thread.start()
    deep(3, 150)
    for thread in threads: thread.join()
main()
"""

# A table has no column for waits where there are none: a part may have none where the whole has some.
NO_GIL = ["--no-gil"]

VERBS = [
    ("report", "--limit", "0"),
    ("report", "--by", "thread"),
    ("report", "--tree", "--min-share", "0"),
    ("export", "--to", "folded", "-o", "-"),
]


@pytest.fixture
def told(krait):
    """What a verb prints of a recording, and of a range of it."""

    def text(folder, verb, *options):
        run = subprocess.run([krait, verb[0], str(folder), *verb[1:], *options], capture_output=True, text=True, timeout=60)
        assert run.returncode == 0, run.stderr
        return run.stdout

    return text


def ranges_of(ms):
    return [(f"{a * ms}ms", f"{b * ms}ms") for a, b in ((0.1, 0.3), (0.45, 0.5), (0.6, 0.9), (0.4, 1.5))]


def test_a_part_tells_what_its_range_tells(krait, record, any_python, info, run, told, tmp_path):
    whole, empty = record.text(any_python, PROGRAM, options=NO_GIL).path, 0
    for i, (begin, end) in enumerate(ranges_of(info(whole)["duration_ns"] / 1e6)):
        words = [krait, "cut", whole, "--from", begin, "--to", end, "-o", f"part{i}"]
        said = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=120).stderr
        if "no events lie in that time" in said and not empty:
            empty += 1  # the machine was busy with others
            continue
        assert f"krait cut: wrote part{i} (" in said
        part = run("info", "--json", f"part{i}")
        assert part.returncode == 0
        for verb in VERBS:
            assert told(whole.parent / f"part{i}", verb) == told(whole, verb, "--from", begin, "--until", end), (begin, verb)


def test_a_part_of_a_part(record, any_python, info, run, told):
    whole = record.text(any_python, PROGRAM, options=NO_GIL).path
    ms = info(whole)["duration_ns"] / 1e6
    run("cut", whole, "--from", f"{0.2 * ms}ms", "-o", "tail")
    tail = whole.parent / "tail"
    run("cut", tail, "--until", f"{0.4 * ms}ms", "-o", "middle")
    for verb in VERBS:
        assert told(whole.parent / "middle", verb) == told(tail, verb, "--until", f"{0.4 * ms}ms"), verb
    metadata = next((whole.parent / "middle").glob("*/metadata")).read_text()
    assert metadata.count("cut_from") == metadata.count("cut_until") == 1


TASKS = """
import asyncio, threading
async def sleeps():
    for _ in range(3): await asyncio.sleep(0.02)
async def locks(lock):
    for _ in range(3):
        async with lock: await asyncio.sleep(0.01)
async def burns():
    for _ in range(5):
        sum(range(100_000))
        await asyncio.sleep(0)
async def waits():
    await asyncio.create_task(sleeps())
async def main():
    lock = asyncio.Lock()
    await asyncio.gather(sleeps(), locks(lock), locks(lock), burns(), waits())
threads = [threading.Thread(target=lambda: asyncio.run(main())) for _ in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


def same_tasks(whole, events, run, told):
    """What a part of it and the whole in its range tell of tasks, for ranges of some steps: they begin and end in the midst of them."""
    start = events(whole, 'name == "process:start"')[0]
    steps = [(int(step["time_ns"]) - int(start["time_ns"])) / 1e6 for step in events(whole, 'name == "task:run"')]
    for i in range(1, len(steps) - 1, max(1, len(steps) // 7)):
        last = min(i + len(steps) // 5, len(steps) - 1)
        begin, end = (f"{(steps[k - 1] + steps[k]) / 2:.6f}ms" for k in (i, last))
        part = f"{whole}-part{i}"
        run("cut", whole, "--from", begin, "--until", end, "-o", part)
        rows = [sorted(json.loads(text)["tasks"], key=str) for text in (told(part, ["report", "--by", "task", "--json"]), told(whole, ["report", "--by", "task", "--json"], "--from", begin, "--until", end))]
        assert rows[0] == rows[1], (begin, end)
        yield rows[0]


@pytest.mark.few_pythons
def test_tasks_of_a_part_are_those_of_its_range(record, python, events, run, told):
    rows = [row for rows in same_tasks(record.text(python, TASKS).path, events, run, told) for row in rows]
    assert {"timer_ns", "lock_ns", "task_ns", "running_ns"} <= {key for row in rows for key, value in row.items() if value}


def test_greenlets_of_a_part_are_those_of_its_range(record, any_python, venv, events, run, told):
    recording = record.text(venv(any_python, "gevent"), GEVENT)
    rows = [row for rows in same_tasks(recording.path, events, run, told) for row in rows]
    assert {"timer_ns", "socket_ns", "switch_ns", "running_ns", "queue_ns" if any_python.number >= (3, 12) else "timer_ns"} <= {key for row in rows for key, value in row.items() if value}


# Two greenlets of a thread: `main` calls, is left under 1; another stack is built, left under 2; 1 is taken up again.
GREENLETS = (
    CODES
    + """
    0us call 1
    10us call 2
    20us ccall 3
    30us switch 1 0
    40us call 2
    50us ccall 3
    60us switch 2 1
    70us creturn
    80us switch 1 2
    90us creturn
    100us return
    110us switch 2 1
    120us return
    130us return
    """
)


@pytest.mark.parametrize("begin", [35, 55, 65, 75, 85, 105, 115])
def test_stacks_of_greenlets_that_wait_are_in_the_part(synth, run, told, tmp_path, begin):
    whole = synth(GREENLETS)
    run("cut", whole, "--from", f"{begin}us", "-o", "part")
    for verb in VERBS:
        assert told(tmp_path / "part", verb) == told(whole, verb, "--from", f"{begin}us"), verb


def test_a_wait_for_the_gil_knows_who_has_it_where_the_part_begins(synth, run, info, tmp_path):
    """Not who had it where the wait began: 6 has handed it over to 7 before the part."""
    whole = synth(CODES + "thread 5 A\n100us gilwait 6\n800us giltake\n900us return\nthread 6 B\n0us call 1\n300us gildrop\n900us return\nthread 7 C\n0us call 1\n200us gilwait 6\n310us giltake\n700us gildrop\n900us return\n")
    run("cut", whole, "--from", "500us", "--until", "850us", "-o", "part")
    of_part = info(tmp_path / "part")["gil"]
    assert of_part == {"waits": 1, "wait_ns": 300_000, "threads": 1, "held_ns": 200_000, "free_ns": 100_000, "unknown_ns": 0}


def test_waits_for_the_gil_go_on_over_the_edges(synth, run, told, tmp_path):
    whole = synth(CODES + "0us call 1\n100us gilwait 7\n400us giltake\n600us gilwait 7\n900us giltake\n1000us return\n")
    run("cut", whole, "--from", "200us", "--until", "800us", "-o", "part")
    for verb in VERBS:
        assert told(tmp_path / "part", verb) == told(whole, verb, "--from", "200us", "--until", "800us"), verb


def test_a_thread_that_does_nothing_in_the_range_has_its_calls_there(synth, run, told, tmp_path):
    whole = synth(
        CODES
        + "0us call 1\n10us call 2\n900us return\n1000us return\nthread 6 other\n5us call 2\n450us ccall 3\n460us creturn\n950us return\n"
    )
    run("cut", whole, "--from", "300us", "--until", "600us", "-o", "part")
    for verb in VERBS:
        assert told(tmp_path / "part", verb) == told(whole, verb, "--from", "300us", "--until", "600us"), verb


def test_only_losses_of_the_range_are_in_the_part(synth, run, info, tmp_path):
    calls = "".join(f"{t}us call 2\n{t + 5}us return\n" + ("packet 7\n" if t in (100, 500) else "") for t in range(0, 1000, 100))
    whole = synth(CODES + calls)
    assert info(whole)["lost"] == {"ring full": 14}
    run("cut", whole, "--from", "300us", "-o", "part")
    assert info(tmp_path / "part")["lost"] == {"ring full": 7}


def test_babeltrace2_reads_a_part(record, any_python, info, run, cat):
    if not shutil.which("babeltrace2"):
        pytest.skip("no babeltrace2")
    whole = record.text(any_python, PROGRAM).path
    ms = info(whole)["duration_ns"] / 1e6
    run("cut", whole, "--from", f"{0.3 * ms}ms", "--to", f"{0.4 * ms}ms", "-o", "part")
    read = subprocess.run(["babeltrace2", whole.parent / "part"], capture_output=True, text=True, timeout=60)
    assert read.returncode == 0, read.stderr
    assert read.stdout.splitlines() == cat(whole.parent / "part", "--begin", "0") and not read.stderr


def test_the_kernels_part_is_cut_with_it(both, run, events, tmp_path):
    whole = both(CODES + "0us call 1\n1000us return\n", [switch(us, us % 200 // 100 * 5, 5 - us % 200 // 100 * 5) for us in range(0, 1000, 100)])
    run("cut", whole, "--from", "250us", "--until", "650us", "-o", "part")
    assert len(events(tmp_path / "part", "name == sched_switch")) == 4


ERRORS = [
    ((), 2, "no trace given"),
    (("WHOLE", "WHOLE", "--from", "1ms", "-o", "part"), 2, "cut takes one trace at a time"),
    (("WHOLE", "--from", "1ms"), 2, "-o DIR is missing"),
    (("WHOLE", "-o", "part"), 2, "no range given"),
    (("WHOLE", "--from", "1s", "--until", "1ms", "-o", "part"), 2, "the range is empty"),
    (("WHOLE", "--from", "soon", "-o", "part"), 2, "not a time"),
    (("WHOLE", "--from", "5s", "-o", "part"), 1, "no events lie in that time"),
    (("WHOLE", "--from", "0", "-o", "WHOLE"), 1, "is there already and not an empty folder"),
    (("WHOLE", "--from", "0", "-o", "no/such/part"), 1, "cannot make the folder"),
    (("nothing", "--from", "0", "-o", "part"), 1, "nothing"),
]


@pytest.mark.parametrize("words, code, said", ERRORS, ids=[e[2] for e in ERRORS])
def test_what_cannot_be_cut_is_said(synth, run, tmp_path, words, code, said):
    whole = synth(CODES + "0us call 1\n1000us return\n")
    done = run("cut", *[str(whole) if w == "WHOLE" else w for w in words], code=code)
    assert said in done.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ["synth"]


def test_the_commands_of_the_page_work(krait, any_python, tmp_path):
    said = run_page("cut.md", krait, any_python, tmp_path)
    assert "wrote part (" in said["krait cut whole --from 10ms --until 60ms -o part"].stderr
    assert "50.00 ms from the first event" in said["krait info part"].stdout
