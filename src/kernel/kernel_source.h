/* SPDX-License-Identifier: Apache-2.0
 *
 * What the sources of kernel events share: the CTF folder with a stream for each CPU, and errors. A source embeds a
 * struct krait_kernel and fills its streams; kernel.c opens, polls and closes it.
 */
#ifndef KRAIT_KERNEL_KERNEL_SOURCE_H
#define KRAIT_KERNEL_KERNEL_SOURCE_H

#include "kernel/kernel.h"
#include "kernel/kernel_class.h"
#include "kernel/kernel_stream.h"

struct krait_kernel_source {
    enum krait_kernel_scope scope;
    const char *tracer; /* what the metadata says of who recorded */
    const char *file;   /* what the folder has beside streams and metadata; NULL: nothing */
    size_t size;        /* of the struct that has the kernel for a member */
    /* As those of kernel.h. `open` gets a kernel that krait_kernel_open has prepared. */
    int (*open)(struct krait_kernel *kernel, const struct krait_kernel_record_options *options,
                struct krait_err *err);
    /* Switch the events on, also for the first time, and off. NULL: `open` switches them on for good. */
    int (*switch_on)(struct krait_kernel *kernel, struct krait_err *err);
    void (*switch_off)(struct krait_kernel *kernel);
    /* These are called only while the events are on. */
    bool (*round)(struct krait_kernel *kernel);
    void (*stop)(struct krait_kernel *kernel);
    /* Takes the rest; adds what was lost and damaged, and on how many CPUs. */
    void (*finish)(struct krait_kernel *kernel, struct krait_kernel_summary *summary);
    /* Closes what `open` opened, also in part; once. What it cannot remove is in err. */
    void (*close)(struct krait_kernel *kernel, struct krait_err *err);
};

extern const struct krait_kernel_source krait_kernel_tracing; /* tracefs */
extern const struct krait_kernel_source krait_kernel_perf;    /* perf_event_open */

struct krait_kernel {
    const struct krait_kernel_source *source;
    const struct krait_clock *clock;
    char *dir;
    uint8_t uuid[16];
    struct krait_kernel_classes classes;
    struct krait_kernel_stream *streams; /* by CPU; fd -1: the CPU is not there */
    size_t cpu_count;
    struct krait_err trouble;
    bool trouble_told;
    bool takes_all;              /* this round takes what is in pages that are not full, too */
    bool takes_rest;             /* all that rings have, whatever room there is: they are closed then */
    uint64_t room;               /* bytes that streams may still write */
    uint64_t other_bytes;        /* on disk, beside streams */
    bool is_on, was_on, stopped; /* kernel.c sets them, after the source has done it */
    bool closed;
};

/* Keeps the first trouble with the disk: rc is 0 or a negative errno. */
void krait_kernel_note(struct krait_kernel *kernel, int rc);
/* The same for an error that has a text; does nothing if its code is 0. */
void krait_kernel_note_err(struct krait_kernel *kernel, const struct krait_err *err);
/* Makes the folder DIR/kernel. */
int krait_kernel_make_folder(struct krait_kernel *kernel, const char *dir, struct krait_err *err);
/* Makes the stream of one CPU. */
int krait_kernel_make_stream(struct krait_kernel *kernel, size_t cpu, struct krait_err *err);
/* Marks now as the time at which all streams begin. */
void krait_kernel_begin_streams(struct krait_kernel *kernel);
/* Ends a stream now, and adds what it has to `sum`. */
void krait_kernel_finish_stream(struct krait_kernel *kernel, struct krait_kernel_stream *stream,
                                struct krait_kernel_summary *sum);
/* Writes all streams' packets. */
void krait_kernel_flush(struct krait_kernel *kernel);
/* How many bytes of its rings the source may take now: what they become on disk has room. 0: they stay there. */
uint64_t krait_kernel_may_take(const struct krait_kernel *kernel);
/* Writes the metadata, or writes it anew. */
int krait_kernel_describe(struct krait_kernel *kernel, struct krait_err *err);

#endif
