# SPDX-License-Identifier: Apache-2.0
"""krait view of a recording that goes on."""

import json
import signal
import time
import urllib.request

import pytest

from served import LINK

PROGRAM = """
import pathlib, time
def step(): time.sleep(0.01)
while not pathlib.Path("end").exists(): step()
print("said by the program")
"""


def ask_trace(url):
    with urllib.request.urlopen(f"{url}api/trace", timeout=30) as answer:
        return json.loads(answer.read())


def wait_until(condition, of=lambda: None, seconds=60):
    until = time.monotonic() + seconds
    while not condition(value := of()):
        assert time.monotonic() < until, value
        time.sleep(0.05)
    return value


@pytest.fixture
def watched(record, any_python, monkeypatch):
    """A recording with --view that goes on, and its page's link. With a screen a browser would open: without one the link is enough."""
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    process, trace = record.start(any_python, record.script(PROGRAM), options=["--view"])
    url = process.stderr.readline()
    assert LINK.fullmatch(url), url + process.stderr.read()
    yield process, trace, url.strip()
    (trace.parent / "end").touch()
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
