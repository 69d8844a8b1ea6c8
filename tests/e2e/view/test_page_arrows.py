# SPDX-License-Identifier: Apache-2.0
"""The arrows of the page of `krait view`: of the flows of a program, and between recordings side by side."""

from browser import Page, ask, opened, served
from kernel_made import switch, wake
from kernel_made import write as write_kernel

MAIN = """
process 5 python3
code 1 python app main app.py 1
thread 5 MainThread
0us call 1
10us flow 7
1000us return
thread 6 worker
"""
FLOWS = MAIN + """0us call 1
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


WATCH = "() => { window.arrows = []; krait.context.timeline.overlay.arrow = (context, ...ends) => { window.arrows.push(ends); }; }"
SELECT = "([track, begin, end]) => krait.context.store.selectCall({ track, func: 0, depth: 0, begin: BigInt(begin), end: BigInt(end), begins: 0, ends: 0 })"


def test_flows_of_the_selected_thread_are_arrows(krait, chromium, synth):
    """A flow goes on in another thread; from one place to the next in the same thread there is no arrow to see. All of the flow is there,
    if the selected thread has one of its places."""
    flow = [[5, 10_000, 6, 400_000], [6, 600_000, 7, 900_000]]
    with opened(krait, chromium, synth(FLOWS), "#r=0,1000000;p=details") as page:
        page.page.evaluate(WATCH)
        calls = {t["number"]: t["id"] for t in page.page.evaluate("() => krait.context.trace.tracks") if t["kind"] == "calls"}
        page.page.evaluate(SELECT, [calls[5], 0, 1_000_000])
        page.press("Shift")
        assert page.page.evaluate(DRAWN) == flow
        width = page.page.evaluate("() => document.querySelector('canvas.lanes').clientWidth")
        x0, y0, x1, y1 = page.page.evaluate("() => window.arrows[window.arrows.length - 2]")
        assert (round(x0), round(x1)) == (round(0.01 * width), round(0.4 * width)) and y1 - y0 > 20  # from its lane to the next one
        page.page.evaluate(SELECT, [calls[7], 0, 1_000_000])
        page.press("Shift")
        assert page.page.evaluate(DRAWN) == flow


WORK = """
process 5 python3
code 1 python app main app.py 1
thread 5 MainThread
0us call 1
10us submit 1 1
20us submit 2
500us result 1
900us result 2
1000us return
thread 6 worker
0us call 1
100us start 1
310us done 1
400us start 2
700us done 2
1000us return
exit 0 0
"""


def test_a_selected_call_has_the_arrows_of_its_work_and_no_others(krait, chromium, synth):
    """Their ends are where they are in the recording, also if these are not in the selected time or not on the screen."""
    one, two = [[5, 10_000, 6, 100_000], [6, 310_000, 5, 500_000]], [[5, 20_000, 6, 400_000], [6, 700_000, 5, 900_000]]
    with opened(krait, chromium, synth(WORK), "#r=0,1000000;p=details") as page:
        page.page.evaluate(WATCH)
        calls = {t["number"]: t["id"] for t in page.page.evaluate("() => krait.context.trace.tracks") if t["kind"] == "calls"}

        def drawn(thread, begin, end):
            page.page.evaluate(SELECT, [calls[thread], begin, end])
            page.press("Shift")
            return sorted(page.page.evaluate(DRAWN))

        assert drawn(6, 110_000, 300_000) == one  # between start and done
        assert drawn(6, 410_000, 600_000) == two
        assert drawn(6, 320_000, 390_000) == []  # between two pieces of work
        assert drawn(5, 5_000, 15_000) == one  # submits it
        assert drawn(5, 480_000, 510_000) == one  # reads its result
        assert drawn(5, 600_000, 800_000) == []  # what others do meanwhile is not its work
        assert drawn(6, 0, 1_000_000) == sorted([*one, *two])
        page.page.evaluate("([at]) => krait.context.store.setRange(BigInt(at), 150000)", [300_000])
        page.press("Shift")
        assert sorted(page.page.evaluate(DRAWN)) == [two[0], one[1]]  # those that are on the screen
        down, up = sorted(page.page.evaluate("() => window.arrows.slice(-2)"))
        upper, lower = page.page.evaluate("""() => krait.context.trace.tracks.filter((t) => t.name === 'marks').map((t) => {
          const { lane, part } = krait.context.timeline.lanes.of(t.id);
          return [lane.top + part.top, lane.top + part.top + part.rowHeight];
        })""")
        assert down[0] < 0 and (down[1], down[3]) == (upper[1], lower[0])  # from below the marks of the upper lane, to above those of the lower one
        assert (up[1], up[3]) == (lower[0], upper[1])


def test_the_details_of_a_call_lead_to_the_other_ends_of_its_work(krait, chromium, synth):
    with opened(krait, chromium, synth(WORK), "#r=0,1000000;p=details") as page:
        calls = {t["number"]: t["id"] for t in page.page.evaluate("() => krait.context.trace.tracks") if t["kind"] == "calls"}
        page.page.evaluate(SELECT, [calls[6], 0, 1_000_000])
        page.press("Shift")
        rows = page.page.locator(".flows tbody tr")
        first, *_, last = ([cell.inner_text() for cell in row.locator("td").all()] for row in rows.all())
        assert rows.count() == 4
        assert first == ["90.00 us", "MainThread 5 at 0.000010000 s", "worker 6 at 0.000100000 s", "app.main"]
        assert last == ["200.0 us", "worker 6 at 0.000700000 s", "MainThread 5 at 0.000900000 s", "-"]
        rows.first.get_by_role("button", name="MainThread 5").click()
        page.press("Shift")
        assert page.page.evaluate("() => krait.context.store.detail.track") == calls[5]


SILENT = MAIN + "300us flow 7\n"


def test_an_end_that_has_no_lane_tells_what_it_is_and_why(krait, chromium, synth):
    """Nothing of the other thread was recorded but the flow: the page shows when it was."""
    with opened(krait, chromium, synth(SILENT), "#r=0,100000;p=details") as page:
        (calls,) = [t["id"] for t in page.page.evaluate("() => krait.context.trace.tracks") if (t["kind"], t["number"]) == ("calls", 5)]
        page.page.evaluate(SELECT, [calls, 0, 1_000_000])
        page.press("Shift")
        page.page.locator(".flows").get_by_role("button", name="worker 6").click()
        told = page.page.locator(".flows [role=status]", has_text="worker 6")
        told.wait_for()
        said, why = told.inner_text().split(": ")
        assert said == "worker 6, process python3 5, at 0.000300000 s" and why in ("it has no lane, as none of its calls and states are in the recording", "what it did then was not recorded")
        begin, span = page.page.evaluate("() => [Number(krait.context.store.view.range.from), krait.context.store.view.range.span]")
        assert begin <= 300_000 <= begin + span and page.page.evaluate("() => Number(krait.context.store.cursor)") == 300_000


def test_details_tell_flows_apart_from_thousands_of_wakeups(krait, chromium, both):
    calls = "process 5 python3\ncode 1 python app main app.py 1\n" + "".join(f"thread {tid} T{tid}\n0us call 1\n{us}us flow 7\n99ms return\n" for tid, us in ((5, 10), (7, 250)))
    events = [switch(0, 0, 5)]
    for us in range(0, 22_000, 20):
        events += [wake(us + 5, 7), switch(us + 10, 5, 7, state=1), wake(us + 15, 5), switch(us + 20, 7, 5, state=1)]
    with opened(krait, chromium, both(calls, [*events, switch(90_000, 5, 0)]), "#r=0,90000000;p=details;c=0,0,0") as page:
        page.page.wait_for_selector(".flows")
        assert page.page.locator("h3", has_text="Work and flows").inner_text() == "Work and flows"
        assert page.page.locator(".flows tbody tr").count() == 1


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
        assert drawn(1, 21_000, 26_000) == [woke]  # in the selected time
        assert drawn(1, 21_000, 27_000) == sorted([woke, flow])
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


def test_a_flow_on_its_way_does_not_end_a_wait(krait, chromium, both):
    """7 passes something on, and 5 takes it later; 6 wakes 5 meanwhile."""
    calls = "process 5 python3\ncode 1 python app main app.py 1\n" + "".join(f"thread {tid} T{tid}\n0us call 1\n{flow}300us return\n" for tid, flow in ((5, "250us flow 7\n"), (6, ""), (7, "10us flow 7\n")))
    events = [switch(0, 0, 7), switch(50, 7, 5, state=1), switch(100, 5, 6, state=1), wake(150, 5), switch(170, 6, 5, state=1), switch(300, 5, 0)]
    with opened(krait, chromium, both(calls, events), "#r=0,300000;p=details") as page:
        states = {t["number"]: t["id"] for t in page.page.evaluate("() => krait.context.trace.tracks") if (t["of"], t["kind"]) == ("thread", "states") and t["name"] != "GIL"}
        page.page.evaluate(SELECT, [states[5], 100_000, 150_000])
        page.press("Shift")
        assert [7, 10_000, 5, 250_000] not in page.page.evaluate(DRAWN) and [6, 150_000, 5, 170_000] in page.page.evaluate(DRAWN)
        page.press("[")
        assert page.page.evaluate("() => krait.context.trace.tracks[krait.context.store.detail.track].number") == 6
