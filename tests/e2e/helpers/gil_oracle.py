# SPDX-License-Identifier: Apache-2.0
"""Who has the GIL while a thread waits for it, from the text of a recording's gil:* events: for each moment again, from
all that happened before. docs/gil.md says what the events mean."""

import re
import subprocess
from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass

from corpus import UTC

LINE = re.compile(r"^\[(\d+)\.(\d{9})\] (.*) gil:(\w+): \{ vtid = (\d+) \}, \{ (?:holder = (\d+) )?\}$")
ORDER = {"drop": 0, "take": 1, "switch": 1, "wait": 2}


@dataclass
class Moment:
    ns: int
    what: str
    tid: int
    holder: int
    end: int = 0  # of a wait for the GIL, where it got it


class GilOracle:
    def __init__(self, krait, folder):
        words = [krait, "cat", "--clock-seconds", "--no-delta", "--filter", 'name == "gil:*"', folder]
        text = subprocess.run(words, capture_output=True, text=True, env=UTC, timeout=120, check=True).stdout
        self.waits = defaultdict(list)  # tid -> [(begin, end, process)]
        self.known = {}  # process -> [(from, who has the GIL, or None)]
        processes = defaultdict(list)
        for line in text.splitlines():
            seconds, ns, process, what, tid, holder = LINE.match(line).groups()
            processes[process].append(Moment(int(seconds) * 10**9 + int(ns), what, int(tid), int(holder or 0)))
        for process, moments in processes.items():
            moments.sort(key=lambda m: (m.ns, ORDER[m.what]))
            self.pair(process, moments)
            self.known[process] = self.owners([m for m in moments if m.what != "switch" and (m.what != "wait" or m.end)])

    def pair(self, process, moments):
        begun = {}
        for m in moments:
            if m.what == "wait":
                begun[m.tid] = m
            elif m.what in ("take", "switch") and m.tid in begun:
                wait = begun.pop(m.tid)
                if m.what == "take":
                    wait.end = m.ns
                    self.waits[m.tid].append((wait.ns, m.ns, process))

    @staticmethod
    def owners(moments):
        """While a wait goes on that ends with the GIL, takes and drops are all told."""
        out, holder, blind, told = [(0, None)], None, 0, 0
        for m in moments:
            who = m.holder if m.what == "wait" else m.tid
            if m.ns >= told:
                holder = None
                out.append((m.ns, None))
            elif holder and who and who != holder:
                holder, blind = None, told
                out.append((m.ns, None))
            told = max(told, m.end)
            if m.ns < blind or not who:
                continue
            if m.what == "drop":
                holder = None
                out.append((m.ns, "dropped"))
            else:
                holder = who
                out.append((m.ns, who))
        return out

    def at(self, tid, ns):
        """Who has it, of whom the thread waits for it; None: nobody is known, or it does not wait."""
        process = next((p for begin, end, p in self.waits[tid] if begin <= ns < end), None)
        if process is None:
            return None
        known = self.known[process]
        i = bisect_right(known, ns, key=lambda k: k[0]) - 1
        while known[i][1] == "dropped" and i + 1 < len(known):  # it waits for who takes it
            i += 1
        return known[i][1] if known[i][1] not in ("dropped", tid) else None

    def stretches(self, tid, begin, end):
        """[(from, to, who)], all of it."""
        edges = {begin, end, *(ns for wait in self.waits[tid] for ns in wait[:2])}
        for process in {p for *_, p in self.waits[tid]}:
            edges |= {ns for ns, _ in self.known[process]}
        out = []
        edges = sorted(e for e in edges if begin <= e <= end)
        for since, until in zip(edges, edges[1:]):
            who = self.at(tid, since)
            if out and out[-1][2] == who:
                out[-1] = (out[-1][0], until, who)
            else:
                out.append((since, until, who))
        return out
