/* SPDX-License-Identifier: Apache-2.0
 *
 * The CTF trace of one process while it is written: its folder, streams and metadata. No GIL, one thread.
 */
#ifndef KRAIT_RECORD_TRACEDIR_H
#define KRAIT_RECORD_TRACEDIR_H

#include "base/clock.h"
#include "base/err.h"
#include "ctf/format.h"
#include "ctf/write/tsdl_write.h"

struct krait_tracedir;

/* A stream file, owned by its tracedir until krait_tracedir_stream_close. */
struct krait_stream {
    int fd; /* -1: opened for each packet */
    char *path;
    uint64_t bytes;     /* on disk, whole packets */
    uint64_t instance;  /* stream_instance_id */
    uint64_t discarded; /* events that the disk did not take */
    uint64_t events;
    uint64_t packets; /* on disk, or refused by it: the next one's number */
    uint32_t tid;
};

struct krait_tracedir_options {
    const char *parent; /* the recording's folder; exists */
    const char *name;   /* the command's name; made fit for a file name */
    uint32_t pid;
    const char *command; /* command line; may be empty */
    const struct krait_clock *clock;
    const struct krait_tsdl_recording *recording; /* as long as the trace is written; NULL: not told */
    uint64_t *metadata_bytes;                     /* of all that share it; NULL: not counted */
    int *spare_fds; /* how many more streams may stay open, of all that share it; NULL: all */
};

/* The process is called otherwise now: the metadata says so. The folder keeps its name. */
void krait_tracedir_rename(struct krait_tracedir *dir, const char *name, const char *command);

/* Makes the folder and a first metadata. Errors: what mkdir and open give. */
int krait_tracedir_new(struct krait_tracedir **out, const struct krait_tracedir_options *options,
                       struct krait_err *err);
/* Closes all; writes nothing more. */
void krait_tracedir_free(struct krait_tracedir *dir);
const char *krait_tracedir_path(const struct krait_tracedir *dir);

/* A stream for a thread (tid) or, with tid 0, the definitions. Owned by dir. */
int krait_tracedir_stream(struct krait_tracedir *dir, uint32_t tid, struct krait_stream **out,
                          struct krait_err *err);
/* The stream with this file, or NULL when it is closed. */
struct krait_stream *krait_tracedir_find(const struct krait_tracedir *dir, const char *path);
void krait_tracedir_stream_close(struct krait_tracedir *dir, struct krait_stream *stream);

/* Writes one packet: n bytes of events under a head like `head`, of which timestamp_begin, timestamp_end and
 * events_discarded are the caller's and the rest is filled in. A packet goes to disk whole or not at all.
 * When it does not: returns the negative errno, err says why, and its events are counted in
 * stream->discarded. Packets without events are left out. */
int krait_tracedir_write(struct krait_tracedir *dir, struct krait_stream *stream,
                         const struct krait_packet_head *head, const void *events, size_t n,
                         struct krait_err *err);

/* Learns the labels in a run of events of the definitions' stream (after the head): n bytes, all in the long form.
 * Sets the first and last time. Stops at the first event that is not whole; returns the bytes understood. */
size_t krait_tracedir_define(struct krait_tracedir *dir, const uint8_t *events, size_t n, uint64_t *first,
                             uint64_t *last);

/* Events in the long form come from several threads' rings into one stream: makes their times rise, from
 * *last on and not beyond `now`, and *last the last of them. */
void krait_tracedir_order(uint8_t *events, size_t n, uint64_t *last, uint64_t now);

/* Writes the metadata anew, beside the old and then over it: a reader never finds half of it. For the end:
 * all packets of threads are written, and it says what they have told. */
int krait_tracedir_write_metadata(struct krait_tracedir *dir, struct krait_err *err);
/* Before, if the labels have doubled since or the process was renamed. */
int krait_tracedir_refresh_metadata(struct krait_tracedir *dir, struct krait_err *err);

/* In the metadata of a folder that is finished: the clock as it is known now. */
int krait_tracedir_set_clock(const char *dir, const struct krait_clock *clock, struct krait_err *err);

/* Steps over the next event; false, and `events` stays, when it is not whole or its id is not known. *head holds the
 * event before it and then its own; *payload is its payload. */
bool krait_packet_event(struct krait_cursor *events, struct krait_event_head *head,
                        struct krait_cursor *payload);
/* Events in a packet's n bytes after the head, up to the first that is not whole. */
uint64_t krait_packet_count_events(const uint8_t *events, size_t n);
/* The bytes of those events. *time is the clock before the first of them, and then that of the last. */
size_t krait_packet_last_time(const uint8_t *events, size_t n, uint64_t *time);

#endif
