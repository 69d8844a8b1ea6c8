# SPDX-License-Identifier: Apache-2.0
"""A recording that goes on is shown as far as it is, and to its end: krait record --view, and krait view beside it."""

import re
import signal
import subprocess
import time
import urllib.request

import pytest

from followed import PROGRAM, ask_trace, wait_until, watched  # noqa: F401  (watched: a fixture)
from growing import Growing
from served import Server


def test_the_page_follows_the_recording_to_its_end(watched, info):
    process, trace, url = watched
    first = wait_until(lambda t: t["growing"], lambda: ask_trace(url))
    later = wait_until(lambda t: int(t["duration"]) > int(first["duration"]) and t["generation"] > first["generation"], lambda: ask_trace(url))
    assert later["growing"]
    (trace.parent / "end").touch()
    last = wait_until(lambda t: not t["growing"], lambda: ask_trace(url))
    assert last["processes"][0]["end"] == "exit" and int(last["duration"]) == pytest.approx(info(trace)["duration_ns"], rel=0.01)
    process.send_signal(signal.SIGINT)
    out, said = process.communicate(timeout=30)
    assert process.returncode == 0 and out == "said by the program\n"
    assert "the command took" in said and "warning" not in said


def test_ctrl_c_ends_the_command_then_the_page(watched):
    process, _, url = watched
    wait_until(lambda t: t["growing"], lambda: ask_trace(url))
    program = int(re.search(r"^(\d+)", subprocess.check_output(["pgrep", "-P", str(process.pid), "-f", "app.py"], text=True))[1])
    process.send_signal(signal.SIGINT)  # a terminal sends it to the command too
    subprocess.run(["kill", "-INT", str(program)], check=True)
    last = wait_until(lambda t: not t["growing"], lambda: ask_trace(url))
    assert last["processes"][0]["end"] == "signal" and process.poll() is None
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == -signal.SIGINT


def test_the_page_of_a_running_process_follows_and_outlives_the_recording(krait, programs, any_python, monkeypatch, tmp_path):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    app = programs.start(any_python, "import os, time\ndef step(): time.sleep(0.01)\nprint(os.getpid(), flush=True)\nwhile True: step()\n")
    words = [krait, "record", "--pid", str(app.pid), "--view", "-o", str(tmp_path / "trace")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        url = process.stderr.readline().strip()
        first = wait_until(lambda t: t["growing"], lambda: ask_trace(url))
        wait_until(lambda t: int(t["duration"]) > int(first["duration"]) and t["generation"] > first["generation"], lambda: ask_trace(url))
        process.send_signal(signal.SIGINT)  # ends the recording
        last = wait_until(lambda t: not t["growing"], lambda: ask_trace(url))
        assert last["processes"][0]["end"] == "stop" and process.poll() is None and app.process.poll() is None
        process.send_signal(signal.SIGINT)  # ends the page
        assert "recorded the process for" in process.communicate(timeout=30)[1] and process.returncode == 0


def test_a_process_that_is_not_recorded_has_no_page(krait, run, tmp_path):
    with subprocess.Popen(["sleep", "60"]) as sleeper:
        done = run("record", "--pid", sleeper.pid, "--view", "-o", tmp_path / "trace", code=1)
        sleeper.kill()
    assert "runs " in done.stderr and "http" not in done.stderr


def test_a_viewer_beside_the_recording_follows_it(krait, record, any_python):
    process, trace = record.start(any_python, record.script(PROGRAM))
    wait_until(lambda _: list(trace.glob("*/thread-*")) and list(trace.glob("*/metadata")))
    server = Server(krait, trace)
    first = server.api("trace")
    assert first["growing"] and not (trace / ".krait-view").exists()
    wait_until(lambda t: int(t["duration"]) > int(first["duration"]), lambda: server.api("trace"))
    (trace.parent / "end").touch()
    process.communicate(timeout=30)
    wait_until(lambda t: not t["growing"], lambda: server.api("trace"))
    assert server.end() == (0, "krait view: open this link in a browser; Ctrl-C ends the server\n")


def test_a_command_that_is_not_recorded_has_no_page(record, any_python):
    run = record.words(any_python, "true", options=["--view"])
    assert run.status == 0 and "No Python was seen" in run.stderr and "http" not in run.stderr


def test_view_does_not_go_with_wait(record, any_python):
    run = record.words(any_python, "true", options=["--view", "--wait"])
    assert run.status == 2 and "--view does not go with --wait" in run.stderr


def test_ctrl_c_ends_the_server_at_once(krait, synth):
    server = Server(krait, synth("process 5 python3\ncode 1 python app main app.py 1\nthread 5 M\n0us call 1\n9us return\n"))
    peers = [urllib.request.urlopen(f"{server.url}app.css", timeout=10) for _ in range(3)]  # connections that stay open
    begin = time.monotonic()
    assert server.end()[0] == 0
    assert time.monotonic() - begin < 1.5  # it waited two seconds for each
    del peers


def busy(thread, rounds):
    """10 us a round; a mark and a wait for the GIL in the middle and at the end."""
    calls = "0us call 1\n0us call 4\n1us call 2\n2us return\n3us call 3\n4us return\n9us return\n10us return\n"
    return f"thread {thread}\n" + f"repeat {rounds}\n{calls}end\n0us gilwait 7\n2us giltake\n5us mark here\n" * 2


BIG = """
process 5 python3
code 1 python app main app.py 1
code 2 python app one app.py 5
code 3 python app two app.py 9
code 4 python app each app.py 13
code 5 python app waits app.py 17
thread 7 waiter
1us call 5
2us call 2
3us return
""" + busy(5, 40_000) + busy(6, 30_000)


def tiles(server, trace):
    """Of all tracks but the one that waits: parts of the picture before the end of the data, from the finest on."""
    tracks = [t["id"] for t in trace["tracks"] if t["number"] in (5, 6)]
    assert {t["kind"] for t in trace["tracks"]} >= {"calls", "instants", "states"}
    places = [(4, 40_000), (8, 1000), (12, 100), (16, 3), (16, 10), (16, 30), (18, 1), (18, 6), (20, 0), (20, 1)]
    return {(track, *place): server.ask(f"api/tile?track={track}&level={place[0]}&tile={place[1]}")[2] for track in tracks for place in places}


def test_an_update_reads_what_is_new_and_shows_what_a_whole_recording_does(krait, synth, tmp_path):
    """However long the recording is. The index is asked how many bytes it has read."""
    growing = Growing(synth(BIG), tmp_path / "growing", 0.9)
    server = Server(krait, growing.folder)
    trace = wait_until(lambda t: t["growing"] and t["index"]["done"], lambda: server.api("trace"))
    assert trace["index"]["read"] >= growing.size() > 5_000_000  # all of it, once for the calls, and once to find the rest
    for packets, partial in ((1, 0), (2, 100), (1, 0)):
        added = growing.grow(packets, partial)
        assert added < growing.size() / 20
        shown = trace["traceBytes"] + added
        trace = wait_until(lambda t: t["traceBytes"] == shown, lambda: server.api("trace"))  # noqa: B023
        assert 0 < trace["index"]["read"] <= 2 * added + 1000
    while growing.grow(3):
        shown = sum(path.stat().st_size for path in growing.folder.glob("*/*"))
        trace = wait_until(lambda t: t["traceBytes"] == shown, lambda: server.api("trace"))  # noqa: B023
    found = tiles(server, trace)
    whole = Server(krait, growing.whole)
    expected = tiles(whole, whole.built())
    assert whole.end()[0] == 0
    assert [key for key in expected if found[key] != expected[key]] == []
    growing.end()
    last = wait_until(lambda t: not t["growing"], lambda: server.api("trace"))
    server.built()
    assert tiles(server, last) == expected
    assert server.end()[0] == 0


FLIGHT = """
process 5 python3
code 1 python app main app.py 1
code 2 python app one app.py 5
code 3 python app two app.py 9
code 4 python app other app.py 13
code 5 python app each app.py 17
thread 5 main
""" + "".join(
    f"repeat 1000\n0us call {f}\n0us call {f + 1}\n1us return\n1us call 5\n4us return\n5us return\nend\n0us gilwait 7\n1us giltake\n5us mark here\n"
    for f in [1] * 40 + [3] * 40
)


def test_what_drops_the_oldest_events_shows_no_wrong_ones(krait, synth, tmp_path):
    """Until the next update, krait knows the packets of files that krait record --last has written anew since."""
    growing = Growing(synth(FLIGHT), tmp_path / "growing", 1)
    server = Server(krait, growing.folder)
    wait_until(lambda t: t["growing"] and t["index"]["done"], lambda: server.api("trace"))

    def functions():
        begins = range(0, 400_000_000, 20_000_000)
        first = server.api("trace")["generation"]
        found = [server.api("functions", **{"from": begin, "until": begin + 10_000_000}) for begin in begins]
        return {first, server.api("trace")["generation"]}, found

    seen = {0, 1}
    while len(seen) > 1:  # an update came meanwhile
        before, expected = functions()
        growing.drop(3)
        after, found = functions()
        seen = before | after
    same = [now == then for now, then in zip(found, expected)]  # what is not was dropped
    first = next(i for i, answer in enumerate(found) if answer["rows"])
    assert all(same[first + 1 :]) and any(answer["rows"] for answer in found[first + 1 :])
    assert any(answer["rows"] for answer in expected)
    later = wait_until(lambda t: t["index"]["done"] and t["generation"] > max(after), lambda: server.api("trace"))
    assert later["growing"] and any(answer["rows"] and not answer["damage"] for answer in functions()[1])
    growing.end()
    assert server.end()[0] == 0


def test_a_thread_that_waits_is_open_until_now(krait, synth, tmp_path):
    """Also where the other threads, and the whole program, have no events."""
    growing = Growing(synth(BIG), tmp_path / "growing", 0.1)
    server = Server(krait, growing.folder)
    trace = wait_until(lambda t: t["growing"] and t["index"]["done"], lambda: server.api("trace"))
    later = wait_until(lambda t: int(t["duration"]) > int(trace["duration"]), lambda: server.api("trace"))
    for now in (trace, later):
        thread = next(t["id"] for t in now["tracks"] if t["kind"] == "calls" and t["number"] == 7)
        end = int(now["duration"])
        call = server.api("call", track=thread, at=end - 1, depth=0)
        assert server.api("funcs")[call["func"]][0] == "waits" and call["begin"] == "1000" and int(call["end"]) >= end
    assert server.end()[0] == 0
