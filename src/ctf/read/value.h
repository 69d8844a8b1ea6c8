/* SPDX-License-Identifier: Apache-2.0
 *
 * Single values of an event, found by name once and read many times.
 *
 * A locator says how to get from a known place (the beginning of the packet, of the event or of its fields) to a field:
 * by one addition if everything before the field has a fixed size, otherwise by running the program of what is before
 * it. Nodes mirror the field class and have the program that skips each member or element, so that these can be visited
 * one after the other.
 *
 * Values are read after the event was skipped (krait_ctf_event_skip). Then it is known to be inside the packet, and its
 * lengths and tags are in their slots. Nothing allocates after compiling.
 */
#ifndef KRAIT_CTF_READ_VALUE_H
#define KRAIT_CTF_READ_VALUE_H

#include "base/buf.h"
#include "ctf/read/cursor.h"

/* A field class, ready to be walked. */
struct krait_node {
    const struct krait_fc *fc;
    const char *name;          /* of the member; an option has its variant's */
    struct krait_program skip; /* skips a value; unused for integers, enumerations, floats and text */
    struct krait_node *kids;   /* STRUCT: members; VARIANT, OPTIONAL: options; ARRAY, SEQUENCE: the element */
    uint32_t kid_count;
};

/* A value of the cursor's current event. Valid until the cursor moves. */
struct krait_value {
    const struct krait_node *node;
    struct krait_decoder *d;
    uint64_t at; /* bits in the packet */
    /* STRUCT: members; ARRAY, SEQUENCE: elements; text and integers of variable length: its size in bytes */
    uint64_t count;
    uint64_t index;     /* among its parent's */
    const char *option; /* which option of its variant it is; NULL elsewhere */
};

/* Moves to the first child if child->node is NULL, else to the next one. A variant is replaced by its chosen option, an
 * optional field by its content if it is present. Returns 1, 0 after the last, -ENODATA if a tag chooses no option,
 * -EBADMSG if the value does not fit its packet. */
int krait_value_next(const struct krait_value *parent, struct krait_value *child);

static inline bool krait_fc_is_text(const struct krait_fc *fc)
{
    return fc->kind == KRAIT_FC_STRING ||
           ((fc->kind == KRAIT_FC_ARRAY || fc->kind == KRAIT_FC_SEQUENCE) && fc->is_text);
}

static inline bool krait_node_is_text(const struct krait_node *node)
{
    return krait_fc_is_text(node->fc);
}

/* Of integers and enumerations: sign-extended. */
uint64_t krait_value_int(const struct krait_value *value);
/* Of floats. */
double krait_value_float(const struct krait_value *value);
/* Of texts: up to the NUL, in the encoding of the trace. */
const char *krait_value_text(const struct krait_value *value, size_t *size);

/* -- locators -- */

enum krait_field_scope {
    KRAIT_FIELD_PAYLOAD,
    KRAIT_FIELD_EVENT_CONTEXT,
    KRAIT_FIELD_COMMON_CONTEXT,
    KRAIT_FIELD_PACKET_CONTEXT,
    KRAIT_FIELD_PACKET_HEADER,
    KRAIT_FIELD_EVENT_HEADER,
    KRAIT_FIELD_SCOPES,
};

struct krait_locator;

/* Compiles a locator for a path ("a", "a.b[2].c"; empty: the scope itself) in the events of one class. Errors: -ENOENT
 * no such field, -EINVAL not a path, -ENOMEM. */
int krait_locator_new(const struct krait_locator **out, struct krait_arena *arena,
                      const struct krait_ctf_trace *trace, const struct krait_event_class *event,
                      enum krait_field_scope scope, const char *path, struct krait_err *err);

const struct krait_node *krait_locator_node(const struct krait_locator *locator);
bool krait_locator_is_fixed(const struct krait_locator *locator);

/* The value in the cursor's event, which must have been skipped. Returns 0, an error of krait_value_next, or
 * -ENODATA if another option is chosen, an optional field is absent, or an index is beyond the array. */
int krait_locator_value(const struct krait_locator *locator, struct krait_ctf_cursor *cursor,
                        struct krait_value *value);

#endif
