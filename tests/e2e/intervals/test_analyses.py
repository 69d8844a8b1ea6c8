# SPDX-License-Identifier: Apache-2.0
"""Declared analyses: files of intervals, states and signals (-f), and the built-in ones."""

import os
import random
import re
import subprocess
from pathlib import Path

import kernel_made
import pytest
from analyses_oracle import analyse

from conftest import verb_json
from corpus import CORPUS
from intervals_made import BUILT_IN, declare, marks  # noqa: F401  (declare: a fixture)
from kernel_made import begins, ends, event, switch, wake

LARGE = pytest.param("lttng-ref-traces/basic-kernel-analysis", marks=pytest.mark.long)  # `made` has all kinds of events
KERNELS = [LARGE, "lttng-ref-traces/picotrace", "babeltrace/succeed/lttng-tracefile-rotation", "tracecompass/uneven-streams", "tracecompass/flipping-endianness"]


# -- the built-in ones --

IO = ["read", "write", "recvfrom", "recvmsg", "sendto", "sendmmsg"]


def made(folder):
    """A trace of all that they look at, by chance."""
    chance = random.Random(19)
    events, us, runs = [], 10, {0: 0, 1: 0}
    for _ in range(3000):
        us += chance.randint(1, 20)
        cpu, what = chance.randint(0, 1), chance.randint(0, 12)
        tid = runs[cpu]
        if what < 3:
            other = chance.choice([0, 101 + cpu, 103 + cpu])
            events.append(switch(us, tid, other, cpu=cpu))
            runs[cpu] = other
        elif what == 3:
            events.append(wake(us, chance.randint(101, 104), cpu=cpu, comm="t%d" % chance.randint(1, 2)))
        elif what == 4:
            events.append(begins(us, chance.choice(IO), cpu=cpu, fd=chance.randint(3, 5)))
        elif what == 5:
            events.append(ends(us, chance.choice(IO), chance.randint(-1, 900), cpu=cpu))
        elif what == 6:
            events.append(begins(us, "futex", cpu=cpu, uaddr=chance.randint(7, 8) * 64, op=chance.choice([0, 1, 128, 129, 137])))
            events.append(ends(us + 1, "futex", cpu=cpu))
        elif what == 7:
            events += [event(us, "irq_handler_entry", cpu, irq=5, name="disk"), event(us + chance.randint(1, 3), "irq_handler_exit", cpu, irq=5, ret=1)]
        elif what == 8:
            events += [event(us, "block_rq_issue", cpu, dev=8, sector=us % 7, nr_sector=us % 50), event(us + 2, "block_rq_complete", 1 - cpu, dev=8, sector=us % 7, errors=0)]
        elif what == 9:
            events += [event(us, "irq_softirq_entry", cpu, vec=chance.randint(1, 3)), event(us + chance.randint(1, 3), "irq_softirq_exit", cpu, vec=chance.randint(1, 3))]
        elif what == 10:
            events.append(event(us, "net_dev_xmit", cpu, skbaddr=us, rc=0, len=chance.randint(40, 1500), name=chance.choice(["lo", "eth0"])))
        elif what == 11:
            name = chance.choice(["net_if_rx", "net_if_receive_skb", "net_if_receive_skb"])
            events.append(event(us, name, cpu, skbaddr=us, len=chance.randint(40, 1500), name=chance.choice(["lo", "eth0"])))
        else:
            events.append(event(us, "power_cpu_frequency", cpu, state=chance.choice([800000, 2400000]), cpu_id=chance.randint(0, 1)))
    return kernel_made.write(folder, sorted(events, key=lambda e: e[0]))


def kept(by_key):
    return {key: (len(v), sum(v), min(v), max(v)) for key, v in by_key.items() if v}


@pytest.mark.parametrize("name", ["made", *KERNELS])
def test_the_built_in_analyses_find_what_a_script_finds(krait, tmp_path, name):
    trace = made(tmp_path / "made") if name == "made" else CORPUS / name
    if not trace.exists():
        pytest.skip("the corpus of traces is not here")
    durations, values = analyse(trace)
    seen = set()
    for analysis in BUILT_IN:
        found = verb_json(krait, "intervals", trace, "-f", analysis)
        for row in found.get("rows", []) + found.get("signals", []):
            seen.add(row["name"])
        for of in {row["name"] for row in found.get("rows", [])}:
            rows = {r["key"]: (r["intervals"], r["total_ns"], r["min_ns"], r["max_ns"]) for r in found["rows"] if r["name"] == of and r["intervals"]}
            assert rows == kept(durations.get(of, {})), of
        for of in {row["name"] for row in found.get("signals", [])}:
            rows = {r["key"]: (r["values"], r["total"], r["min"], r["max"]) for r in found["signals"] if r["name"] == of and r["values"]}
            assert rows == kept(values.get(of, {})), of
    if name == "made":
        assert seen == {"cpu", "kHz", "request", "sectors", "futex", "interrupt", "softirq", "io", "bytes", "sent", "received", "syscall", "wakeup"}


def test_the_bytes_of_io_are_no_numbers_of_messages(tmp_path, krait):
    """recvmmsg and sendmmsg return how many messages they took."""
    calls = [(name, 3, ret) for name, ret in [("recvmsg", 700), ("recvmmsg", 5), ("sendmmsg", 6), ("sendto", 80)]]
    events = [switch(0, 0, 7)]
    for us, (name, fd, ret) in zip(range(10, 90, 20), calls):
        events += [begins(us, name, fd=fd), ends(us + 5, name, ret)]
    found = verb_json(krait, "intervals", kernel_made.write(tmp_path / "t", events), "-f", "io")
    assert [(r["name"], r["key"], r["intervals"]) for r in found["rows"] if r["intervals"]] == [("io", "7 3", 4)]
    assert [(r["name"], r["key"], r["values"], r["total"]) for r in found["signals"]] == [("bytes", "7 3", 2, 780)]


def test_they_are_listed_and_printed(krait, tmp_path):
    env = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path)}
    folder = tmp_path / "krait" / "analyses"
    folder.mkdir(parents=True)
    printed = subprocess.run([krait, "analyses", "syscalls"], env=env, capture_output=True, text=True, check=True).stdout
    assert "[interval.syscall]" in printed
    (folder / "mine.toml").write_text(printed)
    listed = subprocess.run([krait, "analyses"], env=env, capture_output=True, text=True, check=True).stdout
    assert [line.split()[0] for line in listed.splitlines()[1:]] == ["mine", *BUILT_IN]
    (folder / "wrong.toml").write_text("[intervall.a]\n")
    done = subprocess.run([krait, "analyses"], env=env, capture_output=True, text=True)
    assert done.returncode == 1 and "wrong.toml:1: there is no kind of analysis 'intervall'; did you mean 'interval'?" in done.stderr and "mine" in done.stdout
    done = subprocess.run([krait, "intervals", made(tmp_path / "made"), "-f", "mine"], env=env, capture_output=True, text=True, check=True)
    assert "syscall  read" in done.stdout


# -- files --

ORDERS = r"""
about = "A bakery"

[interval.order]
start = 'order (?P<key>\d+) is taken'
stop = 'order (?P<key>\d+) is sent'

[interval.baking]
start = 'bake (?P<what>\w+)'
stop = 'baked'
by = "what"
within = "order"

[state.oven]
message = 'oven is (\w+)'

[signal.waiting]
message = '(\d+) wait'
"""

BAKERY = [
    (0, 0, "order 1 is taken"),
    (0, 1, "3 wait"),
    (0, 5, "bake bread"),
    (1, 6, "oven is hot"),
    (0, 20, "baked"),
    (0, 30, "order 1 is sent"),
    (0, 40, "bake cake"),
    (0, 47, "baked"),
    (1, 50, "oven is cold"),
    (1, 60, "order 2 is taken"),
    (0, 61, "bake cake"),
    (0, 63, "baked"),
    (0, 65, "order 2 is sent"),
]


def test_a_file_declares_intervals_states_and_signals(synth, krait, declare):
    folder = synth(marks(*BAKERY))
    found = verb_json(krait, "intervals", folder, "-f", declare(ORDERS))
    rows = {(r["name"], r["key"]): (r["intervals"], r["total_ns"] // 1000) for r in found["rows"]}
    assert rows == {("order", None): (2, 35), ("baking", "bread"): (1, 15), ("baking", "cake"): (1, 2), ("oven", "hot"): (1, 44), ("oven", "cold"): (0, 0)}
    assert [(r["name"], r["values"], r["last"]) for r in found["signals"]] == [("waiting", 1, 3)]
    only = verb_json(krait, "intervals", folder, "-f", declare(ORDERS), "--only", "baking", "--list")["list"]
    assert [(r["key"], r["duration_ns"] // 1000) for r in only] == [("bread", 15), ("cake", 2)]
    done = subprocess.run([krait, "report", folder, "-f", declare(ORDERS), "--within", "order:slowest", "--by", "mark"], capture_output=True, text=True, check=True)
    assert "within order, 1 of 2 (key 1): 30.00 us" in done.stderr


def test_a_latency_is_between_any_two_events(both, krait, declare):
    """From a mark of the program until the kernel wakes a thread that is more important than another."""
    calls = marks((0, 10, "go 102"), (0, 50, "go 103"))
    folder = both(calls, [switch(1, 0, 4711), wake(22, 102, comm="a", prio=5), wake(60, 103, comm="b", prio=20), wake(95, 103, comm="b", prio=4)])
    text = """
[interval.answer]
start = { message = 'go (?P<key>\\d+)' }
stop = { event = "sched_wak*", key = "tid", where = { prio = "< 10", comm = ["a", "b*"] } }
"""
    listed = verb_json(krait, "intervals", folder, "-f", declare(text), "--list")["list"]
    assert [(r["key"], r["duration_ns"] // 1000) for r in listed] == [("102", 12), ("103", 45)]


def test_states_have_keys_conditions_and_names_from_fields(tmp_path, krait, declare):
    trace = kernel_made.write(tmp_path / "k", [switch(10, 0, 7), switch(15, 7, 8), switch(40, 8, 0), switch(60, 0, 7, cpu=1), switch(61, 7, 0, cpu=1)])
    text = """
[[state.who]]
event = "sched_switch"
where = { next_tid = "!= 0" }
key = ["$cpu"]
state = "{next_comm} on {$cpu}"
[[state.who]]
event = "sched_switch"
where = { next_tid = 0 }
key = "$cpu"
state = "nobody"
"""
    rows = verb_json(krait, "intervals", trace, "-f", declare(text))["rows"]
    assert {r["key"]: r["total_ns"] // 1000 for r in rows} == {"t7 on 0": 5, "t8 on 0": 25, "t7 on 1": 1, "nobody": 0}


WRONG = [
    ("[interval.a]\nstrat = 'x'\nstop = 'y'\n", "own.toml:2: interval.a.strat: there is no key 'strat'; did you mean 'start'?"),
    ("[interval.a]\nstart = 'x'\n", "own.toml:1: interval.a: an interval has a start and a stop, or a call, or a span"),
    ("[interval.a]\nstart = '(x'\nstop = 'y'\n", "own.toml:2: interval.a.start: '(x' is no regular expression"),
    ("[interval.a]\nstart = 'x'\nstop = 'y'\npairing = 'newest'\n", "own.toml:4: interval.a.pairing: there is no pairing 'newest'; use one of: order, nested, latest"),
    ("[interval.a]\nstart = 'x'\nstop = { where = { b = 1 } }\n", "own.toml:3: interval.a.stop: it needs a message or an event, a call or a return"),
    ("[interval.a]\nstart = { call = 'f', message = 'x' }\nstop = 'y'\n", "own.toml:2: interval.a.start: a call or a return has no message and no event"),
    ("[interval.a]\ncall = 'f'\nby = 'x'\n", "own.toml:3: interval.a.by: 'by' goes with 'start' and 'stop'; of calls and spans, 'key' gives a row for each value"),
    ("[interval.a]\nstart = { call = 'f', return = 'g' }\nstop = 'y'\n", "own.toml:2: interval.a.start.return: it has either a call or a return"),
    ("[state.a]\ncall = 'f'\n", "own.toml:2: state.a.call: there is no key 'call'"),
    ("[interval.a]\nstart = 'x'\nstop = { event = 'y', where = { b = [] } }\n", "own.toml:3: interval.a.stop.where.b: an empty array is never matched"),
    ("[interval.a]\nstart = 'x'\nstop = { event = 'y', where = { b = ['< 1', 2] } }\n", "'<' compares with one number"),
    ("[state.a]\nevent = 'x'\nstate = 's'\nwhere = { n = '< abc' }\n", "own.toml:4: state.a.where.n: '<' compares with a number, which 'abc' is not"),
    ("[state.a]\nevent = 'x'\nstate = 's'\nwhere = { n = '>=' }\n", "own.toml:4: state.a.where.n: '>=' compares with a number, which '' is not"),
    ("[state.a]\nevent = 'x'\nstate = 's'\nwhere = { n = '=< 20' }\n", "own.toml:4: state.a.where.n: there is no comparison '=<'; did you mean '<='?"),
    ("[state.a]\nevent = 'x'\nstate = 's'\nwhere = { n = '=>20' }\n", "own.toml:4: state.a.where.n: there is no comparison '=>'; did you mean '>='?"),
    ("[state.a]\nevent = 'x'\nstate = 's'\nwhere = { n = '= 20' }\n", "own.toml:4: state.a.where.n: there is no comparison '='; did you mean '=='?"),
    ("[interval.a]\ncall = 'f'\nstart = 'x'\n", "own.toml:1: interval.a: an interval has a start and a stop, or a call, or a span"),
    ("[interval.a]\nspan = 'f'\nwithin = 'order'\n", "own.toml:3: interval.a.within: there is no interval 'order'; no other is declared\n"),
    ("[interval.a]\nspan = 'f'\nwithin = 'order'\n[state.s]\nmessage = '(x)'\n[interval.bb]\ncall = 'g'\n", "own.toml:3: interval.a.within: there is no interval 'order'; use one of: bb\n"),
    ("[lane.a]\nshow = 'b'\n[lane.b]\nshow = 'a'\n", "own.toml:2: lane.a.show: 'b' is a lane, and a lane shows intervals, states and signals\n"),
    ("[lane.a]\nshow = 'b'\n", "own.toml:2: lane.a.show: there is no interval, state or signal 'b'; no other is declared\n"),
    ("[interval.a]\nspan = 'f'\nwithin = 'b'\n[interval.b]\nspan = 'g'\nwithin = 'c'\n[interval.c]\nspan = 'h'\nwithin = 'a'\n", "own.toml:3: interval.a.within: 'a' is within 'b', which is within it: a circle"),
    ("[interval.a]\nspan = 'f'\nwithin = 'a'\n", "a circle"),
    ("[state.a]\nevent = 'x'\n", "own.toml:1: state.a: it needs a state, or a message with a group in round brackets for it"),
    ("[state.a]\nevent = 'x'\nstate = 'is {b'\n", "own.toml:3: state.a.state: 'is {b' has a brace that is not closed, or is empty"),
    ("[state.state]\nevent = 'x'\nstate = 'is {b'\n", "own.toml:3: state.state.state: 'is {b' has a brace that is not closed"),
    ("[interval.within]\nspan = 'f'\nwithin = 'order'\n", "own.toml:3: interval.within.within: there is no interval 'order'"),
    ("[interval.start]\nstart = 'x'\n", "own.toml:1: interval.start: an interval has a start and a stop"),
    ("[interval.a]\nstart = { event = 'x', key = '$thred' }\nstop = { event = 'y', key = '$thread' }\n", "own.toml:2: interval.a.start.key: there is no part '$thred'; did you mean '$thread'?"),
    ("[interval.a]\nstart = 'x'\nstop = { event = 'y', where = { '$cpuu' = 1 } }\n", "own.toml:3: interval.a.stop.where.$cpuu: there is no part '$cpuu'; did you mean '$cpu'?"),
    ("[state.a]\nevent = 'x'\nstate = 'on {$node}'\n", "own.toml:3: state.a.state: there is no part '$node'; use one of: $event, $*, $cpu, $thread, $process, $task, $host"),
    ("[signal.a]\nevent = 'x'\nvalue = 7\n", "own.toml:3: signal.a.value: it has to be the name of a field"),
    ("[interval.a]\nspan = 'f'\n[signal.a]\nmessage = '(x)'\n", "own.toml:3: signal.a: there is another one of that name"),
    ("[interval.a]\nstart = { event = 'x', key = 'tid' }\nstop = 'y'\n", "own.toml:3: interval.a.stop: it needs a key, as 'start' has\n"),
    ("[interval.a]\nstart = 'x'\nstop = { event = 'x', key = 'tid' }\n", "own.toml:2: interval.a.start: it needs a key, as 'stop' has\n"),
    ("[[state.a]]\nevent = 'x'\nkey = 'tid'\nstate = 's'\n[[state.a]]\nevent = 'y'\nstate = 's'\n", "own.toml:5: state.a: it needs a key, as the event in line 1 has\n"),
    ("[state]\nmessage = 'x (.*)'\n", "own.toml:1: state: it needs a name: [state.NAME]"),
    ("[interval]\nstart = { event = 'x' }\nstop = 'y'\n", "own.toml:1: interval: it needs a name: [interval.NAME]"),
    ("[signal]\nevent = ['x', 'y']\nvalue = 'n'\n", "own.toml:1: signal: it needs a name: [signal.NAME]"),
    ("[lane]\nshow = 'a'\n", "own.toml:1: lane: it needs a name: [lane.NAME]"),
    ("[interval]\na = 7\n", "own.toml:2: interval.a: it has to be a table: [interval.a]"),
    ("about = 'nothing'\n", "own.toml: it declares nothing"),
    ("", "own.toml: it declares nothing"),
    ("[interval.a\n", "own.toml:1: "),
    ("[interval.a]\nstart = 1979-05-27\nstop = 'y'\n", "own.toml:2: interval.a.start: it has to be a message or a table"),
    ("[interval.a]\nstart = \"order \\d+\"\n", "own.toml:2: Error while parsing string: unknown escape sequence '\\d'; between single quotes, \\ stands for itself: '\\d'\n"),
    ("[\x01\n", "own.toml:1: a control character"),
    ("[\u00a0\n", "own.toml:1: "),
    ("a" + ".a" * 100000 + " = 1\n", "more than 64 dots in a line"),
    ("a = " + "[" * 100000, "own.toml:1: "),
    ("x = '" + "y" * 2000000 + "'\n", "own.toml: it has more than 1048576 bytes"),
]


@pytest.mark.parametrize("text, why", WRONG, ids=[str(i) for i in range(len(WRONG))])
def test_what_is_wrong_with_a_file_is_told_with_its_line(synth, krait, declare, text, why):
    for command in ["analyses", declare(text)], ["intervals", synth(marks((0, 0, "x")), f"of{len(text)}"), "-f", declare(text)]:
        done = subprocess.run([krait, *command], capture_output=True, text=True)
        assert done.returncode == 1 and why in done.stderr


PAIRED = "it has no group 'key', as '{}' has; krait ignores that key, and pairs events as without a key\n"


@pytest.mark.parametrize(
    "text, why",
    [
        ("[interval.a]\nstart = 'x (?P<key>.)'\nstop = 'y'\n", "own.toml:3: interval.a.stop: " + PAIRED.format("start")),
        ("[interval.a]\nstop = 'x (?P<key>.)'\nstart = { event = 'user:mark' }\n", "own.toml:3: interval.a.start: " + PAIRED.format("stop")),
        (
            "[[state.a]]\nmessage = 'x (?P<key>.) (.)'\n[[state.a]]\nmessage = 'y (.)'\n",
            "own.toml:3: state.a: it has no group 'key', as the event in line 1 has; krait ignores that key, and each thread has a state of its own\n",
        ),
        ("[signal.a]\nmessage = 'x (?P<key>.) (.)'\nafter = 'y (?P<b>.)'\nby = 'b'\n", "own.toml:3: signal.a.after: it has no group 'key', as the event in line 1 has; krait ignores that key\n"),
        ("[interval.a]\nstart = 'x (?P<key>.)'\nstop = 'y'\nkey = '$thread'\n", ""),
        ("[interval.a]\nstart = 'x (?P<key>.)'\nstop = { event = 'user:mark', key = 'text' }\n", ""),
    ],
)
def test_a_key_of_one_pattern_alone_is_told_once(synth, krait, declare, text, why):
    folder, own = synth(marks((0, 0, "x 1 2"), (0, 5, "y 3"))), declare(text)
    within = ["-f", own, "--within", "x .. y"]
    for command in (
        ["analyses", own],
        ["intervals", folder, "-f", own],
        ["report", folder, "-f", own, "--within", "none"],
        ["view", folder, *within, "--svg", folder / "v.svg"],
        ["view", folder, "-f", own, "--within", "none", "--svg", folder / "v.svg"],
        ["export", folder, *within, "--to", "chrome", "-o", folder / "e.json"],
        ["export", folder, *within, "--to", "folded", "-o", "-"],
    ):
        done = subprocess.run([krait, *command], capture_output=True, text=True)
        assert why in done.stderr and done.stderr.count("ignores that key") == bool(why), done.stderr


@pytest.mark.parametrize("start, stop, end, meant", [("taken", "piad", "stop", "paid"), ("tkaen", "paid", "start", "taken")])
def test_an_end_that_no_message_matches_is_told_with_what_was_meant(synth, krait, declare, start, stop, end, meant):
    folder = synth(marks((0, 0, "taken 7"), (0, 9, "paid 7")))
    own = declare(f"[interval.order]\nstart = '{start} (?P<key>.*)'\nstop = '{stop} (?P<key>.*)'\n")
    done = subprocess.run([krait, "intervals", folder, "-f", own], capture_output=True, text=True, check=True)
    assert f"no event matches the {end} of 'order'; did you mean '{meant} (?P<key>.*)'?" in done.stderr


@pytest.mark.parametrize("condition, count", [("== <module>", 1), ("=> a*", 1), ("== => 20", 0), ("!= <module>", 1), ("[<]module>", 1), ("== 7", 0)])
def test_a_condition_may_be_a_text_that_looks_like_a_comparison(synth, krait, declare, condition, count):
    folder = synth(marks((0, 0, "at <module>"), (0, 9, "at => abc")))
    own = declare("[signal.at]\nmessage = 'at (?P<what>.*)'\nvalue = '$thread'\nwhere = { what = '%s' }\n" % condition)
    done = subprocess.run([krait, "intervals", folder, "-f", own], capture_output=True, text=True, check=True)
    assert ("no event matches 'at'" not in done.stderr) == bool(count)


@pytest.mark.parametrize(
    "command, status, why",
    [
        (["analyses", "syscals"], 1, "there is no analysis 'syscals'; did you mean 'syscalls'?"),
        (["intervals", "-f", "plain", "trace"], 1, "there is no analysis 'plain'; if you mean the file, name it ./plain\n"),
        (["analyses", "./none.toml"], 1, "./none.toml: No such file or directory"),
        (["analyses", "./"], 1, "./ is a folder"),
        (["analyses", "--json", "syscalls"], 2, "--json lists all"),
        (["intervals", "-f", "disk", "--only", "nothing", "trace"], 2, "--only: the files declare nothing that is called 'nothing'"),
        (["intervals", "-f", "./own.toml", "--by", "key", "trace"], 2, "--by key: the file declares no key\n"),
        (["intervals", "-f", "./own.toml", "-f", "./other.toml", "--by", "key", "trace"], 2, "--by key: the files declare no key\n"),
        (["intervals", "-f", "disk", "--csv", "trace"], 2, "choose with --only"),
        (["report", "-f", "disk", "trace"], 2, "-f declares what --within may name; use both"),
    ],
)
def test_wrong_usage_is_explained(krait, tmp_path, command, status, why):
    (tmp_path / "plain").touch()
    for name in "own", "other":
        (tmp_path / f"{name}.toml").write_text(f"[interval.{name}]\nstart = 'a'\nstop = 'b'\n")
    done = subprocess.run([krait, *command], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == status and why in done.stderr


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_built_in_analysis_is_printed_as_it_is_written(krait, name):
    source = Path(__file__).parents[3] / "src/analysis/built_in" / f"{name}.toml"
    printed = subprocess.run([krait, "analyses", name], capture_output=True, text=True, check=True).stdout
    assert printed == source.read_text() and max(map(len, printed.splitlines())) <= 122


def test_a_trace_without_the_events_is_told(synth, krait):
    done = subprocess.run([krait, "intervals", synth(marks((0, 0, "x"))), "-f", "cpus"], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-2:] == ["no event matches 'cpu'", "no event matches 'kHz'"]
    assert "\n\n" not in done.stdout + done.stderr and not done.stdout.endswith("\n\n")


# -- names that the trace does not have --

RUNS = """
[interval.run]
start = { event = "sched_switch", where = { next_tid = 7 } }
stop = { event = "sched_switch", where = { prev_tid = 7 } }
by = "nxt_comm"
key = "$cpu"

[state.who]
event = ["sched_swich", "sched_process_*"]
state = "{next_comm} on {$cpu}"

[signal.gone]
event = "app:order"
value = "n"

[signal.switched]
event = ["sched_switch", "sched_stat_runtime"]
value = "next_tid"
"""

TOLD = {
    "run": "own.toml:5: interval.run.by: there is no field 'nxt_comm' in its events; did you mean 'next_comm'?",
    "who": "own.toml:9: state.who.event: there is no event 'sched_swich' in the trace; did you mean 'sched_switch'?",
    "who's": "own.toml:9: state.who.event: there is no event 'sched_process_*' in the trace",
    "gone": "own.toml:13: signal.gone.event: there is no event 'app:order' in the trace",
}
ONE = [TOLD["run"]]
WITHIN = ["--within", "run:1"]


def switches(folder, **more):
    return kernel_made.write(folder, [switch(10, 0, 7, **more), switch(15, 7, 8, **more), switch(40, 8, 7, **more), switch(60, 7, 0, **more)])


def unmet(stderr, verb="intervals"):
    """The lines of what a trace does not have, without the file's folder."""
    told = ("there is no event", "there is no field", "krait does not search")
    lines = [line for line in stderr.splitlines() if any(words in line for words in told)]
    return [re.sub(r"[^ ]*/", "", line.removeprefix(f"krait {verb}: warning: ")) for line in lines]


def test_an_event_without_its_prefix_is_told_with_it(tmp_path, krait):
    probes = [event(us, f"usdt:myprov:{name}", **{"tid of context": 7}) for us, name in ((20, "begin"), (30, "end"))]
    trace = kernel_made.write(tmp_path / "t", [switch(10, 0, 7), *probes, switch(60, 7, 0)])
    (tmp_path / "own.toml").write_text("[interval.a]\nstart = { event = 'myprov:begin' }\nstop = { event = 'myprov:ned' }\n")
    done = subprocess.run([krait, "intervals", "--analysis", tmp_path / "own.toml", trace], capture_output=True, text=True)
    assert unmet(done.stderr) == [
        f"own.toml:{line}: interval.a.{end}.event: there is no event 'myprov:{typed}' in the trace; did you mean 'usdt:myprov:{meant}'?"
        for line, end, typed, meant in ((2, "start", "begin", "begin"), (3, "stop", "ned", "end"))
    ]
    filtered = subprocess.run([krait, "cat", "--filter", "name == myprov:begin", trace], capture_output=True, text=True)
    assert "no event of this trace is called 'myprov:begin'; did you mean 'usdt:myprov:begin'?" in filtered.stderr


@pytest.mark.parametrize(
    "words, told",
    [
        (["intervals"], list(TOLD.values())),
        (["intervals", "--json"], list(TOLD.values())),
        (["intervals", "--only", "run"], ONE),
        (["intervals", "--only", "switched"], []),
        (["view", "--svg", "out.svg"], list(TOLD.values())),
        (["view", "--html", "out.html"], list(TOLD.values())),
        (["export", "--to", "chrome", "-o", "out.json"], list(TOLD.values())),
        (["states", *WITHIN], ONE),
        (["cat", *WITHIN], ONE),
    ],
)
def test_a_name_that_the_trace_does_not_have_is_told_with_its_line(krait, declare, tmp_path, words, told):
    option = "--analysis" if words[0] == "cat" else "-f"
    done = subprocess.run([krait, words[0], switches(tmp_path / "t"), option, declare(RUNS), *words[1:]], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert unmet(done.stderr, words[0]) == told
    assert "no event matches 'who'" not in done.stderr


def test_what_no_lane_draws_is_not_told(krait, declare, tmp_path):
    own = declare(RUNS + '[lane.runs]\nshow = ["switched", "run"]\n')
    done = subprocess.run([krait, "view", switches(tmp_path / "t"), "-f", own, "--svg", tmp_path / "out.svg"], capture_output=True, text=True, check=True)
    assert unmet(done.stderr, "view") == ONE


def test_an_interval_that_another_lies_within_is_told(krait, declare, tmp_path):
    own = declare("[interval.outer]\nstart = { event = 'sched_swich' }\nstop = { event = 'sched_switch' }\n" + RUNS.replace("by =", "within = 'outer'\nby ="))
    done = subprocess.run([krait, "intervals", switches(tmp_path / "t"), "-f", own, "--only", "run"], capture_output=True, text=True, check=True)
    assert [line.split(": there is")[0] for line in unmet(done.stderr)] == ["own.toml:2: interval.outer.start.event", "own.toml:9: interval.run.by"]


def test_fields_may_be_of_contexts_in_others_and_groups(krait, declare, synth, tmp_path):
    """In the marks of a program, a field of what is JSON is known once it is read; nor is one of an event that is missing."""
    trace = switches(tmp_path / "t", **{"vpid of context": 3})
    text = "[signal.a]\nevent = '{}'\nvalue = '{}'\n"
    mark = r"[signal.a]\nmessage = '(?P<n>\d+) wait'\nvalue = '{}'\n".replace(r"\n", "\n")
    for folder, own, told in [
        (trace, text.format("sched_switch", "vpid"), ""),
        (trace, text.format("sched_*", "$cpu"), ""),
        (trace, text.format("sched_*", "vpdi"), "there is no field 'vpdi' in its events; did you mean 'vpid'?"),
        (trace, text.format("sched_*", "nothing"), "there is no field 'nothing' in its events"),
        (trace, text.format("nothing", "vpdi"), "there is no event 'nothing' in the trace"),
        (synth(marks((0, 0, "3 wait"))), mark.format("n"), ""),
        (synth(marks((0, 0, "3 wait")), "of"), mark.format("fields.n"), ""),
        (synth(marks((0, 0, "3 wait")), "of"), mark.format("txet"), "there is no field 'txet' in its events; did you mean 'text'?"),
        (synth(marks((0, 0, "3 wait", '{"size":2}')), "of"), mark.format("size"), ""),
        (synth(marks((0, 0, "3 wait", '{"size":2}')), "of"), mark.format("sise"), "there is no field 'sise' in its events; did you mean 'size'?"),
        (synth(marks((0, 0, "3 wait", '{"size":2}')), "of"), text.format("log:record", "size"), "there is no field 'size' in its events"),
        (synth(marks((0, 0, "3 wait")), "of"), text.format("python:call", "text"), "krait does not search events such as 'python:call': those of calls, and definitions; { call = \"f\" } and { return = \"f\" } take the calls of a function"),
        (synth(marks((0, 0, "3 wait")), "of"), text.format("task:run", "tsk"), "there is no field 'tsk' in its events; did you mean 'task'?"),
        (synth(marks((0, 0, "3 wait")), "of"), text.format("gil:*", "holder"), ""),
        (synth(marks((0, 0, "3 wait")), "of"), text.format("gil:wiat", "holder"), "there is no event 'gil:wiat' in the trace; did you mean 'gil:wait'?"),
        (trace, text.format("task:run", "text"), "there is no event 'task:run' in the trace"),
        (synth(marks((0, 0, "3 wait")), "of"), text.format("user:mrak", "text"), "there is no event 'user:mrak' in the trace; did you mean 'user:mark'?"),
        (synth(marks((0, 0, "3 wait")), "of"), text.format("log:record", "level"), ""),
    ]:
        done = subprocess.run([krait, "intervals", folder, "-f", declare(own)], capture_output=True, text=True, check=True)
        assert [line.split(": ", 2)[2] for line in unmet(done.stderr)] == [told] * bool(told), own


@pytest.mark.parametrize("field", ["size", "fields.size"])
def test_fields_of_marks_have_their_names(krait, declare, synth, field):
    """Of a field that the event has itself, that one is meant."""
    folder = synth(marks((0, 0, "order", '{"id":1,"size":2,"text":"own"}'), (0, 10, "order", '{"id":2,"size":3}'), (0, 20, "sent", '{"size":3}'), (0, 40, "sent", '{"size":2}')))
    given = ["--start", "^order$", "--stop", "^sent$", "--key"]
    listed = lambda *words: [(row["key"], row["duration_ns"]) for row in verb_json(krait, "intervals", folder, *words, "--list")["list"]]  # noqa: E731
    assert listed(*given, field) == [("2", 40000), ("3", 10000)]
    assert listed("-f", declare(f"[interval.a]\nstart = {{ message = '^order$', where = {{ '{field}' = 2 }} }}\nstop = {{ message = '^sent$', where = {{ '{field}' = '< 3' }} }}\nby = ['{field}', 'text']\n")) == [("2 order", 40000)]
    (signal,) = verb_json(krait, "intervals", folder, "--signal", "order|sent", "--value", field)["signals"]
    assert (signal["values"], signal["total"]) == (4, 10)
    assert listed(*given, "fields.id") == listed(*given, "id") == []


def test_a_group_of_the_pattern_may_be_meant(krait, declare, synth):
    own = declare("[interval.bake]\nstart = 'start (?P<oven>.*) (?P<cake>.*)'\nstop = 'stop'\nby = 'cak'\n")
    done = subprocess.run([krait, "intervals", synth(marks((0, 0, "start 1 plum"), (0, 5, "stop"))), "-f", own], capture_output=True, text=True)
    assert unmet(done.stderr) == ["own.toml:4: interval.bake.by: there is no field 'cak' in its events; did you mean 'cake'?"]


def test_an_event_without_its_provider_is_near(krait, declare, tmp_path):
    trace = kernel_made.write(tmp_path / "t", [event(0, "shop:order_is_taken", n=3)], domain="ust")
    own = declare("[signal.a]\nevent = 'order_is_taken'\nvalue = 'n'\n")
    done = subprocess.run([krait, "intervals", trace, "-f", own], capture_output=True, text=True, check=True)
    assert unmet(done.stderr) == ["own.toml:2: signal.a.event: there is no event 'order_is_taken' in the trace; did you mean 'shop:order_is_taken'?"]


def test_analyses_of_many_traces_are_quiet_about_what_one_lacks(krait, tmp_path):
    """Those of the user's folder tell what is near to a name of the trace; the built-in ones tell nothing."""
    (tmp_path / "krait" / "analyses").mkdir(parents=True)
    (tmp_path / "krait" / "analyses" / "mine.toml").write_text(RUNS)
    env = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path)}
    trace = switches(tmp_path / "t")
    built_in = [word for name in BUILT_IN for word in ("-f", name)]
    done = subprocess.run([krait, "intervals", trace, *built_in], env=env, capture_output=True, text=True, check=True)
    assert unmet(done.stderr) == [] and "no event matches 'request'" in done.stderr
    done = subprocess.run([krait, "intervals", trace, "-f", "mine"], env=env, capture_output=True, text=True, check=True)
    assert unmet(done.stderr) == [line.replace("own", "mine") for line in (TOLD["run"], TOLD["who"])]


def test_a_value_is_named_by_the_event_before_it(krait, synth, declare):
    folder = synth(marks((0, 0, "open a"), (0, 10, "got 5"), (1, 15, "open b"), (0, 20, "got 6"), (1, 30, "got 7"), (0, 40, "open a"), (0, 50, "got 8")))
    own = declare("[signal.bytes]\nmessage = 'got (\\d+)'\nafter = 'open (?P<file>\\w+)'\nby = 'file'\n")
    rows = verb_json(krait, "intervals", folder, "-f", own)["signals"]
    assert {row["key"]: (row["values"], row["total"]) for row in rows if row["values"]} == {"a": (2, 13), "b": (1, 7)}
    assert sum(row["no_key"] for row in rows) == 1  # 6 comes after no other
    done = subprocess.run([krait, "analyses", declare("[signal.x]\nmessage = '(1)'\nby = 'a'\n")], capture_output=True, text=True)
    assert done.returncode == 1 and "signal.x.by: 'after' and 'by' go together" in done.stderr


# -- functions that a program does not have, traces without calls --

MIXED = """
[interval.work]
call = "main.work"

[interval.other]
call = "nobody.knows"

[interval.near]
call = "wrk"
"""


@pytest.mark.parametrize("words", [["intervals"], ["export", "--to", "chrome", "-o", "out.json"], ["view", "--svg", "out.svg"], ["report", "--within", "work"]])
def test_a_rule_of_an_unknown_function_is_left_out(synth, krait, declare, tmp_path, words):
    folder = synth("process 7 python3\ncode 1 python main work app.py 1\nthread 7\n0us call 1\n10us return\n")
    done = subprocess.run([krait, words[0], folder, "-f", declare(MIXED), *words[1:]], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told = " ".join(done.stderr.split())
    assert "own.toml:6: 'other' is left out: no function 'nobody.knows' in the trace; `krait report" in told
    assert "own.toml:9: 'near' is left out: no function 'wrk' in the trace; did you mean 'work'?" in told and "looks for " not in told.replace("looks for names", "")
    if words == ["intervals"]:
        assert re.search(r"\b1\b.*work", done.stdout)


@pytest.mark.parametrize("to", ["chrome", "perfetto"])
def test_export_takes_a_trace_without_calls(krait, tmp_path, to):
    folder = made(tmp_path / "made")
    done = subprocess.run([krait, "export", folder, "-f", "syscalls", "--to", to, "-o", tmp_path / "out"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "out").read_bytes()
    assert b"syscall" in text and b"read" in text
    assert subprocess.run([krait, "export", folder, "--to", to, "-o", tmp_path / "other"], capture_output=True).returncode == 1


# -- calls as starts and stops --


def by_chance(seed):
    """A script for synth, and what happens in it by time: (us, thread, what). No two things happen at once."""
    chance, happened, open_calls, us = random.Random(seed), [], {1: [], 2: []}, 0
    for _ in range(400):
        us += chance.randint(1, 9)
        thread, what = chance.randint(1, 2), chance.randint(0, 3)
        stack = open_calls[thread]
        if what == 0 and stack:
            happened.append((us, thread, "return " + stack.pop()))
        elif what == 1 and len(stack) < 5:
            stack.append(chance.choice("fg"))
            happened.append((us, thread, "call " + stack[-1]))
        else:
            happened.append((us, thread, chance.choice(["mark go", "mark done"])))
    for thread, stack in open_calls.items():
        while stack:
            us += 1
            happened.append((us, thread, "return " + stack.pop()))
    lines = ["process 7 python3", "code 1 python app f app.py 1", "code 2 python app g app.py 9", "exit 0 0"]
    for thread in (1, 2):
        lines.append(f"thread {6 + thread} T{thread}")
        for at, of, what in happened:
            verb, name = what.split()
            if of == thread:
                lines.append(f"{at}us " + {"mark": f"mark {name}", "call": f"call {' fg'.find(name)}", "return": "return"}[verb])
    return "\n".join(lines) + "\n", happened


def pairs(happened, start, stop, pairing, is_keyed):
    """(begin, duration) in ns, sorted; without a key each thread has its own."""
    opened, found = {}, []
    for us, thread, what in happened:
        mine = opened.setdefault(0 if is_keyed else thread, [])
        if what == stop and mine:
            found.append((us - (at := mine.pop(0 if pairing == "order" else -1)), at))
        if what == start:
            if pairing == "latest":
                mine.clear()
            mine.append(us)
    return sorted((at * 1000, took * 1000) for took, at in found)


@pytest.mark.parametrize("start", ["call f", "return g", "mark go"])
def test_intervals_begin_and_end_at_calls_and_messages(krait, declare, synth, start):
    script, happened = by_chance(19)
    folder = synth(script)
    event = {"mark": "{{ message = '^{}$'{} }}", "call": "{{ call = '{}'{} }}", "return": "{{ return = '{}'{} }}"}
    text, wanted = "", {}
    for stop in ["call f", "call g", "return f", "mark done"]:
        for pairing in ["order", "nested", "latest"]:
            for key in ["", ", key = '$process'"]:
                name = f"{stop[0]}{stop[-1]}{pairing}{len(key)}"
                ends = [event[what.split()[0]].format(what.split()[1], key) for what in (start, stop)]
                text += f"[interval.{name}]\nstart = {ends[0]}\nstop = {ends[1]}\npairing = '{pairing}'\n"
                wanted[name] = pairs(happened, start, stop, pairing, bool(key))
    listed = verb_json(krait, "intervals", folder, "-f", declare(text), "--list")["list"]
    shifts = set()
    for name, of in wanted.items():
        rows = [row for row in listed if row["name"] == name]
        begins = sorted((row["begin_ns"], row["duration_ns"]) for row in rows)
        assert len(of) > 10 and begins, name
        shift = begins[0][0] - of[0][0]
        shifts.add(shift)
        assert [(at - shift, took) for at, took in begins] == of, name
    assert len(shifts) == 1


def test_an_interval_without_its_function_is_left_out_and_calls_are_named(krait, declare, synth):
    folder = synth(by_chance(20)[0])
    own = declare("[interval.a]\nstart = { call = 'ff' }\nstop = 'done'\n[interval.b]\nstart = { call = 're:^[fg]$' }\nstop = { return = 're:^[fg]$' }\npairing = 'nested'\nby = '$event'\n")
    done = subprocess.run([krait, "intervals", folder, "-f", own, "--json"], capture_output=True, text=True, check=True)
    assert "own.toml:2: 'a' is left out: no function 'ff' in the trace" in done.stderr
    calls = {name: verb_json(krait, "intervals", folder, "--call", name)["rows"][0] for name in "fg"}
    found = {row["key"]: row for row in verb_json(krait, "intervals", folder, "-f", own)["rows"] if row["name"] == "b"}
    assert set(found) == {"f", "g"}
    for name, row in found.items():
        assert {key: row[key] for key in ("intervals", "total_ns", "max_ns")} == {key: calls[name][key] for key in ("intervals", "total_ns", "max_ns")}


def test_an_interval_may_go_from_a_call_to_an_event_of_the_kernel_and_back(krait, declare, both):
    script = "process 4711 python3\ncode 1 python app f app.py 1\nexit 0 0\nthread 4711 T\n10us call 1\n30us return\n50us call 1\n70us return\n"
    folder = both(script, [switch(1, 0, 4711), switch(17, 4711, 0), switch(20, 0, 4711), switch(63, 4711, 0), switch(65, 0, 4711)])
    off, on = ("{{ event = 'sched_switch', where = {{ {}_tid = 4711 }}, key = '{}_tid' }}".format(of, of) for of in ("prev", "next"))
    own = declare(f"[interval.off]\nstart = {{ call = 'f', key = '$thread' }}\nstop = {off}\n[interval.on]\nstart = {on}\nstop = {{ return = 'f', key = '$thread' }}\npairing = 'latest'\n")
    rows = verb_json(krait, "intervals", folder, "-f", own, "--list")["list"]
    assert {name: [row["duration_ns"] for row in rows if row["name"] == name] for name in ("off", "on")} == {"off": [7000, 13000], "on": [10000, 5000]}


def test_lost_kernel_events_are_told_where_they_matter(krait, both, declare):  # noqa: F811
    """Not of work for executors, say."""
    calls = "process 7 python3\nthread 7 A\n10us submit 1\n12us mark go\n30us mark end\n40us result 1\nthread 8 B\n20us start 1\nexit 0 0\n"
    quiet = [begins(12, "read", fd=3), ends(15, "read", 9), switch(20, 7, 0)]
    marks_of_kernel = [event(5, "ftrace_print", buf="go", **{"tid of context": 7})]
    work = ["--start", "^work:submit", "--stop", "^work:start", "--key", "id"]
    switches = "[interval.off]\nstart = { event = 'sched_switch', key = 'prev_tid' }\nstop = { event = 'sched_switch', key = 'next_tid' }\n"
    tasks = "[interval.step]\nstart = { event = 'user:*', key = '$thread' }\nstop = { event = 'work:*', key = '$thread' }\n"
    for events, options, told in (
        (quiet, work, False),
        (quiet, ["--start", "go", "--stop", "end"], False),
        (quiet, ["-f", tasks], False),
        (quiet, ["-f", switches], True),
        (quiet, ["--span", "read"], True),
        (quiet, ["--start", "go", "--stop", "end", "-f", switches], True),
        ([*quiet[:-1], *marks_of_kernel, quiet[-1]], work, True),
    ):
        folder = both(calls, sorted(events, key=lambda e: e[0]), lost=7)
        options = [declare(option) if option in (switches, tasks) else option for option in options]
        done = subprocess.run([krait, "intervals", folder, *options], capture_output=True, text=True, check=True)
        assert ("lost: 7 events of the kernel's: intervals and values that they told are missing; LTTng dropped them; " in done.stderr) == told, (options, done.stderr)
