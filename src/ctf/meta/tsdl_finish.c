/* SPDX-License-Identifier: Apache-2.0
 *
 * What can be said only when the whole metadata was read: byte order, the clock of each stream, alignments (CTF
 * 1.8.3, 4.2), where lengths and tags lie (7.3.2), and whether the fields that readers rely on are what they must be.
 */
#include "ctf/meta/cut.h"
#include "ctf/meta/model.h"
#include "ctf/meta/tsdl.h"

#include <string.h>

/* The dynamic scopes in the order in which they are read: a path may lead to its own or one before. */
enum scope_kind {
    SCOPE_HEADER,
    SCOPE_PACKET,
    SCOPE_EVENT_HEADER,
    SCOPE_STREAM_CONTEXT,
    SCOPE_CONTEXT,
    SCOPE_FIELDS,
    SCOPE_COUNT
};

static const char *const scope_paths[] = { "trace.packet.header.", "stream.packet.context.",
                                           "stream.event.header.", "stream.event.context.",
                                           "event.context.",       "event.fields." };

struct finish {
    struct krait_tsdl_parser *p;
    struct krait_fc *scopes[SCOPE_COUNT];
    enum scope_kind scope; /* being walked */
    /* The way from the scope's struct down to where the walk is. */
    struct {
        struct krait_fc *fc;
        uint32_t index;
    } stack[KRAIT_TSDL_MAX_DEPTH + 2];
    uint32_t depth;
    const struct krait_ctf_clock *clock; /* met so far in the stream */
};

/* -- the way to a length or a tag -- */

static bool has_members(const struct krait_fc *fc)
{
    return fc->kind == KRAIT_FC_STRUCT || fc->kind == KRAIT_FC_VARIANT;
}

static bool has_elements(const struct krait_fc *fc)
{
    return fc->kind == KRAIT_FC_ARRAY || fc->kind == KRAIT_FC_SEQUENCE;
}

static void enter(struct finish *f, struct krait_fc *fc)
{
    f->stack[f->depth].fc = fc;
    f->stack[f->depth].index = 0;
    f->depth++;
}

/* Where on the walk's way fc is; the way's depth where it is not on it. */
static uint32_t level_of(const struct finish *f, const struct krait_fc *fc)
{
    uint32_t level = 0;
    while (level < f->depth && f->stack[level].fc != fc)
        level++;
    return level;
}

/* The first `n` bytes of `name` are a member's name; nothing behind the way is one. */
static struct krait_fc *child_named(const struct finish *f, const struct krait_fc *fc, const char *name,
                                    size_t n)
{
    uint32_t level = level_of(f, fc);
    uint32_t count = !has_members(fc) ? 0 : level < f->depth ? f->stack[level].index + 1 : fc->count;
    for (uint32_t i = count; i > 0; i--) { /* lengths mostly stand right before */
        const struct krait_fc_member *member = &fc->members[i - 1];
        if (strncmp(member->tsdl_name, name, n) == 0 && !member->tsdl_name[n])
            return member->fc;
    }
    return NULL;
}

/* What a dotted path leads to. */
struct target {
    struct krait_fc *fc; /* NULL where the path leads nowhere */
    bool is_apart;       /* in an array or an option that does not hold the place that asks */
};

/* Follows the path from fc: in the scope being walked, only to what lies before the place that asks, which is
 * the last on the walk's way. */
static struct target follow(const struct finish *f, struct krait_fc *fc, const char *path)
{
    struct target to = { .fc = fc };
    uint32_t level = level_of(f, fc);
    while (to.fc && *path && level + 1 != f->depth) {
        bool is_struct = to.fc->kind == KRAIT_FC_STRUCT;
        if (has_elements(to.fc)) {
            to.fc = to.fc->elem;
        } else {
            size_t n = strcspn(path, ".");
            to.fc = child_named(f, to.fc, path, n);
            path += n + (path[n] == '.');
        }
        level = to.fc ? level_of(f, to.fc) : f->depth;
        to.is_apart |= !is_struct && level == f->depth;
    }
    if (level < f->depth) /* what holds the place that asks does not lie before it */
        to.fc = NULL;
    return to;
}

/* How much of the walk's way there is when the path of fc is followed: all, unless fc is of an alias. */
static uint32_t way_of(const struct finish *f, const struct krait_fc *fc)
{
    uint32_t level = fc->home ? f->depth : 0;
    while (level &&
           (f->stack[level - 1].fc->kind != KRAIT_FC_STRUCT || f->stack[level - 1].fc->home != fc->home))
        level--;
    return level ? level : f->depth;
}

/* Not beyond its own scope: babeltrace2 asks for a path from the root there. */
static struct target follow_relative(const struct finish *f, const struct krait_fc *fc)
{
    struct target to = { 0 };
    for (uint32_t i = way_of(f, fc); i > 0 && !to.fc; i--) {
        if (f->stack[i - 1].fc->kind == KRAIT_FC_STRUCT)
            to = follow(f, f->stack[i - 1].fc, fc->ref);
    }
    return to;
}

/* The scope that an absolute path begins with; SCOPE_COUNT for a relative one. */
static enum scope_kind scope_of(const char *path)
{
    enum scope_kind scope = 0;
    while (scope < SCOPE_COUNT && strncmp(path, scope_paths[scope], strlen(scope_paths[scope])) != 0)
        scope++;
    return scope;
}

bool krait_tsdl_is_absolute(const char *path)
{
    return scope_of(path) < SCOPE_COUNT;
}

static struct target follow_absolute(const struct finish *f, enum scope_kind scope, const struct krait_fc *fc)
{
    if (scope > f->scope || !f->scopes[scope])
        return (struct target){ 0 };
    return follow(f, f->scopes[scope], fc->ref + strlen(scope_paths[scope]));
}

/* Where the path of fc leads, which is where the walk is. */
static struct target target_of(struct finish *f, struct krait_fc *fc)
{
    enum scope_kind scope = scope_of(fc->ref);
    enter(f, fc);
    struct target to = scope == SCOPE_COUNT ? follow_relative(f, fc) : follow_absolute(f, scope, fc);
    f->depth--;
    return to;
}

/* The slot that the target leaves its value in. */
static uint32_t slot_of(struct finish *f, struct krait_fc *target)
{
    if (target->slot == KRAIT_NO_SLOT)
        target->slot = f->p->md->slot_count++;
    return target->slot;
}

static void resolve_sequence(struct finish *f, struct krait_fc *fc)
{
    struct krait_fc *target = target_of(f, fc).fc;
    if (!target)
        krait_tsdl_fail(f->p, -EBADMSG, "a sequence's length '%s' is not a field before it", fc->ref);
    else if (!krait_fc_is_int(target) || target->is_signed)
        krait_tsdl_fail(f->p, -EBADMSG, "a sequence's length '%s' is not an unsigned integer", fc->ref);
    else
        fc->ref_slot = slot_of(f, target);
}

/* Of several labels of a tag's value, the first decides. */
static void set_choices(struct finish *f, struct krait_fc *fc, const struct krait_span *tags,
                        const uint32_t *options, uint32_t count)
{
    KRAIT_CLEANUP(krait_pieces_done) struct krait_pieces pieces = { 0 };
    int rc = krait_cut(&pieces, tags, count, fc->tag_signed, 1);
    struct krait_fc_choice *choices =
        krait_arena_alloc(f->p->arena, KRAIT_MAX(pieces.count, 1u) * sizeof(*choices));
    if (rc || !choices) {
        krait_tsdl_oom(f->p);
        return;
    }
    for (uint32_t i = 0; i < pieces.count; i++) {
        const struct krait_piece *piece = &pieces.list[i];
        choices[i] = (struct krait_fc_choice){ piece->lo, piece->hi, options[pieces.ranges[piece->first]] };
    }
    fc->choices = choices;
    fc->choice_count = pieces.count;
}

/* Which option each of the tag's labels stands for. Labels may be without an option, and options without a
 * label: only what a packet selects has to be there (CTF 1.8.3, 4.2.2). */
static void map_options(struct finish *f, struct krait_fc *fc, const struct krait_enum_map *labels)
{
    KRAIT_AUTO_FREE struct krait_span *tags = calloc((size_t)labels->count + 1, sizeof(*tags));
    KRAIT_AUTO_FREE uint32_t *options = calloc((size_t)labels->count + 1, sizeof(*options));
    struct krait_strtab names = { 0 };
    uint32_t count = 0;
    for (uint32_t i = 0; i < fc->count; i++) {
        if (krait_strtab_add(&names, fc->members[i].tsdl_name, strlen(fc->members[i].tsdl_name)) != i)
            krait_tsdl_oom(f->p);
    }
    if (!tags || !options)
        krait_tsdl_oom(f->p);
    for (uint32_t i = 0; i < labels->count && !f->p->rc; i++) {
        const struct krait_enum_range *range = &labels->ranges[i];
        uint32_t option = krait_strtab_find(&names, range->label, strlen(range->label));
        if (option == KRAIT_NO_ID)
            continue;
        options[count] = option;
        tags[count++] = (struct krait_span){ range->lo, range->hi };
    }
    krait_strtab_done(&names);
    if (!f->p->rc)
        set_choices(f, fc, tags, options, count);
}

static void resolve_variant(struct finish *f, struct krait_fc *fc)
{
    struct target to = fc->ref ? target_of(f, fc) : (struct target){ 0 };
    struct krait_fc *target = to.fc;
    if (!fc->ref) {
        krait_tsdl_fail(f->p, -EBADMSG, "a variant has no tag");
    } else if (!target) {
        krait_tsdl_fail(f->p, -EBADMSG, "a variant's tag '%s' is not a field before it", fc->ref);
    } else if (to.is_apart) {
        krait_tsdl_fail(f->p, -EBADMSG,
                        "a variant's tag '%s' is in an array or an option that the variant is not in",
                        fc->ref);
    } else if (target->kind != KRAIT_FC_ENUM) {
        krait_tsdl_fail(f->p, -EBADMSG, "a variant's tag '%s' is not an enumeration", fc->ref);
    } else if (!fc->count) {
        krait_tsdl_fail(f->p, -EBADMSG, "a variant without options");
    } else {
        fc->ref_slot = slot_of(f, target);
        fc->tag_signed = target->is_signed;
        map_options(f, fc, target->labels);
    }
}

/* -- the walk -- */

static void finish_int(struct finish *f, struct krait_fc *fc)
{
    if (fc->kind == KRAIT_FC_ENUM && !fc->labels->indexed &&
        krait_model_index_enum(f->p->arena, fc->labels, fc->is_signed))
        krait_tsdl_oom(f->p);
    const struct krait_ctf_clock *clock = fc->clock;
    if (clock && f->clock && clock != f->clock)
        krait_tsdl_fail(f->p, -EBADMSG, "a stream has two clocks, '%s' and '%s'", f->clock->name,
                        clock->name);
    if (clock)
        f->clock = clock;
}

/* -- bit fields -- */

/* Bits from a struct's begin, as they are known: their rest by `modulus`. */
struct place {
    uint64_t at, modulus;
};

static void align_place(struct place *place, uint32_t align)
{
    bool known = align <= place->modulus;
    place->at = known ? (place->at + align - 1) & ~((uint64_t)align - 1) : 0;
    place->modulus = KRAIT_MAX(place->modulus, (uint64_t)align);
}

static bool ends_with_byte(const struct krait_fc *fc)
{
    if (fc->kind == KRAIT_FC_STRING)
        return true;
    const struct krait_fc *elem = fc->kind == KRAIT_FC_SEQUENCE ? fc->elem : NULL;
    bool is_number = elem && (krait_fc_is_int(elem) || elem->kind == KRAIT_FC_FLOAT);
    return is_number && elem->bits % 8 == 0 && elem->align >= 8;
}

/* Behind a field whose alignment is known. */
static void pass(struct place *place, const struct krait_fc *fc)
{
    align_place(place, fc->align);
    if (krait_fc_is_int(fc) || fc->kind == KRAIT_FC_FLOAT) {
        place->at += fc->bits;
    } else if (fc->kind == KRAIT_FC_STRUCT) {
        for (uint32_t i = 0; i < fc->count; i++)
            pass(place, fc->members[i].fc);
    } else if (fc->kind == KRAIT_FC_ARRAY && fc->length) {
        struct place elem = *place;
        pass(&elem, fc->elem);
        uint64_t size = elem.at - place->at, stride = (size + fc->align - 1) & ~((uint64_t)fc->align - 1);
        place->at += stride * (fc->length - 1) + size;
        place->modulus = elem.modulus;
    } else if (fc->kind != KRAIT_FC_ARRAY) {
        *place = (struct place){ 0, ends_with_byte(fc) ? 8 : 1 };
    }
}

static bool has_bit_fields(const struct krait_fc *fc)
{
    uint32_t i = 0;
    while (i < fc->count && !fc->members[i].fc->unit)
        i++;
    return i < fc->count;
}

/* GNU/C's bit fields (CTF 1.8.3, 4.1.6): side by side, but where one does not fit its unit, it begins the
 * next. Behind a struct they begin where its last field ends: C's padding there is not in CTF (4.2.1). As a
 * variant's option a bit field is alone. */
static void place_bit_field(struct finish *f, struct krait_fc *outer, struct krait_fc *fc,
                            const struct place *place)
{
    uint32_t unit = fc->unit;
    bool alone = outer->kind == KRAIT_FC_VARIANT;
    if (!alone && place->modulus < unit)
        krait_tsdl_fail(f->p, -EBADMSG, "a bit field behind a field whose size is not known before");
    fc->align = !alone && place->at % unit + fc->bits <= unit ? 1 : unit;
    if (!alone)
        outer->align = KRAIT_MAX(outer->align, unit);
    fc->unit = 0;
}

static void finish_fc(struct finish *f, struct krait_fc *fc);

static void finish_members(struct finish *f, struct krait_fc *fc)
{
    struct place place = { 0, UINT64_MAX };
    bool placed = fc->kind == KRAIT_FC_STRUCT && has_bit_fields(fc);
    enter(f, fc);
    for (uint32_t i = 0; i < fc->count && !f->p->rc; i++) {
        struct krait_fc *child = fc->members[i].fc;
        f->stack[f->depth - 1].index = i;
        finish_fc(f, child);
        if (child->unit)
            place_bit_field(f, fc, child, &place);
        if (fc->kind == KRAIT_FC_STRUCT)
            fc->align = KRAIT_MAX(fc->align, child->align);
        if (placed)
            pass(&place, child);
    }
    f->depth--;
}

/* Bytes that are characters are shown as text. */
static void finish_array(struct finish *f, struct krait_fc *fc)
{
    struct krait_fc *elem = fc->elem;
    enter(f, fc);
    finish_fc(f, elem);
    f->depth--;
    fc->align = elem->align;
    fc->is_text = krait_fc_is_int(elem) && elem->is_text && elem->bits == 8 && elem->align == 8;
}

static void finish_fc(struct finish *f, struct krait_fc *fc)
{
    if (f->p->rc)
        return;
    if (fc->byte_order == KRAIT_BO_NATIVE)
        fc->byte_order = (uint8_t)f->p->md->byte_order;
    if (fc->kind == KRAIT_FC_VARIANT)
        resolve_variant(f, fc);
    else if (fc->kind == KRAIT_FC_SEQUENCE)
        resolve_sequence(f, fc);
    if (krait_fc_is_int(fc))
        finish_int(f, fc);
    else if (has_members(fc))
        finish_members(f, fc);
    else if (has_elements(fc))
        finish_array(f, fc);
}

static void finish_scope(struct finish *f, enum scope_kind scope, const struct krait_fc *fc)
{
    f->scope = scope;
    f->scopes[scope] = (struct krait_fc *)fc;
    f->depth = 0;
    if (fc)
        finish_fc(f, f->scopes[scope]);
}

/* -- clocks of fields that are known by name -- */

static const struct krait_ctf_clock *only_clock(struct krait_tsdl_parser *p)
{
    struct krait_ctf_metadata *md = p->md;
    if (md->clock_count == 1)
        return md->clocks[0];
    if (md->clock_count > 1) {
        krait_tsdl_fail(p, -EBADMSG, "a time stamp is not mapped to one of the %u clocks", md->clock_count);
        return NULL;
    }
    struct krait_ctf_clock *clock = KRAIT_ARENA_NEW(p->arena, struct krait_ctf_clock);
    md->clocks = krait_tsdl_grow(p, md->clocks, md->clock_count, &p->clock_cap, sizeof(*md->clocks));
    if (!clock || p->rc) {
        krait_tsdl_oom(p);
        return NULL;
    }
    *clock = (struct krait_ctf_clock){
        .name = "default", .description = "", .uuid_text = "", .freq = KRAIT_NS_PER_S, .last = INT64_MAX
    };
    md->clocks[md->clock_count++] = clock;
    return clock;
}

/* Integers of that name that are mapped to no clock belong to the only one there is. */
static void map_by_name(struct krait_tsdl_parser *p, const struct krait_fc *fc, const char *name)
{
    if (!fc || !has_members(fc))
        return;
    for (uint32_t i = 0; i < fc->count && !p->rc; i++) {
        struct krait_fc *child = fc->members[i].fc;
        bool is_it = strcmp(fc->members[i].name, name) == 0;
        if (is_it && krait_fc_is_int(child) && !child->clock)
            child->clock = only_clock(p);
        map_by_name(p, child, name);
    }
}

/* -- meanings -- */

static enum krait_meaning meaning_of(enum scope_kind scope, const char *name)
{
    static const struct {
        enum scope_kind scope;
        const char *name;
        enum krait_meaning meaning;
    } rows[] = {
        { SCOPE_HEADER, "magic", KRAIT_MEANING_MAGIC },
        { SCOPE_HEADER, "stream_id", KRAIT_MEANING_STREAM_ID },
        { SCOPE_HEADER, "stream_instance_id", KRAIT_MEANING_STREAM_INSTANCE },
        { SCOPE_PACKET, "timestamp_begin", KRAIT_MEANING_BEGIN },
        { SCOPE_PACKET, "timestamp_end", KRAIT_MEANING_END },
        { SCOPE_PACKET, "content_size", KRAIT_MEANING_CONTENT },
        { SCOPE_PACKET, "packet_size", KRAIT_MEANING_SIZE },
        { SCOPE_PACKET, "packet_seq_num", KRAIT_MEANING_SEQ },
        { SCOPE_PACKET, "events_discarded", KRAIT_MEANING_DISCARDED },
        { SCOPE_EVENT_HEADER, "id", KRAIT_MEANING_EVENT_ID },
    };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(rows); i++) {
        if (rows[i].scope == scope && strcmp(rows[i].name, name) == 0)
            return rows[i].meaning;
    }
    return KRAIT_MEANING_NONE;
}

/* Meanings are of the scope's own members; an event's id may lie deeper. */
static void give_meanings(const struct krait_fc *fc, enum scope_kind scope)
{
    uint32_t count = fc && has_members(fc) ? fc->count : 0;
    for (uint32_t i = 0; i < count; i++) {
        struct krait_fc *child = fc->members[i].fc;
        if (krait_fc_is_int(child) && fc->kind == KRAIT_FC_STRUCT)
            child->meanings = krait_meaning_bit(meaning_of(scope, fc->members[i].name));
        else if (scope == SCOPE_EVENT_HEADER)
            give_meanings(child, scope);
    }
}

/* -- checks -- */

static void check_int(struct krait_tsdl_parser *p, const struct krait_fc *scope, const char *where,
                      const char *name)
{
    const struct krait_fc_member *member = scope ? krait_fc_member(scope, name) : NULL;
    if (member && (!krait_fc_is_int(member->fc) || member->fc->is_signed))
        krait_tsdl_fail(p, -EBADMSG, "%s.%s is not an unsigned integer", where, name);
}

static void check_magic(struct krait_tsdl_parser *p, const struct krait_fc *header)
{
    const struct krait_fc_member *magic = krait_fc_member(header, "magic");
    if (magic && magic != header->members)
        krait_tsdl_fail(p, -EBADMSG, "packet.header.magic is not the first field");
    check_int(p, header, "packet.header", "magic");
    if (magic && magic->fc->bits != 32)
        krait_tsdl_fail(p, -EBADMSG, "packet.header.magic has not 32 bits");
}

static void check_uuid(struct krait_tsdl_parser *p, const struct krait_fc *header)
{
    const struct krait_fc_member *uuid = krait_fc_member(header, "uuid");
    if (!uuid)
        return;
    const struct krait_fc *fc = uuid->fc;
    if (fc->kind != KRAIT_FC_ARRAY || fc->length != 16 || fc->elem->kind != KRAIT_FC_INT ||
        fc->elem->bits != 8 || fc->elem->is_signed || fc->elem->align != 8)
        krait_tsdl_fail(p, -EBADMSG, "packet.header.uuid is not 16 bytes");
}

static void check_header(struct krait_tsdl_parser *p)
{
    const struct krait_fc *header = p->md->packet_header;
    bool has_id = header && krait_fc_member(header, "stream_id");
    if (!has_id && p->md->stream_count > 1)
        krait_tsdl_fail(p, -EBADMSG, "several streams, but packet.header has no stream_id");
    if (!header)
        return;
    check_magic(p, header);
    check_uuid(p, header);
    check_int(p, header, "packet.header", "stream_id");
    check_int(p, header, "packet.header", "stream_instance_id");
}

static void check_stream(struct krait_tsdl_parser *p, const struct krait_stream_class *stream)
{
    static const char *const names[] = { "timestamp_begin", "timestamp_end", "events_discarded",
                                         "packet_seq_num",  "packet_size",   "content_size" };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(names); i++)
        check_int(p, stream->packet_context, "packet.context", names[i]);
    check_int(p, stream->event_header, "event.header", "id");
    bool has_id = stream->event_header && krait_fc_member(stream->event_header, "id");
    if (!has_id && stream->event_count > 1)
        krait_tsdl_fail(p, -EBADMSG, "several events, but event.header has no id");
}

/* -- all of it -- */

static void finish_stream(struct finish *f, struct krait_stream_class *stream)
{
    struct krait_tsdl_parser *p = f->p;
    f->clock = NULL;
    map_by_name(p, stream->event_header, "timestamp");
    map_by_name(p, stream->packet_context, "timestamp_begin");
    map_by_name(p, stream->packet_context, "timestamp_end");
    give_meanings(stream->packet_context, SCOPE_PACKET);
    give_meanings(stream->event_header, SCOPE_EVENT_HEADER);
    finish_scope(f, SCOPE_PACKET, stream->packet_context);
    finish_scope(f, SCOPE_EVENT_HEADER, stream->event_header);
    finish_scope(f, SCOPE_STREAM_CONTEXT, stream->event_context);
    for (uint32_t i = 0; i < stream->event_count && !p->rc; i++) {
        finish_scope(f, SCOPE_CONTEXT, stream->events[i]->context);
        finish_scope(f, SCOPE_FIELDS, stream->events[i]->fields);
    }
    stream->clock = f->clock;
    /* The end of a packet is no event: reading it must not move the clock. */
    const struct krait_fc_member *end =
        !p->rc && stream->packet_context ? krait_fc_member(stream->packet_context, "timestamp_end") : NULL;
    if (end && krait_fc_is_int(end->fc))
        end->fc->clock = NULL;
    if (!p->rc)
        check_stream(p, stream);
}

void krait_tsdl_finish(struct krait_tsdl_parser *p)
{
    struct finish f = { .p = p };
    if (!p->rc && !p->has_trace)
        krait_tsdl_fail(p, -EBADMSG, "there is no trace block");
    if (p->rc)
        return;
    give_meanings(p->md->packet_header, SCOPE_HEADER);
    finish_scope(&f, SCOPE_HEADER, p->md->packet_header);
    if (f.clock)
        krait_tsdl_fail(p, -EBADMSG, "packet.header has a field mapped to a clock");
    for (uint32_t i = 0; i < p->md->stream_count && !p->rc; i++)
        finish_stream(&f, p->md->streams[i]);
    if (!p->rc)
        check_header(p);
}
