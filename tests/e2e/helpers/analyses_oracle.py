# SPDX-License-Identifier: Apache-2.0
"""What the built-in analyses find in a kernel trace, computed from babeltrace2's text: {analysis: {name: {key: durations
or values}}}. Durations are nanoseconds."""

import re
import subprocess
from collections import defaultdict

LINE = re.compile(r"^\[(\d+)\.(\d+)\](?: \([^)]*\))? (?:(\S+) )?([\w:]+): (.*)$")
FIELD = re.compile(r'(\w+) = ("(?:[^"\\]|\\.)*"|-?\w+)')
FUTEX_WAITS = {0, 6, 9, 11}
IO = re.compile(r"syscall_(?:entry|exit)_(read|readv|pread64|preadv\d?|write|writev|pwrite64|pwritev\d?|recv\w*|send\w*)$")

COUNTS_MESSAGES = ("recvmmsg", "sendmmsg")  # what they return


def value_of(text):
    if text.startswith('"'):
        return text[1:-1]
    number = text.lstrip("-")
    return text if not number[0].isdigit() else int(text, 16) if number[:2].lower() == "0x" else int(text, 8) if number[0] == "0" else int(text)


def read(trace):
    """Its events: (ns, name, fields, cpu, the thread that runs there or None)."""
    out = subprocess.run(["babeltrace2", "--clock-seconds", "--no-delta", trace], capture_output=True, text=True, check=True).stdout
    runs = {}
    for line in out.splitlines():
        match = LINE.match(line)
        if not match:
            continue
        fields = {name: value_of(text) for name, text in FIELD.findall(match[5])}
        cpu, name = fields["cpu_id"], match[4]
        yield int(match[1]) * 10**9 + int(match[2]), name, fields, cpu, runs.get(cpu)
        if name == "sched_switch":
            runs[cpu] = fields["next_tid"]


class Pairs:
    """The last begin of a place and its end; by a key."""

    def __init__(self):
        self.open, self.found = {}, defaultdict(list)

    def begin(self, place, key, ns):
        self.open[place] = (key, ns)

    def end(self, place, ns):
        if place in self.open:
            key, begin = self.open.pop(place)
            self.found[key].append(ns - begin)


def analyse(trace):
    of = defaultdict(Pairs)
    values = defaultdict(lambda: defaultdict(list))
    cpus, fds = {}, {}
    for ns, name, f, cpu, tid in read(trace):
        if name.startswith("syscall_entry_") and tid is not None:
            of["syscall"].begin(tid, name[len("syscall_entry_") :], ns)
            if name == "syscall_entry_futex" and f["op"] & 127 in FUTEX_WAITS:
                of["futex"].begin(tid, str(f["uaddr"]), ns)
            if IO.match(name) and f.get("fd", -1) >= 0:
                of["io"].begin(tid, f"{tid} {f['fd']}", ns)
                if not name.endswith(COUNTS_MESSAGES):
                    fds[tid] = f["fd"]
        elif name.startswith("syscall_exit_") and tid is not None:
            of["syscall"].end(tid, ns)
            if name == "syscall_exit_futex":
                of["futex"].end(tid, ns)
            if IO.match(name):
                of["io"].end(tid, ns)
                if f["ret"] >= 0 and tid in fds and not name.endswith(COUNTS_MESSAGES):
                    values["bytes"][f"{tid} {fds.pop(tid)}"].append(f["ret"])
        elif name == "irq_handler_entry":
            of["interrupt"].begin((cpu, f["irq"]), f"{f['irq']} {f['name']}", ns)
        elif name == "irq_handler_exit":
            of["interrupt"].end((cpu, f["irq"]), ns)
        elif name in ("irq_softirq_entry", "softirq_entry"):
            of["softirq"].begin((cpu, f["vec"]), str(f["vec"]), ns)
        elif name in ("irq_softirq_exit", "softirq_exit"):
            of["softirq"].end((cpu, f["vec"]), ns)
        elif name in ("sched_wakeup", "sched_wakeup_new"):
            of["wakeup"].begin(f["tid"], f["comm"], ns)
        elif name == "sched_switch":
            of["wakeup"].end(f["next_tid"], ns)
            if cpu in cpus:
                state, since = cpus[cpu]
                of["cpu"].found[f"CPU {cpu} {state}"].append(ns - since)
            cpus[cpu] = ("busy" if f["next_tid"] else "idle", ns)
        elif name == "block_rq_issue":
            of["request"].begin((f["dev"], f["sector"]), str(f["dev"]), ns)
            values["sectors"][str(f["dev"])].append(f["nr_sector"])
        elif name == "block_rq_complete":
            of["request"].end((f["dev"], f["sector"]), ns)
        elif name in ("power_cpu_frequency", "cpu_frequency"):
            values["kHz"][str(f["cpu_id"])].append(f["state"])
        elif name == "net_dev_xmit":
            values["sent"][f["name"]].append(f["len"])
        elif name in ("net_if_receive_skb", "netif_receive_skb"):
            values["received"][f["name"]].append(f["len"])
    return {name: dict(pairs.found) for name, pairs in of.items()}, {name: dict(by_key) for name, by_key in values.items()}
