# SPDX-License-Identifier: Apache-2.0
"""krait on AArch64, in a virtual machine (tools/vm): the unit tests, and what depends on the processor: to record, to attach, to
sample, and to unwind native frames."""

import json
import re

import pytest

from attached import functions
from machine import build_for_vm, run_in_vm
from recording import Recording

pytestmark = pytest.mark.long  # krait is compiled for it, and the machine takes a minute to start

APP = """
import sys, threading, time
def inner(n): return n + 1
def work(until):
    while time.monotonic() < until:
        for i in range(100): inner(i)
        time.sleep(0.01)
def main():
    until = time.monotonic() + float(sys.argv[1])
    other = threading.Thread(target=work, args=(until,))
    other.start()
    work(until)
    other.join()
main()
"""

COMMANDS = """
krait=$PWD/build/krait
for test in build/tests/unit/*_test; do
    (cd /tmp && timeout 1200 "$OLDPWD/$test") >"$(basename $test).out" 2>&1
    echo "$(basename $test) $?" >>unit
done
KRAIT_TEST_ALL=1 build/tests/unit/attach_test >many.out 2>&1; echo "many $?" >>unit
$krait record -q -o whole -- python3 app.py 1; echo $? >whole.ended
python3 app.py 1000 & app=$!
sleep 5
for n in 1 2 3; do
    $krait record -q -v --pid $app --for 1s -o attached.$n 2>attached.$n.said; echo $? >attached.$n.ended
    ls /proc/$app/fd | wc -l >attached.$n.files; ls /proc/$app/task | wc -l >attached.$n.threads
done
$krait record -q --sample 50 --pid $app --for 2s -o sampled; echo $? >sampled.ended
$krait dump --native --json $app >dump.json; echo $? >dump.ended
kill -0 $app && kill $app && echo goes on >app.ended
"""


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    """What the commands left, after one start of the machine."""
    folder = tmp_path_factory.mktemp("aarch64")
    build_for_vm(folder / "build", "aarch64")
    (folder / "app.py").write_text(APP)
    run_in_vm(folder, COMMANDS, arch="aarch64")
    return folder


def ended(machine, name):
    return (machine / f"{name}.ended").read_text()


@pytest.mark.timeout(3600)
def test_the_unit_tests_pass(machine):
    ends = dict(line.split() for line in (machine / "unit").read_text().splitlines())
    failed = {name: (machine / f"{name}.out").read_text()[-1000:] for name, status in ends.items() if status != "0"}
    assert len(ends) > 40 and not failed


@pytest.mark.timeout(3600)
def test_a_program_is_recorded(machine, run):
    assert ended(machine, "whole") == "0\n"
    Recording(machine / "whole").check()
    calls = functions(run, machine / "whole")
    assert calls["inner"]["calls"] >= 200 and calls["inner"]["calls"] % 100 == 0
    assert calls["work"]["calls"] == 2


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_process_is_recorded_and_left_as_it_was(machine, run, n):
    said = (machine / f"attached.{n}.said").read_text()
    assert ended(machine, f"attached.{n}") == "0\n", said
    assert re.search("thread [0-9]+ was stopped for .*, and starts a thread that calls krait_agent_attach", said)
    Recording(machine / f"attached.{n}").check(ended=False)
    assert functions(run, machine / f"attached.{n}")["inner"]["calls"] > 100
    assert (machine / f"attached.{n}.files").read_text() == "3\n"
    assert (machine / f"attached.{n}.threads").read_text() == "2\n"
    assert ended(machine, "app") == "goes on\n"


@pytest.mark.timeout(3600)
def test_a_process_is_sampled(machine, run):
    assert ended(machine, "sampled") == "0\n"
    found = functions(run, machine / "sampled")
    assert {"work", "main"} <= set(found)


@pytest.mark.timeout(3600)
def test_native_frames_are_unwound_up_to_the_start(machine):
    assert ended(machine, "dump") == "0\n"
    threads = json.loads((machine / "dump.json").read_text())["threads"]
    stacks = [[frame["function"] for frame in thread["frames"]] for thread in threads]
    main = next(stack for stack in stacks if "main" in stack)
    assert main[-1] == "_start" and main.index("work") < main.index("main") < main.index("_start")
