#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trace Compass's example analyses on its test traces: does krait find the states and segments that its own tests expect?

    bench/tracecompass.py CHECKOUT [KRAIT]

CHECKOUT is a clone of github.com/eclipse-tracecompass/org.eclipse.tracecompass, with or without a work tree. Its test
traces are XML, of a format for tests alone; they are written as CTF here, a nanosecond as a microsecond. What is expected
is what these tests of Trace Compass say: TmfStateValueScenarioTest, ConsumingFsmTest, FsmTest, TmfXmlConditionTest,
TmfStateValueTest, and the user guide. What krait says that it leaves out is printed.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/e2e/helpers"))
import kernel_made  # noqa: E402

TESTS = "tmf/org.eclipse.tracecompass.tmf.analysis.xml.core.tests"

# Analysis, trace, attribute, and what is expected: when each of its states begins and ends (None: it does not) and which
# it is; or the segments. In the order of their begins.
EXPECTED = [
    ("test_state_values_pattern", 4, "Operations/0", [(1, 2, "op1"), (2, 3, "op2"), (5, 7, "op1"), (10, 14, "op1"), (14, 20, "op2")]),
    ("test_state_values_pattern", 4, "Operations/1", [(2, 3, "op1"), (3, 4, "op2")]),
    ("test_consuming_fsm", 5, "consuming", [(7, None, "1")]),
    ("test_consuming_fsm", 5, "non_consuming", [(7, None, "3")]),
    ("test_initialState_element1", 4, "fsm1", [(3, 4, "1"), (4, 7, "2"), (7, 20, "3"), (20, None, "4")]),
    ("test_initialState_element1", 4, "fsm2", [(3, 4, "1"), (4, 7, "2"), (7, 20, "3"), (20, None, "4")]),
    ("test_initialState_element1", 4, "fsm3", [(3, 4, "1"), (4, 20, "2"), (20, None, "3")]),
    ("test_conditions", 2, "test", [(1, 5, "1"), (5, None, "0")]),
    ("test_conditions", 2, "test1", [(3, 7, "0"), (7, None, "1")]),
    ("test_conditions", 2, "checkpoint", [(1, 5, "0"), (5, 7, "1"), (7, None, "0")]),
    ("test_state_values", 4, "update/0", [(1, 3, "GOOD"), (5, 7, "BAD")]),
    ("test_state_values", 4, "modify/0", [(1, 3, "UNKNOWN"), (3, 5, "GOOD"), (5, 7, "UNKNOWN"), (7, None, "BAD")]),
    ("test_state_values", 4, "mapped", [(1, 3, "TRUE"), (3, 5, "FALSE"), (5, 7, "TRUE"), (7, 10, "FALSE"), (10, 20, "TRUE"), (20, None, "FALSE")]),
    ("test_pattern_segment", 1, None, [(1, 1, "test1"), (1, 3, "test2"), (1, 5, "test1"), (1, 7, "test2")]),
]


def show(checkout, path):
    return subprocess.run(["git", "-C", checkout, "show", f"HEAD:{TESTS}/{path}"], check=True, capture_output=True).stdout


def value_of(field):
    return field.get("value") if field.get("type") == "string" else int(field.get("value"))


def convert(text, folder):
    events = []
    for event in ElementTree.fromstring(text):
        fields = {field.get("name"): value_of(field) for field in event}
        cpu = fields.pop("cpu", 0)
        events.append(kernel_made.event(int(event.get("timestamp")), event.get("name"), cpu, **fields))
    kernel_made.write(folder, events)


def ask(krait, *args):
    done = subprocess.run([krait, "intervals", *args, "--json"], capture_output=True, text=True)
    return json.loads(done.stdout) if done.returncode == 0 else {}, done.stderr


def found_by(krait, trace, analysis, attribute, first):
    """(begin, end, state) in microseconds, where `first` is that of the first event; a state that does not end has its last begin."""
    listed, said = ask(krait, trace, "-f", analysis, "--list")
    rows, _ = ask(krait, trace, "-f", analysis)
    lead = f"{attribute} = "
    of = [row for row in listed.get("list", []) if row["duration_ns"] or attribute is None]
    of = [row for row in of if (row["key"] or "").startswith(lead) or (attribute is None and " = " not in row["key"])]
    found = [(row["begin_ns"] // 1000 + first, (row["begin_ns"] + row["duration_ns"]) // 1000 + first, row["key"].removeprefix(lead)) for row in of]
    last = max((end for _, end, _ in found), default=None)
    found += [(last, None, row["key"].removeprefix(lead)) for row in rows.get("rows", []) if row["no_stop"] and row["key"].startswith(lead)]
    return sorted(found, key=lambda f: (f[0] or 0, f[1] or 1e9)), said


def main():
    checkout, krait = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ROOT / "build/krait"
    wrong, told = 0, set()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for number in (1, 2, 4, 5):
            convert(show(checkout, f"test_traces/testTrace{number}.xml"), folder / f"trace{number}")
        for name in sorted({e[0] for e in EXPECTED}):
            (folder / f"{name}.xml").write_bytes(show(checkout, f"test_xml_files/test_valid/{name}.xml"))
        for name, number, attribute, expected in EXPECTED:
            found, said = found_by(krait, folder / f"trace{number}", folder / f"{name}.xml", attribute, 3 if number == 5 else 1)
            if [f[1:] for f in found] == [e[1:] for e in expected] and all(f[0] in (None, e[0]) for f, e in zip(found, expected)):
                print(f"as expected  {name} {attribute or 'segments'}")
            else:
                wrong += 1
                print(f"WRONG        {name} {attribute or 'segments'}: {found}, expected {expected}")
            told |= {line.replace(f"{folder}/", "") for line in said.splitlines() if "not supported" in line}
    print(f"\n{len(EXPECTED) - wrong} of {len(EXPECTED)} as expected; krait leaves out:", *sorted(told), sep="\n  ")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
