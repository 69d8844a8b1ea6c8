/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds the metadata's model: what the parsers of CTF 1.8 and CTF 2 share. All memory comes from the metadata's arena.
 */
#ifndef KRAIT_CTF_META_MODEL_H
#define KRAIT_CTF_META_MODEL_H

#include "ctf/meta/metadata.h"

/* How many field classes a trace may have: types and aliases that double each other would fill memory. Fuzzers use a
 * lower limit, because they would spend their time there. */
#ifndef KRAIT_CTF_MAX_FIELDS
#define KRAIT_CTF_MAX_FIELDS (1 << 20)
#endif

/* The common context is compiled again for each event class. This is the limit for its fields, summed over all classes.
 * LTTng's kernel tracer has about a thousand classes, and contexts of about ten fields. */
#define KRAIT_CTF_MAX_CONTEXT_FIELDS (4 * KRAIT_CTF_MAX_FIELDS)

/* Each returns 0, -EEXIST for an id or name that is taken, or -ENOMEM. */
int krait_model_add_stream(struct krait_ctf_metadata *md, uint32_t *cap, struct krait_stream_class *stream);
int krait_model_add_event(struct krait_arena *arena, struct krait_stream_class *stream,
                          struct krait_event_class *event);
/* Whole seconds move from the offset in cycles to that in seconds; -ERANGE when they do not fit. */
int krait_model_add_clock(struct krait_ctf_metadata *md, uint32_t *cap, struct krait_ctf_clock *clock);

/* A namespace, a name and an id as one text; two such texts are equal if all three are. NULL: out of memory. */
const char *krait_model_identity(struct krait_arena *arena, const char *space, const char *name,
                                 const char *uid);

/* Makes an enumeration's pieces, for look-ups and printing. Returns 0 or -ENOMEM. */
int krait_model_index_enum(struct krait_arena *arena, struct krait_enum_map *map, bool is_signed);

/* How many fields the common contexts have, summed over all event classes. */
uint64_t krait_model_context_fields(const struct krait_ctf_metadata *md);

/* If the metadata has bits of both byte orders, sets order_counts of their fields. Readers check these fields even when
 * they skip them; otherwise a change of byte order within a byte would be damage to some readers only. */
void krait_model_note_orders(struct krait_ctf_metadata *md);

#endif
