/* SPDX-License-Identifier: Apache-2.0 */
#include "ctf/read/cursor.h"

#include "ctf/meta/shape.h"
#include "ctf/read/file.h"
#include "ctf/read/range.h"
#include "ctf/scalar/bits.h"

#include <string.h>

int krait_ctf_cursor_init(struct krait_ctf_cursor *cursor, struct krait_ctf_reader *reader,
                          const struct krait_ctf_stream *stream)
{
    *cursor = (struct krait_ctf_cursor){ .reader = reader, .stream = stream };
    return 0;
}

void krait_ctf_cursor_done(struct krait_ctf_cursor *cursor)
{
    if (cursor->way.file) /* behind the packet others may read */
        krait_ctf_let_go(cursor->way.file, cursor->way.from, cursor->packet->offset + cursor->packet->size);
    free(cursor->d.slots);
}

static KRAIT_COLD int damage_at(struct krait_ctf_cursor *c, uint64_t bit, const char *why)
{
    const struct krait_ctf_packet *packet = c->packet;
    bit = KRAIT_MIN(bit, packet->content); /* alignment may have gone beyond */
    krait_err_set(&c->err, -EBADMSG, "%s: byte %llu, in the packet at byte %llu: %s", c->file->path,
                  (unsigned long long)(packet->offset + bit / 8), (unsigned long long)packet->offset,
                  packet->cut ? "the packet is cut: the file ends before it does" : why);
    return krait_err_place(&c->err, strlen(c->file->path), packet->offset + bit / 8);
}

/* -- packets -- */

static int new_slots(struct krait_ctf_cursor *c, const struct krait_ctf_trace *trace)
{
    uint64_t *slots = calloc(trace->metadata->slot_count + 1, sizeof(*slots));
    if (!slots)
        return krait_err_set(&c->err, -ENOMEM, "out of memory");
    free(c->d.slots);
    c->d.slots = slots;
    return 0;
}

/* Another trace of the same uuid has metadata of its own; and a cursor that seeks comes from another stream. */
static int switch_trace(struct krait_ctf_cursor *c, const struct krait_ctf_trace *trace)
{
    if (trace != c->trace && new_slots(c, trace))
        return c->err.code;
    c->trace = trace;
    c->cls =
        trace == c->stream->trace ? c->stream->cls : krait_ctf_stream(trace->metadata, c->stream->cls->id);
    c->code = &trace->code[c->cls->index];
    return 0;
}

/* The time a packet ends at is where its stream's clock stands for the next, unless it lies before its last event. */
static void leave_packet(struct krait_ctf_cursor *c)
{
    const struct krait_ctf_packet *packet = c->packet;
    if (packet && packet->said & 1u << KRAIT_MEANING_END && packet->end > c->d.clock)
        c->d.clock = packet->end;
    /* a filter may read the packet's context for each event: its pages came back */
    if (packet && c->way.file == c->file && packet->size > c->reader->holds)
        krait_ctf_let_go(c->file, packet->offset, packet->offset + packet->size);
}

/* Up to the next event, which is not read yet. Cursors that seek hold nothing: they go where others are. */
static void let_go_behind(struct krait_ctf_cursor *c)
{
    const struct krait_ctf_packet *packet = c->packet;
    krait_ctf_way_to(&c->way, c->file, packet->offset + KRAIT_MIN(c->d.at, c->d.end) / 8, c->reader->holds);
    c->pause = KRAIT_MIN(c->d.end, (c->way.from + c->reader->holds - packet->offset) * 8);
}

/* What ends a stream where time does. */
static const char *const beyond_time = "its time from the clock's origin is beyond 64 bits of nanoseconds";

/* Of the time that the packet says, of its begin or end. */
static int check_packet_time(struct krait_ctf_cursor *c, enum krait_meaning meaning, uint64_t ticks)
{
    bool is_said = c->cls->clock && c->packet->said & 1u << meaning;
    bool beyond = is_said && !krait_ctf_has_time(c->cls->clock, ticks);
    return KRAIT_UNLIKELY(beyond) ? damage_at(c, c->context_at, beyond_time) : 0;
}

/* Packets that are not read have their turns too. */
static void pass_packet(struct krait_ctf_cursor *c)
{
    if (c->by_turn)
        c->turn_ns = KRAIT_MAX(c->turn_ns, krait_ctf_packet_turn(c->stream, c->next_packet));
    c->next_packet++;
}

static int enter_packet(struct krait_ctf_cursor *c)
{
    leave_packet(c);
    c->packet = &c->stream->packets[c->next_packet];
    pass_packet(c);
    c->file = krait_ctf_file_of(c->stream, c->packet);
    int rc = switch_trace(c, c->file->trace);
    if (rc)
        return rc;
    struct krait_decoder *d = &c->d;
    d->bytes = c->file->bytes + c->packet->offset;
    d->at = 0;
    d->end = c->packet->content;
    c->pause = 0;
    d->meanings_set = 0;
    if (c->packet->said & 1u << KRAIT_MEANING_BEGIN)
        d->clock = 0; /* a begin says all of the time, however few bits it has, as babeltrace2 has it */
    bool damaged = krait_decode_skip(d, &c->trace->packet_header);
    c->context_at = d->at;
    c->context_be = d->bits_be;
    damaged = damaged || krait_decode_skip(d, &c->code->packet_context);
    return damaged ? damage_at(c, d->at, d->why)
                   : check_packet_time(c, KRAIT_MEANING_BEGIN, c->packet->begin);
}

/* -- ranges -- */

void krait_ctf_cursor_range(struct krait_ctf_cursor *c, int64_t from_ns, int64_t to_ns)
{
    c->ranged = true;
    c->from_ns = from_ns;
    c->to_ns = to_ns;
}

static void pass_packets_before(struct krait_ctf_cursor *c)
{
    while (c->next_packet < c->stream->packet_count &&
           krait_ctf_packet_ends_before(c->stream, c->next_packet, c->from_ns))
        pass_packet(c);
}

/* A packet may have events from before its begin (barectf's, before 2.3.1): only when its first lies behind
 * the range too, it and those that follow do. */
static bool pass_packets_behind(struct krait_ctf_cursor *c)
{
    if (c->ns <= c->to_ns || !krait_ctf_packet_begins_after(c->stream, c->next_packet - 1, c->to_ns))
        return false;
    while (c->next_packet < c->stream->packet_count &&
           krait_ctf_packet_begins_after(c->stream, c->next_packet, c->to_ns))
        pass_packet(c);
    c->d.at = c->d.end;
    return true;
}

/* -- event headers -- */

/* A header of known shape is a word: the class's id, then the clock's low bits. Where either does not fit,
 * the id is all ones, and u32 id and u64 time follow its bytes. */
struct known_header {
    uint8_t size; /* bytes */
    uint8_t id_size;
    uint8_t id_bits;
    uint64_t id_mask, time_mask;
};

enum { EXTENDED_SIZE = 12 };

static const struct known_header known_headers[] = {
    [KRAIT_SHAPE_COMPACT] = { .size = 4,
                              .id_size = 1,
                              .id_bits = 5,
                              .id_mask = 31,
                              .time_mask = (1u << 27) - 1 },
    [KRAIT_SHAPE_LARGE] = { .size = 6,
                            .id_size = 2,
                            .id_bits = 16,
                            .id_mask = 65535,
                            .time_mask = UINT32_MAX },
};

static inline bool read_extended(struct krait_decoder *d, uint64_t at, uint64_t *id)
{
    if (at + EXTENDED_SIZE > d->end / 8)
        return false;
    *id = krait_bytes_le(d->bytes + at, 4);
    d->clock = krait_bytes_le(d->bytes + at + 4, 8);
    d->at = (at + EXTENDED_SIZE) * 8;
    return true;
}

/* Returns false when what is left is too short. Behind it bytes may be read: behind a packet's file is a page
 * more (stream.h). */
static inline bool read_known(struct krait_decoder *d, const struct known_header *header, uint64_t *id)
{
    uint64_t at = (d->at + 7) / 8;
    if (KRAIT_UNLIKELY(at + header->size > d->end / 8))
        return false;
    uint64_t word = krait_bytes_le(d->bytes + at, 8);
    *id = word & header->id_mask;
    if (*id == header->id_mask)
        return read_extended(d, at + header->id_size, id);
    d->at = (at + header->size) * 8;
    d->clock = krait_clock_follow(d->clock, word >> header->id_bits, header->time_mask);
    return true;
}

static int read_header(struct krait_ctf_cursor *c, const struct krait_ctf_code *code, uint64_t *id)
{
    struct krait_decoder *d = &c->d;
    if (KRAIT_LIKELY(code->shape != KRAIT_SHAPE_OTHER)) { /* krait_header_shape knows no FLAT */
        if (!read_known(d, &known_headers[code->shape], id))
            return damage_at(c, d->at, "an event's header is longer than the rest of its packet");
        d->slots[code->id_slot] = *id;
        return 0;
    }
    d->meanings_set = 0;
    if (krait_decode_skip(d, &code->event_header))
        return damage_at(c, d->at, d->why);
    bool has_id = d->meanings_set & 1u << KRAIT_MEANING_EVENT_ID;
    if (!has_id && c->cls->event_count != 1)
        return damage_at(c, d->at, "the event's header has no id");
    *id = has_id ? d->meanings[KRAIT_MEANING_EVENT_ID] : c->cls->events[0]->id;
    return 0;
}

static KRAIT_COLD int unknown_id(struct krait_ctf_cursor *c, uint64_t id)
{
    char why[96];
    snprintf(why, sizeof(why), "an event has id %llu, which is not in the metadata", (unsigned long long)id);
    return damage_at(c, c->event_at, why);
}

static int read_event(struct krait_ctf_cursor *c)
{
    const struct krait_ctf_code *code = c->code;
    uint64_t id = 0;
    c->event_at = c->d.at;
    int rc = read_header(c, code, &id);
    if (rc)
        return rc;
    c->event = id < code->by_id_count ? code->by_id[id]
               : code->by_id_count    ? NULL
                                      : krait_ctf_event(c->cls, id);
    if (!c->event)
        return unknown_id(c, id);
    c->fields_at = c->d.at;
    c->fields_be = c->d.bits_be;
    c->ticks = c->d.clock;
    const struct krait_ctf_clock *clock = c->cls->clock;
    c->ns = clock ? krait_ctf_ns(clock, c->ticks) : 0;
    return KRAIT_UNLIKELY(clock && c->ticks > clock->last) ? damage_at(c, c->event_at, beyond_time) : 1;
}

/* Whoever comes to the packet that damages the stream ends in it; whoever begins or seeks behind it ends there. */
static bool is_at_end(const struct krait_ctf_cursor *c)
{
    const struct krait_ctf_stream *stream = c->stream;
    return c->next_packet == stream->packet_count || (stream->damaged && c->next_packet >= stream->damaged);
}

static int next_packet(struct krait_ctf_cursor *c)
{
    if (c->packet && c->packet->cut)
        return damage_at(c, c->d.at, "");
    if (c->packet && check_packet_time(c, KRAIT_MEANING_END, c->packet->end))
        return c->err.code;
    if (KRAIT_UNLIKELY(c->ranged))
        pass_packets_before(c);
    if (is_at_end(c)) {
        c->err = c->stream->damage;
        return c->err.code;
    }
    int rc = enter_packet(c);
    let_go_behind(c);
    return rc ? rc : 1;
}

/* Of a packet. What is true of a clock is so of all events: it is asked here alone. */
static int read_first(struct krait_ctf_cursor *c)
{
    int rc = read_event(c);
    bool beyond = rc > 0 && c->cls->clock && c->cls->clock->beyond;
    return beyond ? damage_at(c, c->event_at, beyond_time) : rc;
}

/* The first event behind the packet. */
static int next_of_packets(struct krait_ctf_cursor *c)
{
    int rc;
    c->turn_ns = INT64_MIN;
    do {
        do {
            rc = next_packet(c);
            if (rc <= 0)
                return rc;
        } while (c->d.at >= c->d.end);
        c->first_at = c->d.at;
        rc = read_first(c);
    } while (c->ranged && rc > 0 && pass_packets_behind(c));
    return rc;
}

static KRAIT_COLD int next_behind(struct krait_ctf_cursor *c)
{
    if (c->d.at >= c->d.end) /* without a packet both are 0 */
        return next_of_packets(c);
    let_go_behind(c);
    return read_event(c);
}

int krait_ctf_next(struct krait_ctf_cursor *c)
{
    return KRAIT_LIKELY(c->d.at < c->pause) ? read_event(c) : next_behind(c);
}

/* As good as a double, where the clock does not count nanoseconds. */
static uint64_t ticks_at(const struct krait_ctf_clock *clock, int64_t ns)
{
    uint64_t since = (uint64_t)ns - (uint64_t)krait_ctf_ns(clock, 0);
    if (clock->freq == KRAIT_NS_PER_S)
        return since;
    double exact = (double)since * (double)clock->freq / 1e9;
    uint64_t ticks = exact < 0x1p64 ? (uint64_t)exact : UINT64_MAX;
    return ticks < UINT64_MAX && krait_ctf_ns(clock, ticks) < ns ? ticks + 1 : ticks;
}

/* Reads the header with the clock a little before the time: its own bits of it say the rest, if it has any. */
static int read_event_at(struct krait_ctf_cursor *c, int64_t ns)
{
    const struct krait_ctf_clock *clock = c->cls->clock;
    uint64_t ticks = clock ? ticks_at(clock, ns) : 0;
    uint64_t before = clock && clock->freq != KRAIT_NS_PER_S ? ticks - KRAIT_MIN(ticks, (uint64_t)64) : ticks;
    c->d.clock = before;
    int rc = read_event(c);
    c->ns = ns;
    if (rc > 0 && c->ticks == before)
        c->ticks = c->d.clock = ticks;
    return KRAIT_MIN(rc, 0);
}

int krait_ctf_enter(struct krait_ctf_cursor *c, const struct krait_ctf_stream *stream, uint32_t packet)
{
    c->stream = stream;
    c->packet = NULL;
    c->next_packet = packet;
    return enter_packet(c);
}

int krait_ctf_seek(struct krait_ctf_cursor *c, const struct krait_ctf_stream *stream, uint32_t packet,
                   uint64_t bit, int64_t ns)
{
    if (c->stream != stream || c->packet != &stream->packets[packet]) {
        int rc = krait_ctf_enter(c, stream, packet);
        if (rc)
            return rc;
    }
    c->d.at = bit;
    c->pause = 0;
    return read_event_at(c, ns);
}

/* -- fields -- */

static KRAIT_COLD int compile_event(struct krait_ctf_reader *reader, struct krait_program *program,
                                    const struct krait_event_class *event)
{
    const struct krait_fc *const scopes[] = { event->stream->event_context, event->context, event->fields };
    return krait_program_new(program, &reader->arena, scopes, KRAIT_ARRAY_LEN(scopes));
}

struct krait_program *krait_ctf_event_program(struct krait_ctf_cursor *c)
{
    struct krait_program *program = &c->code->events[c->event->index];
    if (KRAIT_LIKELY(program->ops))
        return program;
    if (compile_event(c->reader, program, c->event)) {
        krait_err_set(&c->err, -ENOMEM, "out of memory");
        return NULL;
    }
    return program;
}

int krait_ctf_compile(struct krait_ctf_reader *reader)
{
    int rc = 0;
    for (uint32_t t = 0; t < reader->trace_count; t++) {
        const struct krait_ctf_trace *trace = reader->traces[t];
        for (uint32_t s = 0; s < trace->metadata->stream_count; s++) {
            const struct krait_stream_class *cls = trace->metadata->streams[s];
            for (uint32_t i = 0; i < cls->event_count && !rc; i++) {
                if (!trace->code[s].events[i].ops)
                    rc = compile_event(reader, &trace->code[s].events[i], cls->events[i]);
            }
        }
    }
    return rc;
}

/* An event of no bits would come again for ever. */
KRAIT_COLD int krait_ctf_event_damaged(struct krait_ctf_cursor *c, bool well)
{
    return well ? damage_at(c, c->event_at, "an event of no bits") : damage_at(c, c->d.at, c->d.why);
}

int krait_ctf_event_skip(struct krait_ctf_cursor *c)
{
    const struct krait_program *program = krait_ctf_event_program(c);
    return program ? krait_ctf_event_passed(c, !krait_decode_skip(&c->d, program)) : -ENOMEM;
}

void krait_ctf_event_rewind(struct krait_ctf_cursor *c)
{
    c->d.at = c->fields_at;
    c->d.clock = c->ticks;
    c->d.bits_be = c->fields_be;
}
