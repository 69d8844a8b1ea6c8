/* SPDX-License-Identifier: Apache-2.0 */
#include "ctf/write/tsdl_write.h"

#include "base/clock.h"
#include "ctf/format.h"
#include "event/event.h"

#include <string.h>

void krait_tsdl_write_literal(struct krait_buf *out, const char *s)
{
    krait_buf_char(out, '"');
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            krait_buf_fmt(out, "\\%c", c);
        else if (c == '\n')
            krait_buf_str(out, "\\n");
        else if (c < 0x20 || c == 0x7f)
            krait_buf_fmt(out, "\\%03o", c);
        else
            krait_buf_char(out, *s);
    }
    krait_buf_char(out, '"');
}

void krait_tsdl_write_uuid(struct krait_buf *out, const uint8_t uuid[16])
{
    for (int i = 0; i < 16; i++)
        krait_buf_fmt(out, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
}

static void add_types(struct krait_buf *out)
{
    static const struct {
        const char *name;
        unsigned bits;
        bool is_signed;
    } ints[] = { { "u5", 5, false },   { "u8", 8, false },  { "u16", 16, false }, { "u32", 32, false },
                 { "u64", 64, false }, { "i32", 32, true }, { "i64", 64, true } };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(ints); i++)
        krait_buf_fmt(out, "typealias integer { size = %u; align = %u; signed = %s; } := %s;\n", ints[i].bits,
                      ints[i].bits == 5 ? 1u : 8u, ints[i].is_signed ? "true" : "false", ints[i].name);
    krait_buf_str(out, "typealias floating_point { exp_dig = 11; mant_dig = 53; align = 8; } := f64;\n"
                       "typealias string { encoding = UTF8; } := str;\n");
}

static void add_trace(struct krait_buf *out, const struct krait_tsdl *tsdl)
{
    krait_buf_str(out, "\ntrace {\n    major = 1;\n    minor = 8;\n    uuid = \"");
    krait_tsdl_write_uuid(out, tsdl->uuid);
    krait_buf_fmt(out, "\";\n    byte_order = %s;\n",
                  __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? "le" : "be");
    krait_buf_str(out, "    packet.header := struct {\n        u32 magic;\n        u8 uuid[16];\n"
                       "        u32 stream_id;\n        u64 stream_instance_id;\n    };\n};\n");
}

static void add_samples(struct krait_buf *out, const struct krait_tsdl_samples *samples)
{
    krait_buf_fmt(
        out,
        "    sampled = \"outside\";\n    sample_rate = %llu;\n    samples = %llu;\n    samples_dropped = %llu;\n"
        "    sample_rounds = %llu;\n    sample_ns = %llu;\n    sample_weight_ns = %llu;\n",
        (unsigned long long)samples->rate, (unsigned long long)samples->taken,
        (unsigned long long)samples->dropped, (unsigned long long)samples->rounds,
        (unsigned long long)samples->ns,
        (unsigned long long)(samples->intervals_ns > 0 ? samples->squares_ns2 / samples->intervals_ns : 0));
}

static void add_text(struct krait_buf *out, const char *name, const char *text)
{
    krait_buf_fmt(out, "    %s = ", name);
    krait_tsdl_write_literal(out, text);
    krait_buf_str(out, ";\n");
}

void krait_tsdl_write_amounts(struct krait_buf *out, const struct krait_tsdl_recording *recording)
{
    krait_buf_fmt(out, "    ring_size = %llu;\n    buffer_size = %llu;\n    buffer_used = %llu;\n",
                  (unsigned long long)recording->ring_bytes, (unsigned long long)recording->buffer_bytes,
                  (unsigned long long)recording->grown_bytes);
    if (!recording->dropped_events)
        return;
    krait_buf_fmt(out, "    dropped_events = %llu;\n    kept_from = %llu;\n",
                  (unsigned long long)recording->dropped_events, (unsigned long long)recording->kept_from);
    if (recording->dropped_for)
        add_text(out, "dropped_for", recording->dropped_for);
}

static void add_recording(struct krait_buf *out, const struct krait_tsdl_recording *recording)
{
    if (recording->limit)
        add_text(out, "recording_limit", recording->limit);
    if (recording->args)
        add_text(out, "recording_args", recording->args);
    if (recording->samples)
        add_samples(out, recording->samples);
    else
        krait_tsdl_write_amounts(out, recording);
}

static void add_contents(struct krait_buf *out, const struct krait_tsdl_contents *contents)
{
    const char *blank = "";
    krait_buf_fmt(out, "    gil_waits = %llu;\n    other_events = \"",
                  (unsigned long long)contents->gil_waits);
    for (uint32_t id = 0; id < KRAIT_EVENT_IDS; id++) {
        if (!contents->others[id])
            continue;
        krait_buf_fmt(out, "%s%u", blank, id);
        blank = " ";
    }
    krait_buf_str(out, "\";\n");
}

static void add_env(struct krait_buf *out, const struct krait_tsdl *tsdl)
{
    krait_buf_str(out, "\nenv {\n    domain = \"ust\";\n    hostname = ");
    krait_tsdl_write_literal(out, tsdl->host);
    krait_buf_str(out, ";\n    procname = ");
    krait_tsdl_write_literal(out, tsdl->procname);
    krait_buf_fmt(out, ";\n    vpid = %u;\n    command = ", tsdl->vpid);
    krait_tsdl_write_literal(out, tsdl->command);
    krait_buf_fmt(out,
                  ";\n    tracer_name = \"krait\";\n    tracer_version = \"%s\";\n"
                  "    krait_format_major = %d;\n    krait_format_minor = %d;\n",
                  KRAIT_VERSION, KRAIT_FORMAT_MAJOR, KRAIT_EVENT_ROWS);
    if (tsdl->contents)
        add_contents(out, tsdl->contents);
    if (tsdl->recording)
        add_recording(out, tsdl->recording);
    krait_buf_str(out, "};\n");
}

/* Absolute: the offset is from the epoch. babeltrace2 takes LTTng's clocks for that whatever they say, and
 * joins no others with them (its visitor-generate-ir.c). */
void krait_tsdl_write_clock(struct krait_buf *out, const struct krait_tsdl_clock *clock)
{
    krait_buf_fmt(out,
                  "\nclock {\n    name = \"monotonic\";\n    uuid = \"%s\";\n    description = \"%s\";\n"
                  "    freq = %llu;\n    offset_s = %llu;\n    offset = %llu;\n    absolute = true;\n};\n",
                  clock->uuid, clock->tsc ? KRAIT_CLOCK_COUNTER : "CLOCK_MONOTONIC",
                  (unsigned long long)clock->freq, (unsigned long long)clock->offset_s,
                  (unsigned long long)clock->offset);
}

static void add_time_types(struct krait_buf *out)
{
    krait_buf_str(out, "typealias integer { size = 27; align = 1; signed = false;"
                       " map = clock.monotonic.value; } := u27_time;\n"
                       "typealias integer { size = 64; align = 8; signed = false;"
                       " map = clock.monotonic.value; } := u64_time;\n");
}

/* One event header for all: see format.h. */
static void add_stream(struct krait_buf *out)
{
    krait_buf_str(out, "\nstruct event_header {\n"
                       "    enum : u5 { compact = 0 ... 30, extended = 31 } id;\n"
                       "    variant <id> {\n"
                       "        struct { u27_time timestamp; } compact;\n"
                       "        struct { u32 id; u64_time timestamp; } extended;\n"
                       "    } v;\n} align(8);\n"
                       "\nstruct packet_context {\n"
                       "    u64_time timestamp_begin;\n    u64_time timestamp_end;\n"
                       "    u64 content_size;\n    u64 packet_size;\n    u64 packet_seq_num;\n"
                       "    u64 events_discarded;\n    u32 vtid;\n};\n"
                       "\nstream {\n    id = 0;\n    event.header := struct event_header;\n"
                       "    packet.context := struct packet_context;\n};\n");
}

/* enum code: id 0 is what could not be named. Equal labels are ranges of one label, as TSDL has it. */
static void add_codes(struct krait_buf *out, const struct krait_tsdl *tsdl)
{
    krait_buf_str(out, "\ntypealias enum : u32 {\n    \"?\" = 0,\n");
    for (size_t i = 0; i < tsdl->code_count; i++) {
        krait_buf_str(out, "    ");
        krait_tsdl_write_literal(out, tsdl->codes[i].label);
        krait_buf_fmt(out, " = %u,\n", tsdl->codes[i].id);
    }
    krait_buf_str(out, "} := code;\n");
}

static void add_enums(struct krait_buf *out)
{
    const char *open = NULL;
    for (size_t i = 0; i < krait_enum_count; i++) {
        const struct krait_enum_row *row = &krait_enums[i];
        if (open && strcmp(open, row->enumeration) != 0)
            krait_buf_fmt(out, " } := %s;\n", open);
        if (!open || strcmp(open, row->enumeration) != 0)
            krait_buf_str(out, "typealias enum : u8 {");
        open = row->enumeration;
        krait_buf_fmt(out, " \"%s\" = %u,", row->label, row->value);
    }
    if (open)
        krait_buf_fmt(out, " } := %s;\n", open);
}

/* Fields bear LTTng's leading underscore, which readers take off: no name can then be a keyword. */
static void add_events(struct krait_buf *out)
{
    for (size_t i = 0; i < krait_event_count; i++) {
        const struct krait_event_row *event = &krait_events[i];
        krait_buf_fmt(
            out, "\nevent {\n    name = \"%s\";\n    id = %u;\n    stream_id = 0;\n    fields := struct {\n",
            event->name, event->id);
        for (size_t f = 0; f < event->field_count; f++)
            krait_buf_fmt(out, "        %s _%s;\n", event->fields[f].type, event->fields[f].name);
        krait_buf_str(out, "    };\n};\n");
    }
}

void krait_tsdl_write(struct krait_buf *out, const struct krait_tsdl *tsdl)
{
    krait_buf_str(out, "/* CTF 1.8 */\n\n");
    add_types(out);
    add_trace(out, tsdl);
    add_env(out, tsdl);
    krait_tsdl_write_clock(out, &tsdl->clock);
    add_time_types(out);
    add_stream(out);
    add_codes(out, tsdl);
    add_enums(out);
    add_events(out);
}
