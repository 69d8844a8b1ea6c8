# SPDX-License-Identifier: Apache-2.0
"""krait report --by mark: events that are no calls, of any CTF trace, by name and by what they say."""

import json
import re
import subprocess
import time
from collections import Counter

import pytest

from conftest import BUILD, verb_json
from kernel_made import EPOCH, event, switch, write
from served import Server
from trace_processor import ask


@pytest.fixture
def logged(tmp_path):
    """Two streams of another tracer's, with one event of LTTng's function tracing."""
    events = [event(10, "app:begin"), event(20, "app:step", cpu=1), event(30, "app:step"), event(50, "app:step", cpu=1), event(60, "app:end")]
    return write(tmp_path / "app", events, domain="ust", offset=EPOCH)


def test_marks_are_counted_by_name(logged, krait):
    found = verb_json(krait, "report", logged, "--by", "mark")
    assert found["begin_ns"] == EPOCH + 10_000
    assert [tuple(row.values()) for row in found["marks"]] == [
        (3, 10_000, 40_000, 2, "app:step", None),
        (1, 0, 0, 1, "app:begin", None),
        (1, 50_000, 50_000, 1, "app:end", None),
    ]
    table = subprocess.run([krait, "report", logged, "--by", "mark"], capture_output=True, text=True, check=True).stdout
    assert table.splitlines()[0].split() == ["marks", "first", "last", "tracks", "mark"]


SAYS = """
import krait, logging, sys, threading, warnings
shop = logging.getLogger("shop")
def warn(text): warnings.warn(text, RuntimeWarning)
for n in range(3):
    krait.mark("Start", n=n)
    shop.warning("order %d has no address", n * 35)
    shop.log(35, "once")
    krait.counter("orders waiting", n)
krait.mark("Stop")
shop.warning("order %d has no address", 7)
for text in ("pen is old", "book is old"): warn(text)
thread = threading.Thread(target=int, args=("x",))
thread.start()
thread.join()
sys.audit("shop.order", 1)
"""


@pytest.mark.few_pythons
def test_marks_are_told_apart_by_what_they_say(record, krait, python):
    """Log records and warnings by the line that makes them: what differs between their texts is left out."""
    path = record.text(python, SAYS, options=("--log", "--audit", "shop.*"), env={"PYTHONPATH": str(BUILD / "python")}).path
    rows = sorted((row["name"], row["text"], row["marks"]) for row in verb_json(krait, "report", path, "--by", "mark")["marks"])
    assert rows == [
        ("audit:event", "shop.order", 1),
        ("exception:uncaught", "ValueError", 1),
        ("log:record", "35 shop: once", 3),
        ("log:record", "WARNING shop: order ... has no address", 3),
        ("log:record", "WARNING shop: order 7 has no address", 1),
        ("user:counter", "orders waiting", 3),
        ("user:mark", "Start", 3),
        ("user:mark", "Stop", 1),
        ("warning:shown", "RuntimeWarning: ... is old", 2),
    ]


@pytest.mark.parametrize(
    "options, why",
    [
        (["--by", "mark", "--filter", "x"], "--filter is for functions, not for --by mark; krait cat --filter selects events, krait intervals --start their messages\n"),
        (["--by", "task", "--filter", "x"], "--filter is for functions, not for --by task; --thread and --process select tasks by where they ran\n"),
        (["--by", "line", "--filter", "x"], "--filter is for functions, not for --by line; --by function takes it, and --by line-of-call\n"),
        (["--by", "mark", "--sort", "total"], "--sort does not go with --by mark, which has the most frequent first; leave out --sort\n"),
        (["--by", "mark", "--cycles", "--limit", "3"], "--cycles is for functions, not for --by mark; leave out one of the two\n"),
        (["--by", "mark", "--exception", "x"], "--exception is for functions, not for --by mark; leave out one of the two\n"),
        (["--by", "mark", "--tree"], "--tree goes with --by function, thread, process or span\n"),
        (["--by", "thread", "--filter", "x"], "--filter is for functions, not for --by thread; --thread selects threads, and --tree --by thread shows the functions of each\n"),
        (["--by", "process", "--filter", "x"], "--filter is for functions, not for --by process; --process selects processes, and --tree --by process shows the functions of each\n"),
        (["--from", "1x"], "--from: '1x' is not a time such as 1.5s, 200ms or 3\n"),
        (["--until", "x"], "--until: 'x' is not a time such as 1.5s, 200ms or 3\n"),
        (["--by", "task", "--at", "1x"], "--at: '1x' is not a time such as 1.5s, 200ms or 3\n"),
        (["--by", "marks"], "--by: 'marks' is not one of its values; did you mean 'mark'?\n"),
    ],
)
def test_the_option_that_does_not_fit_is_named(krait, synth, options, why):
    done = subprocess.run([krait, "report", synth("process 5 python3\nthread 5 A\n1us mark x\n"), *options], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (2, f"krait report: {why}Try: krait report --help\n")


def said(us, name, tid=5, **fields):
    return event(us, name, **fields, **{"tid of context": tid})


def test_what_programs_tell_the_kernel_is_told_apart_too(tmp_path, krait):
    """Lines of trace_marker by their text, as krait and LTTng or perf call them; probes by the texts among their arguments."""
    lines = [said(us, "ftrace_print", text=text) for us, text in ((10, "go"), (20, "stop"), (30, "go"))]
    probes = [said(40 + n, "usdt:python:audit", event=name, arg2=n * 1000) for n, name in enumerate(("open", "exec", "open"))]
    others = [said(50, "usdt:app:tick"), said(51, "usdt:app:one", n=7), said(52, "usdt:app:one", n=7), said(60, "ftrace:print", ip=3, buf="of perf")]
    trace = write(tmp_path / "k", [switch(0, 0, 5), *lines, *probes, *others, switch(90, 5, 0)])
    rows = sorted((row["name"], row["text"] or "", row["marks"]) for row in verb_json(krait, "report", trace, "--by", "mark")["marks"])
    assert rows == [
        ("ftrace:print", "of perf", 1),
        ("ftrace_print", "go", 2),
        ("ftrace_print", "stop", 1),
        ("usdt:app:one", "n = 7", 2),
        ("usdt:app:tick", "", 1),
        ("usdt:python:audit", 'event = "exec", arg2 = 1000', 1),
        ("usdt:python:audit", 'event = "open", arg2 = ...', 2),
    ]


def test_marks_of_another_trace_have_their_message(tmp_path, krait):
    """As krait intervals has it; LTTng's log records are told apart by the line that logs. An address is no message."""

    def logged(us, text, line):
        return event(us, "lttng_python:event", msg=text, logger_name="app", lineno=line, int_loglevel=20)

    events = [
        *(event(us, "lttng_ust_tracef:event", msg=f"queue has {us} items") for us in (1, 2)),
        *(logged(10 + n, f"Start {n}", 7) for n in range(3)),
        logged(20, "Stop", 9),
        event(30, "lttng_ust_tracelog:INFO", line=3, file="app.c", msg="done"),
        event(40, "app:write", buf=4096),
        event(41, "app:said", text="one"),
        event(42, "app:said", text="one"),
    ]
    trace = write(tmp_path / "app", events, domain="ust")
    rows = sorted((row["name"], row["text"] or "", row["marks"]) for row in verb_json(krait, "report", trace, "--by", "mark")["marks"])
    assert rows == [
        ("app:said", "one", 2),
        ("app:write", "", 1),
        ("lttng_python:event", "Start ...", 3),
        ("lttng_python:event", "Stop", 1),
        ("lttng_ust_tracef:event", "queue has ... items", 2),
        ("lttng_ust_tracelog:INFO", "done", 1),
    ]


SPANS = "process 4711 python3\ncode 1 python app work app.py 1\ncode 2 name - load - 0\nthread 4711 MainThread\n0 spanbegin 1 2 0 {}\n5us spanend 1 {}\n"


def test_spans_are_not_marks(synth, record, krait, any_python):
    """Imports and calls with arguments are none either: --by span has them. Where there is nothing else, that is said, too."""
    code = "import krait\ndef work(n): krait.mark('a')\nwork(1)\nimport colorsys\nwith krait.span('b'): work(2)\n"
    run = record.text(any_python, code, options=("--imports", "--args", "work(n)"), env={"PYTHONPATH": str(BUILD / "python")})
    assert [(row["name"], row["text"], row["marks"]) for row in verb_json(krait, "report", run.path, "--by", "mark")["marks"]] == [("user:mark", "a", 2)]
    assert {"colorsys", "b"} < {row["name"] for row in verb_json(krait, "report", run.path, "--by", "span")["spans"]}
    done = subprocess.run([krait, "report", "--by", "mark", synth(SPANS)], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-2:] == ["no marks were recorded", "spans are not marks; krait report --by span shows them"]


def test_the_page_counts_the_same_marks(both, krait):
    """Those of programs that were not recorded are counted beside its table."""
    calls = SPANS + "10us mark a\n20us mark b\n30us counter 2 7\n"
    folder = both(calls, [switch(0, 0, 4711), said(12, "ftrace_print", 4711, text="own"), switch(40, 4711, 99), said(50, "ftrace_print", 99, text="of others"), switch(60, 99, 0)])
    counted = Counter()
    for row in verb_json(krait, "report", folder, "--by", "mark")["marks"]:
        counted[row["name"]] += row["marks"]
    assert counted == {"user:mark": 2, "user:counter": 1, "ftrace_print": 2}
    server = Server(krait, folder)
    try:
        all_of = index_of(server)
        own = server.api("marks", own=1)
        names = server.api("texts")
    finally:
        server.process.terminate()
        server.process.communicate()
    assert Counter(names[mark["name"]] for mark in all_of["marks"]) == counted and all_of["others"] == 0
    assert len(own["marks"]) == 4 and own["others"] == 1


def index_of(server):
    """The marks, as soon as the page's index has them."""
    for _ in range(300):
        status, _, body = server.ask("api/marks")
        if status == 200:
            return json.loads(body)
        time.sleep(0.1)
    raise AssertionError("there is no index")


def test_more_texts_than_rows_are_one_row(synth, krait):
    """Its marks are counted."""
    texts = [f"{n}us mark say%20{n % 10_007}" for n in range(20_014)]
    found = verb_json(krait, "report", synth("process 4711 python3\nthread 4711\n" + "\n".join(texts)), "--by", "mark")["marks"]
    assert (found[0]["text"], found[0]["marks"], len(found)) == ("(more texts)", 14, 10_001)
    assert {row["marks"] for row in found[1:]} == {2}


def test_a_range_and_a_stream_choose_marks(logged, krait):
    found = verb_json(krait, "report", logged, "--by", "mark", "--from", "15us", "--until", "45us", "--thread", "channel0_*")
    assert [(row["name"], row["marks"]) for row in found["marks"]] == [("app:step", 2)]
    assert verb_json(krait, "report", logged, "--by", "mark", "--thread", "channel0_0")["marks"][0]["marks"] == 1


def test_a_recording_without_marks_says_so(synth, krait):
    folder = synth("process 4711 python3\ncode 1 python app main app.py 1\nthread 4711 MainThread\n0 call 1\n9 return\n")
    done = subprocess.run([krait, "report", "--by", "mark", folder], capture_output=True, text=True, check=True)
    assert done.stdout == "" and "no marks were recorded" in done.stderr


def test_perfetto_shows_them_beside_the_calls(logged, synth, krait, tmp_path):
    calls = synth("process 4711 python3\ncode 1 python app main app.py 1\nthread 4711 MainThread\n0 call 1\n90us return\n")
    subprocess.run([krait, "export", calls, logged, "-o", tmp_path / "both.pftrace"], check=True, capture_output=True)
    (rows,) = ask(tmp_path / "both.pftrace", "select slice.name, track.name, ts from slice join track on track_id = track.id where category = 'mark' order by ts")
    assert [(name, track, ns - EPOCH) for name, track, ns in rows] == [
        ("app:begin", "channel0_0", 10_000),
        ("app:step", "channel0_1", 20_000),
        ("app:step", "channel0_0", 30_000),
        ("app:step", "channel0_1", 50_000),
        ("app:end", "channel0_0", 60_000),
    ]


def test_marks_take_no_time(logged, krait):
    done = subprocess.run([krait, "report", "--by", "mark", "--sort", "self", logged], capture_output=True, text=True)
    assert done.returncode == 2 and "--by mark" in done.stderr


def test_events_that_another_tracer_lost_are_told(tmp_path, krait):
    folder = write(tmp_path / "app", [event(10, "app:begin"), event(60, "app:end")], domain="ust", offset=EPOCH, lost=5)
    done = subprocess.run([krait, "report", "--by", "mark", folder], capture_output=True, text=True, check=True)
    assert "lost: 5 events" in done.stderr + done.stdout
    assert verb_json(krait, "report", folder, "--by", "mark")["lost"] != {}


def test_marks_are_looked_for_unless_the_metadata_says_that_there_are_none(record, krait, any_python):
    """The entry names each event besides calls and the GIL's. Older recordings have none; one that is empty is believed."""
    run = record.text(any_python, "import krait\nkrait.mark('a')\nwith krait.span('b'): pass\n", env={"PYTHONPATH": str(BUILD / "python")})
    metadata = next(run.path.glob("*/metadata"))
    text = metadata.read_text()
    (line,) = re.findall(r"^    other_events = .*;\n", text, re.M)
    names = dict(re.findall(r'event \{\n    name = "(.*?)";\n    id = (\d+);', text))
    assert {names["user:mark"], names["span:begin"], names["span:end"]} <= set(re.findall(r"\d+", line))
    assert names["user:flow"] not in re.findall(r"\d+", line)
    found = {}
    for entry in (line, "", '    other_events = "";\n'):
        metadata.write_text(text.replace(line, entry))
        found[entry] = verb_json(krait, "report", "--by", "mark", run.path)["marks"]
    told, of_old, none = found.values()
    assert told == of_old and none == [] and [row["name"] for row in told] == ["user:mark"]
