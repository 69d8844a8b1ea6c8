# SPDX-License-Identifier: Apache-2.0
"""krait record --pid: what stays mapped in the process, against what docs/attach.md lists."""

import re
import resource
import subprocess

import pytest

from pages import page_text
from running import wait_for

APP = """
import os, time
def inner(n): return n + 1
print(os.getpid(), flush=True)
while not os.path.exists("stop"):
    time.sleep(0.001)
    for i in range(100): inner(i)
"""
KIB, MIB = 1 << 10, 1 << 20
AGENT, FUNCTIONS, STACK, HEAP = "the agent", "its table of functions", "a thread's stack", "a thread's heap"


def pages_of(pid):
    """(permissions, file) of each page, by address. The kernel joins neighbours that are alike, so lines of maps do not tell what is new."""
    for line in open(f"/proc/{pid}/maps"):
        addresses, permissions, _, _, _, *name = line.split(None, 5)
        begin, end = (int(a, 16) for a in addresses.split("-"))
        yield begin, end, permissions, name[0].strip() if name else ""


def added(before, after):
    """What is mapped now and was not, in runs of equal permissions and file: (begin, end, permissions, file)."""
    for begin, end, permissions, file in after:
        for b, e, *_ in before:
            if b <= begin < e:
                begin = min(e, end)
            if begin < b < end and e >= end:
                end = b
        if begin < end:
            yield begin, end, permissions, file


def kinds(pieces):
    """What each piece is; the piece itself where nothing is known of it."""
    stack = resource.getrlimit(resource.RLIMIT_STACK)[0]
    stack = 2 * MIB if stack == resource.RLIM_INFINITY else stack  # glibc's ARCH_STACK_DEFAULT_SIZE
    found, before = [], (0, 0, "", "")
    for piece in pieces:
        begin, end, permissions, file = piece
        size, follows = end - begin, before[1] == begin
        if "krait-agent" in file or "_agent.abi3.so" in file:
            kind = AGENT
        elif file:
            kind = piece
        elif permissions == "rw-p" and stack <= size < stack + MIB:
            kind = STACK
        elif permissions == "rw-p" and follows and found[-1] == AGENT:  # its variables that are 0 at first
            kind = AGENT
        elif permissions == "---p" and follows and begin % (64 * MIB) == before[1] - before[0] and end % (64 * MIB) == 0:
            found[-1] = kind = HEAP  # malloc's: as much of it as was needed can be written
        elif permissions == "---p" and size <= 64 * KIB:
            kind = STACK  # the page that guards it; newer versions of glibc guard it without a mapping
        elif permissions == "rw-p" and 512 * KIB < size < MIB:
            kind = FUNCTIONS
        else:
            kind = piece
        found.append(kind)
        before = piece
    return found


def listed():
    """The first cells of the table of the page."""
    text = page_text("attach.md")
    table = text[text.index("It keeps these mappings") :]
    return re.findall(r"^\| ([^|]+?) +\|", table[: table.index("\n\n", table.index("\n|"))], re.M)[1:]


@pytest.mark.every_python
def test_what_stays_mapped_is_what_the_page_lists(programs, krait, python, tmp_path):
    app = programs.start(python, APP)
    before = list(pages_of(app.pid))
    for i in range(3):
        words = [krait, "record", "-q", "--pid", str(app.pid), "--for", "100ms", "-o", str(tmp_path / f"trace{i}")]
        subprocess.run(words, check=True, timeout=60)
        wait_for(lambda: not any("memfd:krait (" in file for *_, file in pages_of(app.pid)), "the end of the recording's memory")
        found = kinds(added(before, pages_of(app.pid)))
        assert sorted(set(map(str, found))) == sorted(listed()), found
        assert found.count(FUNCTIONS) == 1 and found.count(STACK) <= 2 and found.count(HEAP) == 2, found  # no more the next times
    (tmp_path / "stop").touch()
    assert app.process.wait(30) == 0
