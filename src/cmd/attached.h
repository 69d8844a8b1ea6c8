/* SPDX-License-Identifier: Apache-2.0
 *
 * The processes of one recording to which krait has attached, or could not attach.
 */
#ifndef KRAIT_CMD_ATTACHED_H
#define KRAIT_CMD_ATTACHED_H

#include "cmd/attaching.h"

struct krait_attached {
    struct krait_attaching attaching;
    enum { KRAIT_ATTACHED_BEGINS, KRAIT_ATTACHED_RECORDED, KRAIT_ATTACHED_FAILED } state;
    uint64_t program;     /* identifies the program that it ran when krait attached; chosen by the caller */
    bool told;            /* for the caller */
    struct krait_err err; /* the reason for KRAIT_ATTACHED_FAILED */
};

/* An empty list is all zeros, except for `how`. */
struct krait_attached_list {
    struct krait_attached *items;
    uint32_t count, cap;
    struct krait_attaching how; /* `over`, `step` and `ctx` of each */
    char library[PATH_MAX];     /* empty until the first one */
};

void krait_attached_done(struct krait_attached_list *list);
/* The item of a process, or NULL. */
struct krait_attached *krait_attached_find(const struct krait_attached_list *list, pid_t pid);
/* The same, and adds it if it is new; NULL: out of memory. Other items may move. */
struct krait_attached *krait_attached_add(struct krait_attached_list *list, pid_t pid, uint64_t program);
/* Attaches to the process, even if it was recorded before, and waits at most a third of a second until recording has begun,
 * so that other processes need not wait for one whose C code holds the GIL. The item's state has the result. Returns 0 or
 * -ENOMEM. */
int krait_attached_begin(struct krait_attached_list *list, struct krait_collector *collector, pid_t pid,
                         uint64_t program);
/* After a round of the collector: updates the state of those that begin. */
void krait_attached_look(struct krait_attached_list *list, const struct krait_collector *collector);
/* Whether one has not begun yet. */
bool krait_attached_begins(const struct krait_attached_list *list);
/* Detaches from all of them, like krait_attaching_leave. */
void krait_attached_leave(struct krait_attached_list *list, struct krait_collector *collector);

#endif
