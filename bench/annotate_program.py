# SPDX-License-Identifier: Apache-2.0
"""Run by annotate.py: nanoseconds that a mark, a span, a counter, a log record and a task's switch take in one tool, as JSON.

    annotate_program.py krait|viztracer|viztracer-sparse|opentelemetry|opentelemetry-api|lttng NUMBER
"""

import asyncio
import json
import logging
import os
import sys
import timeit

logging.getLogger().setLevel(logging.INFO)
BATCHES = 40  # the least counts: what else the machine does, and new pages of buffers, are in others
FIELDS = {"order": 7, "customer": "smith"}


def krait():
    import krait

    logging.getLogger().addHandler(logging.NullHandler())
    return {"krait": krait}, {
        "mark": "krait.mark('order')",
        "mark, 2 fields": "krait.mark('order', order=7, customer='smith')",
        "span": "with krait.span('load'): pass",
        "counter": "krait.counter('queue', 1.5)",
    }


def viztracer(sparse=False):
    from viztracer import VizTracer
    from viztracer.vizlogging import VizLoggingHandler

    tracer = VizTracer(log_sparse=sparse, tracer_entries=3_000_000, verbose=0)
    handler = VizLoggingHandler()
    handler.setTracer(tracer)
    logging.getLogger().addHandler(handler)
    tracer.start()
    return {"tracer": tracer, "fields": FIELDS}, {
        "mark": "tracer.add_instant('order')",
        "mark, 2 fields": "tracer.add_instant('order', fields)",
        "span": "with tracer.log_event('load'): pass",
        "counter": "tracer.log_var('queue', 1.5)",
    }


class Nowhere:
    """An exporter that drops what it is given: the export's cost is another program's."""

    def export(self, items, *args, **kwargs):
        return None

    def shutdown(self, *args, **kwargs):
        pass

    def force_flush(self, *args, **kwargs):
        return True


def opentelemetry():
    from opentelemetry import metrics, trace
    from opentelemetry.sdk._logs import LoggerProvider, LoggingHandler
    from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(Nowhere()))
    trace.set_tracer_provider(provider)
    metrics.set_meter_provider(MeterProvider())
    logs = LoggerProvider()
    logs.add_log_record_processor(BatchLogRecordProcessor(Nowhere()))
    logging.getLogger().addHandler(LoggingHandler(logger_provider=logs))
    return opentelemetry_api()


def opentelemetry_api():
    """Without the SDK nobody records."""
    from opentelemetry import metrics, trace

    if not logging.getLogger().handlers:
        logging.getLogger().addHandler(logging.NullHandler())
    tracer, gauge = trace.get_tracer("bench"), metrics.get_meter("bench").create_gauge("queue")
    span = tracer.start_span("outer")
    return {"tracer": tracer, "gauge": gauge, "outer": span, "fields": FIELDS}, {
        "mark": "outer.add_event('order')",
        "mark, 2 fields": "outer.add_event('order', fields)",
        "span": "with tracer.start_as_current_span('load'): pass",
        "counter": "gauge.set(1.5)",
    }


def lttng():
    """Of LTTng there are log records alone."""
    import lttngust  # noqa: F401: it adds its handler

    return {}, {}


async def switches(number):
    """Two tasks by turns, each so many steps."""

    async def steps():
        for _ in range(number):
            await asyncio.sleep(0)

    await asyncio.gather(steps(), steps())


TOOLS = {
    "krait": krait,
    "viztracer": viztracer,
    "viztracer-sparse": lambda: viztracer(sparse=True),
    "opentelemetry": opentelemetry,
    "opentelemetry-api": opentelemetry_api,
    "lttng": lttng,
}


def main():
    names, statements = TOOLS[sys.argv[1]]()
    number = int(sys.argv[2])
    names["log"] = logging.getLogger("bench")
    statements["log record"] = "log.info('order %d', 7)"

    def ns(statement):
        return min(timeit.repeat(statement, globals=names, number=number, repeat=BATCHES)) / number * 1e9

    empty = ns("pass")
    result = {what: ns(statement) - empty for what, statement in statements.items()}
    tasks = timeit.repeat(lambda: asyncio.run(switches(number)), number=1, repeat=BATCHES // 2)
    result["task switch"] = min(tasks) / (2 * number) * 1e9
    with open(os.environ["ANNOTATE_OUT"], "w") as out:
        json.dump(result, out)
    os._exit(0)  # what they would write at the end is no part of it


main()
