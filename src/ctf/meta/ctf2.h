/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the CTF 2 metadata parser share: ctf2_parse.c (the JSON text sequence and its fragments),
 * ctf2_object.c (reading members of objects), ctf2_fields.c (field classes), ctf2_finish.c (roles, alignments,
 * locations). Source: CTF2-SPEC-2.0, metadata stream (comments name its sections, which have no numbers).
 *
 *   RS {"type": "preamble", "version": 2}            first, once
 *   RS {"type": "trace-class", ...}                  at most once, before the stream classes
 *   RS {"type": "clock-class", "id": "c", ...}       before the stream classes that name it
 *   RS {"type": "data-stream-class", ...}            before its event record classes
 *   RS {"type": "event-record-class", ...}
 *   RS {"type": "field-class-alias", "name": ...}    before where it is used
 *
 * A failure sticks: krait_ctf2_fail sets the reason once. From then on p->rc is set, and functions may return NULL.
 */
#ifndef KRAIT_CTF_META_CTF2_H
#define KRAIT_CTF_META_CTF2_H

#include "base/json_read.h"
#include "ctf/meta/metadata.h"

enum {
    KRAIT_CTF2_MAX_DEPTH = 96, /* how deep field classes may nest, which bounds every recursion over them */
};

/* The scopes in the order in which they are read: a location may refer to its own scope or one before it. */
enum krait_ctf2_scope {
    KRAIT_CTF2_PACKET_HEADER,
    KRAIT_CTF2_PACKET_CONTEXT,
    KRAIT_CTF2_EVENT_HEADER,
    KRAIT_CTF2_COMMON_CONTEXT,
    KRAIT_CTF2_SPECIFIC_CONTEXT,
    KRAIT_CTF2_PAYLOAD,
    KRAIT_CTF2_SCOPE_COUNT,
};

/* krait_fc.roles has a bit for each. */
enum krait_ctf2_role {
    KRAIT_ROLE_TIMESTAMP,
    KRAIT_ROLE_STREAM_CLASS_ID,
    KRAIT_ROLE_STREAM_ID,
    KRAIT_ROLE_MAGIC,
    KRAIT_ROLE_UUID,
    KRAIT_ROLE_DISCARDED,
    KRAIT_ROLE_CONTENT,
    KRAIT_ROLE_END,
    KRAIT_ROLE_SEQ,
    KRAIT_ROLE_TOTAL,
    KRAIT_ROLE_EVENT_CLASS_ID,
    KRAIT_ROLE_COUNT,
};

/* Where a length or a selector is: a path from the structure of a scope or, without an origin, from the structure that
 * contains the field. */
struct krait_ctf2_location {
    size_t at;  /* byte of the metadata */
    int origin; /* enum krait_ctf2_scope; -1: none */
    uint32_t count;
    const char **path;            /* names of members; NULL: the structure around this one */
    bool has_negative, has_large; /* selector ranges below 0, above 2^63 - 1 */
};

struct krait_ctf2_parser {
    struct krait_ctf_metadata *md;
    struct krait_arena *arena; /* the metadata's */
    struct krait_arena json;   /* the fragments, until the parser ends */
    struct krait_err *err;
    int rc;
    bool has_preamble, has_trace;
    unsigned depth;
    uint32_t fc_count;
    uint32_t stream_cap, clock_cap, alias_cap;
    /* An alias is parsed again wherever it is used, so that every place has its own nodes. */
    struct krait_strtab alias_names;
    const struct krait_json **aliases;
    uint32_t alias_limit; /* how many can be used: those before the current fragment */
};

/* Reads the sequence into md, whose arena is used. Returns 0 or a negative errno with err set. */
int krait_ctf2_parse(struct krait_ctf_metadata *md, const char *text, size_t size, struct krait_err *err);

/* -- objects (ctf2_object.c) -- */

void krait_ctf2_fail(struct krait_ctf2_parser *p, size_t at, int code, const char *fmt, ...)
    KRAIT_PRINTF(4, 5);
void krait_ctf2_oom(struct krait_ctf2_parser *p);

/* Refuses keys other than the names (ended by NULL), `type`, `attributes` and `extensions`; a `name` that is not a
 * string; and any extension: krait knows none, and a reader must not ignore them (CTF2-SPEC-2.0, extensions). */
void krait_ctf2_keys(struct krait_ctf2_parser *p, const struct krait_json *object, const char *const *names);

/* The member with that key. NULL if there is none. Fails if it is required, or is of another kind. */
const struct krait_json *krait_ctf2_get(struct krait_ctf2_parser *p, const struct krait_json *object,
                                        const char *key, enum krait_json_kind kind);
const struct krait_json *krait_ctf2_need(struct krait_ctf2_parser *p, const struct krait_json *object,
                                         const char *key, enum krait_json_kind kind);
uint64_t krait_ctf2_number(struct krait_ctf2_parser *p, const struct krait_json *object, const char *key,
                           uint64_t otherwise);
/* Copies that live as long as the metadata. */
const char *krait_ctf2_text(struct krait_ctf2_parser *p, const struct krait_json *object, const char *key,
                            const char *otherwise);
const char *krait_ctf2_keep(struct krait_ctf2_parser *p, const char *text);
void *krait_ctf2_alloc(struct krait_ctf2_parser *p, size_t count, size_t size);
/* The index of the text among the names; refuses others. */
unsigned krait_ctf2_word(struct krait_ctf2_parser *p, const struct krait_json *text, const char *const *names,
                         unsigned count);

/* -- field classes (ctf2_fields.c) -- */

/* The field class under that key: an object, or the name of an alias. */
struct krait_fc *krait_ctf2_field(struct krait_ctf2_parser *p, const struct krait_json *object,
                                  const char *key);
extern const char *const krait_ctf2_scope_names[KRAIT_CTF2_SCOPE_COUNT];
extern const char *const krait_ctf2_role_names[KRAIT_ROLE_COUNT];

/* -- the end (ctf2_finish.c) -- */

void krait_ctf2_finish(struct krait_ctf2_parser *p);

#endif
