# SPDX-License-Identifier: Apache-2.0
"""State providers of Trace Compass's in XML, and what krait finds by them."""

import subprocess

import pytest

from conftest import verb_json


@pytest.fixture
def states(krait, tmp_path):
    """states(trace, xml, *options): {attribute: [(value, begin, duration)]} in us, and what is not supported."""

    def of(trace, xml, *options):
        (tmp_path / "own.xml").write_text(xml)
        found = {}
        for row in verb_json(krait, "intervals", trace, "-f", tmp_path / "own.xml", *options, "--list")["list"]:
            path, value = row["key"].split(" = ")
            found.setdefault(path, []).append((value, row["begin_ns"] // 1000, row["duration_ns"] // 1000))
        done = subprocess.run([krait, "analyses", tmp_path / "own.xml"], capture_output=True, text=True, check=True)
        return found, done.stderr

    return of


def provider(handlers, before=""):
    return f'<?xml version="1.0"?>\n<tmfxml><stateProvider id="own" version="1"><head><label value="Own"/></head>{before}\n{handlers}</stateProvider></tmfxml>\n'
