# SPDX-License-Identifier: Apache-2.0
"""CTF 2 metadata and streams made field by field."""

import json

PREAMBLE = {"type": "preamble", "version": 2}


def u(bits, **more):
    return {"type": "fixed-length-unsigned-integer", "length": bits, "byte-order": "little-endian", "alignment": 8} | more


def struct_of(**members):
    return {"type": "structure", "member-classes": [{"name": k, "field-class": v} for k, v in members.items()]}


def sequence(*fragments):
    return b"".join(b"\x1e" + json.dumps(fragment).encode() + b"\n" for fragment in fragments)


def event(payload, **more):
    return {"type": "event-record-class", "name": "e", "payload-field-class": payload} | more


def lossy(folder, *streams, instance=True, times=True, clock=True):
    """Streams of packets (begin, end, discarded events, sequence number), an event in each; `instance`: of that stream."""
    header = {"s": u(8, roles=["data-stream-class-id"])} | ({"i": u(8, roles=["data-stream-id"])} if instance else {})
    context = {"b": u(8, roles=["default-clock-timestamp"]), "e": u(8, roles=["packet-end-default-clock-timestamp"])} if times else {}
    context |= {"d": u(8, roles=["discarded-event-record-counter-snapshot"]), "q": u(8, roles=["packet-sequence-number"]),
                "l": u(8, roles=["packet-total-length"])}
    stream = {"type": "data-stream-class", "id": 3, "packet-context-field-class": struct_of(**context)}
    clocks = [{"type": "clock-class", "id": "c", "frequency": 1000000000, "origin": "unix-epoch"}] if clock else []
    if clock:
        stream |= {"default-clock-class-id": "c", "event-record-header-field-class": struct_of(t=u(8, roles=["default-clock-timestamp"]))}
    (folder / "metadata").write_bytes(sequence(
        PREAMBLE, {"type": "trace-class", "packet-header-field-class": struct_of(**header)}, *clocks, stream,
        event(struct_of(x=u(8))) | {"data-stream-class-id": 3}))
    for i, packets in enumerate(streams):
        data = b""
        for begin, end, discarded, seq in packets:
            parts = [3] + [7 + i] * instance + [begin, end] * times + [discarded, seq]
            tail = [begin] * clock + [1]
            data += bytes([*parts, (len(parts) + 1 + len(tail)) * 8, *tail])
        (folder / f"s{i}").write_bytes(data)
    return folder
