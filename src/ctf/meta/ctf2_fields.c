/* SPDX-License-Identifier: Apache-2.0
 *
 * CTF 2's field classes (CTF2-SPEC-2.0), from JSON to struct krait_fc. What needs the whole scope (where
 * lengths and selectors are, alignments of what holds others) is left to ctf2_finish.c.
 */
#include "ctf/meta/ctf2.h"
#include "ctf/meta/model.h"
#include "ctf/scalar/wide.h"

#include <string.h>

const char *const krait_ctf2_scope_names[KRAIT_CTF2_SCOPE_COUNT] = {
    "packet-header",
    "packet-context",
    "event-record-header",
    "event-record-common-context",
    "event-record-specific-context",
    "event-record-payload",
};

const char *const krait_ctf2_role_names[KRAIT_ROLE_COUNT] = {
    [KRAIT_ROLE_TIMESTAMP] = "default-clock-timestamp",
    [KRAIT_ROLE_STREAM_CLASS_ID] = "data-stream-class-id",
    [KRAIT_ROLE_STREAM_ID] = "data-stream-id",
    [KRAIT_ROLE_MAGIC] = "packet-magic-number",
    [KRAIT_ROLE_UUID] = "metadata-stream-uuid",
    [KRAIT_ROLE_DISCARDED] = "discarded-event-record-counter-snapshot",
    [KRAIT_ROLE_CONTENT] = "packet-content-length",
    [KRAIT_ROLE_END] = "packet-end-default-clock-timestamp",
    [KRAIT_ROLE_SEQ] = "packet-sequence-number",
    [KRAIT_ROLE_TOTAL] = "packet-total-length",
    [KRAIT_ROLE_EVENT_CLASS_ID] = "event-record-class-id",
};

static struct krait_fc *new_field(struct krait_ctf2_parser *p, size_t at, enum krait_fc_kind kind)
{
    if (p->fc_count++ >= KRAIT_CTF_MAX_FIELDS)
        krait_ctf2_fail(p, at, -EBADMSG, "more than %d field classes", KRAIT_CTF_MAX_FIELDS);
    struct krait_fc *fc = krait_ctf2_alloc(p, 1, sizeof(*fc));
    if (!fc)
        return NULL;
    fc->kind = (uint8_t)kind;
    fc->at = (uint32_t)at;
    fc->align = 1;
    fc->slot = fc->ref_slot = KRAIT_NO_SLOT;
    return fc;
}

/* -- properties that several classes have -- */

static uint32_t alignment(struct krait_ctf2_parser *p, const struct krait_json *object, const char *key)
{
    uint64_t align = krait_ctf2_number(p, object, key, 1);
    if (align == 0 || (align & (align - 1)) || align > 1u << 30) {
        krait_ctf2_fail(p, object->at, -EBADMSG, "'%s' is not a power of two", key);
        return 1;
    }
    return (uint32_t)align;
}

static void roles(struct krait_ctf2_parser *p, struct krait_fc *fc, const struct krait_json *object)
{
    const struct krait_json *list = krait_ctf2_get(p, object, "roles", KRAIT_JSON_ARRAY);
    for (const struct krait_json *item = list ? list->first : NULL; item && !p->rc; item = item->next)
        fc->roles |= (uint16_t)(1u << krait_ctf2_word(p, item, krait_ctf2_role_names, KRAIT_ROLE_COUNT));
}

static enum krait_encoding encoding(struct krait_ctf2_parser *p, const struct krait_json *object)
{
    static const char *const names[] = { [KRAIT_ENCODING_UTF8] = "utf-8",
                                         [KRAIT_ENCODING_UTF16_LE] = "utf-16le",
                                         [KRAIT_ENCODING_UTF16_BE] = "utf-16be",
                                         [KRAIT_ENCODING_UTF32_LE] = "utf-32le",
                                         [KRAIT_ENCODING_UTF32_BE] = "utf-32be" };
    const struct krait_json *item = krait_ctf2_get(p, object, "encoding", KRAIT_JSON_TEXT);
    return item ? krait_ctf2_word(p, item, names, KRAIT_ARRAY_LEN(names)) : KRAIT_ENCODING_UTF8;
}

/* -- ranges: [[lo, hi], ...] -- */

struct range {
    uint64_t lo, hi;
    bool lo_negative, hi_negative;
};

static bool is_integer(const struct krait_json *item)
{
    return item && (item->kind == KRAIT_JSON_UNSIGNED || item->kind == KRAIT_JSON_NEGATIVE);
}

static struct range read_range(struct krait_ctf2_parser *p, const struct krait_json *item)
{
    bool is_pair = item->kind == KRAIT_JSON_ARRAY && item->count == 2 && is_integer(item->first) &&
                   is_integer(item->first->next);
    if (!is_pair) {
        krait_ctf2_fail(p, item->at, -EBADMSG, "a range that is not two integers");
        return (struct range){ 0 };
    }
    const struct krait_json *lo = item->first, *hi = lo->next;
    struct range range = { lo->number, hi->number, lo->kind == KRAIT_JSON_NEGATIVE,
                           hi->kind == KRAIT_JSON_NEGATIVE };
    bool backward = range.lo_negative == range.hi_negative ? range.lo > range.hi : range.hi_negative;
    if (backward)
        krait_ctf2_fail(p, item->at, -EBADMSG, "a range that ends before it begins");
    return range;
}

/* The array of ranges under that key, which is not empty. */
static const struct krait_json *range_set(struct krait_ctf2_parser *p, const struct krait_json *set)
{
    if (!p->rc && (set->kind != KRAIT_JSON_ARRAY || !set->count))
        krait_ctf2_fail(p, set->at, -EBADMSG, "'%.64s' is not an array of ranges", set->key ? set->key : "");
    return p->rc ? NULL : set->first;
}

static uint32_t count_ranges(const struct krait_json *mappings)
{
    uint32_t n = 0;
    for (const struct krait_json *set = mappings->first; set; set = set->next)
        n += set->kind == KRAIT_JSON_ARRAY ? set->count : 0;
    return n;
}

static void mapping(struct krait_ctf2_parser *p, struct krait_fc *fc, const struct krait_json *set)
{
    struct krait_enum_map *map = fc->labels;
    const char *label = krait_ctf2_keep(p, set->key);
    for (const struct krait_json *item = range_set(p, set); item && !p->rc; item = item->next) {
        struct range range = read_range(p, item);
        if (!fc->is_signed && range.lo_negative)
            krait_ctf2_fail(p, item->at, -EBADMSG, "an unsigned integer with a label for values below 0");
        if (fc->is_signed && !range.hi_negative && range.hi > INT64_MAX)
            krait_ctf2_fail(p, item->at, -EBADMSG, "a signed integer with a label for values above 2^63 - 1");
        if (!p->rc)
            map->ranges[map->count++] = (struct krait_enum_range){
                .label = label, .lo = range.lo, .hi = range.hi, .label_id = map->label_count
            };
    }
    map->label_count++;
}

/* Without any, the integer is a plain one. */
static void mappings(struct krait_ctf2_parser *p, struct krait_fc *fc, const struct krait_json *object)
{
    const struct krait_json *list = krait_ctf2_get(p, object, "mappings", KRAIT_JSON_OBJECT);
    uint32_t count = list ? count_ranges(list) : 0;
    if (list && list->count)
        fc->labels = krait_ctf2_alloc(p, 1, sizeof(*fc->labels));
    if (!fc->labels)
        return;
    fc->kind = KRAIT_FC_ENUM;
    fc->labels->ranges = krait_ctf2_alloc(p, count, sizeof(*fc->labels->ranges));
    for (const struct krait_json *set = list->first; set && !p->rc; set = set->next)
        mapping(p, fc, set);
}

/* -- fixed-length bit arrays, and what is made of them -- */

#define FIXED "length", "byte-order", "bit-order", "alignment"

static struct krait_fc *fixed_length(struct krait_ctf2_parser *p, const struct krait_json *object,
                                     enum krait_fc_kind kind)
{
    static const char *const byte_orders[] = { "little-endian", "big-endian" };
    static const char *const bit_orders[] = { "first-to-last", "last-to-first" };
    struct krait_fc *fc = new_field(p, object->at, kind);
    const struct krait_json *length = krait_ctf2_need(p, object, "length", KRAIT_JSON_UNSIGNED);
    const struct krait_json *byte_order = krait_ctf2_need(p, object, "byte-order", KRAIT_JSON_TEXT);
    const struct krait_json *bit_order = krait_ctf2_get(p, object, "bit-order", KRAIT_JSON_TEXT);
    if (!p->rc && length->number == 0)
        krait_ctf2_fail(p, length->at, -EBADMSG, "a field of no bits");
    if (!p->rc && length->number > 64)
        krait_ctf2_fail(p, length->at, -ENOTSUP, "a field of %llu bits; this reads up to 64",
                        (unsigned long long)length->number);
    unsigned is_be = krait_ctf2_word(p, byte_order, byte_orders, KRAIT_ARRAY_LEN(byte_orders));
    unsigned is_last_first =
        bit_order ? krait_ctf2_word(p, bit_order, bit_orders, KRAIT_ARRAY_LEN(bit_orders)) : is_be;
    if (p->rc)
        return NULL;
    fc->bits = (uint8_t)length->number;
    fc->byte_order = is_be ? KRAIT_BO_BE : KRAIT_BO_LE;
    fc->is_reversed = is_last_first != is_be;
    fc->align = alignment(p, object, "alignment");
    fc->base = 16;
    return fc;
}

static struct krait_fc *bit_array(struct krait_ctf2_parser *p, const struct krait_json *object)
{
    static const char *const keys[] = { FIXED, NULL };
    krait_ctf2_keys(p, object, keys);
    struct krait_fc *fc = fixed_length(p, object, KRAIT_FC_INT);
    if (fc)
        fc->form = KRAIT_INT_BITS;
    return fc;
}

static void flag(struct krait_ctf2_parser *p, struct krait_fc *fc, const struct krait_json *set)
{
    struct krait_enum_map *map = fc->labels;
    const char *label = krait_ctf2_keep(p, set->key);
    for (const struct krait_json *item = range_set(p, set); item && !p->rc; item = item->next) {
        struct range range = read_range(p, item);
        if (range.lo_negative || (!p->rc && range.hi >= fc->bits))
            krait_ctf2_fail(p, item->at, -EBADMSG, "a flag of bits that the map does not have");
        if (!p->rc)
            map->ranges[map->count++] = (struct krait_enum_range){
                .label = label, .lo = range.lo, .hi = range.hi, .label_id = map->label_count
            };
    }
    map->label_count++;
}

/* babeltrace2 2.1 shows flags in the order of their names. */
static int by_label(const void *a, const void *b)
{
    return strcmp(((const struct krait_enum_range *)a)->label, ((const struct krait_enum_range *)b)->label);
}

static struct krait_fc *bit_map(struct krait_ctf2_parser *p, const struct krait_json *object)
{
    static const char *const keys[] = { FIXED, "flags", NULL };
    krait_ctf2_keys(p, object, keys);
    struct krait_fc *fc = fixed_length(p, object, KRAIT_FC_INT);
    const struct krait_json *flags = krait_ctf2_need(p, object, "flags", KRAIT_JSON_OBJECT);
    if (flags && !flags->count)
        krait_ctf2_fail(p, flags->at, -EBADMSG, "a bit map without flags");
    if (p->rc)
        return NULL;
    fc->form = KRAIT_INT_FLAGS;
    fc->labels = krait_ctf2_alloc(p, 1, sizeof(*fc->labels));
    if (fc->labels)
        fc->labels->ranges = krait_ctf2_alloc(p, count_ranges(flags), sizeof(*fc->labels->ranges));
    for (const struct krait_json *set = flags->first; set && !p->rc; set = set->next)
        flag(p, fc, set);
    if (p->rc)
        return NULL;
    qsort(fc->labels->ranges, fc->labels->count, sizeof(*fc->labels->ranges), by_label);
    return fc;
}

static struct krait_fc *boolean(struct krait_ctf2_parser *p, const struct krait_json *object)
{
    static const char *const keys[] = { FIXED, NULL };
    krait_ctf2_keys(p, object, keys);
    struct krait_fc *fc = fixed_length(p, object, KRAIT_FC_INT);
    if (fc)
        fc->form = KRAIT_INT_BOOL;
    return fc;
}

static struct krait_fc *floating_point(struct krait_ctf2_parser *p, const struct krait_json *object)
{
    static const char *const keys[] = { FIXED, NULL };
    krait_ctf2_keys(p, object, keys);
    struct krait_fc *fc = fixed_length(p, object, KRAIT_FC_FLOAT);
    if (fc && fc->bits != 32 && fc->bits != 64)
        krait_ctf2_fail(p, object->at, -ENOTSUP, "a floating point number of %u bits; this reads 32 and 64",
                        fc->bits);
    return fc;
}

/* -- integers -- */

static struct krait_fc *finish_integer(struct krait_ctf2_parser *p, const struct krait_json *object,
                                       struct krait_fc *fc, bool is_signed)
{
    if (!fc)
        return NULL;
    const struct krait_json *base = krait_ctf2_get(p, object, "preferred-display-base", KRAIT_JSON_UNSIGNED);
    fc->base = base && base->number <= 16 ? (uint8_t)base->number : 10;
    if (base && base->number != 2 && base->number != 8 && base->number != 10 && base->number != 16)
        krait_ctf2_fail(p, base->at, -EBADMSG, "'preferred-display-base' is none of 2, 8, 10 and 16");
    fc->is_signed = is_signed;
    mappings(p, fc, object);
    if (!is_signed)
        roles(p, fc, object);
    return p->rc ? NULL : fc;
}

static struct krait_fc *fixed_unsigned(struct krait_ctf2_parser *p, const struct krait_json *object)
{
    static const char *const keys[] = { FIXED, "preferred-display-base", "mappings", "roles", NULL };
    krait_ctf2_keys(p, object, keys);
    return finish_integer(p, object, fixed_length(p, object, KRAIT_FC_INT), false);
}

static struct krait_fc *fixed_signed(struct krait_ctf2_parser *p, const struct krait_json *object)
{
    static const char *const keys[] = { FIXED, "preferred-display-base", "mappings", NULL };
    krait_ctf2_keys(p, object, keys);
    return finish_integer(p, object, fixed_length(p, object, KRAIT_FC_INT), true);
}

static struct krait_fc *variable_length(struct krait_ctf2_parser *p, const struct krait_json *object)
{
    struct krait_fc *fc = new_field(p, object->at, KRAIT_FC_INT);
    if (!fc)
        return NULL;
    fc->is_leb = true;
    fc->bits = 64;
    fc->align = 8;
    fc->byte_order = KRAIT_BO_LE;
    return fc;
}

static struct krait_fc *variable_unsigned(struct krait_ctf2_parser *p, const struct krait_json *object)
{
    static const char *const keys[] = { "preferred-display-base", "mappings", "roles", NULL };
    krait_ctf2_keys(p, object, keys);
    return finish_integer(p, object, variable_length(p, object), false);
}

static struct krait_fc *variable_signed(struct krait_ctf2_parser *p, const struct krait_json *object)
{
    static const char *const keys[] = { "preferred-display-base", "mappings", NULL };
    krait_ctf2_keys(p, object, keys);
    return finish_integer(p, object, variable_length(p, object), true);
}

/* -- locations -- */

static int scope_of(struct krait_ctf2_parser *p, const struct krait_json *object)
{
    const struct krait_json *origin = krait_ctf2_get(p, object, "origin", KRAIT_JSON_TEXT);
    return origin ? (int)krait_ctf2_word(p, origin, krait_ctf2_scope_names, KRAIT_CTF2_SCOPE_COUNT) : -1;
}

static struct krait_ctf2_location *location(struct krait_ctf2_parser *p, const struct krait_json *object,
                                            const char *key)
{
    static const char *const keys[] = { "origin", "path", NULL };
    const struct krait_json *from = krait_ctf2_need(p, object, key, KRAIT_JSON_OBJECT);
    if (from)
        krait_ctf2_keys(p, from, keys);
    const struct krait_json *path = from ? krait_ctf2_need(p, from, "path", KRAIT_JSON_ARRAY) : NULL;
    struct krait_ctf2_location *to = krait_ctf2_alloc(p, 1, sizeof(*to));
    const char **names = path ? krait_ctf2_alloc(p, path->count, sizeof(*names)) : NULL;
    if (p->rc)
        return NULL;
    *to = (struct krait_ctf2_location){ .at = from->at, .origin = scope_of(p, from), .path = names };
    for (const struct krait_json *item = path->first; item; item = item->next) {
        bool up = item->kind == KRAIT_JSON_NULL;
        if (!up && item->kind != KRAIT_JSON_TEXT)
            krait_ctf2_fail(p, item->at, -EBADMSG, "a path's element is neither a name nor null");
        if (up && to->count && names[to->count - 1])
            to->count--; /* out of the structure that the step before led into, be there one or not */
        else
            names[to->count++] = up || p->rc ? NULL : krait_ctf2_keep(p, item->text);
    }
    if (!to->count || !names[to->count - 1])
        krait_ctf2_fail(p, path->at, -EBADMSG, "a path that leads to no field");
    return to;
}

/* Appends the ranges of an option's set to the choices, which have room for them. */
static void choices(struct krait_ctf2_parser *p, struct krait_fc *fc, const struct krait_json *set,
                    struct krait_ctf2_location *selector, uint32_t option)
{
    struct krait_fc_choice *list = (struct krait_fc_choice *)fc->choices;
    for (const struct krait_json *item = range_set(p, set); item && !p->rc; item = item->next) {
        struct range range = read_range(p, item);
        selector->has_negative |= range.lo_negative;
        selector->has_large |=
            (!range.lo_negative && range.lo > INT64_MAX) || (!range.hi_negative && range.hi > INT64_MAX);
        list[fc->choice_count++] = (struct krait_fc_choice){ range.lo, range.hi, option };
    }
}

/* -- texts and blobs -- */

static struct krait_fc *null_terminated_string(struct krait_ctf2_parser *p, const struct krait_json *object)
{
    static const char *const keys[] = { "encoding", NULL };
    krait_ctf2_keys(p, object, keys);
    struct krait_fc *fc = new_field(p, object->at, KRAIT_FC_STRING);
    if (!fc)
        return NULL;
    fc->align = 8;
    fc->encoding = (uint8_t)encoding(p, object);
    return fc;
}

/* An array or a sequence of bytes. */
static struct krait_fc *bytes(struct krait_ctf2_parser *p, const struct krait_json *object, bool dynamic)
{
    struct krait_fc *fc = new_field(p, object->at, dynamic ? KRAIT_FC_SEQUENCE : KRAIT_FC_ARRAY);
    struct krait_fc *elem = new_field(p, object->at, KRAIT_FC_INT);
    const struct krait_json *length =
        dynamic ? NULL : krait_ctf2_need(p, object, "length", KRAIT_JSON_UNSIGNED);
    if (p->rc)
        return NULL;
    fc->elem = elem;
    fc->depth = 1;
    fc->align = elem->align = elem->bits = 8;
    elem->base = 16;
    elem->byte_order = KRAIT_BO_LE;
    if (dynamic)
        fc->location = location(p, object, "length-field-location");
    else
        fc->length = length->number;
    return p->rc ? NULL : fc;
}

static struct krait_fc *text(struct krait_ctf2_parser *p, const struct krait_json *object, bool dynamic)
{
    struct krait_fc *fc = bytes(p, object, dynamic);
    if (!fc)
        return NULL;
    fc->is_text = fc->elem->is_text = true;
    fc->encoding = (uint8_t)encoding(p, object);
    unsigned unit = (unsigned)krait_encoding_unit(fc->encoding);
    if (!dynamic && fc->length % unit)
        krait_ctf2_fail(p, object->at, -EBADMSG, "a string of %llu bytes ends within a character of %u",
                        (unsigned long long)fc->length, unit);
    return fc;
}

static struct krait_fc *static_length_string(struct krait_ctf2_parser *p, const struct krait_json *object)
{
    static const char *const keys[] = { "length", "encoding", NULL };
    krait_ctf2_keys(p, object, keys);
    return text(p, object, false);
}

static struct krait_fc *dynamic_length_string(struct krait_ctf2_parser *p, const struct krait_json *object)
{
    static const char *const keys[] = { "length-field-location", "encoding", NULL };
    krait_ctf2_keys(p, object, keys);
    return text(p, object, true);
}

static struct krait_fc *blob(struct krait_ctf2_parser *p, const struct krait_json *object, bool dynamic)
{
    struct krait_fc *fc = bytes(p, object, dynamic);
    krait_ctf2_get(p, object, "media-type", KRAIT_JSON_TEXT);
    if (fc)
        fc->is_blob = true;
    return p->rc ? NULL : fc;
}

static struct krait_fc *static_length_blob(struct krait_ctf2_parser *p, const struct krait_json *object)
{
    static const char *const keys[] = { "length", "media-type", "roles", NULL };
    krait_ctf2_keys(p, object, keys);
    struct krait_fc *fc = blob(p, object, false);
    if (fc)
        roles(p, fc, object);
    if (fc && fc->roles & 1u << KRAIT_ROLE_UUID && fc->length != 16)
        krait_ctf2_fail(p, object->at, -EBADMSG, "the metadata stream's UUID is not 16 bytes");
    return fc;
}

static struct krait_fc *dynamic_length_blob(struct krait_ctf2_parser *p, const struct krait_json *object)
{
    static const char *const keys[] = { "length-field-location", "media-type", NULL };
    krait_ctf2_keys(p, object, keys);
    return blob(p, object, true);
}

/* -- what holds others -- */

static void deepen(struct krait_fc *fc, const struct krait_fc *below)
{
    fc->depth = KRAIT_MAX(fc->depth, (uint8_t)(below->depth + 1));
}

static struct krait_fc *array(struct krait_ctf2_parser *p, const struct krait_json *object,
                              enum krait_fc_kind kind)
{
    struct krait_fc *fc = new_field(p, object->at, kind);
    struct krait_fc *elem = krait_ctf2_field(p, object, "element-field-class");
    if (p->rc)
        return NULL;
    fc->elem = elem;
    fc->align = alignment(p, object, "minimum-alignment");
    deepen(fc, elem);
    return fc;
}

static struct krait_fc *static_length_array(struct krait_ctf2_parser *p, const struct krait_json *object)
{
    static const char *const keys[] = { "element-field-class", "minimum-alignment", "length", NULL };
    krait_ctf2_keys(p, object, keys);
    struct krait_fc *fc = array(p, object, KRAIT_FC_ARRAY);
    const struct krait_json *length = krait_ctf2_need(p, object, "length", KRAIT_JSON_UNSIGNED);
    if (p->rc)
        return NULL;
    fc->length = length->number;
    return fc;
}

static struct krait_fc *dynamic_length_array(struct krait_ctf2_parser *p, const struct krait_json *object)
{
    static const char *const keys[] = { "element-field-class", "minimum-alignment", "length-field-location",
                                        NULL };
    krait_ctf2_keys(p, object, keys);
    struct krait_fc *fc = array(p, object, KRAIT_FC_SEQUENCE);
    if (fc)
        fc->location = location(p, object, "length-field-location");
    return p->rc ? NULL : fc;
}

static void member(struct krait_ctf2_parser *p, struct krait_fc *fc, const struct krait_json *object,
                   struct krait_strtab *names)
{
    static const char *const keys[] = { "name", "field-class", NULL };
    if (object->kind != KRAIT_JSON_OBJECT)
        krait_ctf2_fail(p, object->at, -EBADMSG, "a member that is not an object");
    krait_ctf2_keys(p, object, keys);
    const struct krait_json *name = krait_ctf2_need(p, object, "name", KRAIT_JSON_TEXT);
    struct krait_fc *child = krait_ctf2_field(p, object, "field-class");
    if (p->rc)
        return;
    const char *kept = krait_ctf2_keep(p, name->text);
    uint32_t id = krait_strtab_add(names, kept, strlen(kept));
    if (id == KRAIT_NO_ID)
        krait_ctf2_oom(p);
    else if (id != fc->count)
        krait_ctf2_fail(p, name->at, -EBADMSG, "a second member '%.64s' of a structure", kept);
    else
        fc->members[fc->count++] = (struct krait_fc_member){ .name = kept, .tsdl_name = kept, .fc = child };
    deepen(fc, child);
}

static struct krait_fc *structure(struct krait_ctf2_parser *p, const struct krait_json *object)
{
    static const char *const keys[] = { "member-classes", "minimum-alignment", NULL };
    krait_ctf2_keys(p, object, keys);
    struct krait_fc *fc = new_field(p, object->at, KRAIT_FC_STRUCT);
    const struct krait_json *list = krait_ctf2_get(p, object, "member-classes", KRAIT_JSON_ARRAY);
    if (p->rc)
        return NULL;
    fc->align = alignment(p, object, "minimum-alignment");
    fc->members = krait_ctf2_alloc(p, list ? list->count : 0, sizeof(*fc->members));
    struct krait_strtab names = { 0 };
    for (const struct krait_json *item = list ? list->first : NULL; item && !p->rc; item = item->next)
        member(p, fc, item, &names);
    krait_strtab_done(&names);
    return p->rc ? NULL : fc;
}

static struct krait_fc *optional(struct krait_ctf2_parser *p, const struct krait_json *object)
{
    static const char *const keys[] = { "field-class", "selector-field-location", "selector-field-ranges",
                                        NULL };
    krait_ctf2_keys(p, object, keys);
    struct krait_fc *fc = new_field(p, object->at, KRAIT_FC_OPTIONAL);
    struct krait_fc *child = krait_ctf2_field(p, object, "field-class");
    struct krait_ctf2_location *selector = location(p, object, "selector-field-location");
    struct krait_fc_member *only = krait_ctf2_alloc(p, 1, sizeof(*only));
    if (p->rc)
        return NULL;
    *only = (struct krait_fc_member){ .name = "", .tsdl_name = "", .fc = child };
    fc->members = only;
    fc->count = 1;
    fc->location = selector;
    deepen(fc, child);
    const struct krait_json *set = krait_ctf2_get(p, object, "selector-field-ranges", KRAIT_JSON_ARRAY);
    fc->choices = krait_ctf2_alloc(p, set ? set->count : 1, sizeof(*fc->choices));
    if (set && fc->choices)
        choices(p, fc, set, selector, 0);
    return p->rc ? NULL : fc;
}

/* Options need no names; but no two have the same. */
static const char *option_name(struct krait_ctf2_parser *p, const struct krait_json *object,
                               struct krait_strtab *names)
{
    const char *name = krait_ctf2_text(p, object, "name", NULL);
    uint32_t count = names->len;
    uint32_t id = name ? krait_strtab_add(names, name, strlen(name)) : count;
    if (id == KRAIT_NO_ID)
        krait_ctf2_oom(p);
    else if (id != count)
        krait_ctf2_fail(p, object->at, -EBADMSG, "a second option '%.64s' of a variant", name);
    return name ? name : "";
}

static void variant_option(struct krait_ctf2_parser *p, struct krait_fc *fc, const struct krait_json *object,
                           struct krait_ctf2_location *selector, struct krait_strtab *names)
{
    static const char *const keys[] = { "name", "field-class", "selector-field-ranges", NULL };
    if (object->kind != KRAIT_JSON_OBJECT)
        krait_ctf2_fail(p, object->at, -EBADMSG, "an option that is not an object");
    krait_ctf2_keys(p, object, keys);
    const char *name = option_name(p, object, names);
    struct krait_fc *child = krait_ctf2_field(p, object, "field-class");
    const struct krait_json *set = krait_ctf2_need(p, object, "selector-field-ranges", KRAIT_JSON_ARRAY);
    if (p->rc)
        return;
    choices(p, fc, set, selector, fc->count);
    fc->members[fc->count++] = (struct krait_fc_member){ .name = name, .tsdl_name = name, .fc = child };
    deepen(fc, child);
}

static uint32_t count_choices(const struct krait_json *options)
{
    uint32_t n = 0;
    for (const struct krait_json *option = options->first; option; option = option->next) {
        const struct krait_json *set = krait_json_get(option, "selector-field-ranges");
        n += set ? set->count : 0;
    }
    return n;
}

static struct krait_fc *variant(struct krait_ctf2_parser *p, const struct krait_json *object)
{
    static const char *const keys[] = { "options", "selector-field-location", NULL };
    krait_ctf2_keys(p, object, keys);
    struct krait_fc *fc = new_field(p, object->at, KRAIT_FC_VARIANT);
    const struct krait_json *list = krait_ctf2_need(p, object, "options", KRAIT_JSON_ARRAY);
    struct krait_ctf2_location *selector = location(p, object, "selector-field-location");
    if (p->rc)
        return NULL;
    if (!list->count)
        krait_ctf2_fail(p, list->at, -EBADMSG, "a variant without options");
    fc->location = selector;
    fc->members = krait_ctf2_alloc(p, list->count, sizeof(*fc->members));
    fc->choices = krait_ctf2_alloc(p, count_choices(list), sizeof(*fc->choices));
    struct krait_strtab names = { 0 };
    for (const struct krait_json *item = list->first; item && !p->rc; item = item->next)
        variant_option(p, fc, item, selector, &names);
    krait_strtab_done(&names);
    return p->rc ? NULL : fc;
}

/* -- all of them -- */

static const struct {
    const char *type;
    struct krait_fc *(*read)(struct krait_ctf2_parser *p, const struct krait_json *object);
} classes[] = {
    { "fixed-length-bit-array", bit_array },
    { "fixed-length-bit-map", bit_map },
    { "fixed-length-boolean", boolean },
    { "fixed-length-unsigned-integer", fixed_unsigned },
    { "fixed-length-signed-integer", fixed_signed },
    { "fixed-length-floating-point-number", floating_point },
    { "variable-length-unsigned-integer", variable_unsigned },
    { "variable-length-signed-integer", variable_signed },
    { "null-terminated-string", null_terminated_string },
    { "static-length-string", static_length_string },
    { "dynamic-length-string", dynamic_length_string },
    { "static-length-blob", static_length_blob },
    { "dynamic-length-blob", dynamic_length_blob },
    { "static-length-array", static_length_array },
    { "dynamic-length-array", dynamic_length_array },
    { "structure", structure },
    { "optional", optional },
    { "variant", variant },
};

static struct krait_fc *read_class(struct krait_ctf2_parser *p, const struct krait_json *object)
{
    const struct krait_json *type = krait_ctf2_need(p, object, "type", KRAIT_JSON_TEXT);
    for (size_t i = 0; type && i < KRAIT_ARRAY_LEN(classes); i++) {
        if (strcmp(classes[i].type, type->text) == 0)
            return classes[i].read(p, object);
    }
    if (type)
        krait_ctf2_fail(p, type->at, -EBADMSG, "a field class of type '%.64s', which there is not",
                        type->text);
    return NULL;
}

static struct krait_fc *field_class(struct krait_ctf2_parser *p, const struct krait_json *value);

/* An alias sees those before itself only: it can never lead to itself. */
static struct krait_fc *read_alias(struct krait_ctf2_parser *p, const struct krait_json *name)
{
    uint32_t limit = p->alias_limit;
    uint32_t id = krait_strtab_find(&p->alias_names, name->text, strlen(name->text));
    if (id == KRAIT_NO_ID || id >= limit) {
        krait_ctf2_fail(p, name->at, -EBADMSG, "there is no field class alias '%.64s' before", name->text);
        return NULL;
    }
    p->alias_limit = id;
    struct krait_fc *fc = field_class(p, p->aliases[id]);
    p->alias_limit = limit;
    return fc;
}

static struct krait_fc *field_class(struct krait_ctf2_parser *p, const struct krait_json *value)
{
    struct krait_fc *fc = NULL;
    if (++p->depth > KRAIT_CTF2_MAX_DEPTH)
        krait_ctf2_fail(p, value->at, -EBADMSG, "field classes within field classes deeper than %d",
                        (int)KRAIT_CTF2_MAX_DEPTH);
    else if (value->kind == KRAIT_JSON_TEXT)
        fc = read_alias(p, value);
    else if (value->kind == KRAIT_JSON_OBJECT)
        fc = read_class(p, value);
    else
        krait_ctf2_fail(p, value->at, -EBADMSG, "a field class is neither an object nor an alias's name");
    p->depth--;
    return p->rc ? NULL : fc;
}

struct krait_fc *krait_ctf2_field(struct krait_ctf2_parser *p, const struct krait_json *object,
                                  const char *key)
{
    const struct krait_json *value = p->rc ? NULL : krait_json_get(object, key);
    if (!value)
        krait_ctf2_fail(p, object->at, -EBADMSG, "the property '%s' is missing", key);
    return value ? field_class(p, value) : NULL;
}
