# SPDX-License-Identifier: Apache-2.0
"""sqlglot at work: pyperformance's sqlglot benchmark, all of parse, transpile and optimize in one run.

    sqlglot_program.py PATH-OF-BM_SQLGLOT_V2/run_benchmark.py
"""

import importlib.util
import sys

import pyperf

spec = importlib.util.spec_from_file_location("bm_sqlglot", sys.argv.pop(1))
bm = importlib.util.module_from_spec(spec)
spec.loader.exec_module(bm)

runner = pyperf.Runner()
for part in ("parse", "transpile", "optimize"):
    runner.bench_time_func("sqlglot_" + part, bm.BENCHMARKS[part])
