# SPDX-License-Identifier: Apache-2.0
"""What recording the kernel adds to recording the calls, and how long its events take to analyse.

The programs as in programs.py, and a web server under wrk that lives by system calls: untraced, under krait, and under
krait --kernel in turn. What is judged is the last against the one before it: beyond the calls' own cost. The server runs
also with the same events and no krait to read them, and under perf (kernel_peers.py).
"""

import json
import os
import re
import shutil
import signal
import subprocess
import time

import kernel_peers
import lib
import programs
import traces

TOOLS = ("none", "krait", "krait --kernel")
CONNECTIONS = 8
SECONDS = 5  # of wrk, each run
SERVER = "web_server"  # as a program's name
ANALYSES = {"krait states": ["states"], "krait path": ["path"]}


def cannot():
    """Why the kernel cannot be recorded here; None where it can."""
    checks = json.loads(lib.quiet([lib.KRAIT, "doctor", "--json"]).stdout)["checks"]
    check = next(c for c in checks if c["name"] == "tracefs")
    return None if check["state"] == "ok" else check["fix"]


def kernel_facts(trace):
    facts = lib.info(trace).get("kernel") or {}
    return {"kernel_events": facts.get("events", 0), "kernel_lost": facts.get("lost", 0)}


# ---- programs ----


def measure_program(python, tool, name, loops):
    data = lib.run(python, tool, programs.command(python, name), loops)
    data.update(kernel_facts(data["trace"]) if "--kernel" in tool else {})
    return data


def summarise(runs):
    return {
        **{key: lib.median([r[key] for r in runs]) for key in ("wall", "cpu", "process", "all_cpu", "total_cpu")},
        "walls": [round(r["wall"], 5) for r in runs],
        "cpus": [round(r["cpu"], 5) for r in runs],
        **{key: lib.median([r[key] for r in runs]) for key in ("kernel_events", "kernel_lost") if key in runs[0]},
    }


def run_programs(python, options):
    wanted = [p for p in programs.PROGRAMS if p[0] != "sqlglot" and (not options.programs or p[0] in options.programs)]
    if not wanted:
        return {"missing": "not asked for"}
    result = {}
    for name, loops in wanted:
        if options.quick:
            loops = max(1, loops // programs.QUICK_SHARE)
        lib.say("kernel, %s: %d runs" % (name, options.reps * len(TOOLS)))
        runs = lib.interleaved(list(TOOLS), options.reps, lambda tool: measure_program(python, tool, name, loops))
        result[name] = {tool: summarise(r) for tool, r in runs.items()}
    return result


# ---- the web server ----


# Where the server runs -> are it and wrk kept apart, each on CPUs of its own? On all CPUs the threads of a server in
# Python fight for the GIL from different CPUs, or happen not to: a run stays in one of two heaps, a factor of 2 apart.
PLACES = {"one CPU": True, "all CPUs": False}


def pinned(cpus):
    """What stands before a command to keep it there."""
    return ["taskset", "-c", ",".join(str(c) for c in cpus)]


def places():
    """{place: what stands before the server, and before wrk}"""
    first, *others = sorted(os.sched_getaffinity(0))
    apart = (pinned([first]), pinned(others or [first]))
    return {place: apart if keep else ([], []) for place, keep in PLACES.items()}


def start_server(python, tool, folder, before):
    """The process, under the tool; its first line is the port."""
    options = [] if tool in kernel_peers.PEERS else lib.tool_of(tool)[0]
    command = [*before, *python.prefix, python.path, lib.HERE / "web_server.py"]
    if options is not None:
        command = [lib.KRAIT, "record", "-q", "-o", folder, *options, "--", *command]
    return subprocess.Popen([str(w) for w in command], stdout=subprocess.PIPE, text=True)


MICROSECONDS = {"us": 1, "ms": 1000, "s": 1_000_000}


def wrk(port, seconds, before):
    """{requests: a second; count: of them; p50_us, p99_us: latency}"""
    address = "http://127.0.0.1:%d/" % port
    out = lib.quiet([*before, "wrk", "-t1", "-c%d" % CONNECTIONS, "-d%ds" % seconds, "--latency", address]).stdout
    rate, count = re.search(r"Requests/sec:\s+([\d.]+)", out), re.search(r"(\d+) requests in", out)
    latency = {at: float(n) * MICROSECONDS[unit] for at, n, unit in re.findall(r"^\s+(50|99)%\s+([\d.]+)(us|ms|s)$", out, re.M)}
    if not rate or "Non-2xx" in out or "Socket errors" in out or len(latency) < 2:
        raise RuntimeError("wrk: %s" % out)
    return {"requests": float(rate[1]), "count": int(count[1]), "p50_us": latency["50"], "p99_us": latency["99"]}


def measure_server(python, tool, seconds, place):
    before_server, before_wrk = place
    folder = lib.OUT / "web-trace"
    shutil.rmtree(folder, ignore_errors=True)
    with kernel_peers.running(tool):
        child = start_server(python, tool, folder, before_server)
        try:
            port = int(child.stdout.readline())
            warm = wrk(port, 1, before_wrk)
            data = wrk(port, seconds, before_wrk)
        finally:
            child.send_signal(signal.SIGTERM)
            cpu = child.communicate()[0]
    data["cpu_us"] = float(cpu) * 1e6 / (warm["count"] + data["count"])
    data.update(kernel_facts(folder) if "--kernel" in tool else {})
    shutil.rmtree(folder, ignore_errors=True)
    return data


def summarise_server(runs):
    row = {key: lib.median([r[key] for r in runs]) for key in runs[0]}
    return {**row, "all_requests": [r["requests"] for r in runs]}


def run_server(python, options):
    """{place: {tool: row}}"""
    if options.programs and SERVER not in options.programs:
        return {"missing": "not asked for"}
    if not shutil.which("wrk"):
        return {"missing": "wrk is not installed"}
    tools, seconds, result = [*TOOLS, *kernel_peers.there()], 2 if options.quick else SECONDS, {}
    for name, place in places().items():
        lib.say("kernel, web server on %s: %d runs" % (name, options.reps * len(tools)))
        runs = lib.interleaved(tools, options.reps, lambda tool: measure_server(python, tool, seconds, place))
        result[name] = {tool: summarise_server(all_) for tool, all_ in runs.items()}
    return result


# ---- analyses ----


def words_of(verb, trace):
    """The whole command; krait path follows the thread that ran longest."""
    if verb != ["path"]:
        return [lib.KRAIT, *verb, trace]
    threads = json.loads(lib.quiet([lib.KRAIT, "states", "--json", trace]).stdout)["threads"]
    longest = max(threads, key=lambda t: t["on_cpu_ns"])
    return [lib.KRAIT, *verb, trace, "--thread", longest["tid"]]


def measure_analysis(command):
    """On one CPU."""
    cpu = min(os.sched_getaffinity(0))
    start = time.monotonic()
    child = subprocess.Popen(
        [str(w) for w in command],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: os.sched_setaffinity(0, {cpu}),
    )
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise RuntimeError("%s: exit status %d" % (" ".join(str(w) for w in command), child.returncode))
    return {"seconds": time.monotonic() - start, "cpu": usage.ru_utime + usage.ru_stime}


def run_analyses(options):
    if traces.missing():
        return {"missing": next(iter(traces.missing().values()))}
    trace = traces.trace("LTTng kernel, repeated", options.events or (traces.QUICK_EVENTS if options.quick else traces.EVENTS))
    traces.warm(trace)
    there = {name: verb for name, verb in ANALYSES.items() if lib.quiet([lib.KRAIT, *verb, "--help"]).returncode == 0}
    lib.say("kernel, analyses: %s" % ", ".join(there))
    commands = {name: words_of(verb, trace) for name, verb in there.items()}
    runs = lib.interleaved(list(commands), options.reps, lambda name: measure_analysis(commands[name]))
    rows = {name: {key: lib.median([r[key] for r in all_]) for key in all_[0]} for name, all_ in runs.items()}
    for name, row in rows.items():
        row["anon_kib"] = lib.anon_kib(commands[name])
    return {"events": lib.info(trace)["events"], "bytes": traces.stream_bytes(trace), "rows": rows}


def run(python, options):
    """{programs, server, analyses}, each {missing: why} where it cannot be had here."""
    why = cannot()
    result = {"reps": options.reps, "python": python.version, "analyses": run_analyses(options)}
    if why:
        return {**result, "programs": {"missing": why}, "server": {"missing": why}}
    python = lib.environment(python)
    return {**result, "programs": run_programs(python, options), "server": run_server(python, options)}


# ---- what follows from it ----


def beyond(row, metric="wall"):
    """What the kernel adds, as a share of the time under krait without it."""
    return row["krait --kernel"][metric] / row["krait"][metric] - 1


def beyond_server(tools, tool="krait --kernel"):
    """The same, of the time that a request takes."""
    return tools["krait"]["requests"] / tools[tool]["requests"] - 1


def beyond_server_cpu(tools):
    return tools["krait --kernel"]["cpu_us"] / tools["krait"]["cpu_us"] - 1
