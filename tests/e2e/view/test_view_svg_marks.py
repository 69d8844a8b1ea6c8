# SPDX-License-Identifier: Apache-2.0
"""What marks look like in pictures: a shape for each level, what they say beside them, and a legend."""

import re

import pytest
from browser import Page, served
from recording import ROOT
from running import wait_for
from svg import SVG, texts, view  # noqa: F401  (view: a fixture)

COLUMN = 6.65  # pixels of a character: src/view/timeline_own.h
LEVELS = ["debug", "info", "mark", "warning", "error", "critical", "exception"]

PROGRAM = """
import logging, sys, time, warnings
log = logging.getLogger("shop")
log.setLevel("DEBUG")
log.addHandler(logging.NullHandler())
for level in "debug", "info", "warning", "error", "critical":
    time.sleep(0.1)
    getattr(log, level)("this is %s <&>", level)
time.sleep(0.1)
raise ValueError("nobody catches this")
"""


def lane(*marks):
    """A recording of one thread, of a millisecond, with marks at these microseconds."""
    lines = "".join(f"{at}us mark {text}\n" for at, text in marks)
    return f"process 4711 python3\nexit 0 0\ncode 1 python app main app.py 1\nthread 4711 MainThread\n0 call 1\n{lines}1ms return\n"


def said(root):
    """The text elements beside marks: where each begins and ends, and its text."""
    found = []
    for text in root.iter(SVG + "text"):
        kind = text.get("class", "").split()
        if kind[:1] == ["says"]:
            x, width = float(text.get("x")), COLUMN * len(text.text)
            found.append((x - width if "last" in kind else x, x if "last" in kind else x + width, text.text))
    return sorted(found)


def levels(root):
    """Of the shapes that have a title, which those of the legend do not have; and of those of the legend."""
    marks = [(path.get("class").split()[1:], path.find(SVG + "title")) for path in root.iter(SVG + "path") if path.get("class", "").startswith("mark ")]
    return [kind[0] for kind, title in marks if title is not None], [kind[0] for kind, title in marks if title is None]


@pytest.mark.few_pythons
def test_a_log_record_has_the_shape_of_its_level_and_says_what_it_says(record, view, python):  # noqa: F811
    run = record.text(python, PROGRAM, options=["--log", "shop:DEBUG"], ok=False)
    root, _ = view(run.path, "--from", "50ms")
    drawn, legend = levels(root)
    wanted = [level for level in LEVELS if level != "mark"]
    assert drawn == wanted and legend == wanted
    whole = [text for _, _, text in said(root)]
    assert any(text.startswith("DEBUG ") for text in whole) and any(text.startswith("CRITICAL ") for text in whole)
    titles = [path.find(SVG + "title").text for path in root.iter(SVG + "path") if path.find(SVG + "title") is not None]
    assert any(title.startswith("log:record\nWARNING shop: this is warning <&>\nat ") for title in titles)
    assert any("ValueError: nobody catches this" in title for title in titles)


def test_texts_are_where_there_is_room(view, synth):  # noqa: F811
    root, _ = view(synth(lane((100, "first"), (400, "a%20long%20text%20that%20needs%20room"), (500, "third"), (999, "at%20the%20end"))))
    texts_of = [text for _, _, text in said(root)]
    assert texts_of[0] == "first" and texts_of[2] == "third" and texts_of[3] == "at the end"  # the last one before its mark
    assert texts_of[1].startswith("a long ") and texts_of[1].endswith("\u2026")
    assert levels(root) == (["mark"] * 4, ["mark"])


@pytest.mark.parametrize("count", [3, 40, 400, 2000])
def test_texts_never_overlap(view, synth, count):  # noqa: F811
    """Neither each other, nor marks."""
    root, _ = view(synth(lane(*((1 + 997 * (i * i % count) / count, f"mark%20number%20{i}") for i in sorted(range(count), key=lambda i: i * i % count)))))
    found, width = said(root), float(root.get("width"))
    places = [float(re.match(r"M([\d.]+)", path.get("d"))[1]) for path in root.iter(SVG + "path") if path.get("class", "").startswith("mark ") and path.find(SVG + "title") is not None]
    assert places and (count > 40 or found)
    assert all(end <= begin for (_, end, _), (begin, _, _) in zip(found, found[1:]))
    assert all(end < place - 3 or begin > place + 3 for begin, end, _ in found for place in places)
    assert all(begin > 0 and end <= width for begin, end, _ in found)


def test_of_several_marks_in_one_place_the_text_tells_how_many_there_are(view, synth):  # noqa: F811
    root, _ = view(synth(lane((500, "one"), (500.01, "two"))))
    assert [text for _, _, text in said(root)] == ["1 of 2: one"]
    assert "2 from here; the first: user:mark\none\nat " in "".join(title.text or "" for title in root.iter(SVG + "title"))


def test_a_picture_without_marks_has_no_legend_of_them(view, synth):  # noqa: F811
    root, _ = view(synth(lane()))
    assert levels(root) == ([], []) and "mark" not in texts(root)


def test_the_page_has_the_shapes_and_colours_of_pictures():
    picture, page = (ROOT / "src/view/timeline_marks.c").read_text(), (ROOT / "web/src/marks.ts").read_text()
    shape = r"[\"']((?:m[^\"'\s]+ )?[ml][\d.lmhvz -]+z)[\"']"
    assert len(re.findall(shape, picture)) == len(LEVELS) and re.findall(shape, picture) == re.findall(shape, page)
    css, palette = (ROOT / "src/view/timeline.css").read_text(), (ROOT / "web/src/palette.ts").read_text()
    pairs = re.findall(r"\['(#\w+)', '(#\w+)'\]", re.search(r"const MARKS.* = (.*);", palette)[1])
    for level, (light, dark) in zip(LEVELS, pairs):
        drawn = re.findall(rf"#timeline \.mark{'' if level == 'mark' else '.' + level}(?:,[^{{]*)?{{fill:(#\w+)}}", css)
        assert drawn == [light, dark], level


WRITTEN = "const fill = CanvasRenderingContext2D.prototype.fillText; window.written = []; CanvasRenderingContext2D.prototype.fillText = function (text, x, y) { window.written.push(text); fill.call(this, text, x, y); };"


def test_the_page_draws_what_marks_say_and_a_legend(krait, chromium, synth):
    folder = synth(lane((100, "first"), (400, "a%20text"), (700, "third"), (700.01, "fourth")))
    with served(krait, folder) as link:
        page = Page(chromium.new_page(viewport={"width": 1280, "height": 800}))
        page.page.add_init_script(WRITTEN)
        page.page.goto(link + "#p=marks")
        page.wait()
        wait_for(lambda: {"first", "a text"} <= set(page.page.evaluate("window.written")), "the texts beside marks")
        assert not page.page.evaluate("window.written.some((text) => text.includes('third'))")  # two marks in one place
        assert page.page.locator("[aria-label='Levels of marks'] li").all_inner_texts() == LEVELS
        assert page.errors == []
        page.page.close()


def test_values_of_counters_have_a_lane_and_no_marks(view, synth):  # noqa: F811
    """They would hide the others in their places."""
    alone = "process 5 python3\nexit 0 0\ncode 1 python app main app.py 1\ncode 3 name - queue - 0\nthread 5 A\n0 call 1\n"
    root, _ = view(synth(alone + "500us counter 3 4\n500us mark done\n900us counter 3 1\n1ms return\n"))
    assert levels(root) == (["mark"], ["mark"]) and [text for _, _, text in said(root)] == ["done"]
    assert any("queue" in text for text in texts(root)) and "1 of 3" not in " ".join(texts(root))


def test_the_legend_says_what_one_of_several_means(view, synth):  # noqa: F811
    told = "1 of 3: of three marks at one place, the most serious is shown"
    root, _ = view(synth(lane((500, "done"), (500, "done"), (800, "far"))))
    assert [text for _, _, text in said(root)] == ["1 of 2: done", "far"] and told in texts(root)
    root, _ = view(synth(lane((500, "done"), (800, "far")), "apart"))
    assert told not in texts(root)
