# SPDX-License-Identifier: Apache-2.0
"""A recording in one page: it says what the other verbs say, loads nothing, and nothing in it comes from the recording as markup."""

import html
import re
import subprocess

import pytest
from conftest import verb_json
from kernel_made import begins, ends, event, switch, wake
from kernel_made import write as write_kernel
from reads_made import GIL_CALLS, GIL_KERNEL
from served import Server

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


def table(text, title):
    """The cells of the table below a heading."""
    part = text.partition(f"<h2>{title}</h2>")[2].partition("</table>")[0]
    rows = [re.findall("<td[^>]*>(.*?)</td>", row) for row in re.findall("<tr>(<td.*)</tr>", part)]
    return [[re.sub("<[^>]*>", "", cell) for cell in row] for row in rows]


def rows(text):
    return table(text, "Functions")


def timeline(text):
    return re.search('<div class="picture">(<svg.*?</svg>)', text, re.S)[1]


def flames(text):
    return {title: html.unescape(page) for title, page in re.findall("<summary>([^<]*)</summary>\n<iframe [^>]*srcdoc='([^']*)'", text)}


def test_the_page_has_what_report_says(page):
    text, said = page(TRACE)
    assert "page.html (" in said
    first = rows(text)[0]
    assert first[:4] == ["400.0 us", "40.0%", "500.0 us", "1"] and first[10] == "app.load"
    assert {row[10] for row in rows(text)} >= {"app.main", "app.load", "time.sleep (C)"}
    assert "<dt>duration</dt><dd>1.000 ms</dd>" in text


def test_its_pictures_are_in_it(page):
    text, _ = page(TRACE)
    assert 'id="timeline"' in timeline(text) and "app.load" in timeline(text)
    assert list(flames(text)) == ["Time by call stack", "Self time, and who called it"]
    for flame in flames(text).values():
        assert 'id="flame"' in flame and "app.load" in flame


@pytest.mark.parametrize("mib", [0, 2])
def test_a_browser_shows_its_pictures_however_large_they_are(page, chromium, tmp_path, mib):
    depth = 30 if mib else 3
    codes = "".join(f"code {i} python app {'x' * 980}{i} /srv/{'y' * 980}.py {i}\n" for i in range(1, depth + 1))
    calls = "".join("".join(f"{200 * k + d}us call {d + 1}\n" for d in range(depth)) + "".join(f"{200 * k + 199 - depth + d}us return\n" for d in range(depth)) for k in range(60))
    text, _ = page(f"process 5 python3\n{codes}thread 5\n{calls}exit 0 0\n")
    assert mib << 20 <= len(timeline(text))
    shown = chromium.new_page()
    shown.goto(f"file://{tmp_path / 'page.html'}")
    first = shown.locator("#timeline .calls > g").first.bounding_box()
    assert first["width"] > 10 and first["y"] < shown.locator("details.flame").first.bounding_box()["y"]
    for flame in shown.locator("details.flame").all():
        if flame.get_attribute("open") is None:
            flame.locator("summary").click()
        flame.scroll_into_view_if_needed()
        frames = flame.locator("iframe").content_frame.locator("#flame .f")
        frames.nth(depth).wait_for()
        assert frames.nth(depth).bounding_box()["width"] > 10
    shown.close()


def test_calls_have_a_histogram_of_their_durations(page):
    calls = "".join(f"{10 * i}us call 2\n{10 * i + (3 if i % 4 else 9)}us return\n" for i in range(100))
    text, _ = page(f"process 5 python3\ncode 1 python app main /srv/app.py 1\ncode 2 python app load /srv/app.py 10\nthread 5\n{calls}exit 0 0\n")
    row = next(row for row in rows(text) if row[10] == "app.load")
    assert row[9] == "from 2.048 us: 75; from 8.192 us: 25"
    assert "2.048 us to 16.38 us" in text and text.count('<svg class="hist"') == 1


def test_threads_have_a_row(page):
    text, _ = page(TRACE + "thread 6 other\n0us call 2\n250us return\n")
    assert [row[:2] + row[4:] for row in table(text, "Threads")][-1] == ["250.0 us", "1", "python3 5: other 6"]


def test_source_is_in_it_unless_it_is_left_out(page, tmp_path):
    source = tmp_path / "app.py"
    source.write_text("# first\ndef main():\n    return '<b>' + secret\n")
    script = f"process 5 python3\ncode 1 python app main {source} 2\ncode 2 python app key /etc/hostname 1\nthread 5\n0us call 1\n5us call 2\n6us return\n9us return\nexit 0 0\n"
    text, _ = page(script)
    assert "<h2>Source</h2>" in text and "return '&lt;b&gt;' + secret" in text and "# first" not in text
    assert text.count("<details>") == 1  # what is no Python source stays where it is
    text, _ = page(script, "--no-source")
    assert "secret" not in text and "<h2>Source</h2>" not in text and "<li>source (--no-source): <code>krait view " in text
    source.write_text("# first\ndef main():\n" + "    step()\n" * 100)
    text, _ = page(script)
    assert text.count("    step()\n") == 59 and "... and 41 more lines to the end of the file\n</pre>" in text


def test_a_page_has_the_host_of_a_kernel_trace(krait, tmp_path):
    folder = write_kernel(tmp_path / "kernel", [switch(0, 0, 5), switch(10, 5, 0)], host="web<1>")
    assert "<dt>host</dt><dd>web&lt;1&gt;</dd>" in written(krait, folder, tmp_path / "page.html")


# Of thread 5 four reads, one of them an error; 7 is another program's.
KERNEL = [
    switch(0, 0, 5), begins(100, "read"), ends(101, "read"), begins(300, "read"), ends(400, "read", ret=-11), begins(500, "read"),
    event(505, "power_cpu_frequency", state=1_000_000, cpu_id=0), switch(510, 5, 7, 1), begins(520, "write"), ends(530, "write"), wake(590, 5),
    switch(595, 7, 5), ends(600, "read"), event(750, "power_cpu_frequency", state=3_000_000, cpu_id=0), switch(1000, 5, 0),
]  # fmt: skip


def written(krait, folder, path, *options):
    subprocess.run([krait, "view", folder, "--html", path, *options], check=True, timeout=120)
    return path.read_text()


def ns(text):
    value, unit = text.split()
    return float(value.replace(",", "")) * {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}[unit]


def test_states_and_system_calls_are_those_of_krait_states(krait, both, tmp_path):
    folder = both("process 5 python3\ncode 1 python app main app.py 1\nthread 5 MainThread\n0 call 1\n1000us return\nexit 0 0\n", KERNEL)
    text = written(krait, folder, tmp_path / "page.html")
    (thread,) = table(text, "States of threads")
    heads = re.findall("<th(?: [^>]*)?>(.*?)</th>", text.partition("<h2>States of threads</h2>")[2].partition("</thead>")[0])
    told = verb_json(krait, "states", folder)
    (row,) = [t for t in told["threads"] if t["tid"] == 5]
    keys = {"on CPU": "on_cpu_ns", "user": "user_ns", "system": "system_ns", "woken": "woken_ns"}
    assert {key: ns(cell) for key, cell in zip(heads, thread) if key in keys} == {key: row[name] for key, name in keys.items()}
    assert thread[-1] == "MainThread 5"
    (calls,) = table(text, "System calls")
    (read,) = [c for c in told["syscalls"] if c["name"] == "read"]
    assert (ns(calls[0]), calls[1:3], ns(calls[4]), ns(calls[7]), calls[8]) == (read["total_ns"], ["3", "1"], read["min_ns"], read["max_ns"], "read")
    cpus = {row[4]: row for row in table(text, "CPUs")}
    assert ns(cpus["t7"][0]) == 85_000 and cpus["t7"][1:3] == ["8.5%", "1"] and cpus["t7"][5] == "CPU 0"
    assert table(text, "Counters") == [["2,010,103 kHz", "1,000,000 kHz", "3,000,000 kHz", "1,000,000 kHz", "3,000,000 kHz", "2", "frequency", "CPU 0"]]  # the range ends 1 ns behind the last event
    part = table(written(krait, folder, tmp_path / "part.html", "--from", "350us", "--until", "550us"), "System calls")
    assert [(row[0], row[1], row[7]) for row in part] == [("100.0 us", "2", "100.0 us")]  # 50 us of two calls of 100 us each


@pytest.mark.parametrize("edges", [(), ("--from", "120us", "--until", "320us"), ("--from", "181us", "--until", "299us")])
def test_waits_for_the_gil_are_states_as_in_krait_states(krait, both, tmp_path, edges):
    folder = both(GIL_CALLS, GIL_KERNEL)
    text = written(krait, folder, tmp_path / "page.html", *edges)
    heads = re.findall("<th(?: [^>]*)?>(.*?)</th>", text.partition("<h2>States of threads</h2>")[2].partition("</thead>")[0])
    (row,) = [row for row in table(text, "States of threads") if row[-1] == "MainThread 5"]
    (told,) = [t for t in verb_json(krait, "states", folder, *edges)["threads"] if t["tid"] == 5]
    keys = {"on CPU": "on_cpu_ns", "user": "user_ns", "system": "system_ns", "woken": "woken_ns", "gil": "gil_ns", "lock": "blocked_lock_ns", "other": "blocked_other_ns"}
    shown = {keys[head]: ns(cell) if cell != "-" else 0 for head, cell in zip(heads, row) if head in keys}
    assert shown == {name: told[name] for name in shown} and {name for name in keys.values() if told[name]} <= set(shown)
    splits = text.partition("<h2>States of threads</h2>")[2].partition("</table>")[0]
    assert ('class="w gil"' in splits) is bool(told["gil_ns"])


def test_waits_for_the_gil_are_those_of_the_page(krait, record, any_python, tmp_path):
    program = """
        import threading
        def spin():
            for _ in range(60):
                sum(range(20000))
        threads = [threading.Thread(target=spin, name=f"spin{i}") for i in range(3)]
        [t.start() for t in threads]
        [t.join() for t in threads]
    """
    folder = record.text(any_python, program).path
    server = Server(krait, folder)
    trace, pairs = server.built(), server.api("gil")["rows"]
    server.end()
    named = [("not known" if i is None else "nobody: free" if i == -1 else f"{trace['threads'][i]['name']} {trace['threads'][i]['tid']}") for pair in pairs for i in pair[:2]]
    expected = {tuple(named[2 * i : 2 * i + 2]): pair[2] for i, pair in enumerate(pairs)}
    rows = table(written(krait, folder, tmp_path / "page.html"), "Waits for the GIL")
    assert expected and {tuple(row[4:]): int(row[2].replace(",", "")) for row in rows} == expected
    assert [ns(row[0]) for row in rows] == sorted((ns(row[0]) for row in rows), reverse=True)


def test_a_page_without_the_kernel_has_no_empty_tables(page):
    text, _ = page(TRACE)
    assert not [title for title in ("States of threads", "CPUs", "System calls", "Waits for the GIL", "Counters") if title in text]


def test_rows_that_are_left_out_are_counted(krait, tmp_path):
    events = [e for i in range(150) for e in (switch(10 * i, 0, 100 + i), begins(10 * i + 1, f"call{i}"), ends(10 * i + 2, f"call{i}"), switch(10 * i + 5, 100 + i, 0))]
    text = written(krait, write_kernel(tmp_path / "kernel", events), tmp_path / "page.html")
    for title, verb in {"states of threads": "states .* --by thread --limit 0", "system calls": "states .* --by syscall --limit 0"}.items():
        assert re.search(f"<li>50 more rows of {title}: <code>krait {verb}</code>", text), title


@pytest.mark.parametrize(
    "options, said",
    [
        (["--no-source"], "--no-source needs --html"),
        (["--max-size", "2M", "--svg", "-"], "--max-size needs --html"),
        (["--max-size", "100K", "--html", "-"], "a page needs 1M at least"),
    ],
)
def test_options_of_a_page(krait, synth, options, said):
    run = subprocess.run([krait, "view", synth(TRACE), *options], capture_output=True, text=True, timeout=60)
    assert run.returncode == 2 and said in run.stderr and not run.stdout


def test_a_part_of_the_time_alone(page):
    text, _ = page(TRACE, "--from", "400us", "--until", "500us")
    assert rows(text)[0][:3] == ["100.0 us", "100.0%", "100.0 us"] and "<dt>begins at</dt><dd>400.0 us</dd>" in text


def test_what_is_missing_is_said_and_how_to_see_it(page):
    codes = "".join(f"code {i} python m f{i} m.py {i}\n" for i in range(1, 301))
    calls = "".join(f"{2 * i}us call {i}\n{2 * i + 1}us return\n" for i in range(1, 301))
    text, _ = page(f"process 5 python3\n{codes}lost 1 12345\nthread 5\n{calls}exit 0 0\n")
    assert "12,345 events" in text and re.search("<li>100 more functions: <code>krait report .* --limit 0</code>", text)


def test_it_stays_under_10_mb(page):
    codes = "".join(f"code {i} python package.module{i} {'name' * 40}{i} /a/long/path/to/a/file{i}.py {i}\n" for i in range(1, 3001))
    nested = "".join(f"{10 * i}us call {i}\n{10 * i + 1}us call {i % 3000 + 1}\n{10 * i + 5}us return\n{10 * i + 8}us return\n" for i in range(1, 3001))
    text, _ = page(f"process 5 python3\n{codes}thread 5\n{nested}exit 0 0\n")
    assert 100_000 < len(text.encode()) <= 10 << 20


def test_it_stays_under_10_mb_whatever_the_trace(page):
    codes = "".join(f"code {i} python mod{i} {'x' * 3000}{i} /a/{'f' * 3000}{i}.py {i}\n" for i in range(1, 41))
    calls = "".join(
        "".join(f"{100 * k + d}us call {d}\n" for d in range(1, 41)) + "".join(f"{100 * k + 50 + d}us return\n" for d in range(40)) for k in range(60)
    )
    threads = "".join(f"thread {i}\n{calls}" for i in range(100, 112))
    text, said = page(f"process 5 python3\n{codes}{threads}exit 0 0\n", "--from", "0", "--until", "1")
    assert len(text.encode()) <= 10 << 20 and "12 threads" in said
    left = re.search(r"<li>of the timeline: (\d+) threads, calls deeper than \d+: <code>krait view (\S+) (.*?)</code>", text)
    assert left and left[3] == "--svg timeline.svg --limit 0 --depth 40 --from 0 --until 1"


@pytest.mark.parametrize("mib", [10, 1])
def test_it_stays_small_where_everything_is_long(page, tmp_path, mib):
    """Each character takes six in the page, and so does the source."""
    long, source = "%22" * 3000, tmp_path / "long.py"
    source.write_text(('"' * 1000 + "\n") * 500)
    codes = "".join(f"code {i} python {long} {long}{i} {source if i % 2 else '/' + '%22' * 1300} {i}\n" for i in range(1, 241))
    threads = "".join(
        f"thread {t} {long}\n" + "".join(f"{10 * i}us call {(i + 5 * t) % 240 + 1}\n{10 * i + 9}us return\n" for i in range(40)) for t in range(100, 140)
    )
    text, _ = page(f"process 5 {long} 1 {'%22' * 1300}\n{codes}{threads}exit 0 0\n", "--max-size", f"{mib}M", "--limit", "0")
    assert len(text.encode()) <= mib << 20
    assert re.search(r"<li>of the timeline: \d+ threads.*: <code>krait view .* --svg timeline.svg --limit 0", text) and "more functions" in text


def test_nothing_of_the_recording_is_markup_and_nothing_is_loaded(page, chromium, tmp_path):
    text, _ = page(TRACE)
    outside = re.sub("srcdoc='[^']*'", "", text)
    assert not re.search(r"""<(img|script|link|object)|(src|href|action)=["'](?!#)""", outside)
    for flame in flames(text).values():
        assert "<img" not in flame and flame.count("<script") == 2 and not re.search(r"""(src|href)=["'](?!#)""", flame)
    shown = chromium.new_page()
    asked = []
    shown.on("request", lambda request: asked.append(request.url))
    shown.goto(f"file://{tmp_path / 'page.html'}")
    shown.locator("summary").last.click()
    shown.locator("iframe").last.content_frame.locator("#flame .f").first.wait_for()
    assert [frame.evaluate("() => window.hit === undefined") for frame in shown.frames] == [True, True, True]
    assert [url.partition("?")[0] for url in asked] == [f"file://{tmp_path / 'page.html'}"]
    assert "app.load" in shown.frames[2].evaluate("() => document.documentElement.textContent")
    shown.close()
