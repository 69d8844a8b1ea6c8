# SPDX-License-Identifier: Apache-2.0
"""The model's tracks (src/trace/track.h), printed by tests/read_tracks.c: what they hold is what the verbs show."""

import resource
import subprocess
from collections import defaultdict

import pytest

from conftest import verb_json
from corpus import CORPUS
from kernel_made import Label, begins, ends, event, switch, wake, write
from tracks_read import text_of, tracks

LTTNG = CORPUS / "lttng-ref-traces" / "basic-kernel-analysis" / "kernel"
KERNELS = [
    LTTNG,
    CORPUS / "lttng-ref-traces" / "picotrace" / "kernel",
    CORPUS / "babeltrace" / "succeed" / "lttng-tracefile-rotation" / "kernel",
    CORPUS / "tracecompass" / "flipping-endianness",
    CORPUS / "tracecompass" / "perf-taskset2",
    CORPUS / "tracecompass" / "uneven-streams",
]

NOT_RETURNED = str(-(2**63))  # KRAIT_NOT_RETURNED in trace/track.h


def made(tmp_path):
    return write(
        tmp_path / "kernel",
        [
            switch(0, 0, 7),
            event(5, "power_cpu_frequency", state=2400000, cpu_id=0),
            begins(10, "read"),
            event(12, "irq_handler_entry", irq=9, name="disk"),
            event(15, "irq_handler_exit", irq=9, ret=1),
            switch(20, 7, 8, state=1),
            wake(30, 7),
            switch(40, 8, 7),
            ends(45, "read", ret=512),
            event(50, "power_cpu_frequency", state=3100000, cpu_id=0),
            switch(60, 7, 0),
        ],
    )


def test_the_kernels_part_is_tracks_of_threads_and_cpus(tmp_path):
    found = tracks(made(tmp_path))
    assert found["SLICES", "THREAD", 7, "system calls"] == [["10000", "45000", "read", "512"]]
    assert [e[2] for e in found["STATES", "THREAD", 7, "state"]] == ["user", "system", "interrupt", "system", "blocked_other", "woken", "system", "user"]
    assert found["STATES", "THREAD", 7, "state"][5] == ["30000", "40000", "woken", "8"]
    assert found["STATES", "CPU", 0, "threads"] == [["0", "20000", "t7", "7"], ["20000", "40000", "t8", "8"], ["40000", "60000", "t7", "7"]]
    assert found["SLICES", "CPU", 0, "interrupts"] == [["12000", "15000", "disk", "0"]]
    assert found["COUNTER", "CPU", 0, "frequency"] == [["5000", "2400000"], ["50000", "3100000"]]


def test_only_cpus_whose_frequency_is_known_have_a_track_of_it(tmp_path):
    speed = event(5, "power_cpu_frequency", state=2400000, cpu_id=0)
    others = [switch(0, 0, 7), switch(0, 0, 8, cpu=1), switch(60, 7, 0), switch(60, 8, 0, cpu=1)]
    found = tracks(write(tmp_path / "kernel", [speed, *others]))
    assert {(kind, cpu) for kind, place, cpu, _ in found if place == "CPU"} == {("STATES", 0), ("STATES", 1), ("COUNTER", 0)}


def test_a_range_cuts_tracks_at_its_edges(tmp_path):
    found = tracks(made(tmp_path), 13000, 35000)
    assert found["SLICES", "CPU", 0, "interrupts"] == [["13000", "15000", "disk", "0"]]
    assert found["STATES", "CPU", 0, "threads"] == [["13000", "20000", "t7", "7"], ["20000", "35000", "t8", "8"]]
    assert found["STATES", "THREAD", 7, "state"][0][:3] == ["13000", "15000", "interrupt"]
    assert found["COUNTER", "CPU", 0, "frequency"] == [["13000", "2400000"]]
    assert found["SLICES", "THREAD", 7, "system calls"] == [["13000", "35000", "read", NOT_RETURNED]]
    assert tracks(made(tmp_path), 13000, 14000)["SLICES", "CPU", 0, "interrupts"] == [["13000", "14000", "disk", "0"]]


def test_wake_ups_lead_from_the_waker_to_the_woken_thread(tmp_path):
    found = tracks(made(tmp_path))
    assert found["FLOWS", "THREAD", 8, "wake-ups"] == [["30000", "40000", "wakeup", "7"]]
    assert ("FLOWS", "THREAD", 7, "wake-ups") not in found
    assert ("SLICES", "THREAD", 8, "system calls") not in found


def test_functions_of_the_kernel_are_slices_beside_the_calls_that_they_are_in(tmp_path):
    about, within = Label("vfs_read", 0x1000), Label("rw_verify_area", 0x2000)
    events = [
        switch(0, 0, 7),
        begins(10, "read"),
        event(12, "kernel_function_entry", function=about),
        event(14, "kernel_function_entry", function=within),
        event(16, "kernel_function_exit", function=within),
        event(20, "kernel_function_exit", function=about),
        ends(25, "read", ret=3),
        event(30, "kernel_function_entry", function=about),
        switch(60, 7, 0),
    ]
    folder = write(tmp_path / "kernel", events)
    found = tracks(folder)
    assert found["SLICES", "THREAD", 7, "system calls"] == [["10000", "25000", "read", "3"]]
    assert found["SLICES", "THREAD", 7, "functions"] == [["14000", "16000", "rw_verify_area", "0"], ["12000", "20000", "vfs_read", "0"], ["30000", "60000", "vfs_read", "0"]]
    assert tracks(folder, 13000, 15000)["SLICES", "THREAD", 7, "functions"] == [["14000", "15000", "rw_verify_area", "0"]]
    assert text_of(folder, together=True) == text_of(folder)


PART = (20_000_000, 300_000_000)  # ns


# LTTNG's, which takes longest, is walked as a whole in the test below.
@pytest.mark.parametrize(
    "folder, span",
    [(folder, span) for folder in KERNELS for span in ((), PART) if span or folder != LTTNG],
    ids=lambda value: str(value.relative_to(CORPUS)).replace("/", "-") if value not in ((), PART) else "range" if value else "all",
)
def test_many_tracks_in_one_pass_are_as_each_by_itself(folder, span):
    if not folder.exists():
        pytest.skip("the corpus of traces is not here")
    assert text_of(folder, *span, together=True) == text_of(folder, *span)


def test_many_tracks_are_walked_for_the_price_of_a_few():
    """The corpus's trace has 330: each by itself takes a run over all events."""
    if not LTTNG.exists():
        pytest.skip("the corpus of traces is not here")

    def walk(**how):
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        text = text_of(LTTNG, **how)
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before, text

    alone, each_by_itself = walk()
    together = [walk(together=True) for _ in range(3)]
    assert min(seconds for seconds, _ in together) * 4 < alone
    assert all(text == each_by_itself for _, text in together)


def test_calls_and_waits_of_a_recording_are_tracks(synth):
    folder = synth("process 4711 python3\ncode 1 python app main app.py 1\nthread 4711 MainThread\n0 call 1\n20 gilwait 4712\n50 giltake\n90 return\nthread 4712 other\n60 call 1\n70 return\n")
    found = tracks(folder)
    assert found["CALLS", "THREAD", 4711, "calls"] == [["0", "main", "0"], ["90", "main", "4"]]
    assert found["STATES", "THREAD", 4711, "GIL"] == [["20", "50", "waits", "for", "the", "GIL", "4712"]]


def test_states_add_up_to_what_krait_states_shows(krait):
    if not LTTNG.exists():
        pytest.skip("the corpus of traces is not here")
    busiest = max(verb_json(krait, "states", LTTNG)["threads"], key=lambda row: row["on_cpu_ns"])
    sums = defaultdict(int)
    for begin, end, state, _ in tracks(LTTNG, 0, 2**63, busiest["tid"])["STATES", "THREAD", busiest["tid"], "state"]:
        sums[state] += int(end) - int(begin)
    assert sums == {state: busiest[f"{state}_ns"] for state in sums} and len(sums) > 3


def test_threads_that_did_not_record_themselves_stand_with_their_process(both):
    """A thread without Python comes behind those of its process, before what the kernel alone tells of."""
    folder = both(
        "process 4711 python3\ncode 1 python app main app.py 1\nthread 4711 MainThread\n10us call 1\n90us return\n",
        [
            switch(0, 0, 4711),
            event(5, "lttng_statedump_process_state", tid=4711, pid=4711, type=0, status=0, name="python3"),
            event(6, "sched_process_fork", child_tid=4712, child_pid=4711, parent_tid=4711, child_comm="pool", parent_comm="python3"),
            switch(40, 4711, 4712, state=1),
            switch(50, 4712, 17),
            switch(60, 17, 4711),
        ],
    )
    order = [line.split()[4] for line in text_of(folder).splitlines() if line.startswith("track STATES of THREAD") and line.endswith(" state")]
    assert order == ["4711", "4712", "17"]


LOSING = """
    process 4711 python3
    code 1 python app main app.py 1
    thread 4711 MainThread
    10 call 1
    20 return
    packet 7
    50 call 1
    60 return
    thread 4712 whole
    15 call 1
    25 return
"""


def test_a_thread_that_lost_events_says_so_and_where(synth):
    found = tracks(synth(LOSING))
    assert found["STATES", "THREAD", 4711, "lost"] == [["20", "50", "events", "lost", "7"]]
    assert ("CALLS", "THREAD", 4711, "calls (lost)") in found and ("CALLS", "THREAD", 4712, "calls") in found
    assert not [key for key in found if key[2] == 4712 and "lost" in key[3]]
    assert tracks(synth(LOSING, "again"), 30, 40)["STATES", "THREAD", 4711, "lost"] == [["30", "40", "events", "lost", "7"]]


def test_a_process_whose_functions_were_dropped_says_so(synth):
    found = tracks(synth("process 4711 python3\ncode 1 python app main app.py 1\nthread 4711\n0 call 1\n5 return\n6 omit 1 1\n"))
    assert ("CALLS", "THREAD", 4711, "calls (left out)") in found


def cut(entries, begin, end):
    """Entries of states as a range from begin to end has them."""
    kept = [[max(int(e[0]), begin), min(int(e[1]), end), *e[2:]] for e in entries if int(e[0]) < end and int(e[1]) > begin]
    return [[str(word) for word in entry] for entry in kept]


def test_waits_of_a_range_are_those_of_the_whole_cut_at_its_edges(synth):
    """Packets are found by their heads: a wait that goes on when the range begins is told in the packet before."""
    script = ["process 4711 python3", "code 1 python app main app.py 1", "thread 4711 MainThread"]
    for i in range(40):
        at = 100 * i
        script += [f"{at} call 1", f"{at + 10} gilwait 4712", *["packet"] * (i % 3), f"{at + 70} giltake", *["packet"] * (i % 2), f"{at + 80} return"]
    script += ["thread 4712 other", "0 call 1", "4000 return"]
    folder = synth("\n".join(script) + "\n")
    name = ("STATES", "THREAD", 4711, "GIL")
    whole = tracks(folder)[name]
    assert len(whole) == 40
    for begin in range(0, 4000, 130):
        for long in (1, 45, 1000):
            assert tracks(folder, begin, begin + long, 4711)[name] == cut(whole, begin, begin + long), (begin, long)


def test_instants_of_other_tracers_say_what_krait_cat_prints(krait):
    folder = CORPUS / "zephyr-ostrodivski" / "trace_sample1"
    if not folder.exists():
        pytest.skip("the corpus of traces is not here")
    printed = subprocess.run([krait, "cat", "--no-delta", folder], capture_output=True, text=True).stdout
    events = [line.split("] ", 1)[1].replace(":", "", 1).strip() for line in printed.splitlines()]
    instants = [line.split(" ", 1)[1] for line in text_of(folder).splitlines() if line[0].isdigit()]
    assert instants == events and len(events) > 100
