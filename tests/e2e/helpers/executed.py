# SPDX-License-Identifier: Apache-2.0
"""A process that executes one Python after the other."""

import json
import subprocess

import pytest

# program2() runs, then program1() in the next program, then program0() in the last, each until krait has seen it and a bit longer.
CHAIN = """
import glob, json, os, sys, time
others = json.loads(sys.argv[1])
def spin():
    limit = time.time() + 30
    while not ({seen}) and time.time() < limit: pass
    end = time.time() + 0.3
    while time.time() < end: pass
exec(f"def program{len(others)}(): spin()\\nprogram{len(others)}()")
if others: os.execv(others[0][0], [*others[0], __file__, json.dumps(others[1:]).ljust(1000)])
"""
# Prints its number, waits for SIGUSR1, and executes the words that it was given.
BEGINS = """
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
print(os.getpid(), flush=True)
signal.sigwait([signal.SIGUSR1])
os.execv(sys.argv[1], sys.argv[1:])
"""
SLEEP = ["/bin/sh", "-c", "exec sleep 60"]


def chain(folder, seen, first, *others):
    """The words of a process that executes programs one after the other: words that run Python, with a script and its argument to
    follow, or any program. `seen`: the expression in each that tells whether krait has seen it, where len(others) are to follow."""
    (folder / "chain.py").write_text(CHAIN.replace("{seen}", seen))
    return [*first, str(folder / "chain.py"), json.dumps(others).ljust(1000)]


def several(pythons):
    """The newest of them; the oldest, after a shell; a static one; the newest again, twice."""
    newest, oldest = max(pythons, key=lambda p: p.number).exe, min(pythons, key=lambda p: p.number).exe
    static = next((p.exe for p in pythons if p.kind == "static"), oldest)
    return [newest], ["/bin/sh", "-c", 'sleep 0.1; exec "$0" "$@"', oldest], [static], [newest], [newest]


def at_fixed_addresses():
    """The words before a command whose programs all lie at the same addresses."""
    words = ["/usr/bin/setarch", "-R"]
    if subprocess.run([*words, "true"], capture_output=True).returncode:
        pytest.skip("the kernel chooses addresses at random here")
    return words
