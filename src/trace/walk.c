/* SPDX-License-Identifier: Apache-2.0
 *
 * From a thread's bytes to its calls: the loop that every analysis of a recording waits for.
 */
#include "event/payload.h"
#include "trace/import.h"
#include "trace/stack.h"

#include <string.h>

struct walk {
    struct krait_stack *stack;
    const struct krait_image *image;
    struct krait_ticks clock; /* a copy: it remembers a second */
    uint32_t next_omit;       /* index */
    uint64_t next_omit_ns;
    struct krait_damage damage;
    const char *path;
    struct krait_places *noted; /* NULL: not asked for, or known already */
    uint64_t next_seq;          /* of the packet that follows; 0: not known */
    size_t read_to;             /* behind the last packet that was read */
    bool over;                  /* the range's end was reached */
    bool goes_on;               /* krait_trace_walk_on */
    uint32_t gap;               /* of the image's unrecorded: the first that ends behind what was read */
};

static uint32_t func_of(const struct krait_image *image, uint32_t code, enum krait_stack_lang lang)
{
    uint32_t func = KRAIT_LIKELY(code < image->code_count) ? image->code_func[code] : KRAIT_NO_ID;
    if (KRAIT_LIKELY(func != KRAIT_NO_ID))
        return func;
    return lang == KRAIT_STACK_C ? KRAIT_FUNC_UNKNOWN_C : KRAIT_FUNC_UNKNOWN_PYTHON;
}

static KRAIT_COLD void apply_omits(struct walk *walk, uint64_t t_ns)
{
    const struct krait_image *image = walk->image;
    while (walk->next_omit < image->omit_count && image->omits[walk->next_omit].t_ns <= t_ns) {
        krait_stack_omit(walk->stack, image->omits[walk->next_omit].t_ns, image->omits[walk->next_omit].code);
        walk->next_omit++;
    }
    walk->next_omit_ns =
        walk->next_omit < image->omit_count ? image->omits[walk->next_omit].t_ns : UINT64_MAX;
}

static void live_frame(struct walk *walk, uint64_t t_ns, uint32_t code, uint32_t depth)
{
    krait_stack_live(walk->stack, t_ns, func_of(walk->image, code, KRAIT_STACK_PYTHON), code, depth);
}

/* Whether nothing is recorded of the process at t_ns, because the recording is off or what it records changes: no other event
 * of its threads is in that time. Times ascend. */
static bool is_off(struct walk *walk, uint64_t t_ns)
{
    const struct krait_gaps *gaps = &walk->image->unrecorded;
    while (walk->gap < gaps->count && gaps->items[walk->gap].to_ns <= t_ns)
        walk->gap++;
    return walk->gap < gaps->count && gaps->items[walk->gap].from_ns <= t_ns;
}

/* What is open where the recording is switched off, or what it records changes, lasts to the end of a range that ends before. */
static void settle(struct walk *walk, uint64_t t_ns, uint32_t depth)
{
    if (depth || walk->stack->in_run || !is_off(walk, t_ns))
        krait_stack_settle(walk->stack, t_ns, depth);
    else if (t_ns < walk->stack->range.to_ns)
        krait_stack_end_all(walk->stack, t_ns);
}

/* Events off the hot path. False when the payload is not whole or the id not known. */
static KRAIT_COLD bool rare_event(struct walk *walk, uint32_t id, uint64_t t_ns, struct krait_cursor *cursor)
{
    struct krait_payload_python_frame frame;
    struct krait_payload_python_stack stack;
    struct krait_payload_python_deep_frame deep_frame;
    struct krait_payload_python_deep_stack deep_stack;
    struct krait_payload_python_switch change;
    switch (id) {
    case KRAIT_EVENT_python_frame:
        if (!krait_read_python_frame(cursor, &frame))
            return false;
        live_frame(walk, t_ns, frame.code, frame.depth);
        return true;
    case KRAIT_EVENT_python_deep_frame:
        if (!krait_read_python_deep_frame(cursor, &deep_frame))
            return false;
        live_frame(walk, t_ns, deep_frame.code, deep_frame.depth);
        return true;
    case KRAIT_EVENT_python_stack:
        if (!krait_read_python_stack(cursor, &stack))
            return false;
        settle(walk, t_ns, stack.depth);
        return true;
    case KRAIT_EVENT_python_deep_stack:
        if (!krait_read_python_deep_stack(cursor, &deep_stack))
            return false;
        settle(walk, t_ns, deep_stack.depth);
        return true;
    case KRAIT_EVENT_python_switch:
        if (!krait_read_python_switch(cursor, &change))
            return false;
        krait_stack_switch(walk->stack, t_ns, change.from, change.to);
        return true;
    default:
        return krait_payload_skip(id, cursor);
    }
}

/* `exception`: a code id, or 0. */
static void unwind(struct walk *walk, uint64_t t_ns, uint32_t exception, enum krait_stack_lang lang)
{
    const uint64_t *known = krait_map_get(&walk->image->exceptions, exception);
    walk->stack->raised = known ? (uint32_t)*known : KRAIT_NO_ID;
    krait_stack_end(walk->stack, t_ns, KRAIT_OP_UNWIND, lang);
}

static bool unwind_event(struct walk *walk, uint64_t t_ns, struct krait_cursor *cursor,
                         enum krait_stack_lang lang)
{
    struct krait_payload_python_unwind_of raised; /* as c:raise_of */
    if (!krait_read_python_unwind_of(cursor, &raised))
        return false;
    unwind(walk, t_ns, raised.exception, lang);
    return true;
}

static bool begin_event(struct walk *walk, uint64_t t_ns, struct krait_cursor *cursor,
                        enum krait_op_kind kind, enum krait_stack_lang lang)
{
    struct krait_payload_python_call begin; /* of one field, as all begins */
    if (!krait_read_python_call(cursor, &begin))
        return false;
    krait_stack_begin(walk->stack, t_ns, func_of(walk->image, begin.code, lang), begin.code, kind, lang);
    return true;
}

/* One event after its header. False when it is not whole. hot path */
static inline bool one_event(struct walk *walk, uint32_t id, uint64_t t_ns, struct krait_cursor *cursor)
{
    struct krait_stack *stack = walk->stack;
    switch (id) {
    case KRAIT_EVENT_python_call:
        return begin_event(walk, t_ns, cursor, KRAIT_OP_CALL, KRAIT_STACK_PYTHON);
    case KRAIT_EVENT_python_return:
        krait_stack_end(stack, t_ns, KRAIT_OP_RETURN, KRAIT_STACK_PYTHON);
        return true;
    case KRAIT_EVENT_c_call:
        return begin_event(walk, t_ns, cursor, KRAIT_OP_CALL, KRAIT_STACK_C);
    case KRAIT_EVENT_c_return:
        krait_stack_end(stack, t_ns, KRAIT_OP_RETURN, KRAIT_STACK_C);
        return true;
    case KRAIT_EVENT_c_raise_of:
        return unwind_event(walk, t_ns, cursor, KRAIT_STACK_C);
    case KRAIT_EVENT_c_raise:
        unwind(walk, t_ns, 0, KRAIT_STACK_C);
        return true;
    case KRAIT_EVENT_python_resume:
        return begin_event(walk, t_ns, cursor, KRAIT_OP_RESUME, KRAIT_STACK_PYTHON);
    case KRAIT_EVENT_python_throw:
        return begin_event(walk, t_ns, cursor, KRAIT_OP_THROW, KRAIT_STACK_PYTHON);
    case KRAIT_EVENT_python_yield:
        krait_stack_end(stack, t_ns, KRAIT_OP_YIELD, KRAIT_STACK_PYTHON);
        return true;
    case KRAIT_EVENT_python_unwind_of:
        return unwind_event(walk, t_ns, cursor, KRAIT_STACK_PYTHON);
    case KRAIT_EVENT_python_unwind:
        unwind(walk, t_ns, 0, KRAIT_STACK_PYTHON);
        return true;
    default:
        return rare_event(walk, id, t_ns, cursor);
    }
}

enum {
    FRAMES = 1 << KRAIT_EVENT_python_frame | 1 << KRAIT_EVENT_python_deep_frame,
    SETTLES = 1 << KRAIT_EVENT_python_stack | 1 << KRAIT_EVENT_python_deep_stack,
};

/* Whether an event at the range's end or behind it still tells of the time before: where events were lost up to there,
 * what is open now tells what ended before. */
static bool tells_of_gap(const struct walk *walk, uint32_t id)
{
    return !walk->stack->sampled && (krait_event_bit(id) & (FRAMES | SETTLES));
}

/* An event whose header did not go the short way, or that meets a border: the way that can do everything.
 * False at the end of the range or of what is intact. */
static KRAIT_COLD bool slow_event(struct walk *walk, const struct krait_packet *packet,
                                  struct krait_cursor *cursor, uint64_t *ticks)
{
    const uint8_t *event = cursor->at;
    uint64_t to_ns = walk->stack->range.to_ns;
    struct krait_event_head head = { .t = *ticks };
    if (!krait_head_read(cursor, &head)) {
        krait_packet_damaged(packet, event, head.id, walk->path, &walk->damage);
        return false;
    }
    *ticks = head.t;
    uint64_t t_ns = krait_ticks_ns(&walk->clock, *ticks);
    if (t_ns >= walk->next_omit_ns)
        apply_omits(walk, KRAIT_MIN(t_ns, to_ns - 1));
    bool is_edge = t_ns == to_ns, switches = is_edge && head.id == KRAIT_EVENT_python_switch;
    bool ends = switches || (is_edge && krait_event_bit(head.id) & KRAIT_CALL_ENDS); /* no begin came since */
    bool is_behind = t_ns >= to_ns && !ends, is_used = !is_behind || tells_of_gap(walk, head.id);
    walk->over = switches || (is_behind && (!is_used || (krait_event_bit(head.id) & SETTLES)));
    if (is_used && !one_event(walk, head.id, t_ns, cursor)) {
        krait_packet_damaged(packet, event, head.id, walk->path, &walk->damage);
        return false;
    }
    return !walk->over;
}

/* What the short way knows of an event by its id: bits of begins, of ends, of C calls, and the kind of op.
 * Unwinds are rare, and say more than their time. */
enum {
    SHORT_BYTES = 8, /* of the longest: header and code */
    BEGINS = KRAIT_CALL_BEGINS,
    ENDS = KRAIT_CALL_ENDS & ~KRAIT_CALL_RAISES,
    IN_C = KRAIT_CALL_IN_C & ~KRAIT_CALL_RAISES,
};

static const uint8_t short_kinds[] = {
    [KRAIT_EVENT_python_call] = KRAIT_OP_CALL,   [KRAIT_EVENT_python_return] = KRAIT_OP_RETURN,
    [KRAIT_EVENT_python_yield] = KRAIT_OP_YIELD, [KRAIT_EVENT_python_resume] = KRAIT_OP_RESUME,
    [KRAIT_EVENT_python_throw] = KRAIT_OP_THROW, [KRAIT_EVENT_c_call] = KRAIT_OP_CALL,
    [KRAIT_EVENT_c_return] = KRAIT_OP_RETURN,
};

static inline void put_entry(struct krait_stack *stack, uint32_t at, uint64_t t_ns, uint32_t func,
                             uint8_t kind)
{
    stack->t_ns[at] = t_ns;
    stack->func[at] = func;
    stack->kind[at] = kind;
}

/* As many events as go the short way: begins and ends in the compact form that balance, before any border.
 * Stops in front of the first that does not. It does what one_event and the stack's inline functions do, with
 * the state in registers: the batch's column of bytes would otherwise make the compiler load all of it again
 * after each store. hot path */
static void short_events(struct walk *walk, struct krait_cursor *cursor, uint64_t *ticks_at)
{
    struct krait_stack *const stack = walk->stack;
    const struct krait_ticks clock = walk->clock;
    const uint32_t *const code_func = walk->image->code_func;
    const uint32_t code_count = walk->image->code_count;
    const uint64_t border_ns = KRAIT_MIN(walk->next_omit_ns, stack->range.to_ns);
    struct krait_stack_frame *const frames = stack->frames;
    uint32_t *const py = stack->py;
    const uint8_t *at = cursor->at;
    uint64_t ticks = *ticks_at, last_ns = stack->last_ns;
    uint32_t n = stack->n, len = stack->len, py_len = stack->py_len;
    while (cursor->end - at >= SHORT_BYTES && n < KRAIT_STACK_BATCH) {
        uint64_t word;
        memcpy(&word, at, sizeof(word));
        uint32_t code;
        const struct krait_event_head head = krait_head_unpack(krait_head_split(word, &code), ticks);
        const uint32_t id = head.id;
        uint64_t in_second = head.t - clock.base;
        uint64_t t_ns = krait_ticks_ns_in_second(&clock, in_second);
        if (KRAIT_UNLIKELY(!((BEGINS | ENDS) >> id & 1) || in_second >= clock.freq || t_ns >= border_ns))
            break;
        t_ns = KRAIT_MAX(t_ns, last_ns);
        uint32_t lang = IN_C >> id & 1, func;
        if (BEGINS >> id & 1) {
            func = KRAIT_LIKELY(code < code_count) ? code_func[code] : KRAIT_NO_ID;
            if (KRAIT_UNLIKELY(func == KRAIT_NO_ID || len == stack->cap))
                break;
            py[py_len] = len; /* stays only for Python */
            py_len += lang == KRAIT_STACK_PYTHON;
            frames[len++] = (struct krait_stack_frame){ func, code, lang, 0 };
            at += 8;
        } else {
            if (KRAIT_UNLIKELY(!len || frames[len - 1].lang != lang))
                break;
            func = frames[--len].func;
            py_len -= lang == KRAIT_STACK_PYTHON;
            at += 4;
        }
        put_entry(stack, n++, t_ns, func, short_kinds[id]);
        ticks = head.t;
        last_ns = t_ns;
    }
    cursor->at = at;
    *ticks_at = ticks;
    stack->last_ns = last_ns;
    stack->n = n;
    stack->len = len;
    stack->py_len = py_len;
    if (n == KRAIT_STACK_BATCH)
        krait_stack_flush(stack);
}

static void look_for_gap(struct walk *walk, const struct krait_packet *packet)
{
    if (walk->next_seq && packet->head.packet_seq_num != walk->next_seq)
        krait_stack_forget_left(walk->stack);
    walk->next_seq = packet->head.packet_seq_num + 1;
}

static void walk_packet(struct walk *walk, const struct krait_packet *packet)
{
    struct krait_cursor cursor = { packet->body, packet->end };
    uint64_t ticks = packet->head.timestamp_begin;
    while (cursor.at < cursor.end) {
        const uint8_t *before = cursor.at;
        if (walk->stack->emitting && !walk->stack->over)
            short_events(walk, &cursor, &ticks);
        if (cursor.at == before && !slow_event(walk, packet, &cursor, &ticks))
            return;
    }
}

/* What is open at the end lasted to the end of its process, or to the last that is known of it where nobody
 * said its end: it was waiting, or running without a call. */
static uint64_t last_time(const struct krait_trace *trace, uint32_t thread)
{
    return trace->processes[trace->threads[thread].process].end_ns;
}

/* 0, or -ECANCELED where nobody wants the walk any more. */
static int tell_progress(const struct krait_trace *trace, uint64_t bytes)
{
    bool goes_on = !trace->progress || trace->progress(trace->progress_ctx, bytes);
    return goes_on ? 0 : -ECANCELED;
}

static int begin_at(struct walk *walk, struct krait_packets *packets, const struct krait_places *places,
                    const struct krait_place *place)
{
    krait_packets_go(packets, place->offset);
    walk->next_omit = place->next_omit;
    walk->next_omit_ns =
        walk->next_omit < walk->image->omit_count ? walk->image->omits[walk->next_omit].t_ns : UINT64_MAX;
    return krait_places_restore(places, place, walk->stack);
}

/* Begins in front of the range, where a walk has noted places. */
static int skip_ahead(struct walk *walk, struct krait_packets *packets, const struct krait_places *places)
{
    const struct krait_place *place = places ? krait_places_find(places, walk->stack->range.from_ns) : NULL;
    if (!place || place->offset > packets->size)
        return 0;
    return begin_at(walk, packets, places, place);
}

/* Begins behind the last packet of the walk before, as that left it. */
static int go_on(struct walk *walk, struct krait_packets *packets, const struct krait_places *places)
{
    const struct krait_place *place = places && places->end ? &places->end->items[0] : NULL;
    if (!place)
        return 0;
    walk->next_seq = places->end_seq;
    return begin_at(walk, packets, places->end, place);
}

/* Of a file that was written anew: it is read from its first packet. */
static void forget_places(struct walk *walk, const struct krait_places **places)
{
    krait_places_free(walk->noted);
    walk->noted = NULL;
    *places = NULL;
}

/* Up to the end of the range, which is not told: what is open then is the stack. */
static int walk_packets(struct walk *walk, const struct krait_trace *trace, uint32_t thread)
{
    struct krait_places **known = &krait_recordings_of(trace)->places[thread];
    struct krait_packets packets;
    struct krait_err err;
    const struct krait_thread_file *file = &krait_recordings_of(trace)->files[thread];
    walk->path = file->path;
    int rc = krait_packets_open(&packets, walk->path, walk->image->uuid, &err);
    if (rc) {
        krait_damage_say(&walk->damage, "%s", err.text);
        return rc == -ENOMEM ? rc : 0;
    }
    struct krait_packet packet;
    const struct krait_places *places = __atomic_load_n(known, __ATOMIC_ACQUIRE);
    bool stays = !trace->impl->goes_on || krait_thread_file_stays(file, walk->image, &packets);
    if (!stays && walk->goes_on) {
        krait_damage_say(&walk->damage, "%s: was written anew meanwhile", walk->path);
        krait_packets_close(&packets);
        return 0;
    }
    if (stays)
        krait_packets_limit(&packets, file->size);
    else
        forget_places(walk, &places);
    walk->stack->rc = walk->goes_on ? go_on(walk, &packets, places) : skip_ahead(walk, &packets, places);
    size_t told = walk->read_to = packets.at;
    while (!walk->over && !walk->stack->rc && krait_packets_next(&packets, &packet, &walk->damage)) {
        if (!stays && krait_thread_file_is_behind(file, walk->image, &packet))
            break;
        look_for_gap(walk, &packet);
        if (walk->noted)
            krait_places_note(walk->noted, walk->stack, packet.offset, walk->next_omit);
        walk_packet(walk, &packet);
        krait_packets_release(&packets);
        rc = tell_progress(trace, packets.at - told);
        walk->stack->rc = walk->stack->rc ? walk->stack->rc : rc;
        __atomic_fetch_add(&trace->impl->bytes_read, packets.at - told, __ATOMIC_RELAXED);
        told = walk->read_to = packets.at;
    }
    if (!walk->stack->rc)
        walk->stack->rc = tell_progress(trace, packets.size - told);
    krait_packets_close(&packets);
    if (!walk->goes_on)
        apply_omits(walk, KRAIT_MIN(last_time(trace, thread), walk->stack->range.to_ns - 1));
    return walk->stack->rc;
}

/* Leaves open what is open at the end. What was noted so far stays as it is for walks beside this one. */
static int walk_on(struct walk *walk, const struct krait_trace *trace, uint32_t thread)
{
    struct krait_places **known = &krait_recordings_of(trace)->places[thread];
    walk->noted = *known ? krait_places_copy(*known) : calloc(1, sizeof(*walk->noted));
    if (!walk->noted)
        return -ENOMEM;
    walk->read_to = SIZE_MAX;
    int rc = walk_packets(walk, trace, thread);
    if (rc)
        return rc;
    krait_stack_flush(walk->stack);
    if (walk->stack->rc)
        return walk->stack->rc;
    if (walk->read_to != SIZE_MAX) /* the file could be opened */
        krait_places_note_end(walk->noted, walk->stack, walk->read_to, walk->next_omit, walk->next_seq);
    __atomic_store_n(known, walk->noted, __ATOMIC_RELEASE);
    walk->noted = NULL;
    return 0;
}

static int walk_stream(struct walk *walk, const struct krait_trace *trace, uint32_t thread)
{
    struct krait_places **known = &krait_recordings_of(trace)->places[thread];
    int rc = walk_packets(walk, trace, thread);
    if (rc)
        return rc;
    krait_stack_finish(walk->stack, last_time(trace, thread));
    if (walk->stack->overdrawn)
        krait_damage_say(&walk->damage,
                         "%s: its switches of stacks take more than a program can make; calls are left out",
                         walk->path);
    if (walk->noted && !walk->stack->rc) {
        __atomic_store_n(known, walk->noted, __ATOMIC_RELEASE);
        walk->noted = NULL;
    }
    return walk->stack->rc;
}

static struct walk walk_of(const struct krait_image *image, struct krait_stack *stack)
{
    stack->sampled = image->sampled;
    return (struct walk){
        .stack = stack,
        .image = image,
        .clock = image->clock,
        .next_omit_ns = image->omit_count ? image->omits[0].t_ns : UINT64_MAX,
    };
}

int krait_calls_walk(const struct krait_trace *trace, uint32_t thread, const struct krait_walking *walking)
{
    struct krait_stack *stack = calloc(1, sizeof(*stack));
    if (!stack)
        return -ENOMEM;
    const struct krait_image *image = krait_image_of(trace, thread);
    struct walk walk = walk_of(image, stack);
    walk.damage = walking->damage;
    walk.goes_on = walking->goes_on;
    if (walking->note_places && !walk.goes_on && !krait_recordings_of(trace)->places[thread])
        walk.noted = calloc(1, sizeof(*walk.noted)); /* without memory there are none */
    krait_stack_init(stack, krait_image_clip(image, walking->range), walking->calls, walking->ctx);
    int rc = walk.goes_on ? walk_on(&walk, trace, thread) : walk_stream(&walk, trace, thread);
    krait_places_free(walk.noted);
    krait_stack_done(stack);
    free(stack);
    return rc;
}

bool krait_trace_can_walk_on(const struct krait_trace *trace, uint32_t thread, uint32_t *before)
{
    const struct krait_image *image = krait_image_of(trace, thread);
    if (!image || !trace->impl->goes_on || image->sampled)
        return false;
    const struct krait_places *places = krait_places_of(trace, thread);
    *before = places && places->end ? krait_recordings_of(trace)->files[thread].before : KRAIT_NO_ID;
    return true;
}

void krait_trace_walk_anew(struct krait_trace *trace, uint32_t thread)
{
    struct krait_places *places = krait_recordings_of(trace)->places[thread];
    krait_places_free(places ? places->end : NULL);
    if (places)
        places->end = NULL;
}

static int take_nothing(void *ctx, const struct krait_call_batch *ops)
{
    (void)ctx;
    (void)ops;
    return 0;
}

int krait_calls_stack_at(const struct krait_trace *trace, uint32_t thread, uint64_t at_ns,
                         struct krait_stack *stack)
{
    struct walk walk = walk_of(krait_image_of(trace, thread), stack);
    krait_stack_init(stack, (struct krait_range){ at_ns, at_ns }, take_nothing, NULL);
    return walk_packets(&walk, trace, thread);
}
