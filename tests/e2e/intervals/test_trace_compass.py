# SPDX-License-Identifier: Apache-2.0
"""Trace Compass's own test files: its XML analyses, on its test traces, have the states and segments that its tests expect.

KRAIT_TRACE_COMPASS names a copy of its sources (org.eclipse.tracecompass). The traces are XML there; here they become CTF.
"""

import os
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import kernel_made
import pytest

from conftest import verb_json

SOURCES = os.environ.get("KRAIT_TRACE_COMPASS")
FILES = Path(SOURCES or "/") / "tmf" / "org.eclipse.tracecompass.tmf.analysis.xml.core.tests"
CALLS = Path(SOURCES or "/") / "analysis" / "org.eclipse.tracecompass.analysis.profiling.core.tests" / "testfiles" / "traces" / "callstack.xml"

pytestmark = pytest.mark.skipif(not SOURCES, reason="KRAIT_TRACE_COMPASS names no sources of Trace Compass")


def read_trace(folder, path):
    """One of its traces, as CTF. All of them begin at 1 ns."""

    def fields(event):
        return {field.get("name"): field.get("value") if field.get("type") == "string" else int(field.get("value")) for field in event}

    root = ElementTree.parse(path).getroot()
    events = [(int(event.get("timestamp")), 0, event.get("name"), fields(event)) for event in root]
    return kernel_made.write(folder, events, host=path.name, domain="ust", unit=1)


@pytest.fixture
def found(krait, tmp_path):
    """found(number, name): the states of each attribute as [(value, begin, end)], the last one without an end, and segments
    with the fields that they have."""

    def of(number, name):
        path = CALLS if number is None else FILES / "test_traces" / f"testTrace{number}.xml"
        words = ["intervals", read_trace(tmp_path / "trace", path), "-f", FILES / "test_xml_files" / "test_valid" / f"{name}.xml"]
        states, segments = {}, []
        for row in verb_json(krait, *words, "--list")["list"]:
            begin = row["begin_ns"] + 1
            path, is_state, value = (row["key"] or "").partition(" = ")
            if not is_state:
                fields = {key.removeprefix("field."): row[key] for key in row if key.startswith("field.") and row[key] is not None}
                segments.append((path, begin, begin + row["duration_ns"], *([fields] if fields else [])))
            elif row["duration_ns"]:  # the next event of the same moment ends the others
                states.setdefault(path, []).append((value, begin, begin + row["duration_ns"]))
        for row in verb_json(krait, *words)["rows"]:
            if row["no_stop"]:
                path, _, value = row["key"].partition(" = ")
                states.setdefault(path, []).append(value)
        return states, segments

    return of


# What the classes in its src/ of the same names expect, or here where the name is another: StateProviderModelTest,
# TmfXmlConditionTest, TmfXmlDoubleTest, TmfStateValueTest, TmfStateValueScenarioTest, ConsumingFsmTest.
STATES = [
    (1, "test_attributes", {"test": [("1", 1, 5), "2"], "test1": [("1", 3, 7), "2"]}),
    (
        2,
        "test_conditions",
        {
            "test": [("1", 1, 5), "0"],
            "test1": [("0", 3, 7), "1"],
            "checkpoint": [("0", 1, 5), ("1", 5, 7), "0"],
            "and_three_operands": [("1", 1, 5), ("0", 5, 7), "1"],
            "not_operand": [("0", 1, 5), ("1", 5, 7), "0"],
        },
    ),
    (3, "test_doubles", {"testField": [("3.141592", 1, 3), ("2.71828", 3, 5), ("1.41421", 5, 7), "2.68545"]}),
    (
        4,
        "test_state_values",
        {
            "update/0": [("GOOD", 1, 3), ("BAD", 5, 7)],
            "modify/0": [("UNKNOWN", 1, 3), ("GOOD", 3, 5), ("UNKNOWN", 5, 7), "BAD"],
            "mapped": [("TRUE", 1, 3), ("FALSE", 3, 5), ("TRUE", 5, 7), ("FALSE", 7, 10), ("TRUE", 10, 20), "FALSE"],
            "stack": [("1", 1, 2), ("2", 2, 5), ("3", 5, 7), ("2", 7, 10), "3"],
            "stack/3": [("5", 5, 7), "10"],
            "hostID": ["testTrace4.xml"],
            **dict.fromkeys(("future", "futureStr"), [("100", 1, 3), ("101", 3, 5), ("100", 5, 7), ("101", 7, 10), ("100", 10, 12), "101"]),
            "futureStack/0/1": [("op1", 2, 11)],
            "futureStack/0/2": [("op1", 6, 7)],
            "futureStack/1/1": [("op1", 3, 8), ("op1", 11, 16)],
        },
    ),
    (
        4,
        "test_state_values_pattern",
        {
            "Operations/0": [("op1", 1, 2), ("op2", 2, 3), ("op1", 5, 7), ("op1", 10, 14), ("op2", 14, 20)],
            "Operations/1": [("op1", 2, 3), ("op2", 3, 4)],
        },
    ),
    (5, "test_consuming_fsm", {"consuming": ["1"], "non_consuming": ["3"]}),
]


@pytest.mark.parametrize("number, name, expected", STATES, ids=[name for _, name, _ in STATES])
def test_its_files_give_its_states(found, number, name, expected):
    states, _ = found(number, name)
    assert {path: states.get(path) for path in expected} == expected


def content(number):
    return {"field1": str(number), "field2": "test", "field3": "1"}


# TmfXmlConditionTest, TmfXmlSegmentTimestampDescriptionTest, FsmTest, XmlSegmentTest
SEGMENTS = [
    (2, "test_pattern_segment", [("test1", 1, 1), ("test2", 1, 3, content(100)), ("test1", 1, 5), ("test2", 1, 7, content(200))]),
    (4, "test_valid_pattern_simple", [("", 5, 7)]),
    (2, "test_segment_timestamp", [("seg1", 1, 10), ("seg1", 3, 100), ("seg1", 5, 20), ("seg1", 7, 200)]),
    (4, "test_initialState_element2", [("NEW", 1, 2)]),
]


@pytest.mark.parametrize("number, name, expected", SEGMENTS, ids=[name for _, name, _ in SEGMENTS])
def test_its_patterns_give_its_segments(found, number, name, expected):
    assert sorted(found(number, name)[1], key=lambda segment: segment[2]) == sorted(expected, key=lambda segment: segment[2])


# The drawing above the events of its trace, of which only threads count in this file; what still runs at its end has no end.
STACKS = {
    2: [("op1", 1, 10), ("op2", 3, 7), ("op3", 4, 5), ("op4", 12, 20)],
    3: [("op2", 3, 20), ("op3", 5, 6), ("op2", 7, 13)],
    6: [("op1", 1, 20), ("op3", 2, 7), ("op1", 4, 6), ("op2", 8, 11), ("op3", 9, 10), ("op4", 12, 20)],
    7: [("op5", 1, 20), ("op2", 2, 6), ("op2", 9, 13), ("op3", 10, 11), ("op2", 15, 19)],
}


def test_its_call_stack_gives_the_calls_of_its_trace(found):
    calls = {tid: [] for tid in STACKS}
    for name, begin, end, fields in found(None, "test_callstack")[1]:
        calls[int(fields["stack"].removeprefix("threads/"))].append((name, begin, end))
    assert {tid: sorted(own) for tid, own in calls.items()} == {tid: sorted(own) for tid, own in STACKS.items()}


def test_an_initial_state_counts_as_an_initial_element(found):
    states, _ = found(4, "test_initialState_element1")  # FsmTest
    assert states["fsm1"] == states["fsm2"] and states["fsm1"][-1] == "4" and states["fsm3"][-1] == "3"
