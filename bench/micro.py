# SPDX-License-Identifier: Apache-2.0
"""Nanoseconds that a recorded call adds: fib for Python calls, len in a loop for C calls; every Python version."""

import lib

FIB = 22
FIB_CALLS = 57313  # fib(22) makes 2 * fib(23) - 1 calls
LEN_CALLS = 100000
LOOPS = 8

TOOLS = {
    "fib": ["none", "floor, no C calls", "krait --no-c-calls", "floor", "krait"],
    "len": ["none", "floor", "krait"],
}


def run(pythons, options):
    """{version: {program: {tool: nanoseconds added a call}}}"""
    lib.floor_module()
    result = {}
    for python in pythons:
        key = "%s%s" % (python.version, " static" if python.linked == "static" else "")
        lib.say("calls: %s" % key)
        result[key] = {}
        for name, tools in TOOLS.items():
            calls = LOOPS * (FIB_CALLS if name == "fib" else LEN_CALLS)
            tools = [t for t in tools if options.krait or not t.startswith("krait")]
            program = [lib.HERE / "calls.py", name, str(FIB if name == "fib" else LEN_CALLS)]
            runs = lib.interleaved(tools, options.reps, lambda tool: lib.run(python, tool, program, LOOPS)["wall"])
            plain = lib.median(runs["none"])
            result[key][name] = {t: (lib.median(r) - plain) / calls * 1e9 for t, r in runs.items() if t != "none"}
            result[key][name]["untraced"] = plain / calls * 1e9
    return result
