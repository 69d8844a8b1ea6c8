# SPDX-License-Identifier: Apache-2.0
"""`krait view` of a recording of samples: nowhere does it show a stretch of samples as a call whose duration was measured."""

import json
import re
import subprocess

import pytest
from browser import opened
from conftest import verb_json
from report_made import CODES
from served import serve  # noqa: F401  (a fixture)

PROGRAM = """
import threading, time
for _ in range(2): threading.Thread(target=time.sleep, args=(0.3,)).start()
def inner(): time.sleep(0.03)
def outer():
    for _ in range(8): inner()
def main():
    outer()
    end = time.monotonic() + 0.2
    while time.monotonic() < end: sum(range(2000))
main()
"""
NOTE = re.compile(r"estimates from [\d,]+ samples, one every [\d.]+ [mu]s: calls are not counted; in 19 of 20 recordings self is off by less than error")


@pytest.fixture(scope="module")
def samples(krait, any_python, tmp_path_factory):
    folder = tmp_path_factory.mktemp("samples")
    (folder / "app.py").write_text(PROGRAM)
    words = [krait, "record", "--sample", "-q", "-o", folder / "samples", "--", any_python.exe, folder / "app.py"]
    run = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    return folder / "samples"


@pytest.mark.parametrize("width", [760, 1280])
def test_the_panels_have_what_samples_know(krait, chromium, samples, width):
    with opened(krait, chromium, samples, width=width) as page:
        heads = page.page.locator(".table-head .cell:visible").all_inner_texts()
        assert [head for head in heads if head != "states of self"] == ["function", "self", "error", "self%", "total"]
        assert NOTE.search(page.text(".panel-body .note")) and "not a call" in page.text(".warnings")
        page.page.locator(".table-head .cell", has_text="total").click()  # it has no self time: of many functions, as on a busy machine, it is far below
        page.page.locator(".table-rows .row", has_text="inner").first.click()
        page.press("3")
        assert re.match(r"\d+ stretch(es)? of samples in the range\.", page.text(".bar-row")) and "Slowest" not in page.text(".bar-row")
        assert page.page.locator("canvas.histogram").is_hidden()
        page.page.locator(".table-rows .row:visible").first.click()
        page.press("2")
        details = page.text(".details")
        assert re.search(r"a stretch, not a call\s+\d+ samples? in a row, [\d.]+ [mu]?s from the first", details)
        assert "duration" not in details and "calls\t" not in details and "before it was recorded" not in details
        assert "All stretches of this function" in details
        page.press("4")
        page.page.locator("canvas.flame").hover(position={"x": 30, "y": 28})
        assert "estimates by samples" in page.text(".panel-body .tip") and "call" not in page.text(".panel-body .tip")
        page.press("b")
        page.page.locator(".panel-body .bar-row > button").first.click()
        page.press("Shift")
        heads = page.page.locator(".table-head .cell:visible").all_inner_texts()
        assert heads == ["function", "self", "self%", "self now", "before", "total now", "before"] and NOTE.search(page.text(".panel-body .bar-row"))


def test_a_tooltip_tells_a_stretch(open_page, samples):
    page = open_page(samples)
    page.page.locator("canvas.lanes").hover(position={"x": 700, "y": 50})
    page.page.locator(".timeline .tip").get_by_text("not a measured call").wait_for()
    name, what, when, *_ = page.text(".timeline .tip").splitlines()
    assert re.fullmatch(r"a stretch of about [\d,]+ samples?, not a measured call", what), what
    assert re.fullmatch(r"from [\d.]+ s to [\d.]+ s", when), when


def test_a_stretch_has_the_samples_that_cat_prints(serve, samples, run):
    server = serve(samples)
    func = server.api("search", text="outer", limit=9)["funcs"][0]
    found = server.api("calls", func=func)
    assert found["matched"] == found["cut"] > 0 and found["fastest"] is None and found["histogram"] == []
    stretch = found["calls"][0]
    told = server.api("call", track=stretch["track"], at=stretch["begin"], depth=stretch["depth"])
    begin, end = (int(server.trace["origin"]) + int(stretch[key]) for key in ("begin", "end"))
    events = map(json.loads, run("cat", "--json", "--filter", 'name == "python:sample"', samples).stdout.splitlines())
    tid = server.trace["tracks"][stretch["track"]]["number"]
    times = [int(e["time_ns"]) for e in events if e["packet_context"]["vtid"] == tid]
    assert abs(told["samples"] - sum(begin <= t < end for t in times)) <= 1 and told["samples"] > 0
    later = server.api("next", track=stretch["track"], at=0, func=func, forward=1)
    assert later["begin"] == min((c["begin"] for c in found["calls"]), key=int)


def test_the_page_in_a_file_has_what_samples_know(krait, samples, tmp_path):
    html, svg = tmp_path / "page.html", tmp_path / "line.svg"
    for option, path in ("--html", html), ("--svg", svg):
        made = subprocess.run([krait, "view", option, path, samples], capture_output=True, text=True, timeout=120)
        assert made.returncode == 0 and "calls" not in made.stderr and "one sample each" in made.stderr, made.stderr
    text = html.read_text()
    head = re.search(r"<h2>Functions</h2>.*?<thead><tr>(.*?)</tr>", text, re.S)[1]
    assert re.findall("<th[^>]*>([^<]*)", head) == ["self", "error", "self%", "total", "function", "where"]
    assert NOTE.search(text) and "time in calls" not in text and 'class="hist"' not in text
    titles = re.findall("<title>(.*?)</title>", svg.read_text(), re.S)
    assert any("a stretch of samples, no measured call, from " in title for title in titles)
    assert not any("its end is not seen" in title or re.search(r"\d calls?, busy", title) for title in titles)


def test_the_threads_that_ran_the_most_are_drawn(krait, samples, tmp_path):
    svg = tmp_path / "line.svg"
    subprocess.run([krait, "view", "--svg", svg, "--limit", "1", samples], check=True, capture_output=True, timeout=120)
    text = svg.read_text()
    assert "2 threads that ran less not drawn: --limit" in text and "MainThread" in text


def test_a_thread_that_ran_goes_before_one_whose_stack_changed_more(krait, any_python, tmp_path):
    (tmp_path / "app.py").write_text("""
import threading, time
def spin():
    end = time.process_time() + 0.6
    while time.process_time() < end: sum(range(20000))
def a(): time.sleep(0.001)
def b(): time.sleep(0.001)
threading.Thread(target=spin, name="Spinner").start()
while threading.active_count() > 1: a(), b()
""")
    subprocess.run([krait, "record", "--sample", "-q", "-o", tmp_path / "r", "--", any_python.exe, tmp_path / "app.py"], check=True, timeout=120)
    by_thread = verb_json(krait, "report", tmp_path / "r", "--by", "thread")["functions"]
    ran = max(by_thread, key=lambda row: row["wall_self_ns"]["on_cpu"])
    subprocess.run([krait, "view", "--svg", tmp_path / "line.svg", "--limit", "1", tmp_path / "r"], check=True, capture_output=True, timeout=120)
    assert "1 thread that ran less not drawn: --limit" in (tmp_path / "line.svg").read_text()
    assert str(ran["name"]).split()[-1] in re.sub("<[^>]*>", " ", (tmp_path / "line.svg").read_text())


def test_a_flame_graph_counts_no_calls_of_samples(krait, samples, synth, tmp_path):
    svg = tmp_path / "flame.svg"
    made = subprocess.run([krait, "flame", samples, "-o", svg], capture_output=True, text=True, timeout=120)
    assert made.returncode == 0 and re.search(r"[\d,\u202f]+ samples", svg.read_text()) and not re.search(r"\d calls?\b", svg.read_text())
    for recordings in [samples], [synth(CODES + "0 call 1\n9 return\nexit 0 0\n"), "--diff", samples]:
        refused = subprocess.run([krait, "flame", "--unit", "calls", *recordings, "-o", svg], capture_output=True, text=True, timeout=120)
        assert refused.returncode == 1 and "--unit calls: samples do not tell how often functions were called" in refused.stderr


def test_the_function_table_is_krait_reports(krait, serve, samples):
    rows = verb_json(krait, "report", samples, "--limit", "0")["functions"]
    server = serve(samples)
    table = server.api("functions")
    at = {name: i for i, name in enumerate(table["columns"])}
    assert sorted((r[at["self"]], r[at["error"]]) for r in table["rows"]) == sorted((r["self_ns"], r["self_error_ns"]) for r in rows)
    assert all(r[at["runs"]] == r[at["cut"]] for r in table["rows"]) and NOTE.fullmatch(table["note"])
