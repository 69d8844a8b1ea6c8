# SPDX-License-Identifier: Apache-2.0
"""Threads at random on a machine of some CPUs, as events of the kernel."""

import random

from kernel_made import begins, event, fork, switch, wake
from path_made import ASLEEP, packet


class Machine:
    """Threads that do as they like: a trace that could be, with losses."""

    def __init__(self, seed, losses):
        self.r = random.Random(seed)
        self.losses, self.events, self.now = losses, [], 0
        self.cpus = [0, 0, 0]
        self.asleep, self.ready, self.next_tid, self.address = [], [], 10, 1

    def put(self, *events):
        if self.r.random() >= self.losses:
            self.events += events

    def end_wait(self, cpu):
        if self.asleep:
            tid = self.asleep.pop(self.r.randrange(len(self.asleep)))
            self.put(wake(self.now, tid, cpu=cpu, name=self.r.choice(["sched_waking", "sched_wakeup"])))
            self.ready.append(tid)

    def switch(self, cpu):
        before, sleeps = self.cpus[cpu], self.r.random() < 0.7
        after = self.ready.pop(self.r.randrange(len(self.ready))) if self.ready and self.r.random() < 0.9 else 0
        if before == after:
            return
        if before:
            (self.asleep if sleeps else self.ready).append(before)
            if sleeps and self.r.random() < 0.5:
                self.put(begins(self.now, self.r.choice(["futex", "read", "nanosleep", "recvmsg", "fsync", "rt_sigreturn"]), cpu=cpu))
        self.put(switch(self.now, before, after, ASLEEP if sleeps else 0, cpu=cpu))
        self.cpus[cpu] = after

    def make(self, cpu):
        if self.cpus[cpu] and self.next_tid < 30:
            self.put(fork(self.now, self.cpus[cpu], self.next_tid, cpu=cpu))
            self.ready.append(self.next_tid)
            self.next_tid += 1

    def interrupt(self, cpu):
        soft = self.r.random() < 0.5
        does = self.r.choice([None, "timer_hrtimer_expire_entry", "block_rq_complete"])
        self.put(event(self.now, "irq_softirq_entry", cpu=cpu, vec=self.r.choice([1, 3, 4, 6])) if soft else event(self.now, "irq_handler_entry", cpu=cpu, irq=1))
        if does:
            self.put(event(self.now, does, cpu=cpu, x=1))
        self.end_wait(cpu)
        self.put(event(self.now, "irq_softirq_exit" if soft else "irq_handler_exit", cpu=cpu, x=1))

    def packets(self, cpu):
        self.address = self.r.randrange(1, 6)
        self.put(packet(self.now, "net_dev_queue", self.address, cpu))
        self.put(event(self.now, "irq_softirq_entry", cpu=cpu, vec=3))
        self.put(packet(self.now, "net_if_receive_skb", self.r.choice([self.address, 9]), cpu))
        self.end_wait(cpu)
        self.put(event(self.now, "irq_softirq_exit", cpu=cpu, x=1))

    def run(self, steps):
        self.ready = [5, 6, 7, 8]
        for _ in range(steps):
            self.now += self.r.randrange(0, 20)
            does = self.r.choices([self.switch, self.end_wait, self.make, self.interrupt, self.packets], [6, 3, 0.3, 2, 2])[0]
            cpu = self.r.randrange(len(self.cpus))
            if does != self.end_wait or self.cpus[cpu]:
                does(cpu)
        self.events.append(event(self.now + 10, "power_cpu_idle", state=1))
        return self.events
