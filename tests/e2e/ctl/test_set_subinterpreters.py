# SPDX-License-Identifier: Apache-2.0
"""krait ctl PID set in a program with several interpreters: each forgets what it knew of its functions, and follows."""

import pytest

from conftest import verb_json
from recording import Recording
from running import wait_for
from told import OBEDIENT, told  # noqa: F401  (told: a fixture)

# The other interpreter calls two functions again and again, without a thing that raises an audit event; each round is a byte of a file.
SEVERAL = OBEDIENT.replace("report(os.getpid())\nbelow", """
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
execute = interpreters.exec if hasattr(interpreters, "exec") else interpreters.run_string
rounds = sys.argv[0] + ".rounds"
goes_on = rounds + ".on"
for name in rounds, goes_on: open(name, "w").close()
other = interpreters.create()
execute(other, f'''
import os, time
def kept(): pass
def dropped(): pass
def loop():
    with open({rounds!r}, "ab", buffering=0) as file:
        while os.path.exists({goes_on!r}):
            kept()
            dropped()
            file.write(b"x")
            time.sleep(0.002)
''')
thread = threading.Thread(target=execute, args=(other, "loop()"))
def busy():
    while os.path.exists(goes_on): second()
def begin(): thread.start()
def end(): os.remove(goes_on); thread.join(); interpreters.destroy(other)
def count(): return os.stat(rounds).st_size
report(os.getpid())
below""")


def called(recording, since, until):
    """Functions that are called in the other interpreter's thread between two times."""
    process = recording.main
    names = [{process.name_of(e) for e in t.walk() if e.name == "python:call" and since < e.time < until} for t in process.threads]
    return sorted(set().union(*(n & {"kept", "dropped"} for n in names)))


@pytest.mark.parametrize("main_is_busy", [False, True], ids=["the other notices", "main notices"])
@pytest.mark.every_python
def test_each_interpreter_follows_set(told, python, main_is_busy):  # noqa: F811
    app = told(python, text=SEVERAL)

    def goes_on():
        before = int(app.tell("count()"))
        wait_for(lambda: int(app.tell("count()")) > before + 20, "rounds")

    if main_is_busy:
        app.tell("threading.Thread(target=busy).start()")
    app.tell("begin()")
    goes_on()
    for globs in "*.kept", "":
        app.ctl("set", f"include={globs}")
        wait_for(lambda: app.status()["set"], "the change")
        goes_on()
    app.tell("end()")
    recording = app.end()
    times = [0, *[e.time for e in recording.main.definitions if e.name == "recording:set"], 1 << 63]
    assert [called(recording, *pair) for pair in zip(times, times[1:])] == [["dropped", "kept"], ["kept"], ["dropped", "kept"]]
    assert recording.calls()["count"] > 0, "what main calls is recorded once"


# Interpreters begin and end all the time, which raises audit events in them.
CHURN = SEVERAL.replace("def begin()", """
def churn():
    while os.path.exists(goes_on): interpreters.destroy(interpreters.create())
def begin_churn(): threading.Thread(target=churn).start()
def marked(n): return globals()[f"marked_{n}"]()
for n in range(6): exec(f"def marked_{n}(): return {n}")
def begin()""").replace("thread.join(); ", "")


@pytest.mark.few_pythons
def test_recording_goes_on_where_interpreters_begin_and_end(told, python, krait):  # noqa: F811
    app = told(python, text=CHURN)
    app.tell("begin_churn()")
    for n in range(6):
        app.ctl("stop")
        app.ctl("start")
        app.tell(f"marked({n})")
    app.tell("end()")
    app.process.communicate(timeout=60)
    rows = verb_json(krait, "report", app.folder, "--limit", "0")["functions"]
    assert {row["name"]: row["calls"] for row in rows if "marked_" in row["name"]} == {f"marked_{n}": 1 for n in range(6)}
    for thread in Recording(app.folder).main.threads:
        times = [event.time for event in thread.events]
        assert times == sorted(times), thread.tid  # each ring is written by its own thread alone
