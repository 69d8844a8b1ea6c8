# SPDX-License-Identifier: Apache-2.0
"""What krait dump prints, as JSON."""

import json
import subprocess

import pytest


@pytest.fixture
def dumps(krait):
    """dumps(pid, *options): what `krait dump --json` prints, a dict for each process and dump."""

    def read(*words):
        run = subprocess.run([krait, "dump", "--json", *map(str, words)], capture_output=True, text=True, timeout=120)
        assert run.returncode == 0 and not run.stderr, run.stderr
        return [json.loads(line) for line in run.stdout.splitlines()]

    return read
