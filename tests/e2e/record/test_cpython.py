# SPDX-License-Identifier: Apache-2.0
"""Programs no one here wrote: parts of CPython's own test suite give the same results under krait as without.

A few run on two versions, one of each kind of hook. `pytest --long`, as make test-all runs it, runs the quick and
the slow ones on every Python that ships its tests.
"""

import xml.etree.ElementTree as xml

import pytest

from conftest import python_params

FEW = ["test_generators", "test_asyncgen", "test_with", "test_scope"]
QUICK = [*FEW, "test_coroutines", "test_contextlib", "test_exceptions"]  # which starts some forty Pythons
SLOW = ["test_threading", "test_subprocess", "test_concurrent_futures", "test_multiprocessing_fork", "test_socket"]
# Tests that make the process's first allocations fail, by number: some of the first are krait's, which gets by without.
COUNT_ALLOCATIONS = ["test_memory_error_in_PyErr_PrintEx", "test_exec_set_nomemory_hang"]
# Waits for ever in a virtual machine whose host does not answer.
NEEDS_THE_HOST = ["ThreadedVSOCKSocketStreamTest"]
# Deadlocks by itself before 3.12.8 and 3.13.1, on a busy machine: https://github.com/python/cpython/issues/125451
DEADLOCKS = ["test_processes_terminate"]
# Seconds in one test file. Python 3.11's test_asyncio.test_events takes 11 of CPU time, mostly gc.collect(), and was taken
# for hung after 200 where some twelve others wanted the two CPUs.
HANGS_AFTER = 400
ALWAYS = [(3, 11), (3, 13)]
# With --log of everything, which reads each record and each warning, beside each call. test_asyncio takes up to ten minutes for
# its two runs, so it has no others without --log.
LOGGING = ["test_logging", "test_asyncio", "test_warnings"]


def cases():
    for param in python_params():
        python = param.values[0]
        if python is None or python.number in ALWAYS:
            yield pytest.param(python, FEW, id=f"{param.id}-few", marks=param.marks)
        yield pytest.param(python, QUICK, id=f"{param.id}-quick", marks=[*param.marks, pytest.mark.long])
        for module in SLOW if python else []:
            yield pytest.param(python, [module], id=f"{param.id}-{module}", marks=[*param.marks, pytest.mark.long])


def logging_cases():
    for param in python_params():
        for module in LOGGING:
            yield pytest.param(param.values[0], [module], id=f"{param.id}-{module}", marks=[*param.marks, pytest.mark.long])


def outcome(path):
    """From the results in JUnit's form: test -> passed, skipped, or what went wrong."""
    if not path.exists():
        return {"the run": "hung or died"}
    results = {}
    for case in xml.parse(path).iter("testcase"):
        states = [child.tag for child in case if child.tag in ("failure", "error", "skipped")]
        results[case.get("name")] = states[0] if states else "passed"
    return results


def cpython_tells_all(process):
    """Without memory CPython tells of few begins."""
    return not any(code.qualname == "set_nomemory" for code in process.codes.values())


def explain(theirs, ours):
    changed = [f"{t}: {theirs.get(t)} without krait, {ours.get(t)} with it" for t in sorted({*theirs, *ours}) if theirs.get(t) != ours.get(t)]
    return "\n".join(changed)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("python, modules", list(cases()))
def test_cpythons_own_tests_give_the_same_results(record, tmp_path, python, modules):
    run_both(record, tmp_path, python, modules)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("python, modules", list(logging_cases()))
def test_cpythons_own_tests_give_the_same_results_with_all_log_records(record, tmp_path, python, modules):
    run_both(record, tmp_path, python, modules, "--log=")


def ships(python, *modules):
    return python.run("-c", "import " + ", ".join(f"test.{m}" for m in modules)).returncode == 0


def run_both(record, tmp_path, python, modules, *options):
    there = modules if ships(python, *modules) else [m for m in modules if ships(python, m)]
    if not there:
        pytest.skip(f"{python} does not ship {', '.join(modules)}")
    ignored = [word for name in [*COUNT_ALLOCATIONS, *NEEDS_THE_HOST, *DEADLOCKS] for word in ("--ignore", name)]
    arguments = ["-m", "test", "--timeout", str(HANGS_AFTER), *ignored, "--junit-xml"]
    for attempt in (1, 2):  # some fail by themselves on a busy machine: a difference counts when a second pair has one too
        results = [tmp_path / f"plain{attempt}.xml", tmp_path / f"traced{attempt}.xml"]
        plain = python.run(*arguments, results[0], *there, timeout=900, cwd=tmp_path)
        traced = record(python, *arguments, results[1], *there, timeout=900, options=["--lossless", *options])
        theirs, ours = map(outcome, results)
        if not explain(theirs, ours):
            break
    assert explain(theirs, ours) == "", traced.stdout[-3000:] + traced.stderr[-3000:]
    assert len(theirs) > 20, plain.stdout[-2000:]
    assert traced.status == plain.returncode
    assert traced.lost == 0
    wrong = [text for process in traced.processes if cpython_tells_all(process) for text in process.unbalanced()]
    assert not wrong, "\n".join(wrong)
