# SPDX-License-Identifier: Apache-2.0
"""`krait export`: what the formats' own readers see has to be what was recorded."""

import json
import re
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

from export_readers import Sums, chrome_events, chrome_waits, folded_lines, perfetto_slices, perfetto_waits, pprof_top, read_callgrind, read_chrome, read_folded, read_perfetto, read_pprof, read_with_speedscope, run, speedscope_package
from exported import EPOCH_NS, FORMATS, STREAMED, export, export_to, program, random_program  # noqa: F401  (export, program: fixtures)
from peak import peak_kib
from recording import break_event
from trace_processor import FAULTS, ask, read_trace_processor


def columns(sums, *names):
    return {function: tuple(getattr(s, n) for n in names) for function, s in sums.items()}


def functions_of(sums, program):
    """Without the readers' rows for processes and threads."""
    return {name: s for name, s in sums.items() if name in program.sums()}


# -- the sums, as the readers see them --


def test_folded_has_the_own_time_of_each_stack(export, synth, program):
    seen = functions_of(read_folded(export(synth(program.script()), "folded")), program)
    assert columns(seen, "self_ns", "total_ns") == columns(program.sums(), "self_ns", "total_ns")


def test_folded_begins_with_process_and_thread(export, synth, program):
    tops = {(stack[0], stack[1]) for stack, _ in folded_lines(export(synth(program.script()), "folded"))}
    assert tops == {(f"python3 {p}", f"thread-{t} {t}") for p, t in [(100, 100), (100, 101), (200, 200), (200, 201)]}


def test_folded_counts_calls_or_microseconds_when_asked(export, synth):
    program = random_program(4)
    folder = synth(program.script())
    calls = functions_of(read_folded(export(folder, "folded", "--unit", "calls")), program)
    assert {n: s.self_ns for n, s in calls.items() if s.self_ns} == {n: s.calls for n, s in program.sums().items() if s.calls}
    in_ns = {tuple(stack): value for stack, value in folded_lines(export(folder, "folded"))}
    in_us = {tuple(stack): value for stack, value in folded_lines(export(folder, "folded", "--unit", "us"))}
    assert in_us == {stack: us for stack, ns in in_ns.items() if (us := (ns + 500) // 1000)}


def test_chrome_has_every_call(export, synth, program):
    assert read_chrome(export(synth(program.script()), "chrome")) == program.sums()


def test_chrome_names_processes_and_threads(export, synth, program):
    names = [(e["name"], e["pid"], e["tid"], e["args"]["name"]) for e in chrome_events(export(synth(program.script()), "chrome")) if e["ph"] == "M"]
    assert ("process_name", 200, 200, "python3") in names
    assert ("thread_name", 200, 201, "thread-201") in names


def test_perfetto_has_every_call(export, synth, program):
    assert read_perfetto(export(synth(program.script()), "perfetto")) == program.sums()


def test_perfetto_has_times_since_the_epoch_and_source_locations(export, synth, program):
    slices = list(perfetto_slices(export(synth(program.script()), "perfetto")))
    begins = [s for s in slices if s.is_begin]
    assert {s.thread for s in slices} == set(program.stacks.open)
    assert min(s.at for s in slices) > EPOCH_NS
    expected = {(f"{m}.{q}", kind, ("" if f == "-" else f, n)) for kind, m, q, f, n in program.codes.values()}
    assert {(s.name, s.category, s.where) for s in begins} == expected


def test_speedscope_has_a_profile_a_thread_by_its_schema(export, synth, program):
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((speedscope_package() / "dist" / "release" / "file-format-schema.json").read_text())
    profile = json.loads(export(synth(program.script()), "speedscope").read_bytes())
    jsonschema.validate(profile, schema)
    assert sorted(p["name"] for p in profile["profiles"]) == [f"python3 {t // 100 * 100}, thread-{t} {t}" for t in (100, 101, 200, 201)]


@pytest.mark.parametrize("fmt", ["perfetto", "chrome"])
def test_the_trace_processor_has_every_call(export, synth, program, fmt):
    assert read_trace_processor(export(synth(program.script()), fmt)) == program.sums()


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long), pytest.param(3, marks=pytest.mark.long)])
@pytest.mark.parametrize("fmt", ["speedscope", "chrome", "folded", "pprof"])
def test_speedscope_reads_the_same_times(export, synth, fmt, seed):
    # Its importer of Chrome's format loses the order of begins and ends at the very same nanosecond.
    program = random_program(seed, shortest=1 if fmt == "chrome" else 0)
    seen = functions_of(read_with_speedscope(export(synth(program.script()), fmt)), program)
    assert columns(seen, "self_ns", "total_ns") == columns(program.sums(), "self_ns", "total_ns")


def test_callgrind_annotate_shows_own_and_inclusive_time_with_recursion_once(export, synth, program):
    seen = read_callgrind(export(synth(program.script()), "callgrind"))
    assert columns(functions_of(seen, program), "self_ns", "total_ns") == columns(program.sums(), "self_ns", "total_ns")
    total = sum(s.self_ns for s in program.sums().values())
    assert seen["PROGRAM TOTALS"].total_ns == total
    assert seen["python3 100"].total_ns + seen["python3 200"].total_ns == total


def test_callgrind_has_every_call_between_two_functions(export, synth):
    folder = synth(
        """
        process 1 python3
        code 1 python app main /src/app.py 3
        code 2 python app work /src/app.py 30
        thread 1 MainThread
        0 call 1
        10 call 2
        25 return
        30 call 2
        50 return
        100 return
        """
    )
    text = export(folder, "callgrind").read_text()
    names = dict(re.findall(r"fn=\((\d+)\) (.*)", text))
    main, work = ([n for n, name in names.items() if name == f"app.{f}"][0] for f in ("main", "work"))
    block = text.split(f"\nfn=({main})", 1)[1].split("\n\n")[0].splitlines()[1:]
    assert block == ["3 65", "cfi=(2)", f"cfn=({work}) app.work" if f"cfn=({work}) " in text else f"cfn=({work})", "calls=2 30", "3 35"]


def test_pprof_has_times_and_calls(export, synth, program):
    assert read_pprof(export(synth(program.script()), "pprof")) == program.sums()


def test_pprof_tells_processes_and_threads_by_labels(export, synth, program):
    path = export(synth(program.script()), "pprof")
    by_thread = [pprof_top(path, "time", f"-tagfocus=thread=thread-{tid} {tid}") for tid in (100, 101, 200, 201)]
    for name, sums in program.sums().items():
        assert sum(top.get(name, (0, 0))[0] for top in by_thread) == sums.self_ns
    one = pprof_top(path, "time", "-tagfocus=process=python3 200")
    assert {n: flat for n, (flat, _) in one.items()} == {
        n: by_thread[2].get(n, (0, 0))[0] + by_thread[3].get(n, (0, 0))[0] for n in set(by_thread[2]) | set(by_thread[3])
    }


# -- a real program --

RECORDED = """
import json, os, threading


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def squares(n):
    for i in range(n):
        yield i * i


def fail():
    raise ValueError


def work():
    json.loads(json.dumps([{"n": i} for i in squares(300)]))
    try:
        fail()
    except ValueError:
        return sorted(range(50), key=lambda x: -x)

if pid := os.fork():
    os.waitpid(pid, 0)
threads = [threading.Thread(target=work, name=f"worker {i}") for i in range(3)]
for t in threads:
    t.start()
fib(12)
work()
for t in threads:
    t.join()
"""


def own_times(sums):
    """By name: callgrind tells functions of one file and name apart by their line."""
    own = defaultdict(int)
    for name, s in sums.items():
        own[re.sub(r":\d+$", "", name)] += s.self_ns
    return {name: ns for name, ns in own.items() if ns}


def test_all_readers_see_the_same_of_a_real_program(export, record, any_python):
    folder = record.text(any_python, RECORDED).path
    chrome = read_chrome(export(folder, "chrome"))
    assert chrome["__main__.fib"].calls == 2 * 465  # fib(12) by this definition, in two processes
    assert chrome["__main__.fail"].calls == chrome["__main__.work"].calls == 8
    assert read_perfetto(export(folder, "perfetto")) == chrome
    for fmt, read in ("folded", read_folded), ("callgrind", read_callgrind), ("pprof", read_pprof), ("speedscope", read_with_speedscope):
        seen = own_times(read(export(folder, fmt)))
        assert seen.pop("PROGRAM TOTALS", None) in (None, sum(seen.values()))
        assert seen == own_times(chrome), fmt


def test_exports_agree_with_the_report(export, report, record, any_python):
    folder = record.text(any_python, RECORDED).path
    told = defaultdict(Sums)
    for f in report(folder):
        sums = told[".".join(filter(None, [f["module"], f["name"]]))]
        sums.self_ns += f["self_ns"]
        sums.calls += f["calls"]
    assert columns(read_chrome(export(folder, "chrome")), "self_ns", "calls") == columns(told, "self_ns", "calls")


# -- what is not a call and a return --

CUT_AND_LIVE = """
process 1 python3
code 1 python app main /src/app.py 3
code 2 python app work /src/app.py 30
thread 1 MainThread
0 frame 1 0
0 stack 1
5us call 2
7us yield
9us resume 2
10us unwind
12us call 2
20us call 2
"""


def test_chrome_marks_what_was_live_and_what_was_cut(export, synth):
    events = [e for e in chrome_events(export(synth(CUT_AND_LIVE), "chrome")) if e["ph"] != "M"]
    assert [(e["ph"], e["name"], e.get("cat"), e.get("end")) for e in events] == [
        ("B", "app.main", "python,live", None),
        ("B", "app.work", "python", None),
        ("E", "app.work", None, "yield"),
        ("B", "app.work", "python,resume", None),
        ("E", "app.work", None, "unwind"),
        ("B", "app.work", "python", None),
        ("B", "app.work", "python", None),
        ("E", "app.work", None, "cut"),
        ("E", "app.work", None, "cut"),
        ("E", "app.main", None, "cut"),
    ]


def test_perfetto_marks_what_was_live_and_what_was_cut(export, synth):
    slices = perfetto_slices(export(synth(CUT_AND_LIVE), "perfetto"))
    assert [(s.is_begin, s.name, s.notes) for s in slices] == [
        (True, "app.main", {"begin": "live"}),
        (True, "app.work", {}),
        (False, "", {"end": "yield"}),
        (True, "app.work", {"begin": "resume"}),
        (False, "", {"end": "unwind"}),
        (True, "app.work", {}),
        (True, "app.work", {}),
        (False, "", {"end": "cut"}),
        (False, "", {"end": "cut"}),
        (False, "", {"end": "cut"}),
    ]


def test_callgrind_gives_the_time_of_what_was_live_to_no_one_else(export, synth):
    seen = columns(read_callgrind(export(synth(CUT_AND_LIVE), "callgrind")), "self_ns", "total_ns")
    assert seen["app.main"] == (9000, 20000)
    assert seen["app.work"] == (11000, 11000)
    assert seen["MainThread 1"] == seen["python3 1"] == (0, 20000)


# -- choosing --


def test_a_range_cuts_the_calls_at_its_edges(export, synth):
    path = export(synth(CUT_AND_LIVE), "chrome", "--from", "6us", "--until", "9500ns")
    sums = read_chrome(path)
    assert columns(sums, "self_ns", "total_ns") == {"app.main": (2000, 3500), "app.work": (1500, 1500)}


def test_threads_and_processes_are_chosen_by_name_or_id(export, synth, program):
    folder = synth(program.script())
    everything = {t[3] for t in program.stacks.open}

    def seen(*options):
        return {s.thread[3] for s in perfetto_slices(export(folder, "perfetto", *options))}

    assert seen() == everything
    assert seen("--thread", "thread-101") == {101}
    assert seen("--thread", "thread-*1") == {101, 201}
    assert seen("--thread", "100", "--thread", "201") == {100, 201}
    assert seen("--process", "200") == {200, 201}
    assert seen("--process", "python*") == everything


def test_several_recordings_become_one(export, krait, synth, tmp_path):
    folders = [synth(random_program(seed).script(), name=f"t{seed}") for seed in (1, 2)]
    path = tmp_path / "both.json"
    run(krait, "export", *folders, "--to", "chrome", "-o", path)
    expected = [random_program(seed).sums() for seed in (1, 2)]
    assert {n: s.self_ns for n, s in read_chrome(path).items()} == {
        n: expected[0][n].self_ns + expected[1][n].self_ns for n in expected[0]
    }


# -- hostile names --

HOSTILE = [
    b'quote"s',
    b"back\\slash",
    b"semi;colon",
    b"new\nline",
    b"carriage\r\n\treturn",
    b"\x01\x02\x1f\x7f",
    b"not \xff\xfe UTF-8",
    b"\xc3",
    "snake 🐍 é".encode(),
    b"</script><b>&amp;",
    b" blanks  12 34",
    b"(7) fn=(1)",
    b"calls=1 2",
    b"%s%n%d",
    b"{}[],:null",
    b"x" * 10000,
]


def word(raw):
    return "".join(chr(c) if c < 128 and chr(c).isalnum() else f"%{c:02X}" for c in raw)


@pytest.fixture
def hostile(synth):
    """A function of each name, the i-th taking 1000 + i ns, under a process and thread with such names."""
    lines = [f"process 1 {word(HOSTILE[2] + HOSTILE[0])}"]
    lines += [f"code {i} python m {word(name)} {word(b'/src/' + name[:200])} 1" for i, name in enumerate(HOSTILE, 1)]
    lines += [f"thread 1 {word(HOSTILE[3] + HOSTILE[6])}"]
    clock = 0
    for i in range(1, len(HOSTILE) + 1):
        lines += [f"{clock} call {i}", f"{clock + 1000 + i} return"]
        clock += 5000
    return synth("\n".join(lines) + "\n")


def times(sums):
    return {name: s.self_ns for name, s in sums.items() if s.self_ns}


def replaced(name):
    return "m." + name.decode(errors="replace")


def escaped(name, also):
    """As in C, by a way of its own."""
    text = name.decode(errors="surrogateescape")
    letters = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\"}
    return "m." + "".join(
        letters[c] if c in letters else f"\\x{ord(c) & 0xFF:02x}" if ord(c) < 32 or ord(c) == 127 or c in also or "\udc80" <= c <= "\udcff" else c
        for c in text
    )


@pytest.mark.parametrize("fmt, read", [("chrome", read_chrome), ("perfetto", read_perfetto), ("speedscope", read_with_speedscope)])
def test_hostile_names_arrive_whole_with_what_is_no_utf8_replaced(export, hostile, fmt, read):
    assert times(read(export(hostile, fmt))) == {replaced(name): 1000 + i for i, name in enumerate(HOSTILE, 1)}


def test_hostile_names_are_escaped_in_folded(export, hostile):
    path = export(hostile, "folded")
    assert times(read_folded(path)) == {escaped(name, ";"): 1000 + i for i, name in enumerate(HOSTILE, 1)}
    assert sorted(times(read_with_speedscope(path)).values()) == [1000 + i for i in range(1, len(HOSTILE) + 1)]


def test_hostile_names_are_escaped_in_callgrind(export, hostile):
    seen = {ns for ns in times(read_callgrind(export(hostile, "callgrind"))).values()}
    assert seen == {1000 + i for i in range(1, len(HOSTILE) + 1)} | {sum(1000 + i for i in range(1, len(HOSTILE) + 1))}


def test_hostile_names_keep_their_times_in_pprof(export, hostile):
    rows = sorted(flat for flat, _ in pprof_top(export(hostile, "pprof"), "time").values() if flat)
    assert sum(rows) == sum(1000 + i for i in range(1, len(HOSTILE) + 1))
    assert times(read_with_speedscope(export(hostile, "pprof"))) == {replaced(name): 1000 + i for i, name in enumerate(HOSTILE, 1)}


def test_processes_of_one_id_stay_apart(export, krait, synth, tmp_path):
    script = "process 1 {}\ncode 1 python m f - 1\nthread 1 main\n0 call 1\n10us return\n"
    folders = [synth(script.format(name), name=name) for name in ("first", "second")]
    for fmt in "chrome", "perfetto":
        path = tmp_path / fmt
        run(krait, "export", *folders, "--to", fmt, "-o", path)
        if fmt == "chrome":
            pids = {e["pid"]: e["args"]["name"] for e in chrome_events(path) if e["name"] == "process_name"}
            assert read_chrome(path)["m.f"].total_ns == 20000
        else:
            pids = {s.thread[1]: s.thread[0] for s in perfetto_slices(path)}
        assert sorted(pids.values()) == ["first", "second"]


# -- nothing there --


@pytest.mark.parametrize("fmt", FORMATS)
def test_a_recording_without_a_call_is_an_empty_profile(export, synth, fmt):
    path = export(synth("process 1 python3\nthread 1 MainThread\n"), fmt)
    if fmt in ("chrome", "speedscope"):
        json.loads(path.read_bytes())
    else:
        assert path.exists()


@pytest.mark.parametrize("fmt", FORMATS)
def test_that_there_was_no_call_is_said(krait, synth, tmp_path, fmt):
    folder = synth("process 1 python3\ncode 1 python app main /src/app.py 3\nthread 1 MainThread\n0 call 1\n9us return\nexit 0 0\n")

    def said(*options):
        return subprocess.run([krait, "export", folder, "--to", fmt, "-o", tmp_path / "x", *options], capture_output=True, text=True).stderr

    assert "warning" not in said()
    assert said("--from", "1s").startswith("krait export: warning: no calls were recorded in that time\n")


@pytest.mark.parametrize("fmt", FORMATS)
def test_what_is_missing_is_said(krait, synth, tmp_path, fmt):
    folder = synth("process 1 python3\nthread 1 MainThread\n0 call 1\n9us return\nlost 0 12\nexit 0 0\n")
    break_event(next(folder.glob("*/thread-*")))
    done = export_to(krait, folder, fmt, tmp_path / "x")
    assert done.returncode == 0
    assert "krait export: warning: lost: 12 events (ring full): " in done.stderr
    assert re.search(r"krait export: warning: .*: byte 84: no whole event is here", done.stderr)


# -- size --


@pytest.mark.parametrize("fmt", STREAMED)
def test_memory_does_not_grow_with_the_trace(krait, synth, tmp_path, fmt):
    script = "process 1 python3\ncode 1 python app f /src/app.py 1\nthread 1 main\nrepeat {}\n1us call 1\n3us return\nend\n"
    folders = [synth(script.format(n), name=str(n)) for n in (1000, 400000)]
    small, large = (peak_kib(krait, "export", f, "--to", fmt, "-o", tmp_path / "x") for f in folders)
    mapped = sum(f.stat().st_size for f in Path(folders[1]).rglob("*") if f.is_file()) // 1024
    assert large - small < mapped + 2048, f"{small} KiB, then {large} KiB for 400 times the calls"


@pytest.mark.parametrize("fmt", ["folded", "pprof", "callgrind"])
def test_memory_does_not_grow_with_the_square_of_a_recursions_depth(krait, synth, tmp_path, fmt):
    """As the files of folded do, each of whose lines has its whole stack."""

    def recursion(depth):
        calls = "".join(f"{n}us call 1\n" for n in range(depth)) + "".join(f"{depth + n}us return\n" for n in range(depth))
        return synth("process 1 python3\ncode 1 python app f /src/app.py 1\nthread 1 main\n" + calls, name=str(depth))

    small, large = (peak_kib(krait, "export", recursion(n), "--to", fmt, "-o", tmp_path / "x") for n in (500, 4000))
    assert large - small < 3072, f"{small} KiB, then {large} KiB for 8 times the depth"
    assert fmt != "folded" or (tmp_path / "x").stat().st_size > 4000 * 4000 // 2 * len("app.f;")


# -- exceptions --

RAISES = """\
    process 10 app
    code 1 python m f f.py 3
    code 2 c builtins len - 0
    code 3 exception builtins KeyError - 0
    code 4 exception m Mine - 0
    thread 10 main
    0 call 1
    1ms ccall 2
    2ms craiseof 3
    3ms unwindof 4
    4ms call 1
    5ms unwind
    exit 0 0
    """


def test_chrome_and_perfetto_tell_what_a_call_was_left_by(export, synth):
    folder = synth(RAISES)
    ends = [s.notes for s in perfetto_slices(export(folder, "perfetto")) if not s.is_begin]
    types = [{"exception": "KeyError"}, {"exception": "m.Mine"}, {}]
    assert ends == [{"end": "unwind", **type} for type in types]
    events = [e for e in json.loads(export(folder, "chrome").read_text())["traceEvents"] if e["ph"] == "E"]
    assert [(e["end"], e.get("args", {})) for e in events] == [("unwind", type) for type in types]


def test_the_trace_processor_has_exceptions_as_arguments(export, synth):
    query = "select s.name, extract_arg(s.arg_set_id, 'debug.exception') from slice s order by s.ts"
    faults, slices = ask(export(synth(RAISES), "perfetto"), FAULTS, query)
    assert (faults, slices) == ([], [("m.f", "m.Mine"), ("builtins.len", "KeyError"), ("m.f", None)])


# -- waits for the GIL --

WAITS = """\
    process 10 app
    code 1 python m f f.py 3
    thread 10 main
    0 call 1
    100ms gilwait 0
    101ms gilswitch
    102ms gilwait 11
    199ms giltake
    300ms return
    thread 11 other
    5ms gilwait 10
    101ms giltake
    101ms call 1
    150ms return
    thread 12 alone
    0 call 1
    150ms return
    """


MS = 10**6


def test_chrome_and_perfetto_have_waits_for_the_gil(export, synth):
    folder = synth(WAITS)
    waits = [(10, 100 * MS, 101 * MS, 0), (10, 102 * MS, 199 * MS, 11), (11, 5 * MS, 101 * MS, 10)]
    assert chrome_waits(export(folder, "chrome")) == waits
    assert perfetto_waits(export(folder, "perfetto")) == [(t, a + EPOCH_NS, b + EPOCH_NS, h) for t, a, b, h in waits]
    assert read_chrome(export(folder, "chrome"))["m.f"].total_ns == (300 + 49 + 150) * MS


GIL_TRACKS = {
    "chrome": "process_track t on s.track_id = t.id join process p using (upid)",
    "perfetto": "thread_track t on s.track_id = t.id join thread using (utid) join process p using (upid)",
}


@pytest.mark.parametrize("fmt", ["chrome", "perfetto"])
def test_the_trace_processor_has_the_waits_in_their_process(export, synth, fmt):
    query = f"select p.name, s.name, s.dur from slice s join {GIL_TRACKS[fmt]} where s.category = 'gil' order by s.ts"
    faults, waits = ask(export(synth(WAITS), fmt), FAULTS, query)
    whose = {"chrome": ("other ", "main ", "main "), "perfetto": ("", "", "")}[fmt]
    assert (faults, waits) == ([], [("app", f"{w}waits for the GIL", ms * MS) for w, ms in zip(whose, (96, 1, 97))])


def test_waits_are_cut_at_the_edges_of_the_range(export, synth):
    path = export(synth(WAITS), "chrome", "--from", "50ms", "--until", "150ms")
    assert chrome_waits(path) == [(10, 100 * MS, 101 * MS, 0), (10, 102 * MS, 150 * MS, 11), (11, 50 * MS, 101 * MS, 10)]
