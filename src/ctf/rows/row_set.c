/* SPDX-License-Identifier: Apache-2.0 */
#include "ctf/rows/row_set.h"

#include <string.h>

static bool code_is_wanted(void)
{
    const char *interpret = getenv("KRAIT_READ_INTERPRET");
    return !interpret || !*interpret || strcmp(interpret, "0") == 0;
}

/* Ids to classes, as far as the careful reader has them in a table. */
static int make_engine(struct krait_row_stream *stream, const struct krait_ctf_code *code,
                       enum krait_emit_mode mode)
{
    struct krait_header_form header;
    krait_header_form(&header, stream->cls);
    KRAIT_AUTO_FREE const struct krait_row_class **by_id =
        calloc(KRAIT_MAX(code->by_id_count, 1u), sizeof(*by_id));
    if (!by_id)
        return -ENOMEM;
    for (uint32_t id = 0; id < code->by_id_count; id++) {
        if (code->by_id[id])
            by_id[id] = &stream->classes[code->by_id[id]->index];
    }
    struct krait_engine_plan plan = {
        .header = &header, .by_id = by_id, .id_count = code->by_id_count, .mode = mode
    };
    int rc = krait_engine_new(&stream->engine, &plan);
    return rc == -ENOTSUP ? 0 : rc;
}

static int compile_classes(struct krait_row_set *set, const struct krait_ctf_trace *trace,
                           struct krait_row_stream *stream)
{
    int rc = 0;
    stream->classes = &set->classes[set->class_count];
    for (uint32_t i = 0; i < stream->cls->event_count && !rc; i++) {
        struct krait_row_class *row = &stream->classes[i];
        rc = krait_row_class_new(row, &set->arena, trace, stream->cls->events[i], &set->plan,
                                 set->class_count++);
        set->most_cells = KRAIT_MAX(set->most_cells, (uint32_t)row->cells);
    }
    return rc;
}

/* Code stops before a longer step than 1 << KRAIT_EMIT_STEP_BITS ticks: so many of the longest lead from
 * where it begins to the end of time, while real events are ticks apart that all together are less than one.
 */
#define CODE_STEPS ((uint64_t)16)

static int add_stream(struct krait_row_set *set, const struct krait_ctf_trace *trace,
                      const struct krait_stream_class *cls)
{
    struct krait_row_stream *stream = &set->streams[set->stream_count];
    *stream = (struct krait_row_stream){ .cls = cls };
    stream->in_ns = cls->clock && cls->clock->freq == KRAIT_NS_PER_S;
    stream->base = stream->in_ns ? (uint64_t)krait_ctf_ns(cls->clock, 0) : 0;
    uint64_t last = cls->clock ? cls->clock->last : UINT64_MAX;
    stream->code_until = last - KRAIT_MIN(last, CODE_STEPS << KRAIT_EMIT_STEP_BITS);
    int rc = krait_map_put(&set->by_class, (uintptr_t)cls, set->stream_count++);
    if (!rc)
        rc = compile_classes(set, trace, stream);
    if (!rc && code_is_wanted())
        rc = make_engine(stream, &trace->code[cls->index], set->mode);
    return rc;
}

static int compile_all(struct krait_row_set *set)
{
    const struct krait_ctf_reader *reader = set->reader;
    size_t classes = 0, streams = 0;
    for (uint32_t t = 0; t < reader->trace_count; t++) {
        const struct krait_ctf_metadata *md = reader->traces[t]->metadata;
        streams += md->stream_count;
        for (uint32_t s = 0; s < md->stream_count; s++)
            classes += md->streams[s]->event_count;
    }
    set->classes = krait_arena_alloc(&set->arena, KRAIT_MAX(classes, (size_t)1) * sizeof(*set->classes));
    set->streams = krait_arena_alloc(&set->arena, KRAIT_MAX(streams, (size_t)1) * sizeof(*set->streams));
    int rc = set->classes && set->streams ? krait_ctf_compile(set->reader) : -ENOMEM;
    for (uint32_t t = 0; t < reader->trace_count; t++) {
        const struct krait_ctf_trace *trace = reader->traces[t];
        for (uint32_t s = 0; s < trace->metadata->stream_count && !rc; s++)
            rc = add_stream(set, trace, trace->metadata->streams[s]);
    }
    return rc;
}

int krait_row_set_new(struct krait_row_set **out, struct krait_ctf_reader *reader, enum krait_emit_mode mode,
                      const struct krait_map *wanted)
{
    static const struct krait_map none;
    struct krait_row_set *set = calloc(1, sizeof(*set));
    if (!set)
        return -ENOMEM;
    set->reader = reader;
    set->mode = mode;
    set->plan.wanted = mode == KRAIT_EMIT_COUNT ? &none : wanted;
    set->plan.head = mode == KRAIT_EMIT_ROWS_CYCLES ? KRAIT_ROW_CYCLES + 1 : KRAIT_ROW_HEAD;
    set->most_cells = set->plan.head;
    int rc = compile_all(set);
    set->plan.wanted = NULL;
    if (rc)
        krait_row_set_free(set);
    else
        *out = set;
    return rc;
}

void krait_row_set_free(struct krait_row_set *set)
{
    if (!set)
        return;
    for (uint32_t i = 0; i < set->stream_count; i++)
        krait_engine_free(set->streams[i].engine);
    krait_map_done(&set->by_class);
    krait_arena_done(&set->arena);
    free(set);
}

const struct krait_row_stream *krait_row_stream_of(const struct krait_row_set *set,
                                                   const struct krait_stream_class *cls)
{
    const uint64_t *index = krait_map_get(&set->by_class, (uintptr_t)cls);
    return index ? &set->streams[*index] : NULL;
}
