# SPDX-License-Identifier: Apache-2.0
"""The arrows of the page of `krait view`: of the flows of a program, and between recordings side by side."""

from browser import Page, ask, opened, served
from kernel_made import switch, wake
from kernel_made import write as write_kernel

FLOWS = """
process 5 python3
code 1 python app main app.py 1
thread 5 MainThread
0us call 1
10us flow 7
1000us return
thread 6 worker
0us call 1
400us flow 7
600us flow 7
1000us return
thread 7 other
0us call 1
900us flow 7
1000us return
exit 0 0
"""
DRAWN = "() => krait.context.timeline.overlay.wakeups.map((w) => [krait.context.trace.tracks[w.by].number, Number(w.at), krait.context.trace.tracks[w.to].number, Number(w.runs)])"


def test_flows_of_the_selected_thread_are_arrows(krait, chromium, synth):
    """A flow goes on in another thread; from one place to the next in the same thread there is no arrow to see."""
    with opened(krait, chromium, synth(FLOWS), "#r=0,1000000;p=details") as page:
        page.page.evaluate("() => { window.arrows = []; krait.context.timeline.overlay.arrow = (context, ...ends) => { window.arrows.push(ends); }; }")
        calls = {t["number"]: t["id"] for t in page.page.evaluate("() => krait.context.trace.tracks") if t["kind"] == "calls"}
        page.page.evaluate("(track) => krait.context.store.selectCall({ track, func: 0, depth: 0, begin: 0n, end: 1000000n, begins: 0, ends: 0 })", calls[5])
        page.press("Shift")
        assert page.page.evaluate(DRAWN) == [[5, 10_000, 6, 400_000]]
        width = page.page.evaluate("() => document.querySelector('canvas.lanes').clientWidth")
        x0, y0, x1, y1 = page.page.evaluate("() => window.arrows[window.arrows.length - 1]")
        assert (round(x0), round(x1)) == (round(0.01 * width), round(0.4 * width)) and y1 - y0 > 20  # from its lane to the next one
        page.page.evaluate("(track) => krait.context.store.selectCall({ track, func: 0, depth: 0, begin: 0n, end: 1000000n, begins: 0, ends: 0 })", calls[7])
        page.press("Shift")
        assert page.page.evaluate(DRAWN) == [[6, 600_000, 7, 900_000]]


TASKS = """
process 5 python3
code 1 python app main app.py 1
task 1 1 Task-1
task 2 1 second
task 3 1 third
thread 5 MainThread
1us call 1
10us run 2
12us flow 7
15us leave 2 1 4096
20us run 1
25us wake 4096
27us flow 7
28us flow 8
30us leave 1 2 2
40us run 2
42us flow 9
50us leave 2 3
60us run 1
70us leave 1 3
75us flow 9
99us return
thread 6 worker
0us call 1
45us flow 8
90us return
exit 0 0
"""


def test_a_selected_task_has_arrows_of_its_waits_wakeups_and_flows(krait, chromium, synth):
    with opened(krait, chromium, synth(TASKS), "#r=0,100000;p=details") as page:
        tasks = {t["number"]: t["id"] for t in page.page.evaluate("() => krait.context.trace.tracks") if (t["of"], t["kind"]) == ("task", "states")}

        def drawn(task, begin=0, end=100_000):
            page.page.evaluate("() => { window.arrows = []; krait.context.timeline.overlay.arrow = (context, ...ends) => { window.arrows.push(ends); }; }")
            page.page.evaluate("([track, begin, end]) => krait.context.store.selectCall({ track, func: 0, depth: 0, begin: BigInt(begin), end: BigInt(end), begins: 0, ends: 0 })", [tasks[task], begin, end])
            page.press("Shift")
            return sorted(page.page.evaluate(DRAWN))

        flow, work, woke, waits, ended = [2, 12_000, 1, 27_000], [1, 28_000, 6, 45_000], [1, 25_000, 2, 40_000], [1, 30_000, 2, 30_000], [2, 50_000, 1, 60_000]
        assert drawn(1) == sorted([flow, work, woke, waits, ended])
        assert len(page.page.evaluate("() => window.arrows")) % 5 == 0  # each has two ends at different heights
        assert drawn(2) == sorted([flow, woke, waits, ended, [2, 42_000, 5, 75_000]])  # the last leads out of all tasks
        assert drawn(3) == []
        assert drawn(1, 21_000, 26_000) == sorted([woke, flow])  # in the selected time
        assert page.errors == []


def test_arrows_of_recordings_side_by_side_are_at_the_times_of_their_lanes(krait, chromium, tmp_path):
    """The second recording is of the next day: 7 wakes 5 after 150 us."""
    events = [switch(0, 0, 5), wake(50, 7), switch(100, 5, 7, state=1), wake(150, 5), switch(170, 7, 5, state=1), switch(300, 5, 0)]
    folders = [write_kernel(tmp_path / day, events, offset=i * 86400 * 10**9) for i, day in enumerate(("monday", "tuesday"))]
    with served(krait, *folders) as link:
        page = Page(chromium.new_page(viewport={"width": 1280, "height": 800}))
        page.page.goto(link)
        page.wait().press("z")
        track = [t for t in ask(link, "trace")["tracks"] if t["of"] == "thread" and t["kind"] == "states" and t["number"] == 5][1]
        at = 86400 * 10**9 + 120_000
        page.page.evaluate("([track, at]) => { krait.context.store.selectCall({ track, func: 0, depth: 0, begin: BigInt(at), end: BigInt(at) + 90000n, begins: 0, ends: 0 }); }", [track["id"], at])
        page.press("Shift")
        assert page.page.evaluate(DRAWN) == [[7, 86400 * 10**9 + 150_000, 5, 86400 * 10**9 + 170_000]]
        x = page.page.evaluate("""() => {
          const canvas = document.querySelector('canvas.lanes'), { wakeups: [arrow] } = krait.context.timeline.overlay;
          return krait.context.timeline.overlay.x(arrow.runs, arrow.to, krait.context.timeline.frame()) / canvas.clientWidth;
        }""")
        assert abs(x - 170 / 300) < 0.01
        assert page.errors == []
        page.page.close()
