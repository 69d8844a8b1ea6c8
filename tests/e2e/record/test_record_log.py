# SPDX-License-Identifier: Apache-2.0
"""--log: log records, warnings and uncaught exceptions are recorded, and the program notices nothing of it."""

import json
import os
import re
import subprocess
import sysconfig

import pytest

from package import PACKAGE
from recording import Recording

# What a program can see of its own logging; printed, and the same with krait and without.
SELF_PORTRAIT = """
    import copy, inspect, logging, logging.config, pickle, sys, threading, types, warnings, weakref
    logging.basicConfig(format="%(levelname)s:%(name)s:%(funcName)s:%(lineno)d:%(message)s", stream=sys.stdout)
    log = logging.getLogger("app.db")
    seen = []
    class Filter(logging.Filter):
        def filter(self, record):
            seen.append(record.getMessage())
            record.request = "r1"
            return "secret" not in record.msg
    log.addFilter(Filter())
    def work():
        log.debug("dropped"); log.info("dropped %s", 1); log.warning("kept %s", 2); log.error("secret")
        log.log(35, "between", stacklevel=1)
        logging.LoggerAdapter(log, {"a": 1}).warning("adapted")
        logging.warning("root")
    work()
    class Loud(logging.Logger):
        def isEnabledFor(self, level):
            seen.append(level)
            return super().isEnabledFor(level)
        def handle(self, record):
            seen.append(record.levelno)
            super().handle(record)
    logging.setLoggerClass(Loud)
    loud = logging.getLogger("loud")
    loud.debug("x"); loud.warning("y")
    factory = logging.getLogRecordFactory()
    logging.setLogRecordFactory(lambda *a, **k: factory(*a, **k))
    log.warning("by a factory")
    logging.setLogRecordFactory(factory)
    logging.config.dictConfig({"version": 1, "disable_existing_loggers": True, "loggers": {"fresh": {"level": "INFO"}}})
    log.warning("disabled"); logging.getLogger("fresh").info("fresh")
    print(seen, log.disabled, [log.isEnabledFor(n) for n in (10, 30)], log.getEffectiveLevel(), log._cache)
    print([len(l.handlers) for l in (logging.root, log, loud)], logging.root.handlers, logging._handlers.valuerefs().__len__())
    print(pickle.loads(pickle.dumps(log)) is log, type(loud).__mro__[1] is logging.Logger)
    for owner, name in [(logging.Logger, n) for n in ("callHandlers", "handle", "isEnabledFor", "debug", "log", "_log")] + [
        (logging.LoggerAdapter, "log"), (warnings, "_showwarnmsg"), (threading, "_make_invoke_excepthook")]:
        f = getattr(owner, name)
        print(name, isinstance(f, types.FunctionType), inspect.isfunction(f), f.__name__, f.__qualname__, f.__module__, f.__defaults__,
              f.__code__.co_name, inspect.signature(f), len(inspect.getsource(f)), repr(f).split(" at ")[0], f == f, hash(f) == hash(f),
              callable(f), f.__get__(log).__name__, pickle.loads(pickle.dumps(f)) is f, weakref.ref(f)() is f, copy.deepcopy(f) is f)
    print(sys.excepthook is sys.__excepthook__, sys.unraisablehook is sys.__unraisablehook__, threading.excepthook)
    print(warnings.showwarning.__module__, sorted(n for n in vars(logging) if "krait" in n), "krait" in sys.modules)
"""


def portrait(text):
    return re.sub(r" at 0x\w+|0x\w+", "", text)


@pytest.mark.few_pythons
def test_a_program_sees_its_logging_as_it_is(record, python):
    alone = python.run(record.script(SELF_PORTRAIT), cwd=record.folder)
    assert alone.returncode == 0, alone.stderr
    for asked in (["--log"], ["--log", ":DEBUG"], ["--log", "app:DEBUG", "--log", "nothing"]):
        run = record.text(python, SELF_PORTRAIT, options=asked).check()
        assert portrait(run.stdout) == portrait(alone.stdout)
        assert run.stderr.startswith(alone.stderr)


RECORDS = """
    import logging
    log = logging.getLogger("app.db")
    logging.getLogger().addHandler(logging.NullHandler())
    def work():
        log.warning("rows: %d of %s", 3, "table", extra={"user": "é", "n": 7, "list": [1, None, 2.5], "who": object})
        log.info("dropped by the program")
        try:
            {}["key"]
        except KeyError:
            log.exception("no %(what)s", {"what": "luck"})
    work()
    logging.getLogger("other").error("plain")
"""


@pytest.mark.every_python
def test_a_record_has_its_fields(record, python):
    run = record.text(python, RECORDS, options=["--log"]).check()
    first, second, third = run.notes("log:record")
    assert (first["level"], first["logger"], first["message"]) == (30, "app.db", "rows: 3 of table")
    assert (first["func"], first["line"], first["task"], first["exception"]) == ("work", 6, "-", "-")
    assert first["file"].endswith("/app.py") and first["tid"] == run.main.pid
    assert json.loads(first["extra"]) == {"user": "é", "n": 7, "list": [1, None, 2.5], "who": "<class 'object'>"}
    assert (second["level"], second["message"], second["extra"]) == (40, "no luck", "{}")
    lines = second["exception"].splitlines()
    assert lines[0] == "KeyError: 'key'" and re.fullmatch(r'  File ".*/app.py", line 9, in work', lines[1]) and len(lines) == 2
    assert (third["logger"], third["message"], third["func"]) == ("other", "plain", "<module>")


def test_names_globs_and_levels_choose(record, any_python):
    program = """
        import logging
        logging.addLevelName(5, "TRACE")
        logging.root.addHandler(logging.NullHandler())
        for name in ("app", "app.db", "app.db.pool", "apple", "lib.net"):
            log = logging.getLogger(name)
            for level in (5, 10, 30, 50):
                log.log(level, "")
        logging.critical("")
    """

    def chosen(*asked):
        options = [word for spec in asked for word in ("--log", spec)]
        run = record.text(any_python, program, options=options)
        return {(n["logger"], n["level"]) for n in run.notes("log:record")}

    passed = {(name, level) for name in ("app", "app.db", "app.db.pool", "apple", "lib.net") for level in (30, 50)} | {("root", 50)}
    assert chosen("") == passed
    assert chosen("app") == {(name, level) for name, level in passed if name.split(".")[0] == "app"}
    assert chosen("app:CRITICAL", "app.db:10") == {("app", 50), *((n, k) for n in ("app.db", "app.db.pool") for k in (10, 30, 50))}
    assert chosen("*.p*:TRACE") == {("app.db.pool", level) for level in (5, 10, 30, 50)}
    assert chosen("root:critical", "app:off") == {("apple", 50), ("lib.net", 50), ("root", 50)}
    assert chosen("app.db:NO_SUCH") == set()


@pytest.mark.parametrize("level, near", [("DEBG", "DEBUG"), ("debg", "DEBUG"), ("ERR", "ERROR"), ("WARNIGN", "WARNING"), ("FO", None), ("DEBUG2", None), ("TRACE", None), ("warn", None), ("25", None)])
@pytest.mark.parametrize("verb", ["record", "pid"])
def test_a_mistyped_level_is_refused_before_the_program_runs(krait, tmp_path, verb, level, near):
    command = {"record": ["--", "touch", tmp_path / "ran"], "pid": ["--pid", "999999999"]}[verb]
    done = subprocess.run([krait, "record", "-o", tmp_path / "t", "--log", f"app:{level}", *command], capture_output=True, text=True)
    told = f"--log: 'app:{level}': there is no level '{level}'; did you mean '{near}'? If the program has a level of that name, give its number"
    assert (told in done.stderr) == bool(near) and ("no level" in done.stderr) == bool(near)
    assert not near or done.returncode == 2
    assert (tmp_path / "ran").exists() == (verb == "record" and not near)


def test_a_level_that_the_program_does_not_have_is_told_at_the_end(record, any_python):
    """Of a logger that nobody uses, the level may be known later; so may that of a logger that is used before."""
    program = """
        import logging
        logging.root.addHandler(logging.NullHandler())
        logging.getLogger("late").error("one")
        logging.addLevelName(5, "TRACE")
        logging.addLevelName(6, "LATER")
        for name in ("app", "app.db", "late", "lib"):
            logging.getLogger(name).error("two")
    """
    asked = ["app:TRACK", "app.db:TRACE", "late:LATER", "unused:LOUD", "lib:INFO"]
    run = record.text(any_python, program, options=["--include=*/app.py", "--exclude=nothing", *(word for spec in asked for word in ("--log", spec))])
    told = [line.strip() for line in run.stderr.splitlines() if "--log" in line]
    assert told == ["--log 'app:TRACK': the program has no level 'TRACK' (logging.addLevelName), so krait recorded nothing of these loggers",
                    "--log 'unused:LOUD': no logger of that name or below it has logged anything; loggers that have: late, app, app.db, lib"]
    assert [(n["logger"], n["message"]) for n in run.notes("log:record")] == [("app.db", "two"), ("late", "two"), ("lib", "two")]


@pytest.mark.parametrize("asked, told", [
    (["bakry"], ["--log 'bakry': no logger of that name or below it has logged anything that passed its level; did you mean 'bakery'?"]),
    (["bakery", "child:DEBUG", "bakery.oven.door:DEBUG", "root", "py.warnings", "none:off", "*ery*", ""], []),
    (["quiet", "quiet:INFO", "bakery.ovn:DEBUG"], ["--log 'bakery.ovn:DEBUG': no logger of that name or below it has logged anything; did you mean 'bakery.oven'?"]),
    (["quiet", "n*t"], [f"--log '{name}': no logger {which} has logged anything that passed its level{also}; loggers that have: bakery.oven.door, shop, py.warnings, root, child"
                        for name, which, also in (("quiet", "of that name or below it", " (--log 'quiet:INFO' records from INFO up)"), ("n*t", "like that", ""))]),
], ids=["near", "all met", "dropped ones", "none near"])
def test_a_logger_that_has_logged_nothing_is_told_at_the_end(record, any_python, asked, told):
    program = """
        import logging, os, warnings
        logging.root.addHandler(logging.NullHandler())
        logging.captureWarnings(True)
        for name in ("bakery.oven.door", "shop"):
            logging.getLogger(name).error("one")
        logging.getLogger("quiet").info("below its level")
        warnings.warn("two")
        logging.error("three")
        if os.fork() == 0:
            logging.getLogger("child").error("four")
            os._exit(0)
        os.wait()
    """
    run = record.text(any_python, program, options=[word for spec in asked for word in ("--log", spec)])
    assert [line.strip() for line in run.stderr.splitlines() if "--log" in line] == told


@pytest.mark.parametrize("options, told", [([], True), (["--idle"], False)], ids=["on", "never on"])
def test_a_program_that_logs_nothing(record, any_python, options, told):
    run = record(any_python, "-c", "pass", options=["--log", "app", *options])
    assert ("--log 'app': no logger of that name or below it has logged anything that passed its level (--log 'app:INFO' records from INFO up), nor has any other logger" in run.stderr) == told


def test_start_refuses_a_mistyped_level(any_python, tmp_path):
    program = "import krait\ntry:\n    krait.start('t', log=['app:DEBG'])\nexcept Exception as e:\n    print(e)\n"
    done = any_python.run("-c", program, cwd=tmp_path, env={**os.environ, **PACKAGE})
    assert "did you mean 'DEBUG'?" in done.stdout, done


@pytest.mark.few_pythons
def test_keys_of_extra_are_those_of_json(record, python):
    program = """
        import logging
        log = logging.getLogger("app")
        logging.root.addHandler(logging.NullHandler())
        extra = {7: 1, None: {True: 2, (): 3}, (1, 2): 4, "s": 5}
        log.warning("kept", extra=extra)
        log.debug("dropped", extra=extra)
        log.warning("none", extra={(): 1})
        log.warning("long", extra={"long": {(): 0, **{n: "x" * 500 for n in range(20)}}})
    """
    *notes, last = record.text(python, program, options=["--log", ":DEBUG"]).check().notes("log:record")
    written = {"7": 1, "null": {"true": 2, "…": "[1 more]"}, "s": 5, "…": "[1 more]"}
    assert [(n["message"], json.loads(n["extra"])) for n in notes] == [("kept", written), ("dropped", written), ("none", {"…": "[1 more]"})]
    long = json.loads(last["extra"])["long"]
    kept = [key for key in long if key != "…"]
    assert kept == [str(n) for n in range(len(kept))] and 1 < len(kept) < 20 and long["…"] == f"[{21 - len(kept)} more]"


@pytest.mark.few_pythons
def test_what_the_program_drops_is_recorded_where_a_level_is_named(record, python):
    program = """
        import logging
        log = logging.getLogger("app")
        asked = []
        class Item:
            def __repr__(self):
                asked.append(1)
                return "item"
        def work():
            log.debug("one %s %r", 1, Item(), extra={"k": 2})
            logging.LoggerAdapter(log, {"job": 7}).info("adapted")
            log.log(15, "two", stacklevel=2)
            logging.debug("of root")
            try:
                1 / 0
            except ZeroDivisionError:
                log.info("failed", exc_info=True)
        def outer():
            work()
        logging.root.addHandler(logging.NullHandler())
        logging.root.setLevel(logging.ERROR)
        outer()
        logging.disable(logging.CRITICAL)
        log.critical("disabled")
        print(len(asked), log._cache)
    """
    run = record.text(python, program, options=["--log", ":DEBUG"]).check()
    notes = run.notes("log:record")
    said = [(n["level"], n["logger"], n["message"], n["func"], n["line"]) for n in notes]
    at = 10
    assert said == [
        (10, "app", "one 1 item", "work", at),
        (20, "app", "adapted", "work", at + 1),
        (15, "app", "two", "outer", at + 9),
        (10, "root", "of root", "work", at + 3),
        (20, "app", "failed", "work", at + 7),
        (50, "app", "disabled", "<module>", at + 14),
    ]
    assert [json.loads(n["extra"]) for n in notes[:3]] == [{"k": 2}, {"job": 7}, {}]
    assert notes[4]["exception"].splitlines()[0] == "ZeroDivisionError: division by zero"
    assert run.stdout == "1 {50: False}\n"
    without = record.text(python, program, options=["--log"])
    assert without.notes("log:record") == [] and without.stdout == "0 {50: False}\n"


@pytest.mark.few_pythons
def test_nobody_is_formatted_for_who_did_not_ask(record, python):
    program = """
        import logging
        log, count = logging.getLogger("app"), []
        class Item:
            def __str__(self):
                count.append(1)
                return "item"
        logging.root.addHandler(logging.NullHandler())
        log.warning("%s", Item())
        log.debug("%s", Item())
        print(len(count))
    """
    for asked, formatted in ((["--log", "other"], 0), (["--log", ":ERROR"], 0), ([], 0), (["--log", "app"], 1), (["--log", "app:DEBUG"], 2)):
        run = record.text(python, program, options=asked)
        assert (run.stdout, len(run.notes("log:record"))) == (f"{formatted}\n", formatted), asked


@pytest.mark.few_pythons
def test_messages_that_cannot_be_formatted(record, python):
    program = r"""
        import logging, sys
        log = logging.getLogger("app")
        logging.root.addHandler(logging.NullHandler())
        class Bad:
            def __repr__(self): raise ValueError("no")
        class Worse:
            def __str__(self): raise SystemExit(3)
        log.warning("count %d", "x")
        log.warning("too few %s %s", 1)
        log.warning("bad %s", Bad())
        log.warning(Bad())
        log.warning("surrogate \ud800 and nul \0 here")
        log.warning("x" * 10_000_000)
        log.warning("big %s", ["y" * 3000] * 1000, extra={f"k{i}": "z" * 200 for i in range(100)} | {"deep": [[[[[[1]]]]]]} if sys.version_info >= (3, 9) else None)
        log.warning("loop %s", (lambda l: l.append(l) or l)([]))
        try:
            log.warning("worse %s", Worse())
        except SystemExit as e:
            print("exits", e.code)
        log.warning({"msg": "no text", "n": 1})
    """
    run = record.text(python, program, options=["--log"]).check()
    said = [n["message"] for n in run.notes("log:record")]
    assert said[:2] == ["count %d % ('x',)", "too few %s %s % (1,)"]
    assert said[2] == "bad %s % <tuple>" and said[3] == "<Bad> % ()"
    assert said[4] == "surrogate \\ud800 and nul \\x00 here"
    assert said[5] == "x" * 8192 + "… [cut: 10000000 characters]"
    assert said[6].startswith("big ['yyy") and said[6].endswith(" characters]") and len(said[6]) < 8300
    assert said[7:] == ["loop [[...]]", "{'msg': 'no text', 'n': 1}"]
    assert run.stdout == "exits 3\n"
    extra = json.loads(run.notes("log:record")[6]["extra"])
    if python.number >= (3, 9):
        assert 10 < len(extra) < 100 and re.fullmatch(r"\[\d+ more\]", extra["…"]) and extra["k0"] == "z" * 200


@pytest.mark.few_pythons
def test_what_is_logged_while_krait_formats_is_said_once(record, python):
    program = """
        import logging, sys
        logging.basicConfig(format="%(message)s", stream=sys.stdout)
        log = logging.getLogger("app")
        class Item:
            def __str__(self):
                log.warning("inside")
                return "item"
        class Other(Exception):
            def __str__(self):
                log.error("in an exception")
                return "other"
        log.warning("outside %s", Item())
        try:
            raise Other
        except Other as e:
            log.error("caught %s", 1, extra={"why": e})
    """
    alone = python.run(record.script(program))
    run = record.text(python, program, options=["--log"]).check()
    assert run.stdout == alone.stdout
    said = [n["message"] for n in run.notes("log:record")]
    assert sorted(said) == sorted(alone.stdout.splitlines()) and said[0] == "outside item"


def test_an_exception_of_a_signals_handler_is_the_programs(record, python):
    """A signal that arrives while krait formats is not swallowed with what it raises."""
    program = """
        import logging, os, signal
        log = logging.getLogger("app")
        logging.root.addHandler(logging.NullHandler())
        class Alarm(Exception): pass
        def on_signal(*_): raise Alarm
        signal.signal(signal.SIGUSR1, on_signal)
        armed = [True]
        class Item:
            def __str__(self):
                if armed:
                    armed.clear()
                    os.kill(os.getpid(), signal.SIGUSR1)
                    for _ in range(1000): pass
                return "item"
        try:
            log.warning("%s", Item())
            print("lost")
        except Alarm:
            print("raised")
        log.warning("%s", Item())
    """
    run = record.text(python, program, options=["--log"]).check()
    assert run.stdout == "raised\n"
    assert [n["message"] for n in run.notes("log:record")] == ["item"]


@pytest.mark.few_pythons
def test_handlers_that_raise(record, python):
    program = """
        import logging
        class Bad(logging.Handler):
            def handle(self, record): raise OSError("handler")
        log = logging.getLogger("app")
        log.addHandler(Bad())
        for _ in range(3):
            try:
                log.warning("told")
            except OSError as e:
                print(e)
    """
    run = record.text(python, program, options=["--log"]).check()
    assert run.stdout == "handler\n" * 3 and len(run.notes("log:record")) == 3


@pytest.mark.few_pythons
def test_tasks_threads_and_forks(record, python):
    program = """
        import asyncio, logging, os, sys, threading
        log = logging.getLogger("app")
        logging.root.addHandler(logging.NullHandler())
        async def job(n):
            log.warning("job %d", n)
        async def main():
            tasks = [asyncio.ensure_future(job(n)) for n in range(2)]
            for n, task in enumerate(tasks):
                task.set_name("named-%d" % n)
            await asyncio.gather(*tasks)
        asyncio.run(main())
        def work():
            for n in range(200):
                log.error("thread %d", n)
        threads = [threading.Thread(target=work) for _ in range(4)]
        for t in threads: t.start()
        for t in threads: t.join()
        pid = os.fork()
        log.warning("child" if not pid else "parent")
        if pid:
            assert os.waitpid(pid, 0)[1] == 0
        else:
            os._exit(0)
    """
    run = record.text(python, program, options=["--log"]).check(ended=False)
    notes = run.notes("log:record")
    tasks = {n["message"]: n["task"] for n in notes if n["message"].startswith("job")}
    assert tasks == {"job 0": "named-0", "job 1": "named-1"}
    threads = [n for n in notes if n["message"].startswith("thread")]
    assert len(threads) == 800 and len({n["tid"] for n in threads}) == 4 and {n["task"] for n in threads} == {"-"}
    by_process = [{n["message"] for t in p.threads for n in [e.fields for e in t.events if e.name == "log:record"]} for p in run.processes]
    assert ["child" in said for said in by_process] == [False, True] and ["parent" in said for said in by_process] == [True, False]
    assert {p.codes[e.fields["logger"]].qualname for p in run.processes for t in p.threads for e in t.events if e.name == "log:record"} == {"app"}


@pytest.mark.few_pythons
def test_logging_that_is_reloaded_or_replaced(record, python):
    program = """
        import importlib, logging
        logging.root.addHandler(logging.NullHandler())
        logging.warning("first")
        importlib.reload(logging)
        logging.root.addHandler(logging.NullHandler())
        logging.warning("second")
        own = logging.Logger.callHandlers
        def patched(self, record):
            own(self, record)
        logging.Logger.callHandlers = patched
        logging.warning("third")
        logging.Logger.callHandlers = own
        logging.warning("fourth")
    """
    run = record.text(python, program, options=["--log"]).check()
    assert [n["message"] for n in run.notes("log:record")] == ["first", "second", "third", "fourth"]


ON_FEW = [pytest.param(options, marks=pytest.mark.few_pythons) for options in (["--include", "nothing*"], ["--call-sites"])]


@pytest.mark.parametrize("options", [["--max-overhead", "1"], *ON_FEW], ids=lambda o: o[0])
def test_records_do_not_depend_on_which_calls_are_recorded(record, python, options):
    program = """
        import logging
        logging.root.addHandler(logging.NullHandler())
        log = logging.getLogger("app")
        def f(n): return n
        for n in range(600):
            for i in range(30): f(i)
            log.warning("n %d", n)
    """
    run = record.text(python, program, options=["--log", "--exclude", "logging*", *options], ok=False)
    assert [n["message"] for n in run.notes("log:record")] == [f"n {n}" for n in range(600)]


@pytest.mark.few_pythons
def test_a_program_that_takes_the_hooks(record, python):
    program = """
        import cProfile, logging, sys
        logging.root.addHandler(logging.NullHandler())
        logging.warning("before")
        profile = cProfile.Profile()
        profile.enable()
        logging.warning("meanwhile")
        profile.disable()
        logging.warning("after")
    """
    run = record.text(python, program, options=["--log"])
    assert [n["message"] for n in run.notes("log:record")] == ["before", "meanwhile", "after"]


def test_warnings_and_uncaught_exceptions(record, python):
    program = """
        import sys, threading, warnings
        class Old(DeprecationWarning): pass
        warnings.simplefilter("default")
        def use():
            warnings.warn("it is old", Old, stacklevel=2)
        use()
        warnings.simplefilter("ignore")
        use()
        def fail(): raise ValueError("in a thread")
        def leave(): raise SystemExit
        for target in (fail, leave):
            t = threading.Thread(target=target)
            t.start(); t.join()
        class Del:
            def __repr__(self): return "Del()"
            def __del__(self): raise RuntimeError("in __del__")
        d = Del(); del d
        print(sys.excepthook is sys.__excepthook__)
        def end(): raise KeyError("at last")
        end()
    """
    alone = python.run(record.script(program), cwd=record.folder)
    run = record.text(python, program, options=["--log"], ok=False).check()
    assert run.status == alone.returncode == 1 and run.stdout == alone.stdout == "True\n"
    assert portrait(run.stderr).startswith(portrait(alone.stderr).replace("Thread-1 (fail)", "Thread-1 (fail)"))
    (warning,) = run.notes("warning:shown")
    assert (warning["category"], warning["message"], warning["line"]) == ("Old", "it is old", 7)
    thread, unraisable, main = run.notes("exception:uncaught")
    assert (thread["hook"], thread["type"]) == ("threading.excepthook", "ValueError")
    assert thread["exception"].splitlines()[:2][0] == "ValueError: in a thread" and ", in fail" in thread["exception"].splitlines()[1]
    assert thread["tid"] != run.main.pid == main["tid"]
    assert (unraisable["hook"], unraisable["type"]) == ("sys.unraisablehook", "RuntimeError") and "__del__" in unraisable["where"]
    assert (main["hook"], main["type"], main["exception"].splitlines()[0]) == ("sys.excepthook", "KeyError", "KeyError: 'at last'")
    assert run.notes("log:record") == []


@pytest.mark.few_pythons
@pytest.mark.parametrize("options, logged", [(["--log"], ["one"]), (["--log", "py.warnings:WARNING"], ["one", "two"])], ids=["passed", "dropped"])
def test_a_warning_that_logging_captures_is_recorded_once(record, python, options, logged):
    program = """
        import logging, warnings
        logging.root.addHandler(logging.NullHandler())
        logging.captureWarnings(True)
        warnings.warn("one")
        logging.root.setLevel("ERROR")
        warnings.warn("two")
        logging.captureWarnings(False)
        warnings.warn("three")
    """
    notes = record.text(python, program, options=options).check().notes("log:record", "warning:shown")
    found = [(n["event"], n.get("logger"), n["message"].partition("UserWarning: ")[2].split("\n")[0] or n["message"]) for n in notes]
    assert found == [*(("log:record", "py.warnings", message) for message in logged), ("warning:shown", None, "three")]


@pytest.mark.few_pythons
def test_warnings_are_of_the_logger_py_warnings(record, python):
    program = "import warnings; warnings.warn('w')"
    counts = {spec: len(record.text(python, program, options=["--log", spec]).notes("warning:shown")) for spec in ("", "app", "py.warnings", ":ERROR")}
    assert counts == {"": 1, "app": 0, "py.warnings": 1, ":ERROR": 0}


@pytest.mark.few_pythons
def test_warnings_that_the_program_catches(record, python):
    program = """
        import warnings
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warnings.warn("caught")
        shown = []
        warnings.showwarning = lambda message, *rest: shown.append(str(message))
        warnings.warn("shown")
        print([str(w.message) for w in caught], shown)
    """
    run = record.text(python, program, options=["--log"]).check()
    assert run.stdout == "['caught'] ['shown']\n"
    assert [n["message"] for n in run.notes("warning:shown")] == ["caught", "shown"]


def test_a_recording_that_the_program_begins_leaves_logging_as_it_was(record, python, tmp_path):
    program = """
        import logging, sys, threading, warnings
        import krait
        logging.root.addHandler(logging.NullHandler())
        def functions():
            return [logging.Logger.__dict__["callHandlers"], logging.Logger.__dict__["debug"], warnings._showwarnmsg, threading._make_invoke_excepthook]
        before = functions()
        logging.warning("before")
        for n in (1, 2):
            krait.start(sys.argv[1] + str(n), log=[":DEBUG"])
            logging.debug("meanwhile %d", n)
            warnings.warn("w")
            krait.stop()
            logging.warning("after")
        print([a is b for a, b in zip(before, functions())], [type(f).__name__ for f in functions()], [sys.getrefcount(f) for f in before])
    """
    run = python.run(record.script(program), tmp_path / "t", env={**os.environ, **PACKAGE})
    assert run.returncode == 0, run.stderr
    same, types, counts = re.fullmatch(r"(\[.*?\]) (\[.*?\]) (\[.*\])\n", run.stdout).groups()
    assert same == str([True] * 4) and types == str(["function"] * 4)
    for n in (1, 2):
        notes = Recording(tmp_path / f"t{n}").notes("log:record")
        assert [n["message"] for n in notes] == [f"meanwhile {n}"]


def test_a_handler_takes_what_loguru_and_structlog_say(record, any_python):
    program = """
        import sys
        sys.modules["greenlet"] = None  # the tests' environment has it, and structlog would import it: not what this is about
        import krait, logging, loguru, structlog
        loguru.logger.remove()
        loguru.logger.add(krait.Handler(), format="{message}")
        structlog.configure(logger_factory=structlog.stdlib.LoggerFactory(), wrapper_class=structlog.stdlib.BoundLogger,
                            processors=[structlog.stdlib.render_to_log_kwargs])
        logging.root.addHandler(logging.NullHandler())
        def work():
            loguru.logger.bind(user=3).warning("by {}", "loguru")
            structlog.get_logger("orders").bind(order=4).error("billed", total=5)
        work()
    """
    places = [PACKAGE["PYTHONPATH"], sysconfig.get_path("purelib")]  # both are pure Python, and do for every version
    run = record.text(any_python, program, options=["--log"], env={"PYTHONPATH": os.pathsep.join(places)}).check()
    by_loguru, by_structlog = run.notes("log:record")
    assert (by_loguru["level"], by_loguru["message"], by_loguru["func"]) == (30, "by loguru", "work")
    assert json.loads(by_loguru["extra"]) == {"extra": {"user": 3}}
    assert (by_structlog["logger"], by_structlog["message"]) == ("orders", "billed")
    assert json.loads(by_structlog["extra"]) == {"order": 4, "total": 5}


@pytest.mark.parametrize("options", [[], ["--log"]])
def test_a_handler_records_each_of_many_records_that_come_without_a_logger(record, python, options):
    """As loguru gives them: each is freed before the next one is made, which may then be at its address."""
    program = """
        import krait, logging
        handler = krait.Handler()
        def say(n):
            handler.handle(logging.LogRecord("plain", 20, "file", n, "record %d", (n,), None, "say"))
        for n in range(50):
            say(n)
        log = logging.getLogger("both")
        log.addHandler(handler)
        for n in range(50):
            log.warning("both %d", n)
            say(n)
    """
    notes = record.text(python, program, options=options, env={"PYTHONPATH": PACKAGE["PYTHONPATH"]}).check().notes("log:record")
    plain = [f"record {n}" for n in range(50)]
    assert [n["message"] for n in notes] == plain + [text for n in range(50) for text in (f"both {n}", f"record {n}")]


OF_TRIO = """
    import logging, threading, trio
    log = logging.getLogger("app")
    logging.root.addHandler(logging.NullHandler())
    async def job(n):
        log.error("job")
        await trio.sleep(0)
    async def main():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(job, 0, name="named")
            nursery.start_soon(job, 1)
        await trio.to_thread.run_sync(log.error, "none")
    trio.run(main)
    log.error("none")
"""
OF_GEVENT = """
    import logging, gevent
    log = logging.getLogger("app")
    logging.root.addHandler(logging.NullHandler())
    def job(name):
        if name:
            gevent.getcurrent().name = name
        gevent.sleep(0)
        log.error("job")
    gevent.joinall([gevent.spawn(job, "named"), gevent.spawn(job, None)])
    log.error("none")
"""


@pytest.mark.few_pythons
@pytest.mark.parametrize("packages, program, unnamed, none", [(["trio", "anyio"], OF_TRIO, r"__main__\.job", 2), (["gevent"], OF_GEVENT, r"greenlet-\d+", 1)], ids=["trio", "gevent"])
def test_records_have_the_task_of_trio_or_the_greenlet(record, python, venv, packages, program, unnamed, none):
    run = record.text(venv(python, *packages), program, options=["--log"]).check(ended=False)  # trio keeps threads
    notes = run.notes("log:record")
    named, other = sorted((n["task"] for n in notes if n["message"] == "job"), key=lambda name: name != "named")
    assert named == "named" and re.fullmatch(unnamed, other), notes
    assert [n["task"] for n in notes if n["message"] == "none"] == ["-"] * none
