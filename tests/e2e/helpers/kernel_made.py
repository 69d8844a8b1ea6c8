# SPDX-License-Identifier: Apache-2.0
"""LTTng's traces made up, event by event, as CTF 1.8: of the kernel, or with another `domain`.

    events = [(us, cpu, name, {field: number or text}), ...]      a field "NAME of context" is of the event's context
    write(folder, events)

A stream for each CPU, of one packet; `offset` (ns) is the clock's zero, after the epoch; `lost` says how many events a
second, empty packet tells that the tracer lost. `losses` are (cpu, us, end): behind the events up to us one is lost; so says
the packet that follows them, as krait's, or with `end` theirs, which goes on until then, as LTTng's. `cuts` are times (us) behind
which the streams begin a new packet.
`numbered` is the first packets' number. `unit` is what one us of all these is instead, in nanoseconds. `tracer` is the
tracer's name.
"""

import struct
from collections import namedtuple

EPOCH = 1767225600 * 10**9  # time 0 of tests/synth.c, in nanoseconds
OF_CONTEXT = " of context"
CONTEXT = "tid" + OF_CONTEXT
Label = namedtuple("Label", "name value")  # a number with a name, as functions' addresses have
PACKET = struct.Struct("<IQQQQQQI")  # magic, begin, end, content, size, sequence, discarded, cpu_id

METADATA = """\
/* CTF 1.8 */
typealias integer {{ size = 16; align = 8; }} := u16;
typealias integer {{ size = 32; align = 8; }} := u32;
typealias integer {{ size = 64; align = 8; }} := u64;
typealias integer {{ size = 64; align = 8; signed = true; }} := i64;
trace {{ major = 1; minor = 8; byte_order = le; packet.header := struct {{ u32 magic; }}; }};
env {{ domain = "{domain}"; hostname = "{host}"; sysname = "Linux"; kernel_release = "{release}"; {tracer}}};
clock {{ name = monotonic; freq = 1000000000; offset = {offset}; absolute = true; }};
typealias integer {{ size = 64; align = 8; map = clock.monotonic.value; }} := time_t;
stream {{
    event.header := struct {{ u16 id; time_t timestamp; }};
    packet.context := struct {{ time_t timestamp_begin; time_t timestamp_end; u64 content_size; u64 packet_size;
                               u64 packet_seq_num; u64 events_discarded; u32 cpu_id; }};
    {context}
}};
"""


def payload(fields):
    values = (v for k, v in fields.items() if not k.endswith(OF_CONTEXT))
    return b"".join(v.encode() + b"\0" if isinstance(v, str) else struct.pack("<q", getattr(v, "value", v)) for v in values)


def kind(name, field, events):
    """The type of a field: an enumeration of all that are seen where there is a label."""
    values = [fields[field] for _, _, event, fields in events if event == name]
    labels = {(v.name, v.value & ~7) for v in values if isinstance(v, Label)}
    text = ", ".join(f'"{label}" = {value} ... {value + 7}' for label, value in sorted(labels))
    return "string" if isinstance(values[0], str) else f"enum : i64 {{ {text} }}" if labels else "i64"


def packet(cpu, number, begin, end, discarded, content):
    bits = (PACKET.size + len(content)) * 8
    return PACKET.pack(0xC1FC1FC1, begin, end, bits, bits, number, discarded, cpu) + content


def write(folder, events, host="made", lost=0, offset=0, release="", losses=(), numbered=0, domain="kernel", unit=1000, tracer="", cuts=()):
    folder.mkdir(parents=True, exist_ok=True)
    classes = {}
    for _, _, name, fields in events:
        if name not in classes:
            classes[name] = {field: kind(name, field, events) for field in fields if not field.endswith(OF_CONTEXT)}
    contexts = sorted({field for *_, fields in events for field in fields if field.endswith(OF_CONTEXT)})
    members = "".join(f" i64 _{field.removesuffix(OF_CONTEXT)};" for field in contexts)
    context = f"event.context := struct {{{members} }};" if contexts else ""
    text = METADATA.format(domain=domain, host=host, release=release, offset=offset, context=context, tracer=tracer and f'tracer_name = "{tracer}"; ')
    for number, (name, fields) in enumerate(classes.items()):
        members = "".join(f" {kind} _{field};" for field, kind in fields.items())
        text += f'event {{ name = "{name}"; id = {number}; fields := struct {{{members} }}; }};\n'
    (folder / "metadata").write_text(text)

    def content(own):
        for us, _, name, fields in own:
            yield struct.pack("<HQ", list(classes).index(name), us * unit)
            yield b"".join(struct.pack("<q", fields.get(field, 0)) for field in contexts)
            yield payload(fields)

    for cpu in {e[1] for e in events}:
        own, stream, discarded, number, begin = [e for e in events if e[1] == cpu], b"", 0, numbered, None
        ends = sorted([(us, 1, end) for of, us, end in losses if of == cpu] + [(us, 0, None) for us in cuts if us < own[-1][0]])
        for last, loses, until in [*ends, (own[-1][0], 0, None)]:
            part, own = [e for e in own if e[0] <= last], [e for e in own if e[0] > last]
            if not part and not loses:
                continue
            begin = (part[0][0] if part else last) if begin is None else begin
            end = until or (last if loses else part[-1][0])
            stream += packet(cpu, number, begin * unit, end * unit, discarded + bool(until), b"".join(content(part)))
            discarded, number, begin = discarded + loses, number + 1, until
        end = last * unit
        stream += packet(cpu, number, end, end, lost, b"") if lost else b""
        (folder / f"channel0_{cpu}").write_bytes(stream)
    return folder


def switch(us, before, after, state=0, cpu=0, **more):
    fields = {"prev_comm": f"t{before}", "prev_tid": before, "prev_state": state, "next_comm": f"t{after}", "next_tid": after}
    return (us, cpu, "sched_switch", {**fields, **more})


def wake(us, tid, cpu=0, name="sched_wakeup", **more):
    return (us, cpu, name, {"tid": tid, **more})


def fork(us, parent, child, cpu=0):
    fields = {"parent_tid": parent, "child_comm": f"t{child}", "child_tid": child, "child_pid": child}
    return (us, cpu, "sched_process_fork", fields)


def used_again(us, tid, parent, cpu=0):
    """A thread ends on a CPU, and `parent` makes another of its number; to be unpacked."""
    return switch(us, tid, 0, 0x10, cpu=cpu, prev_comm="first"), fork(us + 1, parent, tid), switch(us + 2, 0, tid, cpu=cpu)


def dump(us, tid, kind, status, cpu=0):
    return (us, cpu, "lttng_statedump_process_state", {"tid": tid, "pid": tid, "name": f"t{tid}", "type": kind, "status": status})


def dumped_wait(us, tid, call, prev_state=1, cmd=0, cpu=0):
    """krait's own: what a waiting thread is in while the machine's state is dumped."""
    return (us, cpu, "krait_dumped_wait", {"tid": tid, "call_name": call, "cmd": cmd, "prev_state": prev_state})


def begins(us, call, cpu=0, **more):
    return (us, cpu, f"syscall_entry_{call}", more)


def ends(us, call, ret=0, cpu=0, **more):
    return (us, cpu, f"syscall_exit_{call}", {**more, "ret": ret})


def knows_itself(us, own, cpu=0):
    """Who runs there asks for its number in its namespace; to be unpacked: *knows_itself(...)."""
    return begins(us, "gettid", cpu=cpu), ends(us + 1, "gettid", own, cpu=cpu)


def event(us, name, /, cpu=0, **fields):
    return (us, cpu, name, fields)
