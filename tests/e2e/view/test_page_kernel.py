# SPDX-License-Identifier: Apache-2.0
"""The page of `krait view` on kernel traces without calls: several of them, each with its own lanes and its own begin."""

import json
import subprocess

import pytest
from browser import Page, ask, served
from kernel_made import begins, ends, switch
from kernel_made import write as write_kernel

DAY = 86400 * 10**9


def trace(folder, read_us, host="web", offset=0):
    """Thread 7 runs for 2 ms, of which it is in read() for a part, on CPU 0."""
    events = [switch(0, 0, 7), begins(100, "read"), ends(100 + read_us, "read"), switch(2000, 7, 0), switch(2500, 0, 9), switch(3000, 9, 0)]
    return write_kernel(folder, events, host=host, offset=offset)


@pytest.fixture
def open_pair(krait, chromium, tmp_path):
    made = []

    def show(**second):
        folders = [trace(tmp_path / "monday", 400), trace(tmp_path / "tuesday", 900, **second)]
        made.append(served(krait, *folders))
        link = made[-1].__enter__()
        page = Page(chromium.new_page(viewport={"width": 1280, "height": 800}))
        page.page.goto(link)
        return page.wait(), link, folders

    yield show
    for each in made:
        each.__exit__(None, None, None)


def heads(page):
    return [" ".join(text.split()[1:]) for text in page.page.locator(".lane.head").all_inner_texts()]


@pytest.mark.parametrize("host, place", [("web", "tuesday"), ("db", "tuesday of db")])
def test_two_kernel_traces_have_lanes_of_their_own(open_pair, host, place):
    page, link, _ = open_pair(host=host, offset=DAY)
    first = "monday of web" if host == "db" else "monday"
    assert heads(page) == [f"CPUs in {first}", f"Threads 2 in {first}", f"CPUs in {place}", f"Threads 2 in {place}"]
    assert [(m["recording"], m["host"], int(m["until"]) - int(m["begin"])) for m in ask(link, "trace")["machines"]] == [(0, "web", 3_000_000), (1, host, 3_000_000)]
    assert page.errors == []


def test_their_tables_are_those_of_krait_states(open_pair, krait):
    page, link, folders = open_pair(offset=DAY)
    tracks = [t for t in ask(link, "trace")["tracks"] if t["name"] == "system calls"]
    assert [t["machine"] for t in tracks] == [0, 1]
    for folder, track in zip(folders, tracks):
        (row,) = ask(link, "syscalls", tracks=track["id"])["rows"]
        said = json.loads(subprocess.run([krait, "states", "--by", "syscall", "--json", folder], capture_output=True, text=True, check=True).stdout)
        assert row[3] == said["syscalls"][0]["total_ns"]


def test_side_by_side_they_begin_together_and_what_differs_is_a_table(open_pair):
    page, _, _ = open_pair(offset=DAY)
    page.press("z")
    assert page.address().startswith("r=0,3000000")
    page.press("b")
    rows = {(row[0], row[1]): row[2:] for row in page.rows()}
    assert rows["read", "system call"][:5] == ["+500.0 us", "900.0 us", "400.0 us", "1", "1"]
    assert rows["on CPU", "threads"][0] == "\u2212500.0 us" and rows["on CPU, in the kernel", "threads"][0] == "+500.0 us"
    page.press("z")
    assert page.page.evaluate("() => window.krait.context.store.whole.span") == DAY + 3_000_000
    assert page.errors == []


def test_sessions_of_one_host_at_the_same_time_are_one_machine(open_pair):
    page, link, _ = open_pair(offset=1_000_000)
    assert ask(link, "trace")["machines"] == [] and heads(page) == ["CPUs", "Threads 2"]
    assert not page.page.locator("button", has_text="Align").is_visible()
