/* SPDX-License-Identifier: Apache-2.0
 *
 * The code is followed along all its ways, with the depth of the stack, until nothing changes: frame_setlineno() in
 * Objects/frameobject.c does the same (mark_stacks). Ways that meet with different depths make the place uncertain.
 *
 * In 3.8 they meet in `finally`, whose body is there once and is reached with one value on the stack or with six. As the compiler
 * does (stack_effect() in Python/compile.c), the greater depth is taken, and it is not certain until these values are gone:
 * `limit`.
 */
#include "python/compat/calls.h"

#include "base/array.h"
#include "python/compat/exceptions.h"
#include "python/compat/versions.h"

#include <string.h>

enum flow {
    ON,
    EXTENDS, /* the argument of the next one */
    ENDS,
    JUMPS_AHEAD, /* or goes on */
    JUMPS_BACK,
    JUMPS_TO,
    GOES_AHEAD,
    GOES_BACK,
    GOES_TO,
    FINALLY, /* 3.8: enters the body of a finally with one value, and counts as six */
};

enum {
    TAKES_BY_EFFECT = 5,
    TAKES_ARGUMENT = 6,
    TAKES_ANY = 7,
    BITS = 4,
    SLOPE_UNPACK_EX = 100,
    SHARES_FINALLY = 8, /* a minor version */
    SOURCE_KIND = 15,   /* bits of a source; the others say how far to shift the argument */
    SOURCE_SHIFT = 4,
};

/* Rows of opcodes.def. */
struct effect {
    uint8_t caches, flow;
    int8_t base, slope;
    int8_t bits[BITS]; /* more, for each bit of the argument */
    int8_t jump;       /* more, if it jumps */
    uint8_t takes, call, source;
};

static const struct effect effects[] = {
    { 0 }, /* not known */
#define KRAIT_OPCODE_EFFECT(caches, flow, base, slope, b0, b1, b2, b3, jump, takes, call, source) \
    { caches, flow, base, slope, { b0, b1, b2, b3 }, jump, takes, call, source },
#include "python/compat/opcodes.def"
#undef KRAIT_OPCODE_EFFECT
};

static const uint8_t opcodes[KRAIT_PYTHON_MINOR_MAX + 1][256] = {
#define KRAIT_OPCODES(minor, ...) [minor] = { __VA_ARGS__ },
#include "python/compat/opcodes.def"
#undef KRAIT_OPCODES
};

enum { UNIT = 2, CODE_MAX = 1 << 20, PASSES_MAX = 64, SCAN_MAX = 4096, CERTAIN = INT32_MAX };

struct instruction {
    const struct effect *effect;
    uint32_t unit, next; /* where it and the next one begin, in units */
    uint32_t arg;
    int32_t depth;                  /* before it; -1: not reached */
    int32_t limit;                  /* as deep as this, its depth is not certain */
    uint32_t first_from, last_from; /* which instructions jump to it: UINT32_MAX and 0 if none */
};

struct analysis {
    unsigned minor;
    struct instruction *items;
    uint32_t count;
    uint32_t *at; /* a unit's instruction; `count`: none begins there */
    uint32_t units;
    bool changed;
};

static int32_t effect_of(const struct instruction *in)
{
    const struct effect *e = in->effect;
    int32_t arg = (int32_t)KRAIT_MIN(in->arg, (uint32_t)CODE_MAX), n = e->base;
    if (e->slope == SLOPE_UNPACK_EX)
        return n + (arg & 255) + (arg >> 8);
    n += e->slope * arg;
    for (int bit = 0; bit < BITS; bit++)
        n += arg >> bit & 1 ? e->bits[bit] : 0;
    return n;
}

/* How many values it takes; INT32_MAX: not known. */
static int32_t takes_of(const struct instruction *in)
{
    switch (in->effect->takes) {
    case TAKES_BY_EFFECT:
        return 1 - effect_of(in);
    case TAKES_ARGUMENT:
        return (int32_t)KRAIT_MIN(in->arg, (uint32_t)CODE_MAX);
    case TAKES_ANY:
        return INT32_MAX;
    default:
        return in->effect->takes;
    }
}

/* Where it jumps to: an instruction; `count`: to none. */
static uint32_t target_of(const struct analysis *a, const struct instruction *in)
{
    bool bytes = a->minor < 10;
    uint64_t unit;
    if (bytes && in->arg % UNIT)
        return a->count;
    uint64_t distance = bytes ? in->arg / UNIT : in->arg;
    switch (in->effect->flow) {
    case JUMPS_AHEAD:
    case GOES_AHEAD:
        unit = in->next + distance;
        break;
    case JUMPS_BACK:
    case GOES_BACK:
        unit = in->next - distance;
        break;
    case JUMPS_TO:
    case GOES_TO:
        unit = distance;
        break;
    default:
        return a->count;
    }
    return unit < a->units ? a->at[unit] : a->count;
}

/* -- the depth -- */

static void reach(struct analysis *a, uint32_t i, int32_t depth, int32_t limit)
{
    if (i >= a->count || depth < 0)
        return;
    struct instruction *in = &a->items[i];
    bool differs = in->depth >= 0 && in->depth != depth;
    int32_t most = KRAIT_MAX(in->depth, depth), least = KRAIT_MIN(in->depth < 0 ? CERTAIN : in->limit, limit);
    if (differs)
        least = KRAIT_MIN(least, a->minor == SHARES_FINALLY ? most : 0);
    a->changed |= most != in->depth || least != in->limit;
    in->depth = most;
    in->limit = least;
}

static void follow(struct analysis *a, uint32_t i)
{
    const struct instruction *in = &a->items[i];
    enum flow flow = in->effect->flow;
    int32_t depth = in->depth + effect_of(in);
    int32_t limit = flow == FINALLY ? KRAIT_MIN(in->limit, depth) : in->limit;
    bool goes_on = flow != ENDS && flow != GOES_AHEAD && flow != GOES_BACK && flow != GOES_TO;
    if (goes_on)
        reach(a, i + 1, depth, depth < limit && limit ? CERTAIN : limit);
    int32_t there = depth + in->effect->jump;
    reach(a, target_of(a, in), there, there < limit && limit ? CERTAIN : limit);
}

static void reach_handler(void *ctx, uint32_t unit, uint32_t depth)
{
    struct analysis *a = ctx;
    if (unit < a->units)
        reach(a, a->at[unit], (int32_t)KRAIT_MIN(depth, (uint32_t)CODE_MAX), CERTAIN);
}

/* -- from where a value is -- */

/* The slot's value as the instruction has put it there. */
static void take_source(struct krait_call *call, int which, const struct instruction *in, uint32_t slot)
{
    enum krait_call_source source = in->effect->source & SOURCE_KIND;
    uint32_t index = in->arg >> (in->effect->source >> SOURCE_SHIFT);
    bool first = (int32_t)slot == in->depth;
    switch (source) {
    case KRAIT_SOURCE_LOCAL_PAIR:
        index = first ? in->arg >> 4 : in->arg & 15;
        source = KRAIT_SOURCE_LOCAL;
        break;
    case KRAIT_SOURCE_STORE_LOCAL:
        index = in->arg & 15;
        source = KRAIT_SOURCE_LOCAL;
        break;
    case KRAIT_SOURCE_STORE:
        source = KRAIT_SOURCE_NONE;
        break;
    default:
        break;
    }
    if (index > UINT16_MAX)
        source = KRAIT_SOURCE_NONE;
    call->of[which].source = (uint8_t)source;
    call->of[which].index = (uint16_t)index;
}

/* Looks for the instruction that has put a value there: the last one before the call that writes the slot. No way may lead past it
 * into what is between. */
static void find_source(const struct analysis *a, uint32_t i, struct krait_call *call, int which)
{
    uint32_t slot = call->slot + (uint32_t)which, from = i, to = i, scanned = 0;
    bool stores = false;
    for (uint32_t k = i; k > 0 && scanned < SCAN_MAX; scanned++) {
        from = KRAIT_MIN(from, a->items[k].first_from);
        to = KRAIT_MAX(to, a->items[k].last_from);
        const struct instruction *in = &a->items[--k];
        enum krait_call_source source = in->effect->source & SOURCE_KIND;
        if (in->depth < 0 ||
            in->effect->flow == ENDS) /* another way leads around it, which has been looked at */
            continue;
        if ((int64_t)in->depth - takes_of(in) > (int64_t)slot) {
            stores |= source == KRAIT_SOURCE_STORE || source == KRAIT_SOURCE_STORE_LOCAL;
            continue;
        }
        if (from < k || to > i || in->effect == effects)
            return;
        take_source(call, which, in, slot);
        if (stores &&
            (call->of[which].source == KRAIT_SOURCE_LOCAL || call->of[which].source == KRAIT_SOURCE_CELL))
            call->of[which].source = KRAIT_SOURCE_NONE;
        return;
    }
}

static bool make_call(const struct analysis *a, uint32_t i, struct krait_call *call)
{
    const struct instruction *in = &a->items[i];
    enum krait_call_shape shape = in->effect->call;
    int32_t taken =
        shape == KRAIT_CALL_PRECALL ? (int32_t)KRAIT_MIN(in->arg, (uint32_t)CODE_MAX) + 2 : 1 - effect_of(in);
    if (!shape || in->depth < taken || in->depth >= in->limit || taken < 1)
        return false;
    *call = (struct krait_call){ .offset = in->unit * UNIT,
                                 .slot = (uint32_t)(in->depth - taken),
                                 .depth = (uint32_t)in->depth,
                                 .shape = (uint8_t)(shape == KRAIT_CALL_PRECALL ? KRAIT_CALL_METHOD_FIRST
                                                                                : shape) };
    find_source(a, i, call, 0);
    if (shape != KRAIT_CALL_PLAIN)
        find_source(a, i, call, 1);
    return true;
}

/* -- the whole -- */

static int decode(struct analysis *a, const uint8_t *code)
{
    const uint8_t *numbers = opcodes[a->minor];
    uint32_t arg = 0;
    for (uint32_t unit = 0; unit < a->units;) {
        const struct effect *effect = &effects[numbers[code[unit * UNIT]]];
        arg = arg << 8 | code[unit * UNIT + 1];
        if (effect == effects) /* its argument may not be its own */
            return -ENOTSUP;
        a->at[unit] = a->count;
        uint32_t next = unit + 1 + effect->caches;
        a->items[a->count++] = (struct instruction){ effect, unit, next, arg, -1, CERTAIN, UINT32_MAX, 0 };
        arg = effect->flow == EXTENDS ? arg : 0;
        unit = next;
    }
    for (uint32_t unit = 0; unit < a->units; unit++)
        a->at[unit] = a->at[unit] == UINT32_MAX ? a->count : a->at[unit];
    return 0;
}

static void note_jumps(struct analysis *a)
{
    for (uint32_t i = 0; i < a->count; i++) {
        uint32_t to = target_of(a, &a->items[i]);
        if (to >= a->count)
            continue;
        a->items[to].first_from = KRAIT_MIN(a->items[to].first_from, i);
        a->items[to].last_from = KRAIT_MAX(a->items[to].last_from, i);
    }
}

/* False: it does not come to an end, or is no code. */
static bool find_depths(struct analysis *a, const uint8_t *exceptions, size_t size)
{
    if (!a->count)
        return false;
    reach(a, 0, 0, CERTAIN);
    krait_exception_handlers(exceptions, size, reach_handler, a);
    for (int pass = 0; pass < PASSES_MAX; pass++) {
        a->changed = false;
        for (uint32_t i = 0; i < a->count; i++) {
            if (a->items[i].depth >= 0)
                follow(a, i);
        }
        if (!a->changed)
            return true;
    }
    return false;
}

static int keep_calls(const struct analysis *a, struct krait_calls *calls, struct krait_arena *arena)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < a->count; i++)
        most += a->items[i].effect->call != KRAIT_CALL_NONE;
    calls->items = most ? krait_arena_alloc(arena, most * sizeof(*calls->items)) : NULL;
    if (most && !calls->items)
        return -ENOMEM;
    for (uint32_t i = 0; i < a->count; i++)
        calls->count += make_call(a, i, &calls->items[calls->count]);
    return 0;
}

int krait_calls_make(struct krait_calls *calls, struct krait_arena *arena,
                     const struct krait_layout_of *version, const uint8_t *code, size_t size,
                     const uint8_t *exceptions, size_t exceptions_size)
{
    unsigned minor = version->number & 255;
    *calls = (struct krait_calls){ 0 };
    if (minor > KRAIT_PYTHON_MINOR_MAX || size > CODE_MAX)
        return 0;
    uint32_t units = (uint32_t)(size / UNIT);
    KRAIT_AUTO_FREE struct instruction *items = calloc(units + 1, sizeof(*items));
    KRAIT_AUTO_FREE uint32_t *at = malloc((units + 1) * sizeof(*at));
    if (!items || !at)
        return -ENOMEM;
    memset(at, 255, (units + 1) * sizeof(*at));
    struct analysis a = { .minor = minor, .items = items, .at = at, .units = units };
    if (decode(&a, code))
        return 0;
    note_jumps(&a);
    return find_depths(&a, exceptions, exceptions_size) ? keep_calls(&a, calls, arena) : 0;
}

const struct krait_call *krait_calls_find(const struct krait_calls *calls, int64_t offset)
{
    if (offset < 0)
        return NULL;
    uint32_t i = (uint32_t)KRAIT_PARTITION_POINT(k, calls->count, calls->items[k].offset < offset);
    return i < calls->count && calls->items[i].offset == offset ? &calls->items[i] : NULL;
}
