# SPDX-License-Identifier: Apache-2.0
"""krait info says what is in a trace; its counts are those of the events that krait cat prints."""

import collections
import json
import re
import subprocess

import pytest

from conftest import verb_json
from corpus import CORPUS, UTC
from kernel_made import event, write
from terminal import on_terminal

SCRIPT = """\
    process 10 app
    code 1 python m f f.py 3
    code 2 c builtins len - 0
    thread 10 main
    repeat 1000
    1us call 1
    2us ccall 2
    3us creturn
    4us return
    end
    packet 7
    300ms call 1
    301ms unwind
    exit 0 0
    lost 3 5
    process 20 other 10
    code 1 python m g f.py 9
    thread 20
    400ms call 1
    500ms return
    exit 0 0
    """


def counts_of_cat(krait, folder):
    text = subprocess.run([krait, "cat", folder], capture_output=True, text=True, env=UTC).stdout
    return collections.Counter(re.search(r"(\S+): \{ vtid", line).group(1) for line in text.splitlines())


def test_counts_are_those_of_cat(krait, synth, info):
    folder = synth(SCRIPT)
    facts = info(folder)
    counts = counts_of_cat(krait, folder)
    assert {c["name"]: c["count"] for c in facts["event_classes"]} == counts
    assert facts["events"] == counts.total()
    assert [c["count"] for c in facts["event_classes"]] == sorted(counts.values(), reverse=True)


def test_an_object_has_the_keys_that_programs_rely_on(synth, info):
    folder = synth(SCRIPT)
    facts = info(folder)
    assert facts["processes"] == 2 and facts["threads"] == 2
    assert facts["bytes"] == sum(p.stat().st_size for p in folder.rglob("*") if p.is_file())
    assert facts["lost"] == {"ring full": 7, "displaced": 5} and facts["lost_events"] == 12
    assert 500_000_000 <= facts["duration_ns"] < 600_000_000


def test_each_process_has_its_command_and_its_end(krait, synth, info):
    """how: exit 0, signal 1, exec 2, gone 3, stop 4; and one that nobody ended."""
    ends = ["exit 0 3", "exit 1 9", "exit 2 -1", "exit 3 -1", "exit 4 -1", ""]
    script = "".join(f"process {i + 1} app\nthread {i + 1}\n{i + 1}us call 1\n{i + 2}us return\n{end}\n" for i, end in enumerate(ends))
    folder = synth(script)
    facts = info(folder)
    assert facts["finished"] is False
    listed = [(p["pid"], p["end"], p["status"]) for p in facts["process_list"]]
    assert listed == [(1, "exit", 3), (2, "signal", 9), (3, "exec", None), (4, "gone", None), (5, "stop", None), (6, None, None)]
    assert {p["threads"] for p in facts["process_list"]} == {1}
    assert all("app" in p["command"] for p in facts["process_list"])
    text = subprocess.run([krait, "info", folder], capture_output=True, text=True, env=UTC).stdout
    table = [line for line in text.splitlines() if re.match(r" +[1-6] +1 ", line)]
    for line, end in zip(table, ["exit 3", "SIGKILL", "exec", "ended", "stopped", "unfinished"], strict=True):
        assert f" {end} " in line and "app" in line
    assert "unfinished 1 of 6 processes" in text
    assert max(map(len, text.splitlines())) <= 80


def test_a_long_command_line_fits_into_the_table_and_is_whole_in_json(krait, synth, info):
    command = "python3 -m " + "package." * 20 + "module --last"
    folder = synth(f"process 7 app 0 {command.replace(' ', '%20')}\nthread 7\n1us call 1\n2us return\nexit 0 0\n")
    [process] = info(folder)["process_list"]
    assert list(process) == ["pid", "name", "command", "runtime", "threads", "duration_ns", "end", "status"]
    assert process["command"] == command
    text = subprocess.run([krait, "info", folder], capture_output=True, text=True, env=UTC).stdout
    [row] = [line for line in text.splitlines() if re.match(" +7 +1 ", line)]
    assert len(row) <= 80 and " python3" in row and row.endswith(".module --last")


GIL = """\
    process 10 app
    code 1 python m f f.py 3
    thread 10 main
    0 call 1
    100ms gildrop
    100ms gilwait 0
    101ms gilswitch
    102ms gilwait 11
    199ms giltake
    300ms gilwait 11
    300ms return
    thread 11 other
    5ms gilwait 10
    101ms giltake
    101ms call 1
    150ms return
    199ms gildrop
    """


def test_waiting_for_the_gil_is_summed_up(krait, synth, info):
    """A wait has an end: the last of `main` was lost."""
    folder = synth(GIL)
    sums = {"waits": 2, "wait_ns": (1 + 97 + 96) * 10**6, "threads": 2}
    assert info(folder)["gil"] == {**sums, "held_ns": (97 + 95) * 10**6, "free_ns": 2 * 10**6, "unknown_ns": 0}
    text = subprocess.run([krait, "info", folder], capture_output=True, text=True, env=UTC).stdout
    assert "GIL        waited for 194.0 ms in 2 waits by 2 threads\n             held by another thread 192.0 ms, free 2.000 ms\n             most in main: 98.00 ms\n" in text


@pytest.mark.parametrize("verb", ["info", "report"])
def test_waits_are_looked_for_where_the_metadata_does_not_say_that_there_are_none(krait, synth, verb):
    """Recordings of before have no such entry; one that says 0 is believed, without a look at the events."""
    metadata = next(synth(GIL).glob("*/metadata"))
    text = metadata.read_text()
    found = {}
    for entry in ["    gil_waits = 4;\n", "", "    gil_waits = 0;\n"]:
        assert text.count("    gil_waits = 4;\n") == 1
        metadata.write_text(text.replace("    gil_waits = 4;\n", entry))
        facts = verb_json(krait, verb, metadata.parent.parent)
        found[entry] = facts["gil"] if verb == "info" else facts.get("wall_ns", {}).get("gil")
    told, of_old, none = found.values()
    assert told and of_old == told and none is None


def test_without_waits_nothing_is_said_of_the_gil(krait, synth, info):
    folder = synth(SCRIPT)
    assert info(folder)["gil"] is None
    assert "GIL" not in subprocess.run([krait, "info", folder], capture_output=True, text=True, env=UTC).stdout


def test_work_for_executors_is_counted(krait, synth):
    """Here one piece was not started; in a part of the time are those of that time."""
    events = "10us submit 1\n20us submit 2\n30us start 1\n40us done 1\n50us result 1"
    folder = synth(f"process 5 python3\nthread 5 MainThread\n0us recording 0\n{events}\nexit 0 0\n")

    def work(*options):
        text = subprocess.run([krait, "info", folder, *options], capture_output=True, text=True, env=UTC).stdout
        return [line for line in text.splitlines() if line.startswith("  work ")]

    assert work() == ["  work       2 pieces for executors: 1 started, 1 done, 1 results read"]
    assert work("--from", "35us") == ["  work       0 pieces for executors: 0 started, 1 done, 1 results read"]


def test_pictures_and_exports_say_what_nobody_ended(krait, synth, tmp_path):
    folder = synth("process 1 app\nthread 1\n1us call 1\n2us return\n")
    for verb in (["flame", "-o", tmp_path / "f.svg"], ["export", "--to", "folded", "-o", tmp_path / "f.txt"]):
        done = subprocess.run([krait, *verb, folder], capture_output=True, text=True, env=UTC)
        assert done.returncode == 0
        assert f"krait {verb[0]}: warning: unfinished: 1 of 1 processes: the recording still runs" in done.stderr


def test_a_recording_that_was_finished_says_so(synth, info, krait):
    folder = synth(SCRIPT)
    assert info(folder)["finished"] is True
    assert "unfinished" not in subprocess.run([krait, "info", folder], capture_output=True, text=True, env=UTC).stdout


def test_the_summary_says_what_was_lost_and_what_to_do(krait, synth):
    run = subprocess.run([krait, "info", synth(SCRIPT)], capture_output=True, text=True, env=UTC)
    assert run.returncode == 0 and not run.stderr
    assert re.search(r"lost +7, ring full\n.*--buffer-size", run.stdout)
    assert re.search(r"lost +5, displaced\n +the program set", run.stdout)
    assert "2 processes, 2 threads" in run.stdout
    assert re.search(r"1,001 +24\.9% +python:call", run.stdout) or re.search(r"1,002 +\S+ +python:call", run.stdout)
    assert "\033" not in run.stdout and max(map(len, run.stdout.splitlines())) <= 80


def test_lines_of_words_fit_a_narrow_terminal(krait, record, any_python):
    folder = record.text(any_python, "import os\ndef f(): return os.getpid()\nfor _ in range(100): f()\n").path
    text, status = on_terminal([krait, "info", folder], columns=46, env={**UTC, "NO_COLOR": "1"})
    lines = text.splitlines()
    assert status == 0
    for label in ("cost", "rings"):
        [at] = [i for i, line in enumerate(lines) if line.startswith(f"  {label} ")]
        assert len(lines[at]) <= 46 and len(lines[at + 1]) <= 46 and lines[at + 1].startswith(13 * " "), lines
    assert "256.0 MiB allowed" in " ".join(text.split())


def test_names_from_a_trace_cannot_write_to_the_terminal(krait, synth):
    folder = synth("process 10 app%1B[2J%0A%C3\ncode 1 python m f f.py 3\nthread 10\n1us call 1\n2us return\n")
    run = subprocess.run([krait, "info", folder], capture_output=True, env=UTC)
    assert run.returncode == 0 and b"\x1b" not in run.stdout and b"app" in run.stdout
    run.stdout.decode()
    text = subprocess.run([krait, "info", "--json", folder], capture_output=True, env=UTC).stdout
    json.loads(text.decode())


def test_a_damaged_stream_is_counted_up_to_the_damage(krait, synth):
    folder = synth(SCRIPT)
    stream = max((p for p in folder.rglob("thread-10-*")), key=lambda p: p.stat().st_size)
    stream.write_bytes(stream.read_bytes()[:-9])
    run = subprocess.run([krait, "info", "--json", folder], capture_output=True, text=True, env=UTC)
    assert run.returncode == 1 and f"{stream}: byte " in run.stderr
    facts = json.loads(run.stdout)
    assert facts["events"] > 4000
    assert facts["damage"].startswith(f"{stream}: byte ") and facts["damage"] in run.stderr


def test_of_a_whole_trace_no_damage_is_said(synth, info):
    assert info(synth(SCRIPT))["damage"] is None


@pytest.mark.skipif(not CORPUS.exists(), reason=f"no corpus of CTF traces at {CORPUS}")
def test_traces_of_others_are_counted(krait, info):
    facts = info(CORPUS / "lttng-ref-traces/basic-kernel-analysis/kernel")
    assert facts["events"] == 134500 and facts["processes"] is None
    assert facts["event_classes"][0] == {"name": "kmem_mm_page_alloc", "count": 33703}
    assert facts["lost"] == {}


def test_what_is_no_trace_is_said(krait, tmp_path):
    run = subprocess.run([krait, "info", tmp_path], capture_output=True, text=True)
    assert run.returncode == 1 and "no CTF trace in there" in run.stderr
    assert subprocess.run([krait, "info"], capture_output=True).returncode == 2


def test_each_part_has_losses_of_its_own_in_a_range(both, info):
    """Where each part lost events for two reasons, and packets do not tell which."""
    calls = "process 7 python3\ncode 1 python app f app.py 1\nthread 7\n10us call 1\npacket 7\n50us return\nexit 0 0\nlost 2 3\n"
    folder = both(calls, [(20, 0, "sched_wakeup", {"tid": 7}), (40, 0, "sched_wakeup", {"tid": 7})], lost=4)
    metadata = folder / "kernel" / "metadata"
    metadata.write_text(metadata.read_text().replace('domain = "kernel";', 'domain = "kernel"; recorded_by = "krait 0.1.0"; disk_refused = 1;'))
    lost = info(folder, "--from", "0s")["lost"]
    assert sorted(lost) == ["discarded events", "discarded events of the kernel"] and lost["discarded events of the kernel"] == 4


def test_a_range_has_the_facts_of_that_time(krait, synth, info):
    folder = synth(SCRIPT)
    late = info(folder, "--from", "350ms")
    calls = {c["name"]: c["count"] for c in late["event_classes"] if c["name"].startswith("python:")}
    assert calls == {"python:call": 1, "python:return": 1}
    assert (late["processes"], late["threads"], [p["pid"] for p in late["process_list"]]) == (1, 1, [20])
    whole, early = info(folder), info(folder, "--until", "350ms")
    assert late["events"] + early["events"] == whole["events"] and late["packets"] + early["packets"] >= whole["packets"]
    assert late["bytes"] < whole["bytes"] and 99_000_000 <= late["duration_ns"] <= 101_000_000
    assert early["lost"] == {"ring full": 7} and early["lost_events"] == 7 and early["lost_anywhere"] == late["lost_anywhere"] == {"displaced": 5}
    assert late["lost"] == {} and late["lost_events"] == 0 and whole["lost_anywhere"] == {}
    within = info(folder, "--within", "f:last")
    assert {c["name"] for c in within["event_classes"]} >= {"python:call"} and within["duration_ns"] <= 1_000_000
    text = subprocess.run([krait, "info", folder, "--within", "f:last"], capture_output=True, text=True, check=True)
    assert re.search(r"range +from 304\.0 ms to 305\.0 ms after the recording began", text.stdout) and "within f, 1001 of 1001" in text.stderr
    assert re.search(r"lost +5, displaced, in the whole recording\n +the program set", text.stdout)
    empty = subprocess.run([krait, "info", folder, "--from", "100s"], capture_output=True, text=True, check=True).stdout
    assert "range      from 100.0 s after the recording began\n  events     0 in 4 streams, 0 packets\n" in empty and "0 processes, 0 threads" in empty
    for options, why in [(["--within", "ff"], "did you mean 'f'?"), (["--from", "2s", "--until", "1s"], "the range is empty"), (["--within", "f", "--from", "1s"], "it is a range itself")]:
        wrong = subprocess.run([krait, "info", folder, *options], capture_output=True, text=True)
        assert wrong.returncode in (1, 2) and why in wrong.stderr


def test_a_range_of_another_trace_has_what_cut_copies(krait, tmp_path, info):
    folder = write(tmp_path / "whole", [event(us, "sched_waking", comm="a", tid=us, prio=20, target_cpu=0) for us in range(1000)])
    whole = info(folder)
    until = f"{whole['duration_ns'] // 2}ns"
    subprocess.run([krait, "cut", folder, "--until", until, "-o", tmp_path / "part"], check=True, capture_output=True)
    part, same = info(folder, "--until", until), info(tmp_path / "part")
    assert part["event_classes"] == same["event_classes"] and 0 < part["events"] < whole["events"]


def test_files_of_analyses_are_listed_with_what_the_trace_has(krait, synth, tmp_path, info):
    folder = synth("process 7 python3\nexit 0 0\nthread 7\n0us mark oven%20is%20hot\n5us mark begin\n9us mark end\n10us mark oven%20is%20warm\n12us mark 3%20wait\n")
    own = tmp_path / "own.toml"
    own.write_text("[interval.bake]\nstart = 'begin'\nstop = 'end'\n[state.oven]\nmessage = 'oven is (.+)'\n[signal.queue]\nmessage = '(.) wait'\n[interval.none]\nstart = { event = 'user:mrk' }\nstop = 'b'\n")
    found = info(folder, "-f", own)["declared"]
    assert [(row["name"], row["kind"], row["found"], row["total_ns"]) for row in found] == [("bake", "interval", 1, 4000), ("none", "interval", 0, 0), ("oven", "state", 2, 10_000), ("queue", "signal", 1, 0)]
    text = subprocess.run([krait, "info", folder, "-f", own], capture_output=True, text=True, check=True)
    assert text.stderr.endswith("own.toml:9: interval.none.start.event: there is no event 'user:mrk' in the trace; did you mean 'user:mark'?\n")
    assert re.search(r"Declared\n +found +total +kind +name\n +1 +4\.000 us +interval +bake\n", text.stdout)
    within = info(folder, "-f", own, "--within", "oven.hot:1")["declared"]
    assert [row["found"] for row in within] == [1, 0, 1, 0]
