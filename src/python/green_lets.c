/* SPDX-License-Identifier: Apache-2.0 */
#include "python/green_lets.h"

#include "python/tasks.h"

#include <stdlib.h>

struct krait_green_let *krait_green_lets_find(const struct krait_green_lets *lets, uint32_t id)
{
    const uint64_t *let = krait_map_get(&lets->by_id, id);
    return let ? (struct krait_green_let *)(uintptr_t)*let : NULL;
}

struct krait_green_let *krait_green_lets_add(struct krait_green_lets *lets, uint32_t id)
{
    struct krait_green_let *let = krait_green_lets_find(lets, id);
    if (let)
        return let;
    let = calloc(1, sizeof(*let));
    krait_map_trim(&lets->by_id, &lets->most);
    if (!let || krait_map_put(&lets->by_id, id, (uintptr_t)let)) {
        free(let);
        return NULL;
    }
    let->id = id;
    let->parent = KRAIT_NO_ID;
    return let;
}

void krait_green_lets_done(struct krait_green_lets *lets)
{
    for (size_t i = 0; i < lets->by_id.cap; i++) {
        if (lets->by_id.slots[i].used)
            free((void *)(uintptr_t)lets->by_id.slots[i].value);
    }
    krait_map_done(&lets->by_id);
    *lets = (struct krait_green_lets){ 0 };
}

bool krait_green_lets_is_named(const struct krait_green_lets *lets, uint32_t id)
{
    const struct krait_green_let *let = krait_green_lets_find(lets, id);
    const struct krait_green_let *by =
        let && let->named_by ? krait_green_lets_find(lets, let->named_by) : NULL;
    return by && by->frame && by->waits == let->named_at;
}

/* ---- sets ---- */

/* A set's key tells whose it is. It is odd, as no address of a future or a nursery is, and above all that
 * krait_awaited_task() makes of ids. */
static uint64_t key_of(const struct krait_green_let *owner)
{
    return ((uint64_t)owner->id << 32 | owner->sets) << 1 | 1;
}

static void leave_set(const struct krait_green_lets *lets, struct krait_green_let *let)
{
    struct krait_green_let *owner = let->set ? krait_green_lets_find(lets, (uint32_t)(let->set >> 33)) : NULL;
    if (owner && owner->own == let->set)
        owner->members--;
    let->set = 0;
}

/* Whether all that are in the set now are among these. Those that are there twice become 0. */
static bool is_same_set(const struct krait_green_lets *lets, const struct krait_green_let *owner,
                        uint32_t *ids, size_t count)
{
    uint32_t found = 0;
    for (size_t i = 0; i < count; i++) {
        struct krait_green_let *let = ids[i] ? krait_green_lets_find(lets, ids[i]) : NULL;
        if (let && let->seen != lets->numbered)
            found += owner->own && let->set == owner->own;
        if (!let || let->seen == lets->numbered)
            ids[i] = 0;
        else
            let->seen = lets->numbered;
    }
    return owner->own && found == owner->members;
}

static void begin_set(struct krait_green_let *owner)
{
    owner->sets++;
    owner->own = key_of(owner);
    owner->members = 0;
}

void krait_green_lets_await(struct krait_interp *in, struct krait_green_lets *lets,
                            struct krait_green_let *let, uint32_t *ids, size_t count)
{
    lets->numbered++;
    if (!is_same_set(lets, let, ids, count))
        begin_set(let);
    for (size_t i = 0; i < count; i++) {
        struct krait_green_let *member = ids[i] ? krait_green_lets_find(lets, ids[i]) : NULL;
        if (!member || member->set == let->own)
            continue;
        leave_set(lets, member);
        member->set = let->own;
        let->members++;
        krait_tasks_write_member(in, member->id, let->own);
    }
    let->has_several = true;
}

/* ---- the end of a wait, or of a greenlet ---- */

void krait_green_let_forget(struct krait_green_let *let)
{
    let->frame = NULL;
    let->on = 0;
    let->has_several = false;
    let->waits++;
}

void krait_green_lets_forget(struct krait_green_lets *lets)
{
    for (size_t i = 0; i < lets->by_id.cap; i++) {
        if (lets->by_id.slots[i].used && lets->by_id.slots[i].value)
            krait_green_let_forget((struct krait_green_let *)(uintptr_t)lets->by_id.slots[i].value);
    }
}

void krait_green_lets_end(struct krait_green_lets *lets, uint32_t id)
{
    uint64_t *known = krait_map_get(&lets->by_id, id);
    struct krait_green_let *let = known ? (struct krait_green_let *)(uintptr_t)*known : NULL;
    if (!let)
        return;
    leave_set(lets, let);
    *known = 0;
    free(let);
}
