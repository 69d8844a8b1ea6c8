# SPDX-License-Identifier: Apache-2.0
"""krait top --bars and --clock, and suspended generators in --stacks: pictures in characters, read back."""

import math
import os
import re
import subprocess

import pytest

from conftest import BUILD
from terminal import on_terminal
from top_shown import BUSY, ENV, Screen

EIGHTHS = " ▏▎▍▌▋▊▉█"
EXACT = ("--exact", "--max-overhead", "100")
NS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
WIDTHS = [60, 80, 140, 200]

SLOW = """
import os, time
def slow(): time.sleep(0.1)
def quick(): pass
print(os.getpid(), flush=True)
while True:
    quick()
    slow()
"""


def number(text):
    """Of a count, of a time, or of a dash."""
    words = text.replace(",", "").split()
    return 0 if words == ["-"] else float(words[0]) * (NS[words[1]] if len(words) > 1 else 1)


def read_bars(text, width):
    """The rows, (name, number, eighths of a column) of each, and what a row should have."""
    lines = text.split("\n\n", 1)[1].rstrip("\n").split("\n")
    head = re.match(r"(function +(?:own time|calls)  )0 +(.+)$", lines[0])
    room = width - len(head[1])
    assert len(lines[0]) == width and all(len(line) <= width for line in lines)
    found = []
    for line in lines[1:]:
        name, value = re.match(r"(\S.*?)  +(\S.*)$", line[: len(head[1])].rstrip()).groups()
        bar = line[len(head[1]) :]
        assert re.fullmatch("█*[▏▎▍▌▋▊▉]?|=*", bar), line
        eighths = 8 * len(bar) - (8 - EIGHTHS.index(bar[-1]) if bar and bar[-1] in EIGHTHS else 0)
        found.append((name, number(value), eighths, number(value) / number(head[2]) * room * 8))
    return found, number(head[2])


def plain(text):
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


@pytest.mark.parametrize("words", [(), EXACT], ids=["samples", "exact"])
def test_bars_are_as_long_as_their_numbers_and_the_longest_is_first(programs, krait, any_python, words):
    app = programs.start(any_python, BUSY)
    for width in (60, 200):
        text, status = on_terminal([krait, "top", "--once", "--bars", *words, "--interval", "500ms", app.pid], width, env={**os.environ, **ENV})
        assert status == 0
        found, scale = read_bars(text, width)
        most = max(value for _, value, _, _ in found)
        assert most <= scale < 3 * most, "1, 2 or 5 times a power of 10"
        assert [value for _, value, _, _ in found] == sorted((value for _, value, _, _ in found), reverse=True)
        for name, value, eighths, wanted in found:
            assert eighths == 0 if not value else eighths == pytest.approx(max(wanted, 1), abs=1 + wanted / 200), name
        assert "time.thread_time" in {name for name, value, _, _ in found if value}


def test_bars_have_the_colours_and_the_characters_that_there_are(programs, krait, any_python):
    app = programs.start(any_python, BUSY)
    bare = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLORTERM", "LC_ALL", "LANG", "LC_CTYPE", "TERM")}

    def shown(**env):
        return on_terminal([krait, "top", "--once", "--bars", "--interval", "100ms", app.pid], 80, env={**bare, **env})[0]

    assert re.search(r"\x1b\[38;5;\d+m█", shown(TERM="xterm-256color", LC_ALL="C.UTF-8"))
    assert re.search(r"\x1b\[[39]\dm█", shown(TERM="xterm", LC_ALL="C.UTF-8"))
    for env in ({"TERM": "xterm-256color", "NO_COLOR": "1"}, {"TERM": "dumb"}):
        text = shown(LC_ALL="C.UTF-8", **env)
        assert "\x1b" not in text and "█" in text
    text = shown(TERM="xterm-256color", LC_ALL="C")
    assert text.isascii() and re.search(r"\x1b\[38;5;\d+m=+\x1b", text)


SAME_NAMES = """
import os, time
print(os.getpid(), flush=True)
while True:
    for name in ("one", "two"): exec(compile("pass", name + ".py", "exec"), {"__name__": name})
    time.sleep(0.01)
"""


def test_bars_of_functions_of_one_name_tell_their_modules(programs, run, any_python):
    app = programs.start(any_python, SAME_NAMES)
    text = run("top", "--once", *EXACT, "--bars", app.pid).stdout
    assert re.search(r"^function +module +calls  0 +[\d,]+$", text, re.M), text
    assert all(re.search(rf"^<module> +{name} +[\d,]+  [█▏=]", text, re.M) for name in ("one", "two")), text
    text = run("top", "--once", *EXACT, "--bars", "--filter", "compile", app.pid).stdout
    assert re.search(r"^function +calls  0 ", text, re.M) or "no function that was called" in text, text


def test_bars_have_rows_of_threads_and_of_tasks(programs, run, any_python, tmp_path):
    app = programs.start(any_python, BUSY)
    text = run("top", "--once", "--idle", "--bars", "--by", "thread", "--interval", "300ms", app.pid).stdout
    assert re.search(rf"^thread +name +function +own time  0 +\S+ \w+$(?:.*\n)*? *{app.pid}  \S+ +spin ", text, re.M), text
    tasks = programs.start(any_python, "import asyncio, os\nasync def step():\n    while True: await asyncio.sleep(0.01)\nprint(os.getpid(), flush=True)\nasyncio.run(step())\n")
    text = run("top", "--once", "--exact", "--bars", "--by", "task", tasks.pid).stdout
    assert re.search(r"^name +coroutine +steps  0 +[\d,]+$(?:.*\n)+.* step +\d+  [█=▏]", text, re.M), text


# ---- the clock ----


def dots(lines):
    """(angle in turns from the top, clockwise; part of the radius) of each dot of a clock."""
    columns, rows = 2 * max(map(len, lines)), 4 * len(lines)
    side = min(columns, rows)
    bits = [(0, 0, 1), (0, 1, 2), (0, 2, 4), (1, 0, 8), (1, 1, 16), (1, 2, 32), (0, 3, 64), (1, 3, 128)]
    for row, line in enumerate(lines):
        for column, char in enumerate(line):
            for dx, dy, bit in bits:
                if char != " " and (ord(char) - 0x2800) & bit:
                    x, y = column * 2 + dx + 0.5 - side / 2, row * 4 + dy + 0.5 - side / 2
                    yield math.atan2(x, -y) / (2 * math.pi) % 1, math.hypot(x, y) / (side / 2)


def clock_of(text):
    """The lines of the clock alone."""
    lines = plain(text).split("\n\n", 1)[1].split("\na turn is ")[0].split("\n")
    return [re.match(r"[ \u2800-\u28ff]*", line)[0].rstrip() for line in lines]


def rays(lines, least, most):
    """How many rays there are between two parts of the radius."""
    angles = sorted(angle for angle, part in dots(lines) if least < part < most)
    return sum(1 for a, b in zip(angles, [*angles[1:], angles[0] + 1]) if b - a > 0.012)


def end_of(ns, turn):
    return 0.22 + 0.78 * math.log2(2 + ns / 100) / math.log2(2 + turn / 100)


LONG = (end_of(3e6, 2e9), end_of(80e6, 2e9))  # rays of calls of 0.1 s go through it


@pytest.fixture
def clock(krait):
    """clock(app, *options): what --once --clock prints."""

    def shown(app, *options):
        words = [krait, "top", "--once", *EXACT, "--clock", app.pid, *options]
        run = subprocess.run([str(word) for word in words], capture_output=True, text=True, env={**os.environ, **ENV}, timeout=60)
        assert run.returncode == 0 and "\na turn is 2.000 s; a ray is a call where it ended" in run.stdout, run.stderr
        return run.stdout

    return shown


def test_rays_are_as_long_as_their_calls_and_as_many(programs, clock, any_python):
    """A turn has room for 20 calls of 0.1 s. The hand is one ray more. The span's wrapper has none."""
    decorated = SLOW.replace("import os", "import krait, os", 1).replace("def slow", "@krait.span('slow')\ndef slow")
    app = programs.start(any_python, decorated, env={**os.environ, "PYTHONPATH": str(BUILD / "python")})
    assert 3 <= rays(clock_of(clock(app, "--filter", "slow")), *LONG) <= 21
    assert rays(clock_of(clock(app, "--filter", "recorded")), *LONG) == 1
    both = clock(app, "--sort", "calls")
    lines = both.split("\n\n", 1)[1].split("\n")
    assert re.search(r"   function +calls  0 +\d+$", lines[0]) and any(re.search(r" quick +\d+  █", line) for line in lines), "bars are beside it"
    assert re.search(r"rings 1 us, 1 ms, 1 s and 2.000 s$", both)
    for ring in (end_of(1e3, 2e9), 0.985):
        assert sum(abs(part - ring) < 0.03 for _, part in dots(clock_of(both))) > 20


OFTEN = """
import os
def once(): pass
def called_very_often(): pass
print(os.getpid(), flush=True)
while True:
    once()
    for n in range(1000): called_very_often()
"""


def test_bars_beside_the_clock_have_the_scale_and_the_eighths_of_bars(programs, krait, clock, any_python):
    app = programs.start(any_python, OFTEN)
    lines = clock(app, "--sort", "calls").split("\n\n", 1)[1].split("\n")
    assert re.search(r"   function +calls  0 +[\d,]+$", lines[0]), "room for both ends of the scale"
    assert any(re.search(r" c\S*…\S+ +[\d,]+  █", line) for line in lines) and any(re.search(r" once +[\d,]+  ▏$", line) for line in lines)
    bare = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLORTERM")}
    text, _ = on_terminal(
        [krait, "top", "--once", *EXACT, "--clock", "--interval", "300ms", app.pid], 80, env={**bare, "LC_ALL": "C.UTF-8", "TERM": "xterm-256color"}
    )
    assert re.search(r"\x1b\[38;5;\d+monce +[\d,]+  ▏\x1b\[0m", text), "the row has the colour, as the bar is thin"


SWITCHING = """
import greenlet, os, time
main = greenlet.getcurrent()
def slow():
    main.switch()
    time.sleep(0.1)
def turns():
    while True: slow()
other = greenlet.greenlet(turns)
print(os.getpid(), flush=True)
while True: other.switch()
"""


@pytest.mark.long
def test_a_call_that_left_its_greenlet_and_came_back_has_a_ray(programs, clock, any_python, venv):
    app = programs.start(venv(any_python, "greenlet"), SWITCHING)
    assert 3 <= rays(clock_of(clock(app, "--filter", "slow")), *LONG) <= 21


def test_the_hand_goes_clockwise(programs, krait, any_python):
    app = programs.start(any_python, SLOW)
    screen = Screen(krait, *EXACT, "--clock", "--turn", "60s", "--filter", "nothing", app.pid, rows=24, columns=80)

    def angle():
        frame = screen.wait_for(r"\x1b\[H(process(?:(?!\x1b\[H).)*)\x1b\[J\x1b\[2\d;1Hq quit")[1]
        found = [a for a, part in dots(clock_of(frame.replace("\r", ""))) if 0.08 < part < 0.17]
        x, y = sum(math.sin(2 * math.pi * a) for a in found), sum(math.cos(2 * math.pi * a) for a in found)
        return math.atan2(x, y) / (2 * math.pi)

    first = now = angle()
    while abs(now - first) < 0.03:
        now = angle()
    assert (now - first) % 1 < 0.5
    screen.press("q")
    assert screen.end() == 0


@pytest.mark.parametrize("columns", WIDTHS)
def test_the_clock_fits_and_keys_lead_to_it(programs, krait, any_python, columns):
    app = programs.start(any_python, SLOW.replace("pass", "sum(range(200000))"))  # samples meet it
    screen = Screen(krait, "--max-overhead", "100", app.pid, rows=24, columns=columns)
    screen.wait_for(r"samples")
    screen.press("C")
    screen.wait_for(r"clock: samples do not have single calls, press x")
    screen.press("B")
    screen.wait_for(r"function +own time  0 .*s sort \(own_ns\)")
    screen.press("x")
    screen.wait_for(r"exact: .*function +calls  0 .*s sort \(calls\)")
    screen.press("C")
    frame = screen.wait_for(r"\x1b\[H(process(?:(?!\x1b\[H).)*a turn is 2.000 s(?:(?!\x1b\[H).)*)\x1b\[J\x1b\[2\d;1Hq quit")[1]
    lines = plain(frame).replace("\r", "").rstrip("\n").split("\n")
    assert len(lines) < 24 and all(len(line) <= columns for line in lines)
    assert " ".join(" ".join(lines).split()).endswith("; rings 1 us, 1 ms, 1 s and 2.000 s")
    assert any(re.search(r" function +calls  0 ", line) for line in lines) == (columns >= 80), "bars where there is room"
    screen.press("+")
    screen.wait_for(r"a turn is 4.000 s")
    screen.press("--")
    screen.wait_for(r"a turn is 1.000 s")
    screen.press("p")
    screen.wait_for(r"a turn is 1.000 s.*PAUSED")
    screen.press("pC")
    screen.wait_for(r"own +total .*calls/s.*s sort \(own\)")
    screen.press("Cx")
    screen.wait_for(r"samples, .*own +total ")
    screen.press("q")
    assert screen.end() == 0
    assert re.search(r"\x1b\[\?1049lprocess .* own +total", screen.text, re.S), "a table of the whole time stays"


def test_where_there_are_no_braille_characters_there_are_bars(programs, krait, any_python):
    app = programs.start(any_python, SLOW)
    command = [krait, "top", "--once", *EXACT, "--clock", "--interval", "300ms", str(app.pid)]
    for env in ({"LC_ALL": "C", "TERM": "xterm"}, {"LC_ALL": "C.UTF-8", "TERM": "linux"}, {"LC_ALL": "C.UTF-8", "TERM": "dumb"}):
        run = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **env}, timeout=60)
        assert run.returncode == 0 and not re.search("[\u2800-\u28ff]", run.stdout)
        assert "the clock needs braille characters, which this terminal or locale does not have" in " ".join(run.stdout.split())
        assert re.search(r"^function +calls  0 +\d+$", run.stdout, re.M) and re.search(r"^quick +\d+  [█=▏]", run.stdout, re.M)


# ---- suspended generators ----

SUSPENDED = """
import os, sys, types
@types.coroutine
def pause(): yield
def numbers():
    sys.stdin.readline()
    yield 1
async def waiter():
    sys.stdin.readline()
    await pause()
def consume():
    first, second = numbers(), waiter()
    next(first)
    second.send(None)
    sys.stdin.readline()
    first.close()
    sys.stdin.readline()
    second.close()
    sys.stdin.readline()
print(os.getpid(), flush=True)
consume()
"""


def test_suspended_generators_are_cells_until_they_end(programs, krait, python):
    app = programs.start(python, SUSPENDED, stdin=subprocess.PIPE)
    screen = Screen(krait, "--stacks", app.pid, rows=14, columns=80)

    def go():
        app.process.stdin.write("\n")
        app.process.stdin.flush()

    frame = r"\x1b\[Hprocess(?:(?!\x1b\[H).)*"
    screen.wait_for(frame + r"consume━(?:(?!\x1b\[H).)*\nnumbers[━ ]+\d")
    go()
    screen.wait_for(frame + r"consume━(?:(?!\x1b\[H).)*\nwaiter[━ ]+ \d\.\d\d s┊numbers┄+ \d\.\d\d s")
    go()
    screen.wait_for(frame + r"consume━(?:(?!\x1b\[H).)*\n[^┊\n]*┊numbers┄+ \d\.\d\d s┊waiter┄+ \d\.\d\d s")
    go()
    screen.wait_for(frame + r"consume━(?:(?!\x1b\[H).)*\n[^┊\n]*┊waiter┄+ \d\.\d\d s")
    go()
    screen.wait_for(r"\x1b\[Hprocess(?:(?!\x1b\[H|┊).)*consume━(?:(?!\x1b\[H|┊).)*q quit")
    screen.press("q")
    assert screen.end() == 0
