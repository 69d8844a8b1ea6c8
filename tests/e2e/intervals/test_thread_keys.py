# SPDX-License-Identifier: Apache-2.0
"""$thread and $process as keys: one name for what happened in a thread, whatever recorded it; vtid and vpid as in LTTng's contexts."""

import subprocess

import kernel_made
import pytest

from conftest import verb_json
from intervals_made import declare, marks  # noqa: F401  (declare: a fixture)
from kernel_made import event, switch
from kernel_recorded import kernel, tracefs  # noqa: F401  (kernel: a fixture; tracefs is asked for by name)
from providers_made import provider, states  # noqa: F401  (states: a fixture)

ORDERS = """
import logging, threading, time
log = logging.getLogger("app")
log.setLevel("INFO")
def work(n):
    for i in range(5):
        log.info("order %d", i)
        time.sleep(0.001)
threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
[t.start() for t in threads]
[t.join() for t in threads]
"""


def paired(events, start_key, stop, stop_key):
    """What an analysis has to find: {key: [duration in ns]}, a stop ends the newest start of its key."""
    open_, found = {}, {}
    for e in sorted(events, key=lambda e: int(e["time_ns"])):
        if e["event"] == "log:record" and e["payload"]["message"].startswith("order"):
            open_[start_key(e)] = int(e["time_ns"])
        elif e["event"] == stop and (key := stop_key(e)) in open_:
            found.setdefault(str(key), []).append(int(e["time_ns"]) - open_.pop(key))
    return found


def listed(krait, trace, file):
    found = {}
    for row in verb_json(krait, "intervals", trace, "-f", file, "--list")["list"]:
        found.setdefault(row["key"], []).append(row["duration_ns"])
    return found


def assert_same(found, expected):
    """krait cat prints times in babeltrace2's rounding."""
    assert {key: len(of) for key, of in found.items()} == {key: len(of) for key, of in expected.items()}
    assert all(abs(a - b) <= 2 for key, of in expected.items() for a, b in zip(sorted(found[key]), sorted(of)))


@pytest.mark.usefixtures("tracefs", "alone")
def test_a_latency_goes_from_a_log_record_to_the_kernels_event_of_the_same_thread(kernel, krait, events, declare):  # noqa: F811
    run = kernel(ORDERS, "--log", "app", groups="sched")
    all_of = events(run.path)
    thread = lambda e: e["packet_context"]["vtid"]  # noqa: E731
    tids = {thread(e) for e in all_of if e["event"] == "log:record"}
    assert len(tids) == 3
    process = lambda e: run.main.pid if e["common_context"]["tid"] in tids | {run.main.pid} else None  # noqa: E731
    own = lambda e: e["common_context"]["tid"]  # noqa: E731
    for start, stop, stop_key, expected in [
        ("$thread", "sched_switch", "prev_tid", paired(all_of, thread, "sched_switch", lambda e: e["payload"]["prev_tid"])),
        ("vtid", "sched_switch", "$thread", paired(all_of, thread, "sched_switch", own)),
        ("$thread", "sched_waking", "tid", paired(all_of, thread, "sched_waking", lambda e: e["payload"]["tid"])),
        ("$process", "sched_switch", "$process", paired(all_of, lambda e: e["vpid"], "sched_switch", process)),
        ("vpid", "sched_switch", "$process", paired(all_of, lambda e: e["vpid"], "sched_switch", process)),
    ]:
        file = declare(f"[interval.a]\nstart = {{ message = '^order', key = '{start}' }}\nstop = {{ event = '{stop}', key = '{stop_key}' }}\npairing = 'latest'\n")
        assert sum(map(len, expected.values())) >= 5 and set(expected) <= {str(n) for n in tids | {run.main.pid}}
        assert_same(listed(krait, run.path, file), expected)


TOLD = [(0, 10, "Start"), (1, 20, "Start"), (0, 25, "half"), (0, 30, "Stop"), (1, 50, "Stop")]


@pytest.mark.parametrize("key, keys", [("$thread", ["4711", "4712"]), ("vtid", ["4711", "4712"]), ("$process", ["4711"]), ("vpid", ["4711"])])
def test_marks_have_their_thread_and_process_as_keys(synth, krait, declare, key, keys):  # noqa: F811
    folder = synth(marks(*TOLD))
    for words in (
        ["--start", "Start", "--stop", "Stop", "--key", key, "--by", "key"],
        ["-f", declare(f"[interval.a]\nstart = 'Start'\nstop = 'Stop'\nkey = '{key}'\nby = '{key}'\n")],
    ):
        done = subprocess.run([krait, "intervals", folder, *words, "--json"], capture_output=True, text=True, check=True)
        assert not done.stderr
        rows = verb_json(krait, "intervals", folder, *words)["rows"]
        assert sorted((row["key"], row["intervals"], row["no_key"]) for row in rows) == [(k, 2 // len(keys), 0) for k in keys]
    lanes = verb_json(krait, "intervals", folder, "-f", declare(f"[state.s]\nmessage = '(Start|half)'\nkey = '{key}'\n[state.t]\nmessage = '(St.*)'\nkey = '{key}'\n"), "--list")["list"]
    assert len([row for row in lanes if row["name"] == "t"]) == (2 if len(keys) == 2 else 3)
    where = verb_json(krait, "intervals", folder, "-f", declare(f"[interval.a]\nstart = {{ message = 'Start', where = {{ '{key}' = 4711 }} }}\nstop = 'Stop'\n"))["rows"]
    assert where[0]["starts"] == (1 if len(keys) == 2 else 2)


CALLS = "process 7 python3\ncode 1 python app work app.py 1\ncode 2 name - serve - 0\n" + "".join(
    f"thread {tid} T{tid}\n{us}us call 1\n{us + 1}us spanbegin {tid} 2 0 {{}}\n{us + 4}us spanend {tid} {{}}\n{us + 5}us return\n" for tid, us in ((7, 0), (8, 20))
)


def test_calls_and_spans_have_their_thread_as_a_key(synth, krait, declare):  # noqa: F811
    folder = synth(CALLS)
    for words, ns in ((["--call", "*work"], 5000), (["--span", "serve"], 3000)):
        rows = verb_json(krait, "intervals", folder, *words, "--key", "$thread", "--by", "key")["rows"]
        assert sorted((row["key"], row["total_ns"]) for row in rows) == [("7", ns), ("8", ns)]
    text = "[interval.a]\ncall = '*work'\nkey = '$process'\n[interval.b]\nspan = 'serve'\nkey = 'vtid'\n"
    rows = verb_json(krait, "intervals", folder, "-f", declare(text))["rows"]
    assert sorted((row["name"], row["key"], row["intervals"]) for row in rows) == [("a", "7", 2), ("b", "7", 1), ("b", "8", 1)]
    spans = verb_json(krait, "report", folder, "--by", "span", "--key", "$thread")["spans"]
    assert sorted((row["key"], row["spans"], row["total_ns"]) for row in spans) == [("7", 1, 3000), ("8", 1, 3000)]
    done = subprocess.run([krait, "intervals", folder, "--call", "*work", "--key", "$cpu"], capture_output=True, text=True, check=True)
    assert "there is no argument '$cpu' in its calls\n" in done.stderr
    done = subprocess.run([krait, "intervals", folder, "--span", "serve", "--by", "thread"], capture_output=True, text=True, check=True)
    assert "--by: there is no field 'thread' in its spans; did you mean '$thread'?\n" in done.stderr


def test_a_name_that_is_none_has_a_suggestion(synth, krait, declare):  # noqa: F811
    folder = synth(marks(*TOLD))
    done = subprocess.run([krait, "intervals", folder, "--start", "Start", "--stop", "Stop", "--key", "$proces"], capture_output=True, text=True, check=True)
    assert "there is no field '$proces' in its events; did you mean '$process'?" in done.stderr
    done = subprocess.run([krait, "intervals", folder, "-f", declare("[interval.a]\ncall = 'x'\nkey = '$thred'\n")], capture_output=True, text=True)
    assert done.returncode == 1 and "own.toml:3: interval.a.key: there is no part '$thred'; did you mean '$thread'?" in done.stderr


def of_lttng(us, name, vtid, vpid=70, **fields):
    return event(us, name, **fields, **{"vtid of context": vtid, "vpid of context": vpid})


@pytest.fixture
def lttngs(tmp_path):
    """A program's trace with the contexts vtid and vpid, and the kernel's, which has none of them."""
    program = [of_lttng(10, "app:begin", 71, msg="go"), of_lttng(20, "app:begin", 72, msg="go")]
    switches = [switch(0, 0, 71), switch(0, 0, 72, cpu=1), switch(15, 71, 0), switch(26, 72, 0, cpu=1)]
    return [kernel_made.write(tmp_path / "ust", program, domain="ust"), kernel_made.write(tmp_path / "kernel", switches)]


@pytest.mark.parametrize("start", ["$thread", "vtid"])
@pytest.mark.parametrize("stop", ["$thread", "prev_tid"])
def test_lttngs_programs_and_kernel_have_the_same_threads(lttngs, krait, declare, start, stop):  # noqa: F811
    text = f"[interval.a]\nstart = {{ event = 'app:begin', key = '{start}' }}\nstop = {{ event = 'sched_switch', key = '{stop}', where = {{ prev_tid = '> 0' }} }}\nby = ['$process', '$cpu']\n"
    rows = verb_json(krait, "intervals", *lttngs, "-f", declare(text), "--list")["list"]
    assert [(row["key"], row["duration_ns"]) for row in rows] == [("70 0", 5000), ("70 0", 6000)]


@pytest.mark.parametrize("thread", ["tid", "context._vtid", "vtid"])
def test_trace_compass_has_the_thread_of_a_programs_event(lttngs, states, thread):  # noqa: F811
    change = f'<stateChange><stateAttribute type="eventField" value="{thread}"/><stateValue type="eventField" value="context.cpu_id"/></stateChange>'
    found, notes = states(lttngs[0], provider(f'<eventHandler eventName="app:begin">{change}</eventHandler>' + f'<eventHandler eventName="app:begin">{change.replace("context.cpu_id", "msg")}</eventHandler>'))
    assert notes == "" and set(found) == {"71", "72"}


def test_what_is_a_mark_and_the_kernels_event_is_met_once(tmp_path, krait, declare):  # noqa: F811
    texts = [event(us, "ftrace_print", text=f"n {us}", **{"tid of context": 5}) for us in (10, 30)]
    folder = kernel_made.write(tmp_path / "k", [switch(0, 0, 5), *texts, switch(50, 5, 0)])
    text = "[signal.a]\nevent = 'ftrace_print'\nmessage = 'n (\\d+)'\n[signal.b]\nmessage = '^n (\\d+)'\n"
    assert [(row["name"], row["values"]) for row in verb_json(krait, "intervals", folder, "-f", declare(text))["signals"]] == [("a", 2), ("b", 2)]
