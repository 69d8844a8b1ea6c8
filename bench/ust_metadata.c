/* SPDX-License-Identifier: Apache-2.0
 *
 * The metadata of gen_ust's traces, twice: in TSDL and in JSON.
 */
#include "ust_events.h"

#include <inttypes.h>

/* ---- TSDL ---- */

static const char TSDL_TRACE[] =
    "/* CTF 1.8 */\n\n"
    "typealias integer { size = 8; align = 8; signed = false; } := uint8_t;\n"
    "typealias integer { size = 16; align = 8; signed = false; } := uint16_t;\n"
    "typealias integer { size = 32; align = 8; signed = false; } := uint32_t;\n"
    "typealias integer { size = 64; align = 8; signed = false; } := uint64_t;\n"
    "typealias integer { size = 64; align = 8; signed = false; } := unsigned long;\n"
    "typealias integer { size = 5; align = 1; signed = false; } := uint5_t;\n"
    "typealias integer { size = 27; align = 1; signed = false; } := uint27_t;\n\n"
    "trace {\n\tmajor = 1;\n\tminor = 8;\n\tuuid = \"" UST_UUID "\";\n\tbyte_order = le;\n"
    "\tpacket.header := struct {\n\t\tuint32_t magic;\n\t\tuint8_t  uuid[16];\n\t\tuint32_t stream_id;\n"
    "\t\tuint64_t stream_instance_id;\n\t};\n};\n\n"
    "env {\n\thostname = \"host\";\n\tdomain = \"ust\";\n\ttracer_name = \"lttng-ust\";\n\ttracer_major = "
    "2;\n"
    "\ttracer_minor = 13;\n\ttracer_buffering_scheme = \"uid\";\n\ttracer_buffering_id = 1000;\n"
    "\tarchitecture_bit_width = 64;\n\ttrace_name = \"server\";\n};\n\n"
    "clock {\n\tname = \"monotonic\";\n\tuuid = \"6d1e1f3c-7f5e-4a0b-8d5e-2f4f1c7a9b10\";\n"
    "\tdescription = \"Monotonic Clock\";\n\tfreq = 1000000000; /* Frequency, in Hz */\n";

static const char TSDL_STREAMS[] =
    "typealias integer {\n\tsize = 27; align = 1; signed = false;\n\tmap = clock.monotonic.value;\n} := "
    "uint27_clock_monotonic_t;\n\n"
    "typealias integer {\n\tsize = 32; align = 8; signed = false;\n\tmap = clock.monotonic.value;\n} := "
    "uint32_clock_monotonic_t;\n\n"
    "typealias integer {\n\tsize = 64; align = 8; signed = false;\n\tmap = clock.monotonic.value;\n} := "
    "uint64_clock_monotonic_t;\n\n"
    "struct packet_context {\n\tuint64_clock_monotonic_t timestamp_begin;\n"
    "\tuint64_clock_monotonic_t timestamp_end;\n\tuint64_t content_size;\n\tuint64_t packet_size;\n"
    "\tuint64_t packet_seq_num;\n\tunsigned long events_discarded;\n\tuint32_t cpu_id;\n};\n\n"
    "struct event_header_compact {\n\tenum : uint5_t { compact = 0 ... 30, extended = 31 } id;\n"
    "\tvariant <id> {\n\t\tstruct {\n\t\t\tuint27_clock_monotonic_t timestamp;\n\t\t} compact;\n"
    "\t\tstruct {\n\t\t\tuint32_t id;\n\t\t\tuint64_clock_monotonic_t timestamp;\n\t\t} extended;\n"
    "\t} v;\n} align(8);\n\n"
    "struct event_header_large {\n\tenum : uint16_t { compact = 0 ... 65534, extended = 65535 } id;\n"
    "\tvariant <id> {\n\t\tstruct {\n\t\t\tuint32_clock_monotonic_t timestamp;\n\t\t} compact;\n"
    "\t\tstruct {\n\t\t\tuint32_t id;\n\t\t\tuint64_clock_monotonic_t timestamp;\n\t\t} extended;\n"
    "\t} v;\n} align(8);\n\n";

static void tsdl_integer(struct krait_buf *out, const struct ust_field *f, const char *encoding)
{
    krait_buf_fmt(out, "integer { size = %u; align = 8; signed = %d; encoding = %s; base = %u; }", f->bits,
                  f->kind == UST_SIGNED, encoding, f->base);
}

static void tsdl_enum(struct krait_buf *out, const struct ust_field *f)
{
    krait_buf_str(out, "enum : ");
    tsdl_integer(out, f, "none");
    krait_buf_str(out, " {\n");
    for (unsigned i = 0; i < f->words->count; i++)
        krait_buf_fmt(out, "\t\t\t\"%s\" = %u,\n", f->words->word[i], i);
    krait_buf_fmt(out, "\t\t} _%s;\n", f->name);
}

static void tsdl_number(struct krait_buf *out, const struct ust_field *f)
{
    if (f->words) {
        tsdl_enum(out, f);
        return;
    }
    tsdl_integer(out, f, "none");
    krait_buf_fmt(out, " _%s;\n", f->name);
}

static void tsdl_float(struct krait_buf *out, const struct ust_field *f)
{
    krait_buf_fmt(out, "floating_point { exp_dig = %d; mant_dig = %d; align = 8; } _%s;\n",
                  f->bits == 32 ? 8 : 11, f->bits == 32 ? 24 : 53, f->name);
}

static void tsdl_string(struct krait_buf *out, const struct ust_field *f)
{
    krait_buf_fmt(out, "string _%s;\n", f->name);
}

static void tsdl_text(struct krait_buf *out, const struct ust_field *f)
{
    struct ust_field letter = { .kind = UST_SIGNED, .bits = 8, .base = 10 };
    tsdl_integer(out, &letter, "UTF8");
    krait_buf_fmt(out, " _%s[%u];\n", f->name, f->length);
}

static void tsdl_array(struct krait_buf *out, const struct ust_field *f)
{
    tsdl_integer(out, f, "none");
    krait_buf_fmt(out, " _%s[%u];\n", f->name, f->length);
}

static void tsdl_sequence(struct krait_buf *out, const struct ust_field *f)
{
    struct ust_field length = { .bits = 64, .base = 10 };
    tsdl_integer(out, &length, "none");
    krait_buf_fmt(out, " __%s_length;\n\t\t", f->name);
    tsdl_integer(out, f, "none");
    krait_buf_fmt(out, " _%s[ __%s_length ];\n", f->name, f->name);
}

static void (*const TSDL[])(struct krait_buf *out, const struct ust_field *f) = {
    [UST_UNSIGNED] = tsdl_number,   [UST_SIGNED] = tsdl_number, [UST_FLOAT] = tsdl_float,
    [UST_STRING] = tsdl_string,     [UST_TEXT] = tsdl_text,     [UST_ARRAY] = tsdl_array,
    [UST_SEQUENCE] = tsdl_sequence,
};

static void tsdl_fields(struct krait_buf *out, const struct ust_field *f, size_t most)
{
    krait_buf_str(out, "struct {\n");
    for (size_t i = 0; i < most && f[i].name; i++) {
        krait_buf_str(out, "\t\t");
        TSDL[f[i].kind](out, &f[i]);
    }
    krait_buf_str(out, "\t};\n");
}

static void tsdl_channel(struct krait_buf *out, unsigned id)
{
    const struct ust_channel *channel = &ust_channels[id];
    krait_buf_fmt(out,
                  "stream {\n\tid = %u;\n\tevent.header := struct event_header_%s;\n"
                  "\tpacket.context := struct packet_context;\n\tevent.context := ",
                  id, channel->large ? "large" : "compact");
    tsdl_fields(out, channel->context, sizeof(channel->context) / sizeof(*channel->context));
    krait_buf_str(out, "};\n\n");
    for (unsigned i = 0; i < channel->count; i++) {
        const struct ust_event *event = &channel->events[i];
        krait_buf_fmt(
            out, "event {\n\tname = \"%s\";\n\tid = %u;\n\tstream_id = %u;\n\tloglevel = %d;\n\tfields := ",
            event->name, i, id, event->level);
        tsdl_fields(out, event->fields, UST_FIELDS);
        krait_buf_str(out, "};\n\n");
    }
}

void ust_metadata_tsdl(struct krait_buf *out)
{
    krait_buf_str(out, TSDL_TRACE);
    krait_buf_fmt(
        out, "\t/* clock value offset from Epoch is: offset * (1/freq) */\n\toffset = %" PRIu64 ";\n};\n\n",
        (uint64_t)UST_CLOCK_OFFSET);
    krait_buf_str(out, TSDL_STREAMS);
    for (unsigned i = 0; i < UST_CHANNELS; i++)
        tsdl_channel(out, i);
}

/* ---- CTF 2 ---- */

#define JSON_INTEGER "\"type\":\"fixed-length-unsigned-integer\",\"byte-order\":\"little-endian\""
#define JSON_U(name, bits, align, more)                                                                   \
    "{\"name\":\"" name "\",\"field-class\":{" JSON_INTEGER ",\"length\":" #bits ",\"alignment\":" #align \
    ",\"preferred-display-base\":10" more "}}"
#define JSON_ROLE(role)             ",\"roles\":[\"" role "\"]"
#define JSON_STRUCT                 "{\"type\":\"structure\",\"member-classes\":["
#define JSON_TIMESTAMP(bits, align) JSON_U("timestamp", bits, align, JSON_ROLE("default-clock-timestamp"))
#define JSON_CLASS_ID               JSON_ROLE("event-record-class-id")

static const char JSON_TRACE[] =
    "\x1e{\"type\":\"preamble\",\"version\":2,\"uuid\":[44,107,241,90,107,41,77,42,156,63,141,26,15,107,126,"
    "85]}"
    "\x1e{\"type\":\"trace-class\",\"namespace\":\"lttng.org,2009\",\"name\":\"\",\"uid\":\"" UST_UUID "\","
    "\"environment\":{\"hostname\":\"host\",\"domain\":\"ust\",\"tracer_name\":\"lttng-ust\",\"tracer_"
    "major\":2,"
    "\"tracer_minor\":16,\"tracer_buffering_scheme\":\"uid\",\"tracer_buffering_id\":1000,"
    "\"architecture_bit_width\":64,\"trace_name\":\"server\"},\"packet-header-field-class\":" JSON_STRUCT
        JSON_U(
            "magic", 32, 8,
            JSON_ROLE(
                "packet-magic-number")) ","
                                        "{\"name\":\"uuid\",\"field-class\":{\"type\":\"static-length-blob\","
                                        "\"length\":16,"
                                        "\"roles\":[\"metadata-stream-uuid\"]}}," JSON_U(
                                            "stream_id", 32, 8,
                                            JSON_ROLE(
                                                "data-stream-class-id")) "," JSON_U("stream_instance_id", 64,
                                                                                    8,
                                                                                    JSON_ROLE("data-stream-"
                                                                                              "id")) "]}}";

static const char JSON_PACKET[] = ",\"default-clock-class-id\":\"monotonic\",\"packet-context-field-class\":" JSON_STRUCT
    JSON_U("timestamp_begin", 64, 8, JSON_ROLE("default-clock-timestamp")) "," JSON_U("timestamp_end", 64, 8, JSON_ROLE("packet-end-default-clock-timestamp")) "," JSON_U(
        "content_size", 64, 8,
        JSON_ROLE(
            "packet-content-length")) "," JSON_U("packet_size", 64, 8,
                                                 JSON_ROLE(
                                                     "packet-total-length")) "," JSON_U("packet_seq_num", 64,
                                                                                        8,
                                                                                        JSON_ROLE(
                                                                                            "packet-"
                                                                                            "sequence-"
                                                                                            "number")) "," JSON_U("events_discarded",
                                                                                                                  64,
                                                                                                                  8,
                                                                                                                  JSON_ROLE(
                                                                                                                      "discarded-event-record-counter-snapshot")) "," JSON_U("cpu_id",
                                                                                                                                                                             32,
                                                                                                                                                                             8,
                                                                                                                                                                             "") "]}";

/* The 5 or 16 bits of id, its most, and the bits and alignment of the short time. */
#define JSON_HEADER(bits, align, most, over, time_bits, time_align)                                   \
    ",\"event-record-header-field-class\":{\"minimum-alignment\":8,\"type\":\"structure\",\"member-"  \
    "classes\":[" JSON_U(                                                                             \
        "id", bits, align,                                                                            \
        JSON_CLASS_ID                                                                                 \
        ",\"mappings\":{\"compact\":[[0," #most "]],\"extended\":[[" #over "," #over                  \
        "]]}") ",{\"name\":\"v\",\"field-class\":{\"type\":\"variant\",\"selector-field-location\":"  \
               "{\"origin\":\"event-record-header\",\"path\":[\"id\"]},\"options\":["                 \
               "{\"name\":\"compact\",\"selector-field-ranges\":[[0," #most                           \
               "]],\"field-class\":" JSON_STRUCT                                                      \
               JSON_TIMESTAMP(time_bits,                                                              \
                              time_align) "]}},"                                                      \
                                          "{\"name\":\"extended\",\"selector-field-ranges\":[[" #over \
                                          "," #over "]],\"field-class\":" JSON_STRUCT JSON_U(         \
                                              "id", 32, 8, JSON_CLASS_ID) "," JSON_TIMESTAMP(64,      \
                                                                                             8) "]}}]}}]}"

static const char *const JSON_HEADERS[] = { JSON_HEADER(5, 1, 30, 31, 27, 1),
                                            JSON_HEADER(16, 8, 65534, 65535, 32, 8) };

static void json_integer(struct krait_buf *out, const struct ust_field *f)
{
    krait_buf_fmt(out,
                  "{\"type\":\"fixed-length-%s-integer\",\"length\":%u,\"byte-order\":\"little-endian\","
                  "\"alignment\":8,\"preferred-display-base\":%u",
                  f->kind == UST_SIGNED ? "signed" : "unsigned", f->bits, f->base);
    for (unsigned i = 0; f->words && i < f->words->count; i++)
        krait_buf_fmt(out, "%s\"%s\":[[%u,%u]]", i ? "," : ",\"mappings\":{", f->words->word[i], i, i);
    krait_buf_str(out, f->words ? "}}" : "}");
}

static void json_float(struct krait_buf *out, const struct ust_field *f)
{
    krait_buf_fmt(out,
                  "{\"type\":\"fixed-length-floating-point-number\",\"length\":%u,"
                  "\"byte-order\":\"little-endian\",\"alignment\":8}",
                  f->bits);
}

static void json_string(struct krait_buf *out, const struct ust_field *f)
{
    krait_buf_str(out, "{\"type\":\"null-terminated-string\"}");
}

static void json_text(struct krait_buf *out, const struct ust_field *f)
{
    krait_buf_fmt(out, "{\"type\":\"static-length-string\",\"length\":%u}", f->length);
}

static void json_array(struct krait_buf *out, const struct ust_field *f)
{
    krait_buf_fmt(out, "{\"type\":\"static-length-array\",\"length\":%u,\"element-field-class\":", f->length);
    json_integer(out, f);
    krait_buf_char(out, '}');
}

static void json_sequence(struct krait_buf *out, const struct ust_field *f)
{
    krait_buf_fmt(out,
                  "{\"type\":\"dynamic-length-array\",\"length-field-location\":{\"origin\":"
                  "\"event-record-payload\",\"path\":[\"_%s_length\"]},\"element-field-class\":",
                  f->name);
    json_integer(out, f);
    krait_buf_char(out, '}');
}

static void (*const JSON[])(struct krait_buf *out, const struct ust_field *f) = {
    [UST_UNSIGNED] = json_integer,  [UST_SIGNED] = json_integer, [UST_FLOAT] = json_float,
    [UST_STRING] = json_string,     [UST_TEXT] = json_text,      [UST_ARRAY] = json_array,
    [UST_SEQUENCE] = json_sequence,
};

static void json_fields(struct krait_buf *out, const struct ust_field *f, size_t most)
{
    krait_buf_str(out, JSON_STRUCT);
    for (size_t i = 0; i < most && f[i].name; i++) {
        krait_buf_str(out, i ? "," : "");
        if (f[i].kind == UST_SEQUENCE) {
            struct ust_field length = { .bits = 64, .base = 10 };
            krait_buf_fmt(out, "{\"name\":\"_%s_length\",\"field-class\":", f[i].name);
            json_integer(out, &length);
            krait_buf_str(out, "},");
        }
        krait_buf_fmt(out, "{\"name\":\"%s\",\"field-class\":", f[i].name);
        JSON[f[i].kind](out, &f[i]);
        krait_buf_char(out, '}');
    }
    krait_buf_str(out, "]}");
}

static const char *const LEVELS[] = {
    "emergency",    "alert",      "critical",       "error",         "warning",
    "notice",       "info",       "debug:system",   "debug:program", "debug:process",
    "debug:module", "debug:unit", "debug:function", "debug:line",    "debug",
};

static void json_channel(struct krait_buf *out, unsigned id)
{
    const struct ust_channel *channel = &ust_channels[id];
    krait_buf_fmt(out, "\x1e{\"type\":\"data-stream-class\",\"id\":%u%s%s", id, JSON_PACKET,
                  JSON_HEADERS[channel->large]);
    krait_buf_str(out, ",\"event-record-common-context-field-class\":");
    json_fields(out, channel->context, sizeof(channel->context) / sizeof(*channel->context));
    krait_buf_char(out, '}');
    for (unsigned i = 0; i < channel->count; i++) {
        const struct ust_event *event = &channel->events[i];
        krait_buf_fmt(
            out,
            "\x1e{\"type\":\"event-record-class\",\"id\":%u,\"data-stream-class-id\":%u,\"name\":\"%s\","
            "\"attributes\":{\"lttng.org,2009\":{\"log-level\":\"%s\"}},\"payload-field-class\":",
            i, id, event->name, LEVELS[event->level]);
        json_fields(out, event->fields, UST_FIELDS);
        krait_buf_char(out, '}');
    }
}

void ust_metadata_json(struct krait_buf *out)
{
    krait_buf_str(out, JSON_TRACE);
    krait_buf_fmt(
        out,
        "\x1e{\"type\":\"clock-class\",\"id\":\"monotonic\",\"name\":\"monotonic\",\"description\":"
        "\"Monotonic Clock\",\"frequency\":1000000000,\"origin\":\"unix-epoch\",\"offset-from-origin\":"
        "{\"seconds\":%" PRIu64 ",\"cycles\":%" PRIu64 "}}",
        (uint64_t)(UST_CLOCK_OFFSET / 1000000000), (uint64_t)(UST_CLOCK_OFFSET % 1000000000));
    for (unsigned i = 0; i < UST_CHANNELS; i++)
        json_channel(out, i);
}
