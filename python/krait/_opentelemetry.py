"""krait.SpanProcessor; a module of its own, so that `import krait` does not import OpenTelemetry."""
from opentelemetry.sdk.trace import SpanProcessor as _SpanProcessor

from krait import _OWN
from krait import is_recording as _is_recording
from krait import span as _span

_MOST_OPEN = 100_000  # spans that never end would fill the memory


def _text(value):
    """An attribute's value as krait's fields have it."""
    return list(value) if isinstance(value, tuple) else value


class SpanProcessor(_SpanProcessor):
    """Record OpenTelemetry's spans as spans of the recording that runs, if one does.

        provider.add_span_processor(krait.SpanProcessor())

    Fields are the attributes, and trace_id, span_id, parent_id, kind and status as OpenTelemetry writes them. It sends nothing
    anywhere; other processors see the same spans as before.
    """

    def __init__(self):
        self._open = {}

    def on_start(self, span, parent_context=None):
        if not _is_recording() or len(self._open) >= _MOST_OPEN:
            return
        context, parent = span.get_span_context(), span.parent
        fields = {"trace_id": "%032x" % context.trace_id, "span_id": "%016x" % context.span_id, "kind": span.kind.name}
        if parent is not None:
            fields["parent_id"] = "%016x" % parent.span_id
        fields.update((name, _text(value)) for name, value in (span.attributes or {}).items() if name not in fields)
        opened = _span(span.name, **fields)
        opened.__enter__()
        self._open[context.span_id] = opened, dict(span.attributes or ())

    def on_end(self, span):
        opened, known = self._open.pop(span.get_span_context().span_id, (None, None))
        if opened is None:
            return
        late = {name: _text(value) for name, value in (span.attributes or {}).items() if known.get(name) != value}
        opened.set(status=span.status.status_code.name, **late)
        opened.__exit__(None, None, None)

    def shutdown(self):
        self._open.clear()


# What runs below functions of this file is not recorded. Of these it is; readers leave them out by this name.
for _function in (SpanProcessor.on_start, SpanProcessor.on_end):
    _function.__code__ = _function.__code__.replace(co_filename=_OWN)
