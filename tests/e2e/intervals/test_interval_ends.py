# SPDX-License-Identifier: Apache-2.0
"""Intervals of a file that begin or end at events of tasks and the GIL, at spans, and at calls of coroutines."""

import json
import random
import subprocess

import kernel_made
import pytest

from conftest import verb_json
from intervals_made import declare  # noqa: F401  (declare: a fixture)
from kernel_made import EPOCH, event


def by_chance(seed):
    """A script for synth: tasks of two threads, which wait and are woken, beside waits for the GIL."""
    chance = random.Random(seed)
    lines = ["process 7 python3", "code 1 python app work app.py 1", *(f"task {n} 1 t{n}" for n in range(1, 7)), "exit 0 0"]
    for thread, tasks in ((7, [1, 2, 3]), (8, [4, 5, 6])):
        us, runs, waits = thread, 0, False
        lines.append(f"thread {thread} T{thread}")
        for _ in range(200):
            us += 2 * chance.randint(1, 9)  # no two things happen at once
            what = chance.randint(0, 3)
            if what == 0:
                said = "giltake" if waits else f"gilwait {15 - thread}"
                waits = not waits
            elif what == 1:
                said = f"wake {64 + chance.choice(tasks)}"
            elif runs:
                said, runs = f"leave {runs} 1 {64 + runs} 1", 0
            else:
                runs = chance.choice(tasks)
                said = f"run {runs}"
            lines.append(f"{us}us {said}")
    return "\n".join(lines) + "\n"


def printed(krait, folder):
    """(ns, thread, name, payload) of what krait cat prints."""
    done = subprocess.run([krait, "cat", "--json", folder], capture_output=True, text=True, check=True)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return [(int(row["time_ns"]) - EPOCH, row["packet_context"]["vtid"], row["event"], row["payload"]) for row in rows]


def latest(events, start, stop):
    """Sorted (begin, duration): start and stop give the key of an event, or None."""
    opened, found = {}, []
    for at, thread, name, payload in events:
        key = stop(thread, name, payload)
        if key is not None and key in opened:
            begin = opened.pop(key)
            found.append((begin, at - begin))
        key = start(thread, name, payload)
        if key is not None:
            opened[key] = at
    return sorted(found)


TASKS = """
[interval.waits]
start = { event = "task:leave", key = "$task" }
stop = { event = "task:run", key = "$task" }
pairing = "latest"

[interval.woken]
start = { event = "task:leave", where = { at = "*work" }, key = "on" }
stop = { event = "task:wake", key = "on" }
pairing = "latest"

[interval.gil]
start = { event = "gil:wait" }
stop = { event = "gil:take" }
pairing = "latest"

[interval.holder]
start = { event = "gil:w*", where = { holder = 8 }, key = "$process" }
stop = { event = "task:run", where = { task = [4, 5] }, key = "$process" }
pairing = "latest"

[state.runs]
event = "task:*"
key = "$thread"
state = "{$event}"
"""


def test_events_of_tasks_and_of_the_gil_begin_and_end_intervals(krait, declare, synth):
    folder = synth(by_chance(7))
    events = printed(krait, folder)
    of = lambda wanted, key: lambda thread, name, payload: key(thread, payload) if name == wanted else None  # noqa: E731
    task, on, thread = lambda t, p: p["task"], lambda t, p: p["on"], lambda t, p: t
    wanted = {
        "waits": latest(events, of("task:leave", task), of("task:run", task)),
        "woken": latest(events, of("task:leave", on), of("task:wake", on)),
        "gil": latest(events, of("gil:wait", thread), of("gil:take", thread)),
        "holder": latest(
            events,
            of("gil:wait", lambda t, p: 0 if p["holder"] == 8 else None),
            of("task:run", lambda t, p: 0 if p["task"] in (4, 5) else None),
        ),
    }
    found = verb_json(krait, "intervals", folder, "-f", declare(TASKS), "--list")
    for name, rows in wanted.items():
        assert len(rows) > 5 and sorted((row["begin_ns"], row["duration_ns"]) for row in found["list"] if row["name"] == name) == rows, name
    keys = {row["key"] for row in found["list"] if row["name"] == "waits"}
    assert keys == {f"t{n} work" for n in range(1, 7)}
    summed = verb_json(krait, "intervals", folder, "-f", declare(TASKS))["rows"]
    counts = [name for _, _, name, _ in events if name.startswith("task:") and name != "task:define"]
    assert {row["key"]: row["starts"] for row in summed if row["name"] == "runs"} == {name: counts.count(name) for name in set(counts)}


def test_a_message_alone_is_none_of_tasks(krait, declare, synth):
    """Nor of a thread whose events are of tasks: marks of their text are."""
    folder = synth("process 7 python3\ncode 1 python app work app.py 1\ntask 1 1 t1\nexit 0 0\nthread 7\n1us run 1\n2us mark task:run\n5us leave 1 3\n9us mark task:leave\n")
    own = "[interval.a]\nstart = 'task:run'\nstop = 'task:leave'\n[interval.b]\nstart = { event = 'task:run' }\nstop = { event = 'task:leave' }\n"
    rows = verb_json(krait, "intervals", folder, "-f", declare(own), "--list")["list"]
    assert [(row["name"], row["duration_ns"]) for row in rows] == [("b", 4000), ("a", 7000)]


def test_spans_begin_and_end_intervals(krait, declare, synth):
    folder = synth("process 7 python3\ncode 1 name - Request - 0\ncode 2 name - Other - 0\nexit 0 0\nthread 7\n1us spanbegin 1 2 0\n2us spanbegin 2 1 0\n4us mark sent\n5us spanend 1\n9us spanend 2\n")
    own = "[interval.until-sent]\nstart = { event = 'span:begin', where = { name = 'Request' } }\nstop = 'sent'\n[interval.since]\nstart = { message = 'sent' }\nstop = { event = 'span:end' }\n"
    rows = verb_json(krait, "intervals", folder, "-f", declare(own), "--list")["list"]
    assert [(row["name"], row["duration_ns"]) for row in rows] == [("until-sent", 2000), ("since", 1000)]


# -- calls --

STEPS = """
process 7 python3
code 1 python app work app.py 1
code 2 python app gen app.py 9
suspends 1 0
suspends 2 1
task 1 1 a
task 2 1 b
exit 0 0
thread 7
1us call 1
1500 run 1
2us mark go
3us leave 1 1 64
3us yield
4us call 1
4500 run 2
5us leave 2 1 65
5us yield
6us resume 1
6us run 1
7us leave 1 3
7us return
8us resume 1
8us run 2
10us leave 2 3
10us return
11us call 2
12us yield
13us resume 2
15us return
16us mark go
"""


def test_coroutines_and_generators_begin_once_and_return_once(krait, declare, synth):
    own = """
[interval.work]
start = { call = "work", key = "$task" }
stop = { return = "work", key = "$task" }
by = "$task"
[interval.gen]
start = { call = "gen" }
stop = { return = "gen" }
[interval.go]
start = 'go'
stop = { return = "re:^(work|gen)$" }
[interval.first]
start = { call = "work", key = "$task" }
stop = { event = "task:leave", key = "$task" }
"""
    rows = verb_json(krait, "intervals", synth(STEPS), "-f", declare(own), "--list")["list"]
    found = {name: [(row["key"], row["duration_ns"]) for row in rows if row["name"] == name] for name in ("work", "gen", "go", "first")}
    assert found == {"work": [("a work", 6000), ("b work", 6000)], "gen": [(None, 4000)], "go": [(None, 5000)], "first": [("a work", 2000), ("b work", 1000)]}


def test_a_call_and_an_event_of_lttng_are_ends_of_one_interval(krait, declare, synth):
    folder = synth("process 7 python3\ncode 1 python app f app.py 1\nexit 0 0\nthread 7\n10us call 1\n30us return\n")
    kernel_made.write(folder / "ust", [event(EPOCH // 1000 + us, "app:sent", n=7) for us in (17, 37)], domain="ust")
    own = declare("[interval.a]\nstart = { call = 'f', key = '$thread' }\nstop = { event = 'app:sent', key = 'n' }\n[interval.b]\nstart = { return = 'f', key = '$thread' }\nstop = { event = 'app:sent', key = 'n' }\n")
    rows = verb_json(krait, "intervals", folder, "-f", own, "--list")["list"]
    assert sorted((row["name"], row["duration_ns"]) for row in rows) == [("a", 7000), ("b", 7000)]


@pytest.mark.parametrize("first, second, line", [("ff", "f", 2), ("f", "gg", 3)])
def test_the_line_of_the_function_that_is_missing_is_told(krait, declare, synth, first, second, line):
    folder = synth("process 7 python3\ncode 1 python app f app.py 1\nexit 0 0\nthread 7\n10us call 1\n30us return\n")
    own = declare(f"[interval.a]\nstart = {{ call = '{first}' }}\nstop = {{ return = '{second}' }}\n")
    done = subprocess.run([krait, "intervals", folder, "-f", own, "--json"], capture_output=True, text=True, check=True)
    assert f"own.toml:{line}: 'a' is left out: no function '{first if line == 2 else second}' in the trace" in done.stderr


def test_calls_at_both_ends_need_no_messages_and_are_lanes(krait, declare, synth, tmp_path):
    folder = synth("process 7 python3\ncode 1 python app f app.py 1\nexit 0 0\nthread 7\n10us call 1\n20us mark go\n30us return\n")
    own = declare("[interval.whole-f]\nstart = { call = 'f' }\nstop = { return = 'f' }\n")
    found = verb_json(krait, "intervals", folder, "-f", own)
    assert (found["messages"], found["rows"][0]["total_ns"]) == (0, 20000)
    subprocess.run([krait, "view", folder, "-f", own, "--svg", tmp_path / "out.svg"], check=True, capture_output=True)
    assert "whole-f" in (tmp_path / "out.svg").read_text()


# -- arguments of calls --


def served(seed):
    """A script for synth, and the same as (us, thread, what, rid, result): calls of serve with recorded arguments, nested, beside calls
    of another function and marks."""
    chance = random.Random(seed)
    lines = ["process 7 python3", "code 1 python app serve app.py 1", "code 2 python app other app.py 9", "exit 0 0"]
    events = []
    for thread in (7, 8):
        us, opened = thread, []
        lines.append(f"thread {thread} T{thread}")
        for _ in range(300):
            us += 2 * chance.randint(1, 9)
            what, rid = chance.choice(["serve", "other", "mark", "end", "end"]), chance.randint(0, 9)
            if what == "mark":
                lines.append(f'{us}us mark sent {{"rid":{rid}}}')
                events.append((us, thread, "sent", rid, None))
            elif what != "end" and len(opened) < 4:
                told = what == "serve" and chance.random() < 0.9  # of some, the arguments were lost
                lines += [f"{us}us call {1 if what == 'serve' else 2}"] + ([f'{us * 1000 + 300} args 1 {{"rid":{rid},"who":{{"name":"n{rid % 3}"}}}}'] if told else [])
                opened.append((what, rid if told else None))
                if what == "serve":
                    events.append((us, thread, "call", opened[-1][1], None))
            elif what == "end" and opened:
                what, rid = opened.pop()
                lines += [f'{us * 1000 - 300} returned 1 {{"return":{(rid or 0) % 4}}}'] if rid is not None else []
                lines.append(f"{us}us return")
                if what == "serve":
                    events.append((us, thread, "return", rid, None if rid is None else rid % 4))
    return "\n".join(lines) + "\n", sorted(events)


def in_order(events, start, stop):
    """Sorted (key, begin, duration) of pairs, each stop with the oldest start of its key."""
    opened, found = {}, []
    for us, _, what, rid, result in events:
        for wanted, key in (stop, start):
            value = rid if key == "rid" else result
            if what != wanted or value is None:
                continue
            if (wanted, key) == start:
                opened.setdefault(value, []).append(us)
            elif opened.get(value):
                begin = opened[value].pop(0)
                found.append((str(value), begin * 1000, (us - begin) * 1000))
    return sorted(found)


def test_arguments_are_keys_of_ends(krait, declare, synth):
    script, events = served(11)
    folder = synth(script)
    ends = {"calls": ("call", "rid"), "returns": ("return", "rid"), "results": ("return", "return"), "sent": ("sent", "rid")}
    toml = {"calls": '{ call = "serve", key = "rid" }', "returns": '{ return = "serve", key = "rid" }', "results": '{ return = "app.serve", key = "return" }', "sent": '{ message = "sent", key = "rid" }'}
    pairs = [(a, b) for a in ends for b in ends if a != b]
    text = "".join(f"[interval.{a}-{b}]\nstart = {toml[a]}\nstop = {toml[b]}\n" for a, b in pairs)
    text += '[interval.rows]\nstart = { call = "s*" }\nstop = { return = "re:serv" }\nkey = ["rid", "$thread"]\nby = "who.name"\n'
    text += '[interval.whole]\ncall = "s*"\nkey = "rid"\n'
    run = subprocess.run([krait, "intervals", folder, "-f", declare(text), "--list", "--json"], capture_output=True, text=True, check=True)
    rows = json.loads(run.stdout)["list"]
    assert run.stderr == ""
    for a, b in pairs:
        wanted = in_order(events, ends[a], ends[b])
        assert len(wanted) > 20 and sorted((row["key"], row["begin_ns"], row["duration_ns"]) for row in rows if row["name"] == f"{a}-{b}") == wanted, (a, b)
    by_thread = [wanted for thread in (7, 8) for wanted in in_order([event for event in events if event[1] == thread], ("call", "rid"), ("return", "rid"))]
    assert sorted((row["key"], row["begin_ns"], row["duration_ns"]) for row in rows if row["name"] == "rows") == sorted((f"n{int(rid) % 3}", *at) for rid, *at in by_thread)
    cli = verb_json(krait, "intervals", folder, "--call", "s*", "--key", "rid", "--list")["list"]
    own = [[(row["key"], row["begin_ns"], row["duration_ns"]) for row in found if row["name"] in ("whole", "app.serve")] for found in (rows, cli)]
    assert len(own[0]) > 20 and sorted(own[0]) == sorted(own[1])
    assert {key for key, *_ in own[0]} == {str(rid) for rid in range(10)}


def test_calls_are_ends_on_the_command_line(krait, declare, synth):
    """As in a file, in the order of the options: several kinds of start and of stop beside each other."""
    folder = synth(served(12)[0])
    words = {"": "sent", "-call": "serve", "-return": "serve"}
    toml = {"": '{ message = "sent" }', "-call": '{ call = "serve" }', "-return": '{ return = "serve" }'}
    pairs = [(f"p{i}", a, b) for i, (a, b) in enumerate((a, b) for a in words for b in words)]
    own = declare("".join(f"[interval.{name}]\nstart = {toml[a]}\nstop = {toml[b]}\nkey = 'rid'\nby = 'rid'\n" for name, a, b in pairs))
    options = [word for name, a, b in pairs for word in ("--name", name, f"--start{a}", words[a], f"--stop{b}", words[b])]
    by_file, by_options = (verb_json(krait, "intervals", folder, *how, "--list")["list"] for how in (["-f", own], [*options, "--key", "rid"]))
    assert len(by_file) > 200 and {row["name"] for row in by_file} == {name for name, _, _ in pairs}
    assert by_file == by_options
    rows = verb_json(krait, "intervals", folder, "--start-call", "serve", "--stop-return", "serve", "--by", "key", "--key", "rid")["rows"]
    assert {row["name"] for row in rows if row["intervals"]} == {"serve .. serve"} and {row["key"] for row in rows} >= {str(rid) for rid in range(10)}


@pytest.mark.parametrize("verb", [["report", "--within", "a.3"], ["info"], ["view", "--svg", "-"], ["export", "--to", "perfetto", "-o", "out"]])
def test_every_verb_knows_arguments_and_what_marks_have(krait, declare, synth, tmp_path, verb):
    own = declare("[interval.a]\nstart = { call = 'serve' }\nstop = { message = 'sent' }\nkey = 'rid'\nby = 'rid'\n")
    done = subprocess.run([krait, verb[0], synth(served(11)[0]), "-f", own, *verb[1:]], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert "own.toml" not in done.stderr


def test_conditions_choose_calls_by_what_was_recorded_of_them(krait, declare, synth):
    script, events = served(11)
    folder = synth(script)
    text = """
[interval.some]
start = { call = "serve", where = { rid = ["> 3"] } }
stop = { return = "serve", where = { "who.name" = ["n0", "n1"], "$event" = "serve" } }
key = "rid"

[interval.none]
start = { call = "serve", where = { rid = 77 } }
stop = "sent"

[interval.here]
start = { call = "other", where = { "$thread" = 8 } }
stop = { return = "other" }
key = "$thread"
by = "$thread"
"""
    rows = verb_json(krait, "intervals", folder, "-f", declare(text), "--list")["list"]
    some = [event for event in events if event[3] is not None and ((event[2] == "call" and event[3] > 3) or (event[2] == "return" and event[3] % 3 < 2))]
    wanted = in_order(some, ("call", "rid"), ("return", "rid"))
    assert len(wanted) > 20 and sorted((row["key"], row["begin_ns"], row["duration_ns"]) for row in rows if row["name"] == "some") == wanted
    assert {(row["name"], row["key"]) for row in rows if row["name"] != "some"} == {("here", "8")}
    own = declare("[interval.a]\nstart = { call = 'serve', where = { rd = 1 } }\nstop = 'sent'\n")
    done = subprocess.run([krait, "intervals", folder, "-f", own], capture_output=True, text=True, check=True)
    assert "own.toml:2: interval.a.start.where.rd: there is no argument 'rd' in its calls; did you mean 'rid'?\n" in done.stderr


@pytest.mark.parametrize(
    "options, why",
    [
        (["--start-call", "serv", "--stop", "sent"], "--start-call: no function 'serv' in the trace; did you mean 'serve'?\n"),
        (["--start", "sent", "--stop-return", "oter"], "--stop-return: no function 'oter' in the trace; did you mean 'other'?\n"),
        (["--start-call", "serve", "--stop-return", "oter"], "--stop-return: no function 'oter' in the trace; did you mean 'other'?\n"),
        (["--start-call", "serve", "--stop-return", "serve", "--key", "rd"], "--start-call 'serve': there is no argument 'rd' in its calls; did you mean 'rid'?\n--stop-return 'serve': there is no argument 'rd' in its calls; did you mean 'rid'?\n"),
        (["--start", "sent", "--stop-call", "other", "--key", "rid"], "--stop-call 'other': no call of it has recorded arguments, and so no 'rid'; krait record --args records them\n"),
        (["--start-return", "serve", "--stop", "sent (?P<key>.)"], "--start-return 'serve': it has no group 'key', as --stop has; krait ignores that key, and pairs events as without a key\nnone of "),
        (["--start-call", "serve", "--stop", "sent", "--until", "1ns"], "--start-call 'serve': no call of it begins in that time\n"),
        (["--start", "sent", "--stop-return", "serve", "--from", "1s"], "none of 0 messages matches --start 'sent' in that time; "),
    ],
)
def test_what_ends_of_the_command_line_lack_is_told(krait, synth, options, why):
    done = subprocess.run([krait, "intervals", synth(served(11)[0]), *options, "--json"], capture_output=True, text=True, check=True)
    assert done.stderr.startswith(why) and done.stderr.count("\n") == max(why.count("\n"), 1) + why.endswith("none of ")


@pytest.mark.parametrize(
    "options, why",
    [
        (["--start-call", "f"], "--start-call 'f' lacks the end of the interval: add --stop REGEX, --stop-call FUNCTION or --stop-return FUNCTION. To take whole calls: --call 'f'\n"),
        (["--start", "a", "--stop-call", "f", "--start-return", "g"], "--start-return 'g' lacks the end of the interval: add --stop REGEX, "),
        (["--start", "a", "--stop-call", "f", "--stop-return", "g"], "--stop-return 'g' lacks the begin of the interval: add --start REGEX, --start-call FUNCTION or"),
        (["--start-call", "re:(", "--stop", "a"], "--start-call: '(' is no regular expression"),
        (["--start", "a", "--stop-call", "f", "--key", "1"], "--key 1: 'a' and 'f' do not both have a group 1"),
    ],
)
def test_wrong_ends_are_explained(krait, synth, options, why):
    done = subprocess.run([krait, "intervals", synth(STEPS), *options], capture_output=True, text=True)
    assert done.returncode == 2 and why in done.stderr


@pytest.mark.parametrize(
    "ends, why",
    [
        ("start = { call = 'serve' }\nstop = { return = 'serve' }\nkey = 'rd'\n", "own.toml:4: interval.a.key: there is no argument 'rd' in its calls; did you mean 'rid'?\n"),
        ("start = { call = 'serve', key = 'rid' }\nstop = { return = 'serve', key = 'retrun' }\n", "own.toml:3: interval.a.stop.key: there is no argument 'retrun' in its calls; did you mean 'return'?\n"),
        ("start = { call = 'other', key = 'rid' }\nstop = { return = 'serve', key = 'rid' }\n", "own.toml:2: interval.a.start.key: no call of it has recorded arguments, and so no 'rid'; krait record --args records them\n"),
        ("call = 'serve'\nkey = 'rd'\n", "own.toml:3: interval.a.key: there is no argument 'rd' in its calls; did you mean 'rid'?\n"),
        ("call = 'other'\nkey = 'rid'\n", "own.toml:3: interval.a.key: no call of it has recorded arguments, and so a key; krait record --args records them\n"),
    ],
)
def test_an_argument_that_calls_do_not_have_is_told(krait, declare, synth, ends, why):
    own = declare("[interval.a]\n" + ends)
    done = subprocess.run([krait, "intervals", synth(served(11)[0]), "-f", own, "--json"], capture_output=True, text=True, check=True)
    assert done.stderr.endswith(why) and done.stderr.count("\n") == 1


def test_calls_that_a_range_cuts_off_have_keys_of_their_own(krait, declare, synth):
    """They begin in one nanosecond then, which does not tell them apart."""
    calls = "".join(f'{n}us call 1\n{n}300 args 1 {{"n":{n}}}\n' for n in (1, 2, 3, 4))
    folder = synth(f"process 7 python3\ncode 1 python app f app.py 1\nexit 0 0\nthread 7\n{calls}20us return\n30us return\n40us return\n50us return\n")
    own = declare("[interval.whole]\ncall = 'f'\nkey = 'n'\n[interval.ends]\nstart = { call = 'f' }\nstop = { return = 'f' }\nkey = 'n'\n")
    cut = verb_json(krait, "intervals", folder, "-f", own, "--from", "11us", "--until", "34us")["rows"]  # times count from 1us
    whole = {("1", 0), ("2", 0), ("3", 1), ("4", 1)}
    assert {(row["key"], row["stops"], row["no_start"]) for row in cut if row["name"] == "whole"} == {(*of, 1) for of in whole}
    assert [(row["stops"], row["no_start"], row["no_key"]) for row in cut if row["name"] == "ends"] == [(2, 2, 0)]


ARGUED = """
import asyncio, logging
log = logging.getLogger("shop")
log.setLevel("INFO")

def ask(rid):
    log.info("asked %d", rid)
    return rid % 2

async def serve(rid):
    await asyncio.sleep(0.001 * (4 - rid))
    ask(rid)
    return f"done {rid}"

async def main():
    await asyncio.gather(*(serve(rid) for rid in range(4)))

asyncio.run(main())
"""


@pytest.mark.few_pythons
def test_recorded_arguments_are_keys_of_ends(krait, declare, record, python):
    options = ["--log", "shop", "--args", "serve(rid) -> return", "--args", "ask(rid) -> return"]
    run = record.text(python, ARGUED, options=options).check(ended=False)
    own = declare("""
[interval.until-asked]
start = { call = "serve", key = "rid" }
stop = { message = 'asked (\\d+)', key = "1" }
by = "rid"
[interval.since-asked]
start = { message = 'asked (\\d+)', key = "1" }
stop = { return = "serve", key = "rid" }
[interval.result]
start = { call = "ask", key = "return" }
stop = { return = "ask", key = "return" }
""")
    rows = verb_json(krait, "intervals", run.path, "-f", own, "--list")["list"]
    of = lambda name: sorted(row["key"] for row in rows if row["name"] == name)  # noqa: E731
    assert of("until-asked") == of("since-asked") == ["0", "1", "2", "3"] and of("result") == ["0", "0", "1", "1"]
