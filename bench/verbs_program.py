# SPDX-License-Identifier: Apache-2.0
"""What bench/verbs records: Python and C calls, exceptions, generators, files, and threads that wait for each other."""

import json
import os
import re
import tempfile
import threading
import time


def squares(n):
    for i in range(n):
        yield i * i


def parse(text):
    try:
        return int(text)
    except ValueError:
        return len(text)


def depth(n):
    return 1 + depth(n - 1) if n else 0


def work(lock, path, rounds):
    for i in range(rounds):
        data = {"n": [parse(str(x)) for x in range(20)], "words": re.findall(r"\w+", "alpha beta gamma %d" % i), "sum": sum(squares(20))}
        text = json.dumps(data, sort_keys=True)
        json.loads(text)
        depth(10)
        parse("no number")
        if i % 10 == 0:
            with lock, open(path, "a") as f:
                f.write(text)
        if i % 100 == 0:
            time.sleep(0.001)


def main():
    lock = threading.Lock()
    handle, path = tempfile.mkstemp()
    os.close(handle)
    threads = [threading.Thread(target=work, args=(lock, path, 900), name="worker-%d" % i) for i in range(3)]
    for thread in threads:
        thread.start()
    work(lock, path, 900)
    for thread in threads:
        thread.join()
    os.unlink(path)


main()
