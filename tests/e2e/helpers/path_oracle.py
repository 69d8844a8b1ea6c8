# SPDX-License-Identifier: Apache-2.0
"""What `krait path` has to find in a kernel trace, worked out from the trace's text alone: all that happened is kept,
who ended each wait beside it, and the path is followed through that by recursion. docs/path.md has the rules."""

import sys
from bisect import bisect_right
from dataclasses import dataclass

from kernel_oracle import Oracle

DEVICES = {"blocked_timer": "timer", "blocked_disk": "disk", "blocked_network": "network"}
IPIS = {f"x86_irq_vectors_{what}_entry" for what in ("reschedule", "call_function", "call_function_single", "irq_work")}
RECEIVED = ("net_if_receive_skb", "netif_receive_skb")


READY = ("woken", "preempted", "throttled")
NOT_OF_A_CPU = ("sched_process_fork", "sched_process_free", "lttng_statedump_process_state", "krait_dumped_wait", "lttng_statedump_end")


@dataclass
class Segment:
    begin: int
    end: int
    kind: str
    tid: int
    call: str
    by: int
    depth: int
    device: str = None


class PathOracle(Oracle):
    def __init__(self, text, gil=None):
        """`gil`: a GilOracle of the program's part."""
        self.gil = gil
        self.shares = {}  # (thread, number of its state): [(from, to, the thread that had the GIL, or None)]
        self.followed = set()
        self.causes = {}  # (thread, number of its state): what ended it: a thread, (sent at, a thread), or a word
        self.calls_of = {}  # (thread, number of its state): the system call it was in
        self.behind = {}  # (thread, number of its state): [(from, to, who had the CPU)]
        self.packets, self.addresses = {}, {}  # by address: (sent at, by whom)
        self.devices = {}  # (thread, number of its state): the number of the disk or the interface that ended it
        self.disks = {}  # by number: its name
        super().__init__(text)
        for t in self.lives:
            if t.state in READY and t.ready_on in self.cpus:
                self.behind[t, len(t.history) - 1] = self.had(self.cpus[t.ready_on], t, t.history[-1][0])
        self.devices = {key: self.disks.get(d, f"{d >> 20}:{d & 0xFFFFF}") if isinstance(d, int) else d for key, d in self.devices.items()}
        sys.setrecursionlimit(100_000)

    # -- what ends a wait --

    def waker_on(self, cpu):
        return cpu.thread if cpu.thread and cpu.thread.runs and not cpu.irqs and not cpu.softirq else None

    def device_on(self, cpu, t):
        context = cpu.irqs[-1] if cpu.irqs else cpu.softirq
        if context in DEVICES:
            return DEVICES[context]
        if t.history[-2][1] in DEVICES:
            return DEVICES[t.history[-2][1]]
        return "ipi" if cpu.irqs and cpu.ipi else "interrupt" if context else "blocked"

    def wake(self, cpu, f):
        self.look(cpu, f)
        t = self.living(f["tid"])
        key, was, waker = (t, len(t.history) - 1) if t else None, t and t.state, self.waker_on(cpu)
        woken = super().wake(cpu, f)
        if was == "blocked_other":
            packet = getattr(cpu, "packet", None) if cpu.softirq and not cpu.irqs else None
            self.causes[key] = waker or packet or self.device_on(cpu, t)
            told = (cpu.irqs[-1] if cpu.irqs else cpu.softirq) in DEVICES
            if not waker and told:
                self.devices[key] = cpu.irq_device if cpu.irqs else cpu.soft_device
            if self.gil and isinstance(self.causes[key], str):
                self.shares[key] = [(*span, self.threads.get(who)) for *span, who in self.gil.stretches(t.tid, t.history[-2][0], self.now)]
        return woken

    def on_sched_process_fork(self, cpu, f, name):
        super().on_sched_process_fork(cpu, f, name)
        parent, child = self.thread(f["parent_tid"]), self.thread(f["child_tid"])
        if parent and parent.runs:
            self.causes[child, 0] = parent

    def on_sched_wakeup_new(self, cpu, f, name):
        self.look(cpu, f)
        waker, before = self.waker_on(cpu), self.threads.get(f["tid"])
        super().on_sched_wakeup_new(cpu, f, name)
        if waker and self.threads[f["tid"]] is not before:
            self.causes[self.threads[f["tid"]], 0] = waker

    def on_sched_process_exec(self, cpu, f, name):
        t, before = self.thread(f["tid"]), self.thread(f.get("old_tid"))
        if t and before and t is not before and cpu.thread is not t and before.runs:
            self.causes[t, len(t.history) - 1] = before
        super().on_sched_process_exec(cpu, f, name)

    def on_irq_handler_entry(self, cpu, f, name):
        cpu.ipi = name in IPIS
        cpu.irq_device = None if not cpu.irqs else cpu.irq_device
        super().on_irq_handler_entry(cpu, f, name)

    # -- who had the CPU --

    def on_sched_switch(self, cpu, f, name):
        before = self.thread(f["prev_tid"])
        super().on_sched_switch(cpu, f, name)
        if before and before.state in ("preempted", "throttled"):
            before.ready_on = f["cpu_id"]
        elif before and before.state.startswith("blocked"):
            self.calls_of[before, len(before.history) - 1] = before.call

    def handle(self, name, f):
        """Of each thread that was ready for a CPU, and is not any more: who had that."""
        numbers = [f.get(key) for key in ("prev_tid", "next_tid", "tid", "context_tid", "child_tid", "old_tid")]
        runs = self.cpus[f["cpu_id"]].thread if f["cpu_id"] in self.cpus else None
        known = {t for t in [runs, *map(self.threads.get, numbers)] if t}
        ready = [(t, len(t.history) - 1, t.ready_on) for t in known if t.state in READY]
        super().handle(name, f)
        here = None if name in NOT_OF_A_CPU else self.cpus.get(f["cpu_id"])
        for t, i, on in ready:
            cpu = self.cpus.get(on, here)
            if len(t.history) > i + 1 and cpu:
                self.behind[t, i] = self.had(cpu, t, t.history[i][0])

    def had(self, cpu, t, since):
        """Who had a CPU from then until now, but for t."""
        spans, end = [], self.now
        for begin, who in reversed(cpu.runs):
            begin = max(begin, since)
            if who and who is not t and begin < end:
                spans.append((begin, end, who))
            end = min(end, begin)
            if end <= since:
                break
        return spans

    def longest(self, t, i, lo, hi):
        """The number of the thread that had the CPU for longest in a part of a state; 0: none."""
        sums = {}
        for begin, end, who in self.behind.get((t, i), []):
            if max(begin, lo) < min(end, hi):
                sums[who] = sums.get(who, 0) + min(end, hi) - max(begin, lo)
        return max(sums, key=lambda who: (sums[who], -self.lives.index(who))).tid if sums else 0

    # -- packets --

    def on_irq_softirq_entry(self, cpu, f, name):
        cpu.packet = cpu.soft_device = None
        super().on_irq_softirq_entry(cpu, f, name)

    def on_lttng_statedump_block_device(self, _cpu, f, _):
        if f["dev"] > 0 and f["diskname"]:
            self.disks[f["dev"]] = f["diskname"]

    def on_net_dev_queue(self, cpu, f, _):
        self.look(cpu, f)
        self.packets.pop(f["skbaddr"], None)
        waker = self.waker_on(cpu)
        packet = getattr(cpu, "packet", None) if cpu.softirq else None
        if not cpu.irqs and (packet or waker):
            self.packets[f["skbaddr"]] = packet or (self.now, waker)

    def on_does(self, cpu, f, name):
        super().on_does(cpu, f, name)
        device = f.get("name") if name in RECEIVED else f.get("dev") if name == "block_rq_complete" else None
        if cpu.irqs:
            cpu.irq_device = device or None
        elif cpu.softirq:
            cpu.soft_device = device or None
        if name in RECEIVED:
            cpu.packet = self.packets.pop(f.get("skbaddr"), None)

    # -- the path --

    def path(self, tid, lo=None, hi=None):
        """Segments of the path of the first thread of that number that is there in the range."""
        lo, hi = self.begin if lo is None else lo, self.end if hi is None else hi
        for t in self.lives:
            if t.tid == tid:
                if found := self.joined(self.cut(self.follow(t, lo, self.wait_end(t, hi), 0), hi)):
                    while found and found[0].kind == "unknown" and found[0].depth == 0:
                        found = found[1:]
                    return found
        return []

    def states(self, t, lo, hi):
        """(number, begin, end, state) of what a thread was in, within the range."""
        times = [ns for ns, _ in t.history]
        for i in range(max(bisect_right(times, lo) - 1, 0), len(times)):
            begin, end = max(times[i], lo), min(times[i + 1] if i + 1 < len(times) else self.end, hi)
            if times[i] >= hi:
                return
            if begin < end:
                yield i, begin, end, t.history[i][1]

    def wait_end(self, t, hi):
        """A wait is followed from its end, also where the range ends before."""
        for i, (begin, state) in enumerate(t.history):
            end = t.history[i + 1][0] if i + 1 < len(t.history) else self.end
            if begin < hi < end and state.startswith("blocked"):
                return end
        return hi

    def follow(self, t, lo, hi, depth):
        out = []
        for i, begin, end, state in self.states(t, lo, hi):
            out += self.segments_of(t, i, begin, end, state, depth)
        return out

    def segments_of(self, t, i, begin, end, state, depth):
        def segment(kind, since=begin, **more):
            return Segment(since, end, kind, t.tid, **{"call": None, "by": 0, "depth": depth, **more})

        if state in ("user", "system"):
            return [segment("running")]
        if state in ("interrupt", "woken", "preempted", "throttled"):
            kind = {"interrupt": "interrupted", "throttled": "preempted"}.get(state, state)
            return [segment(kind, by=self.longest(t, i, begin, end))]
        if state == "gone" and depth == 0:  # between them another thread executes under its number
            return [] if i in (0, len(t.history) - 1) else [segment("unknown")]
        parts = []
        for since, until, has in self.shares.get((t, i)) or [(begin, end, None)]:
            since, until = max(since, begin), min(until, end)
            if since < until:
                parts += self.wait_part((t, i), since, until, state, has, depth)
        return parts

    def wait_part(self, key, begin, end, state, has, depth):
        """A wait is what the thread did that ended it, or that had the GIL. One that waits for itself, as in a damaged
        trace, is not followed."""
        cause = self.causes.get(key)
        kind = "unknown" if state in ("unknown", "gone") else cause if isinstance(cause, str) else "blocked"
        leads_to = has or (None if isinstance(cause, str) else cause)
        if leads_to is None or key in self.followed:
            call, device = (None, None) if kind == "unknown" else (self.calls_of.get(key), self.devices.get(key))
            return [Segment(begin, end, kind, key[0].tid, call, 0, depth, device)]
        sent, other = leads_to if isinstance(leads_to, tuple) else (end, leads_to)
        self.followed.add(key)
        found = self.follow(other, begin, min(sent, end), depth + 1) if sent > begin else []
        self.followed.remove(key)
        way = Segment(max(begin, sent), end, "network", key[0].tid, self.calls_of.get(key), 0, depth, self.devices.get(key))
        return [*found, way] if sent < end else found

    @staticmethod
    def cut(segments, hi):
        segments = [s for s in segments if s.begin < hi]
        if segments:
            segments[-1].end = min(segments[-1].end, hi)
        return segments

    @staticmethod
    def joined(segments):
        out = []
        for s in segments:
            if out and out[-1].kind == s.kind == "running" and (out[-1].tid, out[-1].depth) == (s.tid, s.depth):
                out[-1].end = s.end
            else:
                out.append(s)
        return out
