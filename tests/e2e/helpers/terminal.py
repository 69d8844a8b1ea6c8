# SPDX-License-Identifier: Apache-2.0
"""What people see on a terminal."""

import fcntl
import os
import pty
import struct
import subprocess
import termios

import pytest


def open_terminal():
    """The two ends of a terminal."""
    try:
        return pty.openpty()
    except OSError as err:  # a plain chroot has no devpts
        return pytest.skip(f"no terminal can be made here: {err}")


def on_terminal(command, columns=80, streams=("stdout",), env=None):
    """What a command prints on a terminal of so many columns, which these of its streams are, and its status."""
    main, side = open_terminal()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    run = subprocess.Popen([str(word) for word in command], env=env, **dict.fromkeys(streams, side))
    os.close(side)
    text = b""
    try:
        while more := os.read(main, 65536):
            text += more
    except OSError:  # EIO: the other side is closed, and all of it is read
        pass
    os.close(main)
    return text.decode().replace("\r\n", "\n"), run.wait(timeout=60)
