# SPDX-License-Identifier: Apache-2.0
"""What threads did, in flame graphs and folded stacks: --state, and where servers wait for requests."""

import os
import subprocess
import xml.etree.ElementTree as ET

import pytest
from conftest import BUILD
from kernel_made import begins, ends, event, switch, wake
from wall_made import CODES, SLEEP_CALLS, SLEEP_EVENTS

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def sleeps(both):
    """main calls load, which sleeps: load 20 us on CPU itself, sleep 20 on CPU, 27 timer, 3 ready, main 30."""
    return both(SLEEP_CALLS, [*SLEEP_EVENTS, switch(300, 5, 0)])


@pytest.fixture
def folded(run):
    """{innermost function: ns} of folded stacks."""

    def read(folder, *options):
        lines = run("export", folder, "--to", "folded", "-o", "-", *options).stdout.splitlines()
        return {line.rsplit(" ", 1)[0].split(";")[-1]: int(line.rsplit(" ", 1)[1]) for line in lines}

    return read


@pytest.mark.parametrize("state, us", [("stopped", 40), ("throttled", 15), ("ready", 5)])
def test_stopped_and_throttled_are_states_to_draw(folded, both, run, tmp_path, state, us):
    events = [
        switch(0, 0, 5), switch(20, 5, 0, state=4), wake(60, 5, cpu=1), switch(65, 0, 5), switch(70, 5, 0), switch(85, 0, 5), switch(100, 5, 0)
    ]  # fmt: skip
    folder = both(CODES + "10us call 1\n90us return\n", events)
    assert folded(folder, "--state", state) == {"app.main": us * 1000}
    run("flame", folder, "--state", state)
    assert titles_of(tmp_path / "flame.svg")["app.main"][1].startswith(f"total {us}.0" if us > 9 else f"total {us}.00")


@pytest.mark.parametrize(
    "state, stacks",
    [
        ("cpu", {"app.main": 30000, "app.load": 20000, "time.sleep": 20000}),
        ("timer", {"time.sleep": 27000}),
        ("timer,ready", {"time.sleep": 30000}),
        ("lock", {}),
    ],
)
def test_folded_stacks_have_the_time_in_the_states_that_are_asked_for(folded, sleeps, state, stacks):
    assert folded(sleeps, "--state", state) == stacks


def test_states_add_up_to_all(folded, sleeps):
    each = [folded(sleeps, "--state", s) for s in "cpu ready gil lock disk net timer child fault other unknown".split()]
    whole = folded(sleeps)
    assert {name: sum(e.get(name, 0) for e in each) for name in whole} == whole


def titles_of(path):
    root = ET.parse(path).getroot()
    return {e.text.split("\n")[0]: e.text.split("\n")[1:] for e in root.iter(SVG + "title") if e.text}


def test_a_flame_graph_has_the_time_in_a_state_and_says_so(run, sleeps, tmp_path):
    run("flame", sleeps, "--state", "timer")
    titles = titles_of(tmp_path / "flame.svg")
    assert "total 27.0\u202f\u00b5s (100.0\u202f% of all)" in titles["app.main"][1]
    text = (tmp_path / "flame.svg").read_text()
    assert "27.0\u202f\u00b5s waiting for a timer in 1 thread of 1 process" in text and "Width is time waiting for a timer." in text
    run("flame", sleeps, "--state", "timer,lock,cpu")
    assert "s on CPU, or waiting for a lock or a timer in 1 thread" in (tmp_path / "flame.svg").read_text()


def test_that_no_time_is_in_a_state_is_said(run, sleeps):
    assert "there is no time in state disk" in run("flame", sleeps, "--state", "disk").stderr


@pytest.mark.parametrize("verb", [["flame"], ["export", "--to", "folded"]], ids=lambda v: v[0])
def test_wrong_states_are_told(run, synth, sleeps, verb):
    plain = synth(CODES + "100us call 1\n200us return\n", "plain")
    said = run(*verb, plain, "--state", "cpu", code=1).stderr
    assert f"krait {verb[0]}: {plain}: --state: the recording has no thread states; record with --kernel" in said
    assert f"krait {verb[0]}: {plain}: --state gil: the recording has no waits for the GIL" in run(*verb, plain, "--state", "gil", code=1).stderr
    assert "'idle' is not one of cpu|ready|gil" in run(*verb, sleeps, "--state", "cpu,idle", code=2).stderr
    assert "'' is not one of" in run(*verb, sleeps, "--state", "cpu,", code=2).stderr


@pytest.mark.parametrize("verb", [["flame"], ["export", "--to", "folded"]], ids=lambda v: v[0])
def test_states_have_time_and_no_calls(run, sleeps, verb):
    assert "--state does not go with --unit calls: states are of time" in run(*verb, sleeps, "--state", "cpu", "--unit", "calls", code=2).stderr


def test_formats_without_states_say_so(run, sleeps):
    assert "--state: --to chrome cannot; --to folded can" in run("export", sleeps, "--to", "chrome", "--state", "cpu", code=2).stderr


# -- comparing --


def test_time_on_the_cpu_is_compared_where_all_recordings_tell_it(run, both, synth, tmp_path):
    def clocked(name, off):
        """main runs 100 us, `off` us of them not on a CPU."""
        calls = "process 5 python3\ncode 1 python app main app.py 1\nthread 5 MainThread\n100us call 1\n200us return\n"
        return both(calls, [switch(0, 0, 5), switch(150, 5, 0, state=1), switch(150 + off, 0, 5), switch(300, 5, 0)], name)

    old, new = clocked("old", 10), clocked("new", 30)
    assert "time on the CPU is compared" in run("flame", new, "--diff", old).stderr
    assert titles_of(tmp_path / "flame.svg")["app.main"][1].startswith("total 70.0")
    assert "on CPU" in (tmp_path / "flame.svg").read_text()
    said = run("flame", new, "--diff", synth(CODES + "100us call 1\n200us return\n", "plain")).stderr
    assert "comparing wall time, waits included: only 1 of 2 recordings has on-CPU time" in said
    assert titles_of(tmp_path / "flame.svg")["app.main"][1].startswith("total 100")
    run("flame", new, "--diff", old, "--state", "other")
    assert titles_of(tmp_path / "flame.svg")["app.main"][1].startswith("total 30.0")


def test_of_several_recordings_the_one_without_states_is_named(run, synth, sleeps):
    plain = synth(CODES + "100us call 1\n200us return\n", "plain")
    said = run("flame", sleeps, "--diff", plain, "--state", "cpu", code=1).stderr
    assert f"krait flame: {plain}: --state: the recording has no thread states" in said


def test_what_is_compared_is_said_where_it_is_a_state(run, sleeps):
    assert "krait flame: time waiting for a timer is compared" in run("flame", sleeps, "--diff", sleeps, "--state", "timer").stderr


def test_calls_are_compared_and_judged_when_they_are_drawn(run, synth, tmp_path):
    """Of work there are 3 calls of 4 before and 1 of 2 after, always; time is all chance."""
    calls = "1ms call 2\n2ms return\n"

    def recording(name, times, us):
        return synth(CODES + "0 call 1\n" + calls * times + f"{us}us return\nexit 0 0\n", name)

    old = [recording(f"o{i}", 3, us) for i, us in enumerate((5000, 9000))]
    new = [recording(f"n{i}", 1, us) for i, us in enumerate((5100, 8900))]
    words = [*new, "--diff", old[0], "--diff", old[1]]
    said = run("flame", *words, "--unit", "calls").stderr
    assert "krait flame: calls are compared\n" in said and "time" not in said.split("calls are compared")[0]
    title = titles_of(tmp_path / "flame.svg")["app.load"]
    assert title[1].startswith("total 1 call (50.0") and title[-1] == "in the other: 3 calls (75.0\u202f% of all), change -25.00 points"
    run("flame", *words)
    assert titles_of(tmp_path / "flame.svg")["app.load"][-1].endswith(": no more than chance")


# -- servers --

SERVER = """
process 5 python3
code 1 python app main app.py 1
code 2 c select epoll.poll - 0
code 3 python asyncio.events Handle._run events.py 9
code 4 {listen}
code 5 python queue Queue.get queue.py 1
code 6 python threading Condition.wait threading.py 1
code 7 c _thread lock.acquire - 0
code 8 python asyncio.base_events BaseEventLoop._run_once base_events.py 1
code 9 python threading Thread._bootstrap threading.py 1
code 10 python app handle app.py 9
thread 5 MainThread
0 call 1
0 ccall 4
1ms creturn
1ms call 8
1ms ccall 2
61ms creturn
61ms call 3
61ms call 10
71ms ccall 7
75ms creturn
75ms ccall 2
81ms creturn
81ms return
81ms return
81ms return
81ms ccall 2
85ms creturn
85ms call 5
85ms call 6
85ms ccall 7
100ms creturn
100ms return
100ms return
100ms return
thread 6 worker
0 call 9
0 call 5
0 call 6
0 ccall 7
14ms creturn
14ms return
14ms return
14ms return
exit 0 0
"""


def test_a_servers_idle_waits_are_left_out_and_that_is_said(run, synth, tmp_path):
    """Those of its loop and of a worker. Not what a request waits for, nor what the main program asks a queue or a poll for."""
    folder = synth(SERVER.format(listen="c _socket socket.listen - 0"))
    said = run("flame", folder).stderr
    assert "left out 74.00 ms of a server's idle waits" in said and "--idle draws them" in said
    titles = titles_of(tmp_path / "flame.svg")
    assert titles["app.main"][1].startswith("total 40.0\u202fms") and titles["app.handle"][1].startswith("total 20.0\u202fms")
    assert "without 74.0\u202fms of idle waits" in (tmp_path / "flame.svg").read_text()
    said = run("flame", folder, "--idle").stderr
    assert "server" not in said and titles_of(tmp_path / "flame.svg")["app.main"][1].startswith("total 100\u202fms")


def test_idle_waits_are_left_out_of_states_too_but_not_what_kept_a_cpu_busy(run, both, tmp_path):
    """poll waits 60 us for the network, idle; its own 20 us on a CPU are drawn. accept of no server is not idle."""
    folder = both(
        """
        process 5 python3
        code 1 python app main app.py 1
        code 2 c select epoll.poll - 0
        code 3 c _socket socket.listen - 0
        code 4 python asyncio.base_events BaseEventLoop._run_once base_events.py 1
        thread 5 MainThread
        100us call 1
        100us ccall 3
        110us creturn
        110us call 4
        110us ccall 2
        190us creturn
        190us return
        200us return
        exit 0 0
        """,
        [
            switch(0, 0, 5),
            begins(115, "epoll_wait"),
            switch(120, 5, 0, state=1),
            event(178, "irq_softirq_entry", vec=3),
            wake(180, 5),
            event(180, "irq_softirq_exit", vec=3),
            switch(180, 0, 5),
            ends(185, "epoll_wait"),
            switch(300, 5, 0),
        ],
    )
    said = run("flame", folder, "--state", "cpu").stderr
    assert "idle" not in said and titles_of(tmp_path / "flame.svg")["app.main"][1].startswith("total 40.0")
    said = run("flame", folder, "--state", "net,cpu").stderr
    assert "left out 60.00 us of a server's idle waits" in said
    assert titles_of(tmp_path / "flame.svg")["app.main"][1].startswith("total 40.0")
    said = run("flame", folder, "--state", "net,cpu", "--idle").stderr
    assert "idle" not in said and titles_of(tmp_path / "flame.svg")["app.main"][1].startswith("total 100")


def test_the_waits_of_a_program_that_serves_nobody_are_drawn(run, synth, tmp_path):
    said = run("flame", synth(SERVER.format(listen="c _socket socket.connect - 0"))).stderr
    assert "server" not in said and titles_of(tmp_path / "flame.svg")["app.main"][1].startswith("total 100\u202fms")


@pytest.mark.parametrize("options", [[], ["--no-c-calls"]], ids=["", "no-c-calls"])
def test_a_real_servers_idle_waits_are_found(run, record, python, options):
    if python.number not in ((3, 8), (3, 11), (3, 13)):
        pytest.skip("their names are the same in others")
    trace = record.text(
        python,
        """
        import http.server, queue, threading, time, urllib.request
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200); self.end_headers()
            def log_message(self, *args): pass
        jobs = queue.Queue()
        worker = threading.Thread(target=jobs.get); worker.start()
        server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever); thread.start()
        urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/").read()
        time.sleep(0.3)
        server.shutdown(); jobs.put(1); thread.join(); worker.join(); server.server_close()
        """,
        options=options,
    ).path
    waited = run("flame", trace).stderr.split("left out ")[1].split(" of a server")[0]
    number, unit = waited.split()
    assert float(number) * {"s": 1000, "ms": 1}[unit] >= 500  # two threads for 0.3 s each


def test_out_of_memory_is_an_error_and_no_other_picture(krait, synth, tmp_path):
    """Each allocation fails once: krait says so, or draws what it draws else."""
    folder, out = synth(SERVER.format(listen="c _socket socket.listen - 0")), tmp_path / "flame.svg"
    library = BUILD / "tests" / "libfail_alloc.so"

    def draw(**env):
        out.unlink(missing_ok=True)
        command = [krait, "flame", folder, "-o", out]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "LD_PRELOAD": library, **env}, timeout=60)
        return done, out.read_text() if out.exists() else None

    done, picture = draw()
    count = int(done.stderr.rsplit("allocations: ")[1])
    assert done.returncode == 0 and picture and count > 100
    failed = 0
    for n in range(1, count + 1):
        done, drawn = draw(KRAIT_TEST_FAIL_ALLOC=str(n))
        failed += done.returncode == 1
        if done.returncode:
            assert done.returncode == 1 and "memory" in done.stderr, (n, done)
        else:
            assert drawn == picture and "left out 74.00 ms" in done.stderr, (n, done)
    assert failed > count // 2
