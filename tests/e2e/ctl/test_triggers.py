# SPDX-License-Identifier: Apache-2.0
"""krait record --snapshot-on: what takes a snapshot, what does not, and what is no trigger."""

import os
import re
import signal

import pytest

from recording import Recording
from running import wait_for
from told import attached, told  # noqa: F401  (attached, told: fixtures)

PROGRAM = """
import asyncio, logging, os, sys, threading, time
sys.path.insert(0, {package!r})
import krait
def report(what): print(what, flush=True)
class Own(Exception): pass
class Special(Own): pass
def local():
    class Own(Exception): pass
    return Own
def quick(): return 1
def slow(seconds): time.sleep(seconds); return 2
def outer(seconds):
    for i in range(3): quick()
    return slow(seconds)
def fail(kind):
    try:
        raising(kind)
    except Exception:
        return 3
def raising(kind): raise kind("x")
def span(name, seconds):
    with krait.span(name): time.sleep(seconds)
def say(text): logging.getLogger("app").warning(text)
def mark(text): krait.mark(text)
def beside(text):
    thread = threading.Thread(target=say, args=(text,))
    thread.start()
    thread.join()
def tasks(*seconds):
    async def one(seconds):
        krait.mark("begin")
        await asyncio.sleep(seconds)
        krait.mark("end")
    async def main(): await asyncio.gather(*map(one, seconds))
    asyncio.run(main())
def fork():
    child = os.fork()
    if child: return child
    quick()
    while True: time.sleep(0.01)
def log(level): logging.getLogger("app").log(level, "said")
def stall(seconds):
    async def step(): time.sleep(seconds)
    async def main(): await asyncio.create_task(step(), name="hub")  # which gevent's hub is not
    asyncio.run(main())
def wait_for_the_gil():
    sys.setswitchinterval(0.3)
    ready = threading.Event()
    def takes():
        ready.set()
        sum(range(30_000_000))
    thread = threading.Thread(target=takes)
    thread.start()
    ready.wait()
    quick()
    thread.join()
def held():  # the snapshot takes the events of its begin; the next ones are read up to a second later
    begin = time.perf_counter()
    krait.snapshot()
    return time.perf_counter() - begin
def and_wait(what):
    took = what()
    time.sleep(1.2)
    return took
def held_step():
    async def main(): return await asyncio.create_task(step())
    async def step(): return held()
    took = asyncio.run(main())
    time.sleep(1.2)
    return took
def held_span():
    with krait.span("held"): took = held()
    time.sleep(1.2)
    return took
def take(size):
    global kept
    kept = b"x" * size
report(os.getpid())
for line in sys.stdin: eval(line)
"""


@pytest.fixture
def app(told, krait):  # noqa: F811
    """app(python, *triggers, more=options): a Told."""
    text = PROGRAM.replace("{package!r}", repr(os.path.join(os.path.dirname(krait), "python")))
    return lambda python, *triggers, more=(): told(python, *(w for t in triggers for w in ("--snapshot-on", t)), *more, text=text)


@pytest.fixture
def attached_app(attached, krait):  # noqa: F811
    """attached_app(python, *options): as attached(), of this program."""
    text = PROGRAM.replace("{package!r}", repr(os.path.join(os.path.dirname(krait), "python")))
    return lambda python, *options: attached(python, *options, text=text)


def snapshots(app):
    return sorted(p for p in app.folder.parent.glob("trace1-snapshot-*") if not p.name.endswith(".part"))


def first_of(app):
    return Recording(wait_for(lambda: snapshots(app), "the snapshot")[0])


@pytest.mark.few_pythons
def test_a_call_that_takes_long(app, python):
    app = app(python, "call:__main__.slow>100ms")
    app.tell("outer(0)")
    app.tell("quick()")
    assert not snapshots(app)
    app.tell("outer(0.15)")
    taken = first_of(app)
    assert taken.calls()["slow"] == 2
    app.end()
    folder = snapshots(app)[0]
    assert f"krait record: snapshot in {folder}: call:__main__.slow>100ms, a call" in app.stderr


@pytest.mark.few_pythons
def test_a_call_that_has_ended_lasts_no_longer(app, python):
    app = app(python, "call:held>300ms", "loop>300ms", "span:held>300ms")
    took = [float(app.tell(what)) * 1000 for what in ("and_wait(held)", "held_step()", "held_span()")]
    app.end()
    for what, unit in re.findall(r"(?:has taken|call took|span took|stood still for) ([0-9.]+) (m?s)", app.stderr):
        assert float(what) * (1 if unit == "ms" else 1000) <= max(took) + 1, (took, app.stderr)


@pytest.mark.few_pythons
def test_a_call_that_has_not_ended(app, python):
    app = app(python, "call:slow>50ms")
    app.process.stdin.write("slow(20)\n")
    app.process.stdin.flush()
    taken = first_of(app)
    _, still_open = taken.main.shape(next(t for t in taken.main.threads if t.tid == app.pid), told=False)
    assert "slow" in still_open
    os.kill(app.pid, signal.SIGKILL)
    app.process.communicate()


def test_a_function_of_c(app, any_python):
    app = app(any_python, "call:time.sleep>100ms")
    app.tell("slow(0.01)")
    app.tell("slow(0.2)")
    first_of(app)
    app.end()


@pytest.mark.few_pythons
def test_a_span_that_takes_long(app, python):
    app = app(python, "span:load*>100ms")
    app.tell("span('load', 0)")
    app.tell("span('other', 0.2)")
    app.tell("0")
    assert not snapshots(app)
    app.tell("span('load it', 0.2)")
    assert [n["name"] for n in first_of(app).notes("span:begin")] == ["load", "other", "load it"]
    app.end()


@pytest.mark.few_pythons
@pytest.mark.parametrize("trigger, raised", [("exception:*.Own", "Own"), ("exception:local.<locals>.Own", "local()")])
def test_an_exception_of_a_type(app, python, trigger, raised):
    app = app(python, trigger)
    app.tell("fail(ValueError)")
    app.tell("fail(Special)")  # its type's name is not of the pattern
    app.tell("0")
    assert not snapshots(app)
    app.tell(f"fail({raised})")
    first_of(app)
    app.end()
    assert re.search(rf"{re.escape(trigger)}, \S*{'Own' if raised == 'local()' else raised} left a function", app.stderr)


@pytest.mark.few_pythons
def test_a_version_that_does_not_tell_all_types_is_warned_of(app, python):
    app = app(python, "exception:*.Own", "exception:Other")
    app.tell("fail(Own)")
    app.end()
    assert snapshots(app), app.stderr
    warned = f"krait record: --snapshot-on exception:*.Own may miss exceptions in process {app.pid}: CPython 3." in app.stderr
    assert warned == (python.number < (3, 12)), app.stderr
    assert app.stderr.count("may miss") == warned


@pytest.mark.few_pythons
def test_two_messages_that_are_far_apart(app, python):
    app = app(python, "between:begin *..end *>500ms", more=["--log=app:DEBUG"])
    app.tell("say('begin 1')")
    app.tell("say('end 1')")
    app.tell("say('end 2')")  # without a begin
    app.tell("(say('begin 2'), say('begin 3'), mark('end 3'))")
    app.tell("beside('begin 4')")
    app.tell("say('end 4')")  # of another thread
    assert not snapshots(app)
    app.tell("(mark('begin 5'), slow(0.6), say('end 5'))")
    taken = first_of(app)
    assert [n["message"] for n in taken.notes("log:record")][:2] == ["begin 1", "end 1"]
    assert [n["text"] for n in taken.notes("user:mark")] == ["end 3", "begin 5"]
    app.end()
    assert "between:begin *..end *>500ms, the second message " in app.stderr


def test_a_second_message_that_does_not_come(app, any_python):
    app = app(any_python, "between:begin..end>50ms")
    app.tell("mark('begin')")
    first_of(app)
    app.end()
    assert "between:begin..end>50ms, the second message has not come for" in app.stderr


@pytest.mark.few_pythons
def test_messages_of_tasks_are_paired_by_task(app, python):
    app = app(python, "between:begin..end>300ms")
    app.tell("tasks(0.4, 0)")  # begin, begin, end, end
    first_of(app)
    app.end()


def test_the_end_of_one_process_of_several(app, any_python):
    app = app(any_python, "end:*app.py*")
    child = int(app.tell("fork()").split()[-1])
    wait_for(lambda: {p["pid"] for p in app.status()["processes"]} == {app.pid, child}, "the child")
    assert not snapshots(app)
    os.kill(child, signal.SIGKILL)
    taken = first_of(app)
    assert {p.pid for p in taken.processes} == {app.pid, child}
    app.end()
    assert f"end:*app.py*, process {child} has ended" in app.stderr and len(snapshots(app)) == 1


def test_the_end_of_a_process_that_is_not_meant(app, any_python):
    app = app(any_python, "end:*other.py*")
    child = int(app.tell("fork()").split()[-1])
    wait_for(lambda: {p["pid"] for p in app.status()["processes"]} == {app.pid, child}, "the child")
    os.kill(child, signal.SIGKILL)
    wait_for(lambda: {p["pid"] for p in app.status()["processes"]} == {app.pid}, "the end of the child")
    app.end()
    assert not snapshots(app)


@pytest.mark.few_pythons
def test_a_log_record_of_a_level(app, python):
    app = app(python, "log:ERROR", more=["--log=app:DEBUG"])
    app.tell("log(20)")
    app.tell("log(30)")
    app.tell("0")
    assert not snapshots(app)
    app.tell("log(40)")
    assert [n["level"] for n in first_of(app).notes("log:record")] == [20, 30, 40]
    app.end()


@pytest.mark.few_pythons
@pytest.mark.parametrize(
    "trigger, less, enough",
    [
        ("gil>50ms", None, "wait_for_the_gil()"),
        ("loop>100ms", "stall(0)", "stall(0.2)"),
        ("memory>300M", "take(1000)", "take(400_000_000)"),
    ],
)
def test_what_is_beyond_a_limit(app, python, trigger, less, enough):
    app = app(python, trigger)
    if less:
        app.tell(less)
        assert not snapshots(app)
    app.tell(enough)
    first_of(app)
    app.end()
    if trigger.startswith("memory"):
        assert re.search(rf"memory>300M, process {app.pid} has [0-9.]+ MiB in memory", app.stderr)


@pytest.mark.long
def test_a_greenlet_that_does_not_switch_blocks_its_hub_and_an_idle_hub_is_none(app, any_python, venv):
    app = app(venv(any_python, "gevent"), "loop>100ms")
    app.tell("__import__('gevent').sleep(0.3)")
    assert not snapshots(app)
    app.tell("__import__('gevent').spawn(__import__('time').sleep, 0.3).join()")
    first_of(app)
    app.end()


def test_a_snapshot_is_told_with_all_triggers_that_it_is_for(app, any_python):
    app = app(any_python, "call:quick>1ns", "call:slow>1h", "call:__main__.qu*>2ns")
    app.tell("quick()")
    first_of(app)
    app.end()
    [folder] = snapshots(app)
    took = "a call took [^,;\n]+"
    assert re.search(rf"snapshot in {folder}: call:quick>1ns, {took}; call:__main__.qu\*>2ns, {took}\n", app.stderr), app.stderr


def test_what_happens_again_and_again_does_not_fill_the_disk(app, any_python):
    app = app(any_python, "call:quick>1ns", "call:quick>2ns", more=["--last", "1h"])
    app.tell("quick()")
    first_of(app)
    for _ in range(20):
        app.tell("quick()")
    app.end()
    assert len(snapshots(app)) <= 2


@pytest.mark.few_pythons
def test_each_snapshot_of_a_program_that_runs_already_is_told(attached_app, python):
    app, recorder = attached_app(python, "--last", "10s", "--snapshot-on", "call:quick>1ns", "--snapshot-on", "call:slow>1ns")
    for count, what in enumerate(("quick()", "slow(0)"), 1):
        app.tell(what)
        wait_for(lambda: len(snapshots(app)) == count, "the snapshot")
    recorder.send_signal(signal.SIGINT)
    said = recorder.communicate(timeout=60)[1]
    assert recorder.returncode == 0, said
    for folder, trigger in zip(snapshots(app), ("call:quick>1ns", "call:slow>1ns"), strict=True):
        assert f"krait record: snapshot in {folder}: {trigger}, a call took" in said
        assert Recording(folder).calls()["quick"] == 1


@pytest.mark.parametrize("options", [[], ["--last", "10s"]], ids=["all", "last"])
def test_what_happens_in_the_programs_last_moments_takes_a_snapshot(record, any_python, options):
    text = """
        import logging, time
        def slow(): time.sleep(0.02)
        slow()
        logging.getLogger("app").error("giving\\n up")
        """
    run = record.text(any_python, text, options=["--log", "--snapshot-on", "log:ERROR", "--snapshot-on", "call:slow>10ms", *options])
    folder = run.path.with_name(run.path.name + "-snapshot-1")
    assert f"snapshot in {folder}: log:ERROR, a log record came: giving\\n up; call:slow>10ms, a call took" in " ".join(run.stderr.split())
    taken = Recording(folder).check()
    assert taken.calls()["slow"] == 1 and [e["message"] for e in taken.notes("log:record")] == ["giving\n up"]


@pytest.mark.few_pythons
def test_a_call_in_which_the_program_is_killed_takes_a_snapshot(record, python):
    text = """
        import os, signal, time
        def slow():
            time.sleep(0.02)
            os.kill(os.getpid(), signal.SIGKILL)
        slow()
        """
    run = record.text(python, text, ok=False, options=["--snapshot-on", "call:slow>10ms", "--snapshot-on", "call:slow>30s"])
    folder = run.path.with_name(run.path.name + "-snapshot-1")
    said = " ".join(run.stderr.split())
    assert f"snapshot in {folder}: call:slow>10ms, a call has taken" in said and "30s" not in said
    assert Recording(folder).calls()["slow"] == 1


def test_a_snapshot_that_cannot_be_written_is_told(app, any_python, record):
    app = app(any_python, "call:slow>1ms", "call:slow>2ms")
    part = app.folder.with_name("trace1-snapshot-1.part")
    part.mkdir()
    app.tell("slow(0.01)")
    app.end()
    assert "call:slow>1ms, call:slow>2ms: cannot make the folder" in app.stderr
    assert not snapshots(app)


@pytest.mark.parametrize("text, option, reason", [
    ("gil>1ms", "--no-gil", "--snapshot-on gil>TIME does not go with --no-gil"),
    ("loop>1ms", "--no-tasks", "--snapshot-on loop>TIME does not go with --no-tasks"),
])
def test_what_can_never_fire_is_refused(run, text, option, reason):
    assert reason in run("record", "--snapshot-on", text, option, "--", "true", code=2).stderr
    other = {"--no-gil": "--no-tasks", "--no-tasks": "--no-gil"}[option]
    run("record", "--snapshot-on", text, other, "--", "no-such-command", code=127)


@pytest.mark.parametrize("text, reason", [
    ("call:load", "has no limit: call:app.load>100ms"),
    ("call:load>x", "has no time such as 100ms"),
    ("call:>1s", "names nothing"),
    ("gil>", "has no time"),
    ("memory>much", "has no size such as 2G"),
    ("log:LOUD", "has no level such as WARNING"),
    ("log:off", "has no level such as WARNING"),
    ("log:WARNNING", "'log:WARNNING': there is no level 'WARNNING'; did you mean 'WARNING'?"),
    ("call:load > 100ms", "has a blank around the name"),
    ("exception:", "names nothing"),
    ("exception: ValueError", "has a blank around the name"),
    ("exception:ValueError>3", "takes no limit"),
    ("exception:load.<locals>.Own>3", "takes no limit"),
    ("tea>5m", "is none of call:GLOB>TIME"),
    ("between:begin>1s", "names no two messages: between:GLOB..GLOB>TIME"),
    ("between:begin..>1s", "names no two messages"),
    ("between:..end>1s", "names no two messages"),
    ("between:begin..end", "has no limit"),
    ("end:", "names nothing"),
    ("log:ERROR", "log:LEVEL needs --log"),
])
def test_what_is_no_trigger_says_why(run, text, reason):
    assert reason in run("record", "--snapshot-on", text, "--", "true", code=2).stderr
