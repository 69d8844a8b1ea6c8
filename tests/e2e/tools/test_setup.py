# SPDX-License-Identifier: Apache-2.0
"""tools/setup.sh on machines that lack something it cannot install."""

import os
import subprocess

import pytest

from recording import ROOT


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_a_chroot_without_proc_is_told():
    hidden = "mount -t tmpfs none /proc && exec bash tools/setup.sh build"
    run = subprocess.run(["unshare", "-m", "sh", "-c", hidden], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stderr) == (1, "setup: /proc is not mounted; run: mount -t proc proc /proc\n")
