# SPDX-License-Identifier: Apache-2.0
"""Where the page of `krait view` shows only a part of something, it says how much more there is."""

import re

import pytest
from kernel_made import switch, wake

FUNCTIONS, THREADS = 250, 63
CODES = "code 1 python app main app.py 1\n" + "".join(f"code {i + 2} python app func{i} app.py {i}\n" for i in range(FUNCTIONS))
CALLEES = "".join(f"{1000 * i + 10}us call {i + 2}\n{1000 * i + 11 + i}us return\n" for i in range(FUNCTIONS))
OTHERS = "".join(f"thread {100 + i} func-thread-{i}\n0 call 1\n1ms return\n" for i in range(THREADS))
MANY = f"process 5 python3\n{CODES}thread 5 MainThread\n0 call 1\n{CALLEES}300ms return\n{OTHERS}exit 0 0\n"
CALLS = "process 5 python3\ncode 1 python app main app.py 1\nthread 5 MainThread\n0us call 1\n10000us return\nexit 0 0\n"


def grows(page, rows, shown, rest, whole):
    """A list of `shown` rows says that there are `rest` more, and has the `whole` number once the reader wants it."""
    assert page.page.locator(rows).count() == shown
    page.page.get_by_text(f"and {rest}", exact=False).get_by_role("button", name="Show all").click()
    page.page.wait_for_function("([rows, whole]) => document.querySelectorAll(rows).length === whole", arg=[rows, whole])
    assert page.page.get_by_text(f"and {rest}").count() == 0


def test_all_callees_of_a_call_are_there_and_the_longest_come_first(open_page, synth):
    page = open_page(synth(MANY), "#r=0,300000000;p=details;c=0,0,0")
    rows = ".callees tbody tr"
    first = page.page.locator(rows).first.inner_text()
    assert re.match(rf"{FUNCTIONS}\.0 us\s", first) and first.endswith(f"app.func{FUNCTIONS - 1}")
    grows(page, rows, 40, f"{FUNCTIONS - 40} more callees", FUNCTIONS)


def test_a_search_says_that_there_is_more(open_page, synth):
    page = open_page(synth(MANY))
    page.press("/")
    page.page.keyboard.type("func")
    page.page.locator("dialog[open]").get_by_text(f"and {THREADS - 60} more threads, {FUNCTIONS - 60} more functions: type more of the name").wait_for()
    assert page.page.locator("#choices li").count() == 120
    page.page.keyboard.type("24")
    page.page.wait_for_function("() => document.querySelectorAll('#choices li').length === 11")  # 24, 240 to 249
    assert page.page.locator("dialog[open]").get_by_text("more of the name").count() == 0


def test_a_long_function_is_shown_to_its_end(open_page, synth, tmp_path):
    source = tmp_path / "app.py"
    source.write_text("x = 1\n" * 99 + "def main():\n" + "    x = 2\n" * 400 + "    return 'end'\n")
    page = open_page(synth(CALLS.replace("app.py 1", f"{source} 100")), "#r=0,10000000;p=details;c=0,0,0")
    page.page.locator("summary:visible").click()
    page.page.wait_for_selector("pre.source")
    grows(page, ".source > div", 60, f"{501 - 156} more lines to the end of the file", 501 - 96)
    assert page.page.locator(".source .here").inner_text().endswith("def main():")
    assert page.page.locator(".source > div").last.inner_text().endswith("return 'end'")


def test_all_rows_of_a_critical_path_can_be_seen(open_page, both):
    """Thread 5 waits for a chain of threads, of which each wakes the one before it."""
    chain = [*range(30, 6, -1), 5]
    events = [switch(i, tid, to, state=int(tid > 0)) for i, (tid, to) in enumerate(zip([0, *chain], chain))]  # all begin to wait, but 5
    events += [wake(90, chain[0]), switch(100, 5, chain[0], state=1)]
    for i, (tid, to) in enumerate(zip(chain, chain[1:])):
        events += [wake(150 + 100 * i, to), switch(200 + 100 * i, tid, to, state=1)]
    end = 200 + 100 * len(chain)
    page = open_page(both(CALLS, [*events, switch(end, 5, 0)]), "#r=0,10000000;p=details;c=0,0,0;k=1")
    whole = page.page.evaluate("() => new Set(krait.context.timeline.overlay.path.map((s) => `${s.tid} ${s.kind}`)).size")
    assert whole > 20
    grows(page, ".path tbody tr", 12, f"{whole - 12} more rows", whole)


def test_arrows_that_are_not_drawn_are_counted(open_page, both):
    """Threads 5 and 7 wake each other, 300 times each. Those that are drawn are of the whole time."""
    events = [switch(0, 0, 5)]
    for i in range(300):
        events += [wake(20 * i + 5, 7), switch(20 * i + 10, 5, 7, state=1), wake(20 * i + 15, 5), switch(20 * i + 20, 7, 5, state=1)]
    page = open_page(both(CALLS, [*events, switch(7000, 5, 0)]), "#r=0,10000000;p=details;c=0,0,0")
    drawn = page.page.evaluate("() => krait.context.timeline.overlay.wakeups.map((w) => Number(w.at) / 1000)")
    assert 50 <= len(drawn) <= 200
    assert max(later - at for at, later in zip([0, *drawn], [*drawn, 6000])) <= 400, drawn
    assert page.page.locator(".arrows-rest").inner_text() == f"{len(drawn)} of 600 arrows are drawn; zoom in to see the others"
    page.page.evaluate("() => krait.context.store.setRange(0n, 1000000)")
    page.page.wait_for_function("() => document.querySelector('.arrows-rest').textContent === ''")
    page.wait()
    assert page.page.evaluate("() => krait.context.timeline.overlay.wakeups.length") == pytest.approx(100, abs=2)
