# SPDX-License-Identifier: Apache-2.0
"""A process that another tracer than krait has."""

import contextlib
import subprocess
import sys

import pytest

SEIZE = "import ctypes, sys, time; assert not ctypes.CDLL(None).ptrace(0x4206, int(sys.argv[1]), 0, 0); print('', flush=True); time.sleep(60)"


@contextlib.contextmanager
def by_another(pid):
    """A second tracer is refused meanwhile: ptrace(2)."""
    tracer = subprocess.Popen([sys.executable, "-c", SEIZE, str(pid)], stdout=subprocess.PIPE)
    try:
        if not tracer.stdout.readline():
            pytest.skip("no right to trace")
        yield
    finally:
        tracer.kill()
        tracer.wait()
        tracer.stdout.close()
