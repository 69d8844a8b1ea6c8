/* SPDX-License-Identifier: Apache-2.0
 *
 * From 3.11 on a generator contains its frame; before, the two point to each other, and the frame to no generator once it has
 * ended. A generator that is freed leaves its place to other objects: only one of its type, in the same function, counts.
 */
#include "remote/generator.h"

#include "remote/memory.h"
#include "remote/object.h"

#include <string.h>

static bool read_number(const struct krait_remote *remote, uint64_t addr, void *to, size_t size)
{
    return !krait_memory_read(remote->pid, addr, to, size);
}

/* The generator that a frame belongs to, if any. */
static bool find_generator(const struct krait_remote *remote, uint64_t frame, uint64_t *generator)
{
    const uint32_t *at = remote->layout.at;
    uint64_t back = 0;
    *generator = frame - at[KRAIT_AT_GENERATOR_FRAME];
    if (at[KRAIT_AT_FRAME_GENERATOR] == KRAIT_NOWHERE)
        return true;
    return read_number(remote, frame + at[KRAIT_AT_FRAME_GENERATOR], generator, sizeof(*generator)) &&
           *generator &&
           read_number(remote, *generator + at[KRAIT_AT_GENERATOR_FRAME], &back, sizeof(back)) &&
           back == frame;
}

static bool is_generator(const struct krait_remote *remote, uint64_t object)
{
    static const char *const types[] = { "generator", "coroutine", "async_generator" };
    char type[KRAIT_TYPE_NAME_MAX];
    bool found = false;
    if (!krait_object_type(remote, object, type))
        return false;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(types); i++)
        found |= strcmp(type, types[i]) == 0;
    return found;
}

bool krait_generator_is_suspended(const struct krait_remote *remote, uint64_t frame, uint64_t code)
{
    const struct krait_layout_of *version = remote->layout.version;
    const uint32_t *at = remote->layout.at;
    uint64_t generator, its_code = 0;
    int8_t state = 0;
    if (!find_generator(remote, frame, &generator) || !is_generator(remote, generator))
        return false;
    bool is_in_frame = at[KRAIT_AT_FRAME_STATE] != KRAIT_NOWHERE;
    uint64_t place =
        is_in_frame ? frame + at[KRAIT_AT_FRAME_STATE] : generator + at[KRAIT_AT_GENERATOR_STATE];
    return read_number(remote, frame + at[KRAIT_AT_FRAME_CODE], &its_code, sizeof(its_code)) &&
           (its_code & ~KRAIT_REFERENCE_TAGS) == code && read_number(remote, place, &state, sizeof(state)) &&
           state < version->states.runs && state != version->states.created;
}
