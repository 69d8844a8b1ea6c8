/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/cut_kernel.h"

#include "base/outfile.h"
#include "ctf/copy/copy.h"
#include "ctf/format.h"
#include "trace/cut_own.h"
#include "trace/kernel/kernel.h"
#include "trace/kernel/kernel_carried.h"

#include <string.h>

#define CARRIED "carried_0" /* the stream's file */

enum {
    CARRIED_INSTANCE = 1 << 20, /* tracers count streams by CPU */
    NO_TID = -1,                /* no event of a thread or CPU */
    COMPACT = 10,
    EXTENDED = 18, /* bytes of an event's header and context: see kernel/kernel_stream.h */
    EXTENDED_ID = 0xffff,
    PACKET = 1 << 20, /* bytes; then the next packet begins */
};

struct extended {
    uint16_t tag;
    uint32_t id;
    uint64_t ticks;
    int32_t tid;
} __attribute__((packed));
_Static_assert(sizeof(struct extended) == EXTENDED, "drawn in kernel/kernel_stream.h");

struct carrying {
    const struct krait_trace *trace;
    struct krait_ctf_reader *reader;
    const struct krait_ctf_trace *of;
    struct krait_range range;
    struct krait_cut_edges edges;
    uint64_t ticks;           /* of the events of kernel_carried.h that come */
    struct krait_buf packet;  /* its events */
    uint64_t first, last;     /* their times */
    uint64_t count;           /* of packets so far */
    struct krait_outfile out; /* the stream */
    struct krait_err *err;
};

static void carrying_done(struct carrying *c)
{
    krait_buf_done(&c->packet);
    krait_outfile_done(&c->out);
}

bool krait_cut_is_kernels(const struct krait_ctf_trace *trace)
{
    static const char krait[] = "krait ";
    const struct krait_ctf_metadata *metadata = trace->metadata;
    return strcmp(krait_ctf_env_text(metadata, "domain", ""), "kernel") == 0 && metadata->clock_count == 1 &&
           strncmp(krait_ctf_env_text(metadata, "recorded_by", ""), krait, strlen(krait)) == 0;
}

static bool is_file(const struct krait_ctf_stream *stream, const char *name)
{
    const char *slash = strrchr(stream->path, '/');
    return strcmp(slash ? slash + 1 : stream->path, name) == 0;
}

bool krait_cut_is_carried(const struct krait_ctf_stream *stream)
{
    return is_file(stream, CARRIED);
}

struct krait_range krait_cut_kernel_clip(const struct krait_ctf_trace *trace, struct krait_range range)
{
    uint64_t from_ns = (uint64_t)krait_ctf_env_int(trace->metadata, KRAIT_ENV_CUT_FROM, 0),
             to_ns = (uint64_t)krait_ctf_env_int(trace->metadata, KRAIT_ENV_CUT_UNTIL, -1);
    range.from_ns = KRAIT_MAX(range.from_ns, from_ns);
    return (struct krait_range){ range.from_ns, KRAIT_MAX(KRAIT_MIN(range.to_ns, to_ns), range.from_ns) };
}

/* ---- the stream ---- */

static void end_packet(struct carrying *c)
{
    struct krait_packet_head head = {
        .magic = KRAIT_CTF_MAGIC,
        .stream_instance = CARRIED_INSTANCE,
        .timestamp_begin = c->first,
        .timestamp_end = c->last,
        .content_size = 8 * (sizeof(head) + c->packet.len),
        .packet_size = 8 * (sizeof(head) + c->packet.len),
        .packet_seq_num = c->count,
    };
    if (!c->packet.len)
        return;
    memcpy(head.uuid, c->of->metadata->uuid, sizeof(head.uuid));
    krait_buf_add(&c->out.buf, &head, sizeof(head));
    krait_buf_add(&c->out.buf, c->packet.data, c->packet.len);
    krait_buf_clear(&c->packet);
    c->count++;
}

/* Times do not go back. */
static void put_event(struct carrying *c, uint32_t id, uint64_t ticks, const void *fields, size_t n)
{
    c->last = KRAIT_MAX(c->last, ticks);
    const struct extended head = { EXTENDED_ID, id, c->last, NO_TID };
    if (c->packet.len > PACKET)
        end_packet(c);
    if (!c->packet.len)
        c->first = c->last;
    krait_buf_add(&c->packet, &head, sizeof(head));
    krait_buf_add(&c->packet, fields, n);
}

static void put_carried(void *ctx, enum krait_carried_event event, const struct krait_buf *fields)
{
    struct carrying *c = ctx;
    put_event(c, krait_carried_id(event), c->ticks, fields->data, fields->len);
}

/* ---- events of the whole ---- */

static bool is_steal(const struct krait_ctf_cursor *cursor)
{
    return strcmp(cursor->event->name, "krait_steal") == 0;
}

/* The cursor's event, its fields skipped, as it is. */
static void copy_event(struct carrying *c, const struct krait_ctf_cursor *cursor)
{
    const uint8_t *event = cursor->d.bytes + cursor->event_at / 8, *end = cursor->d.bytes + cursor->d.at / 8;
    uint16_t id;
    memcpy(&id, event, sizeof(id));
    size_t head = id == EXTENDED_ID ? EXTENDED : COMPACT;
    if ((size_t)(end - event) >= head)
        put_event(c, (uint32_t)cursor->event->id, cursor->ticks, event + head, (size_t)(end - event) - head);
}

/* Of each round of steal times: that of the last before the range, or the first behind it. */
struct round {
    uint64_t before, behind; /* ticks; 0, UINT64_MAX: there is none */
};

static bool is_used(const struct carrying *c, const struct krait_ctf_cursor *cursor,
                    const struct round *round, bool behind)
{
    static const char *const stay[] = { "lttng_statedump_cpu_topology", "lttng_statedump_block_device",
                                        "lttng_statedump_interrupt" };
    if (is_steal(cursor))
        return cursor->ticks == (behind ? round->behind : round->before);
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(stay) && !behind; i++) {
        if (strcmp(cursor->event->name, stay[i]) == 0)
            return cursor->ticks <= c->edges.before;
    }
    return false;
}

static int each_event(struct carrying *c, const struct krait_ctf_stream *stream,
                      void (*each)(struct carrying *c, const struct krait_ctf_cursor *cursor, void *ctx),
                      void *ctx)
{
    struct krait_ctf_cursor cursor;
    if (krait_ctf_cursor_init(&cursor, c->reader, stream))
        return krait_err_set(c->err, -ENOMEM, "out of memory");
    while (krait_ctf_next(&cursor) == 1 && krait_ctf_event_skip(&cursor) == 0)
        each(c, &cursor, ctx);
    krait_ctf_cursor_done(&cursor);
    return 0; /* damage is told by who copies the stream */
}

static void find_round(struct carrying *c, const struct krait_ctf_cursor *cursor, void *ctx)
{
    struct round *round = ctx;
    if (!is_steal(cursor))
        return;
    if (cursor->ticks <= c->edges.before)
        round->before = KRAIT_MAX(round->before, cursor->ticks);
    else if (cursor->ticks >= c->edges.behind)
        round->behind = KRAIT_MIN(round->behind, cursor->ticks);
}

struct copying {
    struct round round;
    bool behind;
};

static void copy_used(struct carrying *c, const struct krait_ctf_cursor *cursor, void *ctx)
{
    const struct copying *copying = ctx;
    if (is_used(c, cursor, &copying->round, copying->behind))
        copy_event(c, cursor);
}

/* Those of krait's own streams, which are small: CPUs' streams have none. */
static int copy_events(struct carrying *c, bool behind)
{
    struct copying copying = { .round = { .behind = UINT64_MAX }, .behind = behind };
    int rc = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; !rc && i < c->reader->stream_count; i++) {
            const struct krait_ctf_stream *stream = c->reader->streams[i];
            bool is_own = is_file(stream, "statedump_0") || krait_cut_is_carried(stream);
            if (stream->trace == c->of && is_own)
                rc = each_event(c, stream, pass ? copy_used : find_round,
                                pass ? (void *)&copying : &copying.round);
        }
    }
    return rc;
}

/* ---- states ---- */

struct watching {
    struct krait_kernel_watch watch;
    struct carrying *c;
    int rc;
};

static void on_begin(void *ctx, const struct krait_kernel_states *states)
{
    struct watching *w = ctx;
    w->rc = krait_carried_states(states, put_carried, w->c);
    w->watch.done = true;
}

static void on_change(void *ctx, const struct krait_kchange *change)
{
    (void)ctx;
    (void)change;
}

static uint32_t machine_of(const struct carrying *c)
{
    uint32_t machine = 0;
    for (uint32_t i = 0; i < krait_kernel_machines(c->trace); i++) {
        if (strcmp(krait_kernel_dir(c->trace, i), c->of->dir) == 0)
            machine = i;
    }
    return machine;
}

static uint64_t after(uint64_t ns, int64_t first)
{
    return ns == UINT64_MAX ? ns : (int64_t)ns > first ? ns - (uint64_t)first : 0;
}

static bool goes_on(void *ctx, int64_t ns)
{
    const struct krait_trace *trace = ctx;
    (void)ns;
    return !trace->progress || trace->progress(trace->progress_ctx, 0);
}

static int run(struct carrying *c, struct krait_kernel_watch *watch, struct krait_kernel_states **states)
{
    struct krait_kernel_events *events;
    int rc = krait_trace_kernel_of(c->trace, machine_of(c), &events, c->err);
    if (rc)
        return rc;
    int64_t first = krait_kernel_events_first(events);
    const struct krait_kernel_options options = { .from_ns = after(c->range.from_ns, first),
                                                  .until_ns = after(c->range.to_ns, first),
                                                  .wakers = true,
                                                  .functions = true,
                                                  .watch = watch,
                                                  .goes_on = goes_on,
                                                  .ctx = (void *)c->trace };
    return krait_kernel_states_new(states, events, &options, c->err);
}

/* Nothing was recorded in the range: there is nothing to tell. */
static int but_none(struct carrying *c, int rc)
{
    if (rc == -ENODATA)
        *c->err = (struct krait_err){ 0 };
    return rc == -ENODATA ? 0 : rc;
}

static int put_before(struct carrying *c)
{
    struct watching w = { .watch = { .begin = on_begin, .change = on_change }, .c = c };
    struct krait_kernel_states *states = NULL;
    w.watch.ctx = &w;
    c->ticks = c->edges.before;
    int rc = copy_events(c, false);
    rc = rc ? rc : but_none(c, run(c, &w.watch, &states));
    krait_kernel_states_free(states);
    end_packet(c);
    return rc || !w.rc ? rc : krait_err_set(c->err, -ENOMEM, "out of memory");
}

static int put_behind(struct carrying *c)
{
    static const struct krait_buf no_fields = { 0 };
    struct krait_kernel_states *states = NULL;
    c->ticks = c->edges.behind;
    int rc = but_none(c, run(c, NULL, &states));
    if (!rc && states && (uint64_t)states->end_ns >= c->range.to_ns) {
        put_carried(c, KRAIT_CARRIED_END, &no_fields);
        rc = krait_carried_waits(states, put_carried, c);
    }
    krait_kernel_states_free(states);
    rc = rc ? rc : copy_events(c, true);
    end_packet(c);
    return rc;
}

static int write_stream(struct carrying *c, const char *dir, uint64_t *bytes)
{
    KRAIT_AUTO_FREE char *path = NULL;
    if (asprintf(&path, "%s/" CARRIED, dir) < 0)
        return krait_err_set(c->err, -ENOMEM, "out of memory");
    int rc = krait_outfile_open(&c->out, path, c->err);
    if (!rc && c->range.from_ns)
        rc = put_before(c);
    if (!rc && c->range.to_ns != UINT64_MAX)
        rc = put_behind(c);
    if (!rc && c->packet.failed)
        rc = krait_err_set(c->err, -ENOMEM, "out of memory");
    rc = rc ? rc : krait_outfile_commit(&c->out, c->err);
    *bytes += rc ? 0 : c->out.bytes;
    return rc;
}

/* ---- metadata ---- */

static int write_metadata(struct carrying *c, const char *dir)
{
    KRAIT_AUTO_OUTFILE out = KRAIT_OUTFILE_INIT;
    KRAIT_AUTO_FREE char *from = NULL, *to = NULL;
    KRAIT_AUTO_BUF text = { 0 };
    if (asprintf(&from, "%s/" KRAIT_FILE_METADATA, c->of->dir) < 0 ||
        asprintf(&to, "%s/" KRAIT_FILE_METADATA, dir) < 0)
        return krait_err_set(c->err, -ENOMEM, "out of memory");
    if (krait_buf_read_file(&text, from))
        return krait_err_errno(c->err, "%s", from);
    krait_buf_char(&text, '\0');
    if (text.failed)
        return krait_err_set(c->err, -ENOMEM, "out of memory");
    int rc = krait_outfile_open(&out, to, c->err);
    if (rc)
        return rc;
    krait_cut_metadata(&out.buf, text.data, c->range);
    krait_carried_declare(&out.buf, text.data);
    return krait_outfile_commit(&out, c->err);
}

int krait_cut_kernel(const struct krait_trace *trace, struct krait_ctf_reader *reader,
                     const struct krait_ctf_trace *of, struct krait_range range, const char *dir,
                     uint64_t *bytes, struct krait_err *err)
{
    KRAIT_CLEANUP(carrying_done)
    struct carrying c = { .trace = trace,
                          .reader = reader,
                          .of = of,
                          .range = range,
                          .edges = krait_cut_edges_of(of, range, krait_ctf_ns_rounded),
                          .out = KRAIT_OUTFILE_INIT,
                          .err = err };
    int rc = write_stream(&c, dir, bytes);
    return rc ? rc : write_metadata(&c, dir);
}

/* ---- of a recording that goes on ---- */

static struct krait_range from_tick(const struct krait_ctf_trace *of, uint64_t tick)
{
    int64_t ns = krait_ctf_ns_rounded(of->metadata->clocks[0], tick);
    return (struct krait_range){ (uint64_t)KRAIT_MAX(ns, 1), UINT64_MAX };
}

static int open_one(struct krait_ctf_reader **reader, const char *dir, struct krait_err *err)
{
    int rc = krait_ctf_open(reader, &dir, 1, NULL, err);
    if (!rc && ((*reader)->trace_count != 1 || !krait_cut_is_kernels((*reader)->traces[0])))
        rc = krait_err_set(err, -EBADMSG, "%s: no kernel trace of krait's", dir);
    return rc;
}

static void close_trace(struct krait_trace **trace)
{
    krait_trace_close(*trace);
}

static void close_reader(struct krait_ctf_reader **reader)
{
    krait_ctf_close(*reader);
}

int krait_cut_kernel_keep(const char *dir, uint64_t since, bool (*meanwhile)(void *ctx, uint64_t bytes),
                          void *ctx, struct krait_err *err)
{
    KRAIT_CLEANUP(close_reader) struct krait_ctf_reader *reader = NULL;
    KRAIT_CLEANUP(close_trace) struct krait_trace *trace = NULL;
    uint64_t bytes = 0;
    int rc = krait_trace_open(&trace, &dir, 1, 0, err);
    rc = rc ? rc : open_one(&reader, dir, err);
    if (rc)
        return rc;
    trace->progress = meanwhile;
    trace->progress_ctx = ctx;
    const struct krait_ctf_trace *of = reader->traces[0];
    struct krait_range range = krait_cut_kernel_clip(of, from_tick(of, since));
    if (krait_kernel_first(trace) >=
        (int64_t)range.from_ns) /* there is nothing before, or it is such a part already */
        return 0;
    return krait_cut_kernel(trace, reader, of, range, dir, &bytes, err);
}

int krait_cut_kernel_describe(const char *dir, struct krait_err *err)
{
    KRAIT_CLEANUP(close_reader) struct krait_ctf_reader *reader = NULL;
    const struct krait_ctf_stream *carried = NULL;
    int rc = open_one(&reader, dir, err);
    for (uint32_t i = 0; !rc && i < reader->stream_count; i++) {
        if (krait_cut_is_carried(reader->streams[i]) && reader->streams[i]->packet_count)
            carried = reader->streams[i];
    }
    if (rc || !carried)
        return rc;
    uint64_t before = carried->packets[carried->packet_count - 1].end;
    struct carrying c = { .of = carried->trace, .range = from_tick(carried->trace, before + 1), .err = err };
    return write_metadata(&c, dir);
}
