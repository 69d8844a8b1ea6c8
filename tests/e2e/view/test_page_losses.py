# SPDX-License-Identifier: Apache-2.0
"""What the page of `krait view` shows of what is missing: lost events, and pauses of the recording."""

import pytest
from browser import opened
from lossy_recordings import CODES, COLUMNS_OF, CUT

LOST, OFF = [0xB3, 0x36, 0x2B], [0x97, 0x92, 0x8C]


def extents(page, colour):
    """[(first, last) share of the width at which a line has the colour], from top to bottom."""
    page.page.mouse.move(0, 0)
    width, lines = page.wait().page.evaluate(COLUMNS_OF, colour)
    return [(min(line) / width, (max(line) + 1) / width) for line in lines]


def pointed(page, share, y):
    """The tooltip at a place of the lanes."""
    box = page.page.locator("canvas.lanes").bounding_box()
    for step in (0, 1):
        page.page.mouse.move(box["x"] + box["width"] * share + step, box["y"] + y)
        page.page.wait_for_timeout(150)
    return page.text(".timeline .tip").split("\n")


def test_what_is_missing_is_drawn_where_it_is(krait, chromium, synth):
    with opened(krait, chromium, synth(CUT), "#r=0,1500000") as page:
        for colour, begin, end in ((LOST, 900, 1200), (OFF, 200, 700)):
            lines = extents(page, colour)
            assert len(lines) > 8  # the strip, and the dashes above the calls
            for first, last in lines:
                assert (first, last) == (pytest.approx(begin / 1500, abs=0.003), pytest.approx(end / 1500, abs=0.006)), colour


def test_a_short_loss_marks_no_more_than_its_place(krait, chromium, synth):
    codes = "0us call 1\n100us call 2\n50000us return\npacket 40\n50001us call 2\n99000us return\n100ms return\n"
    with opened(krait, chromium, synth(CODES + codes), "#r=0,100000000") as page:
        lines = extents(page, LOST)
        assert len(lines) >= 2 and all(0.495 < first < last < 0.505 for first, last in lines)


def test_the_number_of_lost_events_is_no_thread(krait, chromium, synth):
    with opened(krait, chromium, synth(CUT), "#r=0,1500000") as page:  # 5 events were lost, and the thread is 5
        assert pointed(page, 1100 / 1500, 26 + 3 + 4) == ["events lost", "300.0 us at 0.000900000 s", "5 events"]
        assert pointed(page, 400 / 1500, 26 + 3 + 4) == ["recording off", "500.0 us at 0.000200000 s"]
        box = page.page.locator("canvas.lanes").bounding_box()
        page.page.mouse.click(box["x"] + box["width"] * 1100 / 1500, box["y"] + 26 + 3 + 4)
        page.press("Shift")
        assert page.text(".details h2") == "events lost" and "lost\n5 events" in page.text(".details")
        assert "held up by" not in page.text(".details") and "Go to that thread" not in page.text(".details")
        assert page.press("[").text(".why") == "no wait of a thread or a task is selected"


def test_a_folded_group_shows_where_any_thread_lacks_events(krait, chromium, synth):
    with opened(krait, chromium, synth(CUT), "#r=0,1500000") as page:
        lanes = extents(page, LOST)
        page.page.get_by_title("Collapse").first.click()
        folded = extents(page, LOST)
        assert len(folded) < len(lanes)
        assert (folded[0][0], folded[-1][1]) == (pytest.approx(200 / 1500, abs=0.006), pytest.approx(1200 / 1500, abs=0.006))
        assert "events of 1 thread are missing here" in pointed(page, 1100 / 1500, 13)
        assert "missing" not in " ".join(pointed(page, 800 / 1500, 13))
