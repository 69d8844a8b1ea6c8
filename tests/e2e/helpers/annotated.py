# SPDX-License-Identifier: Apache-2.0
"""Programs that call krait.mark, span, counter and flow, and what they said."""

import json
import os
import subprocess

import pytest

from conftest import BUILD

ENV = {"PYTHONPATH": str(BUILD / "python")}
NAMES = ["user:mark", "user:counter", "user:flow", "span:begin", "span:end", "span:rename", "link:from", "link:to", "told:span", "told:mark"]


@pytest.fixture
def said(record, krait):
    """said(python, text): what a program said, in the file's order: (event, payload) with fields read as JSON."""

    def of(python, text, *places):
        run = record.text(python, text, env={"PYTHONPATH": os.pathsep.join([ENV["PYTHONPATH"], *places])})
        command = [krait, "cat", "--json", "--filter", " || ".join(f'name == "{name}"' for name in NAMES), run.path]
        lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
        events = []
        for line in map(json.loads, lines):
            payload = line["payload"]
            if "fields" in payload:
                payload["fields"] = json.loads(payload["fields"])
            events.append((line["event"], payload))
        of.run = run
        return events

    return of
