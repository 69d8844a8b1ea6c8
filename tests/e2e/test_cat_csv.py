# SPDX-License-Identifier: Apache-2.0
"""krait cat --csv: each row against the same event's JSON."""

import csv
import io
import json

import pytest

from test_cat import SCRIPT, cat_bytes
from test_cat_forms import cat_json, events, needs_corpus, KERNEL

LONG = ["time_ns", "stream", "event", "packet_context", "common_context", "event_context", "payload"]


@pytest.fixture
def recording(synth):
    return synth(SCRIPT)


def cat_csv(krait, *args):
    """(names of the columns, rows)"""
    run = cat_bytes(krait, "--csv", *args)
    assert run.returncode == 0, run.stderr.decode()
    lines = list(csv.reader(io.StringIO(run.stdout.decode(), newline=""), strict=True))
    assert all(len(line) == len(lines[0]) for line in lines)
    return lines[0], [dict(zip(lines[0], line)) for line in lines[1:]]


def cell(value):
    """What a JSON value is in a cell."""
    if isinstance(value, dict) and set(value) == {"value", "label"}:
        value = value["value"] if value["label"] is None else value["label"]
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def check_wide(rows, objects):
    assert len(rows) == len(objects) > 0
    for row, event in zip(rows, objects):
        fields = {}
        for scope in ("packet_context", "common_context", "event_context", "payload"):
            for name, value in event.get(scope, {}).items():
                taken = name in fields or name in ("time_ns", "stream", "event")
                fields[f"{scope}.{name}" if taken else name] = cell(value)
        assert row == {"time_ns": event["time_ns"], "stream": str(event["stream"]), "event": event["event"], **fields}


def test_events_of_one_name_have_a_column_a_field(krait, recording):
    columns, rows = cat_csv(krait, "--filter", "name == python:call", recording)
    assert columns == ["time_ns", "stream", "event", "vtid", "code"]
    check_wide(rows, events(cat_json(krait, "--filter", "name == python:call", recording)))
    assert 'm"q.g\nh?' in {row["code"] for row in rows}


@needs_corpus
def test_a_kernel_trace_in_columns(krait):
    asked = "name == sched_switch && prev_tid != 0"
    columns, rows = cat_csv(krait, "--filter", asked, KERNEL)
    assert columns[3:6] == ["cpu_id", "prev_comm", "prev_tid"]
    check_wide(rows, cat_json(krait, "--filter", asked, KERNEL))


def test_events_of_several_names_have_a_column_a_scope(krait, recording):
    columns, rows = cat_csv(krait, recording)
    objects = events(cat_json(krait, recording))
    assert columns == LONG and len(rows) == len(objects)
    for row, event in zip(rows, objects):
        assert {name: event.get(name) for name in LONG[3:]} == {name: json.loads(row[name] or "null") for name in LONG[3:]}
        assert (row["time_ns"], row["event"]) == (event["time_ns"], event["event"])


def test_losses_are_told_on_stderr(krait, recording):
    run = cat_bytes(krait, "--csv", recording)
    assert b"Tracer discarded 7 events" in run.stderr and b"discarded" not in run.stdout


def test_json_and_csv_exclude_each_other(krait, recording):
    run = cat_bytes(krait, "--csv", "--json", recording)
    assert run.returncode == 2 and b"one of them" in run.stderr
