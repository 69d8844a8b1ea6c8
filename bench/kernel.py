# SPDX-License-Identifier: Apache-2.0
"""What recording the kernel adds to recording the calls, and how long its events take to analyse.

The programs as in programs.py, and a web server under wrk that lives by system calls: untraced, under krait, and under
krait --kernel in turn. What is judged is the last against the one before it: beyond the calls' own cost.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import time

import lib
import programs
import traces

TOOLS = ("none", "krait", "krait --kernel")
CONNECTIONS = 8
SECONDS = 5  # of wrk, each run
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
    result = {}
    for name, loops in wanted:
        if options.quick:
            loops = max(1, loops // programs.QUICK_SHARE)
        lib.say("kernel, %s: %d runs" % (name, options.reps * len(TOOLS)))
        runs = lib.interleaved(list(TOOLS), options.reps, lambda tool: measure_program(python, tool, name, loops))
        result[name] = {tool: summarise(r) for tool, r in runs.items()}
    return result


# ---- the web server ----


def start_server(python, tool, folder):
    """The process, under the tool; its first line is the port."""
    options, _ = lib.tool_of(tool)
    command = [*python.prefix, python.path, lib.HERE / "web_server.py"]
    if options is not None:
        command = [lib.KRAIT, "record", "-q", "-o", folder, *options, "--", *command]
    return subprocess.Popen([str(w) for w in command], stdout=subprocess.PIPE, text=True)


MICROSECONDS = {"us": 1, "ms": 1000, "s": 1_000_000}


def wrk(port, seconds):
    """{requests: a second; count: of them; p50_us, p99_us: latency}"""
    address = "http://127.0.0.1:%d/" % port
    out = lib.quiet(["wrk", "-t1", "-c%d" % CONNECTIONS, "-d%ds" % seconds, "--latency", address]).stdout
    rate, count = re.search(r"Requests/sec:\s+([\d.]+)", out), re.search(r"(\d+) requests in", out)
    latency = {at: float(n) * MICROSECONDS[unit] for at, n, unit in re.findall(r"^\s+(50|99)%\s+([\d.]+)(us|ms|s)$", out, re.M)}
    if not rate or "Non-2xx" in out or "Socket errors" in out or len(latency) < 2:
        raise RuntimeError("wrk: %s" % out)
    return {"requests": float(rate[1]), "count": int(count[1]), "p50_us": latency["50"], "p99_us": latency["99"]}


def measure_server(python, tool, seconds):
    folder = lib.OUT / "web-trace"
    shutil.rmtree(folder, ignore_errors=True)
    child = start_server(python, tool, folder)
    try:
        port = int(child.stdout.readline())
        warm = wrk(port, 1)
        data = wrk(port, seconds)
    finally:
        child.send_signal(signal.SIGTERM)
        cpu = child.communicate()[0]
    data["cpu_us"] = float(cpu) * 1e6 / (warm["count"] + data["count"])
    data.update(kernel_facts(folder) if "--kernel" in tool else {})
    shutil.rmtree(folder, ignore_errors=True)
    return data


def run_server(python, options):
    if not shutil.which("wrk"):
        return {"missing": "wrk is not installed"}
    lib.say("kernel, web server: %d runs" % (options.reps * len(TOOLS)))
    seconds = 2 if options.quick else SECONDS
    runs = lib.interleaved(list(TOOLS), options.reps, lambda tool: measure_server(python, tool, seconds))
    result = {tool: {key: lib.median([r[key] for r in all_]) for key in all_[0]} for tool, all_ in runs.items()}
    for tool, all_ in runs.items():
        result[tool]["all_requests"] = [r["requests"] for r in all_]
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


def beyond_server(server):
    """The same, of the time that a request takes."""
    return server["krait"]["requests"] / server["krait --kernel"]["requests"] - 1


def beyond_server_cpu(server):
    return server["krait --kernel"]["cpu_us"] / server["krait"]["cpu_us"] - 1
