# SPDX-License-Identifier: Apache-2.0
"""Tasks of asyncio in krait view: a lane each, coloured by what the task does."""

import re
import subprocess

import pytest
from browser import ask, opened, served
from conftest import verb_json
from package import PACKAGE
from svg import lanes, texts, view  # noqa: F401  (view: a fixture)
from tasks_made import GREENLETS, TASKS

PROGRAM = """
import asyncio
async def waiter(lock):
    async with lock:
        await asyncio.sleep(0.02)
async def main():
    lock = asyncio.Lock()
    tasks = [asyncio.get_running_loop().create_task(waiter(lock)) for _ in range(3)]
    tasks[0].set_name("<first & foremost>")
    await asyncio.gather(*tasks)
asyncio.run(main())
"""


@pytest.mark.few_pythons
def test_each_task_has_a_lane(record, krait, python, tmp_path):
    trace = record.text(python, PROGRAM).path
    done = subprocess.run([krait, "view", trace, "--svg", tmp_path / "t.svg"], capture_output=True, text=True)
    assert done.returncode == 0 and re.search(r"1 thread, \d+ tasks", done.stderr), done.stderr
    svg = (tmp_path / "t.svg").read_text()
    lanes = re.findall(r'<text class="name"[^>]*>([^<]*)', svg)
    assert any(lane.startswith("&lt;first &amp;") and lane.endswith("&gt; waiter") for lane in lanes)  # the name is shortened
    assert sum(lane.startswith("waiter Task-") for lane in lanes) == 2
    assert {"timer", "lock", "running"} <= set(re.findall(r">([^<>]+)</text>", svg))


LOOPS = """
import asyncio, krait, sys, threading
async def sleeps(name):
    for _ in range(3):
        with krait.span(name): await asyncio.sleep(0.01)
async def main(name):
    task = asyncio.get_running_loop().create_task(sleeps(name))
    task.set_name(f"{name}-task")
    await task
thread = threading.Thread(target=lambda: asyncio.run(main("other")), name="Other")
thread.start()
asyncio.run(main("first"))
thread.join()
"""


def test_the_lanes_of_one_threads_tasks_have_their_states(record, run, krait, any_python, view):  # noqa: F811
    trace = record.text(any_python, LOOPS, env=PACKAGE).path
    for options, names in ((["--thread", "Other"], {"other"}), (["--thread", "MainThread"], {"first"}), (["--process", "*python*"], {"first", "other"}), ([], {"first", "other"})):
        found = {name: parts for name, parts in lanes(view(trace, *options)[0]).items() if "-task" in name}
        assert {name.split("-")[0] for name in found} == names, options
        for parts in found.values():
            assert {"task", "spans"} <= set(parts) and any("timer" in box[3] for box in parts["task"]), options


MANY = """
import asyncio
async def long(): await asyncio.sleep(0.02)
async def short(): await asyncio.sleep(0)
async def main():
    await asyncio.gather(*([long() for _ in range(7)] + [short() for _ in range(50)]))  # each long one begins before the short ones, and ends after them
asyncio.run(main())
"""


def test_a_picture_counts_all_tasks_and_draws_those_that_took_most_time(record, krait, any_python, view):  # noqa: F811
    trace = record.text(any_python, MANY).path

    def tasks_of(*span):
        return sum(row["tasks"] for row in verb_json(krait, "report", trace, "--by", "task", *span)["tasks"])

    for options, kept in ((["--limit", "9"], 8), ([], 39), (["--limit", "0"], None)):
        root, said = view(trace, *options)
        all_tasks = tasks_of()
        assert all_tasks >= 58 and f"1 thread, {all_tasks} tasks, " in said and any(f" in 1 thread, {all_tasks} tasks " in text for text in texts(root))
        notes = [text for text in texts(root) if "not drawn" in text]
        assert notes == ([f"{all_tasks - kept} tasks that took less time, waits included, not drawn: --limit"] if kept else [])
        drawn = [name for name in lanes(root) if "Task-" in name]
        assert len(drawn) == (kept or all_tasks) and sum(name.startswith("long") for name in drawn) == 7 and any(name.startswith("main") for name in drawn)

    begins = [row["begin_ns"] for row in verb_json(krait, "intervals", trace, "--call", "long", "--list")["list"]]
    part = ["--until", f"{min(begins) / 1e9:.9f}s"]  # before the others begin
    root, said = view(trace, *part)
    assert tasks_of(*part) < 58 and f"1 thread, {tasks_of(*part)} task" in said and sum("Task-" in name for name in lanes(root)) == tasks_of(*part)


def test_threads_and_tasks_that_are_not_drawn_are_counted_apart(record, any_python, view):  # noqa: F811
    root, said = view(record.text(any_python, LOOPS, env=PACKAGE).path, "--limit", "1")
    tasks = int(re.search(r"\b2 threads, (\d+) tasks, ", said)[1])
    assert "1 thread with fewer calls not drawn: --limit" in texts(root) and f"{tasks} tasks that took less time, waits included, not drawn: --limit" in texts(root)


def test_the_page_has_them_below_their_threads(record, krait, any_python, chromium):
    trace = record.text(any_python, PROGRAM).path
    with opened(krait, chromium, trace) as page:
        page.page.locator(".fold").nth(1).click()  # the thread's calls
        page.press("Shift")
        titles = page.page.locator(".lane .title").all_inner_texts()
        labels = page.page.locator(".lane").evaluate_all("(lanes) => lanes.map((lane) => lane.getAttribute('aria-label'))")
        assert titles[1] == "MainThread" and any(label.startswith("<first & foremost> waiter") for label in labels)  # the title is shortened
        assert sum(title.startswith("waiter Task-") for title in titles) == 2
        assert page.errors == []


@pytest.mark.parametrize(
    "task, at, told, goes_to",
    [
        (2, 18, {"woken by": "main Task-1"}, (1, "running")),
        (2, 30, {"woken by": "main Task-1"}, (1, "running")),
        (1, 35, {"waits for": "second main", "woken by": "second main"}, (2, "running")),
        (1, 65, {}, None),
    ],
    ids=["waits for a future", "ready", "waits for a task", "running"],
)
def test_details_of_a_state_say_who_woke_the_task(krait, chromium, synth, task, at, told, goes_to):
    check_details(krait, chromium, synth(TASKS), task, at, told, goes_to)


@pytest.mark.parametrize("at, told, goes_to", [(25, {"woken by": "second main"}, (2, "running")), (15, {"woken by": "second main"}, (2, "running")), (5, {}, None)], ids=["running", "waits", "the first"])
def test_details_of_a_greenlet_say_who_switched_to_it(krait, chromium, synth, at, told, goes_to):
    check_details(krait, chromium, synth(GREENLETS), 1, at, told, goes_to)


def check_details(krait, chromium, folder, task, at, told, goes_to):
    with served(krait, folder) as link:
        tracks = ask(link, "trace")["tracks"]
    (track,) = [t["id"] for t in tracks if (t["of"], t["kind"], t["number"]) == ("task", "states", task)]
    with opened(krait, chromium, folder, f"#p=details;c={track},0,{at * 1000}") as page:
        titles, texts = page.page.locator(".details dt").all_inner_texts(), page.page.locator(".details dd").all_inner_texts()
        facts = dict(zip(titles, texts))
        assert {name: text for name, text in facts.items() if name in ("waits for", "woken by")} == told and "duration" in facts
        page.press("[")
        chosen = page.page.evaluate("() => krait.context.store.view.call")
        if goes_to:
            assert tracks[chosen["track"]]["number"] == goes_to[0] and page.text(".details h2") == goes_to[1]
        else:
            assert chosen["track"] == track
