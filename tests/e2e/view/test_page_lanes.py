# SPDX-License-Identifier: Apache-2.0
"""The lanes of the page of `krait view`: chosen, folded, pinned and moved by keys, hidden where they are empty, and their names."""

import json
import subprocess

import pytest
from browser import opened
from kernel_made import switch, wake
from lossy_recordings import COLUMNS_OF

THREADS = """
process 5 python3
code 1 python app main app.py 1
thread 5 MainThread
0us call 1
1000us return
thread 6 first
0us call 1
1000us return
thread 7 second
0us call 1
1000us return
exit 0 0
"""
KERNEL = [
    switch(0, 0, 5), switch(10, 0, 9, cpu=1), switch(20, 9, 0, 1, cpu=1), switch(100, 5, 6, 1), switch(200, 6, 0, 1), wake(400, 5), switch(410, 0, 5),
    switch(999, 5, 0, 1), switch(1000, 0, 0),
]  # fmt: skip


def names(page):
    return page.page.locator(".lane .title").all_inner_texts()


def test_lanes_are_reached_and_changed_by_keys(krait, chromium, synth):
    with opened(krait, chromium, synth(THREADS)) as page:
        assert names(page)[1:] == ["MainThread", "first", "second"]
        page.page.locator(".filter").focus()
        focused = "() => document.activeElement.getAttribute('role') === 'treeitem' && document.activeElement.querySelector('.title').textContent"
        for _ in range(30):
            page.page.keyboard.press("Tab")
            if page.page.evaluate(focused):
                break
        page.press("ArrowDown", "ArrowDown")
        assert page.page.evaluate(focused) == "first"
        page.press("Alt+ArrowDown")
        assert names(page)[1:] == ["MainThread", "second", "first"] and page.page.evaluate(focused) == "first"
        page.press("Space")
        assert names(page)[0] == "first" and page.page.evaluate(focused) == "first"
        page.press("Space", "Enter")
        assert page.text(".chosen-lanes").startswith("only first 6")
        page.press("ArrowLeft")
        assert page.page.locator("[role=treeitem]:focus").get_attribute("aria-expanded") == "false"
        page.press("ArrowRight", "ArrowLeft", "ArrowLeft", "ArrowLeft")  # to its process, which then is one line
        assert len(names(page)) == 1 and page.page.evaluate(focused) == names(page)[0]
        page.press("Tab")
        assert page.page.evaluate("() => document.activeElement.className") == "fold"


def test_what_is_empty_on_the_screen_is_hidden(krait, chromium, both):
    with opened(krait, chromium, both(THREADS, KERNEL), "#r=0,1000000;p=functions") as page:
        assert {"MainThread", "first", "second", "CPU 0", "CPU 1"} <= set(names(page))
        page.press("r")
        shown = set(names(page))
        assert {"MainThread", "first", "CPU 0", "CPU 1"} <= shown and "second" not in shown
        page.page.goto(page.page.url.split("#")[0] + "#r=450000,100000;p=functions;a=1")
        page.pause()
        shown = set(names(page.wait()))
        assert {"MainThread", "CPU 0"} <= shown and not {"first", "second", "CPU 1"} & shown


def test_names_stay_beside_their_lanes(krait, chromium, synth):
    more = "".join(f"thread {tid} t{tid}\n0us call 1\n1000us return\n" for tid in range(8, 60))
    with opened(krait, chromium, synth(THREADS.replace("exit 0 0", more + "exit 0 0"))) as page:
        # As finding in the page and focus do with what is seen in part: only the timeline itself may scroll, with names and lanes.
        page.page.locator(".lane").last.evaluate("(lane) => lane.scrollIntoView({ block: 'start' })")
        assert page.page.evaluate("() => ['.names', '.sticky'].map((place) => document.querySelector(place).scrollTop)") == [0, 0]


DEEP = "process 5 python3\ncode 1 python app f app.py 1\nthread 5 MainThread\n" + "".join(f"{i}us call 1\n" for i in range(1000)) + "".join(f"{1000 + i}us return\n" for i in range(1000))


def test_calls_deeper_than_are_drawn_are_counted_and_marked_below_the_rows(krait, chromium, synth):
    folder = synth(DEEP)
    with opened(krait, chromium, folder, "#r=0,2000000;p=details;c=0,500,1000000") as page:
        more = page.page.locator("button.more")
        assert more.inner_text() == "980 deeper" and more.get_attribute("title") == "Show calls up to depth 128"
        more.click()
        page.press("Shift")
        rest = page.page.locator(".more.undrawn")
        assert page.text("button.more") == "fewer" and rest.inner_text() == "872 deeper not drawn" and "krait report --tree" in rest.get_attribute("title")
        assert page.text(".details h2") == "app.f" and "depth\n500" in page.text(".details")
        page.page.evaluate("() => { document.querySelector('.scroller').scrollTop = 1e6; }")
        page.page.mouse.move(0, 0)
        width, lines = page.wait().page.evaluate(COLUMNS_OF, [0x2D, 0x69, 0xD7])
        assert len(lines) == 3  # a line below the rows, as long as the call of depth 500
        assert [(min(line) / width, max(line) / width) for line in lines] == [(pytest.approx(0.25, abs=0.004), pytest.approx(0.75, abs=0.004))] * 3
    tree = json.loads(subprocess.run([krait, "report", "--tree", "--min-share", "0", "--json", folder], capture_output=True, text=True, check=True).stdout)
    assert [row["depth"] for row in tree["tree"]] == list(range(1000))


def test_the_button_that_ends_a_comparison_is_one_line(krait, chromium, synth):
    names = [f"function_with_a_long_name_{i}" for i in range(6)]
    codes = "".join(f"code {i + 1} python app {name} app.py {i + 1}\n" for i, name in enumerate(names))
    calls = "".join(f"{i}us call {i + 1}\n" for i in range(6)) + "".join(f"{1000 + i}us return\n" for i in range(6))
    with opened(krait, chromium, synth(f"process 5 python3\n{codes}thread 5 MainThread\n{calls}exit 0 0\n"), "#p=flame") as page:
        box = page.page.locator("canvas.flame").bounding_box()
        page.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + 18 * 6 + 9)
        page.wait()
        page.page.get_by_role("button", name="Compare").click()
        page.wait()
        heights = [page.page.get_by_role("button", name=name).bounding_box()["height"] for name in ("End comparison", "Callers")]
        assert page.page.locator(".crumb").count() == 7 and abs(heights[0] - heights[1]) <= 4


def test_a_key_that_leads_nowhere_says_why(krait, chromium, synth):
    with opened(krait, chromium, synth(THREADS)) as page:
        says = {"k": "the recording has no CPUs; record with --kernel to see them", "f": "nothing is selected", "[": "no wait of a thread or a task is selected", "z": "there is only one recording"}
        assert [page.press(key).text(".why") for key in says] == list(says.values())
        page.press("ArrowRight")  # to the first call
        assert page.text(".why") == "" and page.text(".details h2") == "app.main"
        assert page.press("ArrowUp").text(".why") == "the selected call has no caller here"


def test_the_column_of_names_fits_them_and_is_dragged(krait, chromium, synth):
    longest = "worker-of-the-second-half-of-the-pages"
    with opened(krait, chromium, synth(THREADS.replace("MainThread", longest))) as page:
        column, edge, title = (page.page.locator(where) for where in (".names", ".divider.vertical", ".lane:not(.head) .title >> nth=0"))
        narrow = column.bounding_box()["width"]
        assert narrow == 1280 / 5 and "\u2026" in title.inner_text()  # a fifth of the page at most
        page.page.set_viewport_size({"width": 2560, "height": 800})
        page.page.wait_for_function("narrow => document.querySelector('.names').clientWidth > narrow", arg=narrow)
        page.wait()
        wide = column.bounding_box()["width"]
        assert narrow < wide < 2560 / 5 and title.inner_text() == longest
        box = edge.bounding_box()
        page.page.mouse.move(box["x"] + 2, box["y"] + 50)
        page.page.mouse.down()
        page.page.mouse.move(640, box["y"] + 50)
        page.page.mouse.up()
        assert page.wait() and column.bounding_box()["width"] == 640
        assert page.page.locator("canvas.lanes").bounding_box()["x"] == page.page.locator("canvas.axis").bounding_box()["x"] == 640
        edge.focus()
        page.press("ArrowLeft", "ArrowLeft")
        assert abs(column.bounding_box()["width"] - 608) < 4  # the link has thousandths of the page's width
        edge.dblclick()
        assert page.wait() and column.bounding_box()["width"] == wide


def test_a_link_has_the_width_of_the_column_of_names(krait, chromium, synth):
    with opened(krait, chromium, synth(THREADS), "#l=names:300") as page:
        assert page.page.locator(".names").bounding_box()["width"] == 384


def test_a_heading_keeps_the_process_and_the_end_of_its_command(krait, chromium, synth):
    command = "process 12345 python3 1 python3%20-m%20shop.orders%20--number-of-the-worker%20"
    with opened(krait, chromium, synth("\n".join(THREADS.replace("process 5 python3", f"{command}{n}") for n in (1, 2)))) as page:
        heads = page.page.locator(".lane.head").all()
        assert [head.locator(".title").inner_text()[:7] + head.locator(".title").inner_text()[-4:] for head in heads] == [f"python3er {n}" for n in (1, 2)]
        for part in ".title", ".hint":
            assert all(head.locator(part).evaluate("(text) => text.scrollWidth <= text.clientWidth") for head in heads)


# Of each column of the lanes, how many of its pixels have about that colour.
PIXELS_IN_COLUMNS = """([r, g, b]) => {
  const canvas = document.querySelector("canvas.lanes"), width = canvas.width, data = canvas.getContext("2d").getImageData(0, 0, width, canvas.height).data;
  const columns = new Array(width).fill(0);
  for (let i = 0; i < data.length; i += 4) columns[i / 4 % width] += Math.abs(data[i] - r) + Math.abs(data[i + 1] - g) + Math.abs(data[i + 2] - b) <= 12;
  return columns;
}"""
LINE, GROUND = [0x51, 0xAF, 0xD3], [201, 228, 238]


def test_a_counter_is_a_thin_line_above_light_ground(krait, chromium, synth):
    """Where it has many values the line spans them, from the least to the most; below 0 as well."""
    dense = "".join(f"{400_000 + 100 * i} counter 3 {8 * (i % 2)}\n" for i in range(2000))
    folder = synth(f"process 5 python3\ncode 1 python app main app.py 1\ncode 3 name - queue - 0\nthread 5 A\n0us call 1\n0us counter 3 4\n{dense}700us counter 3 -4\n1000us return\nexit 0 0\n")
    with opened(krait, chromium, folder) as page:
        columns = [page.page.evaluate(PIXELS_IN_COLUMNS, colour) for colour in (LINE, GROUND)]
        at = [len(columns[0]) * part // 100 for part in (23, 53, 87)]  # beside the lines of the grid
        steady, many, negative = [(columns[0][x], columns[1][x]) for x in at]
        assert 1 <= steady[0] <= 2 and steady[1] > 6 and 1 <= negative[0] <= 2 and negative[1] > 6
        assert many[0] > 15 and many[1] == 0
