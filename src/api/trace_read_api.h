/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of this folder share: the opaque types of the public header.
 */
#ifndef KRAIT_API_TRACE_READ_H
#define KRAIT_API_TRACE_READ_H

#include "krait/trace_read.h"

#include "ctf/read/loss.h"
#include "ctf/read/merge.h"
#include "ctf/read/range.h"
#include "ctf/read/reader.h"
#include "ctf/rows/row_order.h"

#include <pthread.h>

struct krait_reader_class {
    struct krait_reader *reader;
    const struct krait_ctf_trace *trace;
    const struct krait_event_class *event;
    uint32_t index;
};

struct krait_reader_field {
    const struct krait_reader_class *cls;
    const struct krait_locator *locator;
};

/* Of krait_reader_check, under the reader's lock. */
struct damage_check {
    struct krait_row_set *rows; /* that count; kept until the reader is closed */
    uint32_t begun, done;       /* streams */
    bool failed;                /* memory was out */
    pthread_cond_t all_done;
};

struct krait_reader {
    struct krait_ctf_reader *ctf;
    struct krait_arena arena;           /* classes; from then on under the lock */
    struct krait_reader_class *classes; /* by index; those of a trace's stream class stand together */
    uint32_t class_count;
    struct krait_map first; /* struct krait_stream_class * to the index of its first class */
    pthread_mutex_t lock;
    struct krait_row_set *rows; /* made at its first use, under the lock */
    struct krait_map wanted;    /* struct krait_fc * of fields that get cells */
    bool wants_some;            /* else all do */
    bool wants_cycles;
    struct damage_check check;
};

struct krait_batches;

struct krait_reader_cursor {
    struct krait_reader *reader;
    struct krait_ctf_merge *merge; /* NULL: of one stream, `own` */
    bool between;                  /* batches alone, of all streams, of these times */
    int64_t begin_ns, end_ns;
    struct krait_ctf_cursor own;
    struct krait_ctf_stream part;          /* the packets that `own` goes through */
    uint32_t first_packet;                 /* of them */
    const struct krait_ctf_stream *stream; /* of the last step */
    struct krait_ctf_cursor *at;           /* at an event; NULL before the first and at the end */
    const struct krait_stream_class *cls;  /* of the event before: that first_class is of */
    uint32_t first_class;
    int64_t from_ns; /* krait_reader_cursor_seek; INT64_MIN before */
    bool held;       /* the event waits until the losses before it are told */
    uint32_t *told;  /* by stream: packets whose losses were told */
    struct krait_ctf_loss losses[2];
    unsigned loss_count, loss_next;
    bool at_loss, ended, stepped;
    struct krait_batches *batches; /* NULL until the first */
    struct krait_err err;
};

/* Hands a reason on; returns its code. `error` may be NULL. */
int krait_tell(struct krait_reader_error *error, const struct krait_err *err);
int krait_tell_oom(struct krait_reader_error *error);

/* NULL: there is no stream of that number. */
const struct krait_ctf_stream *krait_stream_of(const struct krait_reader *reader, uint32_t stream);
enum krait_reader_kind krait_kind_of(const struct krait_fc *fc);

/* In the public form. */
void krait_lost_of(struct krait_reader_lost *lost, const struct krait_ctf_loss *loss);

void krait_batches_free(struct krait_batches *batches);

#endif
