/* SPDX-License-Identifier: Apache-2.0
 *
 * Internal to critical_path.h. critical_path.c follows the thread through the range. While the thread waits,
 * critical_path_records.c stores what all threads do, and critical_path_forget.c drops the oldest records. When the wait
 * is over, critical_path_follow.c makes segments of them.
 */
#ifndef KRAIT_ANALYSIS_CRITICAL_PATH_INSIDE_H
#define KRAIT_ANALYSIS_CRITICAL_PATH_INSIDE_H

#include "analysis/critical_path.h"

enum { KRAIT_PATH_PACKETS = 1024 }; /* sent and not received yet, at the most; a power of two */

/* A thread's state from begin_ns on, up to the thread's next record. */
struct krait_path_record {
    int64_t begin_ns;
    uint32_t thread;
    uint32_t prev;  /* the thread's record before this one, or KRAIT_NO_ID */
    uint32_t cause; /* of a wait: the record of the thread that ended it, as it was then, or KRAIT_NO_ID */
    uint32_t call;  /* of what has ended; see struct krait_path_segment */
    /* who had the CPU that it was ready for: where their list begins among `had`; KRAIT_NO_ID */
    uint32_t had;
    uint8_t kind;
    bool followed;   /* its cause is followed now */
    uint16_t device; /* id and 1; 0: none, or not known */
};

/* What is known of one thread, or of what a CPU received at last. Of another epoch: nothing. */
struct krait_path_place {
    uint32_t epoch, record;
    uint32_t softirq; /* of a CPU: the soft interrupt in which it was received */
    int64_t ns;       /* and when it had been sent */
};

/* By a thread's index, or a CPU's number. */
struct krait_path_places {
    struct krait_path_place *items;
    uint32_t count, cap;
};

struct krait_path_packet {
    uint64_t address;
    struct krait_path_place from;
};

/* A part of a path that is still to be followed backward: from `record` on, in [lo_ns, hi_ns). */
struct krait_path_frame {
    int64_t lo_ns, hi_ns;
    uint32_t record;
    uint32_t thread; /* whose record was the last that was followed */
    uint32_t of;     /* the record whose cause it is, or KRAIT_NO_ID */
};

struct krait_path_finder {
    struct krait_critical_path *path;
    const struct krait_kernel_states *states;
    const struct krait_path_options *options;
    const struct krait_kthread *thread; /* whose path it is; NULL: not met yet */
    struct krait_kernel_watch watch;
    int64_t to_ns;
    uint32_t epoch;      /* counts the thread's waits: what was kept in one is of no use in the next */
    bool keeps;          /* it waits: changes are kept */
    int64_t since_ns;    /* since then */
    int64_t gil_ends_ns; /* its wait for the GIL, if it is in one */
    bool failed;         /* memory is out */
    struct {
        struct krait_path_record *items;
        uint32_t count, cap;
    } records;
    struct {
        struct krait_path_frame *items;
        uint32_t count, cap;
    } frames;
    struct {
        struct krait_path_segment *items;
        uint32_t count, cap;
    } segments;
    struct krait_kruns had;            /* of records: lists that end with a run at INT64_MAX */
    struct krait_competitors had_ever; /* and of segments */
    uint32_t most;                     /* records, about */
    uint32_t half;                     /* so many are half of what there is room for */
    int64_t half_ns;                   /* when there were so many */
    bool has_forgotten;                /* some of them, for want of room */
    struct krait_path_places of_thread, of_cpu;
    struct krait_path_packet packets[KRAIT_PATH_PACKETS];
};

static inline struct krait_path_record *krait_path_record_at(const struct krait_path_finder *f,
                                                             uint32_t record)
{
    return &f->records.items[record];
}

/* -- critical_path_records.c -- */

enum krait_path_kind krait_path_kind_of(enum krait_thread_state state);
/* A wait begins: nothing is known of what was before. */
void krait_path_forget_all(struct krait_path_finder *f);
/* Keeps a change of a thread's state. Returns the record of what ends, or KRAIT_NO_ID when memory is out. */
uint32_t krait_path_keep(struct krait_path_finder *f, const struct krait_kchange *change);
/* Who had the CPU for which a thread had to wait, in a list of `had`; KRAIT_NO_ID: not known. */
uint32_t krait_path_had_cpu(struct krait_path_finder *f, const struct krait_kchange *change);
/* The GIL's holder as a thread waits for it at a time; see krait_gil_hold_at. */
struct krait_gil_hold krait_path_hold_at(const struct krait_path_finder *f, const struct krait_kthread *t,
                                         int64_t ns);
/* Of struct krait_kernel_watch: packets; ctx is the finder. */
void krait_path_on_sent(void *ctx, const struct krait_kcpu *cpu, uint64_t address, int64_t ns);
void krait_path_on_received(void *ctx, const struct krait_kcpu *cpu, uint64_t address, int64_t ns);

/* -- critical_path_forget.c -- */

/* There is to be room for what a change at a time leaves. */
void krait_path_make_room(struct krait_path_finder *f, int64_t ns);

/* -- critical_path_follow.c -- */

/* A wait of the thread ends: what it consisted of is added to the segments. */
void krait_path_follow(struct krait_path_finder *f, uint32_t record, int64_t begin_ns, int64_t end_ns);
/* A record's part becomes a segment. */
void krait_path_add_segment(struct krait_path_finder *f, const struct krait_path_record *r, int64_t begin_ns,
                            int64_t end_ns, uint16_t depth);
/* Of the segments from `first` on: what a thread ran before and behind something that took no time is one. */
void krait_path_join(struct krait_path_finder *f, uint32_t first);

#endif
