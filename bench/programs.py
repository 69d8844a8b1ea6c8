# SPDX-License-Identifier: Apache-2.0
"""The programs: fourteen of pyperformance's, and sqlglot; slowdown under each tool.

The loops make an untraced run take the better part of a second on the machine that the table in docs was made on.
"""

import pathlib

import lib

# pyperformance's name, loops
PROGRAMS = [
    ("nbody", 5),
    ("scimark", 1),
    ("telco", 36),
    ("fannkuch", 1),
    ("json_dumps", 34),
    ("chaos", 7),
    ("float", 5),
    ("spectral_norm", 3),
    ("pyflate", 1),
    ("go", 5),
    ("hexiom", 90),
    ("richards", 14),
    ("raytrace", 2),
    ("deltablue", 130),
    ("sqlglot", 8),
]

QUICK_SHARE = 3  # --quick: a third of the loops


def command(python, name):
    venv = pathlib.Path(python.path).parent.parent
    folder = next(venv.glob("lib/python*/site-packages/pyperformance/data-files/benchmarks"))
    if name == "sqlglot":
        return [lib.HERE / "sqlglot_program.py", folder / "bm_sqlglot_v2" / "run_benchmark.py"]
    return [folder / ("bm_" + name) / "run_benchmark.py"]


def tools_for(python, krait):
    names = [t for t in lib.TOOLS if krait or not t.startswith("krait")]
    if "trace0" not in lib.packages(python):
        names.remove("trace0")
    return names


def summarise(runs):
    """One tool's runs of one program."""
    keep = {key: lib.median([r[key] for r in runs]) for key in ("wall", "cpu", "process", "rss_kib", "all_cpu", "total_cpu")}
    keep["walls"] = [round(r["wall"], 5) for r in runs]
    keep["cpus"] = [round(r["cpu"], 5) for r in runs]
    for key in ("events", "bytes", "lost"):
        if key in runs[-1]:
            keep[key] = runs[-1][key]
    return keep


def measure(python, tool, name, loops):
    data = lib.run(python, tool, command(python, name), loops)
    if tool.startswith("krait"):
        info = lib.info(data["trace"])
        data["bytes"] = lib.folder_bytes(data["trace"])
        data["events"] = info.get("events")
        data["lost"] = sum(info.get("lost", {}).values())
    return data


def measure_or_none(python, tool, name, loops, failed):
    """A tool that fails on a program is left out there, and named."""
    if tool in failed:
        return None
    try:
        return measure(python, tool, name, loops)
    except RuntimeError as e:
        lib.say(str(e))
        failed[tool] = str(e)
        return None


def run(python, options):
    """{python, packages, programs: {name: {tool: numbers}}}"""
    python = lib.environment(python)
    lib.floor_module()
    tools = [t for t in tools_for(python, options.krait) if not options.tools or t in options.tools]
    wanted = [p for p in PROGRAMS if not options.programs or p[0] in options.programs]
    result = {"python": python.version, "packages": lib.packages(python), "reps": options.reps, "programs": {}}
    for name, loops in wanted:
        if options.quick:
            loops = max(1, loops // QUICK_SHARE)
        lib.say("%s: %d runs" % (name, options.reps * len(tools)))
        failed = {}
        runs = lib.interleaved(tools, options.reps, lambda tool: measure_or_none(python, tool, name, loops, failed))
        result["programs"][name] = {tool: summarise(r) for tool, r in runs.items() if tool not in failed}
        if failed:
            result.setdefault("failed", {})[name] = failed
    return result


# ---- what follows from it ----


def slowdown(program, tool, metric="wall"):
    return program[tool][metric] / program["none"][metric]


def median_slowdown(programs, tool, metric="wall"):
    return lib.median([slowdown(p, tool, metric) for p in programs.values() if tool in p])


def added_ratio(programs, tool, base, metric="wall"):
    """The median added time of one tool over that of another."""
    over = median_slowdown(programs, base, metric) - 1
    return (median_slowdown(programs, tool, metric) - 1) / over if over > 0 else float("nan")


def added_ratios(programs, tool, base, metric="wall"):
    """The same the other way round: the median of the programs' own ratios, of those that the base slows by 5 % or
    more (the ratio of two noises says nothing)."""
    ratios = [
        (slowdown(p, tool, metric) - 1) / (slowdown(p, base, metric) - 1)
        for p in programs.values()
        if tool in p and base in p and slowdown(p, base, metric) >= 1.05
    ]
    return lib.median(ratios) if ratios else float("nan")


def over_budget(programs, tool, budget):
    """[(program, slowdown, noise)] of those slowed by more than the budget beyond the noise of this same run."""
    beyond = []
    for name, program in programs.items():
        noise = lib.spread(program["none"]["walls"])
        if slowdown(program, tool) > 1 + budget + noise:
            beyond.append((name, slowdown(program, tool), noise))
    return beyond
