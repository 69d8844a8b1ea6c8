# SPDX-License-Identifier: Apache-2.0
"""The virtual machine of tools/vm, with Debian sid's kernel."""

import subprocess

import pytest

from recording import ROOT

VM = ROOT / "tools" / "vm"


def run_in_vm(folder, commands, *words):
    """Runs the shell's commands in it as root. What they write into the folder stays. Skips where there is no such machine."""
    why = subprocess.run([VM, "why"], capture_output=True, text=True).stdout.strip()
    if why:
        pytest.skip(f"no virtual machine: {why}")
    run = subprocess.run([VM, "run", folder, "sh", "-c", commands, "sh", *words], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr + (folder / "console").read_text(errors="replace")[-1000:]
