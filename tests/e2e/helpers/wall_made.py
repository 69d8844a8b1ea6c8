# SPDX-License-Identifier: Apache-2.0
"""What tests of calls and kernel events together share: the code of their calls, and what --why says of them."""

import subprocess

from conftest import verb_json
from kernel_made import begins, ends, event, switch, wake

CODES = """
process 5 python3
code 1 python app main app.py 1
code 2 python app load app.py 10
code 3 c time sleep - 0
thread 5 MainThread
"""


# main calls load, which sleeps: load 20 us on the CPU itself, sleep 20 on the CPU, 27 for the timer, 3 ready, main 30.
SLEEP_CALLS = CODES + "100us call 1\n120us call 2\n130us ccall 3\n180us creturn\n190us return\n200us return\n"
SLEEP_EVENTS = [
    switch(0, 0, 5),
    begins(135, "clock_nanosleep"),
    switch(140, 5, 0, state=1),
    event(165, "irq_handler_entry", irq=1),
    event(166, "timer_hrtimer_expire_entry"),
    wake(167, 5),
    event(168, "irq_handler_exit", irq=1),
    switch(170, 0, 5),
    ends(172, "clock_nanosleep"),
]


def us(split):
    return {state: ns / 1000 for state, ns in split.items() if ns}


EVENTS = [
    switch(0, 0, 5),
    begins(110, "fsync"),
    switch(120, 5, 0, state=2),
    wake(180, 5, cpu=1),
    switch(190, 0, 5),
    ends(195, "fsync"),
    switch(1000, 5, 0),
]


def text(krait, *args):
    run = subprocess.run([krait, "report", *map(str, args)], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    return run.stdout, run.stderr


WHY_CALLS = (
    CODES
    + """
    0us call 1
    100us call 2
    200us return
    300us call 2
    310us call 2
    340us return
    350us return
    400us call 2
    410us return
    1000us return
    """
)
WHY_EVENTS = [
    switch(0, 0, 5),
    begins(110, "read"),
    switch(120, 5, 9, state=2),
    event(140, "irq_handler_entry", irq=1),
    event(141, "block_rq_complete"),
    wake(142, 5),
    event(143, "irq_handler_exit", irq=1),
    switch(145, 9, 5),
    ends(148, "read"),
    begins(150, "futex"),
    switch(152, 5, 0, state=1),
    switch(153, 0, 7, cpu=1, next_comm="waker"),
    wake(170, 5, cpu=1),
    switch(171, 0, 5),
    ends(172, "futex"),
    begins(173, "futex"),
    switch(174, 5, 0, state=1),
    wake(180, 5, cpu=1),
    switch(182, 0, 5),
    ends(183, "futex"),
    switch(190, 5, 9, next_comm="hog"),
    switch(197, 9, 5, prev_comm="hog"),
    switch(1000, 5, 0),
]


def why(krait, *args):
    return verb_json(krait, "report", *args)


def rows_of(call, key, *keys):
    return [tuple(row[k] for k in keys) for row in call[key]]
