# SPDX-License-Identifier: Apache-2.0
"""calls.py fib N | len N: nothing but calls, of Python functions or of a C function."""

import sys

import pyperf


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def lens(n):
    x = ()
    for _ in range(n):
        len(x)


runner = pyperf.Runner()
runner.bench_func(sys.argv[1], {"fib": fib, "len": lens}[sys.argv[1]], int(sys.argv.pop()))
