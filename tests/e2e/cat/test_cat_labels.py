# SPDX-License-Identifier: Apache-2.0
"""Enumerations and variants of any number of labels, overlapping or not: what krait says of a value, and what that costs."""

import json
import random
import shutil
import struct
import subprocess

import pytest

from corpus import UTC, cat_bytes

MANY = 4000


def trace(folder, ranges, values, signed=False, more="", bits=32):
    """An event for each value: the enumeration, and what `more` declares behind it (a byte each)."""
    kind = f"integer {{ size = {bits}; signed = {'true' if signed else 'false'}; align = 8; }}"
    labels = ", ".join(f'"{label}" = {lo} ... {hi}' for label, lo, hi in ranges)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "metadata").write_text("/* CTF 1.8 */ trace { major = 1; minor = 8; byte_order = le; }; event { name = e; fields := struct { "
                                     f"enum : {kind} {{ {labels} }} x; {more} }}; }};")
    form = {32: "i" if signed else "I", 64: "q" if signed else "Q"}[bits]
    (folder / "s").write_bytes(b"".join(struct.pack(f"<{form}", v) + (b"\7" if more else b"") for v in values))
    return folder


def quoted(label):
    return '"%s"' % label


def text_of(ranges, value):
    """All labels that hold the value, in the order in which they are first named."""
    order = list(dict.fromkeys(label for label, _, _ in ranges))
    held = {label for label, lo, hi in ranges if lo <= value <= hi}
    labels = ", ".join(quoted(label) for label in order if label in held) or "<unknown>"
    return f"e: {{ x = ( {labels} : container = {value} ) }}"


def first_of(ranges, value):
    return next((label for label, lo, hi in ranges if lo <= value <= hi), None)


def check(krait, folder, ranges, values, bits=32):
    text = cat_bytes(krait, folder).stdout.decode().splitlines()
    assert text == [text_of(ranges, value) for value in values]
    said = [json.loads(line)["payload"]["x"] for line in cat_bytes(krait, "--json", folder).stdout.splitlines()]
    assert said == [{"value": str(value) if bits > 53 else value, "label": first_of(ranges, value)} for value in values]
    cells = cat_bytes(krait, "--csv", folder).stdout.decode().splitlines()[1:]
    assert [cell.split(",")[3] for cell in cells] == [first_of(ranges, value) or str(value) for value in values]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("signed, bits", [(False, 32), (True, 32), (True, 64), (False, 64)], ids=["u32", "i32", "i64", "u64"])
def test_labels_of_ranges_that_overlap(krait, tmp_path, seed, signed, bits):
    dice = random.Random(seed)
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    spread = dice.choice([30, 3000, high])
    ranges = []
    for _ in range(dice.choice([1, 5, 40, 200])):
        lo, hi = sorted(max(low, min(high, dice.choice([1, -1 if signed else 1]) * dice.randrange(spread))) for _ in range(2))
        ranges.append((f"l{dice.randrange(60)}", lo, dice.choice([lo, hi])))
    ranges += dice.choice([[], [("all", low, high)], [("first", low, low), ("last", high, high)]])
    edges = {v + d for _, lo, hi in ranges for v in (lo, hi) for d in (-1, 0, 1)} | {low, high, 0}
    values = sorted(v for v in edges if low <= v <= high)
    check(krait, trace(tmp_path / "t", ranges, values, signed, bits=bits), ranges, values, bits)


def test_a_value_with_very_many_labels(krait, tmp_path):
    """As many as no piece keeps the text of; and none where its neighbours have some."""
    ranges = [(f"l{i}", i, 100 - i) for i in range(40)] + [("x", 200, 201)]
    values = [0, 5, 14, 15, 16, 17, 39, 50, 61, 99, 100, 101, 199, 200, 202]
    check(krait, trace(tmp_path / "t", ranges, values), ranges, values)


def test_variants_of_ranges_that_overlap(krait, tmp_path):
    """The first label of a tag's value that names an option decides."""
    dice = random.Random(3)
    ranges = [(f"o{dice.randrange(9)}", *sorted((dice.randrange(300), dice.randrange(300)))) for _ in range(30)]
    options = "".join(f"string o{i}; " if i == 8 else f"integer {{ size = 8; base = {10 if i % 2 else 16}; }} o{i}; " for i in range(8))
    values = [v for v in range(310) if first_of(ranges, v) not in (None, "o8")]
    folder = trace(tmp_path / "t", ranges, values, more=f"variant <x> {{ {options} }} v;")
    lines = cat_bytes(krait, folder).stdout.decode().splitlines()
    named = [r for r in ranges if r[0] != "o8"]
    assert len(lines) == len(values) > 100
    assert [line.split("v = ")[1] for line in lines] == [f"{{ {'7' if int(first_of(named, v)[1:]) % 2 else '0x7'} }} }}" for v in values]


SHAPES = {
    "apart": [(f"l{i}", i * 1000, i * 1000) for i in range(MANY)],
    "overlapping": [(f"l{i}", i * 1000, i * 1000 + 1500) for i in range(MANY)],
    "a variant": [(f"l{i}", i * 1000, i * 1000) for i in range(MANY)],
}


def instructions(krait, tmp_path, *args):
    out = tmp_path / "callgrind"
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", krait, "cat", *map(str, args)]
    subprocess.run(command, check=True, capture_output=True, env=UTC, timeout=600)
    return next(int(line.split()[1]) for line in out.read_text().splitlines() if line.startswith(("summary:", "totals:")))


@pytest.mark.skipif(not shutil.which("valgrind"), reason="valgrind is not installed")
@pytest.mark.parametrize("shape, form", [("apart", "--json"), ("overlapping", "--no-delta"), ("a variant", "--filter=x == l7")])
def test_an_event_costs_no_search_through_all_labels(krait, tmp_path, shape, form):
    """Counted in instructions: an event among thousands of labels costs hundreds, where a search takes ten thousands."""
    ranges, few, many = SHAPES[shape], 300, 1300
    more = "variant <x> { " + "".join(f"integer {{ size = 8; }} l{i}; " for i in range(MANY)) + "} v;" if shape == "a variant" else ""
    values = [(MANY - 1 - i) * 1000 for i in range(many)]
    folders = [trace(tmp_path / str(n), ranges, values[:n], more=more) for n in (few, many)]
    assert cat_bytes(krait, folders[0]).stdout.count(b"\n") == few
    less, all_of_it = (instructions(krait, tmp_path, form, folder) for folder in folders)
    assert (all_of_it - less) / (many - few) < 4000
