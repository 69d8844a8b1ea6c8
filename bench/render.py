# SPDX-License-Identifier: Apache-2.0
"""docs/benchmarks.md from the results: tables, and the figures that the project holds itself to."""

import re

import busy
import governor
import kernel
import lib
import programs
import readers
import traces
from render_running import attach_text, flight_text, wakeups_text
from render_tables import goal, mib, table

GOALS = """\
The slowdown of a program is its time under a tool divided by its time without one: the median of runs that take turns.
The **floor** is the least that any recorder of calls costs on the same Python: the interpreter's hook, one read of the
clock and one store into a cached buffer for each event, without ids, shared memory or a file (`bench/floor.c`). Added
time is the slowdown minus one. Tools are compared by the median of their added time over the programs.
"""


# ---- programs ----


def slowdowns(data):
    tools = [t for t in lib.TOOLS if t != "none" and any(t in p for p in data["programs"].values())]
    rows = []
    for name, program in data["programs"].items():
        cells = ["%.2f" % programs.slowdown(program, t) if t in program else "" for t in tools]
        rows.append([name, "%.3f" % program["none"]["wall"], "%.1f" % (100 * lib.spread(program["none"]["walls"]))] + cells)
    medians = ["%.2f" % programs.median_slowdown(data["programs"], t) for t in tools]
    rows.append(["**median**", "", ""] + medians)
    cpu = ["%.2f" % programs.median_slowdown(data["programs"], t, "cpu") for t in tools]
    rows.append(["median, CPU time", "", ""] + cpu)
    whole = ["%.2f" % programs.median_slowdown(data["programs"], t, "process") for t in tools]
    rows.append(["median, whole process", "", ""] + whole)
    return table(["program", "untraced s", "noise %"] + tools, rows)


def ratio_goals(data):
    p = data["programs"]
    have = {t for program in p.values() for t in program}
    text = ""
    rows = [
        ("krait", "floor", 1.15, "added time, C calls recorded, over the floor's"),
        ("krait --no-c-calls", "floor, no C calls", 1.15, "added time, Python calls only, over the floor's"),
        ("krait", "VizTracer", 0.5, "added time, C calls recorded, over VizTracer's"),
        ("krait --no-c-calls", "VizTracer, no C calls", 0.5, "added time, Python calls only, over VizTracer's"),
    ]
    for tool, base, limit, what in rows:
        if tool in have and base in have:
            ratio = programs.added_ratio(p, tool, base)
            others = (
                programs.added_ratio(p, tool, base, "cpu"),
                programs.added_ratio(p, tool, base, "process"),
                programs.added_ratios(p, tool, base),
                programs.added_ratios(p, tool, base, "cpu"),
            )
            figures = (
                "%.2f (at most %.2f); in CPU time %.2f; of whole processes, from start to saved, %.2f;"
                " median of the programs' own ratios %.2f, in CPU time %.2f"
            )
            text += goal("%s: %s." % (what, figures % (ratio, limit, *others)), ratio <= limit)
    return text


def budget_goal(data):
    tool = "krait --max-overhead 5"
    if not any(tool in p for p in data["programs"].values()):
        return ""
    beyond = programs.over_budget(data["programs"], tool, 0.05)
    figures = {name: "%s %.3f (noise %.1f %%)" % (name, slowdown, 100 * noise) for name, slowdown, noise in beyond}
    fourteen = ", ".join(text for name, text in figures.items() if name != "sqlglot")
    text = "`--max-overhead 5`: of the fourteen, slowed by more than 5 %% beyond the noise of their untraced runs: %s" % (fourteen or "none")
    return goal(text + ("; beside them, %s." % figures["sqlglot"] if "sqlglot" in figures else "."), not fourteen)


def costs(data):
    """Bytes, collector, memory; under krait with C calls."""
    rows = []
    for name, program in data["programs"].items():
        krait, none = program.get("krait"), program["none"]
        if not krait or not krait.get("events"):
            continue
        collector = max(0.0, krait["all_cpu"] - krait["total_cpu"])
        rows.append(
            [
                name,
                "%.1f" % (krait["events"] / krait["wall"] / 1e6),
                "%.1f" % (2 * krait["bytes"] / krait["events"]),
                "%.0f" % (100 * collector / krait["process"]),
                "%.1f" % (none["rss_kib"] / 1024),
                "%.1f" % (krait["rss_kib"] / 1024),
                str(krait.get("lost", "")),
            ]
        )
    if not rows:
        return ""
    head = ["program", "M events/s", "bytes a call", "collector CPU %", "RSS untraced MiB", "RSS traced MiB", "lost"]
    return (
        "### What a recording takes\n\nUnder `krait record`, C calls recorded. A call is two events. The collector's CPU is a"
        " share of the run's\nwall time, on another CPU. RSS is the program's own at its peak, with the rings that it"
        " touched.\n\n" + table(head, rows) + "\n"
    )


def programs_text(data):
    packages = ", ".join("%s %s" % item for item in sorted(data["packages"].items()))
    return (
        "## Programs\n\nCPython %s; %s. %d runs of each program under each tool.\n\n%s\n%s%s\n%s"
        % (data["python"], packages, data["reps"], slowdowns(data), ratio_goals(data), budget_goal(data), costs(data))
    )


def busy_text(data):
    rows = [
        [name, "%.1f" % (max(r["events"] for r in runs) / 1e6), "%.1f" % max(r["seconds"] for r in runs)]
        + ["%d" % n for n in busy.worst(runs)]
        for name, runs in data["programs"].items()
    ]
    head = ["program", "events, million", "seconds", "lost", "rings grew by MiB"]
    return (
        "## A busy machine\n\nCPython %s under `krait record` beside %d processes that compute without end. Of %d runs of each program:"
        " all lost events,\nthe longest run, and the most that rings grew by.\n\n%s\n"
        % (data["python"], data["hogs"], data["reps"], table(head, rows))
    )


# ---- the others ----


def calls_text(data):
    fib = ["floor, no C calls", "krait --no-c-calls", "floor", "krait"]
    length = ["floor", "krait"]
    cell = lambda d, t: "%.0f" % d[t] if t in d else ""
    rows = [
        [version, "%.0f" % d["fib"]["untraced"]]
        + [cell(d["fib"], t) for t in fib]
        + ["%.0f" % d["len"]["untraced"]]
        + [cell(d["len"], t) for t in length]
        for version, d in data.items()
    ]
    head = ["Python", "fib"] + ["fib " + t for t in fib] + ["len"] + ["len " + t for t in length]
    return (
        "## A call\n\nNanoseconds that recording adds to a call (two events): `fib` calls Python functions, `len` a C"
        " function. The columns `fib`\nand `len` are the untraced call itself.\n\n" + table(head, rows) + "\n"
    )


EVENT_ROWS = {
    "krait, thread": "krait's ring, read by another thread of the process, to disk",
    "krait": "krait's ring, read by another process, to disk",
    "LTTng-UST": "LTTng-UST tracepoint, one 32-bit field, to disk",
    "pipe, packets": "pipe, writes of 32 KiB, to disk",
    "TCP, packets": "TCP on loopback, writes of 32 KiB, to disk",
    "pipe": "pipe, a write for each event, to disk",
    "TCP": "TCP on loopback, a write for each event, to disk",
    "perf": "perf's ring, raw_syscalls:sys_enter of getppid(), to disk",
    "trace_marker": "trace_marker, a write of 12 bytes, not read",
}


def event_row(what, data):
    arrived = data["events"] if "of" not in data else data["events"] * (1 - data["lost"] / data["of"])
    seconds = data.get("seconds", data["events"] * data["ns_event"] / 1e9)
    size = "%.1f" % (data["bytes"] / arrived) if data.get("bytes") and arrived else ""
    lost = "%d of %d" % (data["lost"], data["of"]) if "of" in data else ""
    return [what, "%.1f" % data["ns_event"], "%.0f" % (100 * data["ns_noise"]), "%.1f" % (arrived / seconds / 1e6), size, lost]


def events_text(data):
    rows = [event_row(what, data[name]) for name, what in EVENT_ROWS.items() if "ns_event" in data.get(name, {})]
    missing = "".join("\n%s: left out, %s.\n" % (n, d["missing"]) for n, d in data.items() if "missing" in d)
    return (
        "## An event from C\n\nOne thread writes as fast as it can, and reads the clock for each event, which is its time and a 32-bit value: 8 bytes where the way"
        " allows.\nNanoseconds that an event takes the writer; events a second that have arrived at the reader and in a file when the last one has (LTTng-UST: when"
        " it is\nwritten). Medians of runs in turn; all lost events of all runs (`bench/events.py`).\n\n"
        + table(["way", "ns an event", "noise %", "M events/s", "bytes an event", "lost"], rows) + missing + "\n"
    )


def report_text(data):
    if "missing" in data:
        return "## krait report\n\nLeft out: %s.\n\n" % data["missing"]
    rows = [
        [
            "%.1f" % (t["events"] / 1e6),
            mib(t["bytes"]),
            "%.2f" % t["seconds"],
            "%.1f" % (t["events"] / t["seconds"] / 1e6),
            "%.0f" % (t["rss_kib"] / 1024),
        ]
        for t in data["traces"]
    ]
    head = ["M events", "trace MiB", "seconds", "M events/s", "peak memory MiB"]
    return (
        "## krait report\n\nOn recordings of `%s`, page cache warm; peak memory counts the mapped pages of the trace"
        " too.\n\n%s\n" % (data["program"], table(head, rows))
    )


# ---- reading traces ----

BASE = "babeltrace2 2.0"  # what others are compared with: every field in stream order, text with text
SUM = ("sum of the bytes", "limit", 1)


def row_of(trace, reader, mode, threads=1):
    """The row of a reader whose name begins so; None where it was left out."""
    for row in trace["rows"]:
        if row["reader"].startswith(reader) and (row["mode"], row["threads"]) == (mode, threads):
            return row
    return None


def faster(slow, quick):
    return slow["seconds"] / quick["seconds"] if slow and quick else None


def cell(form, value):
    return form % value if value is not None else ""


def read_rows(trace, base):
    for mode, what in readers.MODES.items():
        for row in trace["rows"]:
            if row["mode"] != mode:
                continue
            theirs = row_of(base, BASE, "text" if mode == "text" else "stream")
            yield [
                "%s: %s%s" % (what, row["reader"], ", %d threads" % row["threads"] if row["threads"] > 1 else ""),
                "%.3f" % row["seconds"],
                "%.3f" % row["cpu"],
                "%.1f" % (trace["events"] / row["seconds"] / 1e6),
                "%.0f" % (trace["bytes"] / row["seconds"] / 1e6),
                cell("%.1f", faster(theirs, row) if mode != "limit" else None),
                cell("%.3f", faster(row_of(trace, *SUM), row)),
                cell("%.3f", row.get("cold_seconds")),
            ]


def base_of(data, trace):
    """The trace on which babeltrace2 2.0 was run: it reads no CTF 2, and is compared by the same bytes in CTF 1.8."""
    same = traces.TRACES[trace["name"]][2]
    return next((t for t in data["traces"] if t["name"] == same), trace)


def read_trace_text(data, trace):
    head = ["reader", "seconds", "CPU s", "M events/s", "MB/s", "times babeltrace2", "of the sum", "cold s"]
    text = "### %s\n\n%.1f million events, %.0f MB.\n\n" % (trace["name"], trace["events"] / 1e6, trace["bytes"] / 1e6)
    return text + table(head, list(read_rows(trace, base_of(data, trace)))) + "\n"


# What issue 3 asks for, by trace: (mode, reader) -> times babeltrace2 2.0; and the share of the summing loop.
READ_AIMS = {
    "LTTng user space": {"stream": 50, "time": 50, "count": 200, "text": 20, "sum": 0.25},
    "LTTng user space, CTF 2": {"stream": 50, "time": 50, "count": 200, "text": 20, "sum": 0.25},
    "LTTng kernel, repeated": {"stream": 120, "time": 50, "count": 200, "text": 20, "sum": 0.4},
}
AIM_EVENTS = 5_000_000  # the aims are for traces of so many events and more: a process takes some ms before the first
FASTEST_AIM, THREADS_AIM, MEMORY_AIM_KIB, CTF2_AIM = 40, 1.8, 64 * 1024, 0.95


def read_aims(data, trace):
    """[(what, value, least)]"""
    aims, base = READ_AIMS.get(trace["name"], {}), base_of(data, trace)
    own = row_of(trace, "krait", "stream")
    others = [r for r in trace["rows"] if r["mode"] == "stream" and r["threads"] == 1 and not r["reader"].startswith("krait")]
    fastest = min(others, key=lambda r: r["seconds"], default=None)
    for mode in ("stream", "time", "count", "text"):
        theirs = row_of(base, BASE, "text" if mode == "text" else "stream")
        yield "%s, times babeltrace2" % readers.MODES[mode], faster(theirs, row_of(trace, "krait", mode)), aims.get(mode)
    yield "every field, share of the summing loop", faster(row_of(trace, *SUM), own), aims.get("sum")
    if fastest and aims:
        yield "every field, times %s" % fastest["reader"], faster(fastest, own), FASTEST_AIM
    if aims:
        for mode in ("stream", "time"):
            two = faster(row_of(trace, "krait", mode), row_of(trace, "krait", mode, 2))
            yield "%s, two threads, times one" % readers.MODES[mode], two, THREADS_AIM
    if base is not trace:
        yield "every field, times CTF 1.8", faster(row_of(base, "krait", "stream"), own), CTF2_AIM


def read_goals(data):
    text = ""
    for trace in (t for t in data["traces"] if t["events"] >= AIM_EVENTS):
        for what, value, least in read_aims(data, trace):
            if value is not None and least is not None:
                text += goal("%s: %s %.2f (at least %g)." % (trace["name"], what, value, least), value >= least)
    most = max((r.get("anon_kib", 0) for t in data["traces"] for r in t["rows"]), default=0)
    return text + goal("memory of krait's readers that is no mapped file: %s MiB (at most 64)." % mib(most * 1024), most <= MEMORY_AIM_KIB)


def instructions_text(data):
    text = (
        "### Where the instructions go\n\nInstructions an event, by callgrind, one thread; and the functions that take a"
        " twentieth or more of them.\n\n"
    )
    for trace, counted in data["instructions"].items():
        for what, found in counted.items():
            top = ", ".join("`%s` %.0f" % (f, n) for f, n in found["functions"] if n >= found["event"] / 20)
            text += "- %s: %s **%.0f**: %s\n" % (trace, what, found["event"], top)
    return text + "\n"


def read_text(data):
    missing = "".join("%s: left out, %s.\n\n" % item for item in data["missing"].items())
    return (
        "## Reading traces\n\nWhole processes, from start to end, %d runs (slow readers fewer), median; the page cache has the"
        " trace, except in the\ncolumn `cold s`, where it was made to forget it (posix_fadvise). All readers agree on the number"
        " of events and on the sums\nof their fields' values. `times babeltrace2` is against 2.0's C interface touching every"
        " field in stream order, text against its\ntext; `of the sum` is against adding up the same mapped bytes by one thread.\n\n"
        % data["reps"]
        + missing
        + "".join(read_trace_text(data, t) for t in data["traces"])
        + read_goals(data)
        + "\n"
        + instructions_text(data)
    )


FORMS_AIM = 1.5  # times text


def forms_text(data):
    head, kinds = ["events"], [form for form in data["rows"][0] if form != "name"]
    for form in kinds:
        head += ["%s, CPU s" % form] + (["times text"] if form != kinds[0] else [])
    rows = []
    for row in data["rows"]:
        cells = [row["name"]]
        for form in kinds:
            cells += ["%.3f" % row[form]] + (["%.2f" % (row[form] / row[kinds[0]])] if form != kinds[0] else [])
        rows.append(cells)
    most = max(row[form] / row[kinds[0]] for row in data["rows"] for form in kinds[1:])
    return (
        "## Text, JSON and CSV\n\n`krait cat` of %.1f million events to /dev/null, %d runs of each in turn, median of the whole process's CPU"
        " time.\n\n%s\n" % (data["events"] / 1e6, data["reps"], table(head, rows))
        + goal("the slowest form takes %.2f times text's time (at most %g)." % (most, FORMS_AIM), most <= FORMS_AIM)
        + "\n"
    )


INTERVALS_AIM = 2  # seconds for 20 million marks


def intervals_text(data):
    names = {"krait": ("krait intervals", data["marks"]), "krait, few": ("krait intervals", data["few"]), "script": ("babeltrace2 and a script", data["few"])}
    rows = [
        [names[tool][0], "%.1f" % (names[tool][1] / 1e6), "%.2f" % row["seconds"], "%.2f" % row["cpu"], mib(row["rss_kib"] * 1024),
         "%.0f" % (row["seconds"] * 1e9 / names[tool][1])]
        for tool, row in data["rows"].items()
    ]
    seconds = data["rows"]["krait"]["seconds"]
    return (
        "## Intervals\n\n`krait intervals --start Start --stop Stop` on marks of one thread, half of which match; and the usual way, babeltrace2's text"
        " through a script of Python's `re` (`bench/intervals.py`), on fewer. %d runs of each in turn, medians.\n\n%s\n"
        % (data["reps"], table(["", "million marks", "seconds", "CPU s", "MiB", "ns a mark"], rows))
        + goal("%.1f million marks take %.2f s (at most %g s for 20 million)." % (data["marks"] / 1e6, seconds, INTERVALS_AIM),
               seconds <= INTERVALS_AIM * data["marks"] / 20e6)
        + "\n"
    )


# ---- sampling ----

SAMPLING_AIM = 0.02  # at 1 kHz
PROGRAM_TEXT = {"calls": "short calls", "tasks": "short calls in four tasks of asyncio", "10": "short calls below 10 frames", "30": "short calls below 30 frames"}


def sampling_cell(found):
    return "%+.1f (%+.1f to %+.1f)" % tuple(100 * found[key] for key in ("slower", "least", "most"))


def sampling_rows(rows):
    for row in rows:
        rest = ["%.0f" % row["per_second"], "%d of %d" % (row["wrong"], row["samples"])] if row["rate"] else ["", ""]
        yield ["%s, %d Hz" % (row["tool"], row["rate"]) if row["rate"] else "nothing", "%d" % row["runs"], sampling_cell(row["wall"]), sampling_cell(row["cpu"]), *rest]


def of_krait(rows, rate):
    return next(r for r in rows if (r["tool"], r["rate"]) == ("krait", rate))


def sampling_goals(data):
    wrong = sum(r["wrong"] for of in data["rows"].values() for part in of.values() for r in part["rows"] if r["tool"].startswith("krait"))
    taken = sum(r["samples"] for of in data["rows"].values() for part in of.values() for r in part["rows"] if r["tool"].startswith("krait"))
    text = goal("krait at 1 and 10 kHz: of %d samples, stacks that never were: %d." % (taken, wrong), not wrong)
    for version, of in data["rows"].items():
        for program, part in of.items():
            row, nothing = of_krait(part["rows"], 1000), part["rows"][0]
            noise = max(abs(nothing[key][end]) for key in ("wall", "cpu") for end in ("least", "most"))
            most = max(row["wall"]["slower"], row["cpu"]["slower"])
            words = (version, PROGRAM_TEXT[program], 100 * row["wall"]["slower"], 100 * row["cpu"]["slower"])
            if noise > SAMPLING_AIM and most < 2 * noise:
                text += "- krait at 1 kHz, CPython %s, %s: slower by %.1f %% in wall time, %.1f %% in CPU time. Whether that is at most 2 cannot be told from them alone: beside nothing, single runs differ by up to %.1f %%.\n" % (*words, 100 * noise)
            else:
                text += goal("krait at 1 kHz, CPython %s, %s: slower by %.1f %% in wall time, %.1f %% in CPU time (at most 2)." % words, most <= SAMPLING_AIM)
    return text


def sampling_text(data):
    tools = ", ".join("%s %s" % item for item in sorted(data["versions"].items()))
    text = (
        "## Sampling from outside\n\nA program of short calls in turns, directly, as generators and through map(), and the same in four tasks of asyncio (`bench/sampling.py`). It runs all the"
        " time, and samplers come and go:\nhow much longer it takes for its work, in %%, of wall time and of CPU time, beside each sampler, compared with just before and just after. In each run the sampler is stopped and"
        " goes on ten times\n(py-spy stops the program itself, so it runs once, as long). Median of all turns (least to most of the runs' medians).\nSamples a second; samples whose stack never was, d() below a(). %s.\n" % tools
    )
    for version, of in data["rows"].items():
        for program, part in of.items():
            text += "\nCPython %s, %s:\n\n%s" % (version, PROGRAM_TEXT[program], table(["", "runs", "slower, wall", "slower, CPU", "samples/s", "never were"], list(sampling_rows(part["rows"]))))
            for name, why in part["missing"].items():
                text += "\n%s: left out, %s.\n" % (name, why)
    return text + "\n" + sampling_goals(data) + "\n"


# ---- what a program says about itself ----

SAY_AIM, SILENT_AIM = 150, 30  # ns, recorded and not
TASK_SWITCH = "; a `task switch` is one `await asyncio.sleep(0)` of two tasks by turns, asyncio's own time included"


def annotate_text(data):
    whats = list(next(iter(data["rows"].values())))
    rows = [[tool] + ["%.0f" % row[what] if what in row else "" for what in whats] for tool, row in data["rows"].items()]
    said = [w for w in whats if w not in ("log record", "task switch")]
    text = (
        "## Marks, spans, counters, log records\n\nNanoseconds each on CPython %s, without the loop's own; a span is its begin and its end. `krait.mark` and the like"
        " with nobody recording, with all calls recorded,\nand with none; VizTracer's `add_instant`, `log_event`, `log_var` and `VizLoggingHandler`, beside its recording of calls and"
        " without (`log_sparse`); OpenTelemetry's spans,\nevents of a span, gauge and logging handler without an SDK, and with it, batches going nowhere. `log record` is `log.info('order %%d', 7)`"
        " with a handler that does nothing\nwhere the tool has none%s (`bench/annotate.py`). viztracer %s, opentelemetry-sdk %s. The least of 40 batches of 2,000 a run;\n%d runs of each in turn, medians.\n\n%s\n"
        % (data["python"], TASK_SWITCH if "task switch" in whats else "", data["versions"]["viztracer"], data["versions"]["opentelemetry-sdk"], data["reps"], table([""] + whats, rows))
    )
    for tool, aim in (("krait record --log", SAY_AIM), ("krait, nobody records", SILENT_AIM)):
        row = data["rows"][tool]
        each = ", ".join("%s %.0f" % (what, row[what]) for what in said)
        halves = max(row[what] / (2 if what == "span" else 1) for what in said)
        text += goal("%s: %s ns (at most %d each; a span counts as two)." % (tool, each, aim), halves <= aim)
    return text + "\n"


# ---- the kernel ----

TYPICAL_AIM, WORST_AIM, ANALYSIS_AIM = 0.05, 0.18, 2  # shares of the time under krait; seconds for 20 million events


SERVER_TEXT = """A web server in Python (`bench/web_server.py`: a thread a connection; each request looks at all files of a folder and
sends one) under wrk, %d connections: on one CPU, with wrk on the others, and both on all. `krait, unread` is krait without
`--kernel` while the kernel writes the same events into rings that nobody reads: the least that any recorder of them costs.
`krait, perf` is the same with `perf record`, system calls by raw_syscalls. `added` is against krait.

"""


def kernel_program_rows(data):
    rows = []
    for name, program in data.items():
        on, noise = program["krait --kernel"], lib.spread(program["krait"]["walls"])
        rows.append(
            [
                name,
                "%.3f" % program["none"]["wall"],
                "%.2f" % (program["krait"]["wall"] / program["none"]["wall"]),
                "%.2f" % (on["wall"] / program["none"]["wall"]),
                "%+.1f" % (100 * kernel.beyond(program)),
                "%+.1f" % (100 * kernel.beyond(program, "cpu")),
                "%.1f" % (100 * noise),
                "%.0f" % (on["kernel_events"] / on["process"] / 1000),
                "%d" % on["kernel_lost"],
            ]
        )
    return rows


def kernel_server_rows(server):
    return [
        [
            place,
            tool,
            "%.0f" % row["requests"],
            "%.1f" % (100 * lib.spread(row["all_requests"])),
            "" if tool in ("none", "krait") else "%+.1f" % (100 * kernel.beyond_server(tools, tool)),
            "%.0f" % row["cpu_us"],
            "%.2f" % (row["p50_us"] / 1000),
            "%.2f" % (row["p99_us"] / 1000),
            "%d" % row["kernel_events"] if "kernel_events" in row else "",
            "%d" % row["kernel_lost"] if "kernel_lost" in row else "",
        ]
        for place, tools in server.items()
        for tool, row in tools.items()
    ]


def kernel_goals(data):
    """The programs together, and each that adds most; the web server's places by themselves."""
    text = ""
    if "missing" not in data["programs"]:
        added = {name: kernel.beyond(p) for name, p in data["programs"].items()}
        middle, (worst, most) = lib.median(list(added.values())), max(added.items(), key=lambda item: item[1])
        text += goal("what `--kernel` adds to the programs, median: %.1f %% (at most %.0f)." % (100 * middle, 100 * TYPICAL_AIM), middle <= TYPICAL_AIM)
        text += goal("and most, %s: %.1f %% (at most %.0f)." % (worst, 100 * most, 100 * WORST_AIM), most <= WORST_AIM)
    for place, tools in data["server"].items() if "missing" not in data["server"] else ():
        added, cpu = kernel.beyond_server(tools), kernel.beyond_server_cpu(tools)
        words = (place, 100 * added, 100 * WORST_AIM, 100 * cpu)
        text += goal("web server on %s: %.1f %% (at most %.0f); of a request's CPU time: %.1f %%." % words, added <= WORST_AIM)
    return text


def kernel_cost_text(data):
    if "missing" in data["programs"]:
        text = "What it adds to programs: left out, %s.\n\n" % data["programs"]["missing"]
    else:
        head = ["program", "untraced s", "krait", "krait --kernel", "added %", "added CPU %", "noise %", "k events/s", "lost"]
        text = table(head, kernel_program_rows(data["programs"])) + "\n"
    if "missing" in data["server"]:
        text += "A web server: left out, %s.\n\n" % data["server"]["missing"]
    else:
        head = ["CPUs", "server", "requests/s", "noise %", "added %", "CPU us a request", "median ms", "p99 ms", "kernel events", "lost"]
        text += SERVER_TEXT % kernel.CONNECTIONS + table(head, kernel_server_rows(data["server"])) + "\n"
    return text + kernel_goals(data) + "\n"


def kernel_analyses_text(data):
    if "missing" in data:
        return "Analyses: left out, %s.\n" % data["missing"]
    rows = [
        [name, "%.2f" % r["seconds"], "%.1f" % (data["events"] / r["seconds"] / 1e6), "%.1f" % (r["anon_kib"] / 1024)]
        for name, r in data["rows"].items()
    ]
    text = "### Analyses\n\n%.1f million events, %s MiB, on one CPU, page cache warm. Memory is the peak without mapped files.\n\n" % (
        data["events"] / 1e6,
        mib(data["bytes"]),
    )
    text += table(["verb", "seconds", "M events/s", "memory MiB"], rows) + "\n"
    if data["events"] < AIM_EVENTS:
        return text
    for name, r in data["rows"].items():
        took = r["seconds"] * 20e6 / data["events"]
        text += goal("%s: %.2f s for 20 million events (less than %d)." % (name, took, ANALYSIS_AIM), took < ANALYSIS_AIM)
    return text


def kernel_text(data):
    return (
        "## The kernel\n\nCPython %s, %d runs of each in turn, median. `added` is the time under `krait record --kernel` over that"
        " under `krait record`,\nminus one: what the kernel events cost in addition to the calls. Noise is the distance of the quartiles"
        " of the runs under krait.\n\n%s%s\n" % (data["python"], data["reps"], kernel_cost_text(data), kernel_analyses_text(data["analyses"]))
    )


# ---- --max-overhead ----


def governor_rows(data):
    for name, p in data["programs"].items():
        long_ns, who = p["longest_dropped"]
        yield [
            name,
            "%.2f" % lib.median(p["walls"]["none"]),
            "%.1f" % (100 * p["noise"]),
            "%.2f" % p["full"],
            "%.2f" % p["slowdown"],
            "%.1f" % (100 * p["error"]),
            "%.1f" % (100 * p["error_noise"]),
            "%.1f" % (100 * p["error_whole"]),
            "%.1f" % (100 * p["from_whole"]),
            "%.1f" % (100 * p["long_calls"]),
            "%d of %d" % (p["dropped"], p["functions"]),
            "%.2f" % (long_ns / 1000),
        ]


def governor_text(data):
    over = governor.over_budget(data)
    wrong = governor.wrong(data)
    head = ["program", "untraced CPU s", "noise %", "krait", "governed", "error %", "its noise %", "error, whole %", "from whole %", "long calls %", "dropped", "longest dropped us"]
    failed = "".join("%s: left out, %s.\n\n" % item for item in data.get("failed", {}).items())
    return (
        "## --max-overhead\n\nCPython %s.\n\nSlowdowns are of CPU time, %d runs of each in turn. The attribution error is the sum over functions of the difference of their"
        " shares of the time, as the\ngoverned recording shows them and as samples of the untraced program show them; `bench/sampler.c` takes 5,000 samples a second. In both, C functions and"
        "\ndropped functions count with their callers. The next columns are its noise, the error of whole recordings, whose times include the cost of recording each"
        "\ncall, and the difference between governed and whole recordings. Long calls: the cost of recording functions that krait never drops, because their calls last"
        "\nlonger than 50 times the cost of an event. The last column is the mean time of the longest calls that were dropped (`bench/governor.py`).\n\n%s\n%s%s%s\n"
        % (
            data["python"],
            data["reps"],
            table(head, list(governor_rows(data))),
            failed,
            goal("slowed by more than 5 %% beyond the noise: %s." % (", ".join(over) or "none"), not over),
            goal("attribution error above 5 %% beyond its noise, against the samples and against the whole recording: %s." % (", ".join(wrong) or "none"), not wrong),
        )
    )


VIEW_AIMS = """Aims: the index of 100 million calls in under 2 s on two processors, under 1 byte a call; under 256 MB of memory beyond
what is mapped; 95 of 100 tiles in under 50 ms; a first tile within 1 s.
"""


def view_rows(data):
    for row in data["rows"]:
        calls = "calls" in row["name"]
        yield [
            row["name"],
            mib(row["bytes"]),
            "%.2f" % row["index_one"],
            "%.2f" % row["index"],
            mib(row["index_bytes"]),
            "%.2f" % (row["index_bytes"] / row["calls"]) if calls else "",
            "%.0f" % (row["memory"] / 2**20),
            "%.2f" % row["first_tile"],
            "%.2f" % row["warm"],
            "%.2f" % (row["tile_median"] / 1e3),
            "%.2f" % (row["tile_p95"] / 1e3),
        ]


VIEW_PAGE_AIMS = "Aims: the first picture within 1 s; 95 of 100 frames drawn in under 16 ms; under 256 MB of the server's own.\n"


def own(row, key):
    return "%.2f" % row[key] if key in row else ""


def view_page_rows(pages):
    for row in pages:
        drawn, apart = row["drawn"], row["apart"]
        times = ["%.2f" % row["cold"], own(row, "cold_own"), "%.2f" % row["warm"], own(row, "warm_own"), "%d" % row["frames"], "%.1f" % drawn[0], "%.1f" % drawn[1], "%.1f" % apart[0], "%.1f" % apart[1]]
        yield [row["name"], *times, "%.0f" % (row["memory"] / 2**20)]


def view_page_text(pages):
    missing = sorted({row["missing"] for row in pages if "missing" in row})
    if missing:
        return "The page is left out: %s.\n\n" % "; ".join(missing)
    head = ["trace", "first picture s", "of it krait", "with cache s", "of it krait", "frames", "drawing ms", "95 %", "apart ms", "95 %", "server MiB"]
    return (
        "The page in headless Chromium without a GPU, 1280 by 800 pixels: from the start of `krait view` to the first picture, without and with"
        "\nthe index in its file, and what of that is krait's (until it serves, and from the begin of the navigation on): the rest is the browser opening"
        "\na tab; then a script zooms to a microsecond and back, and moves to both sides. Frames are 16.7 ms apart at the least:"
        "\nthat is the screen's rate.\n\n%s\n%s\n" % (VIEW_PAGE_AIMS, table(head, list(view_page_rows(pages))))
    )


def view_perfetto_text(perfetto):
    if "missing" in perfetto:
        return "Perfetto is left out: %s.\n\n" % perfetto["missing"]
    return (
        "Perfetto's trace processor, as WebAssembly in node, takes %.1f s for the same %d million calls as krait exports them,"
        "\nuntil it answers how many slices there are, and %.0f ms for the number and time of those that begin in one millisecond."
        "\n\n" % (perfetto["seconds"], perfetto["calls"] / 1e6, perfetto["question"] * 1e3)
    )


def view_text(data):
    head = ["trace", "MiB", "index s, 1 thread", "index s", "index MiB", "bytes a call", "memory MiB", "first tile s", "with cache s", "tile ms", "tile ms, 95 %"]
    return (
        "## krait view\n\nPage cache warm. Recordings of one thread. From the start of the program: a first tile that has something in"
        " it, while the index is\nbuilt, and with the index in its file. Tiles: 500 by chance, at all levels.\n\n%s\n%s\n%s%s"
        % (VIEW_AIMS, table(head, list(view_rows(data))), view_page_text(data.get("pages", [])) if data.get("pages") else "", view_perfetto_text(data["perfetto"]))
    )


def machine_text(m):
    return "%s, %s: %s, %d CPUs%s, %s GiB, Linux %s, %s.\n\n" % (
        m["krait"],
        m["date"],
        m["cpu"],
        m["cpus"],
        " of a virtual machine" if m["virtual"] else "",
        m["memory_gib"],
        m["kernel"],
        m["libc"],
    )


BUSY_TEXT = (
    "**Other programs ran on the machine meanwhile (load average %.1f at the start): times, and the noise of them, are larger than\nthey would be; see the CPU times.**\n\n"
)


def busy_machine_text(m):
    return BUSY_TEXT % m["load"] if m["load"] > 1 else ""


def part_text(results, name, render, page_machine):
    """A part that was measured elsewhere says where."""
    text, there = render(results[name]), results.get("machines", {}).get(name, results["machine"])
    heading, rest = text.split("\n\n", 1)
    return text if machine_text(there) == page_machine else "%s\n\n%s%s%s" % (heading, machine_text(there), busy_machine_text(there), rest)


PLACE = re.compile(r"<!-- (?:(before|after): (.*)|end) -->\n\n")


def remarks_in(text):
    """[(where, block, text)] of a file in by_hand/: what stands before or after the block that begins so, or at the end."""
    head, *rest = PLACE.split(text)
    return ([(None, None, head)] if head.strip() else []) + list(zip(rest[::3], rest[1::3], rest[2::3]))


def with_remarks(text, file):
    """A part with what is written about it by hand. A remark whose block is not there goes to the end: none is lost."""
    blocks = text.strip("\n").split("\n\n") if text else []
    for where, begin, remark in remarks_in(file.read_text()) if file.exists() else ():
        at = next((i for i, block in enumerate(blocks) if where and block.startswith(begin)), None)
        blocks.insert(len(blocks) if at is None else at + (where == "after"), remark.strip("\n"))
    return "\n\n".join(blocks) + "\n\n" if blocks else ""


# name -> (heading, what makes the part), in the page's order
PARTS = {
    "programs": ("## Programs", programs_text),
    "busy": ("## A busy machine", busy_text),
    "calls": ("## A call", calls_text),
    "events": ("## An event from C", events_text),
    "report": ("## krait report", report_text),
    "read": ("## Reading traces", read_text),
    "forms": ("## Text, JSON and CSV", forms_text),
    "intervals": ("## Intervals", intervals_text),
    "annotate": ("## Marks, spans, counters, log records", annotate_text),
    "kernel": ("## The kernel", kernel_text),
    "governor": ("## --max-overhead", governor_text),
    "view": ("## krait view", view_text),
    "wakeups": ("## Waking up on a thread's CPU", wakeups_text),
    "sampling": ("## Sampling from outside", sampling_text),
    "attach": ("## Attaching", attach_text),
    "flight": ("## A flight recording", flight_text),
}


def page(results, by_hand=lib.HERE / "by_hand"):
    m = results["machine"]
    text = "# Benchmarks\n\nMade by `make bench`, with what is in `bench/by_hand/`; do not edit.\n\n"
    text += machine_text(m)
    if results.get("quick"):
        text += "Short runs (`--quick`): each program ran a third as long as in a full run, so its start counts for more.\n\n"
    text += busy_machine_text(m)
    if "programs" in results or "calls" in results:
        text += GOALS + "\n"
    for name, (_, render) in PARTS.items():
        made = part_text(results, name, render, machine_text(m)) if name in results else ""
        text += with_remarks(made, by_hand / f"{name}.md")
    return text.rstrip("\n") + "\n"


def renewed(page, results, by_hand=lib.HERE / "by_hand"):
    """A page with the parts that these results have anew, and its others as they are."""
    headings = {heading: name for name, (heading, _) in PARTS.items()}
    head, *sections = re.split(r"(?m)^(?=## )", page)
    parts, of = {}, None
    for section in sections:  # those that are written by hand follow their part
        of = headings.get(section.split("\n", 1)[0], of)
        parts[of] = parts.get(of, "") + section
    line = next((block + "\n\n" for block in head.split("\n\n") if block.startswith("krait ")), "")
    for name in PARTS.keys() & results.keys():
        parts[name] = with_remarks(part_text(results, name, PARTS[name][1], line), by_hand / f"{name}.md")
    texts = [head.strip("\n")] + [parts[name].strip("\n") for name in PARTS if name in parts]
    return "\n\n".join(texts) + "\n"
