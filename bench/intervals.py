# SPDX-License-Identifier: Apache-2.0
"""krait intervals on twenty million marks, and what one writes without it: babeltrace2's text through Python's re."""

import os
import shutil
import subprocess
import sys
import time

import lib

MARKS, QUICK_MARKS, SCRIPT_MARKS = 20_000_000, 2_000_000, 1_000_000
SCRIPT = r"""
import re, sys
line = re.compile(r'\[(\d+)\.(\d+)\].* user:mark: .*text = "((?:[^"\\]|\\.)*)"')
begins, durations = [], []
for text in sys.stdin:
    m = line.match(text)
    if m:
        ns = int(m[1]) * 10**9 + int(m[2])
        if re.search("Start", m[3]):
            begins.append(ns)
        elif re.search("Stop", m[3]) and begins:
            durations.append(ns - begins.pop(0))
durations.sort()
print(len(durations), sum(durations))
"""


def make(marks):
    """Of one thread: half of its marks start or stop."""
    folder = lib.OUT / "traces" / ("marks-%d" % marks)
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        script = "process 1 python3\nexit 0 0\nthread 1 MainThread\nrepeat %d\n0 mark Start%%20of%%20work\n700 mark step\n900 mark Stop%%20of%%20work\n1000 mark step\nend\n"
        subprocess.run([lib.BUILD / "tests" / "synth", folder], input=script % (marks // 4), text=True, check=True)
    return folder


def timed(command):
    start = time.monotonic()
    child = subprocess.Popen([str(w) for w in command], stdout=subprocess.PIPE, text=True)
    out = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise RuntimeError("%s: exit status %d" % (command[0], child.returncode))
    return {"seconds": time.monotonic() - start, "cpu": usage.ru_utime + usage.ru_stime, "rss_kib": usage.ru_maxrss, "out": out}


def krait(folder):
    return timed([lib.KRAIT, "intervals", folder, "--start", "Start", "--stop", "Stop", "--csv"])


def script(folder):
    words = "babeltrace2 --clock-seconds --no-delta %s | %s -c '%s'" % (folder, sys.executable, SCRIPT.replace("'", "'\\''"))
    return timed(["sh", "-c", words])


def run(options):
    marks = QUICK_MARKS if options.quick else MARKS
    few, many = make(min(SCRIPT_MARKS, marks)), make(marks)
    tools = {"krait": lambda: krait(many), "krait, few": lambda: krait(few)}
    if shutil.which("babeltrace2"):
        tools["script"] = lambda: script(few)

    def measure(tool):
        lib.say("intervals: " + tool)
        return tools[tool]()

    runs = lib.interleaved(list(tools), options.reps, measure)
    count = int(runs["krait, few"][0]["out"].splitlines()[1].split(",")[0])
    if "script" in runs and int(runs["script"][0]["out"].split()[0]) != count:
        raise RuntimeError("the script finds other intervals than krait")
    rows = {tool: {key: lib.median([r[key] for r in of]) for key in ("seconds", "cpu", "rss_kib")} for tool, of in runs.items()}
    return {"reps": options.reps, "marks": marks, "few": min(SCRIPT_MARKS, marks), "rows": rows}
