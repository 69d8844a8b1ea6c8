/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/kernel.h"

#include "kernel/kernel_source.h"
#include "kernel/kernel_tsdl.h"
#include "record/traceid.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

int krait_kernel_check_groups(const char *groups, struct krait_err *err)
{
    uint32_t mask;
    return krait_kernel_groups_parse(groups, &mask, err);
}

/* ---- troubles ---- */

void krait_kernel_note(struct krait_kernel *k, int rc)
{
    if (!rc || k->trouble.code)
        return;
    errno = -rc;
    krait_err_errno(&k->trouble, "cannot write the kernel's events to %s", k->dir);
}

void krait_kernel_note_err(struct krait_kernel *k, const struct krait_err *err)
{
    if (err->code && !k->trouble.code)
        k->trouble = *err;
}

const char *krait_kernel_trouble(struct krait_kernel *k)
{
    if (!k->trouble.code || k->trouble_told)
        return NULL;
    k->trouble_told = true;
    return k->trouble.text;
}

/* ---- the folder ---- */

static int allocate_streams(struct krait_kernel *k, struct krait_err *err)
{
    size_t count = (size_t)sysconf(_SC_NPROCESSORS_CONF);
    k->streams = calloc(count, sizeof(*k->streams));
    if (!k->streams)
        return krait_err_set(err, -ENOMEM, "out of memory");
    for (; k->cpu_count < count; k->cpu_count++)
        k->streams[k->cpu_count].fd = -1;
    return 0;
}

int krait_kernel_make_folder(struct krait_kernel *k, const char *dir, struct krait_err *err)
{
    if (asprintf(&k->dir, "%s/" KRAIT_KERNEL_FOLDER, dir) < 0) {
        k->dir = NULL;
        return krait_err_set(err, -ENOMEM, "out of memory");
    }
    if (mkdir(k->dir, 0777) < 0)
        return krait_err_errno(err, "cannot make the folder %s", k->dir);
    int rc = krait_traceid_new(k->uuid, err);
    return rc ? rc : allocate_streams(k, err);
}

int krait_kernel_make_stream(struct krait_kernel *k, size_t cpu, struct krait_err *err)
{
    KRAIT_AUTO_FREE char *path = NULL;
    if (asprintf(&path, "%s/channel0_%zu", k->dir, cpu) < 0)
        return krait_err_set(err, -ENOMEM, "out of memory");
    int rc = krait_kernel_stream_init(&k->streams[cpu], path, k->uuid, (uint32_t)cpu, cpu + 1, err);
    k->streams[cpu].room = &k->room;
    return rc;
}

void krait_kernel_begin_streams(struct krait_kernel *k)
{
    for (size_t i = 0; i < k->cpu_count; i++) {
        if (k->streams[i].fd >= 0)
            krait_kernel_note(k, krait_kernel_stream_mark(&k->streams[i], krait_clock_now(k->clock)));
    }
}

int krait_kernel_describe(struct krait_kernel *k, struct krait_err *err)
{
    struct krait_kernel_unwritten unwritten = { 0 };
    for (size_t i = 0; i < k->cpu_count; i++) {
        unwritten.refused += k->streams[i].refused;
        unwritten.no_room += k->streams[i].no_room;
    }
    return krait_kernel_tsdl_write(k->dir, k->source->tracer, &k->classes, k->clock, k->uuid, &unwritten,
                                   err);
}

/* The metadata, the state dump, and what was kept of dropped packets. */
static void measure_others(struct krait_kernel *k)
{
    struct stat st;
    DIR *dir = opendir(k->dir);
    k->other_bytes = 0;
    for (const struct dirent *f; dir && (f = readdir(dir));) {
        if (strncmp(f->d_name, "channel0_", strlen("channel0_")) != 0 &&
            fstatat(dirfd(dir), f->d_name, &st, 0) == 0 && S_ISREG(st.st_mode))
            k->other_bytes += (uint64_t)st.st_size;
    }
    if (dir)
        closedir(dir);
}

void krait_kernel_flush(struct krait_kernel *k)
{
    for (size_t i = 0; i < k->cpu_count; i++) {
        if (k->streams[i].fd >= 0)
            krait_kernel_note(k, krait_kernel_stream_flush(&k->streams[i]));
    }
    measure_others(k);
}

static void remove_folder(const struct krait_kernel *k)
{
    KRAIT_AUTO_CLOSE int dir = k->dir ? open(k->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    unlinkat(dir, "metadata", 0);
    if (k->source->file)
        unlinkat(dir, k->source->file, 0);
    for (size_t i = 0; i < k->cpu_count; i++) {
        char name[32];
        snprintf(name, sizeof(name), "channel0_%zu", i);
        unlinkat(dir, name, 0);
    }
    if (k->dir)
        rmdir(k->dir);
}

/* ---- sources ---- */

static int open_source(struct krait_kernel **out, const struct krait_kernel_source *source,
                       const struct krait_kernel_record_options *options, struct krait_err *err)
{
    struct krait_kernel *k = calloc(1, source->size);
    if (!k)
        return krait_err_set(err, -ENOMEM, "out of memory");
    k->source = source;
    k->clock = options->clock;
    k->room = UINT64_MAX;
    int rc = source->open(k, options, err);
    if (!rc && source->switch_on && !options->idle)
        rc = source->switch_on(k, err);
    if (rc) {
        krait_kernel_discard(k);
        return rc;
    }
    k->is_on = k->was_on = !source->switch_on || !options->idle;
    measure_others(k);
    *out = k;
    return 0;
}

int krait_kernel_open(struct krait_kernel **out, const struct krait_kernel_record_options *options,
                      struct krait_err *err)
{
    static const struct krait_kernel_source *const sources[] = {
        [KRAIT_KERNEL_WHOLE] = &krait_kernel_tracing, [KRAIT_KERNEL_OWN] = &krait_kernel_perf
    };
    return open_source(out, sources[options->scope], options, err);
}

static void close_source(struct krait_kernel *k, struct krait_err *err)
{
    if (!k->closed)
        k->source->close(k, err);
    k->closed = true;
}

void krait_kernel_free(struct krait_kernel *k)
{
    if (!k)
        return;
    close_source(k, NULL);
    for (size_t i = 0; i < k->cpu_count; i++)
        krait_kernel_stream_done(&k->streams[i]);
    krait_kernel_classes_done(&k->classes);
    free(k->streams);
    free(k->dir);
    free(k);
}

void krait_kernel_discard(struct krait_kernel *k)
{
    if (!k)
        return;
    close_source(k, NULL);
    remove_folder(k);
    krait_kernel_free(k);
}

void krait_kernel_switch(struct krait_kernel *k, bool on)
{
    struct krait_err err = { 0 };
    if (!k->source->switch_on || k->stopped || on == k->is_on)
        return;
    k->takes_rest = !on;
    if (!on || k->source->switch_on(k, &err))
        k->source->switch_off(k);
    k->takes_rest = false;
    krait_kernel_note_err(k, &err);
    k->is_on = on && !err.code;
    k->was_on |= k->is_on;
}

bool krait_kernel_was_on(const struct krait_kernel *k)
{
    return k->was_on;
}

bool krait_kernel_round(struct krait_kernel *k)
{
    return k->is_on && k->source->round(k);
}

/* Of packets that are being filled. */
static uint64_t open_bytes(const struct krait_kernel *k)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < k->cpu_count; i++)
        bytes += k->streams[i].packet.len;
    return bytes;
}

uint64_t krait_kernel_bytes(const struct krait_kernel *k)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < k->cpu_count; i++)
        bytes += k->streams[i].bytes;
    return bytes + open_bytes(k);
}

uint64_t krait_kernel_other_bytes(const struct krait_kernel *k)
{
    return k->other_bytes;
}

void krait_kernel_set_room(struct krait_kernel *k, uint64_t bytes)
{
    uint64_t open = open_bytes(k);
    k->room = bytes + KRAIT_MIN(open, UINT64_MAX - bytes);
}

uint64_t krait_kernel_may_take(const struct krait_kernel *k)
{
    enum { GROWS = 4 }; /* a switch of perf events becomes three times as large */
    uint64_t takes = (k->room - KRAIT_MIN(open_bytes(k), k->room)) / GROWS;
    return k->takes_rest ? UINT64_MAX : takes < (uint64_t)sysconf(_SC_PAGESIZE) ? 0 : takes;
}

bool krait_kernel_take_all(struct krait_kernel *k)
{
    enum { ROUNDS = 4 }; /* a CPU that fills its ring as fast as we empty it does not hold us here */
    k->takes_all = true;
    for (int i = 0; (k->stopped || i < ROUNDS) && krait_kernel_round(k); i++)
        continue;
    k->takes_all = false;
    krait_kernel_flush(k);
    return !krait_kernel_may_take(k);
}

const char *krait_kernel_folder(const struct krait_kernel *k)
{
    return k->dir;
}

const struct krait_clock *krait_kernel_clock(const struct krait_kernel *k)
{
    return k->clock;
}

void krait_kernel_drop_before(struct krait_kernel *k, uint64_t since, struct krait_kernel_summary *summary)
{
    for (size_t i = 0; i < k->cpu_count; i++) {
        struct krait_kernel_stream *stream = &k->streams[i];
        uint64_t events = stream->events, bytes = stream->bytes;
        if (stream->fd >= 0)
            krait_kernel_note(k, krait_kernel_stream_drop_before(stream, k->dir, since));
        if (summary) {
            summary->events -= events - stream->events;
            summary->bytes -= bytes - stream->bytes;
        }
    }
    measure_others(k);
}

void krait_kernel_stop(struct krait_kernel *k)
{
    if (k->is_on && !k->stopped)
        k->source->stop(k);
    k->stopped = true;
}

void krait_kernel_finish_stream(struct krait_kernel *k, struct krait_kernel_stream *stream,
                                struct krait_kernel_summary *sum)
{
    if (stream->fd < 0)
        return;
    krait_kernel_note(k, krait_kernel_stream_mark(stream, krait_clock_now(k->clock)));
    sum->events += stream->events;
    sum->bytes += stream->bytes;
    sum->refused += stream->refused;
    sum->no_room += stream->no_room;
}

void krait_kernel_finish(struct krait_kernel *k, struct krait_kernel_summary *summary)
{
    struct krait_err err = { 0 };
    *summary = (struct krait_kernel_summary){ .scope = k->source->scope };
    krait_kernel_stop(k);
    k->takes_rest = true;
    k->source->finish(k, summary);
    for (size_t i = 0; i < k->cpu_count; i++)
        krait_kernel_finish_stream(k, &k->streams[i], summary);
    krait_kernel_classes_drop_unseen(&k->classes);
    if (krait_kernel_describe(k, &err) && !k->trouble.code)
        k->trouble = err;
    close_source(k, &summary->left);
}
