/* SPDX-License-Identifier: Apache-2.0
 *
 * Building the metadata's model: what the parsers of CTF 1.8 and CTF 2 share. All memory is the metadata's arena's.
 */
#ifndef KRAIT_CTF_META_MODEL_H
#define KRAIT_CTF_META_MODEL_H

#include "ctf/meta/metadata.h"

/* Field classes of a trace: types and aliases that double each other would fill memory. Fuzzing has a lower
 * limit, or it would spend its time there. */
#ifndef KRAIT_CTF_MAX_FIELDS
#define KRAIT_CTF_MAX_FIELDS (1 << 20)
#endif

/* The context that events have in common is compiled for each of their classes: so many fields are in all
 * those. LTTng's kernel tracer has some thousand classes, and contexts of some ten fields. */
#define KRAIT_CTF_MAX_CONTEXT_FIELDS (4 * KRAIT_CTF_MAX_FIELDS)

/* Room for one more behind `count` entries, by doubling. Returns the array, NULL when memory is out. */
void *krait_model_grow(struct krait_arena *arena, void *array, uint32_t count, uint32_t *cap, size_t size);

/* Each returns 0, -EEXIST for an id or name that is taken, or -ENOMEM. */
int krait_model_add_stream(struct krait_ctf_metadata *md, uint32_t *cap, struct krait_stream_class *stream);
int krait_model_add_event(struct krait_arena *arena, struct krait_stream_class *stream,
                          struct krait_event_class *event);
/* Whole seconds move from the offset in cycles to that in seconds; -ERANGE when they do not fit. */
int krait_model_add_clock(struct krait_ctf_metadata *md, uint32_t *cap, struct krait_ctf_clock *clock);

/* A namespace, a name and an id as one text, which is equal where all three are. NULL: out of memory. */
const char *krait_model_identity(struct krait_arena *arena, const char *space, const char *name,
                                 const char *uid);

/* Makes an enumeration's pieces, for look-ups and printing. Returns 0 or -ENOMEM. */
int krait_model_index_enum(struct krait_arena *arena, struct krait_enum_map *map, bool is_signed);

/* How many fields the common contexts have, counted for each event class. */
uint64_t krait_model_context_fields(const struct krait_ctf_metadata *md);

/* Where the metadata has bits of both byte orders, their fields' order_counts is set: such fields are looked
 * at even by who goes past them, or a change within a byte would be damage to some readers only. */
void krait_model_note_orders(struct krait_ctf_metadata *md);

#endif
