# SPDX-License-Identifier: Apache-2.0
"""A thread that reads four times, as a recording with the kernel's part: both(CALLS, KERNEL)."""

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
