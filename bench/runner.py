# SPDX-License-Identifier: Apache-2.0
"""Runs one program under one tool in this interpreter, and writes what it took as JSON.

    python bench/runner.py --tool floor --loops 3 --out F.json -- script.py args

Tools that record from outside (krait) are started around this with --tool none. The times are of the program's timed
parts alone (see stub/pyperf.py); what a tool does before and after them is in the caller's time of the process.
"""

import sys

sys.dont_write_bytecode = True

import argparse  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import resource  # noqa: E402
import runpy  # noqa: E402
import time  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "stub"))

PYTHON_EVENTS = ["PY_START", "PY_RESUME", "PY_THROW", "PY_RETURN", "PY_YIELD", "PY_UNWIND"]
C_EVENTS = ["CALL", "C_RETURN", "C_RAISE"]  # sys.monitoring: C_RETURN and C_RAISE come with CALL


def start_floor(c_calls):
    sys.path.insert(0, os.environ["KRAIT_BENCH_BUILD"])
    import krait_floor

    if sys.version_info < (3, 12):
        krait_floor.set_profile(int(c_calls))
        return lambda: krait_floor.set_profile(-1)
    monitoring = sys.monitoring
    tool = monitoring.PROFILER_ID
    callbacks = krait_floor.callbacks()
    monitoring.use_tool_id(tool, "floor")
    events = 0
    for name in PYTHON_EVENTS + (C_EVENTS if c_calls else []):
        number = getattr(monitoring.events, name)
        monitoring.register_callback(tool, number, callbacks[name])
        if name not in ("C_RETURN", "C_RAISE"):
            events |= number
    monitoring.set_events(tool, events)
    return lambda: monitoring.set_events(tool, 0)


def start_viztracer(c_calls):
    from viztracer import VizTracer

    tracer = VizTracer(
        output_file=os.environ["KRAIT_BENCH_OUT"] + ".json", verbose=0, ignore_c_function=not c_calls
    )
    tracer.start()

    def stop():
        tracer.stop()
        tracer.save()

    return stop


def start_cprofile(c_calls):
    import cProfile

    profile = cProfile.Profile(builtins=c_calls)
    profile.enable()

    def stop():
        profile.disable()
        profile.dump_stats(os.environ["KRAIT_BENCH_OUT"] + ".prof")

    return stop


def start_trace0(c_calls):
    from trace0 import Tracer

    tracer = Tracer(os.environ["KRAIT_BENCH_OUT"] + ".pb")
    tracer.__enter__()
    return lambda: tracer.__exit__(None, None, None)


def start_sampler():
    sys.path.insert(0, "%s/sampler-%d.%d" % (os.environ["KRAIT_BENCH_BUILD"], *sys.version_info[:2]))
    import krait_sampler

    def stop():
        """[how often it was met, [[file, line, name], ...] outermost first] for each stack."""
        data, codes = krait_sampler.stop()
        words, at, counts = memoryview(data).cast("Q"), 0, {}
        while at < len(words):
            stack = bytes(words[at + 1 : at + 1 + words[at]])
            counts[stack] = counts.get(stack, 0) + 1
            at += words[at] + 1
        # Line 0: the interpreter's own frame around an __init__.
        names = {k: [c.co_filename, c.co_firstlineno, c.co_name] for k, c in codes.items() if c.co_firstlineno}
        stacks = [[n, [names[k] for k in reversed(memoryview(s).cast("Q")) if k in names]] for s, n in counts.items()]
        with open(os.environ["KRAIT_BENCH_OUT"] + ".stacks", "w") as f:
            json.dump(stacks, f)

    krait_sampler.start(200)
    return stop


TOOLS = {
    "sampler": start_sampler,
    "none": lambda: lambda: None,
    "floor": lambda: start_floor(True),
    "floor-python": lambda: start_floor(False),
    "viztracer": lambda: start_viztracer(True),
    "viztracer-python": lambda: start_viztracer(False),
    "cprofile": lambda: start_cprofile(True),
    "trace0": lambda: start_trace0(False),
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", choices=sorted(TOOLS), default="none")
    parser.add_argument("--loops", type=int, default=1)
    parser.add_argument("--out", required=True)
    parser.add_argument("program", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    program = args.program[1:] if args.program[:1] == ["--"] else args.program
    import pyperf

    pyperf.Runner.loops = args.loops
    sys.argv = program
    sys.path.insert(0, os.path.dirname(os.path.abspath(program[0])))
    stop = TOOLS[args.tool]()
    try:
        runpy.run_path(program[0], run_name="__main__")
    finally:
        stop()
    with open(args.out, "w") as f:
        json.dump(
            {
                "wall": pyperf.Runner.wall,
                "cpu": pyperf.Runner.cpu,
                "total_cpu": time.process_time(),
                "rss_kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
            },
            f,
        )


main()
