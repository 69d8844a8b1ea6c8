/* SPDX-License-Identifier: Apache-2.0
 *
 * Field classes: what a trace's metadata says about the bits of its fields (CTF 1.8.3, section 4; CTF2-SPEC-2.0,
 * field classes). They are plain data: the metadata parsers create them, the metadata's arena owns them, and nothing
 * changes them afterwards.
 *
 * Every place in the metadata has its own nodes; a type that is used twice is copied. So each length of a sequence and
 * each tag of a variant has its own slot, in which the decoder stores the value.
 */
#ifndef KRAIT_CTF_META_FIELD_H
#define KRAIT_CTF_META_FIELD_H

#include "base/map.h"

enum krait_fc_kind {
    KRAIT_FC_INT,
    KRAIT_FC_ENUM, /* an integer with labels */
    KRAIT_FC_FLOAT,
    KRAIT_FC_STRING,
    KRAIT_FC_STRUCT,
    KRAIT_FC_VARIANT,
    KRAIT_FC_OPTIONAL, /* one member, which may be absent */
    KRAIT_FC_ARRAY,
    KRAIT_FC_SEQUENCE, /* an array whose length is a field */
};

enum krait_byte_order {
    KRAIT_BO_NATIVE, /* of the trace; resolved before the parser returns */
    KRAIT_BO_LE,
    KRAIT_BO_BE,
};

/* What an integer represents. A blob is an array of bytes, a string of fixed length an array of characters. */
enum krait_int_form {
    KRAIT_INT_NUMBER,
    KRAIT_INT_BITS,  /* CTF 2's bit array: printed as a number, but cannot be a length or a selector */
    KRAIT_INT_FLAGS, /* CTF 2's bit map: the ranges of `labels` are ranges of bits */
    KRAIT_INT_BOOL,  /* every value but 0 is true */
};

/* What a field means to the reader, which follows from its name in CTF 1.8 and from its role in CTF 2. */
enum krait_meaning {
    KRAIT_MEANING_NONE,
    KRAIT_MEANING_MAGIC,
    KRAIT_MEANING_STREAM_ID,
    KRAIT_MEANING_STREAM_INSTANCE,
    KRAIT_MEANING_BEGIN,
    KRAIT_MEANING_END,
    KRAIT_MEANING_CONTENT,
    KRAIT_MEANING_SIZE,
    KRAIT_MEANING_SEQ,
    KRAIT_MEANING_DISCARDED,
    KRAIT_MEANING_EVENT_ID,
    KRAIT_MEANING_COUNT,
};

/* Its bit in the set of a field's meanings (in CTF 2 a field may have several); 0 for NONE. */
static inline uint16_t krait_meaning_bit(enum krait_meaning meaning)
{
    return (uint16_t)((1u << meaning) & ~(1u << KRAIT_MEANING_NONE));
}

#define KRAIT_NO_SLOT UINT32_MAX

struct krait_ctf_clock;
struct krait_fc;

/* lo to hi, both included: signed or unsigned like the enumeration's integer. One label may have several ranges. For
 * pieces, the text to print is prepared. */
struct krait_enum_range {
    const char *label;
    uint64_t lo, hi;
    uint32_t shown_len;
    uint32_t whole_len; /* if it has only one value: length of `shown` with the value in decimal; else 0 */
    const char *shown;  /* of a piece: all labels, as printed before the value, in an arena; NULL: too many */
    /* equal labels of one enumeration have equal ids, counted up in order of first appearance */
    uint32_t label_id;
};

struct krait_enum_map {
    struct krait_enum_range *ranges; /* in the metadata's order */
    uint32_t count;
    uint32_t label_count;
    /* Several labels of a value are printed in braces, as babeltrace2 2.1 prints those of CTF 2. */
    bool in_braces;
    bool indexed; /* the members below are set */
    bool is_deep; /* some values have more labels than a piece keeps: their pieces have no `shown` */
    /* the ranges ordered by value and cut where they overlap; if a piece has several labels, its own is the first in
     * the metadata */
    struct krait_enum_range *pieces;
    uint32_t piece_count;
    const struct krait_enum_range **by_label; /* with `is_deep`: the ranges by label_id */
    /* if the values are close together: by_value[value - first], for `span` values; NULL: between the pieces */
    uint64_t first, span;
    const struct krait_enum_range **by_value;
};

/* Tags from lo to hi, both included, choose an option: signed or unsigned like the tag. Choices are ordered by value
 * and do not overlap. */
struct krait_fc_choice {
    uint64_t lo, hi;
    uint32_t option;
};

struct krait_ctf2_location;

struct krait_fc_member {
    const char *name;      /* as shown: without LTTng's leading underscore in CTF 1.8 */
    const char *tsdl_name; /* as written; an option of CTF 2 may have none */
    struct krait_fc *fc;
};

struct krait_fc {
    uint8_t kind;
    uint8_t bits; /* INT, ENUM: 1 to 64; FLOAT: 32 or 64 */
    bool is_signed;
    bool is_text;       /* INT, ENUM: has an encoding; ARRAY, SEQUENCE: of such bytes, printed as a string */
    bool is_blob;       /* ARRAY, SEQUENCE: of bytes without a meaning known to krait */
    bool is_leb;        /* INT, ENUM: variable length, seven bits in each byte (LEB128) */
    bool is_reversed;   /* INT, ENUM, FLOAT: its bits are in the order opposite to that of its byte order */
    bool order_counts;  /* INT, ENUM, FLOAT: it may share a byte with bits of the other byte order */
    uint8_t form;       /* INT, ENUM: enum krait_int_form */
    uint8_t encoding;   /* STRING; ARRAY, SEQUENCE with is_text: enum krait_encoding */
    uint16_t meanings;  /* INT, ENUM: a bit per enum krait_meaning, see krait_meaning_bit */
    uint16_t roles;     /* CTF 2: a bit per role, until they are meanings */
    uint32_t at;        /* CTF 2: byte of the metadata, for messages */
    uint8_t byte_order; /* INT, ENUM, FLOAT: enum krait_byte_order */
    uint8_t base;       /* INT, ENUM: 2, 8, 10, 16 */
    uint8_t unit;       /* TSDL: bits of a bit field's unit, until its offset is known; else 0 */
    uint8_t depth;      /* of the types below it: bounds every recursion */
    uint32_t align;     /* bits, a power of two */
    uint32_t slot;      /* where the decoder stores an integer's value, or KRAIT_NO_SLOT */
    uint32_t ref_slot;  /* SEQUENCE: slot of its length; VARIANT, OPTIONAL: of its tag */
    uint32_t home; /* TSDL: the number of a STRUCT; of a VARIANT: the STRUCT to search first for its tag */
    union {
        const struct krait_ctf_clock *clock; /* INT, ENUM: the clock it is mapped to, or NULL */
        uint32_t count;                      /* STRUCT, VARIANT, OPTIONAL: members or options */
    };
    union {
        struct krait_enum_map *labels;   /* ENUM; INT whose form is FLAGS */
        struct krait_fc_member *members; /* STRUCT, VARIANT, OPTIONAL */
        struct krait_fc *elem;           /* ARRAY, SEQUENCE */
    };
    union {
        uint64_t length; /* ARRAY */
        const char *ref; /* SEQUENCE, VARIANT: the path as written; NULL for a variant without a tag */
        /* the same of CTF 2; OPTIONAL too */
        const struct krait_ctf2_location *location;
    };
    /* VARIANT, OPTIONAL: an OPTIONAL is absent if no choice contains its tag. */
    const struct krait_fc_choice *choices;
    uint32_t choice_count;
    bool tag_signed;
};

static inline bool krait_fc_is_int(const struct krait_fc *fc)
{
    return fc->kind <= KRAIT_FC_ENUM;
}

/* Whether a number has the size of one of C's integers. */
static inline bool krait_fc_is_whole(const struct krait_fc *fc)
{
    return fc->bits == 8 || fc->bits == 16 || fc->bits == 32 || fc->bits == 64;
}

/* Whether the bytes of a number are not in the machine's order. */
static inline bool krait_fc_is_swapped(const struct krait_fc *fc)
{
    return fc->byte_order != (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? KRAIT_BO_LE : KRAIT_BO_BE);
}

/* The member or option of that shown name, or NULL. */
const struct krait_fc_member *krait_fc_member(const struct krait_fc *fc, const char *name);

/* The field that has this meaning, at any depth; the first of several. NULL if there is none. */
const struct krait_fc *krait_fc_meant(const struct krait_fc *fc, enum krait_meaning meaning);

static inline bool krait_range_holds(uint64_t lo, uint64_t hi, uint64_t value, bool is_signed)
{
    if (is_signed)
        return (int64_t)value >= (int64_t)lo && (int64_t)value <= (int64_t)hi;
    return value >= lo && value <= hi;
}

static inline bool krait_enum_holds(const struct krait_enum_range *range, uint64_t value, bool is_signed)
{
    return krait_range_holds(range->lo, range->hi, value, is_signed);
}

/* krait_enum_range_of for values that are far apart. */
const struct krait_enum_range *krait_enum_search(const struct krait_enum_map *map, uint64_t value,
                                                 bool is_signed);

/* The piece that contains the value, or NULL. The map must be indexed. Hot path. */
static inline const struct krait_enum_range *krait_enum_range_of(const struct krait_enum_map *map,
                                                                 uint64_t value, bool is_signed)
{
    uint64_t i = value - map->first;
    if (KRAIT_LIKELY(i < map->span))
        return map->by_value[i];
    return map->span ? NULL : krait_enum_search(map, value, is_signed);
}

/* The label of a value, the first one in the metadata; NULL if it has none. */
const char *krait_enum_label(const struct krait_fc *fc, uint64_t value);

#endif
