/* SPDX-License-Identifier: Apache-2.0
 *
 * Views of made traces, and programs that do not exist to fill these with.
 */
#ifndef KRAIT_TESTS_MADE_VIEW_H
#define KRAIT_TESTS_MADE_VIEW_H

#include "../view_compare.h"
#include "made_trace.h"
#include "rounds.h"

struct opened {
    struct krait_trace *trace;
    struct krait_view *view;
};

static inline struct opened open_view(const struct made *made, unsigned flags)
{
    const char *path = made->parent;
    const struct krait_view_options options = {
        .paths = &path, .path_count = 1, .flags = flags, .threads = 2, .small = 1
    };
    struct opened opened;
    int rc = krait_trace_open(&opened.trace, &path, 1, KRAIT_NEEDS_CALLS, NULL);
    assert(!rc);
    rc = krait_view_open(&opened.view, opened.trace, &options, NULL);
    assert(!rc);
    return opened;
}

static inline void close_view(struct opened *opened)
{
    krait_view_close(opened->view);
    krait_trace_close(opened->trace);
}

/* How many of many tiles of all tracks differ between an index and a walk. */
static inline uint32_t differences(struct opened *index, struct opened *walk, uint32_t count)
{
    struct view_dice dice = { 7 };
    uint32_t differ = krait_view_length(index->view) != krait_view_length(walk->view);
    for (uint32_t track = 0; track < index->trace->track_count; track++)
        differ += view_compare_track(index->view, walk->view, track, count, &dice);
    return differ;
}

/* ---- programs that do not exist ---- */

struct shape {
    uint32_t step;  /* ns between two events, at most */
    uint32_t pause; /* one of so many events comes after a long pause */
    uint32_t depth; /* about */
    bool generators, losses, greenlets, back;
};

static inline void lose(struct made *made, struct view_dice *dice, uint32_t depth)
{
    made_flush(made);
    made->lost += 10;
    made->t += view_dice(dice) % 100000;
    for (uint32_t i = 0; i < depth; i++) {
        const struct krait_payload_python_frame frame = { .code = 1 + 3 * (view_dice(dice) % 5),
                                                          .depth = (uint16_t)i };
        uint8_t payload[KRAIT_BYTES_python_frame];
        made_put(made, KRAIT_EVENT_python_frame, payload, krait_put_python_frame(payload, &frame));
    }
    const struct krait_payload_python_stack settle = { .depth = (uint16_t)depth };
    uint8_t payload[KRAIT_BYTES_python_stack];
    made_put(made, KRAIT_EVENT_python_stack, payload, krait_put_python_stack(payload, &settle));
}

static inline void change_greenlet(struct made *made, struct view_dice *dice)
{
    const struct krait_payload_python_switch change = { .from = (uint16_t)(1 + view_dice(dice) % 4),
                                                        .to = (uint16_t)(view_dice(dice) % 5) };
    uint8_t payload[KRAIT_BYTES_python_switch];
    made_put(made, KRAIT_EVENT_python_switch, payload, krait_put_python_switch(payload, &change));
}

static inline void rare(struct made *made, struct view_dice *dice, const struct shape *shape)
{
    if (shape->losses && view_dice(dice) % 4 == 0)
        lose(made, dice, view_dice(dice) % 6);
    if (shape->greenlets)
        change_greenlet(made, dice);
    if (shape->back)
        made->t -= KRAIT_MIN(made->t, (uint64_t)(view_dice(dice) % 5000));
    if (shape->generators)
        made_end(made, view_dice(dice) % 2 ? KRAIT_EVENT_python_yield : KRAIT_EVENT_python_unwind);
}

/* What is open is not looked at: ends that have no begin belong to a trace's hardships. */
static inline void run(struct made *made, const struct shape *shape, uint32_t events, uint64_t seed)
{
    struct view_dice dice = { seed };
    uint32_t depth = 0;
    for (uint32_t i = 0; i < ROUNDS(events); i++) {
        made->t += view_dice(&dice) % (shape->step + 1);
        if (shape->pause && view_dice(&dice) % shape->pause == 0)
            made->t += view_dice(&dice) % 3000000;
        if (view_dice(&dice) % 500 == 0)
            rare(made, &dice, shape);
        bool begins = view_dice(&dice) % 100 < (depth < shape->depth ? 60u : 40u);
        uint32_t code = 1 + view_dice(&dice) % (MADE_CODES - 1);
        depth += begins ? 1 : depth ? -1u : 0;
        if (begins)
            made_begin(made,
                       code % 3 == 0                                    ? KRAIT_EVENT_c_call
                       : shape->generators && view_dice(&dice) % 3 == 0 ? KRAIT_EVENT_python_resume
                                                                        : KRAIT_EVENT_python_call,
                       code);
        else
            made_end(made, view_dice(&dice) % 3 ? KRAIT_EVENT_python_return : KRAIT_EVENT_c_return);
    }
}

#endif
