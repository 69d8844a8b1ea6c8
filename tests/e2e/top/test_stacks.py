# SPDX-License-Identifier: Apache-2.0
"""krait top --stacks: the current stacks, threads side by side."""

import os
import re
import subprocess

import pytest

from conftest import BUILD
from top_shown import Screen

STACKED = """
import os, sys, threading, time
def waits(lock): lock.acquire()
def outer(): middle()
def middle():
    while True: inner()
def inner():
    end = time.thread_time() + 0.002
    while time.thread_time() < end: pass
def deep(n): deep(n - 1) if n else middle()
lock = threading.Lock()
lock.acquire()
threads = [threading.Thread(target=waits, args=(lock,), daemon=True) for _ in range(int(sys.argv[1]))]
for t in threads: t.start()
while sum("S (sleeping)" in open(f"/proc/self/task/{t}/status").read() for t in os.listdir("/proc/self/task")) < len(threads): pass
print(os.getpid(), *(t.native_id for t in threads), flush=True)
deep(int(sys.argv[2])) if int(sys.argv[2]) else outer()
"""


def cells(text, width, column, beside):
    """Of a thread in a picture, from its name on: (function without its class, seconds) for each line."""
    cell = (width - 2 * (beside - 1)) // beside
    lines = [line.ljust(width)[column * (cell + 2) :][:cell] for line in text.split("\n\n", 1)[1].splitlines()]
    found = [re.match(r"(?:.*\.)?(\S+?)[ ━=]+([\d.]+) s$", line.rstrip()) for line in lines[1:]]
    return lines[0].split(), [(match[1], float(match[2])) for match in found if match]


def test_the_stacks_of_now_are_cells_with_threads_side_by_side(programs, run, any_python):
    decorated = STACKED.replace("import os", "import krait, os", 1).replace("def outer", "@krait.span('outer')\ndef outer")
    app = programs.start(any_python, decorated, "1", "0", env={**os.environ, "PYTHONPATH": str(BUILD / "python")})
    text = run("top", "--once", "--stacks", "--interval", "1s", app.pid).stdout
    head, stack = cells(text, 80, 0, 2)
    assert head[-2:] == [str(app.pid), "cpu"] and [name for name, _ in stack[:3]] == ["<module>", "outer", "middle"]
    assert stack[0][1] == stack[1][1] == stack[2][1] > 0.5
    assert re.search(r"^outer[━=]{15,} +[\d.]+ s", text, re.M), text
    other, waiting = cells(text, 80, 1, 2)
    assert other[-2:] == [app.ready.split()[0], "lock"] and [name for name, _ in waiting[-2:]] == ["waits", "acquire"]
    assert waiting[-2][1] > 0.5 and waiting[-1][1] > 0.5


@pytest.mark.parametrize("columns, beside", [(60, 2), (80, 3), (140, 5), (200, 7)])
def test_so_many_stacks_as_fit_in_the_terminal(programs, krait, any_python, columns, beside):
    app = programs.start(any_python, STACKED, "9", "30")
    screen = Screen(krait, "--stacks", app.pid, rows=14, columns=columns)
    picture = screen.wait_for(r"\x1b\[H(process(?:(?!\x1b\[H).)* callers(?:(?!\x1b\[H).)*)\r\n\x1b\[J\x1b\[14;1H")[1]
    lines = [re.sub(r"\x1b\[K", "", line).rstrip("\r") for line in picture.split("\n")]
    assert len(lines) <= 13 and all(len(line) <= columns for line in lines)
    head = next(line for line in lines if re.search(rf" {app.pid} +cpu", line))
    assert len(re.findall(r" (?:lock|cpu)(?: |$)", head)) == beside and re.search(rf"{10 - beside} more threads", picture)
    screen.press("q")
    assert screen.end() == 0
    assert re.search(r"\x1b\[\?1049lprocess .* own +total", screen.text, re.S), "a table of the whole time stays"


@pytest.mark.parametrize("rows", [9, 11, 15, 16, 17, 18])
@pytest.mark.parametrize("depth", ["0", "30"])
def test_each_stack_that_is_shown_has_its_innermost_function(programs, krait, any_python, rows, depth):
    app = programs.start(any_python, STACKED, "4", depth)
    screen = Screen(krait, "--stacks", app.pid, rows=rows, columns=60)  # two threads side by side
    screen.frame("S table")
    picture = screen.frame("S table")
    table = "\n".join(picture[picture.index("") + 1 :])
    shown = len(re.findall(r" (?:lock|cpu)(?: |$)", table, re.M))
    innermost = len(re.findall(r"lock\.acquire|(?:inner|thread_time)[━ ]", table))
    assert 2 <= shown <= innermost and (shown == 5 or f"{5 - shown} more thread" in table), table
    screen.press("q")
    assert screen.end() == 0


COME_AND_GO = """
import os, sys, threading
locks = [threading.Lock() for _ in range(3)]
for lock in locks: lock.acquire()
def first(): locks[0].acquire()
def second(): locks[1].acquire()
def third(): locks[2].acquire()
def fourth(): locks[2].acquire()
threads = [threading.Thread(target=f, daemon=True) for f in (first, second, third)]
for t in threads: t.start()
print(os.getpid(), flush=True)
sys.stdin.readline()
locks[1].release()
threads[1].join()
threading.Thread(target=fourth, daemon=True).start()
sys.stdin.readline()
locks[0].release()
threads[0].join()
sys.stdin.readline()
"""


def test_stacks_of_threads_that_end_and_begin_stay_those_of_their_threads(programs, krait, any_python):
    app = programs.start(any_python, COME_AND_GO, stdin=subprocess.PIPE)
    screen = Screen(krait, "--stacks", "--interval", "100ms", app.pid, columns=160)
    for names in ["first", "second", "third"], ["first", "third", "fourth"], ["third", "fourth"]:
        line = " +".join(rf"{name}[━ ]+[\d.]+ s" for name in names)
        screen.wait_for(rf"\n +{line}[\x1b\r]")
        app.process.stdin.write("\n")
        app.process.stdin.flush()
    screen.press("q")
    assert screen.end() == 0


def test_a_key_shows_the_stacks_and_the_table_counts_on(programs, krait, any_python):
    app = programs.start(any_python, STACKED, "1", "0")
    screen = Screen(krait, app.pid, columns=140)
    screen.wait_for(r"own +total.* inner .*S stacks")
    screen.press("S")
    screen.wait_for(rf" {app.pid} +cpu.*outer━.*q quit  p pause  \? keys  S table  x exact  l lines")
    screen.press("l")
    screen.wait_for(rf" {app.pid} +cpu.*outer:4━.*middle:6━")
    screen.press("\033[Bw")
    screen.wait_for(r"stacks: that key works only in the table; press S")
    screen.press("lp")
    screen.wait_for(r"PAUSED.*S table")
    screen.press("pS")
    screen.wait_for(r"\x1b\[H(?!.* waits +\d).*own +total.* inner .*S stacks")  # threads that sleep do not count
    screen.press("x")
    screen.wait_for(r"exact: .*x samples")
    screen.press("S")
    screen.wait_for(r"stacks: only with samples, press x")
    screen.press("q")
    assert screen.end() == 0
