# SPDX-License-Identifier: Apache-2.0
"""The page of a recording that goes on, and of answers that take long."""

import contextlib
import re
import signal
import threading
import time

import pytest
from browser import Page
from followed import ask_trace, wait_until, watched  # noqa: F401  (watched: a fixture)
from growing import Growing
from kernel_made import switch, wake
from served import Server

MANY = "process 5 python3\ncode 1 python app main app.py 1\nthread 5 MainThread\nrepeat 4000000\n0us call 1\n1us return\nend\nexit 0 0\n"


def span_of(page):
    """How much time is on the screen; 0 while the address does not say."""
    said = re.match(r"r=-?\d+,([\d.]+)", page.address())
    return float(said[1]) if said else 0


def test_the_page_grows_with_the_recording_and_keeps_its_place(watched, chromium):  # noqa: F811
    process, trace, url = watched
    wait_until(lambda t: t["growing"] and t["threads"], lambda: ask_trace(url))
    page = Page(chromium.new_page(viewport={"width": 1280, "height": 800}))
    page.page.goto(url)
    page.wait()
    assert page.text(".recording") == "recording"
    first = wait_until(lambda now: now, lambda: span_of(page))
    longer = wait_until(lambda now: now > first, lambda: span_of(page))  # the whole is shown, and stays the whole
    page.page.goto(url + "#r=1000000,2000000;p=functions")
    page.wait()
    length = page.text(".length")
    wait_until(lambda now: now != length, lambda: page.text(".length"))
    assert page.address() == "r=1000000,2000000;p=functions"
    assert int(ask_trace(url)["duration"]) > longer
    (trace.parent / "end").touch()
    wait_until(lambda now: now == 0, page.page.locator(".recording").count)
    page.press("0")
    assert int(ask_trace(url)["duration"]) == pytest.approx(span_of(page))
    assert "step" in " ".join(row[0] for row in page.rows())
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    wait_until(lambda now: not page.page.evaluate("() => document.querySelector('.recording')"))
    assert page.errors == []
    page.page.close()


def test_the_page_tells_that_the_recording_is_switched_off(watched, krait, run, chromium):  # noqa: F811
    process, trace, url = watched
    wait_until(lambda t: t["growing"] and t["threads"], lambda: ask_trace(url))
    page = Page(chromium.new_page(viewport={"width": 1280, "height": 800}))
    page.page.goto(url)
    page.wait()
    for request, state in (("stop", "recording off"), ("start", "recording")):
        assert run("ctl", trace, request).returncode == 0
        wait_until(lambda shown: shown == state, lambda: page.text(".index"))
        assert page.page.locator(".recording").count() == (request == "start")
    (trace.parent / "end").touch()
    wait_until(lambda shown: shown == "", lambda: page.text(".index"))
    page.page.close()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)


def test_a_call_that_waits_goes_on_as_long_as_the_recording_does(krait, synth, chromium, tmp_path):
    growing = Growing(synth("process 5 python3\ncode 1 python app waits app.py 1\nthread 5 waiter\n1us call 1\n8us call 1\n9us return\n"), tmp_path / "growing", 1)
    server = Server(krait, growing.folder)
    trace = wait_until(lambda t: t["growing"], lambda: server.api("trace"))
    track = next(t["id"] for t in trace["tracks"] if t["kind"] == "calls")
    page = Page(chromium.new_page(viewport={"width": 1280, "height": 800}))
    page.page.goto(f"{server.url}#p=details;c={track},0,5000")
    wait_until(lambda said: "the call goes on" in said, lambda: page.text(".details"))
    growing.end()
    wait_until(lambda said: "end not recorded" in said and "goes on" not in said, lambda: page.text(".details"))
    assert page.errors == []
    page.page.close()
    assert server.end()[0] == 0


@contextlib.contextmanager
def slowed(process, ms=4):
    """A machine that leaves a process so many of 100 milliseconds."""
    ends = threading.Event()

    def slow():
        while not ends.wait(ms / 1000):
            process.send_signal(signal.SIGSTOP)
            time.sleep((100 - ms) / 1000)
            process.send_signal(signal.SIGCONT)

    thread = threading.Thread(target=slow)
    thread.start()
    try:
        yield
    finally:
        ends.set()
        thread.join()


def test_a_long_answer_shows_how_far_it_is_and_can_be_cancelled(krait, synth, chromium):
    server = Server(krait, synth(MANY))
    server.built()
    page = Page(chromium.new_page())
    page.page.goto(server.url + "#p=notes")
    page.wait()
    jobs = page.page.locator(".jobs")
    with slowed(server.process):
        page.page.keyboard.press("1")
        wait_until(lambda now: "function table" in now, lambda: jobs.inner_text() if jobs.is_visible() else "")
        jobs.get_by_role("button", name="Cancel").click()
        assert "cancelled" in jobs.inner_text()
        wait_until(lambda now: now == [], lambda: page.page.evaluate("() => fetch('api/progress').then((answer) => answer.json())"))
    assert page.page.locator(".table-rows .row").count() == 0
    jobs.get_by_role("button", name="Try again").click()
    page.wait()
    assert page.rows()[0][0] == "app.main" and not jobs.is_visible()
    assert page.errors == []
    page.page.close()
    server.end()


@pytest.mark.long  # the path takes as long as somebody needs to press Cancel
def test_the_critical_path_shows_how_far_it_is_whatever_the_panel_and_can_be_cancelled(krait, both, chromium):
    """Threads 5 and 7 wake each other again and again."""
    times = range(0, 600_000, 20)
    events = [e for us in times for e in (wake(us + 5, 7), switch(us + 10, 5, 7, state=1), wake(us + 15, 5), switch(us + 20, 7, 5, state=1))]
    server = Server(krait, both("process 5 python3\ncode 1 python app main app.py 1\nthread 5 MainThread\n0us call 1\n600ms return\nexit 0 0\n", [switch(0, 0, 5), *events]))
    server.built()
    page = Page(chromium.new_page(viewport={"width": 1280, "height": 800}))
    page.page.goto(server.url + "#p=functions;s=0,600000000")
    page.wait()
    jobs, path = page.page.locator(".jobs"), "() => krait.context.timeline.overlay.path.length"
    with slowed(server.process, 1):
        for panel in ("1", "2"):
            page.page.keyboard.press(panel)
            page.page.keyboard.press("p")
            wait_until(lambda now: re.search(r"critical path [1-9]\d?%", now), lambda: jobs.inner_text() if jobs.is_visible() else "")
            jobs.get_by_role("button", name="Cancel").click()
            assert "cancelled" in jobs.inner_text()
            wait_until(lambda now: now == [], lambda: page.page.evaluate("() => fetch('api/progress').then((answer) => answer.json())"))
            assert page.page.evaluate(path) == 0
            if panel == "1":
                page.page.keyboard.press("p")
                wait_until(lambda now: not now, jobs.is_visible)
    assert "The critical path was cancelled." in page.text(".details")
    jobs.get_by_role("button", name="Try again").click()
    page.wait()
    assert page.page.evaluate(path) == 3 * len(times) and not jobs.is_visible()
    assert "Critical path of 600.0 ms" in page.text(".details") and page.errors == []
    page.page.close()
    server.end()
