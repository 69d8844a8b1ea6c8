# SPDX-License-Identifier: Apache-2.0
"""A trace of a shop's orders, and an analysis that is declared for it."""

SHOP = """
[interval.order]
start = 'take (?P<key>\\d+)'
stop = 'send (?P<key>\\d+)'
[state.oven]
message = 'oven is (\\w+)'
[signal.waiting]
message = '([\\d.]+) wait'
"""
TOLD = [
    (0, 100, "take 1"), (0, 120, "2 wait"), (0, 150, "oven is hot"), (0, 200, "take 2"), (0, 250, "1.5 wait"), (0, 300, "send 1"),
    (0, 400, "oven is warm"), (0, 500, "send 2"), (0, 600, "take 3"), (0, 700, "send 3"), (1, 450, "oven is off"), (0, 900, "the end"),
]  # fmt: skip
