# SPDX-License-Identifier: Apache-2.0
"""krait view's pictures: their texts, times, lanes and boxes."""

import re
import subprocess
import xml.etree.ElementTree as ET

import pytest

SVG = "{http://www.w3.org/2000/svg}"
UNITS = {"ns": 1, "µs": 1_000, "ms": 1_000_000, "s": 1_000_000_000}


@pytest.fixture
def view(krait, tmp_path):
    """view(trace, *options, code): the picture's root, and what was said."""

    def draw(*args, code=0):
        path = tmp_path / "timeline.svg"
        run = subprocess.run([krait, "view", *args, "--svg", path], cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert run.returncode == code, run.stderr
        return (ET.parse(path).getroot() if code == 0 else None), run.stderr

    return draw


def texts(root):
    return ["".join(t.itertext()) for t in root.iter(f"{SVG}text")]


def ns_of(words):
    number, unit = re.match(r"([\d.]+)\s*(ns|µs|ms|s)\b", words).groups()
    return float(number) * UNITS[unit]


def lanes(root):
    """{lane: {part: its boxes as (x, width, y, title's lines)}}"""
    found = {}
    for lane in root.iter(f"{SVG}g"):
        if lane.get("class") != "lane":
            continue
        parts = {g.get("aria-label"): boxes(g) for g in lane.findall(f"{SVG}g") if g.get("aria-label")}
        parts["states"] = [box(r) for r in lane.findall(f"{SVG}rect")]
        found[lane.get("aria-label")] = parts
    return found


def box(rect):
    return float(rect.get("x")), float(rect.get("width")), float(rect.get("y")), rect.find(f"{SVG}title").text.split("\n")


def boxes(group):
    return sorted((box(rect) for rect in group.iter(f"{SVG}rect") if rect.find(f"{SVG}title") is not None), key=lambda b: b[0])
