/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/mark_says.h"

#include "base/log_level.h"
#include "trace/fields.h"

#include <string.h>

const char *const krait_mark_level_names[KRAIT_MARK_LEVELS] = {
    [KRAIT_MARK_DEBUG] = "debug",        [KRAIT_MARK_INFO] = "info",   [KRAIT_MARK_PLAIN] = "mark",
    [KRAIT_MARK_WARNING] = "warning",    [KRAIT_MARK_ERROR] = "error", [KRAIT_MARK_CRITICAL] = "critical",
    [KRAIT_MARK_EXCEPTION] = "exception"
};

/* How an event is read; `level` and `lead` are names of its fields. lttng-ust 2.13: lttng_ust_python.h. */
static const struct event {
    const char *name, *level, *lead;
    enum krait_mark_level otherwise;
} events[] = {
    { "log:record", "level", "logger", KRAIT_MARK_INFO },
    { "lttng_python:event", "int_loglevel", "logger_name", KRAIT_MARK_INFO },
    { "warning:shown", NULL, "category", KRAIT_MARK_WARNING },
    { "exception:uncaught", NULL, "exception", KRAIT_MARK_EXCEPTION },
};

static const struct event *find_event(const char *name)
{
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(events); i++) {
        if (strcmp(events[i].name, name) == 0)
            return &events[i];
    }
    return NULL;
}

/* False: there is no such field, or it is no number. */
static bool find_level(const struct event *event, const char *text, int32_t *level)
{
    struct krait_fields fields = { text, text + strlen(text) };
    struct krait_field field;
    if (!event->level || !krait_fields_find(&fields, event->level, &field))
        return false;
    char *end;
    long n = strtol(field.value, &end, 10);
    *level = (int32_t)n;
    return end > field.value;
}

enum krait_mark_level krait_mark_level(const char *event, const char *text)
{
    enum { INFO = 20, WARNING = 30, ERROR = 40, CRITICAL = 50 }; /* of Python's logging */
    const struct event *of = find_event(event);
    int32_t level;
    if (!of)
        return KRAIT_MARK_PLAIN;
    if (!find_level(of, text, &level))
        return of->otherwise;
    return level >= CRITICAL  ? KRAIT_MARK_CRITICAL
           : level >= ERROR   ? KRAIT_MARK_ERROR
           : level >= WARNING ? KRAIT_MARK_WARNING
           : level >= INFO    ? KRAIT_MARK_INFO
                              : KRAIT_MARK_DEBUG;
}

static void add_level(struct krait_buf *to, const struct event *event, const char *text)
{
    int32_t level;
    if (!find_level(event, text, &level))
        return;
    const char *name = krait_log_level_label(level);
    if (name)
        krait_buf_fmt(to, "%s ", name);
    else
        krait_buf_fmt(to, "level %d ", level);
}

static void add_field(struct krait_buf *to, const char *text, const char *name)
{
    KRAIT_AUTO_BUF own = { 0 };
    struct krait_fields fields = { text, text + strlen(text) };
    struct krait_field field;
    size_t n;
    if (!krait_fields_find(&fields, name, &field))
        return;
    const char *value = krait_field_text(&field, &own, &n);
    krait_buf_add(to, value, n);
    to->failed |= own.failed;
}

/* Of several lines, the first: behind it are the frames of an exception. */
static void keep_line(struct krait_buf *to, size_t begin)
{
    const char *end = to->len > begin ? memchr(to->data + begin, '\n', to->len - begin) : NULL;
    if (end)
        to->len = (size_t)(end - to->data);
}

void krait_mark_says(struct krait_buf *to, const char *event, const char *text)
{
    KRAIT_AUTO_BUF own = { 0 };
    const struct event *of = find_event(event);
    size_t n, begin = to->len;
    const char *message = krait_fields_message(text, &own, &n);
    if (of) {
        add_level(to, of, text);
        add_field(to, text, of->lead);
        krait_buf_str(to, to->len > begin && message ? ": " : "");
    }
    if (message)
        krait_buf_add(to, message, n);
    keep_line(to, begin);
    if (to->len == begin)
        krait_buf_str(to, event);
    to->failed |= own.failed;
}
