/* SPDX-License-Identifier: Apache-2.0
 *
 * Recording the kernel: its rings on one side, a CTF folder with LTTng's names on the other. One thread;
 * prints nothing. There are two scopes:
 *
 *   whole  the machine, since wake-ups come from anywhere: a tracefs instance of krait's own. Needs rights.
 *   own    what this process starts afterwards, and what that starts: context switches and page faults from
 *          perf_event_open, which users have for what is theirs. The program begins at its exec.
 *
 * Full pages of tracefs leave the kernel's rings by splice; once a second, and at the end, krait also takes what the
 * open page holds. Each page is converted to LTTng's events at once and written in packets of 64 KiB, so a recorder
 * that is killed loses at most the last second.
 *
 * When they are full, tracefs's rings overwrite the oldest events, and those of perf events drop the newest. The
 * kernel then reports where events are missing and how many; packets carry the number as events_discarded.
 */
#ifndef KRAIT_KERNEL_KERNEL_H
#define KRAIT_KERNEL_KERNEL_H

#include "base/clock.h"
#include "base/err.h"

#define KRAIT_KERNEL_FOLDER "kernel"

struct krait_kernel;

enum krait_kernel_scope { KRAIT_KERNEL_WHOLE, KRAIT_KERNEL_OWN };

/* A place in a program or library that becomes an event. */
struct krait_kernel_probe {
    const char *name;           /* of the event */
    const char *path;           /* of the file, without blanks */
    uint64_t offset, semaphore; /* in the file; 0: it has no semaphore */
    const char *arguments;      /* " arg1=%bx:u64", as uprobe events take them */
};

struct krait_kernel_record_options {
    enum krait_kernel_scope scope;
    const char *dir;       /* the recording's folder, which exists; DIR/kernel is made */
    const char *groups;    /* sched,irq; empty: all. Of the whole machine alone */
    const char *functions; /* a pattern of the kernel's functions; NULL: none */
    /* set to why there are none of them, or (-ENOTSUP) no ends; the rest is recorded */
    struct krait_err *functions_note;
    const struct krait_kernel_probe *probes;
    uint32_t probe_count;
    struct krait_err *probes_note;   /* set to why there are none of them; the rest is recorded */
    uint64_t ring_bytes;             /* of each CPU; 0: 4 MiB, for the own scope what a user may lock */
    const struct krait_clock *clock; /* the recording's; as long as the source lives */
    bool idle;                       /* whole machine only: record nothing until krait_kernel_switch */
};

struct krait_kernel_summary {
    enum krait_kernel_scope scope;
    uint64_t events;
    uint64_t bytes;        /* on disk */
    uint64_t lost;         /* the kernel's rings were full */
    uint64_t refused;      /* the disk did not take them */
    uint64_t no_room;      /* krait_kernel_set_room had none for them */
    uint64_t damaged;      /* pages that could not be read to their end */
    uint32_t cpus;         /* with losses */
    struct krait_err left; /* what of it stays in the kernel, and why; code 0: nothing */
};

/* -EINVAL with err naming the word when `groups` holds one that is no group. */
int krait_kernel_check_groups(const char *groups, struct krait_err *err);

/* Whole: makes the instance, after those that dead kraits left were removed, writes the state dump, and
 * switches the events on, or with `idle` leaves that to krait_kernel_switch. Own: has them switched on when
 * this process's next child executes a program.
 * Errors: what krait_tracefs_open gives, or perf_event_open, or what of the kernel or the disk failed; then
 * nothing is left behind. */
int krait_kernel_open(struct krait_kernel **out, const struct krait_kernel_record_options *options,
                      struct krait_err *err);
/* Takes what is there. Returns whether the rings fill so fast that it should come again soon. */
bool krait_kernel_round(struct krait_kernel *kernel);
/* Of its events on disk so far, with packets that are still being filled; and of the metadata and other files. */
uint64_t krait_kernel_bytes(const struct krait_kernel *kernel);
uint64_t krait_kernel_other_bytes(const struct krait_kernel *kernel);
/* How many bytes of events there may be beside these; until the first call, any number. Rounds leave the rest in the kernel's
 * rings. krait_kernel_finish, and switching off, drop the rest and count it. */
void krait_kernel_set_room(struct krait_kernel *kernel, uint64_t bytes);
/* Takes all that has happened up to now, and writes it to the disk. Returns whether there was no room for more. */
bool krait_kernel_take_all(struct krait_kernel *kernel);
/* Its folder. */
const char *krait_kernel_folder(const struct krait_kernel *kernel);
/* The clock of its events: the recording's, or CLOCK_MONOTONIC if the kernel cannot trace with that. Owned by the source. */
const struct krait_clock *krait_kernel_clock(const struct krait_kernel *kernel);
/* Drops the packets that ended before this tick of its clock. After krait_kernel_finish, what it drops is subtracted from that
 * summary; before, NULL. */
void krait_kernel_drop_before(struct krait_kernel *kernel, uint64_t since,
                              struct krait_kernel_summary *summary);
/* The first trouble since the last call, or NULL. Owned by the source. */
const char *krait_kernel_trouble(struct krait_kernel *kernel);
/* Switches the events of the whole machine off, so that they cost nothing, or on again, with a new state dump. Does nothing if
 * they are in that state already, after krait_kernel_stop, or if krait records only the user's own events. If events cannot be
 * switched on, they stay off, and krait_kernel_trouble says why. */
void krait_kernel_switch(struct krait_kernel *kernel, bool on);
/* Whether they were on at any time. */
bool krait_kernel_was_on(const struct krait_kernel *kernel);
/* Switches the events off: what happens from now on is not in the recording. */
void krait_kernel_stop(struct krait_kernel *kernel);
/* Stops, takes the rest, writes the last metadata, removes the instance. Trouble can be asked for after it,
 * no more. */
void krait_kernel_finish(struct krait_kernel *kernel, struct krait_kernel_summary *summary);
/* Removes the instance where krait_kernel_finish has not. */
void krait_kernel_free(struct krait_kernel *kernel);
/* The same before krait_kernel_finish, and removes its folder: nothing was recorded. */
void krait_kernel_discard(struct krait_kernel *kernel);

#endif
