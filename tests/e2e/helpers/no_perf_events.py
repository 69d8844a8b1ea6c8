# SPDX-License-Identifier: Apache-2.0
"""A process that may not open perf events: python3 no_perf_events.py COMMAND [ARGUMENT...] executes COMMAND as one. And whether this one
may."""

import ctypes
import os
import platform
import struct
import sys


CALL = {"x86_64": 298, "aarch64": 241}[platform.machine()]


def may_count_switches():
    """Of other processes, in the kernel too: perf_event_open(2)."""
    SOFTWARE, CONTEXT_SWITCHES, SIZE = 1, 3, 64
    attr = ctypes.create_string_buffer(struct.pack("<IIQ", SOFTWARE, SIZE, CONTEXT_SWITCHES), SIZE)
    fd = ctypes.CDLL(None).syscall(CALL, attr, 0, -1, -1, 0)
    if fd >= 0:
        os.close(fd)
    return fd >= 0


def refuse_perf_events():
    """From now on perf_event_open(2) is answered with EACCES: what a container's seccomp profile does."""
    ERRNO, ALLOW, EACCES, SET_NO_NEW_PRIVS, SET_SECCOMP, FILTER = 0x00050000, 0x7FFF0000, 13, 38, 22, 2
    steps = [(0x20, 0, 0, 0), (0x15, 0, 1, CALL), (0x06, 0, 0, ERRNO | EACCES), (0x06, 0, 0, ALLOW)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *step) for step in steps))
    program = ctypes.create_string_buffer(struct.pack("@HP", len(steps), ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    for call in ((SET_NO_NEW_PRIVS, 1, 0, 0, 0), (SET_SECCOMP, FILTER, program, 0, 0)):
        if libc.prctl(*call):
            raise OSError(ctypes.get_errno(), "prctl")


if __name__ == "__main__":
    refuse_perf_events()
    os.execvp(sys.argv[1], sys.argv[1:])
