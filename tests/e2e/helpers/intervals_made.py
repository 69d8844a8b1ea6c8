# SPDX-License-Identifier: Apache-2.0
"""Recordings of marks at given times, and analyses that a folder declares."""

import pytest


def marks(*of):
    """A script for synth: (thread, us, text) or with fields."""
    lines = ["process 4711 python3", "exit 0 0"]
    for thread in sorted({m[0] for m in of}):
        lines.append(f"thread {4711 + thread} T{thread}")
        for _, us, text, *fields in (m for m in of if m[0] == thread):
            lines.append(" ".join([f"{us}us mark {text.replace(' ', '%20')}", *(f.replace(" ", "%20") for f in fields)]))
    return "\n".join(lines) + "\n"


BUILT_IN = ["cpus", "disk", "futex", "interrupts", "io", "syscalls", "wakeups"]


@pytest.fixture
def declare(tmp_path):
    """declare(text): a file of analyses."""

    def of(text, name="own.toml"):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return of
