# SPDX-License-Identifier: Apache-2.0
"""The judge of --max-overhead: is what it shows true, and does it keep its promise?

Each program runs untraced, sampled (sampler.c), recorded whole, and governed, in turns; slowdowns are of CPU time.

The samples are the truth: no hook runs in that program. Compared are functions' shares of the time as they are shown, and
the same without --compensate, from which the cost of recording was not taken off. A function written in C counts as its caller, since samples see Python's frames alone, and so does one that
the governor dropped. Functions of less than 1 % count with their file: samples tell little of each. The attribution error is
the sum of all differences. Its noise is half of what the samples' odd and even
runs differ by, which have half the samples each, and the same of the governed runs.
"""

import json
import pathlib
import subprocess

import lib
import programs

BUDGET = 5
LONG_EVENTS = 50  # src/python/governor.c: a function whose calls last longer is never dropped
GOVERNED = "krait --max-overhead 5"
SMALL_SHARE = 0.01
LONGER = 3  # than the programs run elsewhere: what the start takes is the part of others
STUB = str(lib.HERE / "stub" / "pyperf.py")  # its functions are the roots
PAUSE = "krait", "<paused by --max-overhead>"  # src/event/event.h

# name -> loops. All of them last a second and more: a program may spend up to 6 ms at once that its quiet start has saved.
MORE = {
    "flake8": 1,
    "black": 1,
    "django": 8,
    "even 70": 12,
    "even 10000": 12,
    "exceptions": 6,
    "greenlets 5": 16,
    "greenlets 50": 14,
    "greenlets 300": 8,
}


def command(python, name):
    return [lib.HERE / "governed.py", name] if name in MORE else programs.command(python, name)


def tree(trace, *options):
    command = [lib.KRAIT, "report", trace, "--tree", "--min-share", "0", "--json", *options]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def report(trace):
    whole, raw = tree(trace, "--compensate"), tree(trace)
    rows = subprocess.run([lib.KRAIT, "report", trace, "--json"], capture_output=True, text=True, check=True).stdout
    runs = {key(row): row["runs"] for row in json.loads(rows)["functions"]}
    return {
        "tree": timed(whole["tree"]),
        "raw": timed(raw["tree"]),
        "omitted": whole["omitted"],
        "runs": runs,
        "cost": whole.get("recording_cost_ns"),
    }


def sample():
    """[(functions, outermost first; how often they were met)] of the timed part."""
    stacks = json.loads((lib.SCRATCH / "other.stacks").read_text())
    found = []
    for count, frames in stacks:
        functions = [tuple(frame) for frame in frames]
        first = next((i for i, function in enumerate(functions) if is_root(function)), None)
        if first is not None:
            found.append((functions[first:], count))
    return found


def timed(rows):
    """What bench/stub/pyperf.py times: no imports, no start."""
    inside, kept = set(), []
    for row in rows:  # parents come first
        if row["parent"] in inside or is_root(key(row)):
            inside.add(row["id"])
            kept.append(row)
    return kept


def key(row):
    """As samples name it: before 3.11 code objects have no qualified name. By its line too: generator expressions of one function
    have one name. C functions, which samples do not name, have a module instead of a file."""
    if row["kind"] == "c":
        return row["module"], row["line"], row["name"]
    return row["file"], row["line"], row["name"].split(".")[-1]


def is_root(function):
    return function[0] == STUB and function[2].startswith("bench_")


def measure(python, tool, name, loops):
    data = lib.run(python, tool, command(python, name), loops)
    if tool == "sampled":
        data["samples"] = sample()
    elif tool != "none":
        data["report"] = report(data["trace"])
    return data


def omitted(data):
    return {key(row): row["calls"] for row in data["report"]["omitted"]}


def as_shares(times):
    whole = sum(times.values()) or 1
    return {function: ns / whole for function, ns in times.items()}


def recorded_shares(data, dropped, tree="tree"):
    """{function: its share of the time}; C functions and dropped functions count with their callers. `tree`: "raw", with what
    recording each call took."""
    owner, times = {}, {}
    for row in data["report"][tree]:  # parents come first
        if (row["module"], row["name"]) == PAUSE:  # nobody's time
            continue
        above = owner.get(row["parent"])
        owner[row["id"]] = above if above and (row["kind"] == "c" or key(row) in dropped) else key(row)
        times[owner[row["id"]]] = times.get(owner[row["id"]], 0) + row["self_ns"]
    return as_shares(times)


def sampled_shares(data, dropped):
    times = {}
    for functions, count in data["samples"]:
        kept = [f for f in functions[1:] if f not in dropped]
        owner = kept[-1] if kept else functions[0]
        times[owner] = times.get(owner, 0) + count
    return as_shares(times)


def mean_of(maps):
    names = {name for one in maps for name in one}
    return {name: sum(one.get(name, 0) for one in maps) / len(maps) for name in names}


def difference(a, b):
    return sum(abs(a.get(name, 0) - b.get(name, 0)) for name in {*a, *b})


def by_file(maps, small):
    """Functions that take a smaller share count with their file: samples tell little of each."""
    total = mean_of([one for group in maps for one in group])

    def folded(one):
        result = {}
        for function, share in one.items():
            name = function if total[function] >= small else function[0]
            result[name] = result.get(name, 0) + share
        return result

    return [[folded(one) for one in group] for group in maps]


def half_difference(maps):
    return difference(mean_of(maps[::2]), mean_of(maps[1::2])) / 2 if len(maps) > 1 else 0.0


def calls_of(data):
    return sum(row["calls"] for row in data["report"]["tree"]) or 1


def mean_calls(data, call_ns):
    """{function: mean time of its calls (of a generator, of its steps) without what recording took, ns}; calls inside calls
    counted once."""
    rows = data["report"]["raw"]
    inside, outer, sums = {}, {}, {}
    for row in reversed(rows):
        inside[row["id"]] = inside.get(row["id"], 0) + row["calls"]
        inside[row["parent"]] = inside.get(row["parent"], 0) + inside[row["id"]]
    for row in rows:
        above = outer.get(row["parent"], frozenset())
        outer[row["id"]] = above | {key(row)}
        ns, calls = sums.get(key(row), (0, 0))
        own = 0 if key(row) in above else row["total_ns"] - inside[row["id"]] * call_ns
        sums[key(row)] = ns + own, calls + row["calls"]
    return {name: ns / max(calls, data["report"]["runs"].get(name, 0)) for name, (ns, calls) in sums.items() if calls}


def median_means(maps):
    """Of all runs: one that the machine interrupted does not count."""
    return {name: lib.median([one[name] for one in maps if name in one]) for name in {name for one in maps for name in one}}


def long_calls_cost(data, means, dropped, call_ns, base):
    """What recording costs those functions' calls that may never be dropped, as a share of the time."""
    least = LONG_EVENTS * call_ns / 2
    stay = [row["calls"] for row in data["report"]["tree"] if key(row) not in dropped and means.get(key(row), 0) >= least]
    return sum(stay) * call_ns / (base * 1e9)


def judge(runs):
    """What one program's runs say."""
    none, full, governed = runs["none"], runs["krait"], runs[GOVERNED]
    dropped = {}
    for data in governed:
        dropped.update(omitted(data))
    walls = {tool: [data["cpu"] for data in results] for tool, results in runs.items()}
    base = lib.median(walls["none"])
    call_ns = max(0.0, (lib.median(walls["krait"]) - base) * 1e9 / calls_of(full[0]))
    truth = [sampled_shares(data, dropped) for data in runs["sampled"]]
    whole = [recorded_shares(data, dropped) for data in full]
    kept = [recorded_shares(data, dropped) for data in governed]
    whole_raw = [recorded_shares(data, dropped, "raw") for data in full]
    kept_raw = [recorded_shares(data, dropped, "raw") for data in governed]
    truth, whole, kept, whole_raw, kept_raw = by_file([truth, whole, kept, whole_raw, kept_raw], SMALL_SHARE)
    means = median_means([mean_calls(data, call_ns) for data in full])
    dropped = {name: calls for name, calls in dropped.items() if name in means}
    return {
        "walls": walls,
        "slowdown": lib.median(walls[GOVERNED]) / base,
        "noise": lib.spread(walls["none"]),
        "full": lib.median(walls["krait"]) / base,
        "error": difference(mean_of(truth), mean_of(kept)),
        "error_noise": half_difference(truth) + half_difference(kept),
        "error_whole": difference(mean_of(truth), mean_of(whole)),
        "error_raw": difference(mean_of(truth), mean_of(kept_raw)),
        "error_whole_raw": difference(mean_of(truth), mean_of(whole_raw)),
        "cost": full[0]["report"]["cost"],
        "from_whole": difference(mean_of(whole), mean_of(kept)),
        "from_whole_noise": half_difference(whole) + half_difference(kept),
        "long_calls": long_calls_cost(full[0], means, dropped, call_ns, base),
        "call_ns": call_ns,
        "dropped": len(dropped),
        "functions": len(means),
        "longest_dropped": max(((means[name], name[2]) for name in dropped), default=(0, "")),
    }


def run(python, options):
    python = lib.environment(python)
    lib.sampler_module(python)
    wanted = {**{name: LONGER * loops for name, loops in programs.PROGRAMS}, **MORE}
    result = {"python": python.version, "reps": options.reps, "programs": {}}
    for name, loops in wanted.items():
        if options.programs and name not in options.programs:
            continue
        lib.say("%s: %d runs" % (name, 4 * options.reps))
        try:
            runs = lib.interleaved(["none", "sampled", "krait", GOVERNED], options.reps, lambda tool: measure(python, tool, name, loops))
        except (RuntimeError, subprocess.CalledProcessError) as e:
            result.setdefault("failed", {})[name] = str(e)
            lib.say(str(e))
            continue
        result["programs"][name] = judge(runs)
        pathlib.Path(options.out + ".part").write_text(json.dumps(result))
    return result


def over_budget(data):
    """Programs that are slowed by more than the budget beyond the noise of their untraced runs."""
    return [n for n, p in data["programs"].items() if p["slowdown"] > 1 + BUDGET / 100 + p["noise"]]


def wrong(data):
    """Programs whose shares differ by more than 5 % beyond the noise from the samples' and from the whole recording's.

    Neither alone is the truth. A whole recording holds what recording each call took. Samples count the garbage collector's
    time with the function that CPython runs it in, just before it reports that function's begin; a recording counts it with the caller."""
    far, from_whole = ("error", "error_noise"), ("from_whole", "from_whole_noise")
    return [n for n, p in data["programs"].items() if all(p[one] > 0.05 + p[noise] for one, noise in (far, from_whole))]
