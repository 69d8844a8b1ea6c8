# SPDX-License-Identifier: Apache-2.0
"""Stands in for pyperf when a pyperformance script runs under the benchmark.

pyperf would start worker processes and choose the loop count itself. Here the script runs in this process, its
functions a fixed number of loops, and the time of the timed parts alone is added up: `Runner.wall` and `Runner.cpu`.
"""

import argparse
import asyncio
import time

from time import perf_counter  # noqa: F401  the scripts time themselves with pyperf.perf_counter


def python_implementation():
    return "cpython"


class Runner:
    loops = 1  # set by bench/runner.py
    wall = 0.0
    cpu = 0.0

    def __init__(self, add_cmdline_args=None, **options):
        self.metadata = {}
        self.argparser = argparse.ArgumentParser()

    def parse_args(self, args=None):
        self.args = self.argparser.parse_args(args)
        return self.args

    def bench_time_func(self, name, func, *args, **options):
        cpu = time.process_time()
        Runner.wall += func(Runner.loops, *args)
        Runner.cpu += time.process_time() - cpu

    def bench_func(self, name, func, *args, **options):
        loops = range(Runner.loops)
        cpu = time.process_time()
        start = perf_counter()
        for _ in loops:
            func(*args)
        Runner.wall += perf_counter() - start
        Runner.cpu += time.process_time() - cpu

    def bench_async_func(self, name, func, *args, **options):
        async def run():
            for _ in range(Runner.loops):
                await func(*args)

        cpu = time.process_time()
        start = perf_counter()
        asyncio.run(run())
        Runner.wall += perf_counter() - start
        Runner.cpu += time.process_time() - cpu
