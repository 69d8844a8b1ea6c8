# SPDX-License-Identifier: Apache-2.0
"""The page of `krait view` on recordings that no program makes: it neither breaks nor runs what is in them."""

import pytest
from browser import opened
from kernel_made import begins, ends
from kernel_made import write as write_kernel

YEAR = 365 * 86400 * 10**9
HEAD = "process 5 python3\ncode 1 python app main app.py 1\ncode 2 python app tiny app.py 2\nthread 5 m\n"
HOSTILE = "<img src=x onerror=window.hit=1></script><script>window.hit=1</script>\x01\u202e" + "y" * 10240
ENCODED = HOSTILE[:-10000].replace(" ", "%20").replace("\x01", "%01").replace("\u202e", "%e2%80%ae")
IN_ONE_PIXEL = HEAD + "0 call 1\nrepeat {}\n0 call 2\n1 return\nend\n10s return\nexit 0 0\n"
SCRIPTS = {
    "a call of a year": f"{HEAD}0 call 1\n{YEAR // 2} call 2\n{YEAR // 2 + 1} return\n{YEAR} return\nexit 0 0\n",
    "a million calls in one pixel": IN_ONE_PIXEL.format(1_000_000),
    "very many calls in one pixel": IN_ONE_PIXEL.format(100_000),
    "calls that last no time": HEAD + "0 call 1\n" + "500 call 2\n500 return\n" * 5000 + "1000 return\nexit 0 0\n",
    "times that go back": f"{HEAD}1000000 call 1\n500000 call 2\n400000 return\n2000000 call 2\n1500000 return\n3000000 return\nexit 0 0\n",
    "markup as names": f"process 5 {ENCODED} 1 {ENCODED}\ncode 1 python {ENCODED} {ENCODED} /srv/{ENCODED} 1\nthread 5 {ENCODED}\n0 call 1\n1000000 return\nexit 0 0\n",
}


def assert_sane(page):
    """Each panel opens, keys move, and nothing of the recording runs."""
    for panel in page.page.locator("[role=tab]:visible").all():
        panel.click()
        page.wait()  # the page is not settled until a moment after the change
    page.press("w", "w", "d", "0", "ArrowRight", "f", "g", "r", "r", "0")
    box = page.page.locator("canvas.lanes").bounding_box()
    for share in (0.3, 0.5, 0.7):
        page.page.mouse.move(box["x"] + box["width"] * share, box["y"] + 36)
        page.page.wait_for_timeout(100)
    page.wait()
    assert page.page.evaluate("() => [window.hit === undefined, document.images.length, document.scripts.length]") == [True, 0, 1]
    assert page.errors == []


QUICK = ["very many calls in one pixel", "markup as names"]


@pytest.mark.parametrize("name", [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.long]) for name in SCRIPTS])
def test_recordings(krait, synth, chromium, name):
    with opened(krait, chromium, synth(SCRIPTS[name])) as page:
        assert_sane(page)


@pytest.mark.long
def test_a_kernel_trace_with_names_of_ten_kilobytes(krait, tmp_path, chromium):
    def switch(us, before, after, tids):
        return (us, 0, "sched_switch", {"prev_comm": before, "prev_tid": tids[0], "prev_state": 1, "next_comm": after, "next_tid": tids[1]})

    call = "re<img src=x onerror=window.hit=1>ad"
    events = [
        e
        for i in range(30)
        for e in (switch(20 * i, "idle", f"{HOSTILE}{i}", (0, 10 + i)), begins(20 * i + 1, call), ends(20 * i + 2, call), switch(20 * i + 10, f"{HOSTILE}{i}", "idle", (10 + i, 0)))
    ]
    with opened(krait, chromium, write_kernel(tmp_path / "kernel", events)) as page:
        assert_sane(page)
        assert max(map(len, page.page.locator(".lane .title").all_inner_texts())) < 500


@pytest.mark.parametrize("count", [2_000, pytest.param(10_000, marks=pytest.mark.long), pytest.param(100_000, marks=pytest.mark.long)])
def test_many_threads(krait, tmp_path, chromium, count):
    events = [
        (us, 0, "sched_switch", {"prev_comm": "idle", "prev_tid": before, "prev_state": 1, "next_comm": f"t{after}", "next_tid": after})
        for i in range(count)
        for us, before, after in ((2 * i, 0, 10 + i), (2 * i + 1, 10 + i, 0))
    ]
    with opened(krait, chromium, write_kernel(tmp_path / "kernel", events)) as page:
        assert page.page.evaluate("() => window.krait.context.timeline.lanes.lanes.length") > count
        assert page.page.locator(".lane").count() < 100  # only those on the screen are there
        assert_sane(page)
