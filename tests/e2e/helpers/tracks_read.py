# SPDX-License-Identifier: Apache-2.0
"""The tracks of a trace, as the program read_tracks prints them."""

import subprocess

from conftest import BUILD


def text_of(folder, *span, together=False):
    command = [BUILD / "tests" / "read_tracks", *["-t"] * together, folder, *map(str, span)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def tracks(folder, *span):
    """{(kind, place, number, name): [entry, ...]}, each a list of words."""
    found = {}
    for line in text_of(folder, *span).splitlines():
        if line.startswith("track "):
            _, kind, _, place, number, name = line.split(" ", 5)
            own = found.setdefault((kind, place, int(number), name), [])
        else:
            own.append(line.split())
    return found
