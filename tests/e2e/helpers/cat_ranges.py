# SPDX-License-Identifier: Apache-2.0
"""A recording of several packets, and what of krait cat's text lies in a range of time."""

import re

import large

SIZE = 4096
PER_PACKET = large.events_per_packet(SIZE)


def seconds(ns):
    return f"{'-' * (ns < 0)}{abs(ns) // 10**9}.{abs(ns) % 10**9:09}"


def text_lines(run):
    return run.stdout.decode(errors="surrogateescape").split("\n")[:-1]


def time_of(line):
    sign, s, ns = re.match(r"\[(-?)(\d+)\.(\d{9})\]", line).groups()
    return int(sign + s + ns)


K = large.PACKET_NS
