/* SPDX-License-Identifier: Apache-2.0
 *
 * Field classes: what a trace's metadata says about the bits of its fields (CTF 1.8.3, section 4). Plain
 * data, made by the metadata parser, owned by the metadata's arena, never changed afterwards.
 *
 * Every place in the metadata has nodes of its own (a type that is used twice is copied), so that a field
 * that is the length of a sequence or the tag of a variant has one slot, in which the decoder leaves its
 * value.
 */
#ifndef KRAIT_CTF_FIELD_H
#define KRAIT_CTF_FIELD_H

#include "base/map.h"

enum krait_fc_kind {
    KRAIT_FC_INT,
    KRAIT_FC_ENUM, /* an integer with labels */
    KRAIT_FC_FLOAT,
    KRAIT_FC_STRING,
    KRAIT_FC_STRUCT,
    KRAIT_FC_VARIANT,
    KRAIT_FC_ARRAY,
    KRAIT_FC_SEQUENCE, /* an array whose length is a field */
};

enum krait_byte_order {
    KRAIT_BO_NATIVE, /* of the trace; resolved before the parser returns */
    KRAIT_BO_LE,
    KRAIT_BO_BE,
};

#define KRAIT_NO_SLOT UINT32_MAX

struct krait_ctf_clock;
struct krait_fc;

/* lo to hi, both included: signed or unsigned as the enumeration's integer is. One label may have several
 * ranges. */
struct krait_enum_range {
    const char *label;
    uint64_t lo, hi;
    uint32_t shown_len;
    const char *shown; /* with `sorted`: as printed before the value, in an arena */
    uint32_t label_id; /* equal labels of one enumeration have equal ids, counted up in order of first
                          appearance */
};

struct krait_enum_map {
    struct krait_enum_range *ranges; /* in the metadata's order */
    uint32_t count;
    uint32_t label_count;
    bool indexed;                             /* one of the next two was made */
    const struct krait_enum_range **sorted;   /* by lo; NULL when ranges overlap */
    const struct krait_enum_range **by_label; /* by label_id, when they do */
};

struct krait_fc_member {
    const char *name;      /* as shown: without LTTng's leading underscore */
    const char *tsdl_name; /* as written */
    struct krait_fc *fc;
};

struct krait_fc {
    uint8_t kind;
    uint8_t bits; /* INT, ENUM: 1 to 64; FLOAT: 32 or 64 */
    bool is_signed;
    bool is_text;       /* INT, ENUM: encoding set; ARRAY, SEQUENCE: of such bytes, shown as a string */
    uint8_t byte_order; /* INT, ENUM, FLOAT: enum krait_byte_order */
    uint8_t base;       /* INT, ENUM: 2, 8, 10, 16 */
    uint8_t depth;      /* of the types below it: bounds every recursion */
    uint32_t align;     /* bits, a power of two */
    uint32_t slot;      /* where the decoder leaves an integer's value for others; KRAIT_NO_SLOT for most */
    uint32_t ref_slot;  /* SEQUENCE: slot of its length; VARIANT: of its tag */
    union {
        const struct krait_ctf_clock *clock; /* INT, ENUM: the clock it is mapped to, or NULL */
        uint32_t count;                      /* STRUCT, VARIANT: members or options */
    };
    union {
        struct krait_enum_map *labels;   /* ENUM */
        struct krait_fc_member *members; /* STRUCT, VARIANT */
        struct krait_fc *elem;           /* ARRAY, SEQUENCE */
    };
    union {
        uint64_t length; /* ARRAY */
        const char *ref; /* SEQUENCE, VARIANT: the path as written; NULL for a variant without a tag */
    };
    /* VARIANT: the option of each label_id of the tag's enumeration, KRAIT_NO_ID where there is none. */
    const uint32_t *option_of_label;
    const struct krait_enum_map *tag_labels;
    bool tag_signed;
};

static inline bool krait_fc_is_int(const struct krait_fc *fc)
{
    return fc->kind <= KRAIT_FC_ENUM;
}

/* The member or option of that shown name, or NULL. */
const struct krait_fc_member *krait_fc_member(const struct krait_fc *fc, const char *name);

static inline bool krait_enum_holds(const struct krait_enum_range *range, uint64_t value, bool is_signed)
{
    if (is_signed)
        return (int64_t)value >= (int64_t)range->lo && (int64_t)value <= (int64_t)range->hi;
    return value >= range->lo && value <= range->hi;
}

/* The range that holds the value, by the index `sorted`, which must be there. */
const struct krait_enum_range *krait_enum_range_of(const struct krait_enum_map *map, uint64_t value,
                                                   bool is_signed);

/* The label of a value, the first in the metadata's order; NULL where none holds it. */
const char *krait_enum_label(const struct krait_fc *fc, uint64_t value);

#endif
