/* SPDX-License-Identifier: Apache-2.0
 *
 * The parsed metadata of a CTF trace: its environment and clocks, and the meaning of its bits (streams, events).
 * Source: CTF specification 1.8.3, section 7 and appendix A to C; CTF2-SPEC-2.0, metadata stream.
 */
#ifndef KRAIT_CTF_META_METADATA_H
#define KRAIT_CTF_META_METADATA_H

#include "base/err.h"
#include "ctf/meta/field.h"

struct krait_env_entry {
    const char *name;
    const char *text; /* NULL for an integer */
    int64_t value;    /* of an integer */
};

struct krait_ctf_clock {
    const char *name;        /* CTF 2: its id */
    const char *description; /* may be empty */
    const char *uuid_text;   /* as written; empty if there is none */
    uint8_t uuid[16];
    bool has_uuid;
    bool absolute; /* its origin is the same on every host: with offset 0, the epoch */
    /* Texts to compare (krait_model_identity), or NULL: its origin, if that is not the epoch; what distinguishes it
     * from all other clocks. */
    const char *origin, *identity;
    uint64_t freq; /* Hz, never 0 */
    uint64_t precision;
    int64_t offset_s;
    uint64_t offset; /* cycles, below freq */
    uint64_t last;   /* the last tick that krait_ctf_ns can convert */
    bool beyond;     /* its offset alone exceeds what krait_ctf_ns can convert: no tick has a time */
};

static inline bool krait_ctf_has_time(const struct krait_ctf_clock *clock, uint64_t ticks)
{
    return !clock->beyond && ticks <= clock->last;
}

struct krait_stream_class;

struct krait_event_class {
    uint64_t id;
    const char *name; /* empty where the metadata has none */
    bool unnamed;     /* it has none */
    struct krait_stream_class *stream;
    uint32_t index;                 /* in its stream */
    int32_t log_level;              /* -1 if there is none */
    const char *emf_uri;            /* of its model; NULL where the metadata has none */
    const struct krait_fc *context; /* structs, or NULL */
    const struct krait_fc *fields;
};

struct krait_stream_class {
    uint64_t id;
    uint32_t index;                        /* in the metadata */
    const struct krait_fc *packet_context; /* structs, or NULL */
    const struct krait_fc *event_header;
    const struct krait_fc *event_context;
    struct krait_event_class **events; /* in the metadata's order */
    uint32_t event_count;
    struct krait_map by_id;              /* event id to index */
    const struct krait_ctf_clock *clock; /* of its events' times; NULL if they have none */
};

struct krait_ctf_metadata {
    struct krait_arena arena; /* everything below */
    const char *dir;          /* as given to open */
    bool is_ctf2;
    uint8_t uuid[16];
    bool has_uuid;
    const char *uid; /* CTF 2: the trace class's; NULL if it has none */
    enum krait_byte_order byte_order;
    const struct krait_fc *packet_header; /* struct, or NULL */
    struct krait_env_entry *env;
    uint32_t env_count;
    struct krait_ctf_clock **clocks;
    uint32_t clock_count;
    struct krait_stream_class **streams;
    uint32_t stream_count;
    uint32_t slot_count; /* of all field classes, see field.h */
};

const struct krait_env_entry *krait_ctf_env(const struct krait_ctf_metadata *metadata, const char *name);
/* The text, or `otherwise` if there is no such entry or it is an integer. */
const char *krait_ctf_env_text(const struct krait_ctf_metadata *metadata, const char *name,
                               const char *otherwise);
int64_t krait_ctf_env_int(const struct krait_ctf_metadata *metadata, const char *name, int64_t otherwise);

/* NULL if there is none. */
const struct krait_ctf_clock *krait_ctf_clock_named(const struct krait_ctf_metadata *metadata,
                                                    const char *name);
const struct krait_stream_class *krait_ctf_stream(const struct krait_ctf_metadata *metadata, uint64_t id);
const struct krait_event_class *krait_ctf_event(const struct krait_stream_class *stream, uint64_t id);

/* Nanoseconds since the clock's origin plus its offset; saturates instead of wrapping. Exact: 128-bit arithmetic. */
int64_t krait_ctf_clock_ns(const struct krait_ctf_clock *clock, uint64_t ticks);

/* krait_ctf_ns where the frequency is not 1 GHz. */
int64_t krait_ctf_scaled_ns(const struct krait_ctf_clock *clock, uint64_t ticks);

/* Nanoseconds since the clock's origin, rounded like babeltrace2: offset and value are converted separately, in double
 * arithmetic unless the frequency is 1 GHz. (Exact conversion: krait_ctf_clock_ns.) Hot path. */
static inline int64_t krait_ctf_ns(const struct krait_ctf_clock *clock, uint64_t ticks)
{
    if (KRAIT_UNLIKELY(clock->freq != KRAIT_NS_PER_S))
        return krait_ctf_scaled_ns(clock, ticks);
    return (int64_t)((uint64_t)clock->offset_s * KRAIT_NS_PER_S + clock->offset + ticks);
}

#endif
