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
