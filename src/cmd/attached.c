/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/attached.h"

#include "base/array.h"

void krait_attached_done(struct krait_attached_list *list)
{
    free(list->items);
}

struct krait_attached *krait_attached_find(const struct krait_attached_list *list, pid_t pid)
{
    for (uint32_t i = 0; i < list->count; i++) {
        if (list->items[i].attaching.pid == pid)
            return &list->items[i];
    }
    return NULL;
}

struct krait_attached *krait_attached_add(struct krait_attached_list *list, pid_t pid, uint64_t program)
{
    struct krait_attached *item = krait_attached_find(list, pid);
    if (!item && KRAIT_GROW(list->items, list->cap, list->count + 1))
        item = &list->items[list->count++];
    if (!item)
        return NULL;
    *item = (struct krait_attached){ .attaching = list->how, .program = program };
    struct krait_attaching *a = &item->attaching;
    a->pid = pid;
    a->library = list->library;
    return item;
}

static void fail(struct krait_attached *item, const struct krait_err *err)
{
    item->state = KRAIT_ATTACHED_FAILED;
    item->err = *err;
}

static void look(struct krait_attached *item, const struct krait_collector *collector)
{
    struct krait_err err = { 0 };
    int rc = item->state == KRAIT_ATTACHED_BEGINS
                 ? krait_attaching_has_begun(&item->attaching, collector, &err)
                 : 0;
    if (rc > 0)
        item->state = KRAIT_ATTACHED_RECORDED;
    else if (rc < 0)
        fail(item, &err);
}

/* The next process may be in another network namespace, to which the collector's socket then moves. */
static void wait_a_little(struct krait_attached *item, struct krait_collector *collector)
{
    enum { TRIES = 300 };
    const struct krait_attaching *a = &item->attaching;
    for (int i = 0; i < TRIES && item->state == KRAIT_ATTACHED_BEGINS && !(a->over && a->over(a->ctx)); i++) {
        look(item, collector);
        krait_attaching_pause(collector);
    }
}

int krait_attached_begin(struct krait_attached_list *list, struct krait_collector *collector, pid_t pid,
                         uint64_t program)
{
    struct krait_err err = { 0 };
    struct krait_attached *item = krait_attached_add(list, pid, program);
    if (!item)
        return -ENOMEM;
    krait_collector_round(collector);
    int rc = *list->library ? 0 : krait_attaching_find(list->library, sizeof(list->library), &err);
    rc = rc ? rc : krait_attaching_check(pid, &err);
    rc = rc ? rc : krait_attaching_begin(&item->attaching, collector, &err);
    if (rc)
        fail(item, &err);
    wait_a_little(item, collector);
    return 0;
}

void krait_attached_look(struct krait_attached_list *list, const struct krait_collector *collector)
{
    for (uint32_t i = 0; i < list->count; i++)
        look(&list->items[i], collector);
}

bool krait_attached_begins(const struct krait_attached_list *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        if (list->items[i].state == KRAIT_ATTACHED_BEGINS)
            return true;
    }
    return false;
}

/* Whether one was told to leave and has not. */
static bool is_leaving(struct krait_attached_list *list, const struct krait_collector *collector)
{
    bool any = false;
    for (uint32_t i = 0; i < list->count; i++) {
        if (list->items[i].state != KRAIT_ATTACHED_FAILED)
            any |= krait_attaching_is_leaving(&list->items[i].attaching, collector);
    }
    return any;
}

void krait_attached_leave(struct krait_attached_list *list, struct krait_collector *collector)
{
    enum { SECONDS = 2 };
    for (uint32_t i = 0; i < list->count; i++) {
        if (list->items[i].state != KRAIT_ATTACHED_FAILED)
            krait_attaching_leave(&list->items[i].attaching, collector);
    }
    uint64_t end = krait_clock_ns(CLOCK_MONOTONIC) + SECONDS * KRAIT_NS_PER_S;
    while (is_leaving(list, collector) && krait_clock_ns(CLOCK_MONOTONIC) < end)
        krait_attaching_pause(collector);
}
