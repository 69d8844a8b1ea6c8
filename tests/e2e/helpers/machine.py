# SPDX-License-Identifier: Apache-2.0
"""The virtual machines of tools/vm: Debian sid's kernel, and Debian for aarch64."""

import os
import subprocess

import pytest

from recording import ROOT

VM = ROOT / "tools" / "vm"


def need_vm(arch="x86_64"):
    why = subprocess.run([VM, "--arch", arch, "why"], capture_output=True, text=True).stdout.strip()
    if why:
        pytest.skip(f"no virtual machine: {why}")


def run_in_vm(folder, commands, *words, arch="x86_64"):
    """Runs the shell's commands in it as root. What they write into the folder stays. Skips where there is no such machine."""
    need_vm(arch)
    command = [VM, "--arch", arch, "run", folder, "bash", "-c", commands, "bash", *words]
    run = subprocess.run(command, capture_output=True, text=True, env={"KRAIT_VM_SECONDS": "3000", **os.environ})
    assert run.returncode == 0, run.stderr + (folder / "console").read_text(errors="replace")[-1000:]


def build_for_vm(folder, arch):
    """krait and its unit tests in the folder, for the machine's processor."""
    need_vm(arch)
    run = subprocess.run([VM, "--arch", arch, "build", folder], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-3000:]
