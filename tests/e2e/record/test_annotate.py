# SPDX-License-Identifier: Apache-2.0
"""krait.mark, span, counter and flow: what a program says about itself, on every version."""

import json
import os
import re
import subprocess
import sysconfig
from pathlib import Path

import pytest

from annotated import ENV, said  # noqa: F401  (said: a fixture)
from conftest import BUILD, verb_json
from package import PACKAGE


@pytest.mark.every_python
def test_a_program_says_where_it_is(said, python):  # noqa: F811
    events = said(
        python,
        """
        import krait
        krait.mark("hello")
        krait.mark("order", id=7, price=1.5, who="é", tags=["a", None], flag=True)
        krait.counter("queue", 3)
        krait.counter("load", 0.25)
        krait.flow(2**63 + 5)
        krait.flow("job-1")
        krait.flow("job-1")
        with krait.span("work", n=1):
            pass
        assert krait.mark("x") is None and krait.counter("y", 1) is None and krait.flow(1) is None
        """,
    )
    marks = [payload for event, payload in events if event == "user:mark"]
    assert [m["text"] for m in marks] == ["hello", "order", "x"]
    assert marks[0]["fields"] == {} and marks[1]["fields"] == {"id": 7, "price": 1.5, "who": "é", "tags": ["a", None], "flag": True}
    assert [p["value"] for e, p in events if e == "user:counter"] == [3, 0.25, 1]
    flows = [int(p["id"]) for e, p in events if e == "user:flow"]
    assert flows[0] == 2**63 + 5 and flows[1] == flows[2] and flows[3] == 1
    begin, end = [p for e, p in events if e.startswith("span:")]
    assert begin["id"] == end["id"] and begin["fields"] == {"n": 1}


def test_no_call_of_theirs_is_recorded(said, python, krait):  # noqa: F811
    said(python, "import krait\nfor _ in range(5077):\n    krait.mark('x')\n    krait.counter('n', 1)\n    krait.flow(1)\n    with krait.span('s'): pass\n")
    rows = json.loads(subprocess.run([krait, "report", said.run.path, "--json"], capture_output=True, text=True, check=True).stdout)["functions"]
    assert [r["name"] for r in rows if r["calls"] >= 5077] == []


def test_spans_decorate_functions_coroutines_and_generators(said, python, krait):  # noqa: F811
    events = said(
        python,
        """
        import asyncio, krait

        @krait.span("plain", kind=1)
        def plain(a, *, b=2):
            "doc"
            return a + b

        @krait.span("gen")
        def gen():
            got = yield 1
            yield got

        @krait.span("coro")
        async def coro():
            await asyncio.sleep(0)
            return 5

        @krait.span("agen")
        async def agen():
            yield 1
            yield 2

        class Shop:
            @krait.span("outer")
            @krait.span("inner")
            async def serve(self):
                await asyncio.sleep(0)

        assert plain.__name__ == "plain" and plain.__doc__ == "doc"
        assert plain(1) == 3 and plain(1, b=5) == 6
        g = gen()
        assert next(g) == 1 and g.send(7) == 7 and list(g) == []
        async def main():
            assert await asyncio.gather(coro(), coro()) == [5, 5]
            assert [x async for x in agen()] == [1, 2]
            await asyncio.gather(Shop().serve())
        asyncio.run(main())
        """,
    )
    begins = [p for e, p in events if e == "span:begin"]
    ends = {p["id"] for e, p in events if e == "span:end"}
    assert len(begins) == 8 and {p["id"] for p in begins} == ends
    assert begins[0]["fields"] == begins[1]["fields"] == {"kind": 1}
    kinds = [e for e, _ in events]
    assert kinds[6:10] == ["span:begin", "span:begin", "span:end", "span:end"]  # the two coroutines run by turns
    functions = {f'{r["module"]}.{r["name"]}': (r["file"], r["line"]) for r in verb_json(krait, "report", said.run.path)["functions"]}
    tasks = {r["coroutine"]: (r["tasks"], r["file"], r["line"]) for r in verb_json(krait, "report", said.run.path, "--by", "task")["tasks"]}
    for name, count in ("__main__.coro", 2), ("__main__.Shop.serve", 1), ("__main__.main", 1):
        assert tasks[name] == (count, *functions[name])
    assert "recorded" not in str((functions, tasks)) and "<krait>" not in str((functions, tasks))


def test_a_bare_span_decorates_with_the_functions_name(said, python):  # noqa: F811
    text = """if True:
        import functools, krait

        @krait.span
        def plain(a, *, b=2):
            return a + b

        class Shop:
            @krait.span
            async def serve(self): return 5

        assert (plain.__name__, plain(1), plain(1, b=5)) == ("plain", 3, 6)
        try: Shop().serve().send(None)
        except StopIteration as e: assert e.value == 5
        assert krait.span(functools.partial(plain, 1))() == 3
        for name in type("Text", (str,), {})("text"), krait.span("a span"), Shop:
            with krait.span(name): pass
        """
    begins = [p["name"]["label"] for e, p in said(python, text) if e == "span:begin"]
    assert begins[:6] == ["plain", "plain", "Shop.serve", "partial", "plain", "text"] and len(begins) == 8
    source = {"PYTHONPATH": str(Path(__file__).parents[3] / "python")}  # without the native part
    for where in (ENV, source):
        run = subprocess.run([*python.prefix, python.exe, "-c", text], capture_output=True, text=True, env={**os.environ, **where})
        assert run.returncode == 0, run.stderr


@pytest.mark.every_python
def test_tracebacks_show_no_source_of_the_functions_around_decorated_ones(python):
    text = """if True:
        import asyncio, traceback, krait
        two = '@krait.span("f")\\ndef f(): raise ValueError\\n@krait.span("g")\\nasync def g(): f()'
        for n in range(10):
            exec(compile('\\n' * n + two, "two.py", "exec"))
            try:
                f() if n % 2 else asyncio.run(g())
            except ValueError:
                lines = traceback.format_exc().splitlines()
            own = [i for i, line in enumerate(lines) if 'File "<krait>' in line]
            assert own and all(lines[i + 1].startswith("  File ") for i in own), lines
        def h(): pass
        for name in "h" * 900, "h:h":
            h.__qualname__ = name
            assert krait.span("h")(h).__code__.co_filename == "<krait>"
    """
    done = subprocess.run([*python.prefix, python.exe, "-c", text], capture_output=True, text=True, env={**os.environ, **ENV})
    assert done.returncode == 0, done.stderr


@pytest.mark.few_pythons
def test_globs_of_files_do_not_match_the_functions_around_decorated_ones(record, python):
    text = """
        import krait
        @krait.span("f")
        def f(): pass
        for _ in range(5): f()
        """
    calls = record.text(python, text, options=["--include", "*/app.py"], env=ENV).calls()
    assert calls["f"] == 5 and not [name for name in calls if "recorded" in name]


def test_what_raises_out_of_a_span_is_a_field_of_its_end(said, python):  # noqa: F811
    events = said(
        python,
        """
        import krait
        s = krait.span("outer")
        try:
            with s:
                with s, krait.span("inner"):
                    raise ValueError("x")
        except ValueError:
            pass
        """,
    )
    assert [e for e, _ in events] == ["span:begin"] * 3 + ["span:end"] * 3
    assert [p["fields"] for e, p in events if e == "span:end"] == [{"exception": "ValueError"}] * 3
    ids = [p["id"] for _, p in events]
    assert ids[3:] == ids[2::-1]


def test_spans_begin_and_end_by_every_way(said, python):  # noqa: F811
    events = said(
        python,
        """
        import contextlib, krait
        Span = type(krait.span("x"))
        with contextlib.ExitStack() as stack:
            stack.enter_context(krait.span("stack"))
        s = krait.span("methods")
        assert s.__enter__() is s and s.__exit__(None, None, None) is None
        s = krait.span("of the type")
        assert Span.__enter__(s) is s and Span.__exit__(s, None, None, None) is None
        for wrong in (lambda: Span.__enter__(), lambda: Span.__exit__(1, None, None, None), lambda: s(1, 2), lambda: s(int, name=1)):
            try:
                wrong()
            except TypeError:
                continue
            raise SystemExit("no TypeError")
        """,
    )
    names = [p["name"]["label"] for e, p in events if e == "span:begin"]
    assert names == ["stack", "methods", "of the type"]
    assert [e for e, _ in events] == ["span:begin", "span:end"] * 3


SPANS = """
import sys, threading, krait

class Value:
    def __init__(self, n): self.n = n
    def __repr__(self): return f"value {self.n}"
    def __del__(self):  # while its span is freed
        krait.span("freed", n=self.n)

shared = Value(0)
before = sys.getrefcount(shared)
kept = [krait.span("kept", n=n, value=shared) for n in range(20)]  # more than are used again
many = dict.fromkeys("abcdefgh", shared)

def work(number):
    for n in range(50):
        krait.span("never entered", value=shared)
        with krait.span("few", thread=number, n=n, value=Value(n)), krait.span("many", n=n, **many):
            with krait.span("none") as span:
                span.set(n=n)

threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
for span in kept:
    with span: pass
span = kept.clear()
many.clear()
chain = shared
for _ in range(300000): chain = krait.span("chain", next=chain)  # freed in each other
chain = None
for _ in range(300000): chain = krait.span(chain)
chain = None
assert sys.getrefcount(shared) == before, (before, sys.getrefcount(shared))
"""


ENDED_BY_ITS_FIELDS = """
import krait
class Leaves:
    def __repr__(self):
        span.__exit__(None, None, None)
        return "left"
with krait.span("twice") as span, span:
    span.set(first=Leaves(), **dict.fromkeys("abcdefgh", 1))
"""


@pytest.mark.few_pythons
def test_a_span_that_is_ended_by_the_text_of_a_field_is_ended_once_each_time(said, python):  # noqa: F811
    ends = [p["fields"] for event, p in said(python, ENDED_BY_ITS_FIELDS) if event == "span:end"]
    assert ends == [{}, {"first": "left", **dict.fromkeys("abcdefgh", 1)}]


@pytest.mark.every_python
def test_spans_that_come_and_go_have_their_own_fields(said, python):  # noqa: F811
    """Their memory is used again, and what they refer to is freed."""
    assert subprocess.run([*python.prefix, python.exe, "-c", SPANS], env={**os.environ, **ENV}, timeout=60).returncode == 0
    found = {}
    for event, p in said(python, SPANS):
        if event == "span:begin":
            found.setdefault(p["name"]["label"], []).append(p["fields"])
    assert [f["n"] for f in found["kept"]] == list(range(20)) and all(f["value"] == "value 0" for f in found["kept"])
    assert found["none"] == [{}] * 150 and set(found) == {"kept", "few", "many", "none"}
    for number in range(3):
        assert [f for f in found["few"] if f["thread"] == number] == [{"thread": number, "n": n, "value": f"value {n}"} for n in range(50)]
    assert sorted(f.pop("n") for f in found["many"]) == sorted([*range(50)] * 3) and found["many"] == [dict.fromkeys("abcdefgh", "value 0")] * 150


@pytest.mark.few_pythons
def test_fields_that_are_known_later_are_of_the_end(said, python):  # noqa: F811
    events = said(
        python,
        """
        import krait
        with krait.span("load", path="x") as span:
            span.set(rows=5, ok=True)
            span.set(rows=6)
        try:
            with krait.span("bad") as span:
                span.set(tried=2)
                raise KeyError
        except KeyError:
            pass
        """,
    )
    assert [p["fields"] for _, p in events] == [{"path": "x"}, {"rows": 6, "ok": True}, {}, {"tried": 2, "exception": "KeyError"}]


OPENTELEMETRY = """
import asyncio, gc, sys, threading, time
import krait
from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
seen = InMemorySpanExporter()
provider = TracerProvider(resource=Resource({"service.name": "shop"}))
provider.add_span_processor(SimpleSpanProcessor(seen))
class Other(SpanProcessor):  # of a library that has its own add_event, too
    def on_start(self, span, parent_context=None):
        if span.name == "odd":
            given = span.add_event
            span.add_event = self.add_event = lambda name: given(name.upper())
other, processor = Other(), krait.SpanProcessor()
provider.add_span_processor(other)
provider.add_span_processor(processor)
tracer = provider.get_tracer("shop")
with tracer.start_as_current_span("GET", attributes={"http.method": "GET", "tries": 1}) as request:
    request.update_name("GET /orders")
    request.set_attributes({"http.status_code": 200, "tries": 2, "big": 1 << 70})
    request.add_event("cache miss", {"keys": ["a", "b"]})
    with tracer.start_as_current_span("query", kind=trace.SpanKind.CLIENT, attributes={"tags": ["a", "b"]}):
        pass
    try:
        with tracer.start_as_current_span("bad"):
            raise ValueError("no such order")
    except ValueError:
        pass
    request.add_event("earlier", timestamp=time.time_ns() - 1000)
assert "add_event" not in request.__dict__  # as the program has made it

def consume(name, context):
    with tracer.start_as_current_span(name, links=[trace.Link(context, {"why": "queue"})]):
        pass
for number in range(2):
    thread = threading.Thread(target=consume, args=("consume %d" % number, request.get_span_context()))
    thread.start(); thread.join()
consume("elsewhere", trace.SpanContext(1, 2, True))
detached = tracer.start_span("detached", attributes={"n": 1})
def end():
    detached.update_name("detached, ended")
    detached.set_status(trace.StatusCode.ERROR, "late")
    detached.set_attribute("n", 2)
    detached.add_link(request.get_span_context())
    detached.end()
thread = threading.Thread(target=end)
thread.start(); thread.join()
async def step(name):
    with tracer.start_as_current_span(name) as span:
        await asyncio.sleep(0)
        span.add_event("in " + name)
async def main():
    await asyncio.gather(step("first"), step("second"))
asyncio.run(main())
tracer.start_span("never ends")
class Odd(str):
    def __ne__(self, other): raise RuntimeError
odd = tracer.start_span("odd", kind="server", attributes={"n": Odd("1")})  # OpenTelemetry takes all this
odd.add_event("loud")
for wrong in (lambda: odd.add_event(), lambda: odd.add_event("a", unknown=1)):
    try:
        wrong()
    except TypeError as e:
        assert "lambda" in str(e)
    else:
        raise AssertionError
kept = odd.add_event
odd.end()
assert odd.add_event is other.add_event
kept("late")  # OpenTelemetry warns that the span has ended
gc.collect()
assert not processor._open  # not the one either that the program has dropped
provider.shutdown()
for span in seen.get_finished_spans():
    print(span.name.replace(" ", "_"), "%032x" % span.context.trace_id, "%016x" % span.context.span_id, [event.name for event in span.events])
"""


def is_in(marks, text):
    """The fields of the one mark that says so."""
    (found,) = [mark["fields"] for mark in marks if mark["text"] == text]
    return found


@pytest.mark.few_pythons
@pytest.mark.pythons(least=(3, 10))  # the SDK's own
def test_opentelemetrys_spans_are_spans_with_all_that_they_have(said, python, krait, tmp_path):  # noqa: F811
    events = said(python, OPENTELEMETRY, sysconfig.get_path("purelib"))  # pure Python, for any version
    lines = [line.split(None, 3) for line in said.run.stdout.splitlines()]
    printed = {name: (trace, span) for name, trace, span, _ in lines}
    assert [line[3] for line in lines if line[0] in ("GET_/orders", "bad", "odd")] == ["['exception']", "['cache miss', 'earlier']", "['LOUD']"]
    begins = {p["fields"]["span_id"]: p for e, p in events if e == "span:begin"}
    ends = {p["id"]: p["fields"] for e, p in events if e == "span:end"}
    assert len(begins) == len(printed) + 1 and len(ends) == len(printed)
    names = ("GET_/orders", "query", "bad", "detached,_ended", "consume_1", "odd")
    request, query, bad, detached, consumer, odd = (begins[printed[name][1]] for name in names)
    ids = dict(zip(("trace_id", "span_id"), printed["GET_/orders"]))
    assert request["fields"] == {**ids, "kind": "INTERNAL", "service.name": "shop", "http.method": "GET", "tries": 1}
    assert query["fields"]["parent_id"] == ids["span_id"] and query["fields"]["kind"] == "CLIENT" and query["fields"]["tags"] == ["a", "b"]
    assert consumer["fields"]["links"] == [{**ids, "why": "queue"}]
    assert odd["fields"]["kind"] == "server" and odd["id"] in ends
    assert ends[request["id"]] == {"status": "UNSET", "http.status_code": 200, "tries": 2, "big": 1 << 70}
    assert ends[bad["id"]] == {"status": "ERROR", "status_description": "ValueError: no such order"}
    assert ends[detached["id"]] == {"status": "ERROR", "status_description": "late", "links": [ids], "n": 2}
    names = {p["id"]: p["name"]["label"] for e, p in events if e == "span:rename"}
    assert names == {request["id"]: "GET /orders", detached["id"]: "detached, ended"}
    marks = [p for e, p in events if e == "user:mark"]
    assert "late" not in [mark["text"] for mark in marks]
    assert is_in(marks, "cache miss") == {"span_id": ids["span_id"], "keys": ["a", "b"]}
    raised = is_in(marks, "exception")
    assert (raised["span_id"], raised["exception.type"], raised["exception.message"]) == (printed["bad"][1], "ValueError", "no such order")
    assert is_in(marks, "in first")["span_id"] == printed["first"][1] and is_in(marks, "loud")["span_id"] == printed["odd"][1]
    assert [(p["text"], p["fields"]) for e, p in events if e == "told:mark"] == [("earlier", {"span_id": ids["span_id"]})]

    rows = verb_json(krait, "report", "--by", "span", "--key", "status", said.run.path)["spans"]
    assert {(row["name"], row["key"]) for row in rows} == {
        *((name.replace("_", " "), "UNSET") for name in printed if name not in ("bad", "detached,_ended", "odd")),
        ("bad", "ERROR"),
        ("detached, ended", "ERROR"),
        ("never ends", None),
        ("odd", None),
    }
    tries = verb_json(krait, "intervals", "--span", "GET*", "--key", "tries", "--list", said.run.path)["list"]
    late = verb_json(krait, "intervals", "--span", "detached*", "--key", "n", "--list", said.run.path)["list"]
    assert [row["key"] for row in tries] == ["2"] and [row["key"] for row in late] == ["2"]
    marks = verb_json(krait, "report", "--by", "mark", said.run.path)["marks"]
    assert {(row["name"], row["text"]) for row in marks} >= {("user:mark", "cache miss"), ("user:mark", "earlier"), ("user:mark", "exception")}

    subprocess.run([krait, "export", said.run.path, "--to", "chrome", "-o", tmp_path / "out.json"], check=True, capture_output=True)
    told = json.loads((tmp_path / "out.json").read_text())["traceEvents"]
    pairs = zip([e for e in told if e["ph"] == "s"], [e for e in told if e["ph"] == "f"])
    threads = [{e["tid"] for e in told if e["name"] == name and e["ph"] == "b"} for name in ("GET /orders", "consume 0", "consume 1")]
    main, first, second = map(set.pop, threads)
    arrows = [(a["tid"], b["tid"]) for a, b in pairs]
    assert arrows.count((main, first)) == arrows.count((main, second)) == 1 and (first, second) not in arrows


def test_opentelemetrys_spans_need_no_recording_and_no_native_part(any_python, tmp_path):
    (tmp_path / "app.py").write_text(OPENTELEMETRY)
    package = tmp_path / "lib" / "krait"
    package.mkdir(parents=True)
    for name in ("__init__.py", "_nothing.py", "_opentelemetry.py"):
        (package / name).write_text((BUILD / "python" / "krait" / name).read_text())
    for place in (BUILD / "python", tmp_path / "lib"):
        plain = any_python.run(tmp_path / "app.py", env={"PYTHONPATH": os.pathsep.join([str(place), sysconfig.get_path("purelib")])})
        assert plain.returncode == 0 and plain.stdout.count("\n") == 10, plain.stderr


EXPORTED = """
import time
import krait
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
exporter, seen = krait.SpanExporter(), InMemorySpanExporter()
assert isinstance(exporter, SpanExporter) and isinstance(exporter, krait.SpanExporter)
provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(exporter))
provider.add_span_processor(BatchSpanProcessor(seen))
tracer = provider.get_tracer("shop")
with tracer.start_as_current_span("GET", attributes={"n": 1}) as request:
    request.update_name("GET /orders")
    request.set_attribute("n", 2)
    try:
        with tracer.start_as_current_span("bad"):
            raise ValueError("no such order")
    except ValueError:
        pass
crossing = [tracer.start_span("first"), tracer.start_span("second", links=[trace.Link(request.get_span_context())])]
for span in crossing:
    span.end()
tracer.start_span("float", kind=None, start_time=float(time.time_ns())).end()
tracer.start_span("beyond", start_time=2**70).end()
tracer.start_span("long", start_time=1000).end()
tracer.start_span("before", start_time=1000).end(2000)
tracer.start_span("future").end(time.time_ns() + 10**12)
assert exporter.force_flush() and exporter.export(()) == SpanExportResult.SUCCESS
provider.shutdown()
for span in seen.get_finished_spans():
    print(span.name.replace(" ", "_"), span.start_time, span.end_time, [event.timestamp for event in span.events])
"""


@pytest.mark.few_pythons
@pytest.mark.pythons(least=(3, 10))
def test_exported_spans_have_times_of_their_own(said, python, krait, tmp_path):  # noqa: F811
    events = said(python, EXPORTED, sysconfig.get_path("purelib"))
    printed = {line.split()[0].replace("_", " "): line.split(None, 3)[1:] for line in said.run.stdout.splitlines()}
    fields = {p["name"]["label"]: p["fields"] for e, p in events if e == "told:span"}
    assert fields.keys() == printed.keys() - {"beyond"} and not any(e.startswith("span:") for e, _ in events)
    assert fields["bad"]["status"] == "ERROR" and fields["bad"]["parent_id"] == fields["GET /orders"]["span_id"] and fields["GET /orders"]["n"] == 2
    last = subprocess.run([krait, "cat", said.run.path, "--filter", 'name == "told:span" && ended_ago < 1000000000000 && began_ago > 1000000000000'], capture_output=True, text=True, check=True)
    assert last.stdout.count("told:span: ") == 1, last.stdout
    assert [link["span_id"] for link in fields["second"]["links"]] == [fields["GET /orders"]["span_id"]]

    found = {}
    for name in printed:
        listed = verb_json(krait, "intervals", "--span", name, "--list", said.run.path)
        found[name] = [(listed["begin_ns"] + row["begin_ns"], row["duration_ns"], row["thread"]) for row in listed["list"]]
    second = 10**9  # between two looks at the clocks the scheduler may run something else
    for name in ("GET /orders", "bad", "first", "second"):
        began, ended, _ = printed[name]
        ((begin_ns, duration_ns, lane),) = found[name]
        assert duration_ns == int(ended) - int(began) and abs(int(began) - begin_ns) < second and lane.startswith("exported spans")
    for pid, some in ((listed["list"][0]["pid"], True), (1, False)):
        assert bool(verb_json(krait, "report", "--by", "span", "--process", pid, said.run.path)["spans"]) == some
    assert found["before"] == [] and found["first"][0][2] != found["second"][0][2]
    assert found["long"][0][1] < 3600 * second and found["future"][0][1] < 100 * second  # from the recording's begin; to where it was told
    marks = verb_json(krait, "report", "--by", "mark", said.run.path)
    (raised,) = [row for row in marks["marks"] if row["text"] == "exception"]
    assert raised["marks"] == 1 and abs(marks["begin_ns"] + raised["first_ns"] - int(printed["bad"][2].strip("[]"))) < second
    for form in ("chrome", "perfetto"):
        subprocess.run([krait, "export", said.run.path, "--to", form, "-o", tmp_path / form], check=True, capture_output=True)
        told = (tmp_path / form).read_bytes()
        assert b"GET /orders" in told and b"no such order" in told
    subprocess.run([krait, "view", said.run.path, "--svg", tmp_path / "out.svg"], check=True, capture_output=True)
    assert ">exported spans 2<" in (tmp_path / "out.svg").read_text()


ODD = """
import krait
class Odd:
    def __repr__(self): raise RuntimeError("no")
    def __str__(self): raise RuntimeError("no")
krait.mark("x" * 100000, y="z" * 100000)
krait.mark(7)
krait.mark(Odd(), odd=Odd())
krait.mark("a\\0b\\ud800")
krait.mark("", **{"k%d" % i: i for i in range(2000)})
krait.counter("n", "text"); krait.counter("n", Odd()); krait.counter(5, True)
krait.flow(-1); krait.flow(None)
for wrong in (lambda: krait.mark(), lambda: krait.mark("a", "b"), lambda: krait.counter("n"), lambda: krait.flow(), lambda: krait.span()):
    try:
        wrong()
    except TypeError:
        pass
    else:
        raise AssertionError
for i in range(30000):
    with krait.span("name %d" % i): pass
with krait.span("last"): pass
print("done")
"""


@pytest.mark.few_pythons
def test_odd_values_raise_nothing_and_are_bounded(said, python):  # noqa: F811
    events = said(python, ODD)
    assert said.run.stdout == "done\n"
    marks = [p for e, p in events if e == "user:mark"]
    assert marks[0]["text"].startswith("x" * 1000) and "[cut: 100000 characters]" in marks[0]["text"] and len(marks[0]["text"]) < 1200
    assert "[cut: 100000 characters]" in marks[0]["fields"]["y"]
    assert marks[1]["text"] == "7" and marks[2]["text"] == "<Odd>" and marks[2]["fields"] == {"odd": "<Odd>"}
    assert marks[3]["text"] == "a\\x00b\\ud800"
    assert "more]" in marks[4]["fields"]["…"]
    assert [p["value"] for e, p in events if e == "user:counter"] == [1]
    assert sum(e == "span:begin" for e, _ in events) == 30001


@pytest.mark.few_pythons
def test_the_same_program_runs_where_nobody_records_and_without_a_native_part(python, tmp_path):
    (tmp_path / "app.py").write_text(ODD.replace("range(30000)", "range(3)"))
    plain = python.run(tmp_path / "app.py", env=ENV)
    assert plain.stdout == "done\n", plain.stderr
    package = tmp_path / "lib" / "krait"
    package.mkdir(parents=True)
    for name in ("__init__.py", "_nothing.py"):
        (package / name).write_text((BUILD / "python" / "krait" / name).read_text())
    bare = python.run(tmp_path / "app.py", env={"PYTHONPATH": str(tmp_path / "lib")})
    assert bare.stdout == "done\n", bare.stderr
    check = "import krait\n@krait.span('x')\ndef f(): return 1\nassert f() == 1 and not krait.is_recording()"
    assert python.run("-c", check, env={"PYTHONPATH": str(tmp_path / "lib")}).returncode == 0


@pytest.mark.few_pythons
def test_a_package_without_a_native_part_uses_the_recorders(record, krait, python, tmp_path):
    package = tmp_path / "lib" / "krait"
    package.mkdir(parents=True)
    for name in ("__init__.py", "_nothing.py"):
        (package / name).write_text((BUILD / "python" / "krait" / name).read_text())
    env = {"PYTHONPATH": str(tmp_path / "lib")}
    run = record.text(python, "import krait\nkrait.mark('one', n=1)\nwith krait.span('two'):\n    krait.counter('three', 3)\n", env=env)
    assert {"user:mark", "span:begin", "span:end", "user:counter"} <= {row["name"] for row in verb_json(krait, "info", run.path)["event_classes"]}
    broken = "import os\nos.environ['LD_PRELOAD'] = '/none/libkrait-preload.so'\nimport krait\nkrait.mark('x')\nprint('done')"
    done = python.run("-c", broken, env=env)
    assert done.stdout == "done\n" and "krait: marks and spans of this program are not recorded: " in done.stderr and "/none/_agent.abi3.so" in done.stderr
    assert python.run("-c", "import sys\nsys.stderr = None\n" + broken, env=env).stdout == "done\n"


@pytest.mark.few_pythons
def test_children_and_threads_say_it_in_their_own_streams(said, python):  # noqa: F811
    events = said(
        python,
        """
        import krait, os, threading
        with krait.span("both"):
            pid = os.fork()
            krait.mark("child" if pid == 0 else "parent")
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)
        def work(i):
            for _ in range(100):
                krait.mark("thread", i=i)
        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        [t.start() for t in threads]; [t.join() for t in threads]
        """,
    )
    texts = [p["text"] for e, p in events if e == "user:mark"]
    assert texts.count("child") == texts.count("parent") == 1
    assert sorted(p["fields"]["i"] for e, p in events if e == "user:mark" and p["text"] == "thread") == sorted([0, 1, 2, 3] * 100)


@pytest.mark.few_pythons
def test_marks_around_a_recording_that_begins_and_ends(python, tmp_path, krait):
    program = tmp_path / "app.py"
    program.write_text(
        "import krait, sys\n"
        "s = krait.span('around')\n"
        "krait.mark('before')\n"
        "with s:\n"
        "    krait.start(sys.argv[1])\n"
        "    krait.mark('within')\n"
        "    with krait.span('in'): pass\n"
        "t = krait.span('open'); t.__enter__()\n"
        "krait.stop()\n"
        "t.__exit__(None, None, None)\n"
        "krait.mark('after')\n"
    )
    run = python.run(program, tmp_path / "t", env=ENV)
    assert run.returncode == 0, run.stderr
    text = subprocess.run([krait, "cat", tmp_path / "t"], capture_output=True, text=True, check=True).stdout
    assert "within" in text and "before" not in text and "after" not in text and text.count("span:begin") == 2


@pytest.mark.few_pythons
def test_marks_alone_are_written_where_no_call_is(record, python):
    """The clock's window changes, packets fill up, and the stack that is to be stated before the next call waits for ever."""
    run = record.text(
        python,
        """
        import krait, time
        for n in range(20000):
            krait.mark("m%d" % n, n=n)
            if n % 5000 == 0:
                time.sleep(0.2)
        """,
        options=["--no-c-calls", "--exclude", "*"],
        env=ENV,
    ).check()
    assert [(n["text"], json.loads(n["fields"])) for n in run.notes("user:mark")] == [(f"m{n}", {"n": n}) for n in range(20000)]
    assert not run.calls()


@pytest.mark.few_pythons
def test_marks_between_calls_leave_the_calls_whole(record, python):
    run = record.text(
        python,
        """
        import krait, threading, time
        def f(n):
            krait.mark("in", n=n)
            with krait.span("s"):
                return g(n)
        def g(n):
            krait.counter("n", n)
            return n
        def work():
            for n in range(1200):
                f(n)
                if n % 400 == 0:
                    time.sleep(0.1)
        threads = [threading.Thread(target=work) for _ in range(3)]
        for t in threads: t.start()
        for t in threads: t.join()
        """,
        env=ENV,
    ).check()
    assert run.calls()["f"] == run.calls()["g"] == 3600
    assert len(run.notes("user:mark")) == len(run.notes("user:counter")) == len(run.notes("span:end")) == 3600


def test_what_a_signal_raises_in_a_repr_reaches_the_program(said, python):  # noqa: F811
    events = said(
        python,
        """
        import krait
        class Interrupted:
            def __repr__(self): raise KeyboardInterrupt
        span = krait.span("s", who=Interrupted())
        for call in (lambda: krait.mark(Interrupted()), lambda: krait.mark("m", who=Interrupted()), lambda: span.__enter__()):
            try:
                call()
            except KeyboardInterrupt:
                print("interrupted")
        """,
    )
    assert said.run.stdout == "interrupted\n" * 3 and events == []


@pytest.mark.few_pythons
def test_classes_that_need_other_modules_are_there_without_a_cost(python):
    """A function __getattr__ in the package would make each `krait.mark` several times slower: CPython would not specialize it."""
    program = """
import sys
import krait
assert "logging" not in sys.modules and not hasattr(krait, "__getattr__")
assert krait.Handler.__name__ == "Handler" and krait.Handler.__doc__ and "logging" not in sys.modules
import logging, logging.config
class Own(krait.Handler):
    def __init__(self, level=0):
        super().__init__(level)
own, plain = Own(10), krait.Handler(20)
assert isinstance(own, krait.Handler) and isinstance(own, logging.Handler) and (own.level, plain.level) == (10, 20)
assert issubclass(Own, krait.Handler) and not isinstance(logging.NullHandler(), krait.Handler) and callable(krait.Handler.setFormatter)
logging.config.dictConfig({"version": 1, "handlers": {"k": {"class": "krait.Handler"}}, "root": {"handlers": ["k"]}})
(handler,) = logging.root.handlers
assert type(handler) is type(plain)
try: krait.missing
except AttributeError as e: print(e)
"""
    done = python.run("-S", "-c", program, env={**os.environ, **PACKAGE})
    assert (done.returncode, done.stdout) == (0, "module 'krait' has no attribute 'missing'\n"), done.stderr


IN_ANOTHER_INTERPRETER = """
import krait
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
def use(name):
    with krait.span("span of " + name) as span:
        span.set(late=name)
    krait.mark("mark of " + name)
use("one")
other = interpreters.create()
getattr(interpreters, "exec", getattr(interpreters, "run_string", None))(other, "import krait\\nkrait.mark('inside')\\nwith krait.span('s') as s: s.set(a=1)")
use("two")
interpreters.destroy(other)
use("three")
"""


def test_the_main_interpreters_marks_stay_right_beside_another_one(record, run, python):
    if python.number < (3, 12):
        pytest.skip("interpreters share what is loaded")
    recorded = record.text(python, IN_ANOTHER_INTERPRETER, env=ENV)
    assert "krait: marks and spans are recorded in the main interpreter alone, not in this one: " in recorded.stderr, recorded.stderr
    text = run("cat", "--filter", 'name == "user:mark" || name == "span:end"', recorded.path).stdout
    for name in "one", "two", "three":
        assert len(re.findall(rf'user:mark: .*"mark of {name}"', text)) == len(re.findall(rf'span:end: .*late\\*": *\\*"{name}', text)) == 1, text
