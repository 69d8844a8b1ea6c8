# SPDX-License-Identifier: Apache-2.0
"""--audit, --gc and --imports."""

import json
import re
import os

import pytest

from package import PACKAGE
from recording import Recording


def spans(run, category):
    """The spans of a category by their begins: (name, fields of the end, depth among them), of all threads; checks that they
    nest in their thread and have ids of their own."""
    found, stacks = {}, {}
    for note in run.notes("span:begin", "span:end"):
        stack = stacks.setdefault(note["tid"], [])
        if note["event"] == "span:begin":
            assert note["id"] not in found and note["fields"] == "{}"
            found[note["id"]] = [note["name"], None, len(stack), note["category"]]
            stack.append(note["id"])
        else:
            assert stack.pop() == note["id"]
            found[note["id"]][1] = json.loads(note["fields"])
    assert not any(stacks.values())
    return [tuple(span[:3]) for span in found.values() if span[3] == category]


AUDITED = """
    import os, socket, subprocess, sys
    open("/dev/null").close()
    s = socket.socket(); s.bind(("127.0.0.1", 0)); s.close()
    class Own:
        def __repr__(self): raise SystemExit
    sys.audit("own.event", 1, "two", b"3", [4.5, None], {"password": "secret"}, Own(), Own)
    sys.audit("own.empty")
    subprocess.run(["/bin/true"], env={"TOKEN": "secret"})
    os.listdir("/")
"""


def test_audit_events_have_names_and_arguments(record, python):
    run = record.text(python, AUDITED, options=["--audit", "own.*", "--audit", "socket.bind", "--audit", "subprocess.Popen"]).check(ended=False)
    notes = [(n["name"], json.loads(n["args"])) for n in run.notes("audit:event")]
    assert [name for name, _ in notes] == ["socket.bind", "own.event", "own.empty", "subprocess.Popen"]
    assert notes[0][1] == ["<socket>", ["127.0.0.1", 0]]
    assert notes[1][1] == [1, "two", "b'3'", [4.5, None], "{1 items}", "<Own>", "<type>"] and notes[2][1] == []
    assert notes[3][1][:3] == ["/bin/true", ["/bin/true"], None] and "secret" not in str(notes)


@pytest.mark.parametrize("asked, told", [
    (["opne"], ["--audit 'opne' matched no audit event; did you mean 'open'?"]),
    (["shop.slod"], ["--audit 'shop.slod' matched no audit event; did you mean 'shop.sold'?"]),
    (["socket.conect"], ["--audit 'socket.conect' matched no audit event; did you mean 'socket.connect'?"]),
    (["socket.connect", "sqlite3.*"], [f"--audit '{name}' matched no audit event; CPython has it, but it did not occur" for name in ("socket.connect", "sqlite3.*")]),
    (["open", "shop.*", "", "child.event"], []),
    (["open"], []),
], ids=["near", "near an own one", "near one of CPython's", "did not occur", "all met", "one met"])
def test_an_audit_pattern_that_matched_nothing_is_told_at_the_end(record, any_python, asked, told):
    program = """
        import os, sys
        sys.audit("shop.sold", 1)
        open(os.devnull).close()
        if os.fork() == 0:
            sys.audit("child.event")
            os._exit(0)
        os.wait()
    """
    run = record.text(any_python, program, options=[word for glob in asked for word in ("--audit", glob)])
    assert [line.strip() for line in run.stderr.splitlines() if "--audit" in line] == told


def test_an_audit_glob_like_nothing_is_told_with_the_events_that_occurred(record, any_python):
    run = record.text(any_python, "import sys; sys.audit('shop.sold')", options=["--audit", "nothing.*"])
    assert re.search(r"--audit 'nothing\.\*' matched no audit event; events that occurred: \S+, .* and \d+ more$", run.stderr, re.MULTILINE), run.stderr


@pytest.mark.few_pythons
def test_all_audit_events_are_recorded_or_none(record, python):
    everything = record.text(python, AUDITED, options=["--audit"])
    names = {n["name"] for n in everything.notes("audit:event")}
    assert {"open", "import", "socket.bind", "subprocess.Popen", "os.listdir", "own.event"} <= names
    assert record.text(python, AUDITED).notes("audit:event") == []


def test_an_audit_hook_of_the_programs_still_decides(record, python):
    program = """
        import sys
        def hook(event, args):
            if event == "own.no":
                raise PermissionError("no")
        sys.addaudithook(hook)
        try:
            sys.audit("own.no", 1)
        except PermissionError as e:
            print(e)
        sys.audit("own.yes")
    """
    run = record.text(python, program, options=["--audit", "own.*"]).check()
    assert run.stdout == "no\n"
    assert [n["name"] for n in run.notes("audit:event")] == ["own.no", "own.yes"]


def test_runs_of_the_collector_are_spans(record, python):
    program = """
        import gc, sys
        gc.disable()
        class Node: pass
        gc.collect()
        for n in range(100):
            node = Node(); node.self = node
        del node
        found = gc.collect(1), gc.collect(0)
        print(found[0], [type(c).__name__ for c in gc.callbacks])
        gc.callbacks.clear()
        gc.collect(2)
    """
    run = record.text(python, program, options=["--gc"]).check()
    found = [s for s in spans(run, "gc")]
    count = int(run.stdout.split()[0])
    assert run.stdout.endswith("['builtin_function_or_method']\n")
    named = [(name, fields) for name, fields, _ in found if fields.get("collected") == count and "1" in name]
    assert named == [("gc generation 1", {"generation": 1, "collected": count, "uncollectable": 0})]
    assert {name for name, _, _ in found} <= {f"gc generation {n}" for n in range(3)}
    assert record.text(python, "import gc; print(gc.callbacks)").stdout == "[]\n"


def test_imports_are_a_tree(record, python):
    package = record.folder / "pack"
    package.mkdir()
    (package / "__init__.py").write_text("from . import one\n")
    (package / "one.py").write_text("import pack.two\n")
    (package / "two.py").write_text("try:\n    import no_such_module\nexcept ImportError:\n    pass\n")
    program = """
        import importlib, sys
        import pack
        import pack.two
        importlib.import_module("colorsys")
        importlib.import_module("colorsys")
        try:
            from pack import nothing
        except ImportError: pass
        try:
            importlib.import_module("pack.three")
        except ImportError: pass
    """
    run = record.text(python, program, options=["--imports"]).check()
    found = spans(run, "import")
    ours = [s for s in found if s[0].split(".")[0] in ("pack", "no_such_module", "colorsys")]
    depth = ours[0][2]
    assert [(name, level - depth) for name, _, level in ours] == [
        ("pack", 0), ("pack.one", 1), ("pack.two", 2), ("no_such_module", 3), ("colorsys", 0),
        ("pack.nothing", 0), ("pack.three", 0)]
    fields = {name: f for name, f, _ in ours}
    assert fields["pack.one"] == {"file": str(package / "one.py")}
    assert fields["no_such_module"] == fields["pack.three"] == {"error": "ModuleNotFoundError"}
    if python.number < (3, 15):  # which says that it is initialised when it has imported site
        assert "site" in {name for name, _, _ in found}


@pytest.mark.few_pythons
def test_imports_of_threads_and_subinterpreters(record, python):
    program = """
        import threading
        def work():
            import colorsys
        t = threading.Thread(target=work); t.start(); t.join()
        try:
            import _interpreters as interpreters
        except ImportError:
            try: import _xxsubinterpreters as interpreters
            except ImportError: interpreters = None
        if interpreters:
            i = interpreters.create()
            run = getattr(interpreters, "exec", None) or interpreters.run_string
            run(i, "import logging; logging.root.addHandler(logging.NullHandler()); logging.error('inside')")
            interpreters.destroy(i)
            print("sub")
    """
    run = record.text(python, program, options=["--imports", "--log", "--gc", "--audit", "open"]).check()
    names = [name for name, _, _ in spans(run, "import")]
    assert "colorsys" in names
    if run.stdout == "sub\n":
        assert [n["message"] for n in run.notes("log:record")] == ["inside"] and names.count("logging") >= 1


@pytest.mark.few_pythons
def test_a_recording_that_the_program_begins_asks_for_them_too(record, python, tmp_path):
    program = """
        import gc, sys, krait
        krait.start(sys.argv[1], audit="own.*", gc=True, imports=True, log=True)
        sys.audit("own.event", 7)
        import colorsys
        gc.collect()
        import logging
        logging.getLogger("app").error("told")
        krait.stop()
        sys.audit("own.event", 8)
        print(gc.callbacks)
        import json
    """
    result = python.run(record.script(program), tmp_path / "t", env={**os.environ, **PACKAGE})
    assert (result.returncode, result.stdout) == (0, "[]\n"), result.stderr
    run = Recording(tmp_path / "t")
    assert [json.loads(n["args"]) for n in run.notes("audit:event")] == [[7]]
    assert {"colorsys", "logging"} <= {name for name, _, _ in spans(run, "import")} and spans(run, "gc")
    assert [n["message"] for n in run.notes("log:record")] == ["told"]


@pytest.mark.few_pythons
def test_time_never_goes_back_whatever_the_collector_interrupts(record, python, rounds):
    """The collector runs while krait names functions and writes events: each event comes after the one before it."""
    program = """
        import gc, logging, sys, warnings
        gc.set_threshold(1, 1, 1)
        logging.root.addHandler(logging.NullHandler())
        for n in range(int(sys.argv[1])):
            scope = {}
            exec(f"def f{n}(x):\\n    class C:\\n        pass\\n    return [C() for _ in range(3)]", scope)
            scope[f"f{n}"](n)
            logging.warning("n %s", [n])
    """
    times = rounds(100, 300)
    run = record.text(python, program, times, options=["--gc", "--log", ":DEBUG", "--imports", "--audit", "exec"]).check()
    assert len(run.notes("log:record")) == times and len(spans(run, "gc")) > times
