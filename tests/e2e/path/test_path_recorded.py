# SPDX-License-Identifier: Apache-2.0
"""krait path of krait's own recordings: who a program's functions wait for is who the program says."""

import json

import pytest

from conftest import verb_json
from gil_oracle import GilOracle
from kernel_oracle import text_of
from kernel_recorded import kernel, tracefs  # noqa: F401  (kernel, tracefs: fixtures)
from known_times import KNOWN, MS, right_once
from pages import run_page
from path_compared import expected, first_difference, segments
from path_oracle import PathOracle

pytestmark = pytest.mark.usefixtures("alone")
WAITS = KNOWN + """
def work():
    compute(0.05)

def hold(lock, taken):
    with lock:
        taken.set()
        time.sleep(0.1)
        work()

def wait_for_lock():
    lock, taken = threading.Lock(), threading.Event()
    holder = threading.Thread(target=hold, args=(lock, taken), name="holder")
    holder.start()
    taken.wait()
    with lock:
        holder.join()

def wait_for_child():
    subprocess.run([sys.executable, "-S", "-c", "import time; time.sleep(0.1)"])

def answer(server):
    client, _ = server.accept()
    client.recv(100)
    work()
    client.send(b"answer")

def wait_for_answer():
    server = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=answer, args=(server,), name="server")
    thread.start()
    client = socket.create_connection(server.getsockname())
    client.send(b"question")
    client.recv(100)
    thread.join()

def wait_for_time():
    time.sleep(0.1)

def burn(until):
    while not until.is_set():
        pass

def wait_for_gil():
    until = threading.Event()
    burner = threading.Thread(target=burn, args=(until,), name="burner")
    burner.start()
    for _ in range(20):
        time.sleep(0.001)
    until.set()
    burner.join()

taken = {}
for function in FUNCTIONS:
    before = stolen()
    globals()[function]()
    taken[function] = at_most_stolen(before)
print(json.dumps(taken))
"""
FUNCTIONS = ("wait_for_lock", "wait_for_child", "wait_for_answer", "wait_for_time", "wait_for_gil")
WAITS = WAITS.replace("FUNCTIONS", repr(FUNCTIONS))


def paths_of(krait, recorded):
    """The path of each function, by its name."""
    found = {name: verb_json(krait, "path", recorded.path, "--call", name) for name in FUNCTIONS}
    for path in found.values():
        assert sum(m["path_ns"] for m in path["path"]) == path["duration_ns"]
        assert path["duration_ns"] == pytest.approx(path["call"]["duration_ns"], abs=10)
    return found


def members(path):
    return {m["name"]: m for m in path["path"]}


def assert_at_work(other, own, stolen):
    """The other one computes for 50 ms, which count while this one waits for it or for the GIL: not while it runs itself, or
    waits for a CPU."""
    ran = other["running_ns"] + other["interrupted_ns"]
    assert max(20 * MS, 49 * MS - own["path_ns"]) <= ran <= 51 * MS + stolen, (other, own, stolen)


def assert_goes_through(found, stolen):
    by_name = members(found["wait_for_lock"])
    own = by_name["MainThread"]
    assert 99 * MS < by_name["timer"]["path_ns"] + own["path_ns"]
    assert_at_work(by_name["holder"], own, stolen["wait_for_lock"])
    assert own["running_ns"] < 10 * MS and not own["blocked_ns"]

    by_name = members(found["wait_for_child"])
    assert 99 * MS < by_name["timer"]["path_ns"] + by_name["MainThread"]["path_ns"]
    ours = (None, by_name["MainThread"]["pid"], found["wait_for_child"]["tid"])
    child = [m for m in found["wait_for_child"]["path"] if m["kind"] == "thread" and m["pid"] not in ours]
    assert sum(m["running_ns"] for m in child) > 5 * MS  # an interpreter starts

    by_name = members(found["wait_for_answer"])
    assert_at_work(by_name["server"], by_name["MainThread"], stolen["wait_for_answer"])
    assert by_name["network lo"]["path_ns"] < 20 * MS  # the way of packets from one to the other, and no more

    assert 99 * MS < members(found["wait_for_time"])["timer"]["path_ns"]

    by_name = members(found["wait_for_gil"])
    assert by_name["burner"]["path_ns"] > 20 * 3 * MS and by_name["burner"]["running_ns"] > 20 * MS  # it is asked to give it up after 5 ms, each time
    assert 20 * MS < by_name["timer"]["path_ns"] < 20 * 2 * MS + stolen["wait_for_gil"]  # what was slept


def test_a_call_goes_through_those_that_it_waits_for(krait, kernel):  # noqa: F811
    def record():
        run = kernel(WAITS)
        return paths_of(krait, run), json.loads(run.stdout)

    right_once(record, lambda made: assert_goes_through(*made))


@pytest.mark.long
def test_paths_of_our_recordings_are_as_their_text_says(krait, kernel):  # noqa: F811
    recorded = kernel(WAITS)
    oracle = PathOracle(text_of(krait, recorded.path / "kernel"), GilOracle(krait, recorded.path))
    assert any(has for spans in oracle.shares.values() for *_, has in spans)
    main = verb_json(krait, "path", recorded.path)["tid"]
    busiest = sorted({t.tid for t in oracle.lives}, key=lambda tid: -sum(len(t.history) for t in oracle.lives if t.tid == tid))
    for tid in {main, *busiest[:12]}:
        ours, wanted = segments(verb_json(krait, "path", recorded.path, "--thread", tid), oracle), expected(oracle, tid)
        assert first_difference(ours, wanted) is None and len(ours) == len(wanted) > 0, tid


def test_the_examples_of_its_page_work(krait, any_python, tmp_path):
    runs = run_page("path.md", krait, any_python, tmp_path)
    assert len(runs) >= 7
    for line, run in runs.items():
        assert len(run.stdout.splitlines()) > 2 or "record" in line or "--json" in line, line
    shares = {m["name"]: m["share"] for m in verb_json(krait, "path", tmp_path / "trace", "--call", "load")["path"]}
    assert shares.get("timer", 0) + shares["refresher"] > 0.5 > shares["MainThread"]
