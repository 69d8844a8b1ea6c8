# SPDX-License-Identifier: Apache-2.0
"""The page of `krait view` in a browser: what a click shows is what the other verbs say."""

import json
import re
import subprocess
import tarfile
from pathlib import Path

import pytest
from browser import Page, ask, served
from conftest import verb_json
from kernel_made import switch, wake
from wall_made import SLEEP_CALLS, SLEEP_EVENTS

HOSTILE = "%3Cimg%20src=x%20onerror=window.hit=1%3E</script><script>window.hit=1</script>%01%e2%80%ae"
# main 100 ms: load 60 ms with a hundred calls of step, then sleep 30 ms.
STEPS = "".join(f"{10_000_000 + i * 500_000} call 3\n{10_000_000 + i * 500_000 + 1000 * (i + 1)} return\n" for i in range(100))
TRACE = f"""
process 5 python3 1 /usr/bin/python3%20app.py
code 1 python app main app.py 1
code 2 python app load app.py 10
code 3 python app.core step core.py 20
code 4 c time sleep - 0
code 5 python {HOSTILE} {HOSTILE} /srv/{HOSTILE} 3
thread 5 MainThread
0 call 1
5ms call 2
{STEPS}65ms return
66ms ccall 4
96ms creturn
97ms call 5
99ms return
100ms return
exit 0 0
"""


@pytest.fixture
def open_page(krait, chromium, synth):
    """open_page(script or folder, hash="") in a window of 1280 pixels, and the link of its server."""
    made = []

    def show(script=TRACE, hash=""):
        folder = synth(script) if isinstance(script, str) else script
        server = served(krait, *(folder if isinstance(folder, list) else [folder]))
        link = server.__enter__()
        context = chromium.new_context(viewport={"width": 1280, "height": 800})
        page = Page(context.new_page())
        made.append((server, context, page))
        page.page.goto(link + hash)
        return page.wait(), link, folder

    yield show
    for server, context, page in made:
        context.close()
        server.__exit__(None, None, None)
        assert page.errors == []


def at(page, time_ms, depth, whole_ms=100):
    """Where a call stands on the screen, when the whole recording is shown."""
    box = page.page.locator("canvas.lanes").bounding_box()
    return box["x"] + box["width"] * time_ms / whole_ms, box["y"] + 26 + 3 + depth * 16 + 7


def test_the_function_table_is_that_of_report(open_page, krait):
    page, _, folder = open_page()
    report = json.loads(subprocess.run([krait, "report", folder, "--json"], capture_output=True, text=True, check=True).stdout)
    rows = page.rows()
    named = [f"{f['module']}.{f['name']}" + (" (C)" if f["kind"] == "c" else "") for f in report["functions"]]
    assert [row[0] for row in rows][:3] == named[:3]
    assert rows[0] == ["app.load", "54.95 ms", "55.0%", "60.00 ms", "1", *["60.00 ms"] * 5]


def test_a_click_selects_the_call_and_says_what_it_did(open_page):
    page, link, _ = open_page()
    page.page.mouse.click(*at(page, 30, 1))
    page.press("Shift")
    text = page.text(".details")
    assert text.startswith("app.load") and "duration\n60.00 ms" in text and "begin\n0.005000000 s" in text
    assert "app.core.step" in text and re.search(r"5\.050 ms\s+8\.4%\s+100", text)
    call = ask(link, "call", track=0, at=30_000_000, depth=1)
    assert (call["begin"], call["end"], call["self"]) == ("5000000", "65000000", 60_000_000 - 5_050_000)


def test_keys_go_from_call_to_call(open_page):
    page, *_ = open_page()
    page.page.mouse.click(*at(page, 30, 1))
    page.press("ArrowRight")
    assert page.text(".details h2") == "time.sleep (C)"
    page.press("ArrowUp")
    assert page.text(".details h2") == "app.main"
    page.press("ArrowDown")
    assert page.text(".details h2") == "app.load"
    page.press("ArrowDown", ".", ".", ",")
    assert page.text(".details h2") == "app.core.step" and "0.010500000 s" in page.text(".details")


def test_the_finder_has_every_call_and_its_slowest_first(open_page):
    page, *_ = open_page()
    page.press("/")
    page.page.keyboard.type("core.step")
    page.pause()
    page.press("Enter")
    rows = page.rows()
    assert page.text(".note").startswith("100 calls in the range")
    assert [row[0] for row in rows[:3]] == ["100.0 us", "99.00 us", "98.00 us"]
    page.page.locator(".table-rows .row").first.click()
    page.press("Shift")
    assert "c=0,2,59500000" in page.address()


def test_a_part_of_the_histogram_lights_up_those_calls_and_is_in_the_address(open_page):
    page, link, _ = open_page(hash="#r=0,100000000;p=finder;n=4")
    assert page.text(".note .actions") == "Slowest: 100.0 us\nFastest: 1.000 us"
    box = page.page.locator("canvas.histogram").bounding_box()
    page.page.mouse.move(box["x"] + box["width"] - 2, box["y"] + 40)
    page.page.mouse.down()
    page.page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + 40, steps=3)
    page.page.mouse.up()
    page.press("Shift")
    low, high = (int(n) for n in re.search(r"u=(\d+),(\d+)", page.address()).groups())
    wanted = [n for n in range(1, 101) if low <= 1000 * n <= high]
    assert 2 < len(wanted) < 60 and page.text(".note").count(f"{len(wanted)} calls of")
    page.page.get_by_role("button", name="Fastest").click()
    page.press("Shift")
    assert f"c=0,2,{10_000_000 + (wanted[0] - 1) * 500_000}" in page.address()
    page.page.goto("about:blank")
    page.page.goto(link + f"#r=10000000,1000000;p=finder;n=4;u=1500,{10**9}")
    page.wait().press("Shift")
    assert page.text(".note").startswith("1 call of") and page.page.evaluate(PIXELS_OF, [0x2D, 0x69, 0xD7, 0])  # a line below each


def test_the_browsers_back_goes_through_what_was_shown(open_page):
    page, *_ = open_page()
    page.press("w")
    zoomed = page.address()
    page.press("5")
    assert "p=states" in page.address()
    page.page.go_back()
    assert page.wait().address() == zoomed and page.page.locator("[role=tab][aria-selected=true]").inner_text() == "Functions"
    page.page.go_back()
    page.wait()
    assert page.page.evaluate("() => window.krait.context.store.view.range") == {"from": 0, "span": 100_000_000}
    page.page.go_forward()
    assert page.wait().address() == zoomed
    page.press("Control+z")
    assert page.address().startswith("r=0,100000000")


def test_without_a_mouse_arrows_begin_at_the_first_call(open_page):
    page, *_ = open_page()
    page.press("ArrowRight")
    assert page.text(".details h2") == "app.main"
    page.press("ArrowDown", "v")
    assert page.text(".details h2") == "app.load" and ";s=0,100000000" in page.address()


def test_a_link_has_the_way_of_the_flame_graph_and_the_place_among_the_lanes(open_page, synth):
    threads = "".join(f"thread {100 + i} t{i}\n0 call 1\n1ms return\n" for i in range(60))
    folder = synth(f"process 100 python3\ncode 1 python app main app.py 1\n{threads}exit 0 0\n")
    page, link, _ = open_page(folder, hash="#r=0,1000000;p=flame;w=callers;y=700")
    assert page.page.locator(".switch [aria-pressed=true]").inner_text() == "Callers"
    assert page.page.evaluate("() => document.querySelector('.scroller').scrollTop") == 700
    page.page.get_by_role("button", name="Callees").click()
    page.page.evaluate("() => { document.querySelector('.scroller').scrollTop = 300; }")
    page.pause()
    assert "w=" not in page.address() and "y=300" in page.address()


def test_zooming_is_undone_and_the_address_says_where_one_is(open_page):
    page, *_ = open_page()
    whole = "r=0,100000000;p=functions"
    page.press("w")
    zoomed = page.address()
    assert re.fullmatch(r"r=\d+,[\d.]+;p=functions", zoomed) and zoomed != whole
    page.press("Control+z")
    assert page.address() == whole
    page.press("Control+y")
    assert page.address() == zoomed


def test_a_link_opens_the_same_view(open_page):
    page, *_ = open_page(hash="#r=60000000,10000000;p=finder;n=5")
    assert page.page.locator("[role=tab][aria-selected=true]").inner_text() == "Finder"
    assert page.text(".finder-title h2") == "time.sleep (C)" and page.text(".note").startswith("1 call in the range")


def test_a_drag_selects_a_range_and_the_table_is_of_it(open_page):
    page, *_ = open_page()
    (x, y), (to, _) = at(page, 70, 0), at(page, 90, 0)
    page.page.mouse.move(x, y)
    page.page.mouse.down()
    page.page.mouse.move(to, y, steps=4)
    page.page.mouse.up()
    page.press("Shift")
    rows = page.rows()
    assert rows[0][0] == "time.sleep (C)" and rows[0][2] == "100.0%"
    assert {row[0] for row in rows} == {"time.sleep (C)", "app.main"}


def test_names_are_never_markup(open_page):
    page, *_ = open_page()
    page.page.mouse.move(*at(page, 98, 1))
    page.pause()
    page.page.mouse.click(*at(page, 98, 1))
    page.press("Shift", "?")
    assert page.page.evaluate("() => window.hit === undefined && document.images.length === 0 && document.scripts.length === 1")
    assert "<img src=x" in page.text(".details h2")


def test_every_panel_opens_by_its_key(open_page):
    page, *_ = open_page()
    for panel in "12345689":
        page.press(panel)
        assert page.page.locator("[role=tab][aria-selected=true]").get_attribute("title") == panel


def test_everything_has_a_name_for_screen_readers(open_page):
    page, *_ = open_page()
    nameless = page.page.evaluate(
        "() => [...document.querySelectorAll('button, input, canvas:not([aria-hidden]), [role=table]')]"
        ".filter((e) => !(e.textContent.trim() || e.getAttribute('aria-label') || e.title || [...(e.labels || [])].some((l) => l.textContent.trim()))).map((e) => e.outerHTML)"
    )
    assert nameless == []


def flame_box(page, row, share):
    """Clicks into a row of the flame graph, at a share of its width."""
    box = page.page.locator("canvas.flame").bounding_box()
    page.page.mouse.click(box["x"] + box["width"] * share, box["y"] + row * 18 + 9)
    page.press("Shift")


def test_a_frame_fills_the_width_and_crumbs_lead_back(open_page):
    page, *_ = open_page()
    page.press("4")
    flame_box(page, 2, 0.2)
    assert page.page.locator(".crumb").all_inner_texts() == ["all", "app.main", "app.load"]
    assert page.text(".crumbs").startswith("60.00 ms")
    page.page.locator(".crumb").nth(1).click()
    assert page.text(".crumbs").startswith("100.0 ms")


def test_the_flame_graph_and_the_histogram_go_by_keys(open_page):
    page, *_ = open_page()
    page.press("4")
    page.page.locator("canvas.flame").focus()
    page.press("ArrowDown", "ArrowDown", "ArrowDown")
    assert page.text(".panel-body .tip").startswith("app.load\n60.00 ms")
    page.press("ArrowRight")
    assert page.text(".panel-body .tip").startswith("time.sleep (C)\n30.00 ms")
    page.press("Enter")
    assert page.page.locator(".crumb").all_inner_texts() == ["all", "app.main", "time.sleep (C)"]
    page.page.goto(page.page.url.split("#")[0] + "#r=0,100000000;p=finder;n=4")
    page.page.reload()
    page.wait().page.locator("canvas.histogram").focus()
    page.press("ArrowLeft", "Shift+ArrowLeft")
    low, high = (int(n) for n in re.search(r"u=(\d+),(\d+)", page.address()).groups())
    assert page.text(".note").startswith(f"{sum(low <= 1000 * n <= high for n in range(1, 101))} calls of")
    page.press("Delete")
    assert page.text(".note").startswith("100 calls in the range")


def test_a_sandwich_has_callers_and_callees_of_what_is_clicked(open_page):
    page, *_ = open_page()
    page.press("4")
    page.page.get_by_role("button", name="Sandwich").click()
    assert "app.load: callers above, callees below" in page.text(".crumbs")  # it has the most time of its own
    flame_box(page, 2, 0.04)
    assert "app.core.step: callers above" in page.text(".crumbs") and page.text(".crumbs").startswith("5.050 ms")


def test_a_link_has_what_fills_the_flame_graph(open_page):
    page, link, _ = open_page()
    page.press("4")
    flame_box(page, 2, 0.2)
    focused = page.address()
    assert ";j=focus:%2F" in focused
    page.page.get_by_role("button", name="Sandwich").click()
    flame_box(page, 2, 0.04)
    middle = page.address()
    page.page.go_back()
    page.wait()
    page.page.goto("about:blank")
    page.page.goto(f"{link}#{focused}")
    assert page.wait().page.locator(".crumb").all_inner_texts() == ["all", "app.main", "app.load"]
    page.page.goto("about:blank")
    page.page.goto(f"{link}#{middle}")
    page.wait()
    assert "app.core.step: callers above" in page.text(".crumbs")


def test_a_link_has_what_is_searched_for(open_page):
    page, link, _ = open_page()
    page.press("/")
    page.page.keyboard.type("core.st")
    page.page.locator("#choices li").first.wait_for()
    assert ";l=search:core.st" in page.address()
    copied = page.address()
    page.press("Escape")
    assert "search" not in page.address()
    page.page.goto("about:blank")
    page.page.goto(f"{link}#{copied}")
    assert page.page.locator("dialog[open] #choices li").first.inner_text().startswith("app.core.step")
    assert page.page.locator("dialog[open] input").input_value() == "core.st"


def test_a_link_has_the_order_of_a_table_dark_and_light_and_the_height_of_the_panels(open_page):
    page, link, _ = open_page()
    light = page.page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    page.page.get_by_role("columnheader", name="calls").click()
    page.page.get_by_role("columnheader", name="calls").click()
    by_calls = [row[0] for row in page.rows()]
    page.page.get_by_role("separator", name="Height of the panels").focus()
    page.press("ArrowUp", "ArrowUp", "t")
    page.pause()
    height = page.page.locator(".panels").bounding_box()["height"]
    address = page.address()
    assert by_calls[-1] == "app.core.step" and ";j=functions:%2Bcalls" in address
    page.page.goto("about:blank")
    page.page.goto(f"{link}#{address}")
    page.wait()
    assert [row[0] for row in page.rows()] == by_calls
    assert page.page.get_by_role("columnheader", name="calls").get_attribute("aria-sort") == "ascending"
    assert abs(page.page.locator(".panels").bounding_box()["height"] - height) <= 1
    assert page.page.evaluate("() => getComputedStyle(document.body).backgroundColor") != light
    assert page.address() == address


def test_a_link_has_the_event_that_is_looked_at(open_page):
    page, link, _ = open_page(hash="#r=0,100000000;p=events")
    page.page.locator(".table-rows .row").nth(9).click()
    page.pause()
    address, chosen = page.address(), page.rows(".row.chosen")
    page.page.goto("about:blank")
    page.page.goto(f"{link}#{address}")
    page.wait()
    assert page.rows(".row.chosen") == chosen and len(chosen) == 1


def test_events_are_searched_from_one_to_the_next_wherever_they_are(open_page):
    page, *_ = open_page(hash="#r=0,1000000;p=events")
    words = page.page.get_by_label("Search events for a text")
    words.fill("app.core.step")
    words.focus()
    page.press("Enter")
    first = page.rows(".row.chosen")
    assert first[0][0] == "0.010000000 s" and "app.core.step" in first[0][3]
    page.press("Enter")
    assert page.rows(".row.chosen")[0][0] == "0.010500000 s"
    page.press("Shift+Enter", "Shift+Enter")  # before the first comes the last
    assert page.rows(".row.chosen")[0][0] == "0.059500000 s" and page.page.get_by_text("continued from the end").is_visible()
    words.fill("nobody has this")
    page.press("Enter")
    assert page.page.get_by_text('no event contains "nobody has this"').is_visible()


def test_a_comparison_is_in_the_address_and_ends(open_page):
    page, *_ = open_page(hash="#r=0,100000000;p=flame;b=65000000,35000000")
    compare = page.page.locator(".bar-row > button")
    assert compare.inner_text() == "End comparison" and "blue" in page.text(".crumbs")
    compare.click()
    page.press("Shift")
    page.pause()
    assert compare.inner_text() == "Compare" and "b=" not in page.address()


def test_two_recordings_are_compared_function_by_function(open_page, synth, krait):
    script = """
        process {pid} python3
        code 1 python app main app.py 1
        code 2 python app load app.py 10
        {more}
        thread {pid} MainThread
        {begin}ms call 1
        {middle}ms call 2
        {end}ms return
        {end}ms return
        exit 0 0
    """
    first = synth(script.format(pid=5, begin=0, middle=10, end=30, more=""), "first")
    second = synth(script.format(pid=6, begin=100, middle=110, end=170, more="code 3 python app other app.py 30").replace("170ms return", "150ms call 3\n170ms return\n170ms return", 1), "second")
    page, link, _ = open_page([first, second])
    page.press("b")
    assert "Press Compare" in page.text(".panel-body .empty")
    heads = page.page.locator(".lane.head .title")
    heads.nth(0).click()
    page.press("Shift")
    page.page.locator(".panel-body .bar-row > button").first.click()
    heads.nth(1).click()
    page.press("Shift")
    page.wait()
    rows = {row[0]: row[1:] for row in page.rows()}
    assert rows["app.load"] == ["+20.00 ms", "\u22129.5 pp", "40.00 ms", "20.00 ms", "1", "1", "60.00 ms", "20.00 ms", "60.00 ms", "20.00 ms"]
    assert rows["app.main"][:4] == ["0", "\u221219.0 pp", "10.00 ms", "10.00 ms"] and rows["app.other"][:4] == ["+20.00 ms", "+28.6 pp", "20.00 ms", "0 ns"]
    assert page.text(".panel-body .bar-row").endswith("3 functions, self +40.00 ms")
    assert ";b=0,170000000,p0" in page.address()
    page.press("4")
    assert "blue" in page.text(".crumbs")
    page.press("b")
    page.page.get_by_role("button", name="Show what was before").click()
    page.press("Shift")
    assert page.text(".chosen-lanes").startswith("only python3 5") and ";s=0,170000000" in page.address()


def test_a_folded_group_is_a_strip_of_how_many_are_busy(open_page, synth):
    threads = "".join(f"thread {5 + i} t{i}\n{10 * i}ms call 1\n{10 * i + 20}ms return\n" for i in range(4))
    page, *_ = open_page(f"process 5 python3\ncode 1 python app main app.py 1\n{threads}exit 0 0\n")
    page.page.locator(".lane.head .fold").first.click()
    page.press("Shift")
    box = page.page.locator("canvas.lanes").bounding_box()
    for time_ms, text in ((5, "1.00 of 4"), (15, "2.00 of 4"), (45, "1.00 of 4")):
        page.page.mouse.move(box["x"] + box["width"] * time_ms / 50, box["y"] + 13)
        page.pause()
        assert page.text(".timeline .tip").startswith(f"{text} threads are in a call")
    rows = page.page.evaluate(PIXELS_OF, [0x41, 0x9A, 0x68, 0])
    assert min(rows) < 6 and max(rows) > 18


def test_two_recordings_side_by_side_begin_together(open_page, synth, krait):
    script = "process {pid} python3 0 /bin/python3%20sort{pid}.py\ncode 1 python app main app.py 1\ncode 2 python app load app.py 10\nthread {pid} MainThread\n{begin} call 1\n{middle} call 2\n{end} return\n{end} return\nexit 0 0\n"
    first = synth(script.format(pid=5, begin="0ms", middle="10ms", end="30ms"), "first")
    second = synth(script.format(pid=6, begin="86400000ms", middle="86400005ms", end="86400045ms"), "second")  # a day later
    page, link, _ = open_page([first, second])
    assert page.text(".command") == "python3 sort5.py, python3 sort6.py"
    page.press("z")
    assert page.address().startswith("r=0,45000000") and page.text(".chosen-lanes") == f"only {first}"
    box = page.page.locator("canvas.lanes").bounding_box()
    top = page.page.locator(".lane:not(.head)").nth(1).bounding_box()["y"]
    page.page.mouse.click(box["x"] + box["width"] * 20 / 45, top + 3 + 16 + 7)
    page.press("Shift")
    assert page.text(".details h2") == "app.load" and "duration\n40.00 ms" in page.text(".details") and "86400.005000000 s" in page.text(".details")
    page.press("x")
    assert ";s=5000000,40000000" in page.address()
    page.press("1")
    assert [row[:3] for row in page.rows()] == [["app.load", "20.00 ms", "80.0%"], ["app.main", "5.000 ms", "20.0%"]]  # of the first, from 5 ms on
    page.page.locator(".lane.head .title").nth(1).click()
    page.press("Shift")
    assert [row[:3] for row in page.rows()] == [["app.load", "40.00 ms", "100.0%"], ["app.main", "0 ns", "0%"]]
    page.press("b")
    assert {row[0]: row[1] for row in page.rows()} == {"app.load": "+20.00 ms", "app.main": "\u22125.000 ms"}
    page.page.goto("about:blank")
    page.page.goto(link + "#r=0,45000000;p=compare;z=1")
    page.wait().press("Shift")
    rows = {row[0]: row[1:] for row in page.rows()}
    assert rows["app.load"][0] == "+20.00 ms" and rows["app.main"][:4] == ["\u22125.000 ms", "\u221222.2 pp", "5.000 ms", "10.00 ms"]
    page.press("z")
    assert page.page.evaluate("() => window.krait.context.store.whole.span") == 86400 * 10**9 + 45 * 10**6


def test_where_a_function_was_dropped_is_drawn(open_page):
    page, link, _ = open_page(TRACE.replace("exit 0 0", "40ms omit 3 12345\nexit 0 0"))
    assert [(d["at"], d["calls"]) for d in ask(link, "trace")["dropped"]] == [("40000000", 12345)]
    assert "dashed lines" in page.text(".warnings")
    box = page.page.locator("canvas.axis").bounding_box()
    page.page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + 10)
    page.pause()
    page.page.mouse.move(box["x"] + box["width"] * 0.4 + 1, box["y"] + 10)
    assert page.text(".timeline .tip") == "dropped by --max-overhead from here on:\napp.core.step, after 12,345 calls"
    page.page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 10)
    assert page.page.locator(".timeline .tip").is_hidden()
    assert len(page.page.evaluate(PIXELS_OF, [0xB3, 0x36, 0x2B, 0])) > 60


def test_where_what_is_recorded_was_changed_is_drawn(open_page):
    page, link, _ = open_page(TRACE.replace("exit 0 0", "40ms set include=app.*%20c-calls=off\nexit 0 0"))
    assert ask(link, "trace")["sets"] == [{"at": "40000000", "what": "include=app.* c-calls=off"}]
    assert "krait ctl set changed what is recorded, from 0.040000000 s on: include=app.* c-calls=off" in page.text(".warnings")
    box = page.page.locator("canvas.axis").bounding_box()
    page.page.mouse.move(box["x"] + box["width"] * 0.4 + 1, box["y"] + 10)
    assert page.text(".timeline .tip") == "krait ctl set: from here on is recorded\ninclude=app.* c-calls=off"
    page.page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 10)
    assert page.page.locator(".timeline .tip").is_hidden()
    assert len(page.page.evaluate(PIXELS_OF, [0xB3, 0x36, 0x2B, 0])) > 60


def states_track(link):
    """The thread's states as the page has to have them: an id."""
    return next(t["id"] for t in ask(link, "trace")["tracks"] if t["kind"] == "states" and t["of"] == "thread" and t["thread"] == 0)


def test_arrows_go_from_state_to_state(open_page, both):
    page, link, _ = open_page(both(SLEEP_CALLS, SLEEP_EVENTS))
    page.page.goto(link + f"#r=0,200000;p=details;c={states_track(link)},0,150000")
    page.page.reload()
    page.wait().press("Shift")
    assert page.text(".details h2") == "waits: timer"
    assert "duration\n27.00 us" in page.text(".details")
    page.press("ArrowRight")
    assert page.text(".details h2") == "ready: woken" and "3.000 us" in page.text(".details")
    page.press("ArrowLeft", "ArrowLeft")
    assert page.text(".details h2") == "on CPU, in the kernel" and "5.000 us" in page.text(".details")


def test_the_bar_of_states_is_the_split_of_report(open_page, both, krait):
    page, _, folder = open_page(both(SLEEP_CALLS, SLEEP_EVENTS))
    functions = verb_json(krait, "report", folder)["functions"]
    sleep = next(f for f in functions if f["name"] == "sleep")
    shares = {state: round(100 * ns / sleep["self_ns"], 1) for state, ns in sleep["wall_self_ns"].items() if ns}
    row = page.page.locator(".table-rows .row").filter(has_text="time.sleep")
    words = row.locator(".stacked").get_attribute("title")
    assert {float(share) for share in re.findall(r"([\d.]+)%", words)} == set(shares.values())
    widths = row.locator(".stacked i").evaluate_all("list => list.map((i) => parseFloat(i.style.width))")
    assert sum(widths) == pytest.approx(100)


def test_the_event_table_has_what_cat_prints(open_page, krait):
    page, _, folder = open_page(hash="#r=0,100000000;p=events")
    printed = subprocess.run([krait, "cat", "--json", folder], capture_output=True, text=True, check=True).stdout
    names = [json.loads(line)["event"] for line in printed.splitlines()]
    assert page.text(".message") == f"{len(names)} events"
    shown = page.page.locator(".events .row").evaluate_all("rows => rows.map((row) => row.children[1].textContent)")
    assert len(shown) > 5 and shown == names[: len(shown)]


def test_events_are_filtered_as_cat_filters_them(open_page, krait):
    page, _, folder = open_page(hash="#r=0,100000000;p=events")
    words = [krait, "cat", "--json", "--filter", 'name == "c:*"', folder]
    wanted = len(subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines())
    page.page.locator(".event-filter").fill('name == "c:*"')
    page.pause()
    assert page.text(".message") == f"{wanted} events"
    page.page.locator(".events .row").first.click()
    page.pause()
    assert len(page.page.evaluate(PIXELS_OF, PATH_COLOUR)) > 100  # a line where that event is
    page.page.locator(".event-filter").fill("name =")
    page.pause()
    assert "equality is written ==" in page.text(".message") and page.page.locator(".events .row").count() == 0
    assert all("400" in error for error in page.errors)  # the browser tells of the refused filter, and of nothing else
    page.errors.clear()


def shown_events(page):
    """(time, name) of the rows of the event table that are made, and how far they are from its top."""
    rows = page.page.locator(".events .row").evaluate_all("rows => rows.map((row) => [row.children[0].textContent, row.children[1].textContent])")
    return [(row[0], row[1]) for row in rows]


def test_any_place_of_the_event_table_is_reached(open_page, krait, synth):
    calls = "".join(f"{10 * i}us call 1\n{10 * i + 5}us return\n" for i in range(4000))
    folder = synth(f"process 5 python3\ncode 1 python app main app.py 1\nthread 5 MainThread\n{calls}exit 0 0\n")
    page, *_ = open_page(folder, hash="#r=0,40000000;p=events")
    assert page.text(".message").startswith("the first 500 of the range")
    page.page.locator(".place").fill("500")
    page.pause()
    assert shown_events(page)[0] == ("0.020000000 s", "python:call") or shown_events(page)[1][0].startswith("0.0200")
    page.page.locator(".place").fill("1000")
    page.pause()
    page.page.evaluate("() => { const list = document.querySelector('.events .table-rows'); list.scrollTop = list.scrollHeight; }")
    page.pause()
    assert shown_events(page)[-1][0] == "0.039995000 s"
    for _ in range(60):
        page.page.evaluate("() => { document.querySelector('.events .table-rows').scrollTop = 0; }")
        page.page.wait_for_timeout(60)
        if page.text(".message").endswith(" events"):
            break
    assert page.page.evaluate("() => document.querySelector('.events .table-rows').scrollTop = 0") == 0
    page.pause()
    printed = subprocess.run([krait, "cat", "--json", folder], capture_output=True, text=True, check=True).stdout.splitlines()
    assert page.text(".message") == f"{len(printed):,} events" and shown_events(page)[0][0] == "0.000000000 s"
    assert page.page.evaluate("() => Number(document.querySelector('.events .virtual-inner').style.height.replace('px', ''))") == 22 * len(printed)


def test_events_of_the_range_are_exported(open_page, krait, tmp_path):
    page, _, folder = open_page(hash="#r=10000000,20000000;p=events;e=name == %22python:call%22")
    page.page.get_by_role("button", name="Export").click()
    commands = page.page.locator(".export code").all_inner_texts()
    assert len(commands) == 2 and commands[0] == f"krait cut {folder} --from 0.010000000 --until 0.030000000 -o part"
    for command in commands:
        subprocess.run(command.replace("krait", str(krait), 1), shell=True, cwd=tmp_path, check=True, capture_output=True)
    printed = [json.loads(line) for line in (tmp_path / "events.json").read_text().splitlines()]
    with page.page.expect_download() as download:
        page.page.get_by_role("button", name="Save the events").click()
    saved = [json.loads(line) for line in Path(download.value.path()).read_text().splitlines()]
    assert len(saved) == 40 and [event["time_ns"] for event in saved] == [event["time_ns"] for event in printed]
    assert page.page.get_by_text("saved 40 events as events.json").is_visible()
    with page.page.expect_download() as download:
        page.page.get_by_role("button", name="Save the trace").click()
    with tarfile.open(download.value.path()) as archive:
        archive.extractall(tmp_path / "saved")
    subprocess.run(["diff", "-r", tmp_path / "part", tmp_path / "saved" / "part"], check=True)
    cut = subprocess.run([krait, "cat", "--json", "--filter", 'name == "python:call"', tmp_path / "part"], capture_output=True, text=True, check=True).stdout.splitlines()
    assert [json.loads(line)["time_ns"] for line in cut][-40:] == [event["time_ns"] for event in saved]


def test_details_have_the_source_of_a_call_as_text(open_page, tmp_path):
    source = tmp_path / "app.py"
    source.write_text("x = 1\n\ndef main():\n    return '<b>&amp;'\n")
    script = f"process 5 python3\ncode 1 python app main {source} 3\nthread 5 MainThread\n0 call 1\n1ms return\nexit 0 0\n"
    page, *_ = open_page(script, hash="#r=0,1000000;p=details;c=0,0,0")
    page.page.locator("summary:visible").click()
    page.page.wait_for_selector("pre.source")
    assert page.page.locator(".source .here").inner_text().endswith("def main():")
    assert "return '<b>&amp;'" in page.text("pre.source")


def test_brackets_go_along_wake_ups(open_page, both):
    events = [switch(0, 0, 5), wake(50, 7), switch(100, 5, 7, state=1), wake(150, 5), switch(170, 7, 5, state=1), switch(300, 5, 0)]
    page, link, _ = open_page(both(SLEEP_CALLS, events))
    page.page.goto(link + f"#r=0,200000;p=details;c={states_track(link)},0,120000")
    page.page.reload()
    page.wait().press("Shift")
    assert page.text(".details h2").startswith("waits")
    page.press("[")
    assert page.text(".details .quiet") == "state, t7 7" and "0.000100000 s" in page.text(".details")
    page.press("]")
    assert "MainThread 5" in page.text(".details") or page.text(".details h2") in ("app.main", "time.sleep (C)")


def test_a_thread_and_its_cpu_lead_to_each_other(open_page, both):
    events = [switch(0, 0, 5, cpu=1), switch(0, 0, 7), wake(50, 7), switch(100, 5, 8, state=1, cpu=1), switch(140, 8, 5, cpu=1), switch(300, 5, 0, cpu=1), switch(300, 7, 0)]
    page, link, _ = open_page(both(SLEEP_CALLS, events))
    page.page.goto(link + f"#r=0,300000;p=details;c={states_track(link)},0,50000")
    page.page.reload()
    page.wait().press("Shift", "k")
    assert page.text(".details h2") == "t5" and page.text(".details .quiet") == "threads, CPU 1"
    page.press("ArrowRight")
    assert page.text(".details h2") == "t8" and "thread\n8" in page.text(".details")
    page.press("k")
    assert page.text(".details .quiet") == "state, t8 8" and page.text(".details h2") == "on CPU"
    page.press("k", "ArrowRight", "k")
    assert page.text(".details h2") == "time.sleep (C)"  # what thread 5 did at 140 us


def test_what_one_goes_to_stays_in_view_while_lanes_grow(open_page, synth):
    deep = "".join(f"{i}us call 1\n" for i in range(1, 15)) + "".join(f"{100 + i}us return\n" for i in range(14))
    threads = "".join(f"thread {5 + i} t{i}\n{deep}" for i in range(30))
    page, *_ = open_page(f"process 5 python3\ncode 1 python app main app.py 1\ncode 2 python app last app.py 9\n{threads}thread 99 last\n1s call 2\n2s return\nexit 0 0\n")
    page.press("/")
    page.page.keyboard.type("app.last")
    page.pause()
    page.press("Enter")
    page.page.locator(".table-rows .row").first.click()
    page.press("Shift", "0")
    titles = page.page.locator(".lane:not(.head)")
    shown = [title.bounding_box() for title in titles.all() if title.locator(".title").inner_text() == "last"]
    area = page.page.locator(".scroller").bounding_box()
    assert shown and area["y"] <= shown[0]["y"] < area["y"] + area["height"]


# 5 waits for 7, which has the CPU from 100 to 170 us and wakes it at 150.
HANDED_OVER = [switch(0, 0, 5), wake(50, 7), switch(100, 5, 7, state=1), wake(150, 5), switch(170, 7, 5, state=1), switch(300, 5, 0)]
# The lines of the timeline that have about that colour; thin lines are mixed with what is under them.
PIXELS_OF = """([r, g, b, most]) => {
  const canvas = document.querySelector("canvas.lanes"), data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  const rows = new Set();
  for (let i = 0; i < data.length; i += 4) if (Math.abs(data[i] - r) + Math.abs(data[i + 1] - g) + Math.abs(data[i + 2] - b) <= most) rows.add(Math.floor(i / 4 / canvas.width));
  return [...rows];
}"""
PATH_COLOUR, ACCENT = [0xD9, 0x48, 0x0F, 0], [0x2D, 0x69, 0xD7, 170]


def test_the_critical_path_is_drawn_from_thread_to_thread(open_page, both, krait):
    page, link, folder = open_page(both(SLEEP_CALLS, HANDED_OVER))
    page.page.goto(link + "#r=0,200000;p=details;c=0,0,100000")
    page.page.reload()
    page.wait().press("Shift")
    assert page.page.evaluate(PIXELS_OF, PATH_COLOUR) == []
    page.press("p")
    segments = verb_json(krait, "path", folder, "--thread", "5", "--from", "100us", "--until", "200us")["segments"]
    assert {s["tid"] for s in segments} == {5, 7}
    assert f"Critical path of 100.0 us, {len(segments)} segments" in page.text(".details")
    rows = [row.locator("td").all_inner_texts() for row in page.page.locator(".path tbody tr").all()]
    sums = {}
    for s in segments:
        sums[s["kind"], s["tid"]] = sums.get((s["kind"], s["tid"]), 0) + s["duration_ns"] / 1000
    assert {(row[3], int(row[4].split()[-1])): float(row[0].split()[0]) for row in rows} == sums
    rows = page.page.evaluate(PIXELS_OF, PATH_COLOUR)
    assert max(rows) - min(rows) > 40  # lines in both lanes
    assert ";k=1" in page.address()
    page.press("p")
    assert page.page.evaluate(PIXELS_OF, PATH_COLOUR) == [] and "Critical path of" not in page.text(".details")


def test_p_pressed_twice_at_once_asks_for_a_cancelled_path_again(open_page, both):
    page, link, _ = open_page(both(SLEEP_CALLS, HANDED_OVER))
    page.page.goto(link + "#r=0,200000;p=details;c=0,0,100000")
    page.page.reload()
    page.wait()
    held = []
    page.page.route("**/api/path*", lambda route: held.append(route))
    page.page.keyboard.press("p")
    page.page.locator(".jobs").get_by_role("button", name="Cancel").click()
    page.page.unroute("**/api/path*")
    page.page.evaluate("() => { for (let i = 0; i < 2; i++) document.dispatchEvent(new KeyboardEvent('keydown', { key: 'p', code: 'KeyP', bubbles: true })); }")
    page.page.locator(".details").get_by_text("Critical path of 100.0 us").wait_for()
    assert len(held) == 1


def test_a_wait_says_who_ended_it_and_an_arrow_shows_it(open_page, both):
    page, link, _ = open_page(both(SLEEP_CALLS, HANDED_OVER))
    page.page.goto(link + f"#r=0,200000;p=details;c={states_track(link)},0,120000")
    page.page.reload()
    page.wait().press("Shift")
    assert page.text(".details h2").startswith("waits")
    assert "woken by\nt7 7" in page.text(".details") and "wake-up latency\n20.00 us" in page.text(".details")
    rows = page.page.evaluate(PIXELS_OF, ACCENT)
    assert max(rows) - min(rows) > 40  # the frame of the state, and an arrow's head
    page.press("ArrowRight")
    assert page.text(".details h2") == "ready: woken" and "woken by\nt7 7" in page.text(".details")


def test_without_the_kernel_there_is_no_critical_path(open_page):
    page, *_ = open_page(hash="#r=0,100000000;p=details;c=0,0,0")
    page.press("p")
    assert "the kernel was not recorded; record it with krait record --kernel" in page.text(".details")
    assert all("404" in error for error in page.errors)
    page.errors.clear()


def test_notes_are_kept_beside_the_recording(open_page):
    page, link, folder = open_page(hash="#r=0,100000000;p=functions")
    page.page.mouse.click(*at(page, 30, 1))
    page.wait().press("m")
    page.page.keyboard.type("<b>slow</b> load")
    page.page.keyboard.press("Enter")
    page.press("Escape", "0", "m")
    page.page.keyboard.type("in the middle")
    page.page.keyboard.press("Enter")
    page.wait()
    kept = json.loads((folder / ".krait-notes.json").read_text())
    origin = int(ask(link, "trace")["origin"])
    assert kept["version"] == 1
    assert [(int(n["time"]) - origin, n["length"], n["text"]) for n in kept["notes"]] == [
        (5_000_000, 60_000_000, "<b>slow</b> load"), (50_000_000, 0, "in the middle")
    ]  # fmt: skip
    page.page.goto(link + "#r=0,100000000;p=notes")
    page.page.reload()
    page.wait()
    texts = page.page.locator(".note-text")
    assert texts.evaluate_all("list => list.map((input) => input.value)") == ["<b>slow</b> load", "in the middle"]
    assert page.page.locator("table.notes tbody tr").first.locator("td").nth(1).inner_text() == "60.00 ms"
    page.page.locator("table.notes button", has_text="Delete").first.click()
    page.pause()
    assert [n["text"] for n in json.loads((folder / ".krait-notes.json").read_text())["notes"]] == ["in the middle"]


def test_notes_that_cannot_be_kept_say_so(open_page):
    page, _, folder = open_page(hash="#r=0,100000000;p=notes")
    (folder / ".krait-notes.json").mkdir()
    page.press("m")
    page.page.keyboard.press("Escape")
    page.pause()
    assert "not kept: " in page.wait().text(".details [role=status]") and ".krait-notes.json" in page.text(".details [role=status]")
    assert all("500" in error for error in page.errors)
    page.errors.clear()


TWO_THREADS = """
process 5 python3 1 /usr/bin/python3%20app.py
code 1 python app main app.py 1
code 2 python app work app.py 10
thread 5 MainThread
0 call 1
100ms return
thread 6 worker
10ms call 2
40ms return
50ms call 2
60ms return
exit 0 0
"""


def test_a_chosen_lane_is_what_the_tables_are_of(open_page, krait):
    page, link, folder = open_page(TWO_THREADS, hash="#r=0,100000000;p=functions")
    names = page.page.locator(".names .lane .title")
    assert names.all_inner_texts() == ["python3 app.py", "MainThread", "worker"]
    names.nth(2).click()
    page.press("Shift")
    expected = verb_json(krait, "report", folder, "--thread", "worker")["functions"]
    assert [row[0] for row in page.rows()] == [f"{f['module']}.{f['name']}" for f in expected] == ["app.work"]
    assert "only worker 6" in page.text(".chosen-lanes") and ";o=p0%2Ft1" in page.address()
    page.press("o")
    assert {row[0] for row in page.rows()} == {"app.main", "app.work"} and page.text(".chosen-lanes") == ""


def test_lanes_are_moved_by_a_drag_and_by_keys(open_page):
    page, *_ = open_page(TWO_THREADS, hash="#r=0,100000000;p=functions")
    names = page.page.locator(".names .lane .title")
    box, above = names.nth(2).bounding_box(), names.nth(1).bounding_box()
    page.page.mouse.move(box["x"] + 5, box["y"] + 5)
    page.page.mouse.down()
    page.page.mouse.move(above["x"] + 5, above["y"] + 5, steps=5)
    page.page.mouse.up()
    page.press("Shift")
    assert names.all_inner_texts() == ["python3 app.py", "worker", "MainThread"]
    names.nth(1).click()
    page.press("Alt+ArrowDown")
    assert names.all_inner_texts() == ["python3 app.py", "MainThread", "worker"]
    page.press("g")
    assert names.all_inner_texts() == ["Threads", "MainThread", "worker"]
