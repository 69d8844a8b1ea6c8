/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/places.h"

#include "base/array.h"
#include "trace/import.h"

#include <string.h>

enum { APART = 256 << 10, SHARE = 64 }; /* bytes of the stream; of which the frames may be this part */

void krait_places_free(struct krait_places *places)
{
    if (!places)
        return;
    krait_places_free(places->end);
    free(places->items);
    free(places->frames);
    free(places);
}

/* Up to the last number that has frames. */
static uint32_t numbers_of(const struct krait_stack *stack)
{
    uint32_t count = stack->left_cap;
    while (count && !stack->left[count - 1].len)
        count--;
    return count;
}

static size_t frames_of(const struct krait_stack *stack, uint32_t numbers)
{
    size_t count = stack->len;
    for (uint32_t i = 0; i < numbers; i++)
        count += 1 + stack->left[i].len;
    return count;
}

static struct krait_stack_frame *put_frames(struct krait_stack_frame *to,
                                            const struct krait_stack_frame *frames, uint32_t count)
{
    if (count)
        memcpy(to, frames, count * sizeof(*to));
    return to + count;
}

/* `count` is what frames_of returns for `numbers`. Without memory there is no place. */
static void add_place(struct krait_places *places, const struct krait_stack *stack, size_t offset,
                      uint32_t next_omit, uint32_t numbers, size_t count)
{
    if (!KRAIT_GROW(places->items, places->cap, places->count + 1) ||
        !KRAIT_GROW(places->frames, places->frame_cap, places->frame_count + count))
        return;
    places->items[places->count++] = (struct krait_place){
        .t_ns = stack->last_ns,
        .offset = offset,
        .next_omit = next_omit,
        .open_count = stack->len,
        .left_count = numbers,
        .frame_count = (uint32_t)count,
        .first_frame = places->frame_count,
    };
    struct krait_stack_frame *to =
        put_frames(places->frames + places->frame_count, stack->frames, stack->len);
    for (uint32_t i = 0; i < numbers; i++) {
        *to++ = (struct krait_stack_frame){ .code = stack->left[i].len };
        to = put_frames(to, stack->left[i].frames, stack->left[i].len);
    }
    places->frame_count += count;
}

static bool can_note(const struct krait_stack *stack)
{
    return !stack->over && !stack->in_run;
}

void krait_places_note(struct krait_places *places, const struct krait_stack *stack, size_t offset,
                       uint32_t next_omit)
{
    size_t last = places->count ? places->items[places->count - 1].offset : 0;
    if (offset < last + APART || !can_note(stack))
        return;
    uint32_t numbers = numbers_of(stack);
    size_t count = frames_of(stack, numbers);
    if (count * sizeof(*stack->frames) <= (offset - last) / SHARE)
        add_place(places, stack, offset, next_omit, numbers, count);
}

void krait_places_note_end(struct krait_places *places, const struct krait_stack *stack, size_t offset,
                           uint32_t next_omit, uint64_t next_seq)
{
    uint32_t numbers = numbers_of(stack);
    krait_places_free(places->end);
    places->end = can_note(stack) ? calloc(1, sizeof(*places->end)) : NULL;
    if (!places->end)
        return;
    add_place(places->end, stack, offset, next_omit, numbers, frames_of(stack, numbers));
    places->end_seq = next_seq;
    if (!places->end->count) {
        krait_places_free(places->end);
        places->end = NULL;
    }
}

struct krait_places *krait_places_copy(const struct krait_places *places)
{
    struct krait_places *own = calloc(1, sizeof(*own));
    if (!own || !KRAIT_GROW(own->items, own->cap, places->count) ||
        !KRAIT_GROW(own->frames, own->frame_cap, places->frame_count)) {
        krait_places_free(own);
        return NULL;
    }
    own->count = places->count;
    own->frame_count = places->frame_count;
    if (own->count)
        memcpy(own->items, places->items, own->count * sizeof(*own->items));
    if (own->frame_count)
        memcpy(own->frames, places->frames, own->frame_count * sizeof(*own->frames));
    return own;
}

const struct krait_place *krait_places_find(const struct krait_places *places, uint64_t from_ns)
{
    /* times never go back in a stream */
    uint32_t low = (uint32_t)KRAIT_PARTITION_POINT(i, places->count, places->items[i].t_ns < from_ns);
    return low ? &places->items[low - 1] : NULL;
}

int krait_places_restore(const struct krait_places *places, const struct krait_place *place,
                         struct krait_stack *stack)
{
    const struct krait_stack_frame *frames = places->frames + place->first_frame;
    while (stack->cap < place->open_count) {
        if (krait_stack_grow(stack))
            return -ENOMEM;
    }
    stack->py_len = 0;
    for (uint32_t i = 0; i < place->open_count; i++) {
        stack->frames[i] = frames[i];
        if (stack->frames[i].lang == KRAIT_STACK_PYTHON)
            stack->py[stack->py_len++] = i;
    }
    stack->len = place->open_count;
    stack->last_ns = place->t_ns;
    for (uint32_t i = 0; i < place->frame_count; i++)
        stack->calls_left = KRAIT_MAX(stack->calls_left, (uint32_t)frames[i].left);
    frames += place->open_count;
    for (uint32_t i = 0; i < place->left_count; i++) {
        uint32_t len = frames->code;
        krait_stack_leave(stack, i, ++frames, len);
        frames += len;
    }
    return stack->rc;
}

const struct krait_places *krait_places_of(const struct krait_trace *trace, uint32_t thread)
{
    if (!krait_image_of(trace, thread))
        return NULL;
    return __atomic_load_n(&krait_recordings_of(trace)->places[thread], __ATOMIC_ACQUIRE);
}

/* That the frames of the stacks that were left are as many as they say. */
static bool are_whole(const struct krait_places *places, const struct krait_place *place)
{
    size_t at = place->open_count;
    for (uint32_t i = 0; i < place->left_count; i++) {
        if (at >= place->frame_count)
            return false;
        at += 1 + (size_t)places->frames[place->first_frame + at].code;
    }
    return at == place->frame_count && place->left_count <= UINT16_MAX + 1u;
}

static bool can_be(const struct krait_trace *trace, uint32_t thread, const struct krait_places *places)
{
    const struct krait_image *image = krait_image_of(trace, thread);
    const struct krait_place before = { 0 }, *last = &before;
    for (uint32_t i = 0; i < places->count; i++) {
        const struct krait_place *place = &places->items[i];
        if (place->t_ns < last->t_ns || place->offset < last->offset ||
            place->offset > trace->threads[thread].bytes || place->next_omit > image->omit_count ||
            place->first_frame > places->frame_count ||
            place->frame_count > places->frame_count - place->first_frame ||
            place->open_count > KRAIT_STACK_DEPTH_MAX || !are_whole(places, place))
            return false;
        last = place;
    }
    for (size_t i = 0; i < places->frame_count; i++) {
        if (places->frames[i].func >= trace->func_count ||
            places->frames[i].left > trace->threads[thread].bytes)
            return false;
    }
    return true;
}

int krait_places_give(struct krait_trace *trace, uint32_t thread, const struct krait_places *places)
{
    if (!krait_image_of(trace, thread) || krait_places_of(trace, thread))
        return -EINVAL;
    if (!can_be(trace, thread, places))
        return -EBADMSG;
    struct krait_places *own = krait_places_copy(places);
    if (!own)
        return -ENOMEM;
    __atomic_store_n(&krait_recordings_of(trace)->places[thread], own, __ATOMIC_RELEASE);
    return 0;
}
