# SPDX-License-Identifier: Apache-2.0
"""krait flame: the picture, what is in it, and how it behaves in a browser."""

import json
import os
import pathlib
import re
import subprocess
import xml.etree.ElementTree as ET
from urllib.parse import unquote

import pytest
from browser import BROWSER
from recording import break_event

ROOT = pathlib.Path(__file__).resolve().parents[3]
KRAIT = pathlib.Path(os.environ.get("KRAIT", ROOT / "build" / "krait"))
SYNTH = KRAIT.parent / "tests" / "synth"
SVG = "{http://www.w3.org/2000/svg}"

HOSTILE = "</script>]]><b>\"'&%01%1b%7f%ff%c3%28%ed%a0%80%e2%80%ae<!--${x}\\u0041"

# main 100 ms: work 60 ms (40 own, of which 20 in len), again below itself, other 30 ms, 10 own.
SMALL = f"""
process 100 python3
code 1 python __main__ main /srv/app.py 10
code 2 python app.core work /srv/core.py 20
code 3 c builtins len - 0
code 4 python app.other {HOSTILE} /srv/<&>.py 3
thread 101 MainThread
0 call 1
0 call 2
10ms ccall 3
30ms creturn
30ms call 2
40ms return
60ms return
60ms call 4
90ms return
100ms return
exit 0 0
"""


def record(folder, script):
    subprocess.run([SYNTH, folder], input=script.encode(), check=True, timeout=60)
    return folder


def flame(*args, code=0, cwd=None):
    run = subprocess.run([KRAIT, "flame", *args], capture_output=True, text=True, timeout=120, cwd=cwd)
    assert run.returncode == code, run.stderr
    return run


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return record(tmp_path_factory.mktemp("flame") / "small", SMALL)


def draw(trace, out, *args):
    flame(trace, *args, "-o", out)
    return ET.parse(out).getroot()


def frames(root):
    """(title lines, x, y, width, classes) of every frame."""
    group = next(g for g in root.iter(SVG + "g") if g.get("id") == "frames")
    for g in group.iter(SVG + "g"):
        if g is group:
            continue
        rect = g.find(SVG + "rect")
        box = [float(rect.get(k)) for k in ("x", "y", "width")]
        yield (g.find(SVG + "title").text.split("\n"), *box, g.get("class").split())


def data_of(root):
    return json.loads(next(s.text for s in root.iter(SVG + "script") if s.get("id") == "data"))


# ---- the file ----


def test_svg_holds_a_frame_for_each_stack_with_its_numbers(small, tmp_path):
    root = draw(small, tmp_path / "f.svg")
    titles = {t[0]: t for t, *_ in frames(root)}
    assert titles["__main__.main"][1:] == [
        "/srv/app.py:10", "total 100\u202fms (100.0\u202f% of all)", "self 10.0\u202fms, 1 call"]
    assert titles["builtins.len"][1:] == [
        "total 20.0\u202fms (20.0\u202f% of all, 33.3\u202f% of parent)", "self 20.0\u202fms, 1 call"]
    assert len(list(frames(root))) == 6


def test_widths_add_up_and_callees_stand_within_their_callers(small, tmp_path):
    boxes = {}
    for title, x, y, w, _ in frames(draw(small, tmp_path / "f.svg", "--width", "1032")):
        boxes.setdefault(title[0], []).append((x, y, w + 1))
    main, = boxes["__main__.main"]
    assert main == (16, boxes["all"][0][1] - 18, 1000)
    outer, inner = sorted(boxes["app.core.work"], key=lambda b: -b[2])
    assert outer[2] == pytest.approx(600) and inner[2] == pytest.approx(100)
    assert outer[1] == main[1] - 18 and inner[1] == outer[1] - 18
    other = next(v[0] for k, v in boxes.items() if k.startswith("app.other"))
    assert other[0] == pytest.approx(outer[0] + 600) and other[2] == pytest.approx(300)


@pytest.mark.parametrize("option", ["--icicle", "--inverted"])
def test_icicle_puts_the_root_on_top(small, tmp_path, option):
    ys = {t[0]: y for t, _, y, *_ in frames(draw(small, tmp_path / "f.svg", option))}
    assert ys["all"] < ys["__main__.main"] < ys["app.core.work"] and ys["__main__.main"] < ys["builtins.len"]


def test_html_is_one_page_without_anything_from_outside(small, tmp_path):
    flame(small, "-o", tmp_path / "f.html")
    text = (tmp_path / "f.html").read_text()
    assert text.startswith("<!doctype html>") and "Content-Security-Policy" in text
    assert not re.search(r"\b(src|href)\s*=|@import|url\(", text)
    assert "http" not in text.replace("http-equiv", "").replace("http://www.w3.org/", "")


def test_same_recording_gives_the_same_bytes(small, tmp_path):
    for name in ("a.svg", "b.svg"):
        flame(small, "-o", tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_standard_output_gets_the_svg_and_nothing_else(small):
    run = flame(small, "-o", "-")
    assert run.stderr == "" and ET.fromstring(run.stdout).tag == SVG + "svg"


def test_a_graph_of_nothing_is_told_from_one_of_much(small, tmp_path):
    run = flame(small, "--from", "1h", cwd=tmp_path, code=1)
    assert run.stderr == "krait flame: no calls were recorded in that time\n" and not list(tmp_path.glob("*.svg"))


def test_without_output_option_writes_flame_svg_here_and_says_so(small, tmp_path):
    run = flame(small, cwd=tmp_path)
    assert (tmp_path / "flame.svg").stat().st_size > 1000
    assert re.fullmatch(r"krait flame: wrote flame\.svg \([\d.]+ KiB, 5 frames\); open it in a browser\n", run.stderr)


# ---- names that want out ----


def test_hostile_names_stay_text_in_svg(small, tmp_path):
    root = draw(small, tmp_path / "f.svg")
    shown = "app.other.</script>]]><b>\"'&\u2401\u241b\u2421\ufffd\ufffd(\ufffd\ufffd\ufffd\ufffd<!--${x}\\u0041"
    assert shown in [t[0] for t, *_ in frames(root)]
    assert shown.removeprefix("app.other.") in data_of(root)["strings"]
    assert len(list(root.iter(SVG + "script"))) == 2


def test_hostile_names_stay_text_in_html(small, tmp_path):
    flame(small, "-o", tmp_path / "f.html", "--title", "</title><script>alert(1)</script>")
    text = (tmp_path / "f.html").read_text()
    assert text.count("<script") == 2 and text.count("</script>") == 2
    assert "<title>&lt;/title&gt;&lt;script&gt;" in text
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u202e]", text)


def test_title_and_group_labels_are_escaped(tmp_path):
    trace = record(tmp_path / "t", SMALL.replace("MainThread", "<x>%00&amp;]]>"))
    root = draw(trace, tmp_path / "f.svg", "--by", "thread", "--title", "a<b>&\x07\ufeff\nc")
    texts = {e.get("id"): e.text for e in root.iter(SVG + "text")}
    assert texts["title"] == "a<b>&\u2407\ufffd\u21b5c"
    assert any("<x>" in t[0] for t, *_ in frames(root))


def test_long_names_are_cut_to_fit(tmp_path):
    trace = record(tmp_path / "t", SMALL.replace("app.core work", "app.core " + "w" * 5000))
    root = draw(trace, tmp_path / "f.svg", "--width", "600")
    for text in (e.text for g in root.iter(SVG + "g") if g.get("id") == "frames" for e in g.iter(SVG + "text")):
        assert len(text or "") < 100


# ---- options ----


def test_reverse_stands_functions_on_the_root_by_their_own_time(small, tmp_path):
    rows = {}
    for title, _, y, w, _ in frames(draw(small, tmp_path / "f.svg", "--reverse", "--width", "1032", "--icicle")):
        rows.setdefault(y, {})[title[0].split("]")[0]] = round(w + 1)
    on_root = rows[sorted(rows)[1]]
    assert on_root == {"app.core.work": 400, "app.other.</script>": 300, "builtins.len": 200, "__main__.main": 100}
    assert rows[sorted(rows)[2]]["app.core.work"] in (100, 200)  # its caller, and len's


def test_unit_calls_makes_width_the_number_of_calls(small, tmp_path):
    widths = {t[0]: w + 1 for t, _, _, w, _ in frames(draw(small, tmp_path / "f.svg", "--unit", "calls", "--width", "1032"))}
    assert widths["builtins.len"] == pytest.approx(200)
    assert widths["__main__.main"] == pytest.approx(1000)


def test_order_by_name_and_by_first_call(tmp_path):
    script = """
process 1 p
code 1 python m zz f 1
code 2 python m aa f 2
code 3 python m mm f 3
thread 1 T
0 call 1
10ms return
10ms call 2
30ms return
30ms call 3
90ms return
"""
    trace = record(tmp_path / "t", script)
    for order, wanted in ("size", "mm aa zz"), ("name", "aa mm zz"), ("call", "zz aa mm"):
        boxes = sorted((x, t[0]) for t, x, *_ in frames(draw(trace, tmp_path / "f.svg", "--order", order)) if t[0] != "all")
        assert [n.removeprefix("m.") for _, n in boxes] == wanted.split(), order


TWO_PROCESSES = """
process 100 python3
code 1 python m f /f.py 1
thread 100 MainThread
0 call 1
10ms return
thread 105 worker-1
0 call 1
30ms return
process 200 gunicorn 100
code 1 python m g /f.py 9
thread 200 MainThread
0 call 1
60ms return
"""


def test_by_process_and_thread_give_each_its_tower(tmp_path):
    trace = record(tmp_path / "t", TWO_PROCESSES)
    by_process = [t[0] for t, *_ in frames(draw(trace, tmp_path / "f.svg", "--by", "process"))]
    assert len(by_process) == 5 and sum("gunicorn" in t for t in by_process) == 1
    by_thread = [t[0] for t, *_ in frames(draw(trace, tmp_path / "f.svg", "--by", "thread"))]
    assert len(by_thread) == 9 and sum("worker-1" in t for t in by_thread) == 1


def test_thread_process_and_time_filters_leave_only_what_they_name(tmp_path):
    trace = record(tmp_path / "t", TWO_PROCESSES)

    def totals(*args):
        return {t[0]: t[-2 if t[0] != "all" else 1].split("\u202f")[0].split()[1] for t, *_ in
                frames(draw(trace, tmp_path / "f.svg", *args))}

    assert totals() == {"all": "100", "m.g": "60.0", "m.f": "40.0"}
    assert totals("--thread", "worker*") == {"all": "30.0", "m.f": "30.0"}
    assert totals("--process", "200") == {"all": "60.0", "m.g": "60.0"}
    assert totals("--process", "gunicorn", "--process", "100") == totals()
    assert totals("--from", "20ms", "--to", "0.05s") == {"all": "40.0", "m.g": "30.0", "m.f": "10.0"}


def test_the_subtitle_counts_what_was_chosen(tmp_path):
    trace = record(tmp_path / "t", TWO_PROCESSES)

    def said(*args):
        return re.search(r"in (\d threads? of \d process(?:es)?)", "".join(draw(trace, tmp_path / "f.svg", *args).itertext())).group(1)

    assert said() == "3 threads of 2 processes"
    assert said("--process", "200") == "1 thread of 1 process"
    assert said("--thread", "nobody*", "--thread", "MainThread") == "2 threads of 2 processes"


def test_layer_colours_and_legend(small, tmp_path):
    root = draw(small, tmp_path / "f.svg", "--color", "layer")
    assert root.get("class") == "bl"
    classes = {t[0]: c for t, *_, c in frames(root)}
    assert "lc" in classes["builtins.len"] and "lp" in classes["app.core.work"] and "lg" in classes["all"]
    legend = next(g for g in root.iter(SVG + "g") if g.get("class") == "legend by-layer")
    assert "".join(legend.itertext()).split() == ["Python", "80.0", "%", "C", "functions", "20.0", "%"]


def test_module_legend_ranks_packages_by_their_own_time(small, tmp_path):
    root = draw(small, tmp_path / "f.svg")
    legend = next(g for g in root.iter(SVG + "g") if g.get("class") == "legend by-module")
    entries = ["".join(e.itertext()).strip() for e in legend if "far" not in e.get("class").split()]
    assert entries == ["app 70.0\u202f%", "builtins 20.0\u202f%", "__main__ 10.0\u202f%"]


def test_narrow_frames_are_not_drawn_but_stay_in_the_data_and_in_their_parents(small, tmp_path):
    root = draw(small, tmp_path / "f.svg", "--width", "1032", "--min-width", "250")
    titles = [t for t, *_ in frames(root)]
    assert "builtins.len" not in [t[0] for t in titles]
    assert any(t[0] == "app.core.work" and t[2].startswith("total 60.0") for t in titles)
    assert "len" in data_of(root)["strings"]


def test_of_a_least_width_of_none_all_frames_are_drawn(tmp_path):
    trace = record(tmp_path / "t", "process 1 python3\ncode 1 python m f m.py 1\ncode 2 python m g m.py 2\nthread 1\n0 call 1\n0 call 2\n1us return\n1s return\n")
    assert "m.g" not in [t[0] for t, *_ in frames(draw(trace, tmp_path / "f.svg"))]
    assert "m.g" in [t[0] for t, *_ in frames(draw(trace, tmp_path / "f.svg", "--min-width", "0"))]


def test_max_frames_sums_up_the_smaller_ones(small, tmp_path):
    run = flame(small, "-o", tmp_path / "f.svg", "--max-frames", "3")
    assert "with 3 smaller ones summed up" in run.stderr
    titles = {t[0]: t for t, *_ in frames(ET.parse(tmp_path / "f.svg").getroot())}
    assert set(titles) == {"all", "__main__.main", "app.core.work", "(smaller frames)"}
    assert titles["__main__.main"][2].startswith("total 100")


def test_file_stays_small_for_many_stacks(tmp_path):
    codes = "".join(f"code {i} python pkg{i % 50}.mod fun{i} /srv/pkg{i % 50}/mod.py {i}\n" for i in range(1, 1001))
    calls = "".join(f"+{a} {b}\n" for a in range(1, 201) for b in range(1, 251))
    lines, t = [], 0
    for pair in calls.split("\n")[:-1]:
        a, b = map(int, pair[1:].split())
        if b == 1:
            lines.append(f"{t} call {a}")
        lines.append(f"{t} call {b}")
        t += 100 + b
        lines.append(f"{t} return")
        if b == 250:
            lines.append(f"{t} return")
    trace = record(tmp_path / "t", f"process 1 p\n{codes}thread 1 T\n" + "\n".join(lines) + "\n")
    run = flame(trace, "-o", tmp_path / "f.svg")
    assert "50,200 frames" in run.stderr
    assert (tmp_path / "f.svg").stat().st_size < 2_000_000


# ---- differential ----


@pytest.fixture(scope="module")
def changed(tmp_path_factory):
    """SMALL with a slower len (20 ms became 60), and a function that is not in SMALL."""
    return record(tmp_path_factory.mktemp("flame") / "changed", """
process 300 python3
code 7 python __main__ main /srv/app.py 10
code 8 python app.core work /srv/core.py 20
code 9 c builtins len - 0
code 5 python app.new fresh /srv/new.py 1
thread 301 MainThread
0 call 7
0 call 8
10ms ccall 9
70ms creturn
80ms return
80ms call 5
90ms return
100ms return
""")


def test_diff_colours_by_the_change_of_share(changed, small, tmp_path):
    root = draw(changed, tmp_path / "f.svg", "--diff", small)
    assert root.get("class") == "bd"
    found = {t[0]: (t, c) for t, *_, c in frames(root)}
    title, classes = found["builtins.len"]
    assert title[-1] == "in the other: 20.0\u202fms (20.0\u202f% of all), change +40.00 points" and "d8" in classes
    assert "d4" in found["__main__.main"][1]
    assert found["app.new.fresh"][0][-1] == "in the other: absent" and "d8" in found["app.new.fresh"][1]
    assert not any(t.startswith("app.other") for t in found)
    assert any("only in the other, so not drawn: 40.0\u202f%" in (e.text or "") for e in root.iter(SVG + "text"))


def test_diff_with_itself_shows_no_change(small, tmp_path):
    root = draw(small, tmp_path / "f.svg", "--diff", small)
    assert all("d4" in c for *_, c in frames(root))


def test_diff_leaves_grey_what_changed_little_beside_itself(tmp_path):
    def three(folder, f, g, h):
        return record(tmp_path / folder, f"""
process 1 p
code 1 python m f /m.py 1
code 2 python m g /m.py 2
code 3 python m h /m.py 3
thread 1 T
0 call 1
{f}ms return
{f}ms call 2
{f + g}ms return
{f + g}ms call 3
{f + g + h}ms return
""")

    root = draw(three("now", 510, 460, 30), tmp_path / "f.svg", "--diff", three("then", 500, 480, 20))
    classes = {t[0]: c[-1] for t, *_, c in frames(root)}
    assert classes == {"all": "d4", "m.f": "d4", "m.g": "d4", "m.h": "d6"}


REPEAT = """
process 1 p
code 1 python m f /m.py 1
code 2 python m g /m.py 2
code 3 python m h /m.py 3
thread 1 T
0 call 1
{f}ms return
{f}ms call 2
{g}ms return
{g}ms call 3
1000ms return
exit 0 0
"""


@pytest.fixture(scope="module")
def repeats(tmp_path_factory):
    """Three recordings a side: f is 100 ms longer for certain, at the cost of h, and g changes by less than it spreads."""
    folder = tmp_path_factory.mktemp("repeats")
    parts = {"old": [(300, 500), (301, 560), (302, 430)], "new": [(400, 630), (401, 680), (402, 550)]}
    return {side: [record(folder / f"{side}{i}", REPEAT.format(f=f, g=g)) for i, (f, g) in enumerate(each)] for side, each in parts.items()}


def differences(repeats, count=3):
    return [*repeats["new"][:count], *(w for old in repeats["old"][:count] for w in ("--diff", old))]


def test_diff_of_repeats_draws_means_and_leaves_grey_what_may_be_chance(repeats, tmp_path):
    said = flame(*differences(repeats), "-o", tmp_path / "f.svg").stderr
    root = ET.parse(tmp_path / "f.svg").getroot()
    found = {t[0]: (t, c[-1]) for t, *_, c in frames(root)}
    assert found["m.f"][1] == "d8" and found["m.g"][1] == "d4"
    assert found["m.f"][0][1:3] == ["/m.py:1", "total 401\u202fms (40.1\u202f% of all)"] or "total 401\u202fms" in found["m.f"][0][2]
    assert found["m.g"][0][-1].endswith("points: no more than chance") and "chance" not in found["m.f"][0][-1]
    assert "means of 3 and 3 recordings" in (tmp_path / "f.svg").read_text()
    assert "comparing wall time, waits included: no recording has on-CPU time" in said
    assert "grey frames changed no more than by chance" in said


@pytest.mark.parametrize("options, told", [([], "one recording cannot tell a change from chance"), (["--reverse"], "one recording")])
def test_diff_of_one_recording_each_says_what_it_cannot_tell(repeats, tmp_path, options, told):
    said = flame(*differences(repeats, 1), *options, "-o", tmp_path / "f.svg").stderr
    assert told in said and "krait flame new1 new2 --diff old1 --diff old2" in said


def test_diff_of_repeats_turned_over_says_what_it_cannot_tell(repeats, tmp_path):
    assert "--reverse does not show which changes may be chance" in flame(*differences(repeats), "--reverse", "-o", tmp_path / "f.svg").stderr


# ---- errors ----


@pytest.mark.parametrize("args, code, says", [
    ([], 2, "no recording given"),
    (["/nonexistent"], 1, "/nonexistent"),
    (["T", "--min-width", "-1"], 2, "--min-width: '-1' is not a width in pixels"),
    (["T", "--min-width", "1px"], 2, "--min-width: '1px' is not a width in pixels"),
    (["T", "--min-width", "nan"], 2, "--min-width: 'nan' is not a width in pixels"),
    (["T", "--width", "5"], 2, "between 200 and 100000"),
    (["T", "--from", "soon"], 2, "'soon' is not a time"),
    (["T", "--from", "2", "--until", "1"], 2, "not before"),
    (["T", "-o", "f.png"], 2, "-o f.png: flame graphs are written as .svg or .html, not as .png"),
    (["T", "--thread", "nobody"], 1, "no thread matches"),
    (["T", "--diff", "T", "--by", "thread"], 2, "--diff cannot be used with --by"),
    (["T", "-o", "/nonexistent/f.svg"], 1, "/nonexistent/f.svg"),
])
def test_wrong_usage_is_said_clearly(small, tmp_path, args, code, says):
    run = flame(*[small if a == "T" else a for a in args], code=code, cwd=tmp_path)
    assert says in run.stderr and run.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_what_is_missing_is_said(tmp_path):
    trace = record(tmp_path / "t", SMALL + "lost 0 12\n")
    break_event(next(trace.glob("*/thread-*")))
    said = flame(trace, "-o", tmp_path / "f.svg").stderr
    assert "krait flame: warning: lost: 12 events (ring full): " in said
    assert re.search(r"krait flame: warning: .*: byte 84: no whole event is here", said)


# ---- in a browser ----

in_browser = pytest.mark.skipif(not BROWSER, reason="no Chromium: apt-get install chromium")


@pytest.fixture
def run_page(chromium, tmp_path):
    """run_page(file, script) opens the file in a window of its own, lets the script act there, and returns the script's result."""
    return lambda path, script="", address="", window="1232,700": acted(chromium, path, tmp_path, script, address, window)


def acted(chromium, path, tmp_path, script, address, window):
    page = tmp_path / ("page" + path.suffix)
    text = path.read_text()
    act = f"""
const key = (k, o) => (document.activeElement || document).dispatchEvent(new KeyboardEvent('keydown', {{key: k, bubbles: true, cancelable: true, ...o}}));
const shown = () => Array.from(document.querySelectorAll('#frames .f')).map((g) => g.getAttribute('aria-label').split(',')[0]);
const frame = (name) => Array.from(document.querySelectorAll('#frames .f')).find((g) => g.getAttribute('aria-label').startsWith(name + ','));
const click = (e) => e.dispatchEvent(new MouseEvent('click', {{bubbles: true}}));
const found = () => document.querySelector('.found').textContent;
const find = (s) => {{ const i = document.querySelector('input'); i.value = s; i.dispatchEvent(new Event('input', {{bubbles: true}})); return new Promise((r) => setTimeout(r, 400)); }};
const text = (id) => document.getElementById(id).textContent;
(async () => {{ let result; try {{ {script} }} catch (e) {{ result = 'threw ' + e; }}
document.getElementById('about').textContent = 'RESULT' + encodeURIComponent(JSON.stringify(result === undefined ? null : result)) + 'END'; }})();
"""
    close = "</svg>" if path.suffix == ".svg" else "</body>"
    wrapped = f"<script><![CDATA[{act}]]></script>" if path.suffix == ".svg" else f"<script>{act}</script>"
    at = text.rindex(close)
    page.write_text(text[:at] + wrapped + text[at:])
    width, height = map(int, window.split(","))
    shown = chromium.new_page(viewport={"width": width, "height": height})
    shown.goto(f"file://{page}{address}")
    shown.wait_for_function("() => /RESULT.*END/.test(document.getElementById('about').textContent)", timeout=60_000)
    result = re.search("RESULT(.*?)END", shown.evaluate("() => document.getElementById('about').textContent"))
    shown.close()
    return json.loads(unquote(result[1]))


@pytest.fixture(scope="module", params=["svg", "html"])
def picture(request, small, tmp_path_factory):
    path = tmp_path_factory.mktemp("flame") / f"f.{request.param}"
    flame(small, "-o", path)
    return path


@in_browser
def test_script_draws_what_the_file_showed_without_it(small, tmp_path, run_page):
    path = tmp_path / "f.svg"
    still = {(t[0], round(x), round(w)) for t, x, _, w, _ in frames(draw(small, path, "--width", "1232"))}
    moved = run_page(path, """result = Array.from(document.querySelectorAll('#frames .f')).map((g) => {
        const r = g.querySelector('rect'); return [g.getAttribute('aria-label').split(',')[0],
        Math.round(r.getAttribute('x')), Math.round(r.getAttribute('width'))]; });""")
    assert {tuple(m) for m in moved} == still


NATIVE = """\
main;libz.so.1.2.13+0x5d80 9
main;libpython3.11.so.1.0+0x49 14
main;_sum.cpython-311-x86_64-linux-gnu.so+0x1f0 10
main;long_add.isra.0 6
main;json.encoder.JSONEncoder.default 6
main;std::vector<int, std::allocator<int> >::reserve 6
main;<app::Cart as core::iter::Iterator>::next 6
main;shop::lambdas(int)::{lambda(int)#1}::operator() 14
main;shop::Item::operator-> 8
main;std::mem::align_of::<f64> 6
main;x 14
"""
NATIVE_SHOWN = {"libz+0x5d80", "libpython3.11+0x49", "_sum+0x1f0", "long_add\u2026", "default", "reserve", "next", "lambdas(int)::{lambda(i\u2026", "operator->", "align_of\u2026", "x", "main", "all"}


def names_in(path):
    return {"".join(g.find(SVG + "text").itertext()) for g in ET.parse(path).iter(SVG + "g") if g.find(SVG + "title") is not None and g.find(SVG + "text") is not None}


def test_native_functions_without_a_symbol_keep_the_file_they_are_in(tmp_path):
    (tmp_path / "stacks").write_text(NATIVE)
    flame(tmp_path / "stacks", "-o", tmp_path / "f.svg", "--width", "1232")
    assert names_in(tmp_path / "f.svg") == NATIVE_SHOWN


@in_browser
def test_the_script_cuts_names_as_the_file_does(tmp_path, run_page):
    (tmp_path / "stacks").write_text(NATIVE)
    flame(tmp_path / "stacks", "-o", tmp_path / "f.svg", "--width", "1232")
    shown = run_page(tmp_path / "f.svg", "result = Array.from(document.querySelectorAll('#frames .f text')).map((t) => t.textContent);")
    assert set(shown) == NATIVE_SHOWN


@in_browser
def test_search_counts_nested_matches_once(picture, run_page):
    assert run_page(picture, "await find('work'); result = found();") == "60.0\u202f% matched"
    assert run_page(picture, "await find('work|main|len'); result = found();") == "100.0\u202f% matched"
    assert run_page(picture, "await find('LEN$'); result = found();") == "20.0\u202f% matched"
    assert run_page(picture, "await find('nowhere'); result = found();") == "0.0\u202f% matched"


@in_browser
def test_search_says_when_it_is_no_expression_and_can_match_case(picture, run_page):
    assert run_page(picture, "await find('(('); result = found();") == "no valid expression"
    assert run_page(picture, "key('i', {ctrlKey: true}); await find('WORK'); result = found();") == "0.0\u202f% matched"


@in_browser
def test_click_zooms_and_the_path_leads_back(picture, run_page):
    result = run_page(picture, """
        click(frame('app.core.work')); const zoomed = shown(), path = text('path');
        const width = frame('app.core.work').querySelector('rect').getAttribute('width');
        click(document.querySelector('#path [role=link]')); result = [zoomed, path, width, shown().length];""")
    zoomed, path, width, after = result
    assert not any(n.startswith("app.other") for n in zoomed) and "builtins.len" in zoomed
    assert path == "all\u203amain\u203awork" and float(width) > 1100 and after == 6


@in_browser
def test_address_brings_back_zoom_and_search(picture, run_page):
    result = run_page(picture, "result = [text('path'), found()];", "#x=2&s=len")
    assert result == ["all\u203amain\u203awork", "20.0\u202f% matched (33.3\u202f% here)"]


@in_browser
def test_keys_walk_zoom_and_go_back(picture, run_page):
    result = run_page(picture, """
        frame('all').focus(); const at = () => document.activeElement.getAttribute('aria-label').split(',')[0];
        const way = []; for (const k of ['ArrowUp', 'ArrowUp', 'ArrowRight', 'ArrowLeft', 'ArrowUp', 'ArrowDown', 'Enter']) { key(k); way.push(at()); }
        way.push(text('path')); key('Escape'); way.push(text('path')); key('Home'); way.push(text('path')); key('/');
        way.push(document.activeElement.getAttribute('aria-label')); result = way;""")
    assert result[:2] == ["__main__.main", "app.core.work"] and result[2].startswith("app.other")
    assert result[3:7] == ["app.core.work", "builtins.len", "app.core.work", "app.core.work"]
    assert result[7:] == ["all\u203amain\u203awork", "all\u203amain", "", "Search by regular expression"]


@in_browser
def test_hover_shows_everything_known(picture, run_page):
    result = run_page(picture, """
        frame('builtins.len').dispatchEvent(new MouseEvent('mouseover', {bubbles: true}));
        result = [text('details'), text('numbers'), frame('builtins.len').querySelector('title').textContent];""")
    assert result[0] == "builtins.len"
    for part in ("total 20.0\u202fms", "20.0\u202f% of all", "33.3\u202f% of parent", "self 20.0\u202fms", "1 call"):
        assert part in result[1] and part in result[2]


@in_browser
def test_unit_colours_and_direction_can_be_switched(picture, run_page):
    result = run_page(picture, """
        const y = () => Number(frame('all').querySelector('rect').getAttribute('y'));
        const before = y(); key('i'); const after = y(); key('c'); key('u');
        result = [before > after, document.getElementById('flame').getAttribute('class'), text('numbers')];""")
    assert result[:2] == [True, "bl"] and result[2].startswith("total 5 calls")


@in_browser
def test_hostile_names_do_not_run_in_a_browser(picture, run_page):
    result = run_page(picture, """
        const g = Array.from(document.querySelectorAll('#frames .f')).find((f) => f.getAttribute('aria-label').startsWith('app.other'));
        g.dispatchEvent(new MouseEvent('mouseover', {bubbles: true}));
        result = [text('details'), document.getElementsByTagName('b').length, document.querySelectorAll('script').length];""")
    assert result[0].startswith("app.other.</script>]]><b>\"'&") and result[1:] == [0, 3]


@in_browser
def test_click_on_a_package_in_the_legend_finds_its_frames(picture, run_page):
    result = run_page(picture, """
        const entry = Array.from(document.querySelectorAll('.by-module .e')).find((e) => e.textContent.startsWith('app '));
        click(entry); const on = [found(), document.querySelector('input').value];
        click(entry); result = [entry.textContent, ...on, found()];""")
    assert result == ["app 70.0\u202f%", "90.0\u202f% matched", "^app\\.", ""]


@in_browser
def test_diff_shows_both_traces_on_hover(changed, small, tmp_path, run_page):
    path = tmp_path / "f.svg"
    flame(changed, "--diff", small, "-o", path)
    result = run_page(path, """
        frame('builtins.len').dispatchEvent(new MouseEvent('mouseover', {bubbles: true})); result = text('numbers');""")
    assert "other 20.0\u202fms  20.0\u202f% of all, change +40.00 points" in result


@in_browser
def test_diff_says_what_may_be_chance_on_hover_and_draws_it_grey(repeats, tmp_path, run_page):
    path = tmp_path / "f.svg"
    flame(*differences(repeats), "-o", path)
    result = run_page(path, """
        frame('m.g').dispatchEvent(new MouseEvent('mouseover', {bubbles: true}));
        result = [text('numbers'), frame('m.g').getAttribute('class'), frame('m.f').getAttribute('class')];""")
    assert "points: no more than chance" in result[0] and " d4" in result[1] and " d8" in result[2]


@in_browser
def test_of_a_recursion_deeper_than_can_be_drawn_what_is_near_is_shown(tmp_path, run_page):
    calls = "".join(f"{i}us call 1\n" for i in range(12500))
    trace = record(tmp_path / "t", f"process 1 python3\ncode 1 python m f m.py 1\ncode 2 python m leaf m.py 2\nthread 1\n{calls}1s call 2\n2s return\nexit 0 0\n")
    flame(trace, "-o", tmp_path / "f.svg")
    result = run_page(tmp_path / "f.svg", """
        const whole = [shown().length, shown()[0], shown()[1]];
        const zoomed = new Promise((r) => addEventListener('hashchange', r)); location.hash = '#x=12501'; await zoomed;
        result = [whole, [shown().length, shown().at(-1)]];""")
    assert result == [[12000, "all", "m.f"], [12000, "m.leaf"]]


@pytest.mark.parametrize("depth, root_on_top", [(190, False), (3000, True)])
def test_the_root_of_a_deep_recursion_is_on_the_first_screen(tmp_path, depth, root_on_top):
    calls = "".join(f"{i}us call 1\n" for i in range(depth))
    flame(record(tmp_path / "t", f"process 1 python3\ncode 1 python m f m.py 1\nthread 1\n{calls}1s ccall 1\n2s creturn\nexit 0 0\n"), "-o", tmp_path / "f.svg")
    text = (tmp_path / "f.svg").read_text()
    assert ("what it called stands below it" in text) is root_on_top
    assert ("what it called stands above it" in text) is not root_on_top


def test_a_graph_without_calls_is_warned_of_on_stdout_too(synth, tmp_path):
    folder = synth("process 5 python3\nexit 0 0\nthread 5 A\n1us mark x\n")
    assert flame(folder, "-o", "-").stderr == "krait flame: warning: no calls were recorded\n"
    assert "0 frames: no calls were recorded);" in flame(folder, cwd=tmp_path).stderr


@pytest.fixture(scope="module")
def tower(tmp_path_factory):
    """A recording whose stack is 120 calls deep: higher than any window."""
    folder = tmp_path_factory.mktemp("tower")
    codes = "".join(f"code {i} python m f{i} m.py {i}\n" for i in range(1, 121))
    calls = "".join(f"{i}ms call {i}\n" for i in range(1, 121)) + "".join(f"{i}ms return\n" for i in range(121, 241))
    subprocess.run([SYNTH, folder / "t"], input=f"process 1 python3\n{codes}thread 1\n{calls}", text=True, check=True)
    return folder / "t"


@pytest.mark.parametrize("grow, told", [([], True), (["--icicle"], False)], ids=["up", "down"])
def test_without_scripts_a_tall_graph_says_where_its_root_is(tower, small, tmp_path, grow, told):
    flame(tower, "-o", tmp_path / "tall.svg", *grow)
    text = (tmp_path / "tall.svg").read_text()
    assert ("The root is at the bottom, below " in text) is told
    flame(small, "-o", tmp_path / "small.svg", *grow)
    assert "The root is at the bottom" not in (tmp_path / "small.svg").read_text()


@in_browser
def test_with_scripts_it_scrolls_there_instead(tower, tmp_path, run_page):
    flame(tower, "-o", tmp_path / "f.svg")
    assert run_page(tmp_path / "f.svg", "result = document.getElementById('still') === null && scrollY > 0;") is True


ROOT_IN_WINDOW = """
const box = frame('all').getBoundingClientRect(), head = document.getElementById('head').getBoundingClientRect();
const foot = document.getElementById('foot').getBoundingClientRect();
result = [Math.round(head.top), box.top >= head.bottom - 1, box.bottom <= foot.top + 1, Math.round(foot.bottom) <= innerHeight, scrollY > 0];
"""


@in_browser
@pytest.mark.parametrize("form", ["svg", "html"])
@pytest.mark.parametrize("window", ["800,600", "1400,900"])
@pytest.mark.parametrize("grow", [[], ["--icicle"], ["--inverted"]])
def test_the_root_is_in_the_window_at_first(tower, tmp_path, form, window, grow, run_page):
    path = tmp_path / f"f.{form}"
    flame(tower, "-o", path, *grow)
    assert run_page(path, ROOT_IN_WINDOW, window=window) == [0, True, True, True, not grow]
