# SPDX-License-Identifier: Apache-2.0
"""For how long attaching stops a program, by krait's account and by the program's own clock; and how much less the program gets done
before, attached but off, recorded, switched off, and after the detach.

Beside krait's pause those of what others do in a running program: py-spy dump and Austin's --where, which read one stack, and
Python 3.14's sys.remote_exec, which runs a script that does nothing.
"""

import json
import random
import re
import shutil
import signal
import statistics
import subprocess
import time

import lib
import peers
import turns

PROGRAM = lib.HERE / "attach_program.py"
VERSIONS = ((3, 8), (3, 11), (3, 13), (3, 14))
ATTACHES, QUICK_ATTACHES = 100, 10
A_PROCESS = 10  # attaches, of which the first brings the agent
PEERS = 20
PAIRS, TURN = 20, 0.025  # of turns in each phase; seconds
FACTORS = {"us": 1e3, "ms": 1e6, "s": 1e9, "ns": 1}

# ---- the pause ----


class Target:
    """A program whose threads look at the clock without end."""

    def __init__(self, python, threads):
        words = [*python.prefix, python.path, PROGRAM, "gaps", threads]
        self.process = subprocess.Popen([str(w) for w in words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = int(self.process.stdout.readline())
        self.python = python
        time.sleep(0.2)

    def end(self):
        """[(begin, end) of each gap], of all threads"""
        return [tuple(gap) for of in json.loads(self.process.communicate(timeout=60)[0]) for gap in of]


def clock():
    return time.monotonic_ns()


def ns_of(text):
    number, unit = text.split()
    return float(number) * FACTORS[unit]


def attach(target):
    """{begin, recorded, end: moments; stopped: the longest that krait says; after: until it was recorded}"""
    folder = lib.OUT / "attached"
    shutil.rmtree(folder, ignore_errors=True)
    found = {"begin": clock(), "stopped": 0}
    command = [lib.KRAIT, "record", "-v", "--pid", target.pid, "--for", "20ms", "-o", folder]
    with subprocess.Popen([str(w) for w in command], stderr=subprocess.PIPE, text=True) as krait:
        said = []
        for line in krait.stderr:
            said.append(line)
            if stopped := re.search(r"was stopped for ([\d.]+ \w+)", line):
                found["stopped"] = max(found["stopped"], ns_of(stopped[1]))
            if after := re.search(r"is recorded, after ([\d.]+ \w+)", line):
                found.update(recorded=clock(), after=ns_of(after[1]))
    if krait.returncode or "recorded" not in found:
        raise RuntimeError("krait record --pid: %s" % lib.last_line_of("".join(said)))
    return dict(found, end=clock())


def longest(gaps, begin, end):
    """The longest gap that lies in part between these moments, ns."""
    return max((last - first for first, last in gaps if last > begin and first < end), default=0)


def with_rest(action, target):
    """What action(target) finds, after as long a time in which nothing happens: the noise."""
    begin = clock()
    time.sleep(0.1 + random.random() / 20)
    return dict(action(target), rest=(begin, clock()))


def pauses(python, threads, action, count):
    """[what action found, with the gaps in it], of programs that are started anew after each A_PROCESS."""
    found = []
    while len(found) < count:
        target = Target(python, threads)
        try:
            done = [with_rest(action, target) for _ in range(min(A_PROCESS, count - len(found)))]
            gaps = target.end()
        finally:
            target.process.kill()
        for i, d in enumerate(done):
            rest = d["rest"][0], min(d["rest"][1], d["begin"])
            d.update(first=i == 0, gap=longest(gaps, d["begin"], d["end"]), rest_gap=longest(gaps, *rest))
            if "recorded" in d:
                d.update(gap_begin=longest(gaps, d["begin"], d["recorded"]), gap_end=longest(gaps, d["recorded"], d["end"]))
        found += done
    return found


def summary(values):
    return {"median": lib.median(values), "p99": statistics.quantiles(values, n=100, method="inclusive")[98] if len(values) > 1 else values[0], "max": max(values)}


def krait_pauses(python, threads, count):
    found = pauses(python, threads, attach, count)
    keys = ("stopped", "gap_begin", "gap_end", "rest_gap", "after")
    return {"count": count, **{key: summary([d[key] for d in found]) for key in keys}}


def command_of(words_for):
    """An action that runs a command on the target."""

    def action(target):
        words = [str(w) for w in words_for(target)]
        begin = clock()
        done = subprocess.run(words, capture_output=True, text=True, timeout=60)
        if done.returncode:
            lib.say(lib.last_line_of(done.stderr))
            raise lib.Missing("it failed")
        return {"begin": begin, "end": clock()}

    return action


def execute(target):
    """sys.remote_exec, until the script has run."""
    script, done = lib.OUT / "remote.py", lib.OUT / "remote.done"
    script.write_text("open(%r, 'w').close()\n" % str(done))
    done.unlink(missing_ok=True)
    code = "import sys; sys.remote_exec(%d, %r)" % (target.pid, str(script))
    found = command_of(lambda t: [*peers.inside(t.python, t.pid), t.python.path, "-c", code])(target)
    until = time.monotonic() + 10
    while not done.exists():
        if time.monotonic() > until:
            raise lib.Missing("the script did not run")
        time.sleep(0.0005)
    return dict(found, end=clock())


def others(python):
    """{name: action}"""
    found = {
        "py-spy dump": command_of(lambda t: [*t.python.prefix, peers.py_spy(), "dump", "--pid", t.pid]),
        "austin --where": command_of(lambda t: [*peers.austin(t.python), "--where", t.pid]),
    }
    if python.numbers >= (3, 14):
        found["sys.remote_exec"] = execute
    return found


def other_pauses(python, count):
    result = {}
    for name, action in others(python).items():
        lib.say("attach: Python %s, %s" % (python.version, name))
        try:
            found = pauses(python, 1, action, count)
            result[name] = {"count": count, **{key: summary([d[key] for d in found]) for key in ("gap", "rest_gap")}}
        except lib.Missing as e:
            result[name] = {"missing": str(e)}
    return result


# ---- the cost ----


def ctl(pid, request):
    done = lib.quiet([lib.KRAIT, "ctl", "-q", pid, request])
    if done.returncode:
        raise RuntimeError("krait ctl: %s" % lib.last_line_of(done.stderr))


class Idle:
    """krait record --pid --idle"""

    def __init__(self, pid, folder):
        shutil.rmtree(folder, ignore_errors=True)
        words = [lib.KRAIT, "record", "-v", "--pid", pid, "--idle", "--max-size", "256M", "-o", folder]
        self.krait = subprocess.Popen([str(w) for w in words], stderr=subprocess.PIPE, text=True)
        for line in self.krait.stderr:
            if "after" in line:
                return
        raise RuntimeError("krait record --pid --idle ended")

    def end(self):
        self.krait.send_signal(signal.SIGINT)
        self.krait.communicate(timeout=60)


def ratio(worker, beside, key="wall"):
    """The worker's rate to that of another program, of turns one after the other; what slows the machine slows both."""
    found = []
    for i in range(PAIRS):
        both = (worker, beside) if i % 2 else (beside, worker)
        rates = {w: w.turn(TURN)[key] for w in both}
        found.append(rates[worker] / rates[beside])
    return lib.median(found)


def phases(python, folder):
    """{phase: the rate to that before, in one run}; `started`: of a program that was started under krait record --idle to one that was not."""
    plain = [*python.prefix, python.path, PROGRAM, "work"]
    idle = [lib.KRAIT, "record", "-q", "--idle", "-o", folder / "started", "--"]
    if python.prefix:
        idle = [*python.prefix, *idle]
    with turns.Worker(plain) as worker, turns.Worker(plain) as beside, turns.Worker([*idle, *plain[len(python.prefix) :]]) as started:
        for w in (worker, beside, started):
            w.turn(0.3)
        found = {"started": ratio(started, beside)}
        before = ratio(worker, beside)
        found["twin"] = before
        krait = Idle(worker.pid, folder / "attached")
        for name, request in (("off", None), ("recorded", "start"), ("stopped", "stop")):
            if request:
                ctl(worker.pid, request)
            found[name] = ratio(worker, beside) / before
        krait.end()
        found["after"] = ratio(worker, beside) / before
        started.end()
    return found


def costs(python, rounds):
    lib.say("attach: Python %s, before, attached and after" % python.version)
    runs = []
    for _ in range(rounds):
        folder = lib.OUT / "attach"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        runs.append(phases(python, folder))
        shutil.rmtree(folder, ignore_errors=True)
    slower = {phase: [1 / r[phase] - 1 for r in runs] for phase in runs[0]}
    return {phase: {"slower": lib.median(s), "least": min(s), "most": max(s)} for phase, s in slower.items()}


# ---- all ----


def chosen(options):
    """One interpreter of each version, the last of equal ones."""
    found = {p.numbers: p for p in lib.pythons()}
    wanted = options.versions or ["%d.%d" % numbers for numbers in VERSIONS]
    return [p for numbers, p in sorted(found.items()) if "%d.%d" % numbers in wanted]


def run(options):
    count = options.attaches or (QUICK_ATTACHES if options.quick else ATTACHES)
    rows = {}
    for python in chosen(options):
        row = rows[python.version] = {}
        for threads in (1, 4):
            lib.say("attach: Python %s, %d times to %d threads" % (python.version, count, threads))
            row["threads %d" % threads] = krait_pauses(python, threads, count if threads == 1 else max(2, count // 2))
        row["others"] = other_pauses(python, min(PEERS, count))
        row["costs"] = costs(python, options.reps)
    return {"rows": rows, "reps": options.reps, "versions": peers.versions()}
