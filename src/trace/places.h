/* SPDX-License-Identifier: Apache-2.0
 *
 * Places in a thread's stream where a walk can begin. Each stores what a walk knew between two packets, so that a
 * walk over the middle of a long recording does not have to read what comes before.
 *
 *     packets   |----|----|----|----|----|----|----|----|
 *     places    0              1              2              about every 256 KiB: offset, time, open calls
 *
 * A walk over the whole stream notes the places. They take at most a 64th of the stream's size: where the stack is
 * deep, they are further apart. After the open calls come the stacks of greenlets that wait: for each number from 0
 * on, a frame whose code is the number of frames that follow, and these frames.
 */
#ifndef KRAIT_TRACE_PLACES_H
#define KRAIT_TRACE_PLACES_H

#include "trace/stack.h"

struct krait_place {
    uint64_t t_ns; /* the latest time seen before it */
    size_t offset; /* of the next packet */
    uint32_t next_omit;
    uint32_t open_count;  /* frames of open calls */
    uint32_t left_count;  /* numbers of stacks that were left */
    uint32_t frame_count; /* of all that */
    size_t first_frame;   /* among those of all places */
};

struct krait_places {
    struct krait_place *items; /* in the order of the stream */
    uint32_t count, cap;
    struct krait_stack_frame *frames;
    size_t frame_count, frame_cap;
    /* Of a walk that goes on later: one place, behind the last packet that it read. NULL: none. */
    struct krait_places *end;
    uint64_t end_seq; /* of the packet that follows there; 0: not known */
};

void krait_places_free(struct krait_places *places);

/* What is known in front of the packet at `offset`, unless that is too near to the place before. Without memory
 * it is left out. */
void krait_places_note(struct krait_places *places, const struct krait_stack *stack, size_t offset,
                       uint32_t next_omit);

/* The place behind the last packet of a walk that goes on later, however near it is to the one before. Without memory, and
 * where a stack cannot be noted, there is none. */
void krait_places_note_end(struct krait_places *places, const struct krait_stack *stack, size_t offset,
                           uint32_t next_omit, uint64_t next_seq);

/* A copy without its end; NULL without memory. The caller frees it. */
struct krait_places *krait_places_copy(const struct krait_places *places);

/* The last place before `from_ns`; NULL: there is none. */
const struct krait_place *krait_places_find(const struct krait_places *places, uint64_t from_ns);

/* Gives `stack`, which has just been initialised for a range that begins after the place, what was open there. Returns
 * 0 or -ENOMEM. */
int krait_places_restore(const struct krait_places *places, const struct krait_place *place,
                         struct krait_stack *stack);

struct krait_trace;

/* Those of a thread; NULL: no walk has noted them, or its importer has none. They live as long as the trace. */
const struct krait_places *krait_places_of(const struct krait_trace *trace, uint32_t thread);

/* Gives a thread the places that an earlier run noted; copies. They come from outside: -EBADMSG where they cannot be
 * this thread's, -EINVAL where it takes none; else 0 or -ENOMEM. Not beside walks of the thread. */
int krait_places_give(struct krait_trace *trace, uint32_t thread, const struct krait_places *places);

#endif
