# SPDX-License-Identifier: Apache-2.0
"""Reading traces: krait's reader beside others on the same traces, in one run, and what it spends its instructions on.

Readers take turns. Every run's events, and the sums of the fields' values, have to be the same for all readers.
"""

import lib
import readers
import traces

SLOW_REPS = 3
COLD_REPS = 3
WHAT_AGREES = ("events", "numbers", "text", "times", "classes")  # of what the programs print

# Callgrind runs on two small traces: the difference is what the events alone took.
FEW, MANY = 50_000, 150_000
COUNTED = [("krait", "stream"), ("krait", "time"), ("krait", "count"), ("krait cat", "text"), ("krait info", "count")]


def check(trace, reader, says, agreed):
    """What this run says of the trace has to be what the others said. Some leave out some of it."""
    for key in WHAT_AGREES:
        value = says.get(key)
        first = agreed.setdefault(key, (value, str(reader))) if value is not None else None
        if first and first[0] != value:
            raise RuntimeError("%s: %s is %s by %s, but %s by %s" % (trace, key, value, reader, *first))


def summarise(reader, runs, cold):
    row = {key: lib.median([r[key] for r in runs]) for key in ("seconds", "cpu")}
    row.update(reader=reader.name, mode=reader.mode, threads=reader.threads, all_seconds=[round(r["seconds"], 4) for r in runs])
    if cold:
        row["cold_seconds"] = lib.median([r["seconds"] for r in cold])
    return row


def measure_trace(name, path, there, options):
    agreed = {}

    def measure(reader):
        result = readers.run(reader, path)
        check(name, reader, result["says"], agreed)
        return result

    def measure_cold(reader):
        traces.cool(path)
        return measure(reader)

    slow_reps = min(options.reps, 1 if options.quick else SLOW_REPS)
    fast = [r for r in there if not r.slow]
    traces.warm(path)
    for reader in readers.krait_checks():
        measure(reader)
    runs = lib.interleaved(there, slow_reps, measure)
    for reader, more in lib.interleaved(fast, options.reps - slow_reps, measure).items():
        runs[reader] += more
    cold = lib.interleaved([r for r in there if r.cold], min(slow_reps, COLD_REPS), measure_cold)
    rows = [summarise(reader, runs[reader], cold.get(reader)) for reader in there]
    for reader, row in zip(there, rows):
        if reader.name.startswith("krait"):
            row["anon_kib"] = lib.anon_kib([*reader.command, path])
    return {"name": name, "events": agreed["events"][0], "bytes": traces.stream_bytes(path), "rows": rows}


# ---- instructions ----


def counted(reader, name, events):
    path = traces.trace(name, events)
    out = lib.OUT / "callgrind.out"
    command = [*lib.callgrind(out), *reader.command, path]
    done = lib.quiet(command)
    if done.returncode:
        raise RuntimeError("callgrind: %s" % lib.last_line_of(done.stderr))
    return lib.callgrind_counts(out), lib.info(path)["events"]


def instructions_of(reader, name):
    """{event: instructions an event, functions: [[name, share of them]]}"""
    few, few_events = counted(reader, name, FEW)
    many, many_events = counted(reader, name, MANY)
    events = many_events - few_events
    each = {f: (n - few.get(f, 0)) / events for f, n in many.items()}
    top = sorted(each.items(), key=lambda item: -item[1])[:8]
    return {"event": sum(each.values()), "functions": [[f, round(n, 1)] for f, n in top]}


def instructions(names, there):
    wanted = {(r.name, r.mode): r for r in there if r.threads == 1}
    result = {}
    for name in names:
        lib.say("instructions: %s" % name)
        result[name] = {"%s, %s" % key: instructions_of(wanted[key], name) for key in COUNTED}
    return result


def run(options):
    there, missing = readers.found()
    missing.update(traces.missing())
    events = options.events or (traces.QUICK_EVENTS if options.quick else traces.EVENTS)
    names = [n for n in traces.TRACES if n not in missing]
    result = {"reps": options.reps, "missing": missing, "traces": []}
    for name in names:
        path = traces.trace(name, events)
        able = [r for r in there if r.ctf2 or "CTF 2" not in name]
        lib.say("read: %s, %d readers" % (name, len(able)))
        result["traces"].append(measure_trace(name, path, able, options))
    result["instructions"] = instructions(names, there)
    return result
