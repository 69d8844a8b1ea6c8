# SPDX-License-Identifier: Apache-2.0
"""How much memory a command takes."""

import subprocess
import sys

SCRIPT = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=sys.stderr)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def peak_kib(*command):
    """The most that it had at once, of files that it mapped too. A child counts what its parent had when it began: so it is
    started by a small one."""
    run = [sys.executable, "-I", "-S", "-c", SCRIPT, *map(str, command)]
    return int(subprocess.run(run, capture_output=True, text=True, check=True, timeout=120).stdout)
