# SPDX-License-Identifier: Apache-2.0
"""Python programs that run while krait looks at them."""

import socket
import subprocess
import textwrap
import time


# Part of a program: it has a child and a fork, which print a word each, and waits for both.
BEGINS_OTHERS = """
import os, subprocess, sys
subprocess.run([sys.executable, "-c", "print('child')"], check=True)
if not os.fork():
    print("fork", flush=True)
    os._exit(0)
os.wait()
"""


def wait_for(condition, what, limit=30):
    end = time.monotonic() + limit
    while not (found := condition()):
        assert time.monotonic() < end, f"{what} did not come"
        time.sleep(0.01)
    return found


def answer_of(path):
    """What a web server answers to GET / over the unix socket at a path, once it answers."""

    def once():
        try:
            with socket.socket(socket.AF_UNIX) as s:
                s.connect(str(path))
                s.sendall(b"GET / HTTP/1.0\r\nHost: x\r\n\r\n")
                return b"".join(iter(lambda: s.recv(4096), b""))
        except OSError:
            return b""

    return wait_for(once, "the answer", limit=60)


class Running:
    """A program that has printed its process id in its first line; `ready` holds the other words of that line."""

    def __init__(self, command, folder, **popen):
        self.process = subprocess.Popen([str(word) for word in command], cwd=folder, stdout=subprocess.PIPE, text=True, **popen)
        words = self.process.stdout.readline().split(maxsplit=1)
        assert words, "the program did not begin"
        self.pid, self.ready = int(words[0]), words[1] if words[1:] else ""

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Programs:
    """start(python, source, *args): a Running; `# line NAME` in the source names a line for line_of()."""

    def __init__(self, folder):
        self.folder, self.running, self.count = folder, [], 0

    def start(self, python, source, *args, before=(), **popen):
        self.count += 1
        path = self.folder / f"app{self.count}.py"
        path.write_text(textwrap.dedent(source))
        return self.add([*python.prefix, *before, python.exe, path, *args], **popen)

    def add(self, command, **popen):
        self.running.append(Running(command, self.folder, **popen))
        return self.running[-1]

    def end(self):
        for program in self.running:
            program.end()
