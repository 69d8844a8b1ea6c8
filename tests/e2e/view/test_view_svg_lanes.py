# SPDX-License-Identifier: Apache-2.0
"""What the picture has beside calls: system calls, CPUs, marks, counters, losses; traces without any Python."""

import json
import re
import subprocess

import kernel_made
import pytest
from browser import ask, opened, served
from corpus import CORPUS
from kernel_made import begins, ends, event, switch
from svg import SVG, lanes, ns_of, texts, view  # noqa: F401  (view: a fixture)
from wall_made import CODES, SLEEP_CALLS, SLEEP_EVENTS

KERNEL = CORPUS / "lttng-ref-traces" / "basic-kernel-analysis" / "kernel"


def test_system_calls_and_cpus_are_below_the_calls(view, both):  # noqa: F811
    root, _ = view(both(SLEEP_CALLS, [*SLEEP_EVENTS, switch(300, 5, 0)]), "--from", "100us", "--until", "200us")
    found = lanes(root)
    assert list(found) == ["MainThread 5", "CPU 0"]
    thread, cpu = found["MainThread 5"], found["CPU 0"]
    calls, sleeps = thread["calls"], thread["system calls"]
    assert [b[3][0] for b in sleeps] == ["clock_nanosleep"] and ns_of(sleeps[0][3][1]) == pytest.approx(35_000, abs=6_000)
    assert sleeps[0][2] > max(b[2] for b in calls) > thread["states"][0][2]
    per_us = calls[0][1] / 100
    runs = [(b[3][0], b[1] / per_us) for b in cpu["threads"]]  # where it is idle, nothing is drawn
    assert thread["states"] and {name for name, _ in runs} == {"t5"}
    assert sum(width for _, width in runs) == pytest.approx(70, abs=1)


def test_a_kernel_trace_alone_is_drawn(view, krait, tmp_path):  # noqa: F811
    events = [switch(0, 0, 7), begins(10, "read"), ends(400, "read", 3), switch(500, 7, 0, 1), switch(600, 0, 8), switch(700, 8, 0, 1)]
    kernel_made.write(tmp_path / "kernel", events)
    root, said = view(tmp_path / "kernel")
    found = lanes(root)
    assert "warning" not in said and list(found)[0] == "CPU 0" and {name.split()[-1] for name in found} == {"0", "7", "8"}
    first, second = found["CPU 0"]["threads"]
    assert [first[1] / 500, second[1] / 100] == pytest.approx([(second[0] - first[0]) / 600] * 2, rel=0.05)
    calls = next(parts["system calls"] for name, parts in found.items() if name.endswith(" 7"))
    assert [(b[3][0], ns_of(b[3][1])) for b in calls] == [("read", 390_000)]
    assert {"on CPU", "in the kernel"} <= set(texts(root))


@pytest.mark.skipif(not KERNEL.exists(), reason="no corpus of traces here")
def test_those_that_ran_the_most_are_drawn(view, krait):  # noqa: F811
    root, said = view(KERNEL, "--limit", "5")
    ran = json.loads(subprocess.run([krait, "states", KERNEL, "--json"], capture_output=True, text=True, check=True).stdout)
    times = sorted(((t["on_cpu_ns"], t["tid"]) for t in ran["threads"] if t["tid"]), reverse=True)
    drawn = {int(name.split()[-1]) for name in lanes(root) if not name.startswith("CPU")}
    assert drawn == {tid for _, tid in times[:5]} and f"{len(times)} threads" in said
    part = ["--from", "2s", "--until", "2.01s"]
    there = json.loads(subprocess.run([krait, "states", KERNEL, *part, "--json"], capture_output=True, text=True, check=True).stdout)["threads"]
    root, said = view(KERNEL, *part)
    assert len(there) < len(times) and f" {len(there)} threads" in said and any(f" in {len(there)} threads" in text for text in texts(root))


def test_where_events_were_lost_is_drawn(view, synth):  # noqa: F811
    trace = synth(CODES + "0us call 1\n100us call 2\n200us return\npacket 40\n600us call 2\n700us return\n1000us return\n")
    root, _ = view(trace)
    lane = next(g for g in root.iter(f"{SVG}g") if g.get("class") == "lane")
    losses = [g for g in lane.iter(f"{SVG}g") if g.get("class") == "lost"]
    assert len(losses) == 1 and "events were lost" in texts(root)
    rect, calls = losses[0].find(f"{SVG}rect"), lanes(root)["MainThread 5"]["calls"]
    per_us, left = calls[0][1] / 1000, min(b[0] for b in calls)
    assert (float(rect.get("x")) - left) / per_us == pytest.approx(200, abs=5)
    assert float(rect.get("width")) / per_us == pytest.approx(400, abs=10)


def test_other_traces_are_marks_by_stream(view, tmp_path):  # noqa: F811
    kernel_made.write(tmp_path / "app", [event(us, "app:tick", n=us) for us in (100, 200, 5000)], domain="app")
    root, said = view(tmp_path / "app")
    marks = [title.text for path in root.iter(f"{SVG}path") if path.get("class") == "mark mark" and (title := path.find(f"{SVG}title")) is not None]
    assert "0 threads" in said and len(marks) == 3 and all("app:tick" in mark for mark in marks) and "Events" in texts(root)


def test_a_frequency_is_drawn_as_steps(view, tmp_path):  # noqa: F811
    events = [switch(0, 0, 7)] + [event(us, "power_cpu_frequency", state=khz, cpu_id=0) for us, khz in ((100, 1000), (400, 3000))] + [switch(1000, 7, 0, 1)]
    kernel_made.write(tmp_path / "kernel", events)
    steps = lanes(view(tmp_path / "kernel")[0])["CPU 0"]["frequency"]
    assert [re.sub("[\u202f\u00a0,]", "", b[3][0]) for b in steps] == ["frequency 1000kHz", "frequency 1000 to 3000kHz", "frequency 3000kHz"]
    assert steps[0][1] / steps[2][1] == pytest.approx(0.5, abs=0.02)


def test_threads_that_only_say_something_are_drawn(view, synth):  # noqa: F811
    trace = synth("""
        process 5 python3
        code 3 name - queue - 0
        thread 5 A
        10us counter 3 4
        60us counter 3 2
        thread 6 B
        20us mark order 7
        thread 7 C
        1000us mark too late
        exit 0 0
        """)
    root, said = view(trace, "--until", "900us")
    found = lanes(root)
    assert list(found) == ["A 5", "B 6"] and "queue" in found["A 5"]
    assert "warning" not in said and "2 threads" in said


def test_a_counter_is_a_line_above_light_ground(view, synth):  # noqa: F811
    """The line spans what each column has of values, and is thin where there is one; the ground goes to 0."""
    dense = "".join(f"{400_000 + 100 * i} counter 3 {8 * (i % 2)}\n" for i in range(2000))
    root, _ = view(synth(f"process 5 python3\ncode 1 python app main app.py 1\ncode 3 name - queue - 0\nthread 5 A\n0us call 1\n0us counter 3 4\n{dense}700us counter 3 -4\n1000us return\nexit 0 0\n"))
    (path,) = [p for p in root.iter(f"{SVG}path") if p.get("class") == "value line"]
    steps = [[float(n) for n in re.findall(r"-?[\d.]+", step)] for step in re.findall(r"M[^z]*z", path.get("d"))]  # x, y, width, height, -width
    grounds = [[float(r.get(name)) for name in ("x", "y", "width", "height")] for r in root.iter(f"{SVG}rect") if r.get("class") == "value"]
    assert [step[0] for step in steps] == [ground[0] for ground in grounds] and len(steps) < 10
    per = (steps[0][1] - steps[-1][1]) / -8  # pixels for one
    assert per == pytest.approx(28 / 12, abs=0.1)
    wide = max(steps, key=lambda step: step[3] * (step[2] > 50))  # where the values alternate
    assert wide[3] == pytest.approx(8 * per + 1.25, abs=0.1) and [steps[0][3], steps[-1][3]] == [1.25, 1.25]
    zero = steps[0][1] + 0.6 + 4 * per
    assert all(min(y, y + h) <= zero + 0.2 and max(y, y + h) >= zero - 0.2 for _, y, _, h in grounds)
    assert "-4 to 8" in [text.replace("\u202f", " ").replace("\u00a0", " ") for text in texts(root)]


def test_a_counter_of_fractions_has_its_own_values(view, synth):  # noqa: F811
    root, _ = view(synth("process 5 python3\ncode 1 python app main app.py 1\ncode 2 name - load - 0\nthread 5 A\n0us call 1\n0us counter 2 99.564483511\n100us counter 2 -0.25\n200us return\nexit 0 0\n"))
    assert "-0.25 to 99.5645" in texts(root)
    assert {t.text for t in root.iter(f"{SVG}title") if t.text and t.text.startswith("load")} >= {"load 99.5645", "load -0.25"}


def test_functions_have_the_pages_colours(view, krait, synth):  # noqa: F811
    codes = "".join(f"code {i} python pkg{i}.m f /srv/pkg{i}.py 1\n" for i in range(1, 30))
    calls = "".join(f"{100 * i}us call {i}\n{100 * i + 90}us return\n" for i in range(1, 30))
    trace = synth(f"process 5 python3\n{codes}thread 5 MainThread\n{calls}exit 0 0\n")
    root, _ = view(trace)
    drawn = {}
    for rect in root.iter(f"{SVG}rect"):
        if rect.find(f"{SVG}title") is not None:
            drawn[rect.find(f"{SVG}title").text.split("\n")[0]] = int(rect.get("class").split()[0][1:])
    with served(krait, trace) as link:
        funcs = ask(link, "funcs", page=0)
    assert drawn == {f"{row[1]}.{row[0]}": row[5] for row in funcs if row[1].startswith("pkg")}


@pytest.mark.parametrize("options, drawn", [(["--thread", "7"], {"7"}), (["--process", "nothing"], set()), ([], {"0", "7", "8"})])
def test_threads_are_chosen_by_name_and_number(view, tmp_path, options, drawn):  # noqa: F811
    kernel_made.write(tmp_path / "kernel", [switch(0, 0, 7), switch(500, 7, 8, 1), switch(700, 8, 0, 1)])
    root, _ = view(tmp_path / "kernel", *options)
    assert {name.split()[-1] for name in lanes(root)} == drawn


COUNTERS = """
    process 100 python3
    code 1 python app main app.py 1
    code 2 name - queue - 0
    code 3 name - load - 0
    thread 100 MainThread
    1us call 1
    10us counter 2 3
    40us counter 3 1
    99us return
    thread 101 Other
    2us call 1
    20us counter 2 4
    98us return
    """


def test_a_counter_of_several_threads_is_in_a_lane_of_its_process(view, krait, chromium, synth, tmp_path):  # noqa: F811
    trace = synth(COUNTERS)
    root, said = view(trace)
    found = lanes(root)
    assert {name: [part for part in parts if part not in ("states", "calls", "marks")] for name, parts in found.items()} == {"MainThread 100": ["load"], "Other 101": [], "queue 0": ["queue"]}
    assert texts(root).count("queue") == 1 and texts(root).count("load") == 1
    assert "2 threads" in said and list(lanes(view(trace, "--limit", "1")[0]))[1:] == ["queue 0"]
    assert len(lanes(view(trace, "--thread", "Other")[0])) == 1
    with opened(krait, chromium, trace, "#p=counters") as page:
        assert [" ".join(lane.inner_text().split()[1:3]) for lane in page.page.locator(".lane:not(.head)").all()] == ["MainThread 100", "Other 101", "queue process"]
        assert sorted(row[:2] for row in page.rows()) == [["load", "MainThread 100"], ["queue", "python3 100"]]
        assert page.page.locator(".lane .part").all_inner_texts() == ["load"]  # the lane of the other one has its name
        box = page.page.locator(".lane").filter(has_text="queue").bounding_box()
        lanes_box = page.page.locator("canvas.lanes").bounding_box()
        for share, text in (0.5, "queue: 4"), (0.15, "queue: 3"):
            page.page.mouse.move(lanes_box["x"] + share * lanes_box["width"], box["y"] + 20)
            page.page.locator(".timeline .tip").get_by_text(text, exact=True).wait_for()
        page.press("g")  # all by thread
        assert page.page.locator(".lane:not(.head)").count() == 3
    subprocess.run([krait, "view", trace, "--html", tmp_path / "page.html"], capture_output=True, check=True)
    assert re.search("queue</td><td[^>]*>python3 100</td>", (tmp_path / "page.html").read_text())


WORK = """
process 5 python3
code 1 python app main app.py 1
code 2 name - app.<lambda> - 0
task 1 1 Task-1
thread 5 MainThread
0us call 1
10us submit 1
500us result 1
700us run 1
750us flow 7
790us leave 1 3
1000us return
thread 6 worker
0us call 1
100us start 1 2
310us done 1
900us flow 7
1000us return
exit 0 0
"""


def arrows(root):
    """[(title's lines, the numbers of the path, whether it has a head)]"""
    found = [g for g in root.iter(f"{SVG}g") if g.get("class", "").split()[:1] == ["arrow"]]
    return [(g.find(f"{SVG}title").text.replace("\u202f", " ").split("\n"), [float(n) for n in re.findall(r"[\d.]+", g.find(f"{SVG}path").get("d"))], len(g.findall(f"{SVG}path")) == 2) for g in found]


def test_work_and_flows_are_arrows_between_the_lanes(view, synth):  # noqa: F811
    """From the marks of one lane to those of another one; that of a task has the flows of its steps."""
    trace = synth(WORK)
    root, _ = view(trace)
    box = next(boxes[0] for parts in lanes(root).values() for boxes in [parts["calls"]])
    left, per_us = box[0], box[1] / 1000
    found = sorted(arrows(root), key=lambda arrow: arrow[1][0])
    told = [["app.<lambda>", "from MainThread 5 at 10.0 µs", "to worker 6 at 100 µs"], ["from worker 6 at 310 µs", "to MainThread 5 at 500 µs"], ["from main Task-1 at 750 µs", "to worker 6 at 900 µs"]]
    assert [lines for lines, *_ in found] == told
    assert [(x - left) / per_us for _, path, _ in found for x in (path[0], path[-2])] == pytest.approx([10, 100, 310, 500, 750, 900], abs=1)
    marks = {float(p.get("d").split()[1].split("l")[0]) for p in root.iter(f"{SVG}path") if p.get("class") == "mark mark" and p.find(f"{SVG}title") is not None}
    assert len(marks) == 2
    submits, reads, passes = (path for _, path, _ in found)
    assert submits[-1] == min(marks, key=lambda y: abs(y - submits[-1])) and submits[1] == reads[-1] == min(marks) + 14 and submits[-1] == reads[1]
    assert "arrows: flows and work for executors" in texts(root)
    cut = arrows(view(trace, "--from", "50us", "--until", "400us")[0])
    assert [(lines, has_head) for lines, _, has_head in sorted(cut)] == [(told[0], True), (told[1], False)]  # what ends later ends at the edge
    root, _ = view(trace, "--thread", "worker")
    assert not arrows(root) and "arrows: flows and work for executors" not in texts(root)


def test_thousands_of_arrows_stay_a_picture(view, synth):  # noqa: F811
    """Of those that would lie on each other one is drawn, over all of the time, also if they are between many threads."""
    for workers, rounds in (1, 3000), (60, 30):
        threads = [[] for _ in range(workers + 1)]
        for i in range(workers * rounds):
            us = 40_000 * i // (workers * rounds)
            threads[0].append(f"{us}us submit {i + 1}")
            threads[1 + i % workers].append(f"{us + 5}us start {i + 1}")
        lines = "".join(f"thread {5 + n} T{n}\n0us call 1\n" + "\n".join(lines) + "\n41ms return\n" for n, lines in enumerate(threads))
        root, _ = view(synth(f"process 5 python3\ncode 1 python app main app.py 1\n{lines}exit 0 0\n", f"of{workers}"))
        begins_at = sorted(path[0] for _, path, _ in arrows(root))
        assert 50 <= len(begins_at) <= 150 and max(b - a for a, b in zip(begins_at, begins_at[1:])) < 60, begins_at
        (told,) = [text for text in texts(root) if "arrows" in text]
        assert told.startswith(f"arrows: flows and work for executors, {len(begins_at)} of ") and (workers > 1 or told.endswith(" of 3,000"))


def legend(root, lead):
    """The names and colours in a row of the legend, in their order, and what it has after them."""
    (begin,) = [i for i, e in enumerate(root) if e.tag == f"{SVG}text" and e.text == lead]
    row = [e for e in root[begin + 1 :] if e.get("y") in (root[begin].get("y"), f"{float(root[begin].get('y')) - 10:.0f}")]
    named = [(text.text, swatch.get("class").split()[0]) for swatch, text in zip(row[::2], row[1::2])]
    return named, row[2 * len(named) :]


def colours(root, pattern):
    """Of the boxes whose name matches, by name."""
    titled = ((box.get("class"), box.find(f"{SVG}title")) for box in root.iter(f"{SVG}rect"))
    return {title.text.split("\n")[0]: classes.split()[0] for classes, title in titled if title is not None and re.match(pattern + "\n", title.text or "")}


def test_the_legend_names_who_ran_on_the_cpus(view, tmp_path):  # noqa: F811
    """In the colours of their boxes, those that ran the longest first, as far as there is room."""
    events, us = [switch(0, 0, 100)], 0
    for n in range(30):
        us += 100 + 10 * n
        events.append(switch(us, 100 + n, 101 + n if n < 29 else 0, 1))
    kernel_made.write(tmp_path / "kernel", [*events, switch(us + 500, 0, 7), switch(us + 600, 7, 0, 1)])
    root, _ = view(tmp_path / "kernel")
    drawn = colours(root, r"t\d+")
    named, (rest,) = legend(root, "on the CPUs:")
    assert [name for name, _ in named] == [f"t{n}" for n in range(129, 129 - len(named), -1)] and 8 < len(named) < 31
    assert all(drawn[name] == colour for name, colour in named if name in drawn)
    assert rest.text == f"and {31 - len(named)} others" and float(rest.get("x")) + 80 < float(root.get("width"))


def test_the_legend_names_system_calls_and_interrupts(view, krait, tmp_path):  # noqa: F811
    """In the colours of their boxes; of system calls the eight that took the longest in what is drawn."""
    events, us = [switch(0, 0, 7)], 10
    for n in range(11):
        events += [begins(us, f"call{n}"), ends(us + 100 + 10 * n, f"call{n}")]
        us += 200 + 10 * n
    events += [event(us, "irq_handler_entry", irq=9, name="eth0"), event(us + 90, "irq_handler_exit", irq=9, ret=1), event(us + 100, "softirq_entry", vec=3), event(us + 130, "softirq_exit", vec=3)]
    folder = kernel_made.write(tmp_path / "kernel", [*events, begins(us + 200, "call0"), ends(us + 9000, "call0"), switch(us + 9010, 7, 0, 1)])
    root, _ = view(folder, "--until", f"{us + 205}us")
    calls, (rest,) = legend(root, "system calls:")
    assert [name for name, _ in calls] == [f"call{n}" for n in range(10, 2, -1)] and rest.text == "and 3 others"
    drawn = colours(root, r"call\d+")
    assert len(drawn) > 8 and all(drawn[name] == colour for name, colour in calls)
    interrupts, rest = legend(root, "interrupts:")
    drawn = colours(root, ".*(eth0|net_rx|irq).*")
    assert len(interrupts) == 2 and "eth0" in interrupts[0][0] and rest == []
    assert all(drawn[name] == colour for name, colour in interrupts)


def test_a_picture_without_system_calls_has_no_legend_of_them(view, tmp_path):  # noqa: F811
    root, _ = view(kernel_made.write(tmp_path / "kernel", [switch(0, 0, 7), switch(10, 7, 0, 1)]))
    assert not {"system calls:", "interrupts:"} & set(texts(root))
