/* SPDX-License-Identifier: Apache-2.0 */
#include "ctf/copy/packet.h"

#include <string.h>

void krait_copy_run_add(struct krait_copy_run *run, uint64_t from, uint64_t to, bool wanted)
{
    if (!wanted) {
        run->before += !run->events;
        run->behind += run->events > 0;
        return;
    }
    run->torn |= run->behind > 0;
    run->from = run->events ? run->from : from;
    run->to = to;
    run->events++;
}

static uint32_t align_of(const struct krait_fc *fc);

/* Of any of its members or options, at any depth. */
static uint32_t align_of_members(const struct krait_fc *fc)
{
    uint32_t align = fc->align;
    for (uint32_t i = 0; i < fc->count; i++)
        align = KRAIT_MAX(align, align_of(fc->members[i].fc));
    return align;
}

static uint32_t align_of(const struct krait_fc *fc)
{
    if (!fc)
        return 1;
    bool has_members =
        fc->kind == KRAIT_FC_STRUCT || fc->kind == KRAIT_FC_VARIANT || fc->kind == KRAIT_FC_OPTIONAL;
    if (has_members)
        return align_of_members(fc);
    bool has_elements = fc->kind == KRAIT_FC_ARRAY || fc->kind == KRAIT_FC_SEQUENCE;
    return has_elements ? KRAIT_MAX(fc->align, align_of(fc->elem)) : KRAIT_MAX(fc->align, 1u);
}

/* What all that events of the stream hold is aligned to, at least a byte. */
static uint64_t events_align(const struct krait_stream_class *cls)
{
    uint32_t align = KRAIT_MAX(8u, align_of(cls->event_header));
    align = KRAIT_MAX(align, align_of(cls->event_context));
    for (uint32_t i = 0; i < cls->event_count; i++) {
        align = KRAIT_MAX(align, align_of(cls->events[i]->context));
        align = KRAIT_MAX(align, align_of(cls->events[i]->fields));
    }
    return align;
}

static uint64_t aligned(uint64_t at, uint64_t align)
{
    return (at + align - 1) & ~(align - 1);
}

/* Where the run goes: the bit behind the head that its first event is aligned to, and how far it moves to the front.
 * False: what is in it would not be aligned as it was. */
static bool place_run(const struct krait_ctf_cursor *cursor, const struct krait_copy_run *run, uint64_t head,
                      uint64_t *at, uint64_t *from)
{
    const struct krait_fc *header = cursor->cls->event_header;
    uint64_t first = header ? header->align : 8;
    *at = aligned(head, first);
    *from = aligned(run->from, first);
    return *at % 8 == 0 && *at % events_align(cursor->cls) == *from % events_align(cursor->cls);
}

static void add_zeros(struct krait_buf *out, size_t len)
{
    while (!out->failed && out->len < len)
        krait_buf_char(out, '\0');
}

/* The packet's times, as far as they change. Events that are put before the range are a tick before it. */
static bool change_times(uint8_t *bytes, const struct krait_head_fields *fields,
                         const struct krait_ctf_packet *packet, const struct krait_copy_run *run, bool added)
{
    bool front = run->before || added, back = run->behind || !run->events;
    uint64_t begin = front ? KRAIT_MAX(packet->begin, run->from_ticks) : packet->begin;
    begin = added ? run->from_ticks - 1 : begin;
    uint64_t end = back ? KRAIT_MIN(packet->end, run->until_ticks) : packet->end;
    return krait_head_put(bytes, fields, KRAIT_MEANING_BEGIN, begin) &&
           krait_head_put(bytes, fields, KRAIT_MEANING_END, KRAIT_MAX(end, begin));
}

/* For content of so many bits, of which the last byte is there. */
static bool change_head(struct krait_buf *out, const struct krait_head_fields *fields, uint64_t content)
{
    uint8_t *bytes = (uint8_t *)out->data;
    bool has_content = fields->of[KRAIT_MEANING_CONTENT].op;
    return (has_content || content % 8 == 0) &&
           krait_head_put(bytes, fields, KRAIT_MEANING_CONTENT, content) &&
           krait_head_put(bytes, fields, KRAIT_MEANING_SIZE, (uint64_t)out->len * 8);
}

static bool put_all(struct krait_buf *out, const struct krait_ctf_cursor *cursor,
                    const struct krait_head_fields *fields, const struct krait_copy_run *run,
                    const struct krait_buf *before)
{
    uint64_t at = fields->end, from = 0;
    if (run->events ? !place_run(cursor, run, fields->end, &at, &from) : at % 8 != 0)
        return false;
    krait_buf_add(out, cursor->d.bytes, (size_t)((fields->end + 7) / 8));
    add_zeros(out, (size_t)(at / 8));
    krait_buf_add(out, before->data, before->len);
    uint64_t bits = run->events ? run->to - from : 0;
    krait_buf_add(out, cursor->d.bytes + from / 8, (size_t)((bits + 7) / 8));
    return !out->failed && change_head(out, fields, at + before->len * 8 + bits);
}

/* The front of the packet stays as it is. */
static bool put_front(struct krait_buf *out, const struct krait_ctf_cursor *cursor,
                      const struct krait_head_fields *fields, const struct krait_copy_run *run)
{
    krait_buf_add(out, cursor->d.bytes, (size_t)((run->to + 7) / 8));
    return !out->failed && change_head(out, fields, run->to);
}

bool krait_copy_trim(struct krait_buf *out, const struct krait_ctf_cursor *cursor,
                     const struct krait_copy_run *run, const struct krait_buf *before)
{
    struct krait_head_fields fields;
    bool keeps_front = run->events && !run->before && !before->len;
    krait_buf_clear(out);
    if (run->torn || krait_head_find(&fields, cursor))
        return false;
    return (keeps_front ? put_front(out, cursor, &fields, run)
                        : put_all(out, cursor, &fields, run, before)) &&
           change_times((uint8_t *)out->data, &fields, cursor->packet, run, before->len > 0);
}
