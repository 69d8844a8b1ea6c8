# SPDX-License-Identifier: Apache-2.0
"""A recording in one page: it says what the other verbs say, loads nothing, and nothing in it comes from the recording as markup."""

import base64
import re
import subprocess

import pytest
from browser import browser

HOSTILE = "%3Cimg%20src=x%20onerror=window.hit=1%3E</script><script>window.hit=1</script>%01%e2%80%ae]]>"
TRACE = f"""
process 5 python3 1 /usr/bin/python3%20app.py%20{HOSTILE}
code 1 python app main /srv/app.py 1
code 2 python app load /srv/app.py 10
code 3 c time sleep - 0
code 4 python {HOSTILE} {HOSTILE} /srv/{HOSTILE} 3
thread 5 {HOSTILE}
0us call 1
100us call 2
400us ccall 3
500us creturn
600us return
700us call 4
900us return
1000us return
exit 0 0
"""


@pytest.fixture
def page(krait, synth, tmp_path):
    """page(script, *options): the page's text, and what was said."""

    def make(script, *options):
        path = tmp_path / "page.html"
        run = subprocess.run([krait, "view", synth(script), "--html", path, *options], capture_output=True, text=True, timeout=120)
        assert run.returncode == 0, run.stderr
        return path.read_text(), run.stderr

    return make


def rows(text):
    return [re.sub("<[^>]*>", "|", row).strip("|").split("||") for row in re.findall("<tr>(<td>.*)</tr>", text)]


def pictures(text):
    return [base64.b64decode(data).decode() for data in re.findall(r"data:image/svg\+xml;base64,([^\"]*)", text)]


def test_the_page_has_what_report_says(page):
    text, said = page(TRACE)
    assert "page.html (" in said
    first = rows(text)[0]
    assert first[:4] == ["400.0 us", "40.0%", "500.0 us", "1"] and first[9] == "app.load"
    assert {row[9] for row in rows(text)} >= {"app.main", "app.load", "time.sleep (C)"}
    assert "<dt>duration</dt><dd>1.000 ms</dd>" in text


def test_both_pictures_are_in_it(page):
    timeline, flame = pictures(page(TRACE)[0])
    assert 'id="timeline"' in timeline and "app.load" in timeline
    assert 'id="flame"' in flame and "app.load" in flame


def test_a_part_of_the_time_alone(page):
    text, _ = page(TRACE, "--from", "400us", "--until", "500us")
    assert rows(text)[0][:3] == ["100.0 us", "100.0%", "100.0 us"] and "<dt>begins at</dt><dd>400.0 us</dd>" in text


def test_what_is_missing_is_said_and_how_to_see_it(page):
    codes = "".join(f"code {i} python m f{i} m.py {i}\n" for i in range(1, 301))
    calls = "".join(f"{2 * i}us call {i}\n{2 * i + 1}us return\n" for i in range(1, 301))
    text, _ = page(f"process 5 python3\n{codes}lost 1 12345\nthread 5\n{calls}exit 0 0\n")
    assert "12,345 events" in text and "100 more functions left out: <code>krait report " in text and "--limit 0" in text


def test_it_stays_under_10_mb(page):
    codes = "".join(f"code {i} python package.module{i} {'name' * 40}{i} /a/long/path/to/a/file{i}.py {i}\n" for i in range(1, 3001))
    nested = "".join(f"{10 * i}us call {i}\n{10 * i + 1}us call {i % 3000 + 1}\n{10 * i + 5}us return\n{10 * i + 8}us return\n" for i in range(1, 3001))
    text, _ = page(f"process 5 python3\n{codes}thread 5\n{nested}exit 0 0\n")
    assert 100_000 < len(text.encode()) <= 10 << 20


def test_nothing_of_the_recording_is_markup_and_nothing_is_loaded(page, tmp_path):
    text, _ = page(TRACE)
    assert "<img" not in text and text.count("<script") == 0 and not re.search(r"""(src|href)=["'](?!data:|#)""", text)
    with browser() as chromium:
        shown = chromium.new_page()
        asked = []
        shown.on("request", lambda request: asked.append(request.url[:30]))
        shown.goto(f"file://{tmp_path / 'page.html'}")
        shown.wait_for_timeout(500)
        assert [frame.evaluate("() => window.hit === undefined") for frame in shown.frames] == [True, True, True]
        assert {url.partition(":")[0] for url in asked} <= {"file", "data"}
        assert "app.load" in shown.frames[2].evaluate("() => document.documentElement.textContent")
