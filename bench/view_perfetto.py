# SPDX-License-Identifier: Apache-2.0
"""Perfetto's trace processor on a trace: view_perfetto.py HELPERS TRACE REPS prints one JSON object.

Seconds until it has read the trace and said how many slices there are, and of one question more. The helpers of the tests run the engine
(trace_processor.py there), so Python has to be one that has their packages.
"""

import json
import pathlib
import statistics
import sys
import time

helpers, trace, reps = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3])
sys.path.insert(0, helpers)
import trace_processor  # noqa: E402

SHARE = "select count(*), sum(dur) from slice where ts between (select min(ts) from slice) + 1000000 and (select min(ts) from slice) + 2000000"
QUESTIONS = 10

try:
    trace_processor.engine()
except BaseException as missing:  # pytest's skip is no Exception
    sys.exit(str(missing))
once, many = [], []
for _ in range(reps):
    start = time.monotonic()
    slices = trace_processor.ask(trace, "select count(*) from slice")[0][0][0]
    middle = time.monotonic()
    trace_processor.ask(trace, "select count(*) from slice", *[SHARE] * QUESTIONS)
    once.append(middle - start)
    many.append(time.monotonic() - middle)
seconds = statistics.median(once)
print(json.dumps({"slices": slices, "seconds": seconds, "question": max(statistics.median(many) - seconds, 0) / QUESTIONS}))
