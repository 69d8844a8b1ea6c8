/* SPDX-License-Identifier: Apache-2.0 */
#include "python/notes.h"

#include "python/codes.h"
#include "python/gil.h"
#include "python/text.h"

static __thread int open_notes;

struct krait_moment krait_moment_now(void)
{
    return (struct krait_moment){ krait_writer_now(&krait_agent.writer), krait_this_ring->cur };
}

bool krait_note_is_open(void)
{
    return open_notes;
}

bool krait_note_begin(struct krait_note *note, struct krait_interp *in, struct krait_moment moment)
{
    *note = (struct krait_note){ .in = in, .moment = moment, .kept = krait_keep() };
    open_notes++;
    return krait_agent_may_note(in, KRAIT_TOP_IS_OLD);
}

/* The clock's window at this thread's last note that went the long way, which looks at what the program has imported. */
static __thread uint64_t looked;

/* What waits for the next call, as the stack that is to be stated before it, waits on: a program may make notes alone. */
bool krait_note_quick(const struct krait_interp *in, uint32_t event, const void *payload, size_t n)
{
    struct krait_ring *ring = krait_this_ring;
    uint64_t t = krait_writer_now(&in->agent->writer), window = t >> KRAIT_CTF_TS_BITS;
    bool call_waits = ring->window == UINT64_MAX && window == looked;
    bool goes_on = krait_has_inner_frames() && krait_unreported_pending();
    if (KRAIT_UNLIKELY(!(ring->cur < ring->limit) || (window != ring->window && !call_waits) ||
                       !krait_ring_fits(ring, sizeof(struct krait_event_extended) + n) ||
                       in->governor.paused || goes_on))
        return false;
    krait_writer_put_small(ring, t, event, payload, n);
    if (call_waits)
        ring->window = UINT64_MAX;
    krait_gil_after(t);
    return true;
}

bool krait_note_waits(const struct krait_ring *ring)
{
    return ring->window == UINT64_MAX || atomic_load_explicit(&ring->resync, memory_order_relaxed);
}

/* No call begins or ends: where the stack is to be said that waits for the next call. */
void krait_note_put(struct krait_note *note, uint32_t event, const void *payload, size_t n)
{
    struct krait_interp *in = note->in;
    struct krait_ring *ring = krait_this_ring;
    size_t bytes = sizeof(struct krait_event_extended) + n;
    if (ring == &krait_no_ring || n > KRAIT_NOTE_BYTES)
        return;
    bool is_last = note->moment.cur && ring->cur == note->moment.cur;
    uint64_t t = is_last ? note->moment.t : krait_writer_now(&in->agent->writer);
    bool look = krait_note_waits(ring);
    krait_thread_tell_pause(in);
    krait_governor_read_closing(in, bytes);
    t = KRAIT_MAX(t, krait_gil_last());
    if (krait_writer_room(&in->agent->writer, ring, t, bytes) == KRAIT_ROOM_NONE) {
        krait_agent_count_lost(in, ring);
        return;
    }
    look = look || krait_note_waits(ring);
    krait_writer_put_extended(ring, t, event, payload, n);
    krait_gil_after(t);
    looked = t >> KRAIT_CTF_TS_BITS;
    if (look) /* it waits on */
        ring->window = UINT64_MAX;
}

void krait_note_end(struct krait_note *note)
{
    open_notes--;
    krait_restore(&note->kept);
}

/* ---- spans ---- */

/* Those of the program's own are counted apart: each kind has numbers of its own. */
uint64_t krait_note_span_id(enum krait_event_enum_value category)
{
    enum { CATEGORY_SHIFT = 56 };
    static _Atomic uint64_t count;
    return (uint64_t)category << CATEGORY_SHIFT | (atomic_fetch_add(&count, 1) + 1);
}

uint64_t krait_note_begin_span(struct krait_interp *in, enum krait_event_enum_value category,
                               const char *name, const char *fields)
{
    struct krait_note note;
    uint8_t payload[KRAIT_PAYLOAD_MAX];
    uint64_t id = krait_note_span_id(category);
    struct krait_payload_span_begin begin = {
        .category = (uint8_t)category, .id = id, .name = krait_code_name_known(in, name), .fields = fields
    };
    if (begin.name &&
        krait_note_quick(in, KRAIT_EVENT_span_begin, payload, krait_put_span_begin(payload, &begin)))
        return id;
    if (krait_note_begin(&note, in, krait_moment_now())) {
        begin.name = krait_code_name(in, name);
        krait_note_put(&note, KRAIT_EVENT_span_begin, payload, krait_put_span_begin(payload, &begin));
    }
    krait_note_end(&note);
    return id;
}

void krait_note_end_span(struct krait_interp *in, uint64_t id, const char *fields)
{
    struct krait_note note;
    uint8_t payload[KRAIT_PAYLOAD_MAX];
    const struct krait_payload_span_end end = { .id = id, .fields = fields };
    if (krait_note_quick(in, KRAIT_EVENT_span_end, payload, krait_put_span_end(payload, &end)))
        return;
    if (krait_note_begin(&note, in, krait_moment_now()))
        krait_note_put(&note, KRAIT_EVENT_span_end, payload, krait_put_span_end(payload, &end));
    krait_note_end(&note);
}
