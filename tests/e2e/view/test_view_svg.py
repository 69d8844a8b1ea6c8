# SPDX-License-Identifier: Apache-2.0
"""The timeline as a picture: every call is in it, as itself or folded, at its place, and nothing is guessed."""

import re
import subprocess
import xml.etree.ElementTree as ET

import pytest
from conftest import verb_json
from kernel_made import switch
from svg import SVG, ns_of, texts, view  # noqa: F401  (view: a fixture)
from wall_made import CODES, SLEEP_CALLS, SLEEP_EVENTS


def rects(root, group):
    """[(classes, x, y, width, title's lines)] of a kind of box."""
    found = []
    for rect in root.iter(f"{SVG}rect"):
        title = rect.find(f"{SVG}title")
        classes = rect.get("class", "").split()
        kind = "state" if "w" in classes else "folded" if title is not None and "busy" in title.text else "call"
        if title is not None and kind == group:
            found.append((classes, *(float(rect.get(k)) for k in ("x", "y", "width")), title.text.split("\n")))
    return found


def test_the_title_is_the_command_of_each_recording(view, synth):  # noqa: F811
    made = [synth(f"process {pid} python3 0 /bin/python3%20{name}.py\ncode 1 python app main app.py 1\nthread {pid} A\n0us call 1\n9us return\n", f"r{pid}") for pid, name in ((5, "sort"), (6, "sort"), (7, "heap"))]
    assert "python3 sort.py, python3 heap.py" in texts(view(*made)[0])
    assert "python3 sort.py" in texts(view(*made[:2])[0])


def test_calls_are_at_their_times_and_depths(view, synth):
    trace = synth(CODES + "0us call 1\n100us call 2\n400us ccall 3\n500us creturn\n600us return\n1000us return\n")
    root, said = view(trace)
    assert "3 calls" in said
    boxes = {lines[0]: (x, y, width, lines) for _, x, y, width, lines in rects(root, "call")}
    assert set(boxes) == {"app.main", "app.load", "time.sleep (C)"}
    left, main_y, main_width, _ = boxes["app.main"]
    per_us = main_width / 1000
    for name, begin, width, depth in (("app.load", 100, 500, 1), ("time.sleep (C)", 400, 100, 2)):
        x, y, w, lines = boxes[name]
        assert x == pytest.approx(left + begin * per_us, abs=1) and w == pytest.approx(width * per_us, abs=1), name
        assert y == main_y + 16 * depth and ns_of(lines[-1]) == 1000 * width, lines
    assert boxes["app.load"][3][1] == "app.py:10"
    assert "MainThread 5" in texts(root) and "5  python3" in texts(root)


def test_no_call_is_missing_and_no_time_is_sampled(view, krait, record, any_python, report):
    run = record.text(
        any_python,
        """
        def leaf(n): return n
        def inner(n):
            for i in range(n): leaf(i)
        def outer():
            for n in range(300): inner(n)
        outer()
        """,
        options=["--no-c-calls"],
    )
    root, _ = view(run.path, "--depth", "100")
    folded = rects(root, "folded")
    whole = [lines for *_, lines in rects(root, "call") if not re.search("begun before|goes on", lines[-1])]
    counted = sum(int(lines[0].split(" call")[0].replace("\u202f", "").replace(",", "")) for *_, lines in folded) + len(whole)
    assert counted == sum(f["calls"] for f in report(run.path, "--limit", "0"))
    # its boxes hold all of leaf's time
    times = {f["name"]: f["total_ns"] for f in report(run.path, "--limit", "0")}
    leaf = [(lines, classes) for classes, _, _, _, lines in folded if lines[1] == "longest: __main__.leaf"]
    sums = sum(ns_of(lines[-1]) for *_, lines in rects(root, "call") if lines[0] == "__main__.leaf")
    for lines, _ in leaf:
        share, span = re.search(r"busy ([\d.]+)\s*% of (.*) from", lines[0]).groups()
        sums += float(share) / 100 * ns_of(span)
    assert sums == pytest.approx(times["leaf"], rel=0.05)


def test_a_part_of_the_time_opens_what_was_folded(view, synth):
    calls = "".join(f"{n}us call 2\n{n}500ns return\n" for n in range(1, 5000))
    trace = synth(CODES + "0us call 1\n" + calls + "5000us return\n")
    root, _ = view(trace)
    assert len(rects(root, "call")) == 1 and rects(root, "folded")
    root, said = view(trace, "--from", "100us", "--until", "110us")
    names = [lines[0] for *_, lines in rects(root, "call")]
    assert names.count("app.load") == 10 and names.count("app.main") == 1 and not rects(root, "folded")
    main = next(lines for *_, lines in rects(root, "call") if lines[0] == "app.main")
    assert "begun before" in main[-1] and "its end is not seen" in main[-1]
    assert "10 calls" in said


def test_the_axis_of_a_long_recording_has_days_hours_and_minutes(view, synth):
    script = "process 5 python3 1 app\ncode 1 python app main app.py 1\nthread 5 T\n0 call 1\n{} return\nexit 0 0\n"
    for days, ticks in (116, ["0\u202fs", "10d", "20d"]), (0.25, ["0\u202fs", "30m", "1h 00m", "1h 30m"]), (0.001, ["0\u202fs", "10\u202fs"]):
        root, _ = view(synth(script.format(int(days * 86400e9)), f"of{days}"))
        assert [each.text for each in root.iter(f"{SVG}text") if "time" in each.get("class", "").split()][: len(ticks)] == ticks


def test_where_functions_were_dropped_is_a_dashed_line(view, synth):
    calls = "0us call 1\n100us call 2\n200us return\n400us omit 2 12345\n400us omit 3 1\n1000us return\n"
    root, _ = view(synth(CODES + calls))
    (line,) = [path for path in root.iter(f"{SVG}path") if path.get("class") == "drop"]
    (left, width) = next((x, width) for _, x, _, width, lines in rects(root, "call") if lines[0] == "app.main [+dropped]")
    assert float(re.match(r"M([\d.]+) ", line.get("d"))[1]) == pytest.approx(left + 0.4 * width, abs=1)
    told = line.find(f"{SVG}title").text.replace("\u202f", ",").split("\n")
    assert told[:3] == ["dropped by --max-overhead from here on:", "app.load, after 12,345 calls", "time.sleep (C), after 1 call"]
    assert any("dropped functions from there on" in text for text in texts(root))
    root, _ = view(synth(CODES + calls), "--from", "500us", "--until", "900us")
    assert not [path for path in root.iter(f"{SVG}path") if path.get("class") == "drop"]


def test_where_what_is_recorded_was_changed_is_a_dashed_line(view, synth):
    calls = "0us call 1\n100us call 2\n200us return\n400us set include=app.*\n1000us return\n"
    root, _ = view(synth(CODES + calls))
    (line,) = [path for path in root.iter(f"{SVG}path") if path.get("class") == "drop"]
    assert line.find(f"{SVG}title").text == "krait ctl set: from here on is recorded\ninclude=app.*"
    assert any("krait ctl set changed what is recorded" in text for text in texts(root))
    root, _ = view(synth(CODES + calls), "--from", "500us", "--until", "900us")
    assert not [path for path in root.iter(f"{SVG}path") if path.get("class") == "drop"]


def test_what_the_kernel_says_is_above_the_calls(view, both):
    trace = both(SLEEP_CALLS, [*SLEEP_EVENTS, switch(300, 5, 0)])
    root, _ = view(trace, "--from", "100us", "--until", "200us")
    states = [(classes[1], lines[0]) for classes, *_, lines in sorted(rects(root, "state"), key=lambda r: r[1])]
    assert [s for s, _ in states] == ["on_cpu", "timer", "runnable", "on_cpu"]
    sums = {}
    for _, line in states:
        for words in line.split(", "):
            name, time = words.rsplit(" ", 1)
            sums[name] = sums.get(name, 0) + ns_of(time)
    assert sums == pytest.approx({"on CPU": 70_000, "timer": 27_000, "ready": 3_000}, abs=300)
    assert {"on CPU", "timer", "ready"} <= set(texts(root))


def test_waits_for_the_gil_need_no_kernel(view, record, any_python):
    run = record.text(
        any_python,
        """
        import threading
        def spin():
            for _ in range(200_000): len(())
        threads = [threading.Thread(target=spin) for _ in range(3)]
        for t in threads: t.start()
        for t in threads: t.join()
        """,
        options=["--no-c-calls"],
    )
    root, _ = view(run.path)
    assert any("gil" in classes for classes, *_ in rects(root, "state")) and "GIL" in texts(root)


def test_names_of_a_trace_are_text(view, synth):
    name = "<script>alert(1)</script>&amp;\u202egnp"
    root, _ = view(synth(f"process 5 {name}\ncode 1 python {name} {name} {name} 1\nthread 5 {name}\n0us call 1\n900us return\n"), "--title", name)
    assert not list(root.iter(f"{SVG}script")) and any("<script>alert(1)</script>&amp;" in t for t in texts(root))
    assert not any("\u202e" in "".join(e.itertext()) for e in root.iter())


def test_what_is_not_drawn_is_said(view, synth):
    threads = "".join(f"thread {n} t{n}\n0us call 1\n{n}us call 2\n{900 + n}us return\n990us return\n" for n in range(6, 16))
    deep = "thread 5 MainThread\n" + "0us call 1\n" * 40 + "900us return\n" * 40
    trace = synth(CODES.replace("thread 5 MainThread\n", "") + deep + threads)
    root, _ = view(trace, "--limit", "4")
    assert "calls are up to 40 deep: --depth draws more of them" in texts(root)
    assert "7 threads with fewer calls not drawn: --limit" in texts(root)
    root, said = view(trace, "--depth", "50", "--limit", "0", "--width", "3000")
    assert not any("--depth" in t or "--limit" in t for t in texts(root)) and "11 threads" in said
    assert root.get("width") == "3000"


def test_a_damaged_recording_is_drawn_as_far_as_it_goes_and_says_so(view, synth):
    trace = synth(CODES + "0us call 1\n100us call 2\n400us return\n900us return\n")
    stream = next(trace.rglob("thread-*"))
    stream.write_bytes(stream.read_bytes()[:-6])
    root, said = view(trace)
    assert "damaged" in said and any(t.startswith("damaged") for t in texts(root))
    assert {lines[0] for *_, lines in rects(root, "call")} == {"app.main", "app.load"}


@pytest.mark.parametrize(
    "options, words",
    [
        (["--width", "10"], "--width: 10 is not between 400 and 20000"),
        (["--from", "2s", "--until", "1s"], "the range is empty: 2s is not before 1s"),
        (["--from", "5s"], "there is nothing in that time"),
        (["--thread", "nobody"], "no thread matches --thread"),
    ],
)
def test_what_cannot_be_drawn_is_refused_with_the_reason(krait, synth, tmp_path, options, words):
    trace = synth(CODES + "0us call 1\n900us return\n")
    run = subprocess.run([krait, "view", trace, "--svg", tmp_path / "x.svg", *options], capture_output=True, text=True, timeout=60)
    assert run.returncode in (1, 2) and words in run.stderr and not (tmp_path / "x.svg").exists()


# ---- PNG ----

PNG_TRACE = CODES + "0us call 1\n100us call 2\n400us ccall 3\n500us creturn\n600us return\n1000us return\n"


def pixels(path):
    """Width, height, and the raw bytes of a PNG of 8 bits (RFC 2083), unfiltered by row filter."""
    import struct
    import zlib

    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, image = 8, b""
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at : at + 8])
        if kind == b"IHDR":
            width, height = struct.unpack(">II", data[at + 8 : at + 16])
        if kind == b"IDAT":
            image += data[at + 8 : at + 8 + size]
        at += size + 12
    return width, height, zlib.decompress(image)


def test_the_same_picture_as_png_has_twice_the_pixels(krait, synth, tmp_path):
    trace = synth(PNG_TRACE)
    subprocess.run([krait, "view", trace, "--svg", tmp_path / "a.svg", "--width", "700"], check=True, timeout=60)
    run = subprocess.run([krait, "view", trace, "--png", tmp_path / "a.png", "--width", "700"], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0 and re.search(r"wrote \S+/a.png \([\d.]+ KiB, 1 thread, 3 calls\)\n$", run.stderr)
    root = ET.parse(tmp_path / "a.svg").getroot()
    width, height, image = pixels(tmp_path / "a.png")
    assert (width, height) == (1400, 2 * int(root.get("height"))) and len(set(image)) > 20


@pytest.mark.parametrize(
    "options, reason",
    [
        (["--png", "a.png", "--svg", "a.svg"], "--svg, --png and --html exclude each other"),
        (["--png", "a.png", "--port", "80"], "--svg, --png and --html do not go with --listen, --port and --no-open"),
        (["--port", "70000"], "--port: 70000 is not between 1 and 65535"),
    ],
)
def test_options_that_do_not_go_together(krait, synth, tmp_path, options, reason):
    run = subprocess.run([krait, "view", synth(PNG_TRACE), *options], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert run.returncode == 2 and reason in run.stderr and not list(tmp_path.glob("a.*"))


def test_a_picture_that_is_too_large_for_png_is_refused(krait, synth, tmp_path):
    run = subprocess.run([krait, "view", synth(PNG_TRACE), "--png", "a.png", "--width", "20000"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert run.returncode == 1 and "is too large for PNG" in run.stderr and not (tmp_path / "a.png").exists()


# A task for each wait, each 100 us long; 7 waits for 8, and then lets others run.
TASKS = CODES + """
code 10 python app job app.py 20
code 11 python asyncio.queues Queue.get queues.py 1
code 12 python asyncio.locks Lock.acquire locks.py 1
code 13 python asyncio.streams StreamReader.read streams.py 1
code 14 python asyncio.base_subprocess BaseSubprocessTransport._wait base_subprocess.py 1
task 7 10 first
task 8 10 second
0us call 1
100us run 7
200us leave 7 1 100 11
300us run 7
400us leave 7 1 101 12
500us run 7
600us leave 7 1 102 13
700us run 7
800us leave 7 1 103 14
900us run 7
1000us leave 7 2 8
1100us run 8
1200us leave 8 3
1300us run 7
1400us leave 7 0
1500us run 7
1600us leave 7 3
1700us return
"""


def test_states_of_tasks_have_the_names_of_the_table(krait, view, synth):
    """Not those of the threads' states that have the same colours: lock for queue, other for task."""
    trace = synth(TASKS)
    rows = verb_json(krait, "report", trace, "--by", "task")["tasks"]
    names = {key.removesuffix("_ns") for row in rows for key, ns in row.items() if ns and key.endswith("_ns")} - {"waiting", "longest"}
    root, _ = view(trace)
    assert {lines[0] for *_, lines in rects(root, "state")} == names == {"running", "ready", "queue", "lock", "socket", "child", "task"}
    assert {"running", "ready", "lock, queue", "socket", "child", "task"} <= set(texts(root)) and not {"other", "on CPU", "network", "child process"} & set(texts(root))


def test_the_legend_names_what_states_of_threads_and_tasks_share(view, both):
    root, _ = view(both(TASKS, [switch(0, 0, 5), switch(1650, 5, 0, state=1), switch(2000, 0, 0)]))
    assert {"on CPU, running", "lock, queue", "network, socket", "other, task"} & set(texts(root)) == {"on CPU, running", "lock, queue", "other, task"}
