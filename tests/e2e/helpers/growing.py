# SPDX-License-Identifier: Apache-2.0
"""Recordings that go on for krait, though nobody records: their files are parts of those of a whole one."""

import fcntl
import os
import shutil
import struct

PACKET_SIZE = struct.Struct("<Q")  # in bits, at byte 56 of struct krait_packet_head (src/ctf/format.h)
F_OFD_SETLK = 37


def packet_ends(path):
    """Where each packet of a stream ends."""
    data, at, ends = path.read_bytes(), 0, []
    while at < len(data):
        at += PACKET_SIZE.unpack_from(data, at + 56)[0] // 8
        ends.append(at)
    return ends


class Growing:
    """The first packets of each thread's stream; grow() adds more of them."""

    def __init__(self, whole, folder, share):
        self.whole, self.folder, self.locks = whole, shutil.copytree(whole, folder), []
        self.streams = [path.relative_to(whole) for path in sorted(whole.glob("*/thread-*"))]
        for name in self.streams:
            ends = packet_ends(whole / name)
            os.truncate(folder / name, ends[int((len(ends) - 1) * share)])
        for path in [*folder.glob("*/thread-*"), *folder.glob("*/definitions")]:
            self.locks.append(os.open(path, os.O_RDWR))
            fcntl.fcntl(self.locks[-1], F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))

    def size(self):
        return sum((self.folder / name).stat().st_size for name in self.streams)

    def grow(self, packets, partial=0):
        """Each stream by so many packets at most, and by so many bytes of the one that follows. Returns how many bytes that are."""
        before = self.size()
        for name in self.streams:
            data, at = (self.whole / name).read_bytes(), (self.folder / name).stat().st_size
            ends = [end for end in packet_ends(self.whole / name) if end > at][:packets]
            to = (ends[-1] if ends else at) + partial
            with open(self.folder / name, "ab") as file:
                file.write(data[at:to])
        return self.size() - before

    def drop(self, packets):
        """Writes each stream anew without its first packets, as krait record --last does."""
        for name in self.streams:
            data, ends = (self.folder / name).read_bytes(), packet_ends(self.folder / name)
            beside = self.folder / name.parent / ".new"
            beside.write_bytes(data[ends[min(packets, len(ends) - 1) - 1] :])
            beside.rename(self.folder / name)

    def end(self):
        for fd in self.locks:
            os.close(fd)
        self.locks = []
