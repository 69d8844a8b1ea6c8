/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of attach/ share.
 */
#ifndef KRAIT_ATTACH_INSIDE_H
#define KRAIT_ATTACH_INSIDE_H

#include "attach/attach.h"
#include "base/base.h"
#include "remote/elf.h"

struct krait_range {
    uint64_t begin, end;
};

enum krait_target_function {
    KRAIT_TARGET_CREATE,
    KRAIT_TARGET_DETACH,
    KRAIT_TARGET_DLOPEN,
    KRAIT_TARGET_DLSYM,
    KRAIT_TARGET_FUNCTIONS
};

struct krait_ranges {
    struct krait_range items[32];
    uint32_t count;
};

struct krait_target {
    pid_t pid;
    uint64_t functions[KRAIT_TARGET_FUNCTIONS];
    uint64_t room;             /* for the stub */
    struct krait_ranges holds; /* code that holds locks of libc or of the loader while it calls other code */
    struct krait_ranges libc;  /* all of libc's code, which may hold them itself */
    struct {
        struct krait_target_file {
            struct krait_elf elf;
            uint64_t begin, moved; /* its first byte; what was added to its addresses */
        } * items;                 /* in ascending order */
        uint32_t count, cap;
    } files;
    struct {
        struct krait_range *items; /* what may be written to, in ascending order: the threads' stacks */
        uint32_t count, cap;
    } data;
};

/* Finds out all of it. */
int krait_target_find(struct krait_target *target, pid_t pid, struct krait_err *err);
/* Looks again at what may be written to: what is looked up there while a thread is stopped is read before. */
int krait_target_look(struct krait_target *target, struct krait_err *err);
/* The mapping of it that `address` is in; NULL where there is none. */
const struct krait_range *krait_target_data(const struct krait_target *target, uint64_t address);
/* The file that the code at `address` is of, if it is a file's; else any one or NULL. */
const struct krait_target_file *krait_target_file(const struct krait_target *target, uint64_t address);
void krait_target_done(struct krait_target *target);

enum { KRAIT_THREAD_UNSAFE = 1 };
/* Sends a thread to target->room if it is at a safe place. Returns 0, KRAIT_THREAD_UNSAFE or a negative errno; then the
 * thread goes on as if nothing had been. *stopped_ns is how long it was stopped. */
int krait_thread_send(const struct krait_target *target, pid_t tid, uint64_t *stopped_ns);

#endif
