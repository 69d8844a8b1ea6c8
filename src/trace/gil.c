/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/gil.h"

#include "base/array.h"
#include "event/payload.h"
#include "trace/import.h"

struct reading {
    struct krait_gil_waits *waits;
    struct krait_gil_turns *turns; /* NULL: not asked for */
    struct krait_ticks clock;      /* a copy: it remembers a second */
    struct krait_range range;
    bool only_first;
    uint32_t of;                /* the next event's GIL */
    struct krait_gil_wait open; /* begin_ns 0: none */
};

static bool has_all(const struct reading *reading)
{
    return reading->only_first && reading->waits->count;
}

/* Times of a damaged stream may go backward: waits do not. */
static int end_wait(struct reading *reading, uint64_t t_ns, bool taken)
{
    struct krait_gil_waits *waits = reading->waits;
    struct krait_gil_wait wait = reading->open;
    uint64_t from_ns = waits->count ? waits->items[waits->count - 1].end_ns : reading->range.from_ns;
    reading->open.begin_ns = 0;
    if (!wait.begin_ns || t_ns <= from_ns || wait.begin_ns >= reading->range.to_ns)
        return 0;
    wait.begin_ns = KRAIT_MAX(wait.begin_ns, from_ns);
    wait.end_ns = KRAIT_MAX(KRAIT_MIN(t_ns, reading->range.to_ns), wait.begin_ns);
    wait.taken = taken;
    if (!KRAIT_GROW(waits->items, waits->cap, waits->count + 1))
        return -ENOMEM;
    waits->items[waits->count++] = wait;
    return 0;
}

static int note_turn(struct reading *reading, uint64_t t_ns, bool taken)
{
    struct krait_gil_turns *turns = reading->turns;
    if (!turns)
        return 0;
    if (!KRAIT_GROW(turns->items, turns->cap, turns->count + 1))
        return -ENOMEM;
    turns->items[turns->count++] = (struct krait_gil_turn){ t_ns, reading->of, taken };
    return 0;
}

/* An event off the hot path; -EBADMSG where it is not whole. */
static KRAIT_COLD int other_event(struct reading *reading, uint32_t id, uint64_t ticks,
                                  struct krait_cursor *cursor)
{
    uint64_t t_ns = krait_ticks_ns(&reading->clock, ticks);
    struct krait_payload_gil_wait wait;
    struct krait_payload_gil_interpreter interpreter;
    switch (id) {
    case KRAIT_EVENT_gil_interpreter:
        if (!krait_read_gil_interpreter(cursor, &interpreter))
            return -EBADMSG;
        reading->of = interpreter.id;
        return 0;
    case KRAIT_EVENT_gil_wait:
        if (!krait_read_gil_wait(cursor, &wait))
            return -EBADMSG;
        reading->open = (struct krait_gil_wait){ .begin_ns = t_ns, .holder = wait.holder, .of = reading->of };
        return 0;
    case KRAIT_EVENT_gil_take:
        return end_wait(reading, t_ns, true) || note_turn(reading, t_ns, true) ? -ENOMEM : 0;
    case KRAIT_EVENT_gil_switch:
        return end_wait(reading, t_ns, false);
    case KRAIT_EVENT_gil_drop:
        return note_turn(reading, t_ns, false);
    default:
        return krait_payload_skip(id, cursor) ? 0 : -EBADMSG;
    }
}

/* Begins and ends of calls are stepped over: those below this id. hot path */
static int read_stretch(struct reading *reading, const struct krait_stretches *stretches)
{
    enum { CALLS = KRAIT_EVENT_c_raise + 1 };
    struct krait_cursor cursor = stretches->cursor;
    struct krait_event_head head = { .t = stretches->ticks };
    int rc = 0;
    while (!rc && cursor.at < cursor.end && !has_all(reading)) {
        if (!krait_head_read(&cursor, &head))
            return 0;
        if (KRAIT_UNLIKELY(head.id >= CALLS)) {
            rc = other_event(reading, head.id, head.t, &cursor);
            reading->of = head.id == KRAIT_EVENT_gil_interpreter ? reading->of : 0;
        } else if (cursor.end - cursor.at >= krait_event_payload_bytes[head.id]) {
            cursor.at += krait_event_payload_bytes[head.id];
        } else {
            return 0;
        }
    }
    return rc == -ENOMEM ? rc : 0;
}

/* Nothing more is to be told: what was asked for is there, or the range is over and no wait goes on. */
static bool is_over(struct reading *reading, const struct krait_packet *packet)
{
    uint64_t ns = krait_ticks_ns(&reading->clock, packet->head.timestamp_begin);
    return has_all(reading) || (ns >= reading->range.to_ns && !reading->open.begin_ns);
}

/* A wait that goes on when the range begins is told last before it. Where krait cut the recording off, the wait that
 * is open lasts to there. */
static int read_thread(struct reading *reading, const struct krait_trace *trace, uint32_t thread)
{
    reading->waits->count = 0;
    if (thread >= trace->thread_count)
        return -EINVAL;
    const struct krait_image *image = krait_image_of(trace, thread);
    struct krait_stretches stretches;
    struct krait_damage ignored = { 0 };
    if (!image)
        return 0;
    reading->clock = image->clock;
    reading->range = krait_image_clip(image, reading->range);
    int rc = krait_stretches_open(&stretches, trace, thread, reading->range.from_ns);
    if (rc)
        return rc == -ENOMEM ? rc : 0;
    while (!rc && krait_stretches_next(&stretches, &ignored) && !is_over(reading, &stretches.packet))
        rc = read_stretch(reading, &stretches);
    krait_stretches_close(&stretches);
    bool is_part = image->range.to_ns != UINT64_MAX && !has_all(reading);
    return rc || !is_part ? rc : end_wait(reading, reading->range.to_ns, true);
}

static int read_waits(struct reading *reading, const struct krait_trace *trace, uint32_t thread)
{
    reading->waits->count = 0;
    const struct krait_image *image = krait_image_of(trace, thread);
    return image && image->has_no_gil_waits ? 0 : read_thread(reading, trace, thread);
}

int krait_gil_waits_read(struct krait_gil_waits *waits, const struct krait_trace *trace, uint32_t thread,
                         struct krait_range range)
{
    struct reading reading = { .waits = waits, .range = range };
    return read_waits(&reading, trace, thread);
}

/* A process of one thread has nobody to wait for. */
static bool is_alone(const struct krait_trace *trace, uint32_t thread)
{
    uint32_t process = trace->threads[thread].process;
    return (!thread || trace->threads[thread - 1].process != process) &&
           (thread + 1 == trace->thread_count || trace->threads[thread + 1].process != process);
}

int krait_gil_was_waited_for(const struct krait_trace *trace)
{
    KRAIT_CLEANUP(krait_gil_waits_done) struct krait_gil_waits waits = { 0 };
    struct reading reading = { .waits = &waits, .range = KRAIT_RANGE_ALL, .only_first = true };
    int rc = 0;
    for (uint32_t i = 0; i < trace->thread_count && !rc && !waits.count; i++) {
        reading.open.begin_ns = 0;
        rc = is_alone(trace, i) ? 0 : read_waits(&reading, trace, i);
    }
    return rc ? rc : waits.count > 0;
}

int krait_gil_turns_read(struct krait_gil_waits *waits, struct krait_gil_turns *turns,
                         const struct krait_trace *trace, uint32_t thread)
{
    struct reading reading = { .waits = waits, .turns = turns, .range = KRAIT_RANGE_ALL };
    turns->count = 0;
    return read_thread(&reading, trace, thread);
}

void krait_gil_waits_done(struct krait_gil_waits *waits)
{
    free(waits->items);
    *waits = (struct krait_gil_waits){ 0 };
}

void krait_gil_turns_done(struct krait_gil_turns *turns)
{
    free(turns->items);
    *turns = (struct krait_gil_turns){ 0 };
}
