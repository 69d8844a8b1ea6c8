# SPDX-License-Identifier: Apache-2.0
"""The event table of the page of `krait view`, of more events than the page holds at a time."""

import json
import subprocess

from browser import opened

TIMES, SAME, MOST = 8400, 3, 20_000  # MOST and the height of a row, 22 pixels, as in web/src/panels/events.ts
# Three events at each of the times: what the page drops must not part them.
EVENTS = "".join(f"{i}us call 1\n" * SAME + f"{i + 5}us return\n" * SAME for i in range(0, 5 * TIMES, 10))
# Scrolls on and on, until nothing more comes; returns the rows that were on the screen at each stop, and the most that were held.
SCROLL = """async (forward) => {
  const list = document.querySelector('.events .table-rows'), note = document.querySelector('.message'), stops = [];
  let most = 0, rows = [];
  for (let still = 0; still < 25;) {
    const before = note.textContent;
    list.scrollTop = forward ? list.scrollHeight : 0;
    await new Promise((done) => setTimeout(done, 8));
    most = Math.max(most, list.querySelector('.virtual-inner').clientHeight / 22);
    still = note.textContent === before ? still + 1 : 0;
    rows = [...list.querySelectorAll('.row')].map((row) => [row.children[0].textContent, row.children[1].textContent]);
    if (rows.length && !still) stops.push(rows);
  }
  return { stops: [...stops, rows], most };
}"""


def test_a_table_longer_than_the_page_holds_is_whole_to_the_end_and_back(krait, chromium, synth):
    folder = synth(f"process 5 python3\ncode 1 python app main app.py 1\nthread 5 MainThread\n{EVENTS}exit 0 0\n")
    lines = subprocess.run([krait, "cat", "--json", folder], capture_output=True, text=True, check=True).stdout.splitlines()
    with opened(krait, chromium, folder, f"#r=0,{5000 * TIMES};p=events") as page:
        origin = int(page.page.evaluate("() => String(krait.context.trace.origin)"))
        printed = [[f"{(int(event['time_ns']) - origin) / 1e9:.9f} s", event["event"]] for event in map(json.loads, lines)]
        first = {time: i for i, (time, _) in reversed([*enumerate(printed)])}
        assert len(printed) >= SAME * TIMES > MOST + 5000

        def are_printed(stops):
            for rows in stops:
                (begin, *_) = [i for i in range(first[rows[0][0]], first[rows[0][0]] + SAME) if printed[i : i + len(rows)] == rows]
            return begin, begin + len(rows)

        there = page.page.evaluate(SCROLL, True)
        assert are_printed(there["stops"])[1] == len(printed) and MOST - 1000 < there["most"] <= MOST + 1000
        assert page.text(".message").endswith("on; scroll for more")  # the beginning is no longer held
        back = page.page.evaluate(SCROLL, False)
        assert are_printed(back["stops"])[0] == 0 and back["most"] <= MOST + 1000
        assert page.text(".message").startswith("the first ") and page.text(".message").endswith("of the range; scroll for more")
        again = page.page.evaluate(SCROLL, True)
        assert are_printed(again["stops"])[1] == len(printed)


def test_a_link_has_the_text_that_is_searched_for(krait, chromium, synth):
    folder = synth("process 5 python3\ncode 1 python app main app.py 1\nthread 5 MainThread\n0us call 1\n10us return\nexit 0 0\n")
    with opened(krait, chromium, folder, "#r=0,10000;p=events") as page:
        words = page.page.get_by_label("Search events for a text")
        words.fill("app.main, 1:2 50%")
        words.blur()
        page.pause()
        address = page.address()
        page.page.goto("about:blank")
        page.page.go_back()
        assert page.wait().page.get_by_label("Search events for a text").input_value() == "app.main, 1:2 50%"
        page.page.get_by_label("Search events for a text").fill("")
        page.pause()
        assert "words" in address and "words" not in page.address()


def test_event_names_that_no_event_has_are_told_as_by_cat(krait, chromium, synth):
    folder = synth("process 5 python3\ncode 1 python app main app.py 1\nthread 5 MainThread\n0us call 1\n10us return\nexit 0 0\n")
    expression = "name == pyton:call || name == python:call || name == zzz*"
    told = subprocess.run([krait, "cat", "--filter", expression, folder], capture_output=True, text=True, check=True).stderr.removeprefix("krait cat: ").splitlines()
    assert len(told) == 2 and "did you mean 'python:call'?" in told[0]
    with opened(krait, chromium, folder, "#r=0,20000;p=events") as page:
        field = page.page.get_by_label("Filter of events")
        field.fill(expression)
        page.page.wait_for_selector(".unmet")
        assert page.page.inner_text(".unmet").splitlines() == told and page.text(".message") == "1 event"
        field.fill("name == python:call")
        page.page.wait_for_selector(".unmet", state="hidden")
