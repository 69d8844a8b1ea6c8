/* SPDX-License-Identifier: Apache-2.0
 *
 * The processes that krait has attached to in one recording, and those that it could not.
 */
#ifndef KRAIT_CMD_ATTACHED_H
#define KRAIT_CMD_ATTACHED_H

#include "cmd/attaching.h"

struct krait_attached {
    struct krait_attaching attaching;
    enum { KRAIT_ATTACHED_BEGINS, KRAIT_ATTACHED_RECORDED, KRAIT_ATTACHED_FAILED } state;
    uint64_t program;     /* that it ran when it was attached to, as the caller names programs */
    bool told;            /* the caller's */
    struct krait_err err; /* of KRAIT_ATTACHED_FAILED: why */
};

/* All zeros but for `how` is an empty list. */
struct krait_attached_list {
    struct krait_attached *items;
    uint32_t count, cap;
    struct krait_attaching how; /* `over`, `step` and `ctx` of each */
    char library[PATH_MAX];     /* empty until the first one */
};

void krait_attached_done(struct krait_attached_list *list);
/* NULL if there is none. */
struct krait_attached *krait_attached_find(const struct krait_attached_list *list, pid_t pid);
/* The process's item, new or as it was; NULL without memory. Other items move. */
struct krait_attached *krait_attached_add(struct krait_attached_list *list, pid_t pid, uint64_t program);
/* Begins to record the process, once more if it has been, and waits a third of a second for that at most: others need not
 * wait for one whose C code holds the GIL. Its state tells what came of it. Returns 0 or -ENOMEM. */
int krait_attached_begin(struct krait_attached_list *list, struct krait_collector *collector, pid_t pid,
                         uint64_t program);
/* Looks at those that begin. The collector has had a round. */
void krait_attached_look(struct krait_attached_list *list, const struct krait_collector *collector);
/* Whether one has not begun yet. */
bool krait_attached_begins(const struct krait_attached_list *list);
/* Out of all of them, as krait_attaching_leave. */
void krait_attached_leave(struct krait_attached_list *list, struct krait_collector *collector);

#endif
