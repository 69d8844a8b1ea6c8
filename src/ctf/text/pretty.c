/* SPDX-License-Identifier: Apache-2.0 */
#include "ctf/text/pretty.h"

#include "ctf/scalar/digits.h"
#include "ctf/scalar/text.h"

#include <stdlib.h>
#include <string.h>

#define LITERAL(out, s) krait_text_add(out, s, sizeof(s) - 1)

static void add_str(struct krait_buf *out, const char *s)
{
    krait_text_add(out, s, strlen(s));
}

/* -- times -- */

static void add_seconds(struct krait_buf *out, int64_t ns)
{
    uint64_t magnitude = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
    if (ns < 0)
        LITERAL(out, "-");
    krait_text_u64(out, magnitude / KRAIT_NS_PER_S);
    LITERAL(out, ".");
    krait_text_digits(out, magnitude % KRAIT_NS_PER_S, 9);
}

/* Fills clock_text for a second; false where the C library cannot. */
static bool new_second(struct krait_pretty *pretty, int64_t second)
{
    struct tm tm;
    time_t t = (time_t)second;
    const char *format = pretty->flags & KRAIT_PRETTY_DATE ? "%Y-%m-%d %H:%M:%S." : "%H:%M:%S.";
    if (!(pretty->flags & KRAIT_PRETTY_GMT ? gmtime_r(&t, &tm) : localtime_r(&t, &tm)))
        return false;
    pretty->clock_len = strftime(pretty->clock_text, sizeof(pretty->clock_text), format, &tm);
    pretty->clock_second = second;
    pretty->clock_known = pretty->clock_len > 0;
    return pretty->clock_known;
}

/* Times before the origin have no time of day: seconds. */
static void add_time(struct krait_pretty *pretty, struct krait_buf *out, int64_t ns)
{
    int64_t second = ns / (int64_t)KRAIT_NS_PER_S;
    bool same = pretty->clock_known && pretty->clock_second == second;
    if (ns < 0 || pretty->flags & KRAIT_PRETTY_SECONDS || (!same && !new_second(pretty, second))) {
        add_seconds(out, ns);
        return;
    }
    krait_text_add(out, pretty->clock_text, pretty->clock_len);
    krait_text_digits(out, (uint64_t)(ns % (int64_t)KRAIT_NS_PER_S), 9);
}

/* One step back looks to babeltrace2 like no event before. */
static void add_delta(struct krait_pretty *pretty, struct krait_buf *out, int64_t ns, uint64_t ticks)
{
    bool cycles = pretty->flags & KRAIT_PRETTY_CYCLES;
    uint64_t delta = cycles ? ticks - pretty->last_ticks : (uint64_t)ns - (uint64_t)pretty->last_ns;
    bool known = pretty->any && delta != UINT64_MAX;
    LITERAL(out, "+");
    if (cycles) {
        if (known)
            krait_text_digits(out, delta, 12);
        else
            add_str(out, "??????????\?\?");
    } else if (known) {
        krait_text_u64(out, delta / KRAIT_NS_PER_S);
        LITERAL(out, ".");
        krait_text_digits(out, delta % KRAIT_NS_PER_S, 9);
    } else {
        LITERAL(out, "?.?????????");
    }
}

static void add_timestamp(struct krait_pretty *pretty, struct krait_buf *out,
                          const struct krait_ctf_cursor *cursor)
{
    bool names = pretty->flags & KRAIT_PRETTY_HEADER_NAMES;
    add_str(out, names ? "timestamp = " : "[");
    if (pretty->flags & KRAIT_PRETTY_CYCLES)
        krait_text_digits(out, cursor->ticks, 20);
    else
        add_time(pretty, out, cursor->ns);
    add_str(out, names ? "" : "] ");
    if (!(pretty->flags & KRAIT_PRETTY_NO_DELTA)) {
        add_str(out, names ? ", delta = " : "(");
        add_delta(pretty, out, cursor->ns, cursor->ticks);
        add_str(out, names ? "" : ") ");
    }
}

/* -- the usual form of time: [time of day] (+delta) -- */

enum { TENTH_NS = 100000000, USUAL_MOST = KRAIT_PRETTY_TIME + 32 };

/* Keeps the text of the tenth of a second that a time is in, when the next may be printed by put_usual. */
static void keep_tenth(struct krait_pretty *pretty, int64_t ns)
{
    const unsigned other =
        KRAIT_PRETTY_SECONDS | KRAIT_PRETTY_CYCLES | KRAIT_PRETTY_NO_DELTA | KRAIT_PRETTY_HEADER_NAMES;
    int64_t second = ns / (int64_t)KRAIT_NS_PER_S;
    pretty->tenth_known = pretty->any && !(pretty->flags & other) && ns >= 0 && pretty->clock_known &&
                          second == pretty->clock_second;
    if (!pretty->tenth_known)
        return;
    char *at = pretty->tenth_text;
    *at++ = '[';
    memcpy(at, pretty->clock_text, pretty->clock_len);
    at[pretty->clock_len] = (char)('0' + ns % (int64_t)KRAIT_NS_PER_S / TENTH_NS);
    pretty->tenth_len = pretty->clock_len + 2;
    pretty->tenth_ns = ns - ns % TENTH_NS;
}

/* A time in the same tenth of a second as the one before, and at most a tenth later: only sixteen digits are
 * new. `to` has room for USUAL_MOST bytes. NULL: it is another. */
static inline char *put_usual(const struct krait_pretty *pretty, char *to, int64_t ns)
{
    uint64_t rest = (uint64_t)ns - (uint64_t)pretty->tenth_ns;
    uint64_t delta = (uint64_t)ns - (uint64_t)pretty->last_ns;
    if (KRAIT_UNLIKELY(!pretty->tenth_known || rest >= TENTH_NS || delta >= TENTH_NS))
        return NULL;
    memcpy(to, pretty->tenth_text, sizeof(pretty->tenth_text));
    to = krait_put_eight(to + pretty->tenth_len, (uint32_t)rest);
    memcpy(to, "] (+0.0", 7);
    to = krait_put_eight(to + 7, (uint32_t)delta);
    memcpy(to, ") ", 2);
    return to + 2;
}

/* Any time. Returns where the text goes on, with room for n bytes; NULL when memory is out. */
static KRAIT_COLD char *put_other(struct krait_pretty *pretty, struct krait_ctf_cursor *cursor, size_t n)
{
    struct krait_buf *out = cursor->d.out;
    add_timestamp(pretty, out, cursor);
    keep_tenth(pretty, cursor->ns);
    return out->failed ? NULL : krait_print_room(&cursor->d, out->len, n);
}

/* The same for any event that has a time. */
static inline char *put_time(struct krait_pretty *pretty, struct krait_ctf_cursor *cursor, char *to, size_t n)
{
    char *behind = put_usual(pretty, to, cursor->ns);
    return KRAIT_LIKELY(behind) ? behind : put_other(pretty, cursor, n);
}

/* -- the trace's fields -- */

/* How the fields of a line are held together. */
struct line {
    struct krait_buf *out;
    bool names;
    bool begun; /* nothing has to be separated from what comes */
    bool any;   /* a field of the trace was printed */
};

static void begin_field(struct line *line, const char *name)
{
    if (!line->begun)
        LITERAL(line->out, ", ");
    if (line->names) {
        add_str(line->out, name);
        LITERAL(line->out, " = ");
    } else if (line->any) {
        LITERAL(line->out, ":");
    }
    line->any = true;
}

static void add_env(struct line *line, const struct krait_ctf_metadata *md, const char *entry,
                    const char *name)
{
    const char *text = krait_ctf_env_text(md, entry, NULL);
    if (!text)
        return;
    begin_field(line, name);
    add_str(line->out, text);
}

static void add_loglevel(struct line *line, int32_t level)
{
    static const char *const names[] = { "EMERG",          "ALERT",         "CRIT",         "ERR",
                                         "WARNING",        "NOTICE",        "INFO",         "DEBUG_SYSTEM",
                                         "DEBUG_PROGRAM",  "DEBUG_PROCESS", "DEBUG_MODULE", "DEBUG_UNIT",
                                         "DEBUG_FUNCTION", "DEBUG_LINE",    "DEBUG" };
    if (level < 0 || level >= (int32_t)KRAIT_ARRAY_LEN(names))
        return;
    begin_field(line, "loglevel");
    krait_buf_fmt(line->out, "TRACE_%s (%d)", names[level], (int)level);
}

static void add_trace(struct krait_pretty *pretty, struct line *line, const struct krait_ctf_trace *trace,
                      const struct krait_event_class *event)
{
    const struct krait_ctf_metadata *md = trace->metadata;
    if (pretty->flags & KRAIT_PRETTY_TRACE) {
        add_str(line->out, line->begun ? "" : ", ");
        krait_buf_fmt(line->out, line->names ? "trace = %s, " : "%s", trace->name);
    }
    if (pretty->flags & KRAIT_PRETTY_HOSTNAME)
        add_env(line, md, "hostname", "trace:hostname");
    if (pretty->flags & KRAIT_PRETTY_DOMAIN)
        add_env(line, md, "domain", "trace:domain");
    if (pretty->flags & KRAIT_PRETTY_PROCNAME)
        add_env(line, md, "procname", "trace:procname");
    const struct krait_env_entry *vpid = krait_ctf_env(md, "vpid");
    if (pretty->flags & KRAIT_PRETTY_VPID && vpid && !vpid->text) {
        begin_field(line, "trace:vpid");
        krait_buf_fmt(line->out, "(%lld)", (long long)vpid->value);
    }
    if (pretty->flags & KRAIT_PRETTY_LOGLEVEL)
        add_loglevel(line, event->log_level);
    if (pretty->flags & KRAIT_PRETTY_EMF && event->emf_uri && *event->emf_uri) {
        begin_field(line, "model.emf.uri");
        add_str(line->out, event->emf_uri);
    }
}

static void add_head(struct krait_pretty *pretty, const struct krait_ctf_cursor *cursor,
                     struct krait_buf *out)
{
    struct line line = { .out = out, .names = pretty->flags & KRAIT_PRETTY_HEADER_NAMES, .begun = true };
    line.begun = !cursor->cls->clock || !line.names;
    add_trace(pretty, &line, cursor->trace, cursor->event);
    if (line.any && !line.names)
        LITERAL(out, " ");
    if (!line.begun)
        LITERAL(out, ", ");
    add_str(out, line.names ? "name = " : "");
    add_str(out, cursor->event->unnamed ? "<unknown>" : cursor->event->name);
    add_str(out, line.names ? ", " : ": ");
}

static struct krait_pretty_head *new_head(struct krait_pretty *pretty, struct krait_ctf_cursor *cursor)
{
    KRAIT_AUTO_BUF text = { 0 };
    add_head(pretty, cursor, &text);
    struct krait_pretty_head *head = KRAIT_ARENA_NEW(&pretty->arena, struct krait_pretty_head);
    if (!head || text.failed)
        return NULL;
    head->event = cursor->event;
    char *lines = krait_arena_alloc(&pretty->arena, text.len + KRAIT_TEXT_LINE);
    if (!lines)
        return NULL;
    head->text = memcpy(lines, text.data, text.len);
    head->len = text.len;
    struct krait_program *program = krait_ctf_event_program(cursor);
    if (program && !program->steps && krait_print_compile(program, &cursor->reader->arena))
        return NULL;
    head->program = program;
    if (!head->program || krait_map_put(&pretty->heads, (uintptr_t)cursor->event, (uintptr_t)head))
        return NULL;
    head->room = USUAL_MOST + head->len + 2 * KRAIT_TEXT_BLOCK + head->program->steps_room;
    return head;
}

static KRAIT_COLD const struct krait_pretty_head *
find_head(struct krait_pretty *pretty, struct krait_ctf_cursor *cursor, struct krait_pretty_head *recent)
{
    const uint64_t *known = krait_map_get(&pretty->heads, (uintptr_t)cursor->event);
    const struct krait_pretty_head *head =
        known ? (const struct krait_pretty_head *)(uintptr_t)*known : new_head(pretty, cursor);
    if (!head)
        return NULL;
    *recent = *head;
    return recent;
}

static inline const struct krait_pretty_head *head_of(struct krait_pretty *pretty,
                                                      struct krait_ctf_cursor *cursor)
{
    enum { APART = 97 }; /* classes of two streams that are read by turns should not have one place */
    uint32_t place = (cursor->event->index + cursor->cls->index * APART) % KRAIT_PRETTY_RECENT;
    struct krait_pretty_head *recent = &pretty->recent[place];
    return KRAIT_LIKELY(recent->event == cursor->event) ? recent : find_head(pretty, cursor, recent);
}

static KRAIT_COLD int failed(struct krait_ctf_cursor *cursor, struct krait_buf *out, size_t before)
{
    out->len = before;
    return cursor->err.code ? cursor->err.code : krait_err_set(&cursor->err, -ENOMEM, "out of memory");
}

/* -- contexts -- */

enum { PACKET_TEXT_END = 2 }; /* ", " */

/* Prints it from where it begins, and leaves the decoder where it was. Memory alone can be short: the cursor
 * was through it. */
static int print_packet(struct krait_ctf_cursor *cursor, struct krait_buf *out)
{
    struct krait_program *program = &cursor->code->packet_context;
    struct krait_decoder before = cursor->d, *d = &cursor->d;
    if (!program->steps && krait_print_compile(program, &cursor->reader->arena))
        return -ENOMEM;
    d->out = out;
    d->at = cursor->context_at;
    d->bits_be = cursor->context_be;
    char *to = krait_print_room(d, 0, program->steps_room);
    to = to ? krait_print(d, program, 0, to) : NULL;
    *d = before;
    if (!to)
        return -ENOMEM;
    out->len = (size_t)(to - out->data);
    if (out->len)
        krait_text_add(out, ", ", PACKET_TEXT_END);
    return krait_buf_room(out, KRAIT_TEXT_LINE) ? 0 : -ENOMEM;
}

static KRAIT_COLD struct krait_pretty_context *new_packet(struct krait_pretty *pretty,
                                                          struct krait_ctf_cursor *cursor)
{
    uint32_t count = cursor->reader->stream_count;
    if (!pretty->contexts) {
        pretty->contexts = calloc(count, sizeof(*pretty->contexts));
        if (!pretty->contexts)
            return NULL;
        pretty->context_count = count;
    }
    struct krait_pretty_context *context = &pretty->contexts[cursor->stream->index];
    context->packet = NULL;
    context->size = KRAIT_PRETTY_UNKNOWN;
    krait_buf_clear(&context->text);
    if (print_packet(cursor, &context->text))
        return NULL;
    context->packet = cursor->packet;
    context->packet_len = context->text.len;
    return context;
}

static inline struct krait_pretty_context *context_of(struct krait_pretty *pretty,
                                                      struct krait_ctf_cursor *cursor)
{
    uint32_t stream = cursor->stream->index;
    bool known = stream < pretty->context_count && pretty->contexts[stream].packet == cursor->packet;
    return KRAIT_LIKELY(known) ? &pretty->contexts[stream] : new_packet(pretty, cursor);
}

/* Whether the event's context, which begins at bit `at`, has the bytes whose text is kept: a page may be read
 * behind a packet's (stream.h). */
static inline bool is_same(const struct krait_pretty_context *context, const struct krait_decoder *d,
                           uint64_t at)
{
    const uint8_t *p = d->bytes + at / 8;
    if (KRAIT_UNLIKELY(at + context->size > d->end))
        return false;
    for (uint32_t i = 0; i < context->word_count; i++) {
        uint64_t mask = i + 1 == context->word_count ? context->last_mask : UINT64_MAX, word;
        memcpy(&word, p + i * sizeof(word), sizeof(word));
        if ((word ^ context->words[i]) & mask)
            return false;
    }
    return true;
}

/* Keeps the text of an event's context, which is what its bytes at `p` make. */
static void keep(struct krait_pretty_context *context, const struct krait_program *program, const uint8_t *p,
                 const char *text, size_t len)
{
    size_t bytes = program->context_size;
    context->size = KRAIT_PRETTY_UNKNOWN; /* until all of it is kept */
    context->text.len = context->packet_len;
    if (!krait_buf_room(&context->text, len + KRAIT_TEXT_LINE))
        return;
    krait_text_add(&context->text, text, len);
    context->size = bytes * 8;
    context->align = program->context_align;
    context->word_count = (uint32_t)(bytes + 7) / 8;
    context->last_mask = 0;
    memset(&context->last_mask, 0xff, (bytes + 7) % 8 + 1);
    memcpy(context->words, p, context->word_count * 8);
}

/* -- lines -- */

/* Prints from the event's context on, and keeps its text. All classes of a stream have the same context: one
 * that they do not have, or whose text cannot be kept, is 0 bytes that never change. */
static KRAIT_APART char *put_new_context(struct krait_ctf_cursor *cursor, const struct krait_program *program,
                                         struct krait_pretty_context *context, char *to)
{
    struct krait_decoder *d = &cursor->d;
    size_t from = (size_t)(to - d->out->data);
    uint64_t align = program->context_align, at = (d->at + align - 1) & ~(align - 1);
    d->context_end = from;
    to = krait_print(d, program, 0, to);
    if (to)
        keep(context, program, d->bytes + at / 8, d->out->data + from, d->context_end - from);
    return to;
}

/* The packet's context, the event's contexts and fields, separated by ", ". `to` has room for all that does
 * not ask for itself. NULL: cursor->err is set. */
static inline char *put_fields(struct krait_ctf_cursor *cursor, const struct krait_program *program,
                               struct krait_pretty_context *context, char *to)
{
    struct krait_decoder *d = &cursor->d;
    uint64_t at = (d->at + context->align - 1) & ~(context->align - 1);
    bool same = is_same(context, d, at);
    size_t len = same ? context->text.len : context->packet_len;
    krait_text_copy_lines(to, context->text.data, len);
    to += len;
    if (KRAIT_UNLIKELY(!program->prints))
        to -= KRAIT_MIN(len, (size_t)PACKET_TEXT_END);
    if (KRAIT_LIKELY(same)) {
        d->at = at + context->size;
        to = krait_print(d, program, program->behind_context, to);
    } else {
        to = put_new_context(cursor, program, context, to);
    }
    return krait_ctf_event_passed(cursor, to != NULL) ? NULL : to;
}

int krait_pretty_event(struct krait_pretty *pretty, struct krait_ctf_cursor *cursor, struct krait_buf *out)
{
    size_t before = out->len, room;
    const struct krait_pretty_head *head = head_of(pretty, cursor);
    struct krait_pretty_context *context = context_of(pretty, cursor);
    if (KRAIT_UNLIKELY(!head || !context))
        return failed(cursor, out, before);
    cursor->d.out = out;
    room = head->room + context->text.len;
    char *to = krait_print_room(&cursor->d, before, room);
    if (to && cursor->cls->clock)
        to = put_time(pretty, cursor, to, room);
    if (KRAIT_UNLIKELY(!to))
        return failed(cursor, out, before);
    krait_text_copy_lines(to, head->text, head->len);
    to = put_fields(cursor, head->program, context, to + head->len);
    if (KRAIT_UNLIKELY(!to))
        return failed(cursor, out, before);
    *to++ = '\n';
    out->len = (size_t)(to - out->data);
    if (cursor->cls->clock) {
        pretty->any = true;
        pretty->last_ns = cursor->ns;
        pretty->last_ticks = cursor->ticks;
    }
    return 0;
}

void krait_pretty_done(struct krait_pretty *pretty)
{
    for (uint32_t i = 0; i < pretty->context_count; i++)
        krait_buf_done(&pretty->contexts[i].text);
    free(pretty->contexts);
    krait_map_done(&pretty->heads);
    krait_arena_done(&pretty->arena);
}

/* -- losses -- */

/* Of CTF 2, as babeltrace2 2.1 tells it, the UID. */
static void add_identity(struct krait_buf *out, const struct krait_ctf_metadata *md)
{
    if (md->is_ctf2) {
        md->uid ? krait_buf_fmt(out, "(UID: %s) ", md->uid) : krait_buf_str(out, "(no UID) ");
        return;
    }
    if (!md->has_uuid) {
        LITERAL(out, "(no UUID) ");
        return;
    }
    LITERAL(out, "(UUID: ");
    for (int i = 0; i < 16; i++)
        krait_buf_fmt(out, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", md->uuid[i]);
    LITERAL(out, ") ");
}

void krait_pretty_loss(struct krait_pretty *pretty, const struct krait_ctf_loss *loss, struct krait_buf *out)
{
    const struct krait_ctf_stream *stream = loss->stream;
    if (loss->count)
        krait_buf_fmt(out, "WARNING: Tracer discarded %llu %s%s ", (unsigned long long)loss->count,
                      loss->kind, loss->count == 1 ? "" : "s");
    else
        krait_buf_fmt(out, "WARNING: Tracer may have discarded %ss ", loss->kind);
    if (loss->has_times && stream->cls->clock) {
        LITERAL(out, "between [");
        add_time(pretty, out, krait_ctf_ns(stream->cls->clock, loss->begin));
        LITERAL(out, "] and [");
        add_time(pretty, out, krait_ctf_ns(stream->cls->clock, loss->end));
        LITERAL(out, "]");
    } else {
        LITERAL(out, "(unknown time range)");
    }
    krait_buf_fmt(out, " in trace \"%s\" ", stream->trace->name);
    add_identity(out, stream->trace->metadata);
    krait_buf_fmt(out, "within stream \"%s\" (stream class ID: %llu, stream ID: %llu).\n", stream->path,
                  (unsigned long long)stream->cls->id, (unsigned long long)stream->id);
}
