# SPDX-License-Identifier: Apache-2.0
"""krait record --pid of a program whose greenlets compute: they share the thread's stack, and copy their parts of it away and back."""

import re

from attached import attach, functions, has  # noqa: F401  (attach: a fixture)
from running import wait_for

# The greenlet begins far down in the stack. When it is switched to again, what was above it has returned long since: there are words left
# over from malloc, and no return address leads from the greenlet's own frames to anything.
COMPUTES = """
import os
import greenlet
def inner(n): return n + 1
def below(n, call): return max([n], key=lambda n: below(n - 1, call)) if n else call() or 1
def beside(n, call): return sorted([n], key=lambda n: beside(n - 1, call)) if n else call() or 1
def allocate():
    for size in range(3000, 6000, 100): bytearray(size)
def compute():
    main.switch()
    n = 0
    while not os.path.exists("stop"):
        for i in range(1000): n = inner(n)
    return n % 1000 == 0
main, let = greenlet.getcurrent(), greenlet.greenlet(compute)
below(20, let.switch)
for n in range(30): beside(n, allocate)
print(os.getpid(), flush=True)
print("done", let.switch(), flush=True)
"""


def test_a_greenlet_that_computes_is_at_a_safe_place(programs, attach, run, any_python, venv, tmp_path):  # noqa: F811
    app = programs.start(venv(any_python, "greenlet"), COMPUTES)
    before, stops = has(app.pid), 0
    for _ in range(3):
        krait, folder = attach(app.pid, "-v", "--for", "100ms")
        said = krait.communicate(timeout=60)[1]
        assert krait.returncode == 0, said
        stops += sum(map(int, re.findall(r"threads were stopped ([0-9]+) times", said)))
        assert functions(run, folder)["inner"]["calls"] > 100
        wait_for(lambda: has(app.pid) == before, "the end of what the recording needed")
    assert stops < 30  # it may be in malloc or in the loader; without a way to unwind greenlets there were hundreds
    (tmp_path / "stop").touch()
    assert (app.process.stdout.read(), app.process.wait(60)) == ("done True\n", 0)
