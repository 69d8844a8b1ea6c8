# SPDX-License-Identifier: Apache-2.0
"""The panels of the page of `krait view`: what each shows of the selected range and lanes, and what is not offered."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from browser import opened
from conftest import BUILD, verb_json
from kernel_made import event, switch
from kernel_made import write as write_kernel
from lossy_recordings import CUT, MISSED
from reads_made import CALLS, GIL_CALLS, GIL_KERNEL, KERNEL


def tabs(page):
    return page.page.locator("[role=tab]:visible").all_inner_texts()


def test_system_calls_are_a_table_and_a_picture(open_page, both):
    page = open_page(both(CALLS, KERNEL), "#r=0,1000000;p=syscalls")
    assert page.text(".message").startswith("5 system calls.")
    rows = page.rows(".table-rows .row")
    assert [row[:4] for row in rows] == [["read", "211.0 us", "4", "1"], ["openat", "3.000 us", "1", "0"]]
    page.page.locator("canvas.scatter").focus()
    page.press("ArrowRight", "ArrowRight", "ArrowRight")
    assert page.text(".scatter-box .tip").splitlines() == ["read", "100.0 us, error 11", "MainThread 5"]
    page.press("Enter", "2")
    assert page.text(".details h2") == "read" and "error 11" in page.text(".details")


def test_a_row_of_system_calls_chooses_its_points(open_page, both):
    page = open_page(both(CALLS, KERNEL), "#r=0,1000000;p=syscalls")
    page.page.locator(".table-rows .row").nth(1).click()
    page.press("Shift")
    assert page.text(".message").startswith("1 system call openat.")
    page.page.get_by_role("button", name="All system calls").click()
    page.press("Shift")
    assert page.text(".message").startswith("5 system calls.")


def test_panels_are_of_the_selected_range(open_page, both):
    page = open_page(both(CALLS, KERNEL), "#r=0,1000000;s=200000,50000;p=syscalls")
    assert [row[:3] for row in page.rows()] == [["read", "10.00 us", "1"]]
    page.press("5")
    assert [row[0] for row in page.rows()] == ["40.00 us", "10.00 us"] and page.text(".scope") == "50.00 us selected"
    page.page.locator(".switch button").nth(1).click()
    page.press("Shift")
    assert [row[6] for row in page.rows()] == ["CPU 0"] * len(page.rows())


def test_panels_are_of_the_chosen_lanes(open_page, both):
    page = open_page(both(CALLS, KERNEL), "#r=0,1000000;p=syscalls;o=rest")
    assert [row[0] for row in page.rows()] == ["write"]
    page.press("5")
    assert {row[6] for row in page.rows()} == {"t7 7"}


def test_what_was_not_recorded_is_not_offered_or_is_said(open_page, synth):
    page = open_page(synth(CALLS), "#r=0,1000000;p=syscalls")
    assert not {"Marks", "GIL", "Counters"} & set(tabs(page)) and {"Functions", "Finder", "Flame graph"} < set(tabs(page))
    assert "krait record --kernel" in page.text(".panel-body")
    page.press("5")
    assert "krait record --kernel" in page.text(".panel-body")


@pytest.mark.parametrize("script", [CUT, MISSED, CALLS + "100us run 7\n200us leave 7 2\n300us run 7\ntask 7 1 job\n"], ids=["lost", "GIL", "tasks"])
def test_other_tracks_of_states_are_not_the_kernels(open_page, synth, script):
    page = open_page(synth(script), "#r=0,1000000;p=states")
    assert "krait record --kernel" in page.text(".panel-body") and page.rows() == []


def test_states_on_the_page_are_those_that_krait_states_prints(open_page, both, krait):
    folder = both(MISSED, KERNEL)
    page = open_page(folder, "#r=0,1000000;p=states")
    (told,) = verb_json(krait, "states", folder, "--by", "thread", "--thread", "5")["threads"]
    words = {"on CPU": "user_ns", "on CPU, in the kernel": "system_ns", "waits: other": "blocked_other_ns", "ready: woken": "woken_ns"}
    assert [row[6] for row in page.rows()] == ["MainThread 5"] * 4
    assert {row[5]: float(row[0].removesuffix(" us")) for row in page.rows()} == {text: told[key] / 1000 for text, key in words.items()}


def test_states_on_the_page_tell_waits_for_the_gil_apart_from_locks(open_page, both, krait):
    folder = both(GIL_CALLS, GIL_KERNEL)
    page = open_page(folder, "#r=0,400000;p=states")
    (told,) = verb_json(krait, "states", folder, "--by", "thread", "--thread", "5")["threads"]
    shown = {row[5]: float(row[0].removesuffix(" us")) * 1000 for row in page.rows() if row[6] == "MainThread 5"}
    assert [shown["waits for the GIL"], shown["waits: lock"], shown["ready: woken"]] == [told["gil_ns"], told["blocked_lock_ns"], told["woken_ns"]]
    (colour,) = page.page.locator(".table-rows .row", has_text="waits for the GIL").locator("i").evaluate_all("all => all.map((i) => getComputedStyle(i).backgroundColor)")
    assert colour == page.page.evaluate("() => { const i = document.createElement('i'); i.style.background = '#c34d8d'; return i.style.backgroundColor; }")


def test_a_kernel_trace_offers_no_calls_and_has_counters(open_page, tmp_path):
    frequency = [event(us, "power_cpu_frequency", cpu=0, state=khz, cpu_id=0) for us, khz in ((0, 1000000), (100, 3000000))]
    page = open_page(write_kernel(tmp_path / "lttng", [switch(0, 0, 5), *frequency, switch(400, 5, 0)]), "#r=0,400000;p=counters")
    assert not {"Functions", "Finder", "Flame graph", "GIL", "Marks"} & set(tabs(page))
    (row,) = page.rows()
    assert row[:5] == ["frequency", "CPU 0", "2.500 GHz", "1.000 GHz", "3.000 GHz"]


def test_a_counter_of_fractions_shows_its_own_values(open_page, synth):
    page = open_page(synth("process 5 python3\ncode 1 python app main app.py 1\ncode 2 name - load - 0\nthread 5 MainThread\n0us call 1\n0us counter 2 99.564483511\n100us counter 2 0.25\n200us return\n"), "#p=counters")
    (row,) = page.rows()
    assert (row[0], row[3:7]) == ("load", ["0.25", "99.5645", "99.5645", "0.25"])


def test_who_waited_for_the_gil_and_who_had_it(open_page, synth):
    folder = synth(
        """
        process 5 python3
        code 1 python app main app.py 1
        thread 5 MainThread
        0us call 1
        300us gildrop
        400us gilwait 6
        500us giltake
        1000us return
        thread 6 worker
        0us call 1
        100us gilwait 5
        310us giltake
        500us gildrop
        1000us return
        """
    )
    page = open_page(folder, "#r=0,1000000;p=gil")
    assert "2 threads waited 310.0 us for the GIL; 10.00 us of it the GIL was free" in page.text(".note")
    assert sorted(page.rows()) == sorted(
        [["200.0 us", "64.5%", "1", "210.0 us", "worker 6", "MainThread 5"], ["100.0 us", "32.3%", "1", "100.0 us", "MainThread 5", "worker 6"],
         ["10.00 us", "3.2%", "1", "210.0 us", "worker 6", "nobody: free"],
         ["200.0 us", "64.5%", "1", "MainThread 5", "worker 6"], ["100.0 us", "32.3%", "1", "worker 6", "MainThread 5"]]  # fmt: skip
    )
    page.page.locator(".table-rows .row").first.click()
    page.press("2")
    assert "duration\n210.0 us" in page.text(".details")


def test_arrow_keys_go_from_tab_to_tab(open_page, synth):
    page = open_page(synth(CALLS), "#r=0,1000000;p=functions")
    page.page.locator("[role=tab][aria-selected=true]").focus()
    page.press("ArrowRight")
    focused = page.page.evaluate("() => document.activeElement.textContent")
    assert focused == "Details" == page.page.locator("[role=tab][aria-selected=true]").inner_text()
    assert page.page.locator("[role=tabpanel]").get_attribute("aria-labelledby") == "tab-details"
    page.press("End")
    assert page.page.locator("[role=tab][aria-selected=true]").inner_text() == tabs(page)[-1]


PLAYED = """
process 5 python3
code 1 python app main app.py 1
code 2 python app load app.py 2
thread 5 MainThread
0ms call 1
100ms call 2
300ms return
1000ms return
"""


def test_a_range_is_played_step_by_step(open_page, krait, tmp_path):
    record = tmp_path / "played"
    subprocess.run([Path(krait).parent / "tests" / "synth", record], input=PLAYED + "exit 0 0\n", text=True, check=True, timeout=60)
    page = open_page(record, "#r=0,1000000000;p=play")
    canvas = page.page.locator("canvas.play")
    shown = lambda: (page.text(".play-time"), canvas.get_attribute("aria-label"))  # noqa: E731
    assert shown() == ("0.000000000 s", "MainThread 5: app.main")
    canvas.focus()
    page.press(".")
    assert shown() == ("0.100000000 s", "MainThread 5: app.load")
    page.press(".", ".")
    assert shown()[0] == "1.000000000 s"
    page.press(",")
    assert shown() == ("0.300000000 s", "MainThread 5: app.main")
    page.press("Home")
    page.page.keyboard.press(" ")  # it is not done until it stands still
    page.page.wait_for_function("() => parseFloat(document.querySelector('.play-time').textContent) > 0")
    page.page.keyboard.press(" ")
    page.wait()
    assert 0 < float(page.text(".play-time").split()[0]) < 1


@pytest.mark.parametrize("opens", ["key", "mouse"])
def test_the_keys_of_playing_work_as_soon_as_the_panel_is_open(open_page, synth, opens):
    page = open_page(synth(PLAYED + "exit 0 0\n"), "#r=0,1000000000")
    if opens == "key":
        page.press("y")
    else:
        page.page.get_by_role("tab", name="Play").click()
    page.page.locator("canvas.play").wait_for()
    page.wait()
    page.press(".")
    assert page.text(".play-time") == "0.100000000 s"
    page.press(",", "Home")
    page.page.keyboard.press(" ")
    page.page.wait_for_function("() => parseFloat(document.querySelector('.play-time').textContent) > 0")
    page.page.keyboard.press(" ")
    page.page.keyboard.press("w")  # which is the timeline's
    page.page.wait_for_function("() => /r=(?!0,1000000000)/.test(location.hash)")


def test_a_link_has_the_moment_and_the_speed_of_playing(open_page, synth):
    folder = synth(PLAYED + "exit 0 0\n")
    page = open_page(folder, "#r=0,1000000000;p=play")
    shown = lambda page: (page.text(".play-time"), page.page.get_by_label("Speed").evaluate("(list) => list.selectedOptions[0].textContent"))  # noqa: E731
    page.page.get_by_label("Speed").select_option(index=2)
    page.page.locator("canvas.play").focus()
    page.press(".", ".")
    address, seen = page.address(), shown(page)
    assert seen[0] == "0.300000000 s"
    page.page.goto("about:blank")
    again = open_page(folder, f"#{address}")
    assert shown(again) == seen and again.address() == address
    again.page.locator("canvas.play").focus()
    again.press("Home")
    assert "moment" not in again.address() and shown(again)[0] == "0.000000000 s"


def test_log_records_say_level_logger_and_message(krait, chromium, tmp_path):
    def said(us, level, text):
        return event(us, "lttng_python:event", msg=text, logger_name="app.db", int_loglevel=level, **{"vtid of context": 7})

    folder = write_kernel(tmp_path / "ust", [said(0, 20, "begins"), said(50, 40, "<b>fails</b>"), said(50, 10, "ends")], domain="ust")
    with opened(krait, chromium, folder, "#r=0,60000;p=marks") as page:
        page.page.get_by_text("INFO app.db: begins").wait_for()
        page.page.get_by_text("ERROR app.db: <b>fails</b>").wait_for()
        page.page.get_by_text("DEBUG app.db: ends").wait_for()
        box = page.page.locator("canvas.lanes").bounding_box()
        page.page.mouse.move(box["x"] + 2, box["y"] + 26 + 3 + 6)
        page.page.locator(".timeline .tip").get_by_text("INFO app.db: begins").wait_for()


def test_spans_are_slices_and_no_marks_too(krait, chromium, record, any_python):
    code = "import krait, time\nkrait.mark('a', n=1)\nwith krait.span('work'): time.sleep(0.01)\n"
    run = record.text(any_python, code, env={"PYTHONPATH": str(BUILD / "python")})
    with opened(krait, chromium, run.path, "#p=marks") as page:
        assert [row[1] for row in page.rows()] == ["user:mark"]
        page.page.get_by_text('text = "a"').first.wait_for()


def test_marks_of_programs_that_were_not_recorded_are_counted(open_page, both):
    def said(us, tid, text):
        return event(us, "ftrace_print", text=text, **{"tid of context": tid})

    folder = both(CALLS, [switch(0, 0, 5), said(10, 5, "own"), switch(20, 5, 99), said(30, 99, "of others"), said(31, 99, "more"), switch(40, 99, 5)])
    page = open_page(folder, "#r=0,1000000;p=marks")
    page.page.get_by_text('text = "own"').first.wait_for()
    assert len(page.rows()) == 1 and page.text(".panel-body .note span") == "1 event in the range; 2 of programs that were not recorded: choose their lanes to see them"


def test_the_end_of_the_event_table_has_what_comes_before_the_last_event(open_page, synth):
    ticks = "".join(f"{us}us call 1\n{us}500 return\n" for us in range(1000, 2000))
    page = open_page(synth(CALLS.replace("0us call 1\n1000us return", f"{ticks}900ms call 1\n901ms return")), "#p=events")
    page.page.locator("input.place").fill("1000")
    for time in ("0.001999000 s", "0.900000000 s", "0.901000000 s"):
        page.page.locator(".table-rows .row").get_by_text(time, exact=True).wait_for()
    assert len(page.rows()) > 3


def test_a_mark_has_the_time_that_cat_prints_and_leads_to_its_event(krait, chromium, record, any_python):
    run = record.text(any_python, "import krait\nfor n in range(200): krait.mark('m', n=n)\n", env={"PYTHONPATH": str(BUILD / "python")})
    lines = subprocess.run([krait, "cat", "--json", "--filter", 'name == "user:mark"', run.path], capture_output=True, text=True, check=True).stdout.splitlines()
    with opened(krait, chromium, run.path, "#p=marks") as page:
        origin = int(page.page.evaluate("() => String(krait.context.trace.origin)"))
        printed = [[f"{(int(event['time_ns']) - origin) / 1e9:.9f} s", event["payload"]["fields"]] for event in map(json.loads, lines)]
        page.page.wait_for_function("() => [...document.querySelectorAll('.table-rows .row')].every((row) => row.textContent.includes('fields = '))")
        for wanted in printed[:3]:
            page.page.get_by_text(wanted[0]).first.wait_for()
        rows = page.rows()
        assert [[row[0], json.loads(row[2].split("fields = ")[1])] for row in rows] == printed[: len(rows)]
        page.page.locator(".table-rows .row").nth(4).click()
        page.page.wait_for_function("() => (krait.context.store.view.looks.event ?? '').endsWith('.0')")
        page.press("8")
        chosen = page.page.locator(".row.chosen")
        assert chosen.locator(".cell").first.inner_text() == rows[4][0] and '\\"n\\":4' in chosen.inner_text()


def test_details_of_a_call_have_the_time_that_cat_prints(krait, chromium, record, any_python):
    """The page's own times are exact, krait cat's rounded as babeltrace2's are: some of them differ by a nanosecond."""
    run = record.text(any_python, "def step(n): return n\nfor n in range(100): step(n)\n")
    lines = subprocess.run([krait, "cat", "--json", "--filter", 'name == "python:call"', run.path], capture_output=True, text=True, check=True).stdout.splitlines()
    printed = [int(event["time_ns"]) for event in map(json.loads, lines) if (event["payload"]["code"]["label"] or "").endswith("step")]
    with opened(krait, chromium, run.path) as page:
        origin = int(page.page.evaluate("() => String(krait.context.trace.origin)"))
        exact = page.page.evaluate("""async (count) => {
          const ask = (path) => fetch(`api/${path}`).then((answer) => answer.json());
          const { funcs } = await ask('search?text=step'), track = krait.context.trace.tracks.find((t) => t.kind === 'calls').id, found = [];
          for (let at = 0n; found.length < count; at = BigInt(found[found.length - 1].begin)) found.push(await ask(`next?track=${track}&at=${at}&func=${funcs[0]}&forward=1`));
          return found.map((call) => ({ ...call, track }));
        }""", len(printed))
        pairs = [(call, wanted - origin) for call, wanted in zip(exact, printed)]
        assert all(abs(int(call["begin"]) - wanted) <= 1 for call, wanted in pairs)
        for call, wanted in [pair for pair in pairs if int(pair[0]["begin"]) != pair[1]][:5] + pairs[:2]:
            page.page.evaluate("""(call) => {
              krait.context.store.selectCall({ ...call, begin: BigInt(call.begin), end: BigInt(call.end) });
              krait.context.store.openPanel('details');
            }""", call)
            page.page.wait_for_function("(text) => [...document.querySelectorAll('.details dd')].some((each) => each.textContent === text)", arg=f"{wanted / 1e9:.9f} s")
        page.page.evaluate("(func) => { krait.context.store.setFunc(func); krait.context.store.openPanel('finder'); }", exact[0]["func"])
        slowest = max(pairs, key=lambda pair: int(pair[0]["end"]) - int(pair[0]["begin"]))
        page.page.wait_for_function("(text) => document.querySelectorAll('.table-rows .row')[0]?.textContent.includes(text)", arg=f"{slowest[1] / 1e9:.9f} s")


def test_details_of_a_call_have_its_recorded_arguments(krait, chromium, record, any_python):
    code = "def add(item, n): return [item] * 2\nadd('<b>pen</b>', 12345678901234567890)\n"
    run = record.text(any_python, code, options=["--args", "add(item, n) -> return"])
    with opened(krait, chromium, run.path) as page:
        page.press("/")
        page.page.keyboard.type("__main__.add")
        page.page.locator("#choices li").filter(has_text="__main__.add").first.wait_for()
        page.press("Enter")
        page.page.locator(".note .actions button").first.click()
        page.wait().press("2")
        page.page.locator(".fields tr").nth(2).wait_for()
        rows = [row.inner_text().split("\t") for row in page.page.locator(".fields tr").all()]
        assert rows == [["item", '"<b>pen</b>"'], ["n", "12345678901234567890"], ["return", '["<b>pen</b>","<b>pen</b>"]']]


def test_details_say_why_a_begin_or_an_end_is_not_recorded(open_page, synth):
    page = open_page(synth(CUT), "#r=720000,60000;p=details;c=0,0,750000")
    text = page.text(".details")
    assert "began before it was recorded\nthe recording was switched off here, for 500.0 us at 0.000200000 s" in text
    assert "not recorded as a whole\nevents were lost here: calls may be missing; 5 events, for 300.0 us at 0.000900000 s" in text
    page.page.get_by_role("button", name="the recording was switched off here").click()
    page.press("Shift")
    begin, length = map(int, re.match(r"r=(\d+),(\d+)", page.address()).groups())
    assert begin <= 200_000 and begin + length >= 700_000


def test_the_finder_says_that_a_generator_has_steps(open_page, synth):
    page = open_page(
        synth("""
process 5 python3 1 app
code 1 python app main app.py 1
code 2 python app rows app.py 5
thread 5 MainThread
0 call 1
1ms call 2
2ms yield
3ms resume 2
6ms yield
7ms resume 2
8ms return
100ms return
exit 0 0
""")
    )
    page.press("/")
    page.page.keyboard.type("rows")
    page.pause()
    page.press("Enter")
    assert page.text(".note").startswith("3 steps in the range. Each is a step of a generator or coroutine") and "1 of them is a first step" in page.text(".note")
    assert [(row[0], row[3]) for row in page.rows()] == [("3.000 ms", "resume to yield"), ("1.000 ms", "call to yield"), ("1.000 ms", "resume to return")]
    page.page.locator(".table-rows .row").first.click()
    page.press("2")
    assert "resume to yield" in page.text(".details")
