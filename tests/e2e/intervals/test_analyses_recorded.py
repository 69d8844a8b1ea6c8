# SPDX-License-Identifier: Apache-2.0
"""The built-in analyses on what krait records of the kernel: they ask for the names that it writes."""

import re

import pytest

from conftest import verb_json
from intervals_made import BUILT_IN
from kernel_recorded import kernel, tracefs  # noqa: F401  (kernel, tracefs: fixtures)

pytestmark = pytest.mark.usefixtures("alone")

DOES_ALL = """
import os, socket, threading, time
lock = threading.Lock()
lock.acquire()
waiter = threading.Thread(target=lock.acquire)
waiter.start()
time.sleep(0.02)
lock.release()
waiter.join()
with open("disk", "wb") as file:
    file.write(b"x" * 5000)
    file.flush()
    os.fsync(file.fileno())
server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname())
other, _ = server.accept()
client.sendall(b"y" * 7001)
got = 0
while got < 7001:
    got += len(other.recv(8000))
print(other.fileno())
"""
SURE = {"cpu", "futex", "softirq", "io", "bytes", "sent", "received", "syscall", "wakeup"}  # also in a virtual machine
IF_THERE = {"kHz": "power_cpu_frequency", "request": "block_rq_issue", "sectors": "block_rq_issue", "interrupt": "irq_handler_entry"}


def test_each_finds_the_events_or_says_that_there_are_none(krait, kernel, events, run):  # noqa: F811
    recorded = kernel(DOES_ALL)
    there = {event["event"] for event in events(recorded.path, " || ".join(f"name == {name}" for name in set(IF_THERE.values())))}
    found, missing = [], set()
    for analysis in BUILT_IN:
        tables = verb_json(krait, "intervals", recorded.path, "-f", analysis)
        found += [row for row in tables.get("rows", []) + tables.get("signals", []) if row.get("intervals") or row.get("values")]
        missing |= set(re.findall(r"no event matches '(\w+)'", run("intervals", recorded.path, "-f", analysis).stderr))
    expected = SURE | {name for name, event in IF_THERE.items() if event in there}
    assert {row["name"] for row in found} == expected
    assert missing == (SURE | set(IF_THERE)) - expected
    totals = {(row["name"], row["key"]): row["total"] for row in found if row.get("values")}
    assert totals["bytes", f"{recorded.main.pid} {recorded.stdout.strip()}"] == 7001
    assert totals["sent", "lo"] > 7001 and totals["received", "lo"] > 7001
