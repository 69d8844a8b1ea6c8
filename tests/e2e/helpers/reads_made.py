# SPDX-License-Identifier: Apache-2.0
"""A thread that reads four times, as a recording with the kernel's part: both(CALLS, KERNEL). Another one that waits for the GIL: both(GIL_CALLS, GIL_KERNEL)."""

from kernel_made import begins, ends, switch, wake

CALLS = """
process 5 python3
code 1 python app main app.py 1
thread 5 MainThread
0us call 1
1000us return
"""
# Of thread 5 four reads, one of them an error, and a call that does not end; 7 is another program's.
KERNEL = [
    switch(0, 0, 5), begins(100, "read"), ends(101, "read"), begins(200, "read"), ends(210, "read"),
    begins(300, "read"), ends(400, "read", ret=-11), begins(500, "read"), switch(510, 5, 7, 1), begins(520, "write"), ends(530, "write"),
    wake(590, 5), switch(595, 7, 5), ends(600, "read"), begins(700, "openat"), ends(703, "openat", ret=4), switch(1000, 5, 0),
]  # fmt: skip

GIL_CALLS = """process 5 python3
code 1 python app load app.py 1
thread 5 MainThread
0us call 1
100us gilwait 7
180us giltake
300us gilwait 7
340us giltake
400us return
thread 7 holder
50us call 1
400us return
"""
# A wait for the GIL in futex, which it polls once, one for another lock, and a wait for the GIL of a sort that the kernel does not know.
GIL_KERNEL = [
    switch(0, 0, 5), begins(99, "futex"), switch(100, 5, 0, state=1), wake(150, 5), switch(155, 0, 5), switch(156, 5, 0, state=1), wake(180, 5), switch(190, 0, 5), ends(191, "futex", 0),
    begins(200, "futex"), switch(201, 5, 0, state=1), wake(250, 5), switch(251, 0, 5), ends(252, "futex", 0), switch(300, 5, 0, state=1), wake(340, 5), switch(341, 0, 5), switch(400, 5, 0),
]  # fmt: skip
