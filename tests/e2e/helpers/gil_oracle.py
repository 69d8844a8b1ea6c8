# SPDX-License-Identifier: Apache-2.0
"""Who has the GIL while a thread waits for it, from the text of a recording's gil:* events: for each moment again, from
all that happened before. docs/gil.md says what the events mean."""

import re
import subprocess
from bisect import bisect_right
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

from corpus import UTC

LINE = re.compile(r"^\[(\d+)\] (.*) gil:(\w+): \{ vtid = (\d+) \}, \{ (?:(?:holder|id) = (\d+) )?\}$")
ORDER = {"drop": 0, "take": 1, "switch": 1, "wait": 2}


@dataclass
class Moment:
    ns: int
    what: str
    tid: int
    holder: int
    end: int = 0  # of a wait for the GIL, where it got it


@dataclass
class Known:
    """From ns on: who has it; "dropped": nobody, until the next take; "unseen": the next is no take; None: not known."""

    ns: int
    who: object


class GilOracle:
    def __init__(self, krait, folder):
        words = [krait, "cat", "--clock-cycles", "--no-delta", "--filter", 'name == "gil:*"', folder]
        text = subprocess.run(words, capture_output=True, text=True, env=UTC, timeout=120, check=True).stdout
        self.waits = defaultdict(list)  # tid -> [(begin, end, process)], those that end with the GIL
        self.switches = defaultdict(list)  # the same, those that end when another thread has it
        self.known = {}  # process -> [Known]
        processes = defaultdict(list)
        clock = self.clock(folder)
        interpreters = {}  # tid -> that whose GIL its next event is of
        for line in text.splitlines():
            ticks, process, what, tid, holder = LINE.match(line).groups()
            if what == "interpreter":
                interpreters[process, tid] = holder
                continue
            process += f" {interpreters.pop((process, tid), 0)}"  # each GIL for itself
            processes[process].append(Moment(clock(int(ticks)), what, int(tid), int(holder or 0)))
        for process, moments in processes.items():
            moments.sort(key=lambda m: (m.ns, ORDER[m.what]))
            self.pair(process, moments)
            self.known[process] = self.owners([m for m in moments if m.what != "switch" and (m.what != "wait" or m.end)])

    @staticmethod
    def clock(folder):
        """Ticks to ns since the epoch, without a rounding before the last."""
        metadata = next(p for p in Path(folder).rglob("metadata") if p.parent.name != "kernel").read_text()
        freq, offset_s, offset = (int(re.search(rf"^    {name} = (-?\d+);$", metadata, re.M)[1]) for name in ("freq", "offset_s", "offset"))
        return lambda ticks: offset_s * 10**9 + (offset + ticks) * 10**9 // freq

    def pair(self, process, moments):
        begun = {}
        for m in moments:
            if m.what == "wait":
                begun[m.tid] = m
            elif m.what in ("take", "switch") and m.tid in begun:
                wait = begun.pop(m.tid)
                if m.what == "take":
                    wait.end = m.ns
                (self.waits if m.what == "take" else self.switches)[m.tid].append((wait.ns, m.ns, process))

    @staticmethod
    def owners(moments):
        """While a wait goes on that ends with the GIL, takes and drops are all told."""
        out, holder, blind, told = [Known(0, None)], None, 0, 0
        for m in moments:
            who = m.holder if m.what == "wait" else m.tid
            if out[-1].who == "dropped" and m.ns <= told and who and m.what != "take":
                out[-1].who = "unseen"
            if m.ns >= told:
                holder = None
                out.append(Known(max(told, out[-1].ns), None))
            elif holder and who and who != holder:
                holder, blind = None, told
                out.append(Known(m.ns, None))
            told = max(told, m.end)
            if m.ns < blind or not who:
                continue
            holder = None if m.what == "drop" else who
            out.append(Known(m.ns, "dropped" if m.what == "drop" else who))
        return [*out, Known(max(told, out[-1].ns), None)]

    def index(self, process, ns):
        return bisect_right(self.known[process], ns, key=lambda known: known.ns) - 1

    def at(self, tid, ns):
        """Who has it, of whom the thread waits for it; None: nobody is known, or it does not wait."""
        process = next((p for begin, end, p in self.waits[tid] if begin <= ns < end), None)
        if process is None:
            return None
        known, i = self.known[process], self.index(process, ns)
        while known[i].who in ("dropped", "unseen") and i + 1 < len(known):  # it waits for who takes it
            i += 1
        return known[i].who if known[i].who not in ("dropped", "unseen", tid) else None

    def edges(self, tid, begin, end):
        edges = {begin, end, *(ns for wait in self.waits[tid] for ns in wait[:2])}
        for process in {p for *_, p in self.waits[tid] + self.switches[tid]}:
            edges |= {known.ns for known in self.known[process]}
        return sorted(e for e in edges if begin <= e <= end)

    def stretches(self, tid, begin, end):
        """[(from, to, who)], all of it."""
        out = []
        edges = self.edges(tid, begin, end)
        for since, until in zip(edges, edges[1:]):
            who = self.at(tid, since)
            if out and out[-1][2] == who:
                out[-1] = (out[-1][0], until, who)
            else:
                out.append((since, until, who))
        return out

    def parts(self, tid):
        """[(from, to, "held" by another thread, "free" or "unknown", who has it)] of all waits of a thread, of both kinds."""
        for begin, end, process in self.waits[tid] + self.switches[tid]:
            edges = self.edges(tid, begin, end)
            for since, until in zip(edges, edges[1:]):
                who = self.known[process][self.index(process, since)].who
                known = isinstance(who, int) and who != tid
                yield since, until, "held" if known else "free" if who == "dropped" else "unknown", who if known else None

    def split(self, tids=None):
        """ns by part, of the waits of some threads or of all."""
        sums = Counter(held=0, free=0, unknown=0)
        for tid in set(self.waits) | set(self.switches) if tids is None else tids:
            for since, until, part, _ in self.parts(tid):
                sums[part] += until - since
        return dict(sums)
