# SPDX-License-Identifier: Apache-2.0
"""A recording session of LTTng's user-space tracer, for what is measured beside it."""

import contextlib
import shutil
import subprocess
import time

import lib

CLIENT = ["lttng", "--no-sessiond", "--quiet"]
NAME = "krait-bench"


def answers():
    return subprocess.run(["lttng", "--no-sessiond", "list"], capture_output=True).returncode == 0


@contextlib.contextmanager
def daemon():
    """A session daemon of our own, unless one runs already."""
    if not shutil.which("lttng-sessiond"):
        raise lib.Missing("lttng-tools is not installed")
    own = None
    if not answers():
        own = subprocess.Popen(["lttng-sessiond", "--no-kernel"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(100):
            if answers():
                break
            time.sleep(0.05)
    try:
        yield
    finally:
        if own:
            own.terminate()
            own.wait()


@contextlib.contextmanager
def session(folder, *commands):
    """A session that writes to this folder, with what these commands of the client enable; raises lib.Missing with LTTng's reason."""
    with daemon():
        try:
            subprocess.run([*CLIENT, "create", NAME, "--output", folder], check=True, capture_output=True)
            for verb, *words in commands:
                subprocess.run([*CLIENT, verb, "-s", NAME, *words], check=True, capture_output=True)
            subprocess.run([*CLIENT, "start", NAME], check=True, capture_output=True)
            yield
        except subprocess.CalledProcessError as e:
            raise lib.Missing("lttng: %s" % (e.stderr or b"").decode().strip())
        finally:
            subprocess.run([*CLIENT, "destroy", NAME], capture_output=True)
