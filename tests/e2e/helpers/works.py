# SPDX-License-Identifier: Apache-2.0
"""Work for executors, as a recording has it."""

from collections import defaultdict

STAGES = ["work:submit", "work:start", "work:done", "work:result"]


def by_id(recording):
    """Of each piece of work, its stages in order: (event, tid)."""
    found = defaultdict(list)
    for note in recording.notes(*STAGES):
        found[note["id"]].append((note["event"], note["tid"]))
    return found


def names(recording, stage="work:submit"):
    """What the pieces of work call, in the order of their stage, as krait prints it: with the module."""
    found = []
    for process in recording.processes:
        for thread in process.threads:
            for event in thread.chosen({stage}):
                code = process.codes.get(event.fields["function"])
                name = None if code is None else code.qualname if code.kind == "name" else f"{code.module}.{code.qualname}"
                found.append((event.time, name, event.fields["pool"]))
    return [(name, pool) for _, name, pool in sorted(found)]
