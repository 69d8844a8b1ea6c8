# SPDX-License-Identifier: Apache-2.0
"""krait cat --json and --filter: against its text, which is babeltrace2's, and against the same question asked of the JSON."""

import fnmatch
import json
import random
import re
import struct

import pytest

from cat_json import KERNEL, cat_json, events, needs_corpus
from corpus import CORPUS, SCRIPT, cat_bytes, corpus_rows


@pytest.fixture
def recording(synth):
    return synth(SCRIPT)


@pytest.fixture(scope="module")
def kernel(krait):
    return cat_json(krait, KERNEL)


# -- JSON --


@pytest.mark.parametrize("row", corpus_rows())
def test_every_event_is_an_object(krait, row):
    text = cat_bytes(krait, "--fields=none", "--no-delta", "--clock-seconds", CORPUS / row[0])
    objects = events(cat_json(krait, CORPUS / row[0], status=text.returncode))
    lines = text.stdout.decode(errors="replace").splitlines() if b"\r" not in text.stdout else []
    assert len(objects) == text.stdout.count(b"\n")
    for line, event in zip(lines, objects):
        if "time_ns" in event and not event["time_ns"].startswith("-"):
            seconds = event["time_ns"].zfill(10)
            assert line.startswith(f"[{seconds[:-9]}.{seconds[-9:]}] {event['event'] or '<unknown>'}: ")


@needs_corpus
def test_values_are_those_of_the_text(krait, kernel):
    """All that a switch has: texts, numbers of both signs."""
    text = cat_bytes(krait, KERNEL).stdout.decode().splitlines()
    switches = [line for line in text if " sched_switch: " in line]
    objects = [o["payload"] for o in kernel if o["event"] == "sched_switch"]
    assert len(objects) == len(switches) > 1000
    for line, payload in zip(switches, objects):
        said = dict(re.findall(r'(\w+) = "?([^",}]*?)"?(?:,| })', line.split("}, {")[-1]))
        assert {name: str(value) for name, value in payload.items()} == said


def test_types_survive(krait, recording):
    objects = cat_json(krait, recording)
    call = next(o for o in objects if o.get("event") == "python:call")
    assert call["time_ns"] == "1767225600000001000" and call["vpid"] == 10 and call["procname"] == "app"
    assert call["payload"]["code"] == {"value": 1, "label": "pkg.mod.Class.method <locals>"}
    assert call["packet_context"]["vtid"] == 10 and "timestamp_begin" not in call["packet_context"]
    unknown = [o["payload"]["code"] for o in events(objects) if o.get("payload", {}).get("code", {}) == {"value": 99, "label": None}]
    assert len(unknown) == 1
    define = next(o for o in objects if o.get("event") == "code:define")
    assert define["payload"]["file"] == "/src/f.py"


def test_times_are_numbers_on_request(krait, recording):
    asked, usual = cat_json(krait, "--time-number", recording), cat_json(krait, recording)
    for key in ("time_ns", "begin_ns", "end_ns"):
        assert [o.get(key) for o in asked] == [int(o[key]) if key in o else None for o in usual]
        assert any(key in o for o in asked)
    run = cat_bytes(krait, "--time-number", "--csv", recording)
    assert run.returncode == 2 and b"--time-number needs --json" in run.stderr


FLOATS = [0.1, 100.0, 1 / 3, 1e16, 1e-5, -2.5e300, 5e-324, 1.7976931348623157e308, 123456.789, -0.0, 2.0**53 + 2, 9007199254740993.0, 1e23]


def test_floats_have_the_fewest_digits_that_read_back_the_same(krait, tmp_path):
    (tmp_path / "metadata").write_text(
        "/* CTF 1.8 */ trace { major = 1; minor = 8; byte_order = le; }; event { name = e; fields := struct {"
        "floating_point { exp_dig = 11; mant_dig = 53; align = 8; } x; floating_point { exp_dig = 8; mant_dig = 24; align = 8; } y; }; };")
    rows = FLOATS + [random.Random(7).uniform(-1, 1) * 10.0**power for power in range(-300, 300, 7)]
    singles = [struct.unpack("<f", struct.pack("<f", x))[0] if abs(x) < 1e38 else 0.5 for x in rows]
    odd = [float("nan"), float("inf"), float("-inf")]
    (tmp_path / "s").write_bytes(b"".join(struct.pack("<df", x, y) for x, y in [*zip(rows, singles), *zip(odd, odd)]))
    lines = cat_bytes(krait, "--json", tmp_path).stdout.decode().splitlines()
    wanted = [f'"payload":{{"x":{x!r},"y":{y!r}}}}}' for x, y in zip(rows, singles)] + ['"payload":{"x":null,"y":null}}'] * 3
    assert [line.split(",", 2)[2] for line in lines] == wanted


def test_losses_are_objects_behind_the_events(krait, recording):
    run = cat_bytes(krait, "--json", recording)
    assert run.stderr == b""
    last = json.loads(run.stdout.splitlines()[-1])
    assert (last["lost"], last["count"]) == ("events", 7)
    assert int(last["begin_ns"]) < int(last["end_ns"])


@needs_corpus
def test_wide_integers_are_always_strings(kernel):
    payloads = [o["payload"] for o in kernel if "payload" in o]
    states = {type(p["prev_state"]) for p in payloads if "prev_state" in p}
    assert states == {str} and {type(p["prev_tid"]) for p in payloads if "prev_tid" in p} == {int}


# -- filters --

KERNEL_FILTERS = {
    'name == "sched_switch"': lambda o, p: o["event"] == "sched_switch",
    "name == sched_*": lambda o, p: fnmatch.fnmatch(o["event"], "sched_*"),
    "name != *s*": lambda o, p: "s" not in o["event"],
    "prev_tid == 0": lambda o, p: p.get("prev_tid") == 0,
    "prev_tid > 100 && prev_tid <= 0x1000": lambda o, p: 100 < p.get("prev_tid", -1) <= 4096,
    'next_comm == "swapper/1"||next_comm==sshd': lambda o, p: p.get("next_comm") in ("swapper/1", "sshd"),
    "!(name == sched_*) && !(name==irq_*)": lambda o, p: not o["event"].startswith(("sched_", "irq_")),
    "prev_tid != 0": lambda o, p: p.get("prev_tid", 0) != 0,
    "$ctx.cpu_id == 1 && name == sched_switch": lambda o, p: o["packet_context"]["cpu_id"] == 1 and o["event"] == "sched_switch",
    "prev_state": lambda o, p: p.get("prev_state", "0") != "0",
    "ret < 0": lambda o, p: int(p.get("ret", 0)) < 0,
    "ret >= -11 && ret < 0": lambda o, p: -11 <= int(p.get("ret", 0)) < 0,
    "payload.prio == 20": lambda o, p: p.get("prio") == 20,
}


@needs_corpus
@pytest.mark.parametrize("expression", KERNEL_FILTERS)
def test_a_filter_leaves_what_it_says(krait, kernel, expression):
    said = KERNEL_FILTERS[expression]
    wanted = [o for o in kernel if said(o, o.get("payload", {}))]
    assert cat_json(krait, "--filter", expression, KERNEL) == wanted
    assert 0 < len(wanted) < 134500


@needs_corpus
def test_filtered_text_is_the_same_text(krait):
    every = cat_bytes(krait, "--no-delta", KERNEL).stdout.splitlines()
    some = cat_bytes(krait, "--no-delta", "--filter", "name == irq_*", KERNEL).stdout.splitlines()
    assert some == [line for line in every if b" irq_" in line.split(b": {")[0]]


def test_labels_are_texts_and_numbers(krait, recording):
    count = lambda expression: len(events(cat_json(krait, "--filter", expression, recording)))
    assert count("name == python:call && code == *method*") == 3002
    assert count("name == python:call && code == 1") == 3003  # of both processes
    assert count("name == python:call && code != *method*") == 1  # a value without a label is compared with no text
    assert count('payload.name == "Main*Thread"') == 1


@pytest.mark.parametrize(
    "expression, column, what",
    [
        ("", 1, "a field's name"),
        ("name = x", 6, "equality is written =="),
        ("name == ", 9, "a number, a word"),
        ('name == "x', 9, "this quotation has no end"),
        ("(name == x", 11, "a closing bracket"),
        ("name == x)", 10, "&&, || or the end"),
        ("name == x & code == 1", 11, "&&, || or the end"),
        ("code < abc", 6, "only numbers have an order"),
        ("name < 3", 6, "only numbers have an order"),
        ("name == x && $app.x == 1", 14, "there is only $ctx."),
        ("(" * 100, 65, "too many brackets"),
    ],
)
def test_a_mistake_is_shown_with_its_column(krait, recording, expression, column, what):
    run = cat_bytes(krait, "--filter", expression, recording)
    assert run.returncode == 2 and run.stdout == b""
    assert f"filter, column {column}: " in run.stderr.decode() and what in run.stderr.decode()


def test_a_field_that_no_event_has_is_said(krait, recording):
    run = cat_bytes(krait, "--filter", "name == x || nonsense == 1", recording)
    assert run.returncode == 1 and b"column 14: no event of this trace has a field 'nonsense'" in run.stderr


def test_an_event_name_that_no_event_has_is_said_with_the_nearest(krait, recording):
    """It selects nothing; the rest of the filter may."""
    run = cat_bytes(krait, "--filter", "name == pyton:call || (name == zzz*) || name == c:call || name != other", recording)
    assert run.returncode == 0 and run.stdout
    assert run.stderr.decode().splitlines()[:2] == [
        "krait cat: filter, column 1: no event of this trace is called 'pyton:call'; did you mean 'python:call'?",
        "filter, column 24: no event of this trace is called 'zzz*'",
    ]
    assert b"called" not in cat_bytes(krait, "--filter", "name == gil:* || name == python:call", recording).stderr
