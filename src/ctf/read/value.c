/* SPDX-License-Identifier: Apache-2.0 */
#include "ctf/read/value.h"

#include "ctf/read/path.h"
#include "ctf/scalar/bits.h"
#include "ctf/scalar/wide.h"

#include <string.h>

static uint64_t align_up(uint64_t at, uint64_t align)
{
    return (at + align - 1) & ~(align - 1);
}

/* -- nodes -- */

static bool is_number(const struct krait_fc *fc)
{
    return krait_fc_is_int(fc) || fc->kind == KRAIT_FC_FLOAT;
}

static int compile_skip(struct krait_program *program, struct krait_arena *arena, const struct krait_fc *fc)
{
    return krait_program_new(program, arena, &fc, 1);
}

static int node_init(struct krait_node *node, struct krait_arena *arena, const struct krait_fc *fc,
                     const char *name)
{
    *node = (struct krait_node){ .fc = fc, .name = name };
    if (is_number(fc) || krait_node_is_text(node))
        return 0;
    bool list = fc->kind == KRAIT_FC_ARRAY || fc->kind == KRAIT_FC_SEQUENCE;
    node->kid_count = list ? 1 : fc->count;
    node->kids = krait_arena_alloc(arena, KRAIT_MAX(node->kid_count, 1u) * sizeof(*node->kids));
    int rc = node->kids ? compile_skip(&node->skip, arena, fc) : -ENOMEM;
    for (uint32_t i = 0; i < node->kid_count && !rc; i++)
        rc = list ? node_init(&node->kids[i], arena, fc->elem, name)
                  : node_init(&node->kids[i], arena, fc->members[i].fc,
                              fc->kind == KRAIT_FC_STRUCT ? fc->members[i].name : name);
    return rc;
}

/* All memory is the arena's. NULL when it is out. */
static const struct krait_node *new_node(struct krait_arena *arena, const struct krait_fc *fc,
                                         const char *name)
{
    struct krait_node *node = KRAIT_ARENA_NEW(arena, struct krait_node);
    return node && !node_init(node, arena, fc, name) ? node : NULL;
}

/* -- reading -- */

/* Goes past what the program stands for; the decoder stays where it is, but for lengths and tags. */
static int walk(struct krait_decoder *d, const struct krait_program *program, uint64_t *at)
{
    uint64_t stood = d->at, clock = d->clock;
    uint8_t bits_be = d->bits_be;
    d->at = *at;
    d->bits_be = KRAIT_BITS_ANY; /* orders were looked at when the event was passed */
    int rc = krait_decode_skip(d, program);
    if (!rc)
        *at = d->at;
    d->at = stood;
    d->clock = clock;
    d->bits_be = bits_be;
    return rc;
}

static uint64_t load(const struct krait_decoder *d, const struct krait_fc *fc, uint64_t at)
{
    bool native = !krait_fc_is_swapped(fc);
    const uint8_t *p = d->bytes + at / 8;
    if (KRAIT_UNLIKELY(fc->is_reversed))
        native = false;
    if (native && at % 8 == 0 && fc->bits == 32) {
        uint32_t value;
        memcpy(&value, p, sizeof(value));
        return value;
    }
    if (native && at % 8 == 0 && fc->bits == 64) {
        uint64_t value;
        memcpy(&value, p, sizeof(value));
        return value;
    }
    uint64_t bits = fc->byte_order == KRAIT_BO_BE ? krait_bits_be(d->bytes, at, fc->bits)
                                                  : krait_bits_le(d->bytes, at, fc->bits);
    return fc->is_reversed ? krait_bits_reversed(bits, fc->bits) : bits;
}

static uint64_t load_int(const struct krait_decoder *d, const struct krait_fc *fc, uint64_t at)
{
    uint64_t value = 0;
    unsigned bits;
    if (KRAIT_UNLIKELY(fc->is_leb)) {
        krait_leb_read(d->bytes + at / 8, (d->end - at) / 8, fc->is_signed, &value, &bits);
        return value;
    }
    value = load(d, fc, at);
    return fc->is_signed ? krait_sign_extend(value, fc->bits) : value;
}

uint64_t krait_value_int(const struct krait_value *value)
{
    return load_int(value->d, value->node->fc, value->at);
}

double krait_value_float(const struct krait_value *value)
{
    uint64_t raw = load(value->d, value->node->fc, value->at);
    if (value->node->fc->bits == 32) {
        uint32_t raw32 = (uint32_t)raw;
        float single;
        memcpy(&single, &raw32, sizeof(single));
        return single;
    }
    double number;
    memcpy(&number, &raw, sizeof(number));
    return number;
}

const char *krait_value_text(const struct krait_value *value, size_t *size)
{
    const char *text = (const char *)value->d->bytes + value->at / 8;
    enum krait_encoding encoding = value->node->fc->encoding;
    *size = encoding ? krait_wide_length(encoding, (const uint8_t *)text, value->count)
                     : strnlen(text, value->count);
    return text;
}

static int string_at(struct krait_value *value)
{
    struct krait_decoder *d = value->d;
    const uint8_t *from = d->bytes + value->at / 8;
    enum krait_encoding encoding = value->node->fc->encoding;
    if (KRAIT_UNLIKELY(encoding)) {
        size_t room = (d->end - value->at) / 8, length = krait_wide_length(encoding, from, room);
        value->count = length + krait_encoding_unit(encoding);
        return value->count <= room ? 0 : -EBADMSG;
    }
    const uint8_t *nul = memchr(from, 0, (d->end - value->at) / 8);
    value->count = nul ? (uint64_t)(nul - from) + 1 : 0;
    return nul ? 0 : -EBADMSG;
}

/* An integer of as many bytes as it needs: `count` says how many. */
static int leb_at(struct krait_value *value)
{
    struct krait_decoder *d = value->d;
    const struct krait_fc *fc = value->node->fc;
    unsigned bits;
    uint64_t number;
    if (krait_leb_read(d->bytes + value->at / 8, (d->end - value->at) / 8, fc->is_signed, &number, &bits))
        return -EBADMSG;
    value->count = bits / 7;
    if (fc->slot != KRAIT_NO_SLOT)
        d->slots[fc->slot] = number;
    return 0;
}

/* What a kind has to have beside its place. */
static int measure(struct krait_value *value)
{
    const struct krait_fc *fc = value->node->fc;
    struct krait_decoder *d = value->d;
    if (fc->kind == KRAIT_FC_STRING)
        return string_at(value);
    if (krait_fc_is_int(fc) && fc->is_leb)
        return leb_at(value);
    if (fc->kind == KRAIT_FC_STRUCT)
        value->count = fc->count;
    if (fc->kind == KRAIT_FC_ARRAY)
        value->count = fc->length;
    if (fc->kind == KRAIT_FC_SEQUENCE)
        value->count = d->slots[fc->ref_slot];
    if (krait_node_is_text(value->node))
        return value->count <= (d->end - value->at) / 8 ? 0 : -EBADMSG;
    if (!is_number(fc))
        return 0;
    if (fc->bits > d->end - value->at)
        return -EBADMSG;
    if (krait_fc_is_int(fc) && fc->slot != KRAIT_NO_SLOT)
        d->slots[fc->slot] = load_int(d, fc, value->at);
    return 0;
}

static bool has_options(const struct krait_fc *fc)
{
    return fc->kind == KRAIT_FC_VARIANT || fc->kind == KRAIT_FC_OPTIONAL;
}

/* The value of `node` at bit `at`, after alignment; what replaces it, and errors, as for krait_value_next. */
static int value_at(struct krait_value *value, struct krait_decoder *d, const struct krait_node *node,
                    uint64_t at)
{
    const char *name = NULL;
    while (has_options(node->fc)) {
        uint32_t option = krait_decode_option(node->fc, d->slots[node->fc->ref_slot]);
        if (option == KRAIT_NO_ID)
            return -ENODATA;
        if (option == node->fc->count)
            break; /* an optional value that is not there */
        name = node->fc->kind == KRAIT_FC_VARIANT ? node->fc->members[option].name : name;
        node = &node->kids[option];
    }
    at = align_up(at, node->fc->align);
    *value = (struct krait_value){ .node = node, .d = d, .at = at, .option = name };
    return at > d->end ? -EBADMSG : measure(value);
}

/* The bit behind a value. */
static int value_end(const struct krait_value *value, uint64_t *at)
{
    const struct krait_node *node = value->node;
    *at = value->at;
    if (krait_fc_is_int(node->fc) && node->fc->is_leb)
        *at += value->count * 8;
    else if (is_number(node->fc))
        *at += node->fc->bits;
    else if (krait_node_is_text(node))
        *at += value->count * 8;
    else
        return walk(value->d, &node->skip, at);
    return 0;
}

int krait_value_next(const struct krait_value *parent, struct krait_value *child)
{
    uint64_t at = parent->at, index = child->node ? child->index + 1 : 0;
    int rc = child->node ? value_end(child, &at) : 0;
    if (rc || index >= parent->count || !parent->node->kid_count)
        return rc;
    bool is_struct = parent->node->fc->kind == KRAIT_FC_STRUCT;
    rc = value_at(child, parent->d, &parent->node->kids[is_struct ? index : 0], at);
    child->index = index;
    return rc ? rc : 1;
}

/* -- locators -- */

enum base { BASE_PACKET, BASE_EVENT, BASE_FIELDS };

/* One part of the way. */
struct hop {
    enum { HOP_PASS, HOP_OPTION, HOP_ELEMENT } kind;
    struct krait_program program; /* PASS: what is gone past */
    bool fixed;                   /* PASS: it is of a fixed size: no need to walk */
    uint64_t align, size;         /* of that, bits */
    uint64_t index;               /* of the option or element */
    const struct krait_fc *fc;    /* the variant or array */
    const struct krait_node *element;
};

enum { MAX_HOPS = 32 };

struct krait_locator {
    enum base base;
    bool fixed; /* the first hop is all, and ends at the value's own begin */
    uint32_t hop_count;
    struct hop *hops;
    const struct krait_node *node;
};

const struct krait_node *krait_locator_node(const struct krait_locator *locator)
{
    return locator->node;
}

bool krait_locator_is_fixed(const struct krait_locator *locator)
{
    return locator->fixed;
}

static int pass_elements(struct krait_decoder *d, const struct hop *hop, uint64_t *at)
{
    const struct krait_fc *fc = hop->fc;
    uint64_t count = fc->kind == KRAIT_FC_ARRAY ? fc->length : d->slots[fc->ref_slot];
    if (hop->index >= count)
        return -ENODATA;
    *at = align_up(*at, fc->align);
    struct krait_value element;
    int rc = 0;
    for (uint64_t i = 0; i < hop->index && !rc; i++) {
        rc = value_at(&element, d, hop->element, *at);
        if (!rc)
            rc = value_end(&element, at);
    }
    return rc;
}

static int take_hop(struct krait_decoder *d, const struct hop *hop, uint64_t *at)
{
    if (hop->kind == HOP_OPTION)
        return krait_decode_option(hop->fc, d->slots[hop->fc->ref_slot]) == hop->index ? 0 : -ENODATA;
    if (hop->kind == HOP_ELEMENT)
        return pass_elements(d, hop, at);
    if (!hop->fixed)
        return walk(d, &hop->program, at);
    *at = align_up(*at, hop->align) + hop->size;
    return 0;
}

int krait_locator_value(const struct krait_locator *locator, struct krait_ctf_cursor *cursor,
                        struct krait_value *value)
{
    uint64_t at = locator->base == BASE_FIELDS  ? cursor->fields_at
                  : locator->base == BASE_EVENT ? cursor->event_at
                                                : 0;
    struct krait_decoder *d = &cursor->d;
    if (KRAIT_LIKELY(locator->fixed)) {
        const struct hop *hop = &locator->hops[0];
        *value =
            (struct krait_value){ .node = locator->node, .d = d, .at = align_up(at, hop->align) + hop->size };
        return krait_fc_is_int(locator->node->fc) && !locator->node->fc->is_leb ? 0 : measure(value);
    }
    for (uint32_t i = 0; i < locator->hop_count; i++) {
        int rc = take_hop(d, &locator->hops[i], &at);
        if (rc)
            return rc;
    }
    int rc = value_at(value, d, locator->node, at);
    return !rc && value->node->fc->kind == KRAIT_FC_OPTIONAL ? -ENODATA : rc;
}

/* -- compiling -- */

struct route {
    struct krait_arena *arena;
    const char *path, *rest;
    struct krait_err *err;
    struct hop hops[MAX_HOPS];
    uint32_t hop_count;
    bool in_element; /* slots there are of the element that was walked last */
    /* What the next HOP_PASS goes past. */
    const struct krait_fc *before[3];
    uint32_t before_count;
};

static int route_oom(struct route *r)
{
    return krait_err_set(r->err, -ENOMEM, "out of memory");
}

/* Adds what is aligned so and takes `size` bits to a place; false where the sum depends on the begin. */
static bool extend(struct hop *hop, uint64_t align, uint64_t size)
{
    if (!hop->size && align > hop->align)
        hop->align = align;
    if (align > hop->align)
        return false;
    hop->size = align_up(hop->size, align) + size;
    return true;
}

/* Sums a program up whose instructions all have a fixed size. */
static bool sum_up(struct hop *hop, bool may_be_busy)
{
    const struct krait_op *ops = hop->program.ops, *op = ops;
    bool ok = true;
    while (ok && op->code != KRAIT_DO_END) {
        bool busy = op->flags & KRAIT_OPF_BUSY;
        uint64_t size = op->size, next = op->next;
        if (op->code == KRAIT_DO_TEXT) {
            size *= 8;
        } else if (op->code == KRAIT_DO_ARRAY) {
            ok = op->stride || !op->size;
            size = op->size ? (op->size - 1) * op->stride + op->fc->elem->bits : 0;
        } else if (op->code != KRAIT_DO_RUN) {
            return false;
        }
        ok = ok && (may_be_busy || !busy) && size < (uint64_t)1 << 40 && extend(hop, op->align, size);
        op = next ? &ops[next] : op + 1;
    }
    return ok;
}

static struct hop *add_hop(struct route *r, int kind, const struct krait_fc *fc, uint64_t index)
{
    if (r->hop_count == MAX_HOPS) {
        krait_err_set(r->err, -EINVAL, "%s: the path has too many parts", r->path);
        return NULL;
    }
    struct hop *hop = &r->hops[r->hop_count++];
    *hop = (struct hop){ .kind = kind, .fc = fc, .index = index, .align = 1 };
    return hop;
}

/* Closes what was gathered into a hop. */
static int add_pass(struct route *r)
{
    struct hop *hop = add_hop(r, HOP_PASS, NULL, 0);
    if (!hop)
        return -EINVAL;
    if (krait_program_new(&hop->program, r->arena, r->before, r->before_count))
        return route_oom(r);
    hop->fixed = sum_up(hop, !r->in_element);
    r->before_count = 0;
    return 0;
}

static int no_such(struct route *r, const char *why)
{
    return krait_err_set(r->err, -ENOENT, "no field '%s': %s at '%s'", r->path, why, r->rest);
}

/* A copy of the struct that ends before its i-th member: what is walked before that. With `last` NULL; else
 * that stands in the member's place. */
static struct krait_fc *cut_struct(struct route *r, const struct krait_fc *fc, uint32_t i)
{
    struct krait_fc *cut = KRAIT_ARENA_NEW(r->arena, struct krait_fc);
    struct krait_fc_member *members = krait_arena_alloc(r->arena, (i + 1) * sizeof(*members));
    if (!cut || !members)
        return NULL;
    *cut = *fc;
    memcpy(members, fc->members, i * sizeof(*members));
    cut->members = members;
    cut->count = i;
    return cut;
}

/* Takes member names off the path as long as they lead into structs. `cut` is the struct that is being
 * walked, its last member the one below. */
static int route_members(struct route *r, const struct krait_fc **at, const char **name)
{
    struct krait_fc *outer = NULL;
    while (*r->rest && (*at)->kind == KRAIT_FC_STRUCT) {
        size_t n = krait_path_name_len(r->rest);
        uint32_t i = krait_path_member(*at, r->rest, n);
        if (!n || i == KRAIT_NO_ID)
            return no_such(r, "no such member");
        struct krait_fc *cut = cut_struct(r, *at, i);
        if (!cut)
            return route_oom(r);
        if (outer) {
            struct krait_fc_member *last = (struct krait_fc_member *)&outer->members[outer->count++];
            *last = (struct krait_fc_member){ .name = "", .tsdl_name = "", .fc = cut };
        } else {
            r->before[r->before_count++] = cut;
        }
        outer = cut;
        *name = (*at)->members[i].name;
        *at = (*at)->members[i].fc;
        r->rest += n;
        if (*r->rest == '.' && r->rest[1])
            r->rest++;
    }
    return add_pass(r);
}

static int route_option(struct route *r, const struct krait_fc **at, const char **name)
{
    size_t n = krait_path_name_len(r->rest);
    uint32_t i = krait_path_member(*at, r->rest, n);
    if (!n || i == KRAIT_NO_ID)
        return no_such(r, "no such option");
    if (!add_hop(r, HOP_OPTION, *at, i))
        return -EINVAL;
    *name = (*at)->members[i].name;
    *at = (*at)->members[i].fc;
    r->rest += n;
    if (*r->rest == '.' && r->rest[1])
        r->rest++;
    return 0;
}

static int route_element(struct route *r, const struct krait_fc **at)
{
    char *end;
    errno = 0;
    uint64_t index = r->rest[1] >= '0' && r->rest[1] <= '9' ? strtoull(r->rest + 1, &end, 10) : 0;
    if (r->rest[0] != '[' || r->rest[1] < '0' || r->rest[1] > '9' || *end != ']' || errno ||
        (end[1] && end[1] != '.' && end[1] != '['))
        return krait_err_set(r->err, -EINVAL, "%s: an array's element is written NAME[INDEX]", r->path);
    struct hop *hop = add_hop(r, HOP_ELEMENT, *at, index);
    if (!hop)
        return -EINVAL;
    *at = (*at)->elem;
    hop->element = new_node(r->arena, *at, "");
    r->in_element = true;
    r->rest = end + 1;
    if (*r->rest == '.' && r->rest[1])
        r->rest++;
    return hop->element ? 0 : route_oom(r);
}

/* A path leads through an optional field without a name of its own. */
static int route_optional(struct route *r, const struct krait_fc **at)
{
    if (!add_hop(r, HOP_OPTION, *at, 0))
        return -EINVAL;
    *at = (*at)->members[0].fc;
    return 0;
}

static int route_part(struct route *r, const struct krait_fc **at, const char **name)
{
    switch ((*at)->kind) {
    case KRAIT_FC_STRUCT:
        return route_members(r, at, name);
    case KRAIT_FC_VARIANT:
        return route_option(r, at, name);
    case KRAIT_FC_OPTIONAL:
        return route_optional(r, at);
    case KRAIT_FC_ARRAY:
    case KRAIT_FC_SEQUENCE:
        if (!(*at)->is_text)
            return route_element(r, at);
        break;
    default:
        break;
    }
    return no_such(r, "there are no members");
}

/* What stands before each scope, and where that begins. */
static const struct krait_fc *begin_route(struct route *r, const struct krait_ctf_trace *trace,
                                          const struct krait_event_class *event, enum krait_field_scope scope,
                                          enum base *base)
{
    const struct krait_stream_class *cls = event->stream;
    const struct krait_fc *const of[] = {
        [KRAIT_FIELD_PACKET_HEADER] = trace->metadata->packet_header,
        [KRAIT_FIELD_PACKET_CONTEXT] = cls->packet_context,
        [KRAIT_FIELD_EVENT_HEADER] = cls->event_header,
        [KRAIT_FIELD_COMMON_CONTEXT] = cls->event_context,
        [KRAIT_FIELD_EVENT_CONTEXT] = event->context,
        [KRAIT_FIELD_PAYLOAD] = event->fields,
    };
    static const enum krait_field_scope before[KRAIT_FIELD_SCOPES][2] = {
        [KRAIT_FIELD_PACKET_HEADER] = { KRAIT_FIELD_SCOPES, KRAIT_FIELD_SCOPES },
        [KRAIT_FIELD_PACKET_CONTEXT] = { KRAIT_FIELD_PACKET_HEADER, KRAIT_FIELD_SCOPES },
        [KRAIT_FIELD_EVENT_HEADER] = { KRAIT_FIELD_SCOPES, KRAIT_FIELD_SCOPES },
        [KRAIT_FIELD_COMMON_CONTEXT] = { KRAIT_FIELD_SCOPES, KRAIT_FIELD_SCOPES },
        [KRAIT_FIELD_EVENT_CONTEXT] = { KRAIT_FIELD_COMMON_CONTEXT, KRAIT_FIELD_SCOPES },
        [KRAIT_FIELD_PAYLOAD] = { KRAIT_FIELD_COMMON_CONTEXT, KRAIT_FIELD_EVENT_CONTEXT },
    };
    for (int i = 0; i < 2; i++) {
        enum krait_field_scope b = before[scope][i];
        if (b != KRAIT_FIELD_SCOPES && of[b])
            r->before[r->before_count++] = of[b];
    }
    *base = scope <= KRAIT_FIELD_COMMON_CONTEXT ? BASE_FIELDS
            : scope == KRAIT_FIELD_EVENT_HEADER ? BASE_EVENT
                                                : BASE_PACKET;
    return of[scope];
}

static int finish_route(struct route *r, struct krait_locator *locator, const struct krait_fc *at,
                        const char *name)
{
    locator->node = new_node(r->arena, at, name);
    locator->hops = krait_arena_alloc(r->arena, KRAIT_MAX(r->hop_count, 1u) * sizeof(*locator->hops));
    if (!locator->node || !locator->hops)
        return route_oom(r);
    locator->fixed =
        r->hop_count == 1 && r->hops[0].fixed && !has_options(at) && extend(&r->hops[0], at->align, 0);
    locator->hop_count = r->hop_count;
    memcpy(locator->hops, r->hops, r->hop_count * sizeof(*r->hops));
    return 0;
}

int krait_locator_new(const struct krait_locator **out, struct krait_arena *arena,
                      const struct krait_ctf_trace *trace, const struct krait_event_class *event,
                      enum krait_field_scope scope, const char *path, struct krait_err *err)
{
    struct route r = { .arena = arena, .path = path, .rest = path, .err = err };
    struct krait_locator *locator = KRAIT_ARENA_NEW(arena, struct krait_locator);
    if (!locator)
        return route_oom(&r);
    const struct krait_fc *at = begin_route(&r, trace, event, scope, &locator->base);
    const char *name = "";
    if (!at)
        return krait_err_set(err, -ENOENT, "no field '%s': events of '%s' have no such scope", path,
                             event->name);
    int rc = *path ? 0 : add_pass(&r);
    while (!rc && *r.rest)
        rc = route_part(&r, &at, &name);
    if (!rc)
        rc = finish_route(&r, locator, at, name);
    if (!rc)
        *out = locator;
    return rc;
}
