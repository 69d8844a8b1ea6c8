# SPDX-License-Identifier: Apache-2.0
"""krait cat's forms beside each other: text, JSON and CSV of the same events, CPU time of the whole process."""

import array
import os
import random
import subprocess

import lib
import traces

EVENTS, QUICK_EVENTS = 10_000_000, 1_000_000
FORMS = {"text": [], "JSON": ["--json"], "CSV": ["--csv"]}
DOUBLES = "two doubles an event"
METADATA = """/* CTF 1.8 */ trace { major = 1; minor = 8; byte_order = le; }; clock { name = c; };
stream { event.header := struct { integer { size = 64; align = 8; map = clock.c.value; } timestamp; }; };
event { name = e; fields := struct { floating_point { exp_dig = 11; mant_dig = 53; align = 8; } x;
floating_point { exp_dig = 11; mant_dig = 53; align = 8; } y; }; };"""
BLOCK = 100_000  # events of doubles that are made; then the same values again


def make_doubles(events):
    """One of seventeen digits, one of at most six."""
    folder = lib.OUT / "traces" / ("doubles-%d" % events)
    dice = random.Random(1)
    values = [(dice.random() * 10 ** dice.randrange(-3, 5), round(dice.random() * 1000, 3)) for _ in range(BLOCK)]
    bits = array.array("Q", array.array("d", [v for pair in values for v in pair]).tobytes())
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "metadata").write_text(METADATA)
    with open(folder / "stream", "wb") as out:
        for at in range(0, events, BLOCK):
            words = array.array("Q", bytes(24 * BLOCK))
            words[0::3] = array.array("Q", range(at * 1000, (at + BLOCK) * 1000, 1000))
            words[1::3], words[2::3] = bits[0::2], bits[1::2]
            words.tofile(out)
    return folder


def cpu_seconds(command):
    with open(os.devnull, "w") as out:
        child = subprocess.Popen([str(word) for word in command], stdout=out)
        _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise RuntimeError("%s: exit status %d" % (command, child.returncode))
    return usage.ru_utime + usage.ru_stime


def run(options):
    events = options.events or (QUICK_EVENTS if options.quick else EVENTS)
    paths = {name: traces.trace(name, events) for name in traces.TRACES if name not in traces.missing()}
    paths[DOUBLES] = make_doubles(events)

    def measure(item):
        name, form = item
        lib.say("forms: %s, %s" % item)
        return cpu_seconds([lib.KRAIT, "cat", *FORMS[form], paths[name]])

    runs = lib.interleaved([(name, form) for name in paths for form in FORMS], options.reps, measure)
    rows = [{"name": name, **{form: lib.median(runs[name, form]) for form in FORMS}} for name in paths]
    return {"reps": options.reps, "events": events, "rows": rows}
