# SPDX-License-Identifier: Apache-2.0
"""How one moves on the page of `krait view`: the mouse, the minimap, the command palette, the filter and the groups of lanes."""

import pytest
from browser import opened

TRACE = """
process 5 python3
code 1 python app main app.py 1
code 2 python app load app.py 10
thread 5 MainThread
0 call 1
20ms call 2
60ms return
100ms return
""" + "".join(f"thread {10 + i} worker-{i}\n0 call 1\n100ms return\n" for i in range(40)) + "exit 0 0\n"
WHOLE = 100_000_000


@pytest.fixture
def page(krait, chromium, synth):
    with opened(krait, chromium, synth(TRACE)) as made:
        yield made


def shown(page):
    """The range on the screen, in nanoseconds."""
    page.wait()
    begin, span = page.page.evaluate("() => { const { from, span } = krait.context.store.view.range; return [Number(from), span]; }")
    return begin, begin + span


def place(page, share, depth=0):
    box = page.page.locator("canvas.lanes").bounding_box()
    return box["x"] + box["width"] * share, box["y"] + 26 + 3 + depth * 16 + 7


def drag(page, from_, to):
    page.page.mouse.move(*from_)
    page.page.mouse.down()
    page.page.mouse.move(*to, steps=4)
    page.page.mouse.up()


def test_the_wheel_zooms_at_the_pointer_and_scrolls(page):
    page.page.mouse.move(*place(page, 0.25))
    page.page.keyboard.down("Control")
    page.page.mouse.wheel(0, -300)
    page.page.keyboard.up("Control")
    page.page.wait_for_function(f"() => krait.context.store.view.range.span < {0.7 * WHOLE}")
    begin, end = shown(page)
    assert begin + (end - begin) * 0.25 == pytest.approx(0.25 * WHOLE, abs=WHOLE / 500)  # what was at the pointer is there
    page.page.mouse.wheel(0, 200)
    page.page.wait_for_function("() => document.querySelector('.scroller').scrollTop === 200")
    assert shown(page) == (begin, end)


def test_a_shifted_drag_moves_and_a_plain_one_selects_with_its_duration(page):
    page.press("w", "w")
    begin, end = shown(page)
    page.page.keyboard.down("Shift")
    drag(page, place(page, 0.6), place(page, 0.4))
    page.page.keyboard.up("Shift")
    moved = shown(page)
    assert moved[0] - begin == pytest.approx(0.2 * (end - begin), rel=0.02) and moved[1] - moved[0] == pytest.approx(end - begin)
    assert page.page.evaluate("() => krait.context.store.view.selected") is None
    page.page.evaluate("() => { window.said = []; const fill = CanvasRenderingContext2D.prototype.fillText; CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) { said.push(text); return fill.call(this, text, ...rest); }; }")
    drag(page, place(page, 0.3), place(page, 0.5))
    selected = page.page.evaluate("() => krait.context.store.view.selected.span")
    assert selected == pytest.approx(0.2 * (end - begin), rel=0.02)
    page.page.wait_for_function("(ms) => said.some((text) => /^[0-9.]+ ms$/.test(text) && Math.abs(parseFloat(text) - ms) < 0.006)", arg=selected / 1e6)


def test_a_double_click_and_f_zoom_to_a_call_and_0_shows_all(page):
    page.page.mouse.dblclick(*place(page, 0.4, depth=1))
    page.page.wait_for_function(f"() => krait.context.store.view.range.span < {WHOLE / 2}")
    begin, end = shown(page)
    assert begin < 20_000_000 < 60_000_000 < end
    page.press("0")
    assert shown(page) == (0, WHOLE)
    page.press("f")
    assert shown(page) == (begin, end)


def test_the_minimap_moves_the_window(page):
    page.press("w", "w", "w")
    begin, end = shown(page)
    box = page.page.locator("canvas.minimap").bounding_box()
    y = box["y"] + box["height"] / 2
    drag(page, (box["x"] + box["width"] * (begin + end) / 2 / WHOLE, y), (box["x"] + box["width"] * ((begin + end) / 2 / WHOLE + 0.1), y))
    moved = shown(page)
    assert moved[0] - begin == pytest.approx(0.1 * WHOLE, rel=0.05) and moved[1] - moved[0] == pytest.approx(end - begin)
    drawn = page.page.evaluate("() => { const map = document.querySelector('canvas.minimap'); return map.getContext('2d').getImageData(0, 0, map.width, map.height).data.some((value) => value > 0); }")
    assert drawn


def test_the_palette_runs_a_command_and_the_browser_keeps_its_find(page):
    page.press("Control+k")
    page.page.keyboard.type("zoom in")
    page.page.get_by_role("option").first.wait_for()
    page.press("Enter")
    begin, end = shown(page)
    assert end - begin == pytest.approx(0.7 * WHOLE)
    page.page.evaluate("() => addEventListener('keydown', (event) => { window.kept = [...(window.kept ?? []), [event.key, event.defaultPrevented]]; })")
    page.press("Control+f", "Control+k", "Escape")
    assert page.page.evaluate("() => kept.filter(([key]) => key !== 'Control')")[:2] == [["f", False], ["k", True]]


def test_letters_go_by_their_place_on_the_keyboard(page):
    """On a French keyboard the key in the place of W says z."""
    page.page.evaluate("() => document.body.dispatchEvent(new KeyboardEvent('keydown', { code: 'KeyW', key: 'z', bubbles: true }))")
    begin, end = shown(page)
    assert end - begin == pytest.approx(0.7 * WHOLE)


def test_lanes_are_filtered_and_grouped(page):
    names = page.page.locator(".lane .title")
    page.page.locator(".filter").fill("worker-7")
    page.page.wait_for_function("() => document.querySelectorAll('.lane').length === 2")
    assert names.all_inner_texts()[1] == "worker-7"
    page.page.locator(".filter").fill("")
    page.page.locator(".filter").blur()
    heads = page.page.locator(".lane.head .title")
    before = heads.all_inner_texts()
    page.press("g")
    assert heads.all_inner_texts() == ["Threads"] != before
    assert "g=thread" in page.address()
