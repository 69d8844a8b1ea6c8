# SPDX-License-Identifier: Apache-2.0
"""A flight recording of five million events a second: whether its files and memory keep their bounds.

    bench/run --parts flight --minutes 60      or 1440, for a day
"""

import json
import shutil
import subprocess
import time

import lib

RATE = 5e6  # events a second
LAST = 5  # seconds that are kept
MINUTES, QUICK_MINUTES = 10, 0.5
SLICES = 5  # of the time, in the table
LOOKS = 600  # at most: every second in ten minutes


def status_of(pid):
    """{what: KiB} of a process's memory; {} if it is gone."""
    try:
        with open("/proc/%d/status" % pid) as file:
            words = [line.split() for line in file]
    except OSError:
        return {}
    return {w[0].rstrip(":"): int(w[1]) for w in words if w[0].startswith("Rss")}


def look(krait, pid, folder, begin):
    """What the recording takes now; None when it is over."""
    said = lib.quiet([lib.KRAIT, "ctl", "--json", krait.pid])
    own, program = status_of(krait.pid), status_of(pid)
    if said.returncode or not own or not program:
        return None
    status = json.loads(said.stdout)
    return {
        "seconds": time.monotonic() - begin,
        "events": status["events"] + status["dropped"],
        "lost": status["lost_events"],
        "files": lib.folder_bytes(folder),
        "own": own["RssAnon"] * 1024,
        "rings": own["RssShmem"] * 1024,
        "program": program["RssAnon"] * 1024,
    }


def snapshot(krait, folder):
    """{bytes, seconds}"""
    made = folder.with_name("flight-snapshot")
    shutil.rmtree(made, ignore_errors=True)
    begin = time.monotonic()
    done = lib.quiet([lib.KRAIT, "ctl", "-q", krait.pid, "snapshot", "-o", made])
    found = {"seconds": time.monotonic() - begin, "bytes": lib.folder_bytes(made)} if not done.returncode else {}
    shutil.rmtree(made, ignore_errors=True)
    return found


def fly(python, minutes):
    folder = lib.OUT / "flight"
    shutil.rmtree(folder, ignore_errors=True)
    seconds = 60 * minutes
    program = [*python.prefix, python.path, lib.HERE / "flight_program.py", seconds, RATE]
    words = [lib.KRAIT, "record", "-q", "--last", "%ds" % LAST, "-o", folder, "--", *program]
    krait = subprocess.Popen([str(w) for w in words], stdout=subprocess.PIPE, text=True)
    pid, begin = int(krait.stdout.readline()), time.monotonic()
    looks, taken = [], None
    try:
        while krait.poll() is None:
            time.sleep(seconds / min(LOOKS, 4 * seconds))
            found = look(krait, pid, folder, begin)
            if found:
                looks.append(found)
            if not taken and time.monotonic() - begin > seconds / 2:
                taken = snapshot(krait, folder)
    finally:
        krait.kill()
    info = lib.info(folder)
    shutil.rmtree(folder, ignore_errors=True)
    return {"looks": looks, "snapshot": taken, "threads": info["threads"], "events": info["events"] + info["dropped"], "lost": sum(info["lost"].values())}


def slices(looks):
    """[{what: (least, most)} of each part of the time]"""
    length, found = looks[-1]["seconds"] / SLICES, []
    for i in range(SLICES):
        part = [x for x in looks if i * length < x["seconds"] <= (i + 1) * length]
        if part:
            found.append({key: (min(x[key] for x in part), max(x[key] for x in part)) for key in part[0]})
            found[-1]["rate"] = (part[-1]["events"] - part[0]["events"]) / max(part[-1]["seconds"] - part[0]["seconds"], 0.001)
    return found


def run(python, options):
    minutes = options.minutes or (QUICK_MINUTES if options.quick else MINUTES)
    lib.say("flight: Python %s, %g minutes" % (python.version, minutes))
    flown = fly(python, minutes)
    looks = flown.pop("looks")
    return dict(flown, python=python.version, minutes=minutes, looks=len(looks), slices=slices(looks))
