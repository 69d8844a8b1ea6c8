# SPDX-License-Identifier: Apache-2.0
"""krait cat --csv: each row against the same event's JSON."""

import csv
import io
import json
import subprocess

import pytest

from cat_json import KERNEL, cat_json, events, needs_corpus
from corpus import SCRIPT, cat_bytes

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


@pytest.mark.parametrize("forms", [("--csv", "--json"), ("--csv", "--csv-dir=x"), ("--json", "--csv-dir=x")], ids=" ".join)
def test_forms_exclude_each_other(krait, recording, forms):
    run = cat_bytes(krait, *forms, recording)
    assert run.returncode == 2 and b"exclude each other" in run.stderr


# -- a file for each name --


def tables(folder):
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_a_folder_has_a_file_for_each_name(krait, recording, tmp_path):
    """Each is what --csv prints of its events alone."""
    run = cat_bytes(krait, f"--csv-dir={tmp_path / 'tables'}", recording)
    assert (run.returncode, run.stdout) == (0, b"") and b"Tracer discarded 7 events" in run.stderr
    found = tables(tmp_path / "tables")
    names = {o["event"] for o in events(cat_json(krait, recording))}
    assert len(names) > 5 and set(found) == {f"{name}.csv" for name in names}
    for name in names:
        alone = cat_bytes(krait, "--csv", "--filter", f'name == "{name}"', recording)
        assert found[f"{name}.csv"] == alone.stdout.decode()


def test_a_folder_has_what_the_filter_and_the_range_leave(krait, recording, tmp_path):
    asked = ["--filter", "name == python:call || name == c:call", "--begin", "1767225600.000002"]
    assert cat_bytes(krait, *asked, f"--csv-dir={tmp_path / 'tables'}", recording).returncode == 0
    rows = sum(len(list(csv.reader(io.StringIO(text, newline="")))) - 1 for text in tables(tmp_path / "tables").values())
    assert rows == len(events(cat_json(krait, *asked, recording))) > 1000


def test_a_folder_that_has_files_is_refused(krait, recording, tmp_path):
    (tmp_path / "kept").write_text("kept")
    for folder, why in ((tmp_path, "is not an empty folder"), (tmp_path / "kept", "is not an empty folder"), (tmp_path / "no" / "such", "No such file")):
        run = cat_bytes(krait, f"--csv-dir={folder}", recording)
        assert run.returncode == 1 and why in run.stderr.decode()
    assert {path.name for path in tmp_path.iterdir()} <= {"kept", "synth"}


def trace(folder, *classes):
    """A trace with an event of each class, of this name and field."""
    folder.mkdir(parents=True)
    text = "/* CTF 1.8 */ trace { major = 1; minor = 8; byte_order = le; }; stream { event.header := struct { integer { size = 16; } id; }; };"
    for i, (name, field) in enumerate(classes):
        text += f'event {{ name = "{name}"; id = {i}; fields := struct {{ integer {{ size = 8; }} {field}; }}; }};'
    (folder / "metadata").write_text(text)
    (folder / "s").write_bytes(b"".join(i.to_bytes(2, "little") + b"\7" for i in range(len(classes))))


def test_thousands_of_names_and_of_fields_under_one_name_are_quick(krait, tmp_path):
    """Looking through the files for each class took minutes of a CPU; `ulimit -t` counts its seconds."""
    trace(tmp_path / "trace", *((f"n{i}", "x") for i in range(500)), *(("Name", f"x{i}") for i in range(2500)))
    limited = ["sh", "-c", 'ulimit -t 10; exec "$0" cat --csv-dir="$1" "$2"', krait, tmp_path / "tables", tmp_path / "trace"]
    assert subprocess.run(limited, timeout=300).returncode == 0
    found = {path.name for path in (tmp_path / "tables").iterdir()}
    assert found == {f"n{i}.csv" for i in range(500)} | {"Name.csv"} | {f"Name-{i}.csv" for i in range(2, 2501)}
    assert (tmp_path / "tables" / "Name-2500.csv").read_text() == "time_ns,stream,event,x2499\n,0,Name,7\n"


def test_names_that_are_no_files_and_fields_that_differ(krait, tmp_path):
    """Two traces: one name with the same fields in both, one with other fields, names that lead out of the folder."""
    trace(tmp_path / "traces" / "a", ("same", "x"), ("other", "x"), ("../up", "x"), (".hidden", "x"), ("Same", "x"))
    trace(tmp_path / "traces" / "b", ("same", "x"), ("other", "y"), ("s" * 300, "x"))
    assert cat_bytes(krait, f"--csv-dir={tmp_path / 'tables'}", tmp_path / "traces").returncode == 0
    found = tables(tmp_path / "tables")
    assert set(found) == {"same.csv", "other.csv", "other-2.csv", "_./up.csv".replace("/", "_"), "_hidden.csv", "Same-2.csv", "s" * 200 + ".csv"}
    assert found["same.csv"] == "time_ns,stream,event,x\n,0,same,7\n,1,same,7\n"
    assert found["other-2.csv"] == "time_ns,stream,event,y\n,1,other,7\n"


def test_a_folder_that_cannot_be_written_is_told(krait, recording, tmp_path):
    full = tmp_path / "tables"
    full.mkdir()
    limited = ["sh", "-c", 'ulimit -f 8; trap "" XFSZ; exec "$0" cat --csv-dir="$1" "$2"', krait, full, recording]
    run = subprocess.run(limited, capture_output=True, text=True, timeout=60)
    assert run.returncode == 1 and "cannot write" in run.stderr and ".csv: File too large" in run.stderr
