/* SPDX-License-Identifier: Apache-2.0
 *
 * The CTF trace of one process while it is written: its folder, streams and metadata. No GIL, one thread.
 */
#ifndef KRAIT_RECORD_TRACEDIR_H
#define KRAIT_RECORD_TRACEDIR_H

#include "base/buf.h"
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
    uint64_t discarded; /* events that could not be written */
    uint64_t events;
    uint64_t packets; /* written or failed: the number of the next one */
    uint32_t tid;
};

struct krait_tracedir_options {
    const char *parent; /* the recording's folder; exists. NULL: nothing is written */
    const char *name;   /* the command's name; characters that file names cannot have are replaced */
    uint32_t pid;
    const char *command; /* command line; may be empty */
    const struct krait_clock *clock;
    const struct krait_tsdl_recording *recording; /* must outlive the trace's writer; NULL: left out */
    uint64_t *metadata_bytes;                     /* sum over all that share it; NULL: not counted */
    bool reads_labels; /* names are not kept, but read again from the definitions, which are all written */
    int *spare_fds;    /* how many more streams may stay open, over all that share it; NULL: all */
};

/* How many streams a recording may keep open: half of the files that krait may have open, after a few for other ends. The rest of
 * them are opened when they are written. */
int krait_tracedir_spare_fds(void);

/* The process has a new name, which the metadata gets. The folder keeps its name. */
void krait_tracedir_rename(struct krait_tracedir *dir, const char *name, const char *command);

/* Creates the folder and a first metadata. Errors: those of mkdir and open. */
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

/* Writes one packet: a head and n bytes of events. The caller sets timestamp_begin, timestamp_end and
 * events_discarded of `head`, the rest is filled in. A packet goes to disk whole or not at all. If it does not, the
 * function returns the negative errno, err says why, and the events are counted in stream->discarded. Packets
 * without events are left out. */
int krait_tracedir_write(struct krait_tracedir *dir, struct krait_stream *stream,
                         const struct krait_packet_head *head, const void *events, size_t n,
                         struct krait_err *err);

/* Learns the labels from n bytes of events of the definitions' stream (without the head), all in the long form. Sets
 * the first and last time. Stops at the first incomplete event; returns how many bytes it has read. */
size_t krait_tracedir_define(struct krait_tracedir *dir, const uint8_t *events, size_t n, uint64_t *first,
                             uint64_t *last);

/* Events in the long form reach one stream from the rings of several threads. Changes their times so that they never go
 * backward, from *last on and not beyond `now`, and sets *last to the last one. */
void krait_tracedir_order(uint8_t *events, size_t n, uint64_t *last, uint64_t now);

/* Writes new metadata beside the old and renames it, so that a reader never finds half of it. For the end, when all
 * packets of threads are written: it includes what these packets say. */
int krait_tracedir_write_metadata(struct krait_tracedir *dir, struct krait_err *err);
/* The same before the end, if the number of labels has doubled, the process was renamed, or it was outdated. */
int krait_tracedir_refresh_metadata(struct krait_tracedir *dir, struct krait_err *err);
/* What the recording's options say has changed: the next refresh writes. */
void krait_tracedir_outdate_metadata(struct krait_tracedir *dir);

/* Writes metadata of what is in the trace now into another folder. */
int krait_tracedir_copy_metadata(const struct krait_tracedir *dir, const char *folder, struct krait_err *err);

/* Writes the final clock into the metadata of a finished folder. */
int krait_tracedir_set_clock(const char *dir, const struct krait_clock *clock, struct krait_err *err);
/* The same for the amounts of the recording, which dropped events since. */
int krait_tracedir_set_amounts(const char *dir, const struct krait_tsdl_recording *recording,
                               struct krait_err *err);

/* Steps over the next event. Returns false and leaves `events` if the event is incomplete or its id is unknown. *head
 * is that of the previous event, then that of this one; *payload is its payload. */
bool krait_packet_event(struct krait_cursor *events, struct krait_event_head *head,
                        struct krait_cursor *payload);
/* The head of the packet at `at`, if there is one. */
bool krait_packet_read_head(int fd, uint64_t at, struct krait_packet_head *head);
/* Replaces what is in the buffer by the events of the packet at `at`, whose head that is. Returns 0, or -EIO. */
int krait_packet_read_events(int fd, uint64_t at, const struct krait_packet_head *head,
                             struct krait_buf *events);
/* The number of complete events in a packet's n bytes after the head. */
uint64_t krait_packet_count_events(const uint8_t *events, size_t n);
/* The bytes of these events. *time is the clock before the first of them, and becomes the time of the last. */
size_t krait_packet_last_time(const uint8_t *events, size_t n, uint64_t *time);

#endif
