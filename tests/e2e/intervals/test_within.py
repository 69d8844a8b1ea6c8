# SPDX-License-Identifier: Apache-2.0
"""--within: every verb looks at one interval alone."""

import json
import random
import re
import subprocess

import pytest

from browser import opened, served
from conftest import BUILD, verb_json
from intervals_made import declare, marks  # noqa: F401  (declare: a fixture)
from kernel_made import begins, ends, event, switch, wake, write

CALLS = "process 4711 python3\nexit 0 0\ncode 1 python app main app.py 1\ncode 2 python app work app.py 9\ncode 3 python app leaf app.py 12\nthread 4711 MainThread\n0 call 1\n"
TIMES = ((10, 20), (30, 75), (80, 85))


@pytest.fixture
def folder(synth):
    """work() three times, from a message Start to Stop each, with a leaf in it."""
    lines = CALLS
    for number, (begin, end) in enumerate(TIMES):
        lines += f"{begin}us mark Start%20{number}\n{begin}us call 2\n{begin + 1}us call 3\n{begin + 3}us return\n{end}us return\n{end}us mark Stop\n"
    return synth(lines + "100us return\n")


def functions(krait, folder, within):
    return {f["name"]: f["total_ns"] // 1000 for f in verb_json(krait, "report", folder, "--within", within)["functions"]}


@pytest.mark.parametrize(
    "within, work",
    [("work:1", 10), ("work:2", 45), ("app.work:slowest", 45), ("work:fastest", 5), ("work:last", 5), ("work:first", 10), ("Start .. Stop:2", 45), ("Start 2 .. Stop", 5)],
)
def test_report_is_of_that_interval_alone(folder, krait, within, work):
    assert functions(krait, folder, within) == {"main": work, "work": work, "leaf": 2}


def test_every_verb_takes_it(folder, krait, tmp_path):
    def run(*words):
        return subprocess.run([krait, *map(str, words)], capture_output=True, text=True, check=True)

    said = run("report", folder, "--within", "work:slowest")
    assert "krait report: within work, 2 of 3: 45.00 us from 30.00 us on, thread MainThread" in said.stderr
    assert run("export", folder, "--to", "folded", "-o", "-", "--within", "work:2").stdout.split("\n")[0].startswith("python3 4711")
    run("flame", folder, "-o", tmp_path / "f.svg", "--within", "work:2")
    run("view", folder, "--svg", tmp_path / "v.svg", "--within", "work:2")
    run("view", folder, "--html", tmp_path / "v.html", "--within", "work:2")
    run("cut", folder, "-o", tmp_path / "part", "--within", "work:2")
    assert {f["name"]: f["total_ns"] // 1000 for f in verb_json(krait, "report", tmp_path / "part")["functions"]}["work"] == 45
    (row,) = verb_json(krait, "intervals", folder, "--call", "leaf", "--within", "work:2")["rows"]
    assert row["intervals"] == 1


def test_states_and_path_take_it(both, krait):
    kernel = [
        (0, 0, "sched_switch", dict(prev_comm="swapper/0", prev_tid=0, prev_prio=20, prev_state=0, next_comm="python3", next_tid=4711, next_prio=20)),
        (95, 0, "sched_switch", dict(prev_comm="python3", prev_tid=4711, prev_prio=20, prev_state=1, next_comm="swapper/0", next_tid=0, next_prio=20)),
    ]
    lines = CALLS + "".join(f"{b}us call 2\n{e}us return\n" for b, e in TIMES) + "100us return\n"
    folder = both(lines, kernel)
    states = verb_json(krait, "states", folder, "--within", "work:2", "--by", "thread")
    assert states["duration_ns"] == 45_000
    path = verb_json(krait, "path", folder, "--within", "work:2")
    assert path["duration_ns"] == 45_000


@pytest.mark.few_pythons
def test_a_span_comes_before_a_function(record, krait, python):
    program = "import krait, time\ndef serve():\n    time.sleep(0.001)\nfor n in (1, 5, 2):\n    with krait.span('serve', n=n):\n        for _ in range(n): serve()\n"
    run = record.text(python, program, env={"PYTHONPATH": str(BUILD / "python")})
    found = verb_json(krait, "report", run.path, "--within", "serve:2")
    assert {f["name"]: f["calls"] for f in found["functions"] if f["name"] == "serve"} == {"serve": 5}


@pytest.mark.parametrize(
    "options, begin, length, has_leaf",
    [(["--within", "work:slowest"], 30, 45, True), (["--from", "40us", "--until", "50us"], 40, 10, False), (["--from", "40us"], 40, 60, True)],
    ids=["within", "range", "open"],
)
def test_the_page_opens_with_that_time_selected(folder, krait, chromium, options, begin, length, has_leaf):
    with opened(krait, chromium, folder, options=options) as page:
        assert f"s={begin * 1000},{length * 1000}" in page.address().split(";")
        assert any("leaf" in cell for row in page.rows() for cell in row) == has_leaf


@pytest.mark.parametrize("domain", ["kernel", "ust"])
def test_the_page_of_a_trace_without_a_program_opens_there_too(tmp_path, krait, domain):
    trace = write(tmp_path / "t", [switch(n * 10, n, n + 1) for n in range(1, 9)], domain=domain)
    for options, place in ([], ""), (["--from", "20us", "--until", "40us"], "#r=18000,24000;s=20000,20000"), (["--from", "20us"], "#r=15000,60000;s=20000,50000"), (["--from", "1s"], ""):
        with served(krait, trace, *options) as link:
            assert link.partition("/#")[2] == place.lstrip("#")


@pytest.mark.parametrize(
    "within, status, why",
    [
        ("work:4", 1, "there are 3 of 'work', and no number 4"),
        ("work:0", 1, "no number 0"),
        ("nobody:1", 1, "there is no span 'nobody', and no call of such a function; 'START .. STOP' takes"),
        ("wrok:1", 1, "there is no span 'wrok', and no call of such a function; did you mean 'work'?"),
        ("work:slowst", 1, "there is no 'work:slowst'; did you mean 'work:slowest'?"),
        ("nothing .. at all", 1, "--within 'nothing .. at all': no message matches 'nothing'; krait report --by mark counts"),
        ("Strat 1 .. Stop", 1, "--within 'Strat 1 .. Stop': no message matches 'Strat 1'; did you mean 'Start 1'?\n"),
        ("Start .. Stop:slow", 1, "no message matches 'Stop:slow'; did you mean 'Start .. Stop:slowest'?\n"),
        ("Start..Stop", 1, "'START .. STOP', with blanks around the dots, takes the time between messages\n"),
        ("Start .. at all", 1, "--within 'Start .. at all': no message matches 'at all'; krait report --by mark counts"),
        ("Stop .. Start 0:first", 1, "3 messages match 'Stop', and 1 message matches 'Start 0', but no start is before a stop in the same thread; did you mean --within 'Start 0 .. Stop:first'?\n"),
        ("( .. b", 1, "is no regular expression"),
    ],
)
def test_what_is_no_interval_is_explained(folder, krait, within, status, why):
    done = subprocess.run([krait, "report", folder, "--within", within], capture_output=True, text=True)
    assert done.returncode == status and why in done.stderr


# (thread, us, text): an order is taken in one thread, and sent in another.
ACROSS = [(0, 0, "order 1 is taken"), (0, 5, "order 2 is taken"), (1, 20, "order 1 is sent"), (1, 30, "order 2 is sent")]
NEVER = "2 messages match '{}', and 2 messages match '{}', but never in one thread; "


@pytest.mark.parametrize(
    "start, stop, pairs",
    [
        ("order", "order", None),
        ("is taken", "is sent", (r"(?P<key>\d+) is taken", r"(?P<key>\d+) is sent")),
        ("order.*taken|x", "order.*sent", None),
        (r"order (?P<n>\d) is taken", r"order (?P<n>\d) is sent", None),
    ],
)
def test_messages_of_different_threads_need_a_key_which_is_told(synth, krait, start, stop, pairs):
    texts = [(thread, us, text if start != "order" else ("take " if "taken" in text else "send ") + text) for thread, us, text in ACROSS]
    start, stop = ("take order", "send order") if start == "order" else (start, stop)
    pairs = (r"take order (?P<key>\d+)", r"send order (?P<key>\d+)") if start == "take order" else pairs
    folder = synth(marks(*texts).replace("exit", "code 1 python app work app.py 1\nexit", 1) + "40us call 1\n50us return\n")
    done = subprocess.run([krait, "report", folder, "--within", f"{start} .. {stop}:2"], capture_output=True, text=True)
    none = subprocess.run([krait, "intervals", folder, "--start", start, "--stop", stop], capture_output=True, text=True, check=True)
    why, own = NEVER.format(start, stop), "a group (?P<key>...) in both patterns pairs those of equal text in any thread\n"
    assert done.returncode == 1
    if not pairs:
        assert done.stderr.endswith(why + own) and none.stderr == why + own
        return
    keyed = "a group named key pairs them in any thread: "
    assert done.stderr.endswith(f"{why}{keyed}--within '{pairs[0]} .. {pairs[1]}:2'\n")
    assert none.stderr == f"{why}{keyed}--start '{pairs[0]}' --stop '{pairs[1]}'\n"
    within = subprocess.run([krait, "cat", folder, "--within", f"{pairs[0]} .. {pairs[1]}:2"], capture_output=True, text=True, check=True)
    assert "2 of 2: 25.00 us" in within.stderr
    (row,) = verb_json(krait, "intervals", folder, "--start", pairs[0], "--stop", pairs[1])["rows"]
    assert row["intervals"] == 2


def test_why_declared_events_do_not_pair_is_told(synth, krait, declare):  # noqa: F811
    folder = synth(marks(*ACROSS))
    own = declare("[interval.order]\nstart = 'taken'\nstop = 'sent'\n[interval.other]\nstart = '(?P<key>t)aken'\nstop = '(?P<key>s)ent'\n")
    why = "'order': 2 events begin it, and 2 events end it, but no start is before a stop in one thread; a group (?P<key>...) in both patterns pairs those of equal text in any thread\n"
    done = subprocess.run([krait, "intervals", folder, "-f", own], capture_output=True, text=True, check=True)
    assert done.stderr == why + "'other': 2 events begin it, and 2 events end it, but no start is before a stop with the same key\n"
    done = subprocess.run([krait, "cat", folder, "--analysis", own, "--within", "order"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, f"krait cat: --within: {why}")


def test_a_field_that_pairs_events_is_asked_for_where_it_is_written(synth, krait, declare):  # noqa: F811
    folder = synth(marks(*ACROSS))
    own = declare("[interval.order]\nstart = { event = 'user:mark', where = { text = '*taken' } }\nstop = { event = 'user:mark', where = { text = '*sent' } }\n")
    done = subprocess.run([krait, "intervals", folder, "-f", own], capture_output=True, text=True, check=True)
    asked = "no start is before a stop in one thread; if a field of both events tells which belong together, {} pairs them in any thread\n"
    assert done.stderr.endswith(asked.format("key = 'FIELD' in the file"))
    code = "code 1 python app work app.py 1\n"
    calls = synth(marks((0, 0, "go"), (1, 90, "x")).replace("thread", code + "thread", 1) + "99us call 1\n100us return\n")
    done = subprocess.run([krait, "intervals", calls, "--start", "go", "--stop-return", "work"], capture_output=True, text=True, check=True)
    assert done.stderr.endswith(asked.format("--key FIELD")), done.stderr


def test_of_names_that_are_as_near_the_shortest_is_meant(synth, krait):
    folder = synth("process 7 python3\ncode 1 python app work_all app.py 1\ncode 2 python app work app.py 5\nthread 7\n0us call 1\n1us call 2\n2us return\n9us return\n")
    done = subprocess.run([krait, "report", folder, "--within", "wor"], capture_output=True, text=True)
    assert done.returncode == 1 and "did you mean 'work'?" in done.stderr


def test_a_function_without_a_whole_call_is_not_suggested_for_itself(synth, krait):
    folder = synth("process 7 python3\ncode 1 python app work app.py 1\nthread 7\n0us call 1\n")
    done = subprocess.run([krait, "report", folder, "--within", "work:1"], capture_output=True, text=True)
    assert done.returncode == 1 and "--within: no call of 'work' both begins and ends in the recording; krait intervals --call counts them\n" in done.stderr


@pytest.mark.parametrize(
    "within, why",
    [
        ("waiting:1", "--within: 'waiting' is a signal, which has no intervals\n"),
        ("waitin:1", "there is no span 'waitin', and no call of such a function; 'START .. STOP' takes"),
        ("ordr:1", "did you mean 'order'?"),  # the function ord is as near, and shorter
        ("or:1", "did you mean 'order'?"),
        ("ords:1", "did you mean 'ord'?"),
    ],
)
def test_names_of_the_files_come_before_functions(synth, krait, tmp_path, within, why):
    folder = synth("process 7 python3\ncode 1 python app ord app.py 1\nthread 7\n0us call 1\n1us mark Start%205\n2us mark Stop\n9us return\n")
    own = tmp_path / "own.toml"
    own.write_text("[interval.order]\nstart = 'Start'\nstop = 'Stop'\n[signal.waiting]\nmessage = 'Start (.*)'\n")
    done = subprocess.run([krait, "report", folder, "-f", own, "--within", within], capture_output=True, text=True)
    assert done.returncode == 1 and why in done.stderr


OVEN = marks((0, 0, "take 1"), (0, 10, "oven hot"), (0, 20, "take 2"), (0, 50, "oven warm"), (0, 60, "sent 1"), (0, 70, "oven hot"), (0, 90, "oven off"), (0, 95, "sent 2"))


@pytest.mark.parametrize(
    "within, status, said",
    [
        ("oven:slowest", 0, "within oven, 1 of 3 (state hot): 40.00 us from 10.00 us on, thread T0\n"),
        ("oven", 0, "within oven, all 3: 80.00 us\n"),
        ("oven.hot:slowest", 0, "within oven.hot, 1 of 2: 40.00 us from 10.00 us on, thread T0\n"),
        ("oven.hot:2", 0, "within oven.hot, 2 of 2: 20.00 us from 70.00 us on, thread T0\n"),
        ("oven.hot", 0, "within oven.hot, all 2: 60.00 us\n"),
        ("oven.warm", 0, "within oven.warm, 1 of 1: 20.00 us from 50.00 us on, thread T0\n"),
        ("oven.off", 1, "--within: 'oven.off' has no end in the recording, and so is no interval\n"),
        ("oven.wram:1", 1, "--within: there is no state 'wram' of 'oven'; did you mean 'oven.warm'?\n"),
        ("oven.cold", 1, "--within: there is no state 'cold' of 'oven'; the states are hot, warm, off\n"),
        ("oven.warm:2", 1, "--within: there is 1 of 'oven.warm', and no number 2\n"),
        ("order:slowest", 0, "within order, 2 of 2 (key 2): 75.00 us from 20.00 us on, thread T0\n"),
        ("order.1", 0, "within order.1, 1 of 1: 60.00 us from 0 ns on, thread T0\n"),
        ("order.3", 1, "--within: there is no key '3' of 'order'; the keys are 1, 2\n"),
        ("Cart.add:2", 0, "within Cart.add, 2 of 2: 5.000 us from 110.0 us on, thread T0\n"),  # a function, which the file does not hide
        ("gate.shut", 1, "--within: there is no state 'shut' of 'gate'; the state is ta\n"),
        ("app.Cart.adds", 1, "--within: there is no key 'Cart.adds' of 'app'; did you mean 'app.Cart.add'?\n"),
        ("Cart.ad", 1, "--within: there is no key 'ad' of 'Cart'; did you mean 'Cart.add'?\n"),
    ],
)
def test_a_state_may_be_named_and_is_told(synth, krait, declare, within, status, said):  # noqa: F811
    folder = synth(OVEN.replace("thread", "code 1 python app Cart.add app.py 1\nthread", 1) + "100us call 1\n103us return\n110us call 1\n115us return\n")
    order = "start = 'take (?P<key>.)'\nstop = 'sent (?P<key>.)'\n"
    own = declare(f"[state.oven]\nmessage = 'oven (.*)'\n[interval.order]\n{order}[interval.Cart]\n{order}[interval.app]\n{order}[state.gate]\nmessage = '(ta)ke'\n")
    done = subprocess.run([krait, "report", folder, "-f", own, "--within", within], capture_output=True, text=True)
    assert done.returncode == status and said in done.stderr, done.stderr
    if within == "oven":
        one = subprocess.run([krait, "cut", folder, "-f", own, "--within", within, "-o", folder / "cut"], capture_output=True, text=True)
        assert one.returncode == 1 and one.stderr.endswith("'oven:last'; NAME.STATE takes those of one state\n")


def test_what_a_function_is_called_like_is_not_told(synth, krait, declare):  # noqa: F811
    folder = synth(OVEN.replace("thread", "code 1 python app Cart.add app.py 1\nthread", 1) + "100us call 1\n103us return\n")
    own = declare("[interval.Cart]\nstart = { event = 'user:mrk' }\nstop = 'sent'\n")
    told = "own.toml:2: interval.Cart.start.event: there is no event 'user:mrk' in the trace; did you mean 'user:mark'?\n"
    done, absent = (subprocess.run([krait, "report", folder, "-f", own, "--within", f"Cart.{name}"], capture_output=True, text=True) for name in ("add", "none"))
    assert done.returncode == 0 and told not in done.stderr and "within Cart.add, 1 of 1" in done.stderr
    assert absent.returncode == 1 and absent.stderr.count(told) == 1
    near = subprocess.run([krait, "report", folder, "-f", own, "--within", "Cart.ad"], capture_output=True, text=True)
    assert near.returncode == 1 and near.stderr.endswith("--within: there is no key 'ad' of 'Cart'; did you mean 'Cart.add'?\n")


def test_a_verb_that_shows_one_alone_lists_them(folder, krait, tmp_path):
    for words in (["cut", folder, "-o", tmp_path / "part"], ["view", folder, "--svg", tmp_path / "v.svg"], ["view", folder, "--no-open"], ["export", folder, "--to", "chrome", "-o", "-"]):
        done = subprocess.run([krait, *words, "--within", "work"], capture_output=True, text=True)
        assert done.returncode == 1 and "there are 3 of 'work'" in done.stderr and "name one: 'work:1' to 'work:3', 'work:slowest'" in done.stderr


def test_without_a_number_all_of_them_are_summed_up(folder, krait, tmp_path):
    def run(*words):
        done = subprocess.run([krait, *map(str, words), "--within", "work"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert "within work, all 3: 60.00 us\n" in done.stderr
        return done.stdout

    assert functions(krait, folder, "work") == {"main": 60, "work": 60, "leaf": 6}
    assert functions(krait, folder, "Start .. Stop") == {"main": 60, "work": 60, "leaf": 6}
    rows = {f["name"]: (f["calls"], f["min_ns"], f["max_ns"]) for f in verb_json(krait, "report", folder, "--within", "work")["functions"]}
    assert rows["work"] == (3, 5_000, 45_000) and rows["main"][0] == 0
    folded = dict(line.rsplit(" ", 1) for line in run("export", folder, "--to", "folded", "-o", "-").splitlines())
    assert {stack.split(";")[-1]: int(n) for stack, n in folded.items()} == {"app.work": 54_000, "app.leaf": 6_000}
    assert "app.work" in run("report", folder, "--tree")
    assert run("flame", folder, "-o", tmp_path / "f.svg") == ""
    rows = verb_json(krait, "report", folder, "--within", "work", "--by", "mark")["marks"]
    assert sum(row["marks"] for row in rows) == 3  # the end of an interval is no part of it


def test_time_that_several_of_them_cover_counts_once(krait, synth):
    text = "process 4711 python3\nexit 0 0\ncode 1 python app main app.py 1\ncode 2 python app work app.py 9\n"
    text += "thread 4711 MainThread\n0 call 1\n10us call 2\n30us return\n50us return\nthread 4712 Other\n0 call 1\n20us call 2\n40us return\n50us return\n"
    folder = synth(text)
    done = subprocess.run([krait, "report", folder, "--json", "--within", "work"], capture_output=True, text=True)
    assert "within work, all 2: 40.00 us; they overlap, and cover 30.00 us\n" in done.stderr
    assert {f["name"]: f["total_ns"] for f in json.loads(done.stdout)["functions"]} == {"main": 60_000, "work": 40_000}


def test_states_are_split_in_each_of_them(both, krait):
    kernel = [
        (0, 0, "sched_switch", dict(prev_comm="swapper/0", prev_tid=0, prev_prio=20, prev_state=0, next_comm="python3", next_tid=4711, next_prio=20)),
        (50, 0, "sched_switch", dict(prev_comm="python3", prev_tid=4711, prev_prio=20, prev_state=1, next_comm="swapper/0", next_tid=0, next_prio=20)),
        (78, 0, "sched_switch", dict(prev_comm="swapper/0", prev_tid=0, prev_prio=20, prev_state=0, next_comm="python3", next_tid=4711, next_prio=20)),
        (95, 0, "sched_switch", dict(prev_comm="python3", prev_tid=4711, prev_prio=20, prev_state=1, next_comm="swapper/0", next_tid=0, next_prio=20)),
    ]
    folder = both(CALLS + "".join(f"{b}us call 2\n{e}us return\n" for b, e in TIMES) + "100us return\n", kernel)
    (row,) = [f for f in verb_json(krait, "report", folder, "--within", "work")["functions"] if f["name"] == "work"]
    assert row["total_ns"] == 60_000 and row["wall_total_ns"]["on_cpu"] == 35_000


def test_it_is_a_range_itself(folder, krait, tmp_path):
    for verb, *more in ("report", "--from", "1us"), ("view", "--no-open", "--from", "1us"), ("report", "--diff", folder):
        done = subprocess.run([krait, verb, folder, "--within", "work:1", *map(str, more)], capture_output=True, text=True)
        assert done.returncode == 2 and "--within" in done.stderr


def test_cat_prints_what_is_inside_of_an_interval(krait, synth, tmp_path):
    folder = synth(marks((0, 0, "go 1"), (0, 10, "a"), (1, 15, "b"), (0, 20, "done 1"), (0, 30, "c"), (0, 40, "go 2"), (0, 90, "d"), (0, 99, "done 2")))
    (tmp_path / "own.toml").write_text("[interval.job]\nstart = 'go (?P<key>\\d+)'\nstop = 'done (?P<key>\\d+)'\n")

    def texts(*options):
        done = subprocess.run([krait, "cat", folder, *options], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return re.findall(r'text = "([^"]+)"', done.stdout)

    assert texts("--within", "job:1", "--analysis", tmp_path / "own.toml") == ["go 1", "a", "b", "done 1"]
    assert texts("--within", "go .. done:slowest") == ["go 2", "d", "done 2"]
    assert texts("--within", "job", "--analysis", tmp_path / "own.toml") == ["go 1", "a", "b", "done 1", "go 2", "d", "done 2"]
    for wrong in (["--analysis", tmp_path / "own.toml"], ["--within", "job:1", "--begin", "0"]):
        assert subprocess.run([krait, "cat", folder, *wrong], capture_output=True).returncode == 2


def test_why_is_of_all_intervals_without_a_number(folder, krait):
    why = verb_json(krait, "report", folder, "--why", "leaf", "--within", "work")
    assert why["why"] == {"pattern": "leaf", "matched": 1, "runs": 3, "total_ns": 6000} and [row["duration_ns"] for row in why["slowest"]] == [2000] * 3
    cut = verb_json(krait, "report", folder, "--why", "main", "--within", "work")  # main goes on around them: its part in each
    assert cut["why"]["total_ns"] == 60_000 and [row["duration_ns"] for row in cut["slowest"]] == [45_000, 10_000, 5_000]


@pytest.mark.few_pythons
def test_tasks_are_of_all_intervals_without_a_number(record, krait, python):
    program = """
import asyncio, krait

async def worker():
    for n in range(3):
        with krait.span("step", n=n):
            sum(range(5000))
            await asyncio.sleep(0.001)
        await asyncio.sleep(0)

asyncio.run(worker())
"""
    trace = record.text(python, program, env={"PYTHONPATH": str(BUILD / "python")}).path

    def sums(within):
        (row,) = [row for row in verb_json(krait, "report", trace, "--by", "task", "--within", within)["tasks"] if row["coroutine"].endswith("worker")]
        return [row[f"{name}_ns"] for name in ("running", "ready", "waiting", "timer")]

    each = [sums(f"step:{n}") for n in (1, 2, 3)]
    assert sums("step") == [sum(values) for values in zip(*each)] and each[1][0] > 0


TIMES_OF_THREADS = ("on_cpu", "ready", "blocked", "user", "system", "interrupt", "woken", "preempted", "blocked_other", "unknown")
SUMMED = {
    "thread": {f"{name}_ns" for name in TIMES_OF_THREADS},
    "process": {f"{name}_ns" for name in TIMES_OF_THREADS} | {"calls", "errors"},
    "cpu": {f"{name}_ns" for name in ("idle", "user", "system", "interrupt", "softirq", "unknown")},
    "syscall": {"calls", "errors", "total_ns"},
    "latency": {"count"},
}


def states_of(krait, folder, within, by):
    """The rows of krait states by their name, each with its times and counts."""
    table = verb_json(krait, "states", folder, "--within", within, "--by", by, "--all")
    rows = {}
    for row in table[{"thread": "threads", "process": "processes", "cpu": "cpus", "syscall": "syscalls", "latency": "latencies"}[by]]:
        key = tuple(row.get(name) for name in ("tid", "pid", "cpu", "name"))
        rows[key] = {name: row[name] for name in row if name in SUMMED[by]}
    return table["duration_ns"], rows


@pytest.mark.parametrize("by", ["thread", "process", "cpu", "syscall", "latency"])
def test_states_of_all_intervals_are_the_sum_of_each(both, krait, by):
    kernel = kernel_events()
    steps = [(0, 100 + 37 * n, f"go {n}") for n in range(20)] + [(0, 100 + 37 * n + 11 + n, f"done {n}") for n in range(20)]
    folder = both(marks(*sorted(steps, key=lambda s: s[1])), kernel)
    each = [states_of(krait, folder, f"go .. done:{n}", by) for n in range(1, 21)]
    duration, rows = states_of(krait, folder, "go .. done", by)
    assert duration == sum(one[0] for one in each) == sum(11_000 + 1000 * n for n in range(20))
    expected = {}
    for _, one in each:
        for key, values in one.items():
            for name, n in values.items():
                expected.setdefault(key, {}).setdefault(name, 0)
                expected[key][name] += n
    assert sum(n for values in rows.values() for n in values.values()) > 20
    assert rows == expected


def kernel_events():
    """Two CPUs that three threads share by chance, with system calls and interrupts."""
    chance, us, runs, calls, events = random.Random(7), 1, {0: 0, 1: 0}, {}, []
    while us < 1000:
        us += chance.randint(1, 6)
        cpu = chance.randint(0, 1)
        tid, what = runs[cpu], chance.randint(0, 5)
        if what < 2:
            free = [t for t in (4711, 201, 202, 203) if t not in runs.values()]
            runs[cpu] = chance.choice([0, *free])
            events.append(switch(us, tid, runs[cpu], cpu=cpu))
        elif what == 2:
            events.append(wake(us, chance.choice([201, 202, 203]), cpu=cpu))
        elif what == 3:
            events += [event(us, "irq_handler_entry", cpu, irq=5, name="disk"), event(us + 1, "irq_handler_exit", cpu, irq=5, ret=1)]
        elif tid and tid not in calls:
            calls[tid] = "read"
            events.append(begins(us, "read", cpu=cpu, fd=3))
        elif tid:
            events.append(ends(us, calls.pop(tid), chance.choice([-11, 5]), cpu=cpu))
    return sorted(events, key=lambda e: e[0])


def test_intervals_of_states_need_a_number(both, krait):
    folder = both(CALLS + "".join(f"{b}us call 2\n{e}us return\n" for b, e in TIMES) + "100us return\n", kernel_events())
    done = subprocess.run([krait, "states", folder, "--by", "interval", "--thread", "*", "--within", "work"], capture_output=True, text=True)
    assert done.returncode == 1 and "name one: 'work:1' to 'work:3'" in done.stderr
    done = subprocess.run([krait, "states", folder, "--within", "work"], capture_output=True, text=True)
    assert done.returncode == 0 and "krait states: within work, all 3: 60.00 us\n" in done.stderr


@pytest.mark.parametrize("words", [["intervals"], ["info"], ["view", "--svg", "out.svg"], ["export", "--to", "chrome", "-o", "out.json"]])
def test_what_a_file_names_wrongly_is_told_once(synth, krait, declare, tmp_path, words):
    own = declare("[interval.work]\nstart = { event = 'user:mark', where = { text = 'begin' } }\nstop = 'end'\nby = 'txet'\n")
    folder = synth(marks((0, 1, "begin"), (0, 2, "end")) + "3us mark x\n")
    done = subprocess.run([krait, words[0], folder, "-f", own, "--within", "work:1", *words[1:]], capture_output=True, text=True, cwd=tmp_path)
    assert done.stderr.count("there is no field 'txet' in its events; did you mean 'text'?") == 1 and "within work" in done.stderr, done.stderr
