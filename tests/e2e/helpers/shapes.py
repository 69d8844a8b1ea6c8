# SPDX-License-Identifier: Apache-2.0
"""The shape of a recording's calls: begins and ends in their order, for tests to compare."""

from recording import BEGINS, ENDS


def shape(recording, only="app.py"):
    """Begins and ends of app.py on the main thread, without those of its module body."""
    recording.check()
    process = recording.main
    lines, _ = process.shape(process.threads[0], only)
    assert lines[0] == "call <module>" and lines[-1] in ("return <module>", "unwind <module>")
    return lines[1:-1]


def as_known(lines, python):
    """Before sys.monitoring nobody tells a throw from a resume."""
    return lines if python.has_monitoring else [line.replace("throw", "resume") for line in lines]


def same(lines, expected, python):
    expected = [line.strip() for line in expected.strip().splitlines()]
    assert as_known(lines, python) == as_known(expected, python)


def callers(process, thread, name):
    """What is open where the function is called, each time: app.py's functions, outermost first."""
    found, stack, said = set(), [], []
    for e in thread.events:
        if e.name == "python:frame":
            said.append(e)
        elif e.name == "python:stack":
            stack, said = process.resync(stack, said, e.fields["depth"]), []
        elif e.name in ENDS:
            stack.pop()
        elif e.name in BEGINS:
            if process.name_of(e) == name:
                found.add(tuple(process.codes[code].qualname for _, code in stack if process.codes[code].file.endswith("app.py")))
            stack.append(("python", e.code))
    return found
