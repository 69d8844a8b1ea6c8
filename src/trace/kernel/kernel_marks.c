/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/kernel/kernel_marks.h"

#include "base/array.h"
#include "ctf/read/packets.h"
#include "ctf/read/value.h"
#include "trace/losses.h"

#include <string.h>

enum { NOT_SAID = -1 };

struct finder {
    struct krait_kernel_marks *marks;
    struct krait_ctf_reader *reader;
    struct krait_arena *arena; /* of locators */
    struct krait_ctf_cursor cursor;
};

static int add(struct krait_kernel_marks *marks, struct krait_kernel_mark mark)
{
    if (!KRAIT_GROW(marks->items, marks->cap, marks->count + 1))
        return -ENOMEM;
    marks->items[marks->count++] = mark;
    return 0;
}

/* -- values of the cursor's event -- */

static int64_t value_of(struct finder *f, enum krait_field_scope scope, const char *path)
{
    const struct krait_locator *locator;
    struct krait_value value;
    struct krait_err ignored;
    if (krait_locator_new(&locator, f->arena, f->cursor.trace, f->cursor.event, scope, path, &ignored) ||
        krait_locator_value(locator, &f->cursor, &value) || !krait_fc_is_int(value.node->fc))
        return NOT_SAID;
    return (int64_t)krait_value_int(&value);
}

/* Who runs where the event happened, as its context says, or a switch's own field; NOT_SAID. */
static int64_t who_runs(struct finder *f)
{
    static const enum krait_field_scope contexts[] = { KRAIT_FIELD_COMMON_CONTEXT,
                                                       KRAIT_FIELD_EVENT_CONTEXT };
    int64_t tid = NOT_SAID;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(contexts) && tid < 0; i++)
        tid = value_of(f, contexts[i], "tid");
    if (tid < 0)
        tid = value_of(f, KRAIT_FIELD_PAYLOAD, "perf_tid");
    if (tid < 0 && strcmp(f->cursor.event->name, "sched_switch") == 0)
        tid = value_of(f, KRAIT_FIELD_PAYLOAD, "prev_tid");
    return tid;
}

/* The CPU that an event itself tells; NOT_SAID. */
static int64_t cpu_in(struct finder *f)
{
    int64_t cpu = value_of(f, KRAIT_FIELD_PAYLOAD, "cpu_id");
    return cpu < 0 ? value_of(f, KRAIT_FIELD_PAYLOAD, "perf_cpu") : cpu;
}

static bool next_event(struct finder *f)
{
    return krait_ctf_next(&f->cursor) == 1 && krait_ctf_event_skip(&f->cursor) == 0;
}

/* -- who runs at a stream's beginning -- */

/* From when on a CPU's events are there: from before the trace, where its first packet is the first ever and
 * misses none; else from that packet on. */
static int64_t since(const struct krait_ctf_stream *stream, int64_t first_ns)
{
    const struct krait_ctf_packet *first = &stream->packets[0];
    const uint32_t numbered = 1u << KRAIT_MEANING_SEQ;
    struct krait_ctf_counters counters = krait_ctf_counters_of(stream, 0);
    if (first->said & numbered && !counters.seq && !counters.discarded)
        return INT64_MIN;
    bool begins = first->said & 1u << KRAIT_MEANING_BEGIN && stream->cls->clock;
    return begins ? KRAIT_MIN(krait_ctf_ns(stream->cls->clock, first->begin), first_ns) : first_ns;
}

static bool is_earlier(const struct krait_kernel_mark *a, const struct krait_kernel_mark *b)
{
    return a->ns != b->ns ? a->ns < b->ns : a->told_ns < b->told_ns;
}

/* One for each CPU, though it may have several streams: from the one that says it first. */
static int add_start(struct finder *f, struct krait_kernel_mark mark)
{
    for (uint32_t i = 0; i < f->marks->count; i++) {
        struct krait_kernel_mark *other = &f->marks->items[i];
        if (other->lost || other->cpu != mark.cpu)
            continue;
        if (is_earlier(&mark, other))
            *other = mark;
        return 0;
    }
    return add(f->marks, mark);
}

/* Of a stream whose packets say their CPU one, else those that its events tell of. */
static int find_starts(struct finder *f, const struct krait_ctf_stream *stream, int64_t cpu)
{
    enum { FEW = 4096 }; /* a CPU that says nothing in so many events is left alone */
    int64_t begin_ns = since(stream, f->cursor.ns);
    bool is_of_one = cpu >= 0, found = false;
    int rc = 0;
    for (int i = 0; i < FEW && !rc && !(is_of_one && found); i++) {
        int64_t of = is_of_one ? cpu : cpu_in(f), tid = of < 0 ? NOT_SAID : who_runs(f);
        found = tid >= 0 && of < UINT32_MAX;
        if (found)
            rc = add_start(f, (struct krait_kernel_mark){
                                  .ns = begin_ns, .told_ns = f->cursor.ns, .cpu = (uint32_t)of, .tid = tid });
        if (!next_event(f))
            break;
    }
    return rc;
}

/* -- losses -- */

/* Of a stream of several CPUs it is not known whose they are. */
static int add_loss(struct finder *f, int64_t ns, int64_t cpu)
{
    uint32_t count = f->marks->count;
    int rc = 0;
    if (cpu >= 0)
        return add(f->marks, (struct krait_kernel_mark){ .ns = ns, .cpu = (uint32_t)cpu, .lost = true });
    for (uint32_t i = 0; i < count && !rc; i++) {
        if (!f->marks->items[i].lost)
            rc = add_loss(f, ns, f->marks->items[i].cpu);
    }
    return rc;
}

static int find_losses(struct finder *f, const struct krait_ctf_stream *stream, int64_t cpu)
{
    int rc = 0;
    for (uint32_t i = 0; i < stream->packet_count && !rc; i++) {
        int64_t ns = krait_losses_behind(f->reader, stream, i);
        if (ns != INT64_MIN)
            rc = add_loss(f, ns, cpu);
    }
    return rc;
}

/* -- */

static int by_time(const void *a, const void *b)
{
    const struct krait_kernel_mark *x = a, *y = b;
    if (x->ns != y->ns)
        return x->ns < y->ns ? -1 : 1;
    return (x->cpu > y->cpu) - (x->cpu < y->cpu);
}

static int find_of(struct finder *f, const struct krait_ctf_stream *stream)
{
    if (krait_ctf_cursor_init(&f->cursor, f->reader, stream))
        return -ENOMEM;
    int rc = 0;
    if (next_event(f)) {
        int64_t cpu = value_of(f, KRAIT_FIELD_PACKET_CONTEXT, "cpu_id");
        rc = find_starts(f, stream, cpu);
        rc = rc ? rc : find_losses(f, stream, cpu);
    }
    krait_ctf_cursor_done(&f->cursor);
    return rc;
}

int krait_kernel_marks_find(struct krait_kernel_marks *marks, struct krait_ctf_reader *reader,
                            struct krait_arena *arena)
{
    struct finder f = { .marks = marks, .reader = reader, .arena = arena };
    int rc = 0;
    for (uint32_t i = 0; i < reader->stream_count && !rc; i++)
        rc = find_of(&f, reader->streams[i]);
    if (marks->count)
        qsort(marks->items, marks->count, sizeof(*marks->items), by_time);
    return rc;
}

void krait_kernel_marks_done(struct krait_kernel_marks *marks)
{
    free(marks->items);
    *marks = (struct krait_kernel_marks){ 0 };
}
