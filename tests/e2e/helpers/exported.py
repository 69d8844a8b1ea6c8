# SPDX-License-Identifier: Apache-2.0
"""The formats of `krait export`, and files of them."""

import random
import re
import subprocess

import pytest

from export_readers import Stacks

FORMATS = ["folded", "chrome", "perfetto", "speedscope", "callgrind", "pprof"]
STREAMED = ["chrome", "perfetto", "speedscope"]
SUFFIX = {"speedscope": ".speedscope.json", "pprof": ".pb.gz", "chrome": ".json", "perfetto": ".pftrace"}
EPOCH_NS = 1767225600 * 10**9


@pytest.fixture
def export(krait, tmp_path):
    """export(folder, format, *options) gives the file's path."""

    def to(folder, fmt, *options):
        prefix = "callgrind.out" if fmt == "callgrind" else "trace"  # speedscope goes by names
        path = tmp_path / (prefix + SUFFIX.get(fmt, ".txt"))
        done = subprocess.run([krait, "export", folder, "--to", fmt, "-o", path, *options], capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stdout) == (0, "")
        said = rf"(krait export: warning: (unfinished: .*|no calls were recorded)\n)*krait export: wrote {path} \([\d.]+ \w+\); open it with .*\n"
        assert re.fullmatch(said, done.stderr)
        return path

    return to


class Program:
    """Writes a script for synth and sums up what it says, without any code of krait's."""

    def __init__(self):
        self.lines, self.stacks, self.names = [], Stacks(), {}
        self.thread_id = self.clock = None

    def process(self, pid, name):
        self.lines.append(f"process {pid} {name}")
        self.pid, self.process_name = pid, name
        for code, (kind, module, qualname, file, line) in self.codes.items():
            self.lines.append(f"code {code} {kind} {module} {qualname} {file} {line}")

    def thread(self, tid, name, clock=0):
        self.lines.append(f"thread {tid} {name}")
        self.thread_id, self.clock = (self.process_name, self.pid, name, tid), clock

    def begin(self, op, code, step):
        self.clock += step
        self.lines.append(f"{self.clock} {op} {code}")
        _, module, qualname, _, _ = self.codes[code]
        self.stacks.begin(self.thread_id, self.clock, f"{module}.{qualname}", op in ("call", "ccall"))

    def end(self, op, step):
        self.clock += step
        self.lines.append(f"{self.clock} {op}")
        self.stacks.end(self.thread_id, self.clock)

    def script(self):
        return "\n".join(self.lines) + "\n"

    def sums(self):
        return self.stacks.done()


def random_program(seed, events=3000, shortest=0):
    """Two processes of two threads; recursion, also mutual; generators; calls that end by exceptions and calls that
    take no time."""
    rng = random.Random(seed)
    program = Program()
    program.codes = {i: ("python", f"app.part{i % 3}", f"Class.function{i}", f"/src/part{i % 3}.py", 10 * i) for i in range(1, 8)}
    program.codes |= {i: ("c", "builtins", f"sorted{i}", "-", 0) for i in range(8, 11)}
    for pid in 100, 200:
        program.process(pid, "python3")
        for tid in pid, pid + 1:
            program.thread(tid, f"thread-{tid}", clock=rng.randrange(10**6))
            random_thread(program, rng, events, shortest)
    return program


def random_thread(program, rng, events, shortest):
    kinds = []

    def step():
        return max(shortest, rng.choice([0, 0, 1, 7, 100, 12345, rng.randrange(10**6)]))

    def end(kind):
        ops = {"c": ["creturn", "creturn", "craise"], "python": ["return", "return", "unwind", "yield"]}
        program.end(rng.choice(ops[kind]), step())

    for _ in range(events):
        if kinds and (len(kinds) > 12 or rng.random() < 0.5):
            end(kinds.pop())
            continue
        code = rng.choice(list(program.codes))
        kind = program.codes[code][0]
        program.begin("ccall" if kind == "c" else rng.choice(["call"] * 4 + ["resume", "throw"]), code, step())
        kinds.append(kind)
    while kinds:
        end(kinds.pop())


@pytest.fixture(params=[1, 2, pytest.param(3, marks=pytest.mark.long)])
def program(request):
    return random_program(request.param)


def export_to(krait, folder, fmt, path, **options):
    return subprocess.run([krait, "export", folder, "--to", fmt, "-o", path], stderr=subprocess.PIPE, text=True, timeout=120, **options)
