# SPDX-License-Identifier: Apache-2.0
"""A program for krait top, its rows, and its screen."""

import codecs
import fcntl
import os
import re
import select
import struct
import subprocess
import termios

from running import wait_for
from terminal import open_terminal

# By a clock that stands still while the program is off the CPU.
BUSY = """
import os, sys, threading, time
def spin(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end: pass
def long(): spin(0.015)
def short(): spin(0.005)
def recursive(n):
    if n: recursive(n - 1)
    else: long()
def waits(): time.sleep(600)
threading.Thread(target=waits, daemon=True).start()
while "S (sleeping)" not in "".join(open(f"/proc/self/task/{t}/status").read() for t in os.listdir("/proc/self/task")): pass
print(os.getpid(), flush=True)
while True:
    recursive(5)
    short()
"""


def rows(table):
    return {f["function"].rpartition(".")[2]: f for f in table["functions"]}


ENV = {"NO_COLOR": "1", "TERM": "xterm", "LC_ALL": "C.UTF-8"}


class Terminal:
    """What is on it, and keys for it."""

    def __init__(self, rows, columns):
        self.main, self.side = open_terminal()
        self.before = termios.tcgetattr(self.side)
        fcntl.ioctl(self.side, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.text, self.decoder = "", codecs.getincrementaldecoder("utf-8")()
        self.streams = dict.fromkeys(("stdin", "stdout", "stderr"), self.side)

    def read(self):
        if select.select([self.main], [], [], 0.05)[0]:
            self.text += self.decoder.decode(os.read(self.main, 65536))
        return self.text

    def wait_for(self, what):
        """Until text matches that came since the last wait."""
        found = wait_for(lambda: re.search(what, self.read(), re.S), what)
        self.text = self.text[found.end() :]
        return found

    def press(self, keys):
        os.write(self.main, keys.encode())

    def close(self):
        os.close(self.side)
        os.close(self.main)


class Screen(Terminal):
    """`krait top` in a terminal."""

    def __init__(self, krait, *words, rows=20, columns=100):
        super().__init__(rows, columns)
        words = [krait, "top", "--interval", "200ms", *map(str, words)]
        self.run = subprocess.Popen(words, **self.streams, env={**os.environ, **ENV})

    def frames(self, keys):
        """The pictures up to the next one above a line of keys that matches: their lines."""
        text = self.wait_for(rf"^.*?\x1b\[H(?:(?!\x1b\[H).)*\x1b\[J\x1b\[\d+;1H(?=[^\x1b]*{keys})")[0]
        found = re.findall(r"\x1b\[H((?:(?!\x1b\[H).)*)\x1b\[J", text, re.S)
        return [re.sub(r"\x1b\[[\d;]*[mK]|\r", "", shown).rstrip("\n").split("\n") for shown in found]

    def frame(self, keys):
        return self.frames(keys)[-1]

    def end(self):
        self.run.wait(timeout=30)
        while select.select([self.main], [], [], 0.2)[0]:
            self.read()
        now = termios.tcgetattr(self.side)
        self.close()
        assert now == self.before, "the terminal is not as it was"
        return self.run.returncode


class Shell(Terminal):
    """A shell with job control in a terminal of its own."""

    def __init__(self, rows=20, columns=100):
        super().__init__(rows, columns)
        env = {**os.environ, **ENV, "PS1": "ready: "}
        control = lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # noqa: E731
        self.run = subprocess.Popen(["sh", "-i"], **self.streams, env=env, start_new_session=True, preexec_fn=control)

    def __enter__(self):
        self.wait_for("ready: ")
        return self

    def __exit__(self, *error):
        self.run.kill() if error[0] else self.press("exit\n")
        self.run.wait(timeout=30)
        self.close()
