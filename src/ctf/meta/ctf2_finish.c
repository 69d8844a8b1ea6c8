/* SPDX-License-Identifier: Apache-2.0
 *
 * What can be said of CTF 2's metadata only when it was read whole: what roles mean where they are, alignments of
 * what holds others, and where lengths and selectors lie (CTF2-SPEC-2.0: roles, alignment, field locations).
 */
#include "ctf/meta/ctf2.h"
#include "ctf/meta/model.h"

#include <string.h>

struct finish {
    struct krait_ctf2_parser *p;
    const struct krait_ctf_clock *clock; /* the stream's default */
    const struct krait_fc *scopes[KRAIT_CTF2_SCOPE_COUNT];
    enum krait_ctf2_scope scope; /* being walked */
    /* The way from the scope's structure down to where the walk is. */
    struct {
        struct krait_fc *fc;
        uint32_t index;
    } stack[KRAIT_CTF2_MAX_DEPTH + 2];
    uint32_t depth;
};

/* -- locations: the fields that a path leads to -- */

/* The field that asks, and what it asks for. */
struct question {
    struct finish *f;
    struct krait_fc *asker;
    const struct krait_ctf2_location *location;
    uint32_t found;
};

/* `level` is the place in the stack that fc has, when it is on the way down to the asker, else NOT_ON_WAY. */
enum { NOT_ON_WAY = UINT8_MAX };

static void look(struct question *q, struct krait_fc *fc, uint32_t level, uint32_t step);

static void look_below(struct question *q, struct krait_fc *child, uint32_t level, bool on_way, uint32_t step)
{
    bool goes_on = on_way && level + 1 < q->f->depth;
    look(q, child, goes_on ? level + 1 : NOT_ON_WAY, step);
}

static void fail_location(struct question *q, const char *why)
{
    const char *name = q->location->path[q->location->count - 1];
    krait_ctf2_fail(q->f->p, q->location->at, -EBADMSG, "the field '%.64s' %s", name, why);
}

/* The slot that the target leaves its value in. A path through a variant may lead to one in each option: they
 * share it. */
static void answer(struct question *q, struct krait_fc *target)
{
    struct krait_fc *asker = q->asker;
    bool is_length = asker->kind == KRAIT_FC_SEQUENCE;
    bool is_number = krait_fc_is_int(target) && target->form == KRAIT_INT_NUMBER;
    bool is_bool = krait_fc_is_int(target) && target->form == KRAIT_INT_BOOL;
    if (is_length && (!is_number || target->is_signed))
        fail_location(q, "is a length, but no unsigned integer");
    else if (asker->kind == KRAIT_FC_VARIANT && !is_number)
        fail_location(q, "is a variant's selector, but no integer");
    else if (asker->kind == KRAIT_FC_OPTIONAL && !is_number && !is_bool)
        fail_location(q, "is an optional field's selector, but neither integer nor boolean");
    else if (q->found && asker->tag_signed != target->is_signed)
        fail_location(q, "is a selector that is signed in one place and unsigned in another");
    else if (is_bool && asker->choice_count)
        fail_location(q, "is a boolean selector, but there are ranges for it");
    else if (is_number && asker->kind == KRAIT_FC_OPTIONAL && !asker->choice_count)
        fail_location(q, "is an integer selector, but there are no ranges for it");
    if (q->f->p->rc)
        return;
    if (target->slot == KRAIT_NO_SLOT)
        target->slot = q->found ? asker->ref_slot : q->f->p->md->slot_count++;
    if (q->found && target->slot != asker->ref_slot)
        krait_ctf2_fail(q->f->p, q->location->at, -ENOTSUP,
                        "a path through a variant whose options are asked for by other paths too");
    asker->ref_slot = target->slot;
    asker->tag_signed = target->is_signed;
    q->found++;
}

static void look_in_structure(struct question *q, struct krait_fc *fc, uint32_t level, uint32_t step)
{
    const char *name = q->location->path[step];
    bool on_way = level != NOT_ON_WAY;
    uint32_t last = on_way ? q->f->stack[level].index : fc->count;
    for (uint32_t i = 0; name && i < fc->count && i <= last; i++) {
        if (strcmp(fc->members[i].name, name) != 0)
            continue;
        if (!on_way || i < last || level + 1 < q->f->depth)
            look_below(q, fc->members[i].fc, level, on_way && i == last, step + 1);
    }
}

/* An array's elements can be told apart only from within: there, it is the one that is being read. */
static void look(struct question *q, struct krait_fc *fc, uint32_t level, uint32_t step)
{
    bool on_way = level != NOT_ON_WAY;
    if (fc->kind == KRAIT_FC_ARRAY || fc->kind == KRAIT_FC_SEQUENCE) {
        if (on_way)
            look_below(q, fc->elem, level, true, step);
        else
            fail_location(q, "is in an array, and not of the element that is being read");
    } else if (fc->kind == KRAIT_FC_OPTIONAL || fc->kind == KRAIT_FC_VARIANT) {
        for (uint32_t i = 0; i < fc->count; i++) {
            if (!on_way || i == q->f->stack[level].index)
                look_below(q, fc->members[i].fc, level, on_way, step);
        }
    } else if (step < q->location->count) {
        if (fc->kind == KRAIT_FC_STRUCT)
            look_in_structure(q, fc, level, step);
    } else {
        answer(q, fc);
    }
}

/* Where a path without an origin begins: the structure around the asker, and one farther out for each null. */
static uint32_t structure_around(struct finish *f, const struct krait_ctf2_location *location, uint32_t *step)
{
    uint32_t level = f->depth;
    for (*step = 0; level > 0; level--) {
        if (f->stack[level - 1].fc->kind != KRAIT_FC_STRUCT)
            continue;
        if (location->path[*step])
            return level - 1;
        ++*step;
    }
    return NOT_ON_WAY;
}

static void locate(struct finish *f, struct krait_fc *asker)
{
    struct question q = { .f = f, .asker = asker, .location = asker->location };
    int origin = q.location->origin;
    uint32_t step = 0, level = 0;
    if (origin < 0) {
        level = structure_around(f, q.location, &step);
        if (level != NOT_ON_WAY)
            look(&q, f->stack[level].fc, level, step);
    } else if (origin <= (int)f->scope && f->scopes[origin]) {
        look(&q, (struct krait_fc *)f->scopes[origin], origin == (int)f->scope ? 0 : NOT_ON_WAY, 0);
    }
    if (!q.found)
        fail_location(&q, "is not there before the field that asks for it");
}

/* -- choices -- */

static int by_unsigned(const void *a, const void *b)
{
    const struct krait_fc_choice *x = a, *y = b;
    return x->lo < y->lo ? -1 : x->lo > y->lo;
}

static int by_signed(const void *a, const void *b)
{
    int64_t x = (int64_t)((const struct krait_fc_choice *)a)->lo;
    int64_t y = (int64_t)((const struct krait_fc_choice *)b)->lo;
    return x < y ? -1 : x > y;
}

/* Sorted, so that two that hold the same value are neighbours. */
static void check_choices(struct finish *f, struct krait_fc *fc, size_t at)
{
    struct krait_fc_choice *list = (struct krait_fc_choice *)fc->choices;
    uint64_t flip = fc->tag_signed ? (uint64_t)1 << 63 : 0;
    if (fc->choice_count)
        qsort(list, fc->choice_count, sizeof(*list), fc->tag_signed ? by_signed : by_unsigned);
    for (uint32_t i = 1; i < fc->choice_count; i++) {
        bool overlap = (list[i].lo ^ flip) <= (list[i - 1].hi ^ flip);
        if (overlap && list[i].option != list[i - 1].option)
            krait_ctf2_fail(f->p, at, -EBADMSG, "two options of a variant are for the same selector");
        if (overlap && (list[i - 1].hi ^ flip) > (list[i].hi ^ flip))
            list[i].hi = list[i - 1].hi; /* what it hides may reach into the next */
    }
}

static void finish_choices(struct finish *f, struct krait_fc *fc)
{
    const struct krait_ctf2_location *selector = fc->location;
    if (f->p->rc)
        return;
    if (selector->has_negative && !fc->tag_signed)
        krait_ctf2_fail(f->p, selector->at, -EBADMSG, "an unsigned selector with ranges below 0");
    if (selector->has_large && fc->tag_signed)
        krait_ctf2_fail(f->p, selector->at, -EBADMSG, "a signed selector with ranges above 2^63 - 1");
    if (!fc->choice_count) { /* a boolean */
        *(struct krait_fc_choice *)fc->choices = (struct krait_fc_choice){ 1, UINT64_MAX, 0 };
        fc->choice_count = 1;
    }
    check_choices(f, fc, selector->at);
}

/* -- roles -- */

static const struct {
    uint8_t role;
    uint8_t scope;
    uint8_t meaning;
} meanings[] = {
    { KRAIT_ROLE_MAGIC, KRAIT_CTF2_PACKET_HEADER, KRAIT_MEANING_MAGIC },
    { KRAIT_ROLE_STREAM_CLASS_ID, KRAIT_CTF2_PACKET_HEADER, KRAIT_MEANING_STREAM_ID },
    { KRAIT_ROLE_STREAM_ID, KRAIT_CTF2_PACKET_HEADER, KRAIT_MEANING_STREAM_INSTANCE },
    { KRAIT_ROLE_TIMESTAMP, KRAIT_CTF2_PACKET_CONTEXT, KRAIT_MEANING_BEGIN },
    { KRAIT_ROLE_END, KRAIT_CTF2_PACKET_CONTEXT, KRAIT_MEANING_END },
    { KRAIT_ROLE_CONTENT, KRAIT_CTF2_PACKET_CONTEXT, KRAIT_MEANING_CONTENT },
    { KRAIT_ROLE_TOTAL, KRAIT_CTF2_PACKET_CONTEXT, KRAIT_MEANING_SIZE },
    { KRAIT_ROLE_SEQ, KRAIT_CTF2_PACKET_CONTEXT, KRAIT_MEANING_SEQ },
    { KRAIT_ROLE_DISCARDED, KRAIT_CTF2_PACKET_CONTEXT, KRAIT_MEANING_DISCARDED },
    { KRAIT_ROLE_EVENT_CLASS_ID, KRAIT_CTF2_EVENT_HEADER, KRAIT_MEANING_EVENT_ID },
    { KRAIT_ROLE_TIMESTAMP, KRAIT_CTF2_EVENT_HEADER, KRAIT_MEANING_NONE },
    { KRAIT_ROLE_UUID, KRAIT_CTF2_PACKET_HEADER, KRAIT_MEANING_NONE },
};

/* A role is for fields of its own scopes only. */
static void check_roles(struct finish *f, const struct krait_fc *fc)
{
    unsigned strange = fc->roles;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(meanings); i++) {
        if (meanings[i].scope == f->scope)
            strange &= ~(1u << meanings[i].role);
    }
    if (strange)
        krait_ctf2_fail(f->p, fc->at, -EBADMSG, "the role '%s' is not for a field of the %s",
                        krait_ctf2_role_names[__builtin_ctz(strange)], krait_ctf2_scope_names[f->scope]);
    if (fc->roles & 1u << KRAIT_ROLE_UUID && !f->p->md->has_uuid)
        krait_ctf2_fail(f->p, fc->at, -EBADMSG,
                        "packets have the metadata stream's UUID, but the preamble has none");
}

static void give_meaning(struct finish *f, struct krait_fc *fc)
{
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(meanings); i++) {
        if (meanings[i].scope == f->scope && fc->roles & 1u << meanings[i].role)
            fc->meanings |= krait_meaning_bit(meanings[i].meaning);
    }
    bool is_time = fc->roles & (1u << KRAIT_ROLE_TIMESTAMP | 1u << KRAIT_ROLE_END);
    if (is_time && !f->clock)
        krait_ctf2_fail(f->p, fc->at, -EBADMSG,
                        "a time stamp in a data stream class without a default clock class");
    /* The end of a packet is no event: reading it must not move the clock. */
    if (fc->roles & 1u << KRAIT_ROLE_TIMESTAMP)
        fc->clock = f->clock;
}

/* -- the walk -- */

static void finish_field(struct finish *f, struct krait_fc *fc);

static void finish_child(struct finish *f, struct krait_fc *fc, uint32_t index, struct krait_fc *child)
{
    f->stack[f->depth].fc = fc;
    f->stack[f->depth].index = index;
    f->depth++;
    finish_field(f, child);
    f->depth--;
}

static void finish_members(struct finish *f, struct krait_fc *fc)
{
    for (uint32_t i = 0; i < fc->count && !f->p->rc; i++) {
        finish_child(f, fc, i, fc->members[i].fc);
        if (fc->kind == KRAIT_FC_STRUCT)
            fc->align = KRAIT_MAX(fc->align, fc->members[i].fc->align);
    }
}

static void finish_elements(struct finish *f, struct krait_fc *fc)
{
    finish_child(f, fc, 0, fc->elem);
    fc->align = KRAIT_MAX(fc->align, fc->elem->align);
}

static void finish_int(struct finish *f, struct krait_fc *fc)
{
    give_meaning(f, fc);
    if (fc->kind == KRAIT_FC_ENUM)
        fc->labels->in_braces = true;
    if (fc->kind == KRAIT_FC_ENUM && krait_model_index_enum(f->p->arena, fc->labels, fc->is_signed))
        krait_ctf2_oom(f->p);
}

static void finish_field(struct finish *f, struct krait_fc *fc)
{
    bool is_array = fc->kind == KRAIT_FC_ARRAY || fc->kind == KRAIT_FC_SEQUENCE;
    bool has_choices = fc->kind == KRAIT_FC_VARIANT || fc->kind == KRAIT_FC_OPTIONAL;
    if (f->p->rc)
        return;
    check_roles(f, fc);
    if (fc->kind == KRAIT_FC_SEQUENCE || has_choices)
        locate(f, fc);
    if (has_choices)
        finish_choices(f, fc);
    if (krait_fc_is_int(fc))
        finish_int(f, fc);
    else if (is_array)
        finish_elements(f, fc);
    else if (has_choices || fc->kind == KRAIT_FC_STRUCT)
        finish_members(f, fc);
}

static void finish_scope(struct finish *f, enum krait_ctf2_scope scope, const struct krait_fc *fc)
{
    f->scope = scope;
    f->scopes[scope] = fc;
    f->depth = 0;
    if (fc)
        finish_field(f, (struct krait_fc *)fc);
}

/* -- checks -- */

static void check_header(struct krait_ctf2_parser *p)
{
    const struct krait_fc *header = p->md->packet_header;
    const struct krait_fc *magic = krait_fc_meant(header, KRAIT_MEANING_MAGIC);
    if (magic && (header->members[0].fc != magic || magic->bits != 32))
        krait_ctf2_fail(p, magic->at, -EBADMSG,
                        "the packet's magic number is not the first field, or not an integer of 32 bits");
    if (p->md->stream_count > 1 && !krait_fc_meant(header, KRAIT_MEANING_STREAM_ID))
        krait_ctf2_fail(p, header ? header->at : 0, -EBADMSG,
                        "several data stream classes, but no field of the packet header says which");
}

static void finish_stream(struct finish *f, struct krait_stream_class *stream)
{
    f->clock = stream->clock;
    finish_scope(f, KRAIT_CTF2_PACKET_CONTEXT, stream->packet_context);
    finish_scope(f, KRAIT_CTF2_EVENT_HEADER, stream->event_header);
    finish_scope(f, KRAIT_CTF2_COMMON_CONTEXT, stream->event_context);
    for (uint32_t i = 0; i < stream->event_count && !f->p->rc; i++) {
        finish_scope(f, KRAIT_CTF2_SPECIFIC_CONTEXT, stream->events[i]->context);
        finish_scope(f, KRAIT_CTF2_PAYLOAD, stream->events[i]->fields);
    }
    if (stream->event_count > 1 && !krait_fc_meant(stream->event_header, KRAIT_MEANING_EVENT_ID))
        krait_ctf2_fail(f->p, stream->event_header ? stream->event_header->at : 0, -EBADMSG,
                        "several event record classes, but no field of the event record header says which");
}

void krait_ctf2_finish(struct krait_ctf2_parser *p)
{
    struct finish f = { .p = p };
    if (!p->rc && !p->md->stream_count)
        krait_ctf2_fail(p, 0, -EBADMSG, "there is no data stream class");
    if (p->rc)
        return;
    finish_scope(&f, KRAIT_CTF2_PACKET_HEADER, p->md->packet_header);
    for (uint32_t i = 0; i < p->md->stream_count && !p->rc; i++)
        finish_stream(&f, p->md->streams[i]);
    if (!p->rc)
        check_header(p);
}
