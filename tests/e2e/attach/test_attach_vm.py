# SPDX-License-Identifier: Apache-2.0
"""krait record --pid on Debian sid's kernel, in a virtual machine (tools/vm): it lets only tracers write into another process's code
(proc_mem.force_override, Linux 6.12), and it has Yama."""

import re

import pytest

from attached import functions
from machine import run_in_vm
from recording import Recording

pytestmark = pytest.mark.long  # the machine takes minutes to start

APP = """
import time
def inner(n): return n + 1
while True:
    for i in range(100): inner(i)
    time.sleep(0.01)
"""

# `own` is root's, `other` is a user's, who does not see krait's agent: krait brings it along. Scope 3 stays until the machine ends.
COMMANDS = """
user="setpriv --reuid=65534 --regid=65534 --clear-groups"
scope=/proc/sys/kernel/yama/ptrace_scope
/usr/bin/python3 -I -S -c "$2" & own=$!
$user /usr/bin/python3 -I -S -c "$2" & other=$!
record() { "$krait" record -q -v --no-gil --pid $1 --for 1s -o $2 2>$2.said; echo $? >$2.ended; }
krait=$1
sleep 2
echo 0 >$scope
record $own own.first
record $own own.again
for n in 0 1 2 3; do
    echo $n >$scope
    $user "$krait" record -q --pid $other --for 1s -o /tmp/user.$n 2>record.$n
    $user "$krait" dump $other >/dev/null 2>dump.$n
    record $other other.$n
done
kill $own $other
"""


@pytest.fixture(scope="module")
def machine(tmp_path_factory, everyones_krait):
    """What the commands left, after one start of the machine."""
    folder = tmp_path_factory.mktemp("vm")
    run_in_vm(folder, COMMANDS, everyones_krait, APP)
    return folder


def is_recorded(folder, run):
    said = folder.with_name(folder.name + ".said").read_text()
    assert folder.with_name(folder.name + ".ended").read_text() == "0\n", said
    Recording(folder).check(ended=False)
    assert functions(run, folder)["inner"]["calls"] > 100
    return said


@pytest.mark.timeout(1800)
def test_root_records_a_process_on_a_kernel_that_lets_only_tracers_write_into_code(machine, run):
    for name in ("own.first", "own.again", "other.0", "other.1", "other.2"):
        said = is_recorded(machine / name, run)
        assert "while krait wrote" in said and ("brings it along by a memfd" in said) == (name == "other.0"), said


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("scope, reason", [(1, "only root"), (2, "only root"), (3, "nobody")])
def test_yama_keeps_users_out(machine, scope, reason):
    said = (machine / f"record.{scope}").read_text()
    assert re.match(f"krait record: the kernel lets {reason} read process [0-9]+ .*kernel.yama.ptrace_scope is {scope}\\)", said), said
    assert (machine / f"dump.{scope}").read_text() == said.replace("krait record", "krait dump")


@pytest.mark.timeout(1800)
def test_yama_keeps_everybody_out_until_the_next_boot(machine):
    assert (machine / "other.3.ended").read_text() == "1\n" and not (machine / "other.3").exists()
    assert "the kernel lets nobody read process" in (machine / "other.3.said").read_text()
