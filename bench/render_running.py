# SPDX-License-Identifier: Apache-2.0
"""The parts of docs/benchmarks.md about programs that run already."""

import attach
import flight
import lib
from render_tables import goal, mib, table

# ---- attaching ----

PAUSE_AIM, IDLE_AIM = 50, 0.001  # ms; share of the time


def three(found):
    return "%.2f / %.2f / %.2f" % tuple(found[key] / 1e6 for key in ("median", "p99", "max"))


def pause_rows(data):
    for version, row in data["rows"].items():
        for threads in ("1", "4"):
            d = row["threads " + threads]
            keys = ("stopped", "gap_begin", "gap_end", "rest_gap")
            yield ["%s, %s" % (version, "1 thread" if threads == "1" else threads + " threads"), "%d" % d["count"], *[three(d[key]) for key in keys], "%.0f" % (d["after"]["median"] / 1e6)]


def other_pause_rows(data):
    for version, row in data["rows"].items():
        for name, d in row["others"].items():
            if "missing" not in d:
                yield ["%s: %s" % (version, name), "%d" % d["count"], three(d["gap"]), three(d["rest_gap"])]


PHASES = {"twin": "neither", "started": "started with --idle", "off": "attached, off", "recorded": "recorded", "stopped": "switched off", "after": "after the detach"}


def cost_cell(found):
    return "%+.1f (%+.1f to %+.1f)" % tuple(100 * found[key] for key in ("slower", "least", "most"))


def attach_goals(data):
    rows = data["rows"].values()
    most = max(row[threads][key]["max"] for row in rows for threads in ("threads 1", "threads 4") for key in ("stopped", "gap_begin", "gap_end")) / 1e6
    rest = max(row[threads]["rest_gap"]["max"] for row in rows for threads in ("threads 1", "threads 4")) / 1e6
    if rest > PAUSE_AIM / 2:
        text = "- The longest pause by any clock is %.1f ms. Whether krait's is at most %d cannot be told: without an attach there are gaps of %.1f ms.\n" % (most, PAUSE_AIM, rest)
    else:
        text = goal("the longest pause by any clock: %.1f ms (at most %d)." % (most, PAUSE_AIM), most <= PAUSE_AIM)
    for phase in ("started", "off", "stopped", "after"):
        slower = lib.median([row["costs"][phase]["slower"] for row in rows])
        noise = max(abs(row["costs"][of][end] - row["costs"][of]["slower"]) for row in rows for of in (phase, "twin") for end in ("least", "most"))
        words = (PHASES[phase], 100 * slower, 100 * IDLE_AIM)
        if noise > IDLE_AIM:
            text += "- %s: slower by %.2f %%, median of the versions. Whether it is under %g %% cannot be told from times: single rounds differ from their median by up to %.1f %%.\n" % (*words, 100 * noise)
        else:
            text += goal("%s: slower by %.2f %% (under %g)." % words, slower < IDLE_AIM)
    return text


def attach_text(data):
    missing = "".join("- %s on CPython %s: left out, %s.\n" % (n, v, d["missing"]) for v, row in data["rows"].items() for n, d in row["others"].items() if "missing" in d)
    tools = ", ".join("%s %s" % item for item in sorted(data["versions"].items()))
    head = ["Python", "attaches", "stopped, by krait", "gap, attach", "gap, detach", "gap, nothing", "until recorded"]
    return (
        "## Attaching\n\nMilliseconds for which `krait record --pid` stops a program: median / 99 of 100 / most. `stopped` is the longest stop that krait itself says."
        " The gaps are by the program's own clock:\neach thread looks at CLOCK_MONOTONIC without end, and notes how long it did not; the longest of an attach, of a"
        " detach, and of as long a time before in which nothing\nhappened. Four threads hand over the GIL every 0.1 ms. The last column is from the start of the attach"
        " to the first event. Each program is attached to %d times (`bench/attach.py`).\n\n%s\n" % (attach.A_PROCESS, table(head, list(pause_rows(data))))
        + "What others' looks at the same program do, one thread: `py-spy dump`, `austin --where`, and `sys.remote_exec` of a script that does nothing. %s.\n\n%s%s\n"
        % (tools, table(["", "times", "gap", "gap, nothing"], list(other_pause_rows(data))), "\n" + missing if missing else "")
        + "How much less a program of calls, allocations, exceptions, JSON and opened files gets done, in %%: median (least to most) of %d rounds. In each, two programs work in turns"
        " of %d ms,\nand krait attaches to one of them: its rate to the other's, against the same before. `neither` is one to the other before the attach, and `started with --idle` a program under"
        "\n`krait record --idle` to one without: two programs differ by so much anyhow.\n\n%s\n%s\n"
        % (
            data["reps"],
            1000 * attach.TURN,
            table(["Python", *PHASES.values()], [[version, *[cost_cell(row["costs"][phase]) for phase in PHASES]] for version, row in data["rows"].items()]),
            attach_goals(data),
        )
    )


# ---- flight recordings ----

FLAT_AIM = 1.1  # the second half's most to the first half's


def flight_rows(data):
    length = data["minutes"] / len(data["slices"])
    for i, part in enumerate(data["slices"]):
        most = [mib(part[key][1]) for key in ("own", "rings", "program")]
        yield ["%.3g to %.3g" % (i * length, (i + 1) * length), "%.2f" % (part["rate"] / 1e6), "%s to %s" % (mib(part["files"][0]), mib(part["files"][1])), *most, "%d" % part["lost"][1]]


def growth(data, key):
    """The most in the last of the slices to the most in those before, without the first, in which it fills."""
    *before, last = [part[key][1] for part in data["slices"][1:]]
    return last / max(before)


def flight_goals(data):
    rate = min(part["rate"] for part in data["slices"])
    text = goal("%.2f million events a second at least (5), %d lost." % (rate / 1e6, data["lost"]), rate >= 4.95e6 and not data["lost"])
    for key, what in (("files", "the files"), ("own", "the collector's memory"), ("rings", "the rings"), ("program", "the program's memory")):
        text += goal("%s: in the last fifth of the time at most %.2f times as much as from the second fifth on (at most %g)." % (what, growth(data, key), FLAT_AIM), growth(data, key) <= FLAT_AIM)
    return text


def flight_text(data):
    snapshot = data["snapshot"] or {}
    taken = "A snapshot at half time took %.2f s and has %s MiB." % (snapshot["seconds"], mib(snapshot["bytes"])) if snapshot else "No snapshot was taken."
    head = ["minutes", "M events/s", "files MiB", "collector MiB", "rings MiB", "program MiB", "lost"]
    return (
        "## A flight recording\n\nCPython %s under `krait record --last %ds` for %g minutes: calls of a Python function in a loop, at five million events a second, and five new threads a"
        " second (`bench/flight.py`).\nLooked at %d times; memory is the most of each fifth of the time, without mapped files. Files are from least to most: there are two"
        " while krait writes one anew. %.2f billion events of\n%d threads. %s\n\n%s\n%s\n"
        % (data["python"], flight.LAST, data["minutes"], data["looks"], data["events"] / 1e9, data["threads"], taken, table(head, list(flight_rows(data))), flight_goals(data))
    )


# ---- waking up ----

WAYS = {
    "nothing": "nothing",
    "a signal in the thread": "a signal in the thread (`timer_create`), whose handler does nothing",
    "a process that sleeps": "a process that sleeps (`clock_nanosleep`), wakes up on the thread's CPU and does nothing",
    "a process with two timers": "the same with two timers in turns, each armed while the other one is pending",
}


def wakeup_rows(shares):
    nothing = lib.median(shares["nothing"])
    for name, lost in shares.items():
        low, middle, high = (100 * q for q in lib.quartiles(lost))
        more = "" if name == "nothing" else "%.1f" % (middle - 100 * nothing)
        yield [WAYS.get(name, "`%s`" % name), "%.1f" % middle, "%.1f to %.1f" % (low, high), more]


def wakeups_text(data):
    shares = data["shares"]
    return (
        "## Waking up on a thread's CPU\n\n"
        "What a thread loses of its time, in %%, to whoever wakes up on its CPU a thousand times a second (`bench/wakeups.py`): it looks at the clock all the time, in a C function that Python calls, and"
        " sums the pauses\nof 1 to 400 us. CPython %s, %d turns of each way, which alternate; the median, the quartiles, and how much more the median is than beside nothing. The ways that do nothing show the"
        " least that any sampler with such a timer can cost here.\n\n%s\n"
        % (data["python"], len(shares["nothing"]), table(["beside", "lost", "quartiles", "more"], list(wakeup_rows(shares))))
    )
