/* SPDX-License-Identifier: Apache-2.0 */
#include "ctf/text/data_event.h"

#include "base/csv.h"
#include "base/digits.h"
#include "base/json.h"

/* What stands around a line's time and stream. */
struct frame {
    const char *before, *between, *alone, *end; /* `alone`: before the stream where there is no time */
    unsigned text;                              /* enum krait_text_flags */
};

static const struct frame frames[] = {
    [KRAIT_DATA_JSON] = { KRAIT_JSON_FIRST("time_ns") "\"", "\"" KRAIT_JSON_NEXT("stream"),
                          KRAIT_JSON_FIRST("stream"), "}\n", KRAIT_TEXT_JSON },
    [KRAIT_DATA_LONG] = { "", ",", ",", "\n", KRAIT_TEXT_JSON_CELLS },
    [KRAIT_DATA_WIDE] = { "", ",", ",", "\n", KRAIT_TEXT_CELLS },
};

static const struct frame number_frame = { KRAIT_JSON_FIRST("time_ns"), KRAIT_JSON_NEXT("stream"),
                                           KRAIT_JSON_FIRST("stream"), "}\n", KRAIT_TEXT_JSON };

static const struct frame *frame_of(const struct krait_data *data)
{
    return data->form == KRAIT_DATA_JSON && data->time_is_number ? &number_frame : &frames[data->form];
}

enum { FRAME_MOST = 128 }; /* all of a frame, a time and a stream's number, and what is overwritten behind */

void krait_data_done(struct krait_data *data)
{
    krait_lines_done(&data->lines);
}

const char *const krait_data_scope_names[KRAIT_SCOPES] = { "packet_context", "common_context",
                                                           "event_context", "payload" };

static unsigned text_flags(const void *self)
{
    return frame_of(self)->text;
}

/* -- heads -- */

static void add_json_head(const struct krait_ctf_cursor *cursor, struct krait_buf *out)
{
    static const char *const texts[] = { "hostname", "procname" };
    const struct krait_ctf_metadata *md = cursor->trace->metadata;
    krait_buf_str(out, KRAIT_JSON_NEXT("event"));
    krait_json_cstr(out, cursor->event->name);
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(texts); i++) {
        const char *text = krait_ctf_env_text(md, texts[i], NULL);
        if (text)
            krait_json_key_text(out, texts[i], text);
    }
    const struct krait_env_entry *vpid = krait_ctf_env(md, "vpid");
    if (vpid && !vpid->text)
        krait_buf_fmt(out, KRAIT_JSON_NEXT("vpid") "%lld", (long long)vpid->value);
}

static void add_head(void *self, const struct krait_ctf_cursor *cursor, struct krait_buf *out)
{
    const struct krait_data *data = self;
    if (data->form == KRAIT_DATA_JSON) {
        add_json_head(cursor, out);
        return;
    }
    krait_buf_char(out, ',');
    krait_csv_cstr(out, cursor->event->name);
}

static const struct krait_line_form form = { .add_head = add_head,
                                             .text_flags = text_flags,
                                             .scope_names = krait_data_scope_names,
                                             .packet_end = "",
                                             .packet_end_len = 0 };

/* -- lines -- */

static char *put_literal(char *to, const char *text)
{
    size_t n = strlen(text);
    memcpy(to, text, n);
    return to + n;
}

enum { TENTH_NS = KRAIT_TEN_8 };

/* Any time; keeps what the times of its tenth of a second begin with. */
static KRAIT_COLD char *put_new_time(struct krait_data *data, char *to, const struct frame *frame, int64_t ns)
{
    char *end = put_literal(data->prefix, frame->before);
    data->prefix_known = ns >= TENTH_NS;
    if (!data->prefix_known)
        return krait_put_i64(put_literal(to, frame->before), ns);
    data->prefix_ns = ns - ns % TENTH_NS;
    end = krait_put_u64(end, (uint64_t)(ns / TENTH_NS));
    data->prefix_len = (size_t)(end - data->prefix);
    memcpy(to, data->prefix, sizeof(data->prefix));
    return krait_put_eight(to + data->prefix_len, (uint32_t)(ns % TENTH_NS));
}

static inline char *put_time(struct krait_data *data, char *to, const struct frame *frame, int64_t ns)
{
    uint64_t rest = (uint64_t)ns - (uint64_t)data->prefix_ns;
    if (KRAIT_UNLIKELY(!data->prefix_known || rest >= TENTH_NS))
        return put_new_time(data, to, frame, ns);
    memcpy(to, data->prefix, sizeof(data->prefix));
    return krait_put_eight(to + data->prefix_len, (uint32_t)rest);
}

int krait_data_event(struct krait_data *data, struct krait_ctf_cursor *cursor, struct krait_buf *out)
{
    size_t before = out->len;
    const struct frame *frame = frame_of(data);
    const struct krait_line_head *head = krait_line_head(&data->lines, &form, data, cursor);
    struct krait_line_context *context = krait_line_context(&data->lines, &form, data, cursor);
    if (KRAIT_UNLIKELY(!head || !context))
        return krait_line_failed(cursor, out, before);
    char *to =
        krait_line_begin(&data->lines, cursor, out, before, FRAME_MOST + head->room + context->text.len);
    if (KRAIT_UNLIKELY(!to))
        return krait_line_failed(cursor, out, before);
    if (KRAIT_LIKELY(cursor->cls->clock))
        to = put_literal(put_time(data, to, frame, cursor->ns), frame->between);
    else
        to = put_literal(to, frame->alone);
    to = krait_put_u32(to, cursor->stream->index);
    krait_text_copy_lines(to, head->text, head->len);
    to = krait_line_fields(cursor, head->print, context, to + head->len, 0);
    if (KRAIT_UNLIKELY(!to))
        return krait_line_failed(cursor, out, before);
    to = put_literal(to, frame->end);
    out->len = (size_t)(to - out->data);
    return 0;
}

/* -- losses -- */

static void add_ns(const struct krait_data *data, struct krait_buf *out, const char *key, int64_t ns)
{
    const char *quote = data->time_is_number ? "" : "\"";
    krait_json_key(out, key);
    krait_buf_fmt(out, "%s%lld%s", quote, (long long)ns, quote);
}

void krait_data_json_loss(const struct krait_data *data, const struct krait_ctf_loss *loss,
                          struct krait_buf *out)
{
    const struct krait_ctf_clock *clock = loss->has_times ? loss->stream->cls->clock : NULL;
    krait_buf_fmt(out, KRAIT_JSON_FIRST("lost") "\"%ss\"", loss->kind);
    krait_json_key_u64_or_null(out, "count", loss->count, loss->count);
    krait_json_key_u64(out, "stream", loss->stream->index);
    if (clock) {
        add_ns(data, out, "begin_ns", krait_ctf_ns(clock, loss->begin));
        add_ns(data, out, "end_ns", krait_ctf_ns(clock, loss->end));
    }
    krait_buf_str(out, "}\n");
}
