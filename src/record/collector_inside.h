/* SPDX-License-Identifier: Apache-2.0
 *
 * Internal to the collector. open.c creates it, drain.c takes packets out of rings, collector.c manages processes,
 * rounds and the end.
 *
 * Shared memory can contain anything at any time. The collector reads a value once, checks it, and keeps the checked
 * copy here.
 */
#ifndef KRAIT_RECORD_COLLECTOR_INSIDE_H
#define KRAIT_RECORD_COLLECTOR_INSIDE_H

#include "base/buf.h"
#include "base/map.h"
#include "record/collector.h"
#include "record/ctl.h"
#include "record/join.h"
#include "record/omits.h"
#include "record/shm.h"
#include "record/tap.h"
#include "record/tracedir.h"
#include "record/triggers.h"

#include <limits.h>

/* What the collector knows of a process slot that it has taken in. */
struct krait_collected_proc {
    struct krait_tracedir *dir;
    struct krait_stream *definitions;
    int pidfd;
    int pid;
    uint64_t definition_time;               /* of the last event in the stream */
    uint64_t lost[KRAIT_COUNT_lost_reason]; /* events, beside those that krait_proc.lost counts */
    uint64_t events;                        /* on disk */
    uint64_t begin_ns, look_ns;             /* when it was noticed, and when to look at its names next */
    uint64_t image;                         /* krait_proc.image */
    bool is_known_image;                    /* the kernel has said the same */
    bool executed;                          /* and then another one: it runs another program */
    enum krait_event_enum_value how;
    int status;
    uint64_t ended;            /* the tick; 0: not known */
    uint32_t definitions_ring; /* UINT32_MAX: not known yet */
    bool begun;                /* krait_proc.begun, counted */
    bool refused;              /* its folder could not be created: its events are counted as lost */
};

/* And about a ring. */
struct krait_collected_ring {
    bool known;
    uint32_t proc;
    uint32_t kind;
    uint32_t tid;
    uint64_t next_seq; /* packets below this number are on disk, or counted as lost */
    struct krait_stream *stream;
    uint32_t taken[KRAIT_PACKETS_MAX]; /* bytes of each packet that are on disk already */
    uint64_t taken_time;               /* of the last event of these, in a thread's ring */
};

/* A packet that is ready, and where. */
struct krait_ready {
    uint64_t seq;
    uint32_t place;
};

enum { KRAIT_SAID_MAX = 8, KRAIT_RATE_TIMES = 128 };

struct krait_collector {
    struct krait_shm shm;
    int fd;
    struct krait_join_socket join;
    struct krait_ctl ctl;
    struct krait_triggers *triggers; /* NULL: none */
    bool (*tells_exceptions)(const char *runtime);
    struct krait_news {
        char *texts[KRAIT_SAID_MAX]; /* that nobody has asked for yet: the newest ones */
        uint32_t count;
        char *told; /* what was asked for last */
    } said;
    struct {
        uint32_t state; /* of the control page, as last seen */
        uint64_t since_ns;
    } switched;
    struct {
        void (*switched)(void *ctx, bool on); /* krait_collector_set_beside */
        void *ctx;
        const struct krait_clock *clock;
    } beside;
    struct { /* how many events had been written at these times, about 50 ms apart; a ring of the newest */
        struct {
            uint64_t ns, events;
        } at[KRAIT_RATE_TIMES];
        uint32_t last; /* the newest of them */
    } rate;
    char session[64];
    char address[64 + 1 + KRAIT_JOIN_KEY]; /* the session, and the key of the socket */
    char variable[PATH_MAX];               /* the address, and behind it the socket's file */
    const struct krait_tap *tap;           /* NULL: packets go to files */
    char *dir;                             /* NULL with a tap */
    bool dir_made;                         /* this collector created it and has not removed it since */
    char *reserve;          /* a file that is removed to make room for the metadata when the disk is full */
    uint64_t reserve_bytes; /* its size; counts as part of the recording */
    struct krait_clock clock;
    uint64_t begin_ns;
    uint64_t open_ns, opened_ns; /* how often open packets are taken, and when they were last */
    struct krait_collected_proc procs[KRAIT_PROCS_MAX];
    struct krait_collected_ring *rings;
    uint32_t (*chunk_taken)[KRAIT_PACKETS_MAX]; /* of chunks, as a ring's `taken` */
    struct krait_ready *ready[2];               /* room for all packets of a ring, by enum krait_ring_kind */
    uint64_t cost_ticks;                        /* with a tap: krait_collector_cost */
    struct krait_map joined;                    /* of a pid: how often such a process has joined */
    struct krait_map begun;                     /* ... and has begun to record */
    struct krait_map told;                      /* pids of refusals that the user has been told */
    struct krait_buf ended;                     /* folders of processes that have ended, each with its NUL */
    struct krait_collector_summary total;
    bool ends_off; /* krait_collector_finish: it was switched off */
    struct krait_tsdl_recording recording;
    struct krait_buf args;                    /* what `recording` tells of them */
    uint64_t duration_ns, max_bytes;          /* 0: no limit */
    uint64_t beside_bytes, beside_rest_bytes; /* on disk, of another recorder: events, and the rest */
    uint64_t metadata_bytes;                  /* on disk */
    uint64_t trimmed_bytes;                   /* what was on disk when the oldest packets were dropped last */
    uint64_t last_ns, last_bytes;             /* --last; 0: not by time, not by size */
    uint64_t trimmed_ns;                      /* when the oldest packets were dropped last */
    bool keep_newest;
    bool finished;       /* krait_collector_finish has written all */
    bool trimming;       /* no stream is closed now */
    bool paused;         /* packets stay in their rings until older ones have been dropped */
    uint64_t program_ns; /* when the program began, or what is recorded of one that ran already */
    uint64_t stopped_ns; /* krait_collector_stop */
    char limit[64];      /* the one that was reached */
    char warning[128];
    bool warned;
    struct krait_err trouble;
    bool trouble_told;
    uint32_t procs_used, rings_used,
        chunks_used; /* the most that were ever seen in use: the shared number may shrink by mistake */
    int spare_fds;   /* how many more files may be kept open */
    int child;       /* 0, or the process whose end krait_collector_ended reports */
    bool busy_nap;
    bool begins;    /* krait_collector_set_begins */
    bool attaches;  /* that was ever true: time counts from when the first process records */
    bool has_begun; /* that it does */
};

static inline void krait_collector_beat(struct krait_collector *c)
{
    atomic_store_explicit(&c->shm.control->beat_ns, krait_clock_ns(CLOCK_MONOTONIC), memory_order_relaxed);
}

static inline uint32_t krait_collector_rings_used(struct krait_collector *c)
{
    uint32_t used = atomic_load(&c->shm.control->ring_used);
    c->rings_used = KRAIT_MAX(c->rings_used, KRAIT_MIN(used, c->shm.ring_max));
    return c->rings_used;
}

static inline uint32_t krait_collector_procs_used(struct krait_collector *c)
{
    uint32_t used = atomic_load(&c->shm.control->proc_used);
    c->procs_used = KRAIT_MAX(c->procs_used, KRAIT_MIN(used, (uint32_t)KRAIT_PROCS_MAX));
    return c->procs_used;
}

static inline uint32_t krait_collector_chunks_used(struct krait_collector *c)
{
    uint32_t used = atomic_load(&c->shm.control->chunk_used);
    c->chunks_used = KRAIT_MAX(c->chunks_used, KRAIT_MIN(used, c->shm.chunk_max));
    return c->chunks_used;
}

/* A text that krait_collector_said returns. */
void krait_collector_say(struct krait_collector *c, const char *text);
void krait_collector_said_done(struct krait_collector *c);
void krait_collector_note_trouble(struct krait_collector *c, const struct krait_err *err);

/* The tick of what the collector writes of the process now: none is after its end. */
uint64_t krait_collector_now_of(const struct krait_collector *c, const struct krait_collected_proc *proc);
/* Writes a packet of the process (see krait_tracedir_write) and counts it; notes a failure. */
int krait_collector_write(struct krait_collector *c, struct krait_collected_proc *proc,
                          struct krait_stream *stream, const struct krait_packet_head *head,
                          const void *events, size_t n);

/* ---- limits.c ---- */

/* How far events may fill a recording, in 32nds of --max-size. */
enum krait_limit_share {
    KRAIT_LIMIT_BESIDE_NEWEST = 24, /* those of other recorders, with --keep newest, and without */
    KRAIT_LIMIT_BESIDE = 29,
    KRAIT_LIMIT_EVENTS = 30,
    KRAIT_LIMIT_FIRST_EVENTS = 31,
};
/* Whether n more bytes of events may be written. Stops the recording close to the limit, so that what is still in rings
 * has room. */
bool krait_limits_allow(struct krait_collector *c, size_t n, enum krait_limit_share share);
/* Whether older packets must be dropped before more are written. */
bool krait_limits_pause(struct krait_collector *c);
/* Bytes on disk, all together. */
uint64_t krait_limits_bytes(const struct krait_collector *c);
/* How long it is until the recording's time is over, ns; UINT64_MAX: it has no limit, does not count yet, or is over. */
uint64_t krait_limits_time_left(const struct krait_collector *c, uint64_t now);
/* Once that time is over, programs are told to stop at once, whoever keeps the recording from being finished. */
void krait_limits_look_at_time(struct krait_collector *c);
/* Checks the free space of the disk. */
void krait_limits_look_at_disk(struct krait_collector *c);

/* ---- newest.c ---- */

typedef void krait_visit_file_fn(void *data, const char *folder, const char *path);
/* Calls `visit` for each file of the folder whose name begins with `prefix`. */
void krait_collector_each_file(const char *folder, const char *prefix, krait_visit_file_fn *visit,
                               void *data);

/* The time from which on a snapshot keeps packets. */
uint64_t krait_newest_since(struct krait_collector *c);

/* Reads what the governor left out in the process of that folder: once for all its threads' files. */
void krait_newest_read_omits(struct krait_collector *c, const char *folder, struct krait_omits *omits);

/* The living process whose folder this is, or KRAIT_PROCS_MAX. */
uint32_t krait_collector_proc_in(const struct krait_collector *c, const char *folder);

/* A thread's file, and the time from which on events are kept. */
struct krait_newest_file {
    const char *path;
    uint64_t since;
    bool waits; /* its process has not ended before: calls that are open behind its last event are kept */
    const struct krait_omits *omits;
};
struct krait_newest_copied {
    uint64_t bytes;   /* 0: there was nothing to copy, and there is no file */
    uint64_t dropped; /* events that were not copied */
};
/* Copies the file's events from `since` on, with the stack that it begins with. */
int krait_newest_copy(struct krait_collector *c, const struct krait_newest_file *file, const char *to,
                      struct krait_newest_copied *copied);
/* At the end of a recording that dropped its oldest events, when all its files are written: makes all of it begin at one time,
 * which for --last is so much before the last event. Sets total.kept_ns. */
void krait_newest_finish(struct krait_collector *c);

/* ---- snapshot.c ---- */

/* How many events of the process were lost until now, by reason. */
void krait_collector_lost_until_now(struct krait_collector *c, uint32_t proc,
                                    uint64_t lost[KRAIT_COUNT_lost_reason]);

/* ---- torn.c ---- */

/* Drops the packets of the process that two processes wrote at once, and returns how many events those had. */
uint64_t krait_torn_drop(struct krait_collector *c, const struct krait_collected_proc *proc);

/* ---- proc_names.c ---- */

struct krait_proc_names {
    struct krait_buf comm, command; /* empty if the process is gone, or has executed another program */
};

void krait_proc_names_done(struct krait_proc_names *names);
/* The names of the process when it is first noticed. `names` is zeroed memory of the caller. */
void krait_proc_names_first(struct krait_collected_proc *proc, uint64_t image,
                            struct krait_proc_names *names);
/* Looks at its names again if it is time, and gives new ones to its trace. */
void krait_proc_names_look(struct krait_collected_proc *proc);

/* The command line of a process; empty if it is gone. */
void krait_proc_command(int pid, struct krait_buf *command);

/* ---- ctl.c, ctl_status.c ---- */

/* Answers requests as far as that is possible at once. */
void krait_ctl_round(struct krait_collector *c);
/* The next event of each thread takes the slow path. */
void krait_ctl_force_slow_path(struct krait_collector *c);
/* Changes what is recorded: lines of key=value. Returns -EINVAL for others; err says why. */
int krait_ctl_set(struct krait_collector *c, const char *items, struct krait_err *err);
/* Whether the process of a slot records what was set last, if it is on; whether all do. */
bool krait_ctl_slot_is_set(const struct krait_collector *c, uint32_t i);
bool krait_ctl_is_set(struct krait_collector *c);
/* Notes what has changed since the last call, for the status. */
void krait_ctl_note_switch(struct krait_collector *c);
/* Tells the recorder beside. */
void krait_ctl_switch_beside(const struct krait_collector *c, bool on);
/* The status as a JSON object. */
void krait_ctl_status(struct krait_collector *c, struct krait_buf *out);

/* Processes that have not been on yet, are on, and are off. */
struct krait_ctl_counts {
    uint32_t ready, on, off;
};
struct krait_ctl_counts krait_ctl_count(struct krait_collector *c);

/* ---- drain.c ---- */

/* Takes the ready packets of all rings whose process is known. Returns whether there were any. */
bool krait_drain_rings(struct krait_collector *c);
/* At the end, if programs are still running: frees the memory of all rings, even if somebody still writes there. */
void krait_drain_give_up(struct krait_collector *c);
/* Takes back the chunks that no ring needs any more, and their memory. */
void krait_drain_shrink(struct krait_collector *c);
/* Frees the memory of unused chunks: mlockall() in a program fills whatever the program has mapped. */
void krait_drain_unlock(struct krait_collector *c);
/* Whether packets of the ring are ready, which krait_drain_rings has not taken. */
bool krait_drain_is_behind(struct krait_collector *c, uint32_t ring);
/* Whether packets of the process are ready. */
bool krait_drain_has_ready(struct krait_collector *c, uint32_t proc);
/* Takes what is committed in the open packets of all threads, which continue to fill them. */
void krait_drain_open(struct krait_collector *c);
/* Takes the rest of the process's rings, open packets too. */
void krait_drain_rest(struct krait_collector *c, uint32_t proc);
/* Gives the process's rings back. It is dead, or has closed its slot. */
void krait_drain_give_back(struct krait_collector *c, uint32_t proc);
/* For a process whose folder could not be created: counts what is in its rings as lost and frees the packets, so that
 * the program does not wait for them. Frees its closed rings completely. */
void krait_drain_discard(struct krait_collector *c, uint32_t proc);
/* The same for all its rings, when the process is dead or has closed its slot. */
void krait_drain_discard_rest(struct krait_collector *c, uint32_t proc);

#endif
