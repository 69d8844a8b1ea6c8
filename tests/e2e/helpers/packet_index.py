# SPDX-License-Identifier: Apache-2.0
"""Indexes of packets as LTTng writes them."""

import struct

import large
from cat_ranges import SIZE

HEADER = struct.Struct(">IIII")
ENTRY = struct.Struct(">9Q")


def entries_of(path, size=SIZE):
    data = path.read_bytes()
    rows = []
    for at in range(0, len(data), size):
        _, cls, stream, begin, end, content, whole, seq, discarded, _ = large.HEAD.unpack_from(data, at)
        rows.append([at, whole, content, begin, end, discarded, cls, stream, seq])
    return rows


def write_index(path, rows, header=(0xC1F1DCC1, 1, 1, ENTRY.size), cut=0):
    folder = path.parent / "index"
    folder.mkdir(exist_ok=True)
    data = HEADER.pack(*header) + b"".join(ENTRY.pack(*(n % 2**64 for n in row)) for row in rows)
    (folder / f"{path.name}.idx").write_bytes(data[: len(data) - cut])
