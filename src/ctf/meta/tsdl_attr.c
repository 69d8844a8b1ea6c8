/* SPDX-License-Identifier: Apache-2.0
 *
 * The scalar types: integer { }, floating_point { }, string { } and an enumeration's labels (CTF 1.8.3, section 4.1).
 */
#include "ctf/meta/model.h"
#include "ctf/meta/tsdl.h"

#include <string.h>

struct krait_fc *krait_tsdl_fc_new(struct krait_tsdl_parser *p, enum krait_fc_kind kind)
{
    if (p->fc_count++ >= KRAIT_CTF_MAX_FIELDS) {
        krait_tsdl_fail(p, -EBADMSG, "more than %d fields", KRAIT_CTF_MAX_FIELDS);
        return NULL;
    }
    struct krait_fc *fc = KRAIT_ARENA_NEW(p->arena, struct krait_fc);
    if (!fc) {
        krait_tsdl_oom(p);
        return NULL;
    }
    fc->kind = (uint8_t)kind;
    fc->align = kind == KRAIT_FC_STRING ? 8 : 1;
    fc->slot = fc->ref_slot = KRAIT_NO_SLOT;
    return fc;
}

static void copy_members(struct krait_tsdl_parser *p, struct krait_fc *to, const struct krait_fc *from)
{
    to->members = krait_arena_alloc(p->arena, from->count * sizeof(*to->members));
    if (!to->members) {
        krait_tsdl_oom(p);
        to->count = 0;
        return;
    }
    for (uint32_t i = 0; i < from->count && !p->rc; i++) {
        to->members[i] = from->members[i];
        to->members[i].fc = krait_tsdl_fc_copy(p, from->members[i].fc);
    }
}

struct krait_fc *krait_tsdl_fc_copy(struct krait_tsdl_parser *p, const struct krait_fc *fc)
{
    struct krait_fc *to = fc && !p->rc ? krait_tsdl_fc_new(p, fc->kind) : NULL;
    if (!to)
        return NULL;
    *to = *fc;
    if (fc->kind == KRAIT_FC_STRUCT || fc->kind == KRAIT_FC_VARIANT)
        copy_members(p, to, fc);
    else if (fc->kind == KRAIT_FC_ARRAY || fc->kind == KRAIT_FC_SEQUENCE)
        to->elem = krait_tsdl_fc_copy(p, fc->elem);
    return p->rc ? NULL : to;
}

int krait_tsdl_attr(struct krait_tsdl_parser *p, const char *const *names, const char *name, uint32_t *seen)
{
    for (int i = 0; names[i]; i++) {
        if (strcmp(names[i], name) != 0)
            continue;
        if (*seen & 1u << i)
            krait_tsdl_fail(p, -EBADMSG, "'%s' stands twice", name);
        *seen |= 1u << i;
        return i;
    }
    return -1;
}

uint64_t krait_tsdl_number(struct krait_tsdl_parser *p, const struct krait_tsdl_value *value,
                           const char *what)
{
    if (value->kind == KRAIT_VALUE_INT && !value->negative)
        return value->number;
    krait_tsdl_fail(p, -EBADMSG, "%s is not a number of 0 or more", what);
    return 0;
}

/* A word of a table of pairs: its number, or -1. */
struct word {
    const char *text;
    int value;
};

static int word_value(const struct word *words, const char *text)
{
    for (; words->text; words++) {
        if (strcmp(words->text, text) == 0)
            return words->value;
    }
    return -1;
}

bool krait_tsdl_boolean(struct krait_tsdl_parser *p, const struct krait_tsdl_value *value, const char *what)
{
    static const struct word words[] = {
        { "true", 1 }, { "TRUE", 1 }, { "false", 0 }, { "FALSE", 0 }, { NULL, 0 }
    };
    if (value->kind == KRAIT_VALUE_INT)
        return value->number != 0;
    int found = value->kind == KRAIT_VALUE_TEXT ? word_value(words, value->text) : -1;
    if (found < 0)
        krait_tsdl_fail(p, -EBADMSG, "%s is neither true nor false", what);
    return found == 1;
}

enum krait_byte_order krait_tsdl_byte_order(struct krait_tsdl_parser *p, const struct krait_tsdl_value *value)
{
    static const struct word words[] = { { "le", KRAIT_BO_LE },
                                         { "be", KRAIT_BO_BE },
                                         { "network", KRAIT_BO_BE },
                                         { "native", KRAIT_BO_NATIVE },
                                         { NULL, 0 } };
    int found = value->kind == KRAIT_VALUE_TEXT ? word_value(words, value->text) : -1;
    if (found < 0)
        krait_tsdl_fail(p, -EBADMSG, "'byte_order' is none of le, be, network, native");
    return found < 0 ? KRAIT_BO_NATIVE : (enum krait_byte_order)found;
}

static uint8_t display_base(struct krait_tsdl_parser *p, const struct krait_tsdl_value *value)
{
    static const struct word words[] = {
        { "decimal", 10 }, { "dec", 10 },   { "d", 10 }, { "i", 10 }, { "u", 10 },    { "hexadecimal", 16 },
        { "hex", 16 },     { "x", 16 },     { "X", 16 }, { "p", 16 }, { "octal", 8 }, { "oct", 8 },
        { "o", 8 },        { "binary", 2 }, { "b", 2 },  { NULL, 0 }
    };
    uint64_t n = value->number;
    if (value->kind == KRAIT_VALUE_INT && (n == 2 || n == 8 || n == 10 || n == 16))
        return (uint8_t)n;
    int found = value->kind == KRAIT_VALUE_TEXT ? word_value(words, value->text) : -1;
    if (found < 0)
        krait_tsdl_fail(p, -EBADMSG, "'base' is none of 2, 8, 10, 16");
    return found < 0 ? 10 : (uint8_t)found;
}

static bool is_text_encoding(struct krait_tsdl_parser *p, const struct krait_tsdl_value *value)
{
    static const struct word words[] = { { "UTF8", 1 },  { "utf8", 1 },  { "utf-8", 1 }, { "UTF-8", 1 },
                                         { "ASCII", 1 }, { "ascii", 1 }, { "none", 0 },  { NULL, 0 } };
    int found = value->kind == KRAIT_VALUE_TEXT ? word_value(words, value->text) : -1;
    if (found < 0)
        krait_tsdl_fail(p, -EBADMSG, "'encoding' is none of none, UTF8, ASCII");
    return found == 1;
}

static uint32_t alignment(struct krait_tsdl_parser *p, const struct krait_tsdl_value *value)
{
    uint64_t align = krait_tsdl_number(p, value, "'align'");
    if (!p->rc && (align == 0 || (align & (align - 1)) || align > 1u << 30))
        krait_tsdl_fail(p, -EBADMSG, "'align' is not a power of two");
    return p->rc ? 1 : (uint32_t)align;
}

/* map = clock.NAME.value, or clock.NAME; anything else is left out, as other readers do. */
static const struct krait_ctf_clock *mapped_clock(struct krait_tsdl_parser *p,
                                                  const struct krait_tsdl_value *value)
{
    if (value->kind != KRAIT_VALUE_TEXT) {
        krait_tsdl_fail(p, -EBADMSG, "'map' is not clock.NAME.value");
        return NULL;
    }
    if (value->quoted || strncmp(value->text, "clock.", 6) != 0)
        return NULL;
    const char *from = value->text + 6;
    size_t n = strcspn(from, ".-");
    if (from[n] && strcmp(from + n, ".value") != 0)
        return NULL;
    KRAIT_AUTO_FREE char *name = strndup(from, n);
    if (!name) {
        krait_tsdl_oom(p);
        return NULL;
    }
    const struct krait_ctf_clock *clock = krait_ctf_clock_named(p->md, name);
    if (!clock)
        krait_tsdl_fail(p, -EBADMSG, "'map' names clock '%s', which is not declared before", name);
    return clock;
}

/* name = value; of the types' braces. Returns the name, NULL on failure. */
static const char *attribute(struct krait_tsdl_parser *p, struct krait_tsdl_value *value)
{
    const char *name = krait_tsdl_path(p);
    krait_tsdl_expect(p, '=');
    *value = krait_tsdl_value(p);
    krait_tsdl_expect(p, ';');
    return p->rc ? NULL : name;
}

static const char *const integer_attrs[] = { "size", "align",    "signed", "byte_order",
                                             "base", "encoding", "map",    NULL };

static void integer_attr(struct krait_tsdl_parser *p, struct krait_fc *fc, int attr,
                         const struct krait_tsdl_value *v)
{
    uint64_t size;
    switch (attr) {
    case 0:
        size = krait_tsdl_number(p, v, "'size'");
        if (!p->rc && (size == 0 || size > 64))
            krait_tsdl_fail(p, -EBADMSG, "an integer of %llu bits: 1 to 64 can be read",
                            (unsigned long long)size);
        fc->bits = (uint8_t)size;
        break;
    case 1:
        fc->align = alignment(p, v);
        break;
    case 2:
        fc->is_signed = krait_tsdl_boolean(p, v, "'signed'");
        break;
    case 3:
        fc->byte_order = (uint8_t)krait_tsdl_byte_order(p, v);
        break;
    case 4:
        fc->base = display_base(p, v);
        break;
    case 5:
        fc->is_text = is_text_encoding(p, v);
        break;
    case 6:
        fc->clock = mapped_clock(p, v);
        break;
    default: /* unknown attributes are for others */
        break;
    }
}

/* After the word `integer`. */
struct krait_fc *krait_tsdl_integer(struct krait_tsdl_parser *p)
{
    struct krait_fc *fc = krait_tsdl_fc_new(p, KRAIT_FC_INT);
    uint32_t seen = 0;
    krait_tsdl_expect(p, '{');
    if (!fc)
        return NULL;
    fc->base = 10;
    while (krait_tsdl_until(p, '}')) {
        struct krait_tsdl_value value;
        const char *name = attribute(p, &value);
        if (name)
            integer_attr(p, fc, krait_tsdl_attr(p, integer_attrs, name, &seen), &value);
    }
    if (!p->rc && !(seen & 1))
        krait_tsdl_fail(p, -EBADMSG, "an integer without 'size'");
    if (!(seen & 2))
        fc->align = fc->bits % 8 ? 1 : 8;
    return fc;
}

static const char *const float_attrs[] = { "exp_dig", "mant_dig", "byte_order", "align", NULL };

struct krait_fc *krait_tsdl_float(struct krait_tsdl_parser *p)
{
    struct krait_fc *fc = krait_tsdl_fc_new(p, KRAIT_FC_FLOAT);
    uint32_t seen = 0;
    uint64_t digits[2] = { 0, 0 };
    krait_tsdl_expect(p, '{');
    while (fc && krait_tsdl_until(p, '}')) {
        struct krait_tsdl_value value;
        const char *name = attribute(p, &value);
        int attr = name ? krait_tsdl_attr(p, float_attrs, name, &seen) : -1;
        if (attr == 0 || attr == 1)
            digits[attr] = krait_tsdl_number(p, &value, float_attrs[attr]);
        else if (attr == 2)
            fc->byte_order = (uint8_t)krait_tsdl_byte_order(p, &value);
        else if (attr == 3)
            fc->align = alignment(p, &value);
    }
    if (p->rc)
        return NULL;
    bool is32 = digits[0] == 8 && digits[1] == 24, is64 = digits[0] == 11 && digits[1] == 53;
    if (!is32 && !is64)
        krait_tsdl_fail(p, -EBADMSG,
                        "a floating point number of %llu and %llu digits: 8 and 24, or 11 and 53 can be read",
                        (unsigned long long)digits[0], (unsigned long long)digits[1]);
    fc->bits = is32 ? 32 : 64;
    return fc;
}

struct krait_fc *krait_tsdl_string(struct krait_tsdl_parser *p)
{
    static const char *const attrs[] = { "encoding", NULL };
    struct krait_fc *fc = krait_tsdl_fc_new(p, KRAIT_FC_STRING);
    uint32_t seen = 0;
    if (!krait_tsdl_accept(p, '{'))
        return fc;
    while (krait_tsdl_until(p, '}')) {
        struct krait_tsdl_value value;
        const char *name = attribute(p, &value);
        if (name && krait_tsdl_attr(p, attrs, name, &seen) == 0)
            is_text_encoding(p, &value);
    }
    return fc;
}

/* -- enumerations -- */

static const char *enum_label(struct krait_tsdl_parser *p)
{
    const char *label = p->tok.text;
    if (p->tok.kind != KRAIT_TOK_WORD && p->tok.kind != KRAIT_TOK_STRING)
        krait_tsdl_fail(p, -EBADMSG, "an enumeration's label is missing");
    krait_tsdl_advance(p);
    return label;
}

static uint64_t enum_value(struct krait_tsdl_parser *p)
{
    struct krait_tsdl_value value = krait_tsdl_value(p);
    if (!p->rc && value.kind != KRAIT_VALUE_INT)
        krait_tsdl_fail(p, -EBADMSG, "an enumeration's value is not a number");
    return value.number;
}

/* label [= value [... value]] */
static void enumerator(struct krait_tsdl_parser *p, struct krait_enum_range *range, uint64_t *next)
{
    range->label = enum_label(p);
    range->lo = range->hi = *next;
    if (krait_tsdl_accept(p, '=')) {
        range->lo = range->hi = enum_value(p);
        if (p->tok.kind == KRAIT_TOK_RANGE) {
            krait_tsdl_advance(p);
            range->hi = enum_value(p);
        }
    }
    *next = range->hi + 1;
}

/* Equal labels get equal ids. */
static void number_labels(struct krait_tsdl_parser *p, struct krait_enum_map *map)
{
    struct krait_strtab labels = { 0 };
    for (uint32_t i = 0; i < map->count && !p->rc; i++) {
        map->ranges[i].label_id =
            krait_strtab_add(&labels, map->ranges[i].label, strlen(map->ranges[i].label));
        if (map->ranges[i].label_id == KRAIT_NO_ID)
            krait_tsdl_oom(p);
    }
    map->label_count = labels.len;
    krait_strtab_done(&labels);
}

/* After the opening brace. */
struct krait_fc *krait_tsdl_enum_body(struct krait_tsdl_parser *p, const struct krait_fc *integer)
{
    struct krait_fc *fc = krait_tsdl_fc_copy(p, integer);
    struct krait_enum_map *map = KRAIT_ARENA_NEW(p->arena, struct krait_enum_map);
    uint32_t cap = 0;
    uint64_t next = 0, flip = integer && integer->is_signed ? (uint64_t)1 << 63 : 0;
    if (!map)
        krait_tsdl_oom(p);
    if (krait_tsdl_is(&p->tok, '}'))
        krait_tsdl_fail(p, -EBADMSG, "an enumeration without labels");
    while (krait_tsdl_until(p, '}')) {
        map->ranges = krait_tsdl_grow(p, map->ranges, map->count, &cap, sizeof(*map->ranges));
        if (p->rc)
            break;
        struct krait_enum_range *range = &map->ranges[map->count++];
        enumerator(p, range, &next);
        if ((range->lo ^ flip) > (range->hi ^ flip))
            krait_tsdl_fail(p, -EBADMSG, "the label '%s' is for a range that ends before it begins",
                            range->label);
        if (!krait_tsdl_accept(p, ',') && !krait_tsdl_is(&p->tok, '}'))
            krait_tsdl_fail(p, -EBADMSG, "a comma or the end of the enumeration is missing");
    }
    if (p->rc)
        return NULL;
    number_labels(p, map);
    fc->kind = KRAIT_FC_ENUM;
    fc->labels = map;
    return fc;
}
