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
