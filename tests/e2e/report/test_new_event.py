# SPDX-License-Identifier: Apache-2.0
"""A new event costs its row and its producer: krait cat, report --by mark and the Perfetto export show it without more.

All that is touched for an event `test:note`, which a program makes by krait.note("text"), is in TOUCHED. Its id is the
last that a row may have, far above what a compact header holds."""

import os
import shutil
import subprocess

import pytest

from conftest import verb_json
from recording import ROOT
from trace_processor import ask

ROW = """
KRAIT_EVENT(255, test_note, "test:note", "the program says something")
KRAIT_FIELD(test_note, u32, number, "a number")
KRAIT_FIELD(test_note, str, text, "what it says")
KRAIT_EVENT_END(test_note)

"""

PRODUCER = """
static PyObject *agent_note(PyObject *self, PyObject *text)
{
    uint8_t payload[KRAIT_PAYLOAD_MAX];
    PyObject *bytes = PyUnicode_AsEncodedString(text, "utf-8", "strict");
    if (!bytes)
        return NULL;
    struct krait_payload_test_note note = { .number = 42, .text = PyBytes_AsString(bytes) };
    size_t n = krait_put_test_note(payload, &note);
    if (krait_this_ring)
        krait_writer_event(&krait_agent.writer, krait_this_ring, KRAIT_EVENT_test_note, payload, n);
    Py_DECREF(bytes);
    Py_RETURN_NONE;
}

"""

FUNCTION = """
def note(text):
    import krait._agent as _agent
    _agent.note(text)


"""

TOUCHED = [
    ("src/event/events.def", "/* -- enumerations -- */", ROW),
    ("src/python/module.c", "static PyMethodDef methods[] = {", PRODUCER),
    ("src/python/module.c", '    { "stop", agent_stop', '    { "note", agent_note, METH_O, "" },\n'),
    ("python/krait/__init__.py", "def command():", FUNCTION),
]

APP = """
import krait

def work(n):
    krait.note("step %d, done" % n)

for i in range(3):
    work(i)
"""


@pytest.fixture
def changed(tmp_path):
    """The folder of a build of the sources with the new event."""
    copy = tmp_path / "krait"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns("build*", ".git", ".venv", "__pycache__", ".cache"), symlinks=True)
    for name, before, text in TOUCHED:
        path = copy / name
        whole = path.read_text()
        assert whole.count(before) == 1, (name, before)
        path.write_text(whole.replace(before, text + before))
    for command in (["meson", "setup", "build", "-Dtests=false"], ["ninja", "-C", "build"]):
        run = subprocess.run(command, cwd=copy, capture_output=True, text=True)
        assert run.returncode == 0, (run.stdout + run.stderr)[-3000:]
    return copy / "build"


@pytest.mark.long
@pytest.mark.timeout(1200)  # krait is compiled anew: four minutes on two CPUs that others use too
def test_a_new_event_reaches_every_reader_by_its_row_and_its_producer(changed, any_python, tmp_path):
    assert len({name for name, *_ in TOUCHED}) <= 4
    krait, trace, app = changed / "krait", tmp_path / "trace", tmp_path / "app.py"
    app.write_text(APP)
    env = {**os.environ, "PYTHONPATH": str(changed / "python"), "KRAIT": str(krait)}
    command = [krait, "record", "-q", "-o", trace, "--", *any_python.prefix, any_python.exe, app]
    run = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr

    text = subprocess.run([krait, "cat", trace], capture_output=True, text=True, check=True).stdout
    fields = [line.rsplit("{ ", 1)[1] for line in text.splitlines() if "test:note: " in line]
    assert fields == [f'number = 42, text = "step {i}, done" }}' for i in range(3)]

    theirs = subprocess.run(["babeltrace2", trace], capture_output=True, text=True, check=True)
    assert theirs.stdout == text and not theirs.stderr

    (row,) = verb_json(str(krait), "report", trace, "--by", "mark")["marks"]
    assert (row["name"], row["marks"]) == ("test:note", 3)

    subprocess.run([krait, "export", trace, "--to", "perfetto", "-o", tmp_path / "t.pftrace"], check=True, capture_output=True)
    (found,) = ask(tmp_path / "t.pftrace", "select name, extract_arg(arg_set_id, 'debug.fields') from slice where category = 'mark' order by ts")
    assert [tuple(row) for row in found] == [("test:note", f'{{ number = 42, text = "step {i}, done" }}') for i in range(3)]
