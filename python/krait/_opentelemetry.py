"""krait.SpanProcessor and krait.SpanExporter; a module of its own, so that `import krait` does not import OpenTelemetry."""
from functools import partial as _partial
from weakref import ref as _ref

from opentelemetry.sdk.trace import SpanProcessor as _SpanProcessor
from opentelemetry.sdk.trace.export import SpanExporter as _SpanExporter
from opentelemetry.sdk.trace.export import SpanExportResult as _SpanExportResult

from krait import _OWN
from krait import is_recording as _is_recording
from krait import mark as _mark
from krait import span as _span

try:
    from krait._agent import _link_from, _link_to, _tell_mark, _tell_span
except Exception:  # no native part: is_recording() is False

    def _link_from(*unused):
        pass

    _link_to = _tell_mark = _tell_span = _link_from

_MOST_OPEN = 100_000  # spans that are kept and never end would fill the memory
_MOST_LINKS = 16  # of a span, as arrows
_DROPPED = ("dropped_attributes", "dropped_events", "dropped_links")


def _text(value):
    """An attribute's value as krait's fields have it."""
    return list(value) if isinstance(value, tuple) else value


def _add(fields, attributes):
    for name, value in (attributes or {}).items():
        fields.setdefault(name, _text(value))
    return fields


def _ids(context):
    return {"trace_id": "%032x" % context.trace_id, "span_id": "%016x" % context.span_id}


def _link_id(context):
    """Of the span of a context, the same in every process: 64 bits."""
    return (context.trace_id ^ context.trace_id >> 64 ^ context.span_id) & 0xFFFFFFFFFFFFFFFF


def _linked(span):
    """Its links. Older versions of OpenTelemetry keep those without a context, too."""
    return [link for link in span.links if hasattr(getattr(link, "context", None), "span_id")]


def _links(span):
    return [_add(_ids(link.context), link.attributes) for link in _linked(span)]


def _begin_fields(span):
    """What is known of a span when it begins."""
    fields = _ids(span.get_span_context())
    fields["kind"] = getattr(span.kind, "name", span.kind)
    if span.parent is not None:
        fields["parent_id"] = "%016x" % span.parent.span_id
    service = span.resource.attributes.get("service.name", "unknown_service")
    if not str(service).startswith("unknown_service"):
        fields["service.name"] = service
    if span.links:
        fields["links"] = _links(span)
    return fields


def _end_fields(span):
    """What is known when it has ended."""
    fields = {"status": span.status.status_code.name}
    if span.status.description is not None:
        fields["status_description"] = span.status.description
    for name in _DROPPED:
        if getattr(span, name, 0):
            fields[name] = getattr(span, name)
    return fields


def _event_fields(span_id, attributes):
    return _add({"span_id": span_id}, attributes)


def _note_event(span_id, name, attributes=None, timestamp=None):
    """With a mark of this thread at this time. An event to which the program gives a time is there instead."""
    if timestamp is not None:
        _tell_mark(name, _ns(timestamp), _event_fields(span_id, attributes))
    else:
        _mark(name, **_event_fields(span_id, attributes))


def _add_event(add_event, span, span_id, *given, **named):
    """The add_event of a span, before that which it had. A span that has ended takes no events, and OpenTelemetry says so."""
    try:
        if span.is_recording():
            _note_event(span_id, *given, **named)
    except Exception:  # OpenTelemetry says what is wrong with it
        pass
    return add_event(*given, **named)


def _give_back(span):
    """Its own add_event to a span that is not open any more. Another library's, around krait's, stays. None: it is gone."""
    ours = getattr(span, "__dict__", {}).get("add_event")
    if getattr(ours, "func", None) is not _add_event:
        return
    before = ours.args[0]
    if getattr(before, "__func__", None) is type(span).add_event:
        del span.__dict__["add_event"]
    else:
        span.add_event = before


def _ns(time):
    """Programs also give OpenTelemetry numbers that are no int."""
    return max(int(time), 0)


class SpanProcessor(_SpanProcessor):
    """Record OpenTelemetry's spans as spans of the recording that runs, if one does, where and when they begin and end.

        provider.add_span_processor(krait.SpanProcessor())

    Fields are the attributes, and trace_id, span_id, parent_id, kind, service.name, links, status and status_description as
    OpenTelemetry writes them. Events of a span are marks, links are arrows. It sends nothing anywhere; other processors see the
    same spans as before.
    """

    def __init__(self):
        self._open = {}

    def on_start(self, span, parent_context=None):
        if not _is_recording() or len(self._open) >= _MOST_OPEN:
            return
        try:
            opened, links = self._begin(span)
            opened.__enter__()
            _link_from(links[0])
            for link in links[1:]:
                _link_to(link)
        except Exception:  # programs give spans what OpenTelemetry does not check, and would get what is raised here
            pass

    def on_end(self, span):
        if not self._open:
            return
        opened, name = self._end(span)
        if opened is None:
            return
        if name is not None:
            opened._rename(name)
        opened.__exit__(None, None, None)

    def _begin(self, span):
        """krait's span, and the ids of this one and of those that it links to."""
        context, attributes, links = span.get_span_context(), dict(span.attributes or ()), _linked(span)
        opened = _span(span.name, **_add(_begin_fields(span), attributes))
        span_id, known = context.span_id, self._open
        live = _ref(span, lambda _: known.pop(span_id, None))  # the program has dropped it without an end
        known[span_id] = opened, live, span.name, attributes, len(links)
        span.add_event = _partial(_add_event, span.add_event, span, "%016x" % span_id)
        return opened, [_link_id(context), *(_link_id(link.context) for link in links[:_MOST_LINKS])]

    def _end(self, span):
        """krait's span, with its last fields, and its name where that is another one than at its begin."""
        opened, live, name, known, links = self._open.pop(span.get_span_context().span_id, (None,) * 5)
        if opened is None:
            return None, None
        _give_back(live())
        try:
            fields = _end_fields(span)
            if len(_linked(span)) != links:
                fields["links"] = _links(span)
            late = {name: value for name, value in (span.attributes or {}).items() if known.get(name) != value}
            opened.set(**_add(fields, late))
            return opened, span.name if span.name != name else None
        except Exception:  # as on_start
            return opened, None

    def shutdown(self):
        while self._open:
            _, live, *_ = self._open.popitem()[1]
            _give_back(live())


def _told(span):
    """What is told of a span that has ended, and of its events."""
    fields = _add(_add(_begin_fields(span), _end_fields(span)), span.attributes)
    events = [(event.name, _ns(event.timestamp), _event_fields(fields["span_id"], event.attributes)) for event in span.events]
    return (span.name, _ns(span.start_time), _ns(span.end_time), fields), events


class SpanExporter(_SpanExporter):
    """Record OpenTelemetry's spans after they have ended, with their own begin and end.

        provider.add_span_processor(BatchSpanProcessor(krait.SpanExporter()))

    A span that is exported does not say which thread it was in: it is in a lane of its process, with its events in another one.
    SpanProcessor records the thread and the task, too; of the two a program needs one.
    """

    def export(self, spans):
        if _is_recording():
            for span in spans:
                try:
                    told, events = _told(span)
                    _tell_span(*told)
                    for event in events:
                        _tell_mark(*event)
                except Exception:  # of one that is odd: the others are told
                    pass
        return _SpanExportResult.SUCCESS

    def shutdown(self):
        pass

    def force_flush(self, timeout_millis=30000):
        return True


# What runs below functions of this file is not recorded. Of these it is; readers leave them out by this name.
for _function in (SpanProcessor.on_start, SpanProcessor.on_end, SpanExporter.export, _add_event, _note_event):
    _function.__code__ = _function.__code__.replace(co_filename=_OWN)
