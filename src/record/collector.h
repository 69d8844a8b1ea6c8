/* SPDX-License-Identifier: Apache-2.0
 *
 * The collector, the other side of the rings. It creates the shared memory, takes complete packets out of it, and
 * writes them to disk. It is one thread and prints nothing.
 */
#ifndef KRAIT_RECORD_COLLECTOR_H
#define KRAIT_RECORD_COLLECTOR_H

#include "base/clock.h"
#include "base/err.h"
#include "event/event.h"
#include "record/names_met.h"

#include <sys/types.h>

struct krait_collector;
struct krait_tap;

/* How much of a thread's last events may be missing when the collector is killed. */
#define KRAIT_COLLECTOR_OPEN_NS KRAIT_NS_PER_S

struct krait_collector_options {
    const char *dir; /* the recording's folder: absent (made with its parents) or empty. NULL with a tap */
    const struct krait_tap *tap; /* reads the events instead (tap.h); outlives the collector; NULL: none */
    uint64_t ring_bytes;         /* of each thread's ring; 0: 2 MiB */
    uint64_t buffer_bytes;       /* by which rings that are full may grow, in all; 0: not at all */
    uint32_t rings;              /* 0: 4096, or what limits of memory allow */
    uint32_t flags;              /* enum krait_record_flags */
    /* After which programs stop recording; 0: when they end. It counts from the command's begin, from when the first process
     * records that krait attached to, or from when the recording is first switched on. */
    uint64_t duration_ns;
    uint64_t max_bytes;           /* that it may take on disk; 0: any number. 1 MiB at least */
    bool keep_newest;             /* of max_bytes: drop the oldest packets instead of ending the recording */
    uint64_t last_ns, last_bytes; /* keep what is so old, or so much, at least; 0: see keep_newest */
    bool idle;                    /* begin switched off */
    uint64_t open_ns;             /* how often open packets are written; 0: KRAIT_COLLECTOR_OPEN_NS */
    double max_overhead;          /* percent; 0: no governor */
    struct krait_collector_words {
        const char *const *items;
        size_t count;
    } include, exclude, log, audit, args;     /* by enum krait_filter_kind */
    struct krait_collector_words snapshot_on; /* triggers.h */
    /* Whether an interpreter tells the types of all exceptions; its name and version, as in "CPython 3.13.0". NULL: not known. */
    bool (*tells_exceptions)(const char *runtime);
};

struct krait_collector_summary {
    uint64_t duration_ns;
    uint32_t processes;
    uint32_t threads;
    uint64_t events;
    uint64_t bytes; /* on disk */
    uint64_t lost[KRAIT_COUNT_lost_reason];
    uint64_t dropped_events;   /* old ones, for keep_newest */
    uint64_t kept_ns;          /* then: up to the last event, so much is kept of all threads */
    uint64_t kept_from;        /* the tick from which on it is; 0: nothing was dropped */
    const char *limit;         /* what ended it: see krait_collector_limit; NULL: nothing did */
    uint64_t grown_bytes;      /* the maximum by which rings had grown */
    uint32_t omitted;          /* functions that the governor switched off */
    uint32_t alive;            /* processes that are still running, whose recording was stopped */
    bool was_on;               /* at any time */
    uint32_t not_off, not_set; /* processes in which the last krait ctl stop, or set, never took effect */
    bool had_trouble;          /* something could not be written: see krait_collector_trouble */
};

/* Checks the options and creates nothing. Returns -EINVAL if rings of such a size and number are impossible; err says
 * so in terms of the command's options. */
int krait_collector_check(const struct krait_collector_options *options, struct krait_err *err);

/* Errors: those of krait_collector_check, or the errno of a failed system call, which may be EINVAL too. */
int krait_collector_new(struct krait_collector **out, const struct krait_collector_options *options,
                        struct krait_err *err);
/* Also removes the folder if krait_collector_new created it and it is empty. */
void krait_collector_free(struct krait_collector *collector);

/* Removes the recording's folder if the collector created it and it is empty. Returns whether it did. */
bool krait_collector_drop_empty(struct krait_collector *collector);

/* Before a process that runs already is told the address: it may join, also as another user and from another network
 * namespace. The address may be a new one then. Returns 0, or -EPERM with err set where it cannot reach the recording. */
int krait_collector_admit(struct krait_collector *collector, pid_t pid, struct krait_err *err);
/* The path of the recording's memory. */
const char *krait_collector_session(const struct krait_collector *collector);
/* The address for processes that krait attaches to: the path, and the key of the collector's socket (join.h). */
const char *krait_collector_address(const struct krait_collector *collector);
/* The value of KRAIT_SESSION for programs to record: the address, and the file of the socket for other network namespaces. */
const char *krait_collector_variable(const struct krait_collector *collector);

/* The recording's clock, for other recorders beside it: krait_collector_finish measures its frequency once more.
 * Owned by the collector. */
const struct krait_clock *krait_collector_clock(const struct krait_collector *collector);

/* Raises the calling thread's priority as far as allowed. Threads and processes that it starts afterwards inherit
 * it. */
void krait_raise_priority(void);

/* One round: notices new processes and threads, writes what is ready, finishes what has ended. Returns whether there
 * was anything to do. Failed writes are counted, and the first reason is kept for krait_collector_trouble. */
bool krait_collector_round(struct krait_collector *collector);
/* If the recording has reached a limit of its options and must be finished: the option and its value as in "--for 5 s",
 * else NULL. Owned by the collector. */
const char *krait_collector_limit(struct krait_collector *collector);
/* Programs stop recording at once, for good; they still leave the recording. krait_collector_finish does it too. */
void krait_collector_stop(struct krait_collector *collector);
/* With options.keep_newest, drops the oldest packets once the recording has almost reached its size. Returns the tick
 * from which on packets are kept, 0 if nothing was dropped. Other recorders drop theirs then, too. */
uint64_t krait_collector_keep_newest(struct krait_collector *collector);
/* Notes what is on disk of another recorder, which counts as part of the recording: bytes of events, and of the rest. Returns how
 * many bytes of events it may still write; UINT64_MAX: any number. After krait_collector_finish, that is for its last ones. */
uint64_t krait_collector_room(struct krait_collector *collector, uint64_t events, uint64_t rest);
/* Sleeps until there is probably something to do: a half-full ring, a signal or a timeout wakes it. */
void krait_collector_nap(struct krait_collector *collector);
/* Makes the next nap a short one: there is more to do than the rings show. */
void krait_collector_hurry(struct krait_collector *collector);
/* A warning, once, that the disk has little room left; else NULL. Owned by the collector. */
const char *krait_collector_warning(struct krait_collector *collector);
/* What triggers did: took a snapshot, or could not. One after the other; NULL: no more. Valid until the next call. */
const char *krait_collector_said(struct krait_collector *collector);
/* The first failed write since the last call, or NULL. Owned by the collector. */
const char *krait_collector_trouble(struct krait_collector *collector);

/* Writes what the recording holds, or with options.last_* the newest part of it, as a recording of its own. `dir` is the
 * folder to make, or NULL: one beside the recording's. err says why not; then nothing is left of it. */
struct krait_collector_snapshot {
    char *dir; /* owned by the caller */
    uint64_t bytes, took_ns;
};
int krait_collector_snapshot(struct krait_collector *collector, const char *dir,
                             struct krait_collector_snapshot *made, struct krait_err *err);

/* Switches the recording on if it is off, and off if it is on. */
void krait_collector_toggle(struct krait_collector *collector);

/* The caller is the parent of `pid` and will call krait_collector_ended; until then krait does not decide how it
 * ended. */
void krait_collector_child(struct krait_collector *collector, int pid);
/* Tells the collector how the process `pid` ended: `how` is KRAIT_process_end_exit or _signal. And at which tick of its clock; 0:
 * nobody knows, and it counts as ended when the collector writes that. */
void krait_collector_ended(struct krait_collector *collector, int pid, enum krait_event_enum_value how,
                           int status, uint64_t tick);

/* How often a process with this number has joined the recording, even if only briefly; and how often it then began to record,
 * where nothing kept it from that. */
uint32_t krait_collector_begins(const struct krait_collector *collector, int pid);
uint32_t krait_collector_begun(const struct krait_collector *collector, int pid);
/* Whether the process is recorded, as of the last round; and whether it was, and is not any more. */
bool krait_collector_has(const struct krait_collector *collector, int pid);
bool krait_collector_left(const struct krait_collector *collector, int pid);
/* Whether the process is part of the recording and has not been recorded yet: it will be when the recording is switched on. */
bool krait_collector_is_ready(const struct krait_collector *collector, int pid);
/* The processes that are recorded, as of the last round: writes at most `size` PIDs, and returns how many there are. */
uint32_t krait_collector_pids(const struct krait_collector *collector, pid_t *pids, uint32_t size);
/* For the status: whether processes that run already are still to be told to join. */
void krait_collector_set_begins(struct krait_collector *collector, bool begins);
/* A number that is another one when the process has executed another program: krait_proc.image. 0: not known. */
uint64_t krait_collector_image(int pid);
/* Events that were lost until now, for any reason. */
uint64_t krait_collector_lost(struct krait_collector *collector);
/* How long recording has taken in the processes until now, ns: their events, by what an event costs as the agent
 * measured it there (KRAIT_RECORD_COST). Without what it costs in cache misses and for hooks of dropped functions. */
uint64_t krait_collector_cost(const struct krait_collector *collector);
/* Takes what the open packets of all threads hold already, without waiting for the next time. */
void krait_collector_take_open(struct krait_collector *collector);
/* Another recorder beside is switched with this one: before the recording is switched on, if the collector does that, and
 * once it has been switched off. It may be told again what it is told already. `clock` is that of its packets; the
 * collector uses it until krait_collector_finish returns. */
void krait_collector_set_beside(struct krait_collector *collector, void (*switched)(void *ctx, bool on),
                                void *ctx, const struct krait_clock *clock);
/* Whether processes are told to record, or are switched off for now. */
bool krait_collector_is_on(const struct krait_collector *collector);

/* The i-th process that could not be recorded: returns its pid and writes the reason to `why` (terminated, at most size
 * bytes); 0 if there are no more. */
int krait_collector_refusal(const struct krait_collector *collector, size_t i, char *why, size_t size);
/* How many there were; only the first few have a reason. */
uint32_t krait_collector_refused(const struct krait_collector *collector);
/* Notes that the user has been told why this process could not be recorded; whether that is so. */
void krait_collector_note_told(struct krait_collector *collector, int pid);
bool krait_collector_is_told(const struct krait_collector *collector, int pid);
/* Whether a function was like the i-th of options.include, or, counted on from these, of options.exclude; true of those after the
 * 64th, which is not known. */
bool krait_collector_filter_met(const struct krait_collector *collector, size_t i);
/* Calls fn for each glob of the last krait ctl set that no function was like, in the 64 first; nothing without a set. Returns how
 * many there are. */
typedef void krait_collector_unmet_fn(void *ctx, const char *option, const char *glob);
size_t krait_collector_set_unmet(const struct krait_collector *collector, krait_collector_unmet_fn *fn,
                                 void *ctx);
/* Whether a logger that options.log[i] means was used, and no program had a level of the name that it gives. False where
 * that is not known. `before`: how many includes and excludes there are. */
bool krait_collector_level_unmet(const struct krait_collector *collector, size_t before, size_t i);
/* Whether no logger that options.log[i] means has logged, or no audit event that
 * options.audit[i] means occurred. False where that is not known. */
bool krait_collector_name_unmet(const struct krait_collector *collector, enum krait_named kind, size_t i);
/* Copies the names of loggers that have logged, or of audit events that occurred: each ends with a NUL, and the first empty one
 * ends the list. If all options of this kind were met, some are missing. */
void krait_collector_names(const struct krait_collector *collector, enum krait_named kind,
                           char names[KRAIT_NAMES_LIST]);

/* Ends the recording: stops it in processes that still run, drains everything, writes the final metadata. */
void krait_collector_finish(struct krait_collector *collector, struct krait_collector_summary *summary);

#endif
