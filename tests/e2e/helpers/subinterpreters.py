# SPDX-License-Identifier: Apache-2.0
"""Programs that run code in several interpreters."""

# run(interpreters.create(), code) on every version
MODULE = """
try:
    import _interpreters as interpreters
    run = interpreters.exec
except ImportError:
    import _xxsubinterpreters as interpreters
    run = interpreters.run_string
"""

# The first thread calls first(), which runs second() in another interpreter, and that one third() in one more; some others exist.
_THIRD = "import time\ndef third(): time.sleep(600)\nthird()"
_SECOND = f"{MODULE}\ndef second(): run(interpreters.create(), {_THIRD!r})\nsecond()"
NESTED = f"""{MODULE}
import os
idle = [interpreters.create() for _ in range(3)]
def first(): run(interpreters.create(), {_SECOND!r})
print(os.getpid(), flush=True)
first()
"""
# Each interpreter runs code that is compiled as a module.
NESTED_STACK = ["third", "<module>", "second", "<module>", "first", "<module>"]

# Threads that run interpreters which the first thread has made, or one that has ended; WHAT is what they do. Between 3.9 and 3.11 an interpreter's thread
# does not give up the GIL to another one's by itself, so the first thread may not run any more.
THREADS = f"""{MODULE}
import os, threading
def outer(id, k): run(id, f"import time\\ndef inside{{k}}():\\n  while True: WHAT\\ninside{{k}}()")
ids = [interpreters.create()]
maker = threading.Thread(target=lambda: ids.extend([interpreters.create(), interpreters.create()]))
maker.start()
maker.join()
print(os.getpid(), flush=True)
for k in range(3): threading.Thread(target=outer, args=(ids[k], k), daemon=True).start()
def waits(): threading.Event().wait()
waits()
"""

# The first thread runs inside() in another interpreter, with the GIL; TIMES says how often.
ONE = f"""{MODULE}
import os
def outer(): run(interpreters.create(), '''
import os
print(os.getpid(), flush=True)
def work():
    n = 1000
    while n: n -= 1
def inside():
    for i in range(TIMES): work()
inside()
''')
outer()
"""
FOREVER = ONE.replace("TIMES", "1 << 60")

# A task that computes, and then runs another interpreter, which from 3.13 on has a loop and a task of its own (3.12 may die of that).
_TASK_INSIDE = '''
import asyncio
def spin(n):
    while n: n -= 1
async def inner(): spin(COUNT)
async def main(): await asyncio.create_task(inner(), name="the inner")
if OWN_LOOP: asyncio.run(main())
spin(COUNT)
'''
TASK_ABOVE = f"""{MODULE}{_TASK_INSIDE.replace("OWN_LOOP", "0").replace("spin(COUNT)", "pass")}
import os, sys
COUNT = 3000000
async def outer():
    print(os.getpid(), flush=True)
    spin(COUNT)
    id = interpreters.create()
    run(id, {_TASK_INSIDE!r}.replace("COUNT", str(COUNT)).replace("OWN_LOOP", str(sys.version_info >= (3, 13))))
    interpreters.destroy(id)
async def main(): await asyncio.create_task(outer(), name="the outer")
asyncio.run(main())
"""

# Three threads in which interpreters come and go. M_MMAP_THRESHOLD (-3): their memory is gone at once.
COME_AND_GO = f"""{MODULE}
import ctypes, os, threading
ctypes.CDLL(None).mallopt(-3, 65536)
print(os.getpid(), flush=True)
def makes():
    while True: interpreters.destroy(interpreters.create())
for _ in range(2): threading.Thread(target=makes, daemon=True).start()
makes()
"""

# Threads that make interpreters, run functions of their own number in them, one of them through a further interpreter, and end them.
LOOP = f"""{MODULE}
import os, threading
INSIDE = '''
def leaf_K(): return sum(range(2000))
def inside_K(n): return inside_K(n - 1) if n else leaf_K()
for i in range(50): inside_K(3)
'''
THROUGH = '''{MODULE}
def middle_K():
    id = interpreters.create()
    run(id, CODE)
    interpreters.destroy(id)
middle_K()
'''
OUTER = '''
def outer_K():
    id = interpreters.create()
    for i in range(3): run(id, CODE)
    interpreters.destroy(id)
def thread_K():
    while True: outer_K()
'''
def thread(k):
    code = INSIDE.replace("K", str(k))
    code = THROUGH.replace("K", str(k)).replace("CODE", repr(code)) if k == 2 else code
    space = dict(globals(), CODE=code)
    exec(OUTER.replace("_K", f"_{{k}}"), space)
    return space[f"thread_{{k}}"]
print(os.getpid(), flush=True)
for k in range(1, 4): threading.Thread(target=thread(k), daemon=True).start()
thread(0)()
"""


def loop_never_was(stack):
    """Whether no thread of LOOP has this stack, its functions innermost first."""
    called = [name.split("_") for name in reversed(stack) if name[-2:-1] == "_" and name[-1] in "0123"]
    order = ["thread", "outer", "middle", "inside", "leaf"]
    names = list(dict.fromkeys(name for name, _ in called))
    path = [name for name in order if name != "middle" or "2" in {k for _, k in called}]
    return len({k for _, k in called}) > 1 or names != path[: len(names)]
