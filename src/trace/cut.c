/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/cut.h"

#include "base/outfile.h"
#include "ctf/read/reader.h"
#include "trace/cut_kernel.h"
#include "trace/cut_own.h"
#include "trace/import.h"

#include <string.h>
#include <sys/stat.h>

struct cutting {
    struct krait_cut *cut;
    const struct krait_trace *trace;
    struct krait_ctf_reader *reader;
    struct krait_strtab threads; /* paths of krait's own threads' files; the ids are the threads' indices */
    struct krait_strtab images;  /* folders of krait's own processes; the ids are the processes' indices */
    struct krait_cut_then then;
    struct krait_err *err;
};

static void cutting_done(struct cutting *c)
{
    krait_cut_then_done(&c->then);
    krait_ctf_close(c->reader);
    krait_strtab_done(&c->threads);
    krait_strtab_done(&c->images);
}

static int no_memory(struct cutting *c)
{
    return krait_err_set(c->err, -ENOMEM, "out of memory");
}

static int know_own(struct cutting *c)
{
    const struct krait_recordings *own = krait_recordings_of(c->trace);
    for (uint32_t i = 0; own && i < own->image_count; i++) {
        if (krait_strtab_add(&c->images, own->images[i].dir, strlen(own->images[i].dir)) == KRAIT_NO_ID)
            return no_memory(c);
    }
    for (uint32_t i = 0; own && i < own->file_count; i++) {
        if (krait_strtab_add(&c->threads, own->files[i].path, strlen(own->files[i].path)) == KRAIT_NO_ID)
            return no_memory(c);
    }
    return 0;
}

/* The index of the process that krait recorded there; KRAIT_NO_ID: it is another trace. */
static uint32_t process_of(const struct cutting *c, const struct krait_ctf_trace *trace)
{
    return krait_strtab_find(&c->images, trace->dir, strlen(trace->dir));
}

/* Of a part of a recording, no more than it is of. */
static struct krait_range range_of(const struct cutting *c, const struct krait_ctf_trace *trace)
{
    const struct krait_recordings *own = krait_recordings_of(c->trace);
    uint32_t process = process_of(c, trace);
    if (process == KRAIT_NO_ID)
        return krait_cut_is_kernels(trace) ? krait_cut_kernel_clip(trace, c->cut->range) : c->cut->range;
    return krait_image_clip(&own->images[process], c->cut->range);
}

/* Processes that had ended before the range, or began behind it, are no part of it. */
static bool lived(const struct cutting *c, uint32_t process)
{
    const struct krait_process *p = &c->trace->processes[process];
    return p->end_ns >= c->cut->range.from_ns && p->begin_ns < c->cut->range.to_ns;
}

/* ---- folders and metadata ---- */

static char *dir_of(const struct cutting *c, const struct krait_ctf_trace *trace)
{
    char *dir;
    return asprintf(&dir, *trace->below ? "%s/%s" : "%s%s", c->cut->to, trace->below) < 0 ? NULL : dir;
}

/* With all folders above it, of which the first `there` characters exist. */
static int make_dirs(char *dir, size_t there, struct krait_err *err)
{
    for (char *slash = dir + there; slash; *slash = '/') {
        slash = *slash ? strchr(slash + 1, '/')
                       : NULL; /* there is nothing behind a folder that is `there` itself */
        if (slash)
            *slash = '\0';
        if (mkdir(dir, 0777) && errno != EEXIST)
            return krait_err_errno(err, "cannot make the folder %s", dir);
        if (!slash)
            return 0;
    }
    return 0;
}

static int write_metadata(struct cutting *c, const struct krait_ctf_trace *trace, uint32_t process,
                          const char *dir)
{
    KRAIT_AUTO_OUTFILE out = KRAIT_OUTFILE_INIT;
    KRAIT_AUTO_FREE char *from = NULL, *to = NULL;
    KRAIT_AUTO_BUF text = { 0 };
    if (asprintf(&from, "%s/" KRAIT_FILE_METADATA, trace->dir) < 0 ||
        asprintf(&to, "%s/" KRAIT_FILE_METADATA, dir) < 0)
        return no_memory(c);
    if (krait_buf_read_file(&text, from))
        return krait_err_errno(c->err, "%s", from);
    int rc = krait_outfile_open(&out, to, c->err);
    if (rc)
        return rc;
    krait_buf_char(&text, '\0');
    if (text.failed)
        return no_memory(c);
    if (process == KRAIT_NO_ID)
        krait_buf_add(&out.buf, text.data, text.len - 1);
    else
        krait_cut_metadata(&out.buf, text.data, range_of(c, trace));
    return krait_outfile_commit(&out, c->err);
}

static int begin_trace(struct cutting *c, const struct krait_ctf_trace *trace)
{
    uint32_t process = process_of(c, trace);
    if (process != KRAIT_NO_ID && !lived(c, process))
        return 0;
    KRAIT_AUTO_FREE char *dir = dir_of(c, trace);
    if (!dir)
        return no_memory(c);
    int rc = make_dirs(dir, strlen(c->cut->to), c->err);
    if (process == KRAIT_NO_ID && krait_cut_is_kernels(trace)) {
        uint64_t *bytes = &c->cut->copied.bytes;
        rc = rc ? rc : krait_cut_kernel(c->trace, c->reader, trace, range_of(c, trace), dir, bytes, c->err);
    } else {
        rc = rc ? rc : write_metadata(c, trace, process, dir);
    }
    c->cut->parts += !rc;
    if (rc || process == KRAIT_NO_ID)
        return rc;
    const struct krait_cut_edges edges = krait_cut_edges_of(trace, range_of(c, trace), krait_ctf_clock_ns);
    return krait_cut_definitions(&c->cut->copied, c->trace, process, &edges, dir, c->err);
}

/* ---- streams ---- */

/* Then a thread may go on for as long as the part does, without an event. */
static bool is_part(const struct cutting *c, uint32_t process)
{
    const struct krait_range *range = &krait_recordings_of(c->trace)->images[process].range;
    return range->to_ns != UINT64_MAX;
}

static int put_before(void *ctx, const struct krait_ctf_stream *stream, uint64_t ticks,
                      struct krait_buf *events)
{
    struct cutting *c = ctx;
    uint32_t thread = krait_strtab_find(&c->threads, stream->path, strlen(stream->path));
    uint64_t from_ns = range_of(c, stream->trace).from_ns;
    bool is_there = thread != KRAIT_NO_ID &&
                    (c->trace->threads[thread].end_ns >= from_ns || is_part(c, process_of(c, stream->trace)));
    return is_there ? krait_cut_before(events, c->trace, thread, from_ns, ticks, &c->then) : 0;
}

static bool is_definitions(const struct krait_ctf_stream *stream)
{
    const char *slash = strrchr(stream->path, '/');
    return strcmp(slash ? slash + 1 : stream->path, KRAIT_FILE_DEFINITIONS) == 0;
}

static int copy_stream(struct cutting *c, const struct krait_ctf_stream *stream)
{
    uint32_t process = process_of(c, stream->trace);
    bool is_own = process != KRAIT_NO_ID;
    if (is_own && (!lived(c, process) || is_definitions(stream)))
        return 0;
    if (!is_own && krait_cut_is_kernels(stream->trace) && krait_cut_is_carried(stream))
        return 0;
    KRAIT_AUTO_FREE char *dir = dir_of(c, stream->trace);
    if (!dir)
        return no_memory(c);
    struct krait_range range = range_of(c, stream->trace);
    const struct krait_copy_options options = {
        .from_ns = range.from_ns ? (int64_t)range.from_ns : INT64_MIN,
        .until_ns = range.to_ns != UINT64_MAX ? (int64_t)range.to_ns : INT64_MAX,
        .time = is_own ? krait_ctf_clock_ns : krait_ctf_ns_rounded,
        .lost_before = is_own,
        .before = is_own ? put_before : NULL,
        .ctx = c,
        .progress = c->trace->progress,
        .progress_ctx = c->trace->progress_ctx,
    };
    return krait_ctf_copy_stream(&c->cut->copied, c->reader, stream, dir, &options, c->err);
}

int krait_trace_cut(struct krait_cut *cut, const struct krait_trace *trace, struct krait_err *err)
{
    KRAIT_CLEANUP(cutting_done) struct cutting c = { .cut = cut, .trace = trace, .err = err };
    int rc = krait_ctf_open(&c.reader, &cut->path, 1, NULL, err);
    rc = rc ? rc : know_own(&c);
    for (uint32_t i = 0; !rc && i < c.reader->trace_count; i++)
        rc = begin_trace(&c, c.reader->traces[i]);
    for (uint32_t i = 0; !rc && i < c.reader->stream_count; i++)
        rc = copy_stream(&c, c.reader->streams[i]);
    if (!rc && !cut->copied.damage.code)
        cut->copied.damage = c.reader->damage;
    return rc;
}
