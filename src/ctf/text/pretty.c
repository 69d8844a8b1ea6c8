/* SPDX-License-Identifier: Apache-2.0 */
#include "ctf/text/pretty.h"

#include "base/digits.h"
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
    struct krait_buf *out = krait_printer_of(&cursor->d)->out;
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

static void add_head(void *self, const struct krait_ctf_cursor *cursor, struct krait_buf *out)
{
    struct krait_pretty *pretty = self;
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

/* -- lines -- */

static unsigned text_flags(const void *self)
{
    return ((const struct krait_pretty *)self)->text;
}

static const struct krait_line_form form = { .add_head = add_head,
                                             .text_flags = text_flags,
                                             KRAIT_LINE_TEXT };

int krait_pretty_event(struct krait_pretty *pretty, struct krait_ctf_cursor *cursor, struct krait_buf *out)
{
    size_t before = out->len, room;
    const struct krait_line_head *head = krait_line_head(&pretty->lines, &form, pretty, cursor);
    struct krait_line_context *context = krait_line_context(&pretty->lines, &form, pretty, cursor);
    if (KRAIT_UNLIKELY(!head || !context))
        return krait_line_failed(cursor, out, before);
    room = USUAL_MOST + head->room + context->text.len;
    char *to = krait_line_begin(&pretty->lines, cursor, out, before, room);
    if (to && cursor->cls->clock)
        to = put_time(pretty, cursor, to, room);
    if (KRAIT_UNLIKELY(!to))
        return krait_line_failed(cursor, out, before);
    krait_text_copy_lines(to, head->text, head->len);
    to = krait_line_fields(cursor, head->print, context, to + head->len, KRAIT_LINE_TEXT_END);
    if (KRAIT_UNLIKELY(!to))
        return krait_line_failed(cursor, out, before);
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
    krait_lines_done(&pretty->lines);
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
    if (!loss->count && stream->trace->metadata->is_ctf2)
        return; /* babeltrace2 2.1 tells nothing of what was before the first packet */
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
