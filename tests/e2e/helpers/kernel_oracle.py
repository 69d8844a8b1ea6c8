# SPDX-License-Identifier: Apache-2.0
"""What `krait states` has to find in a kernel trace, worked out from the trace's text alone: slowly, with lists of
what happened to each thread, and nothing of krait's own code. docs/states.md has the rules."""

import math
import re
import shutil
import subprocess
from collections import defaultdict

from corpus import UTC

LINE = re.compile(r"^\[(\d+)\.(\d{9})\] (?:\S+ )?([\w:]+): (.*)$")
NUMBER = re.compile(r"\b(cpu_id|prev_tid|next_tid|tid|prev_state|child_tid|child_pid|parent_tid|pid|old_tid|ret|vec|status|type|skbaddr|state|dev|cmd|target_cpu|perf_cpu|perf_tid|prev_pid|next_pid|parent_pid|old_pid) = (0x[0-9A-Fa-f]+|-?\d+)")
TEXT = re.compile(r'\b(name|diskname|call_name) = "((?:\\.|[^"\\])*)"')
ON_FILES = set(
    "read pread64 readv preadv preadv2 write pwrite64 writev pwritev pwritev2 open openat openat2 close creat truncate ftruncate fallocate "
    "rename renameat renameat2 unlink unlinkat mkdir mkdirat rmdir link linkat symlink symlinkat copy_file_range sendfile sendfile64 splice "
    "getdents getdents64".split()
)
SOCKETS = "recv recvfrom recvmsg recvmmsg send sendto sendmsg sendmmsg accept accept4 connect"
TOLD = {
    "lock": "futex futex_time64 futex_wait futex_waitv semop semtimedop flock",
    "timer": "nanosleep clock_nanosleep clock_nanosleep_time64",
    "child": "wait4 waitid waitpid vfork",
    "disk": "fsync fdatasync sync syncfs sync_file_range msync io_getevents",
    "network": SOCKETS,
}
BY_CALL = {call: f"blocked_{what}" for what, calls in TOLD.items() for call in calls.split()}
MOST_CPUS = 8192
NEVER_END = ("rt_sigreturn", "sigreturn")
BY_VECTOR = {1: "blocked_timer", 2: "blocked_network", 3: "blocked_network", 4: "blocked_disk", 8: "blocked_timer"}
DOES = {
    "timer_hrtimer_expire_entry": "blocked_timer",
    "hrtimer_expire_entry": "blocked_timer",
    "timer_expire_entry": "blocked_timer",
    "block_rq_complete": "blocked_disk",
    "net_if_receive_skb": "blocked_network",
    "netif_receive_skb": "blocked_network",
}


def text_of(krait, folder):
    """babeltrace2's text, or krait's where there is none: test_cat.py compares both."""
    bt2 = shutil.which("babeltrace2")
    words = [bt2, "--clock-seconds", "--no-delta"] if bt2 else [krait, "cat", "--clock-seconds", "--no-delta"]
    return subprocess.run([*words, folder], capture_output=True, text=True, env=UTC, timeout=120, check=True).stdout


def events_of(text):
    for line in text.splitlines():
        match = LINE.match(line)
        assert match, line
        contexts, _, payload = ("}, {" + re.sub(r'"(?:\\.|[^"\\])*"', '""', match[4])).rpartition("}, {")
        fields = {key: int(value, 0) for key, value in NUMBER.findall(payload)}
        context = {key: int(value, 0) for key, value in NUMBER.findall(contexts)}
        fields.update(TEXT.findall(match[4]))
        fields["of_cpu"] = fields.get("cpu_id")
        fields.update({"cpu_id": context.get("cpu_id", fields.get("cpu_id")), "context_tid": context.get("tid")})
        name = match[3]
        if "perf_cpu" in fields:  # perf's own: the kernel's names
            name = name.partition(":")[2]
            told = {f"{key[:-3]}tid": fields.pop(key) for key in ("pid", "prev_pid", "next_pid", "child_pid", "parent_pid", "old_pid") if key in fields}
            fields.update(told, cpu_id=fields["perf_cpu"], context_tid=fields["perf_tid"])
        yield int(match[1]) * 10**9 + int(match[2]), name, fields


class Thread:
    def __init__(self, tid, begin, state):
        self.tid, self.history = tid, [(begin, state)]
        self.call = self.call_at = self.pid = None
        self.kernel = self.exiting = self.call_known = self.faults = self.stopped = self.deep = False
        self.cmd = self.ready_on = None
        self.ended = self.newborn = self.dumped = False
        self.waking = self.queued = None

    @property
    def state(self):
        return self.history[-1][1]

    @property
    def runs(self):
        return self.state in ("user", "system", "interrupt")

    def turn(self, ns, state):
        if state != self.state:
            self.history.append((ns, state))

    def was(self, state):
        """Only now it is known what the last state was."""
        self.history[-1] = (self.history[-1][0], state)

    def sums(self, end):
        sums = defaultdict(int)
        for (begin, state), (until, _) in zip(self.history, [*self.history[1:], (end, None)]):
            sums[state] += until - begin
        return dict(sums)


class Cpu:
    def __init__(self, begin):
        self.history = [(begin, "unknown")]
        self.runs = []  # (from when, who)
        self.thread, self.base, self.irqs, self.softirq = None, "unknown", [], None
        self.known = False  # who runs

    sums = Thread.sums


class Oracle:
    def __init__(self, text):
        self.threads, self.lives, self.cpus = {}, [], {}
        self.calls, self.errors = defaultdict(list), defaultdict(int)
        self.late = defaultdict(list)
        self.begin = None
        events = list(events_of(text))
        self.dumping, self.has_calls = False, any(re.match("(compat_)?syscall_", name) for _, name, _ in events)
        self.begin = self.now = events[0][0]
        self.find_who_runs(events)
        for self.now, name, fields in events:
            self.handle(name, fields)
        self.end = self.now
        for t in self.lives:
            if t.state == "blocked_other":
                t.was(self.told(t) or t.state)

    def find_who_runs(self, events):
        """Of each CPU the first event that tells says who runs there since before the trace."""
        first = {}
        for _, name, f in events:
            tid = f["context_tid"] if f["context_tid"] is not None else f.get("prev_tid") if name == "sched_switch" else None
            if tid is not None and tid >= 0:
                first.setdefault(f["cpu_id"], tid)
        for number, tid in sorted(first.items()):
            if number >= MOST_CPUS:
                continue
            cpu, t = self.cpus.setdefault(number, Cpu(self.begin)), self.thread(tid)
            if not (t and t.runs):
                cpu.thread, cpu.known, cpu.base = t, True, "user" if t else "idle"
                cpu.runs.append((self.now, t))
                self.settle(cpu)

    def thread(self, tid, state="unknown", new=False):
        if tid is None or tid <= 0:
            return None
        if new or tid not in self.threads:
            self.threads[tid] = Thread(tid, self.begin, state)
            self.lives.append(self.threads[tid])
        return self.threads[tid]

    def living(self, tid):
        """Who wakes, or gets a CPU: where that number's thread has ended, it is another of which no fork is told."""
        t = self.thread(tid)
        if t and t.ended and t.state == "gone":
            since = t.history[-1][0]
            t = self.thread(tid, "gone", new=True)
            t.turn(since, "unknown")
        return t

    def handle(self, name, f):
        cpu = self.cpus.get(f["cpu_id"])
        call = re.match(r"(?:compat_)?syscall_(entry|exit)_(.*)", name)
        if call:
            kind = f"on_call_{call[1]}"
        elif name in DOES:
            kind = "on_does"
        elif vector := re.match(r"x86_irq_vectors_.*_(entry|exit)$", name):
            kind = f"on_irq_handler_{vector[1]}"
        else:
            kind = "on_" + name
        method = getattr(self, kind, None)
        if not method:
            return
        touches = kind not in ("on_sched_process_fork", "on_sched_process_exit", "on_sched_process_free", "on_lttng_statedump_process_state", "on_krait_dumped_wait", "on_lttng_statedump_end")
        if touches and cpu is None:
            cpu = self.cpus[f["cpu_id"]] = Cpu(self.begin)
        method(cpu, f, call[2] if call else name)

    def settle(self, cpu):
        state = "interrupt" if cpu.irqs else "softirq" if cpu.softirq else cpu.base
        if cpu.history[-1][1] != state:
            cpu.history.append((self.now, state))
        t = cpu.thread
        if t:
            stopped = cpu.irqs or cpu.softirq
            t.turn(self.now, "interrupt" if stopped else "system" if t.call or t.kernel else "user")

    def look(self, cpu, f):
        """The context says who runs: where it is another, a switch was lost."""
        tid = f["context_tid"]
        if tid is None or tid < 0 or (cpu.known and tid == (cpu.thread.tid if cpu.thread else 0)):
            return
        if cpu.thread and cpu.thread.runs:
            cpu.thread.turn(self.now, "unknown")
        cpu.thread, cpu.known = self.thread(tid), True
        self.ran(cpu.thread)
        cpu.runs.append((self.now, cpu.thread))
        cpu.base = "idle" if not cpu.thread else "system" if cpu.thread.call or cpu.thread.kernel else "user"
        self.settle(cpu)

    def on_sched_switch(self, cpu, f, _):
        cpu.irqs, cpu.softirq = [], None
        before, after = self.thread(f["prev_tid"]), self.living(f["next_tid"])
        if cpu.thread and cpu.thread is not before and cpu.thread.runs:
            cpu.thread.turn(self.now, "unknown")
        if before:
            bits = f["prev_state"]
            end = 0 if bits & 0xF else 0xF0 if before.exiting else 0x30 if before.kernel else 0x70
            state = ("preempted" if f["next_tid"] else "throttled") if not bits & 0x2FF else "gone" if bits & end else "blocked_other"
            before.history.append((self.now, state))
            before.ended = state == "gone" and bool(bits & (end & ~0x40 if not before.exiting else end))
            before.waking = before.queued = None
            in_user_mode = before.call_known and before.call is None and not before.kernel and not before.exiting
            before.stopped, before.deep = bool(bits & 0xC), bool(bits & 2)
            before.faults = in_user_mode and bool(bits & 2)
        cpu.thread, cpu.base, cpu.known = after, "idle", True
        self.ran(after)
        cpu.runs.append((self.now, after))
        if after:
            if after.state == "woken" and after.queued is not None:
                self.late["wake-up to running"].append(self.now - after.queued)
            elif after.state in ("preempted", "throttled"):
                self.late["preempted to running"].append(self.now - after.history[-1][0])
            cpu.base = "system" if after.call or after.kernel else "user"
        self.settle(cpu)

    def told(self, t):
        """What a blocked thread waits for, where that is known before it is woken."""
        locks = "blocked_lock" if t.call in ("fcntl", "fcntl64") and t.cmd in (7, 14, 38) else None
        return "blocked_stopped" if t.stopped else "blocked_page_fault" if t.faults else locks or BY_CALL.get(t.call)

    def by_thread(self, t, waker):
        """What a blocked thread waits for that another one wakes."""
        if not waker or not t.call:
            return None
        if waker.call in SOCKETS.split():
            return "blocked_network"
        return "blocked_disk" if waker.kernel and t.deep and t.call in ON_FILES else None

    def wake(self, cpu, f):
        self.look(cpu, f)
        t = self.living(f["tid"])
        if t is None or t.runs:
            return None
        if t.state not in ("preempted", "throttled"):
            t.ready_on = f.get("target_cpu")
        if t.state == "blocked_other":
            context = cpu.irqs[-1] if cpu.irqs else cpu.softirq
            by = None if cpu.irqs or cpu.softirq else self.by_thread(t, cpu.thread)
            t.was(self.told(t) or context or by or "blocked_other")
            t.history.append((self.now, "woken"))
        elif t.state in ("unknown", "gone"):
            t.turn(self.now, "woken")
        return t if t.state == "woken" else None

    def on_sched_waking(self, cpu, f, _):
        t = self.wake(cpu, f)
        if t and t.waking is None:
            t.waking = self.now

    def on_sched_wakeup(self, cpu, f, _):
        t = self.wake(cpu, f)
        if t and t.queued is None:
            t.queued = self.now
            if t.waking is not None:
                self.late["waking to wake-up"].append(self.now - t.waking)

    def on_sched_wakeup_new(self, cpu, f, name):
        """Who made a thread wakes it first."""
        self.look(cpu, f)
        t = self.threads.get(f["tid"])
        if not t or not t.newborn:
            t = self.made(f["tid"], None if cpu.irqs or cpu.softirq else cpu.thread)
        t.newborn = False
        self.on_sched_wakeup(cpu, f, name)

    def made(self, tid, parent):
        if tid in self.threads:
            self.threads[tid].turn(self.now, "gone")
        child = self.thread(tid, "gone", new=True)
        child.turn(self.now, "woken")
        child.call, child.kernel = parent and parent.call, bool(parent) and parent.tid == 2
        return child

    def on_sched_process_fork(self, _cpu, f, _):
        child = self.made(f["child_tid"], self.thread(f["parent_tid"]))
        child.pid, child.newborn = f.get("child_pid"), True

    def on_sched_process_exec(self, cpu, f, _):
        """Another thread than the first takes over the first's number."""
        t, before = self.thread(f["tid"]), self.thread(f.get("old_tid"))
        if not t or not before or t is before:
            return
        t.ended, before.ended = False, True
        t.exiting, t.call, t.call_at, t.call_known = False, before.call, before.call_at, before.call_known
        before.call = before.call_at = None
        if cpu.thread is not t:
            t.turn(self.now, "woken")
        if before.state == "unknown":
            before.was("gone")
        before.turn(self.now, "gone")
        cpu.thread, cpu.base, cpu.known = t, "system" if t.call else "user", True
        cpu.runs.append((self.now, t))
        self.settle(cpu)

    def on_sched_process_exit(self, _cpu, f, _):
        self.thread(f["tid"]).exiting = True

    def on_sched_process_free(self, _cpu, f, _):
        t = self.thread(f["tid"])
        if t and not t.runs:
            t.turn(self.now, "gone")
            t.ended = True

    def on_lttng_statedump_process_state(self, _cpu, f, _):
        t = self.thread(f["tid"])
        if not t:
            return
        t.pid, t.kernel = f["pid"], f["type"] == 1
        if t.state == "unknown":
            t.turn(self.now, {2: "preempted", 3: "gone", 4: "gone", 5: "blocked_other", 7: "gone"}.get(f["status"], "unknown"))

    def on_krait_dumped_wait(self, _cpu, f, _):
        t = self.thread(f["tid"])
        self.dumping = True
        if not t or t.state != "blocked_other" or t.call_known:
            return
        t.call, t.call_known, t.dumped, t.cmd = f["call_name"] or None, True, True, f["cmd"]
        t.stopped, t.deep = bool(f["prev_state"] & 0xC), bool(f["prev_state"] & 2)
        t.faults = not t.call and t.deep

    def on_lttng_statedump_end(self, _cpu, _f, _):
        self.dumping = False

    def ran(self, t):
        """The end of a call that the dump told may have been missed."""
        if t and t.dumped and (self.dumping or not self.has_calls):
            t.call, t.call_known = None, False
        if t:
            t.dumped = False

    def adopt(self, cpu, f):
        self.look(cpu, f)
        cpu.irqs, cpu.softirq = [], None

    def on_call_entry(self, cpu, f, call):
        self.adopt(cpu, f)
        cpu.base = "system"
        if cpu.thread:
            cpu.thread.call, cpu.thread.call_at, cpu.thread.call_known = call, self.now, True
            cpu.thread.cmd = f.get("cmd")
        if cpu.thread and call in NEVER_END:
            cpu.base, cpu.thread.call, cpu.thread.call_at = "user", None, None
        self.settle(cpu)

    def on_call_exit(self, cpu, f, call):
        self.adopt(cpu, f)
        cpu.base = "user"
        t = cpu.thread
        if t and t.call == call and t.call_at is not None:
            self.calls[t.pid, call].append(self.now - t.call_at)
            self.errors[t.pid, call] += -4095 <= f["ret"] < 0
        if t:
            t.call, t.call_at, t.call_known = None, None, True
        self.settle(cpu)

    def on_irq_handler_entry(self, cpu, f, _):
        self.look(cpu, f)
        cpu.irqs.append("blocked_other" if not cpu.irqs else cpu.irqs[-1])
        self.settle(cpu)

    def on_irq_handler_exit(self, cpu, f, _):
        self.look(cpu, f)
        cpu.irqs = cpu.irqs[:-1]
        self.settle(cpu)

    def on_irq_softirq_entry(self, cpu, f, _):
        self.look(cpu, f)
        cpu.softirq = BY_VECTOR.get(f["vec"], "blocked_other")
        self.settle(cpu)

    def on_irq_softirq_exit(self, cpu, f, _):
        self.look(cpu, f)
        cpu.softirq = None
        self.settle(cpu)

    def on_does(self, cpu, _f, name):
        if cpu.irqs:
            cpu.irqs = [DOES[name]] * len(cpu.irqs)
        elif cpu.softirq:
            cpu.softirq = DOES[name]


def quantile(values, share):
    return sorted(values)[max(math.ceil(share * len(values)), 1) - 1]
