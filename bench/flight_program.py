# SPDX-License-Identifier: Apache-2.0
"""flight_program.py SECONDS RATE: so many begins and ends of calls a second, and five new threads a second."""

import os
import sys
import threading
import time

BATCH = 0.01  # seconds
THREAD = 20  # batches from one to the next


def leaf():
    pass


def batch(calls):
    for _ in range(calls):
        leaf()


def main(seconds, rate):
    calls = int(rate * BATCH / 2)
    due = begin = time.monotonic()
    for i in range(int(seconds / BATCH)):
        if i % THREAD == 0:
            threading.Thread(target=leaf).start()
        batch(calls)
        due = max(due + BATCH, time.monotonic() - 1)  # what the machine kept from it is caught up for a second
        time.sleep(max(0, due - time.monotonic()))
        if time.monotonic() - begin > seconds:
            break


print(os.getpid(), flush=True)
main(float(sys.argv[1]), float(sys.argv[2]))
