/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait report --by mark`: which marks were set, how often, and when. Those of krait's own recordings are told apart by what
 * they say: krait.mark() by its text, a log record by the line that logs it, a line of trace_marker by its text, a probe by its
 * arguments. Those of other traces are told apart by their names, LTTng's log records by the line, too.
 */
#include "base/array.h"
#include "base/log_level.h"
#include "cmd/report.h"
#include "cmd/sheet.h"
#include "trace/fields.h"
#include "trace/importer.h"
#include "trace/track.h"

#include <ctype.h>
#include <string.h>

/* Further texts share a row with all others of their event. */
enum { MOST_ROWS = 10000 };

/* Which of an event's fields tell its rows apart; without `fields`, all that are texts, and all are shown as the event has
 * them. Else the first `shown` are shown. The next one does not tell them apart: of that, a row shows what all its marks
 * have in common. */
static const struct telling {
    const char *event;  /* a star at its end stands for the rest of the name */
    const char *fields; /* in the order in which the event has them */
    uint32_t shown;
    bool has_message; /* shows none of them, but what the messages of its marks have in common */
} tellings[] = {
    { "user:mark", "text", 1, false },
    { "log:record", "level logger message file line", 2, false },
    { "warning:shown", "category message file line", 1, false },
    { "exception:uncaught", "type", 1, false },
    { "audit:event", "name", 1, false },
    { "user:counter", "name", 1, false },
    /* trace/kernel/kernel_events.def: by krait and LTTng, by perf. */
    { "ftrace_print", "text buf", 1, false },
    { "ftrace:print", "text buf", 1, false },
    { "usdt:*", NULL, 0, false },
    { "sdt_*", NULL, 0, false },
};

/* The same of other traces; all events that are not here show what their messages have in common, too. lttng-ust 2.13:
 * liblttng-ust-python-agent/lttng_ust_python.h, lttng/tracelog.h. */
static const struct telling others[] = {
    { "lttng_python:event", "logger_name lineno int_loglevel", 0, true },
    { "lttng_ust_tracelog:*", "line file", 0, true },
};

struct mark {
    uint64_t count, first_ns, last_ns, tracks;
    uint32_t last_track;
    uint32_t name;
    const char *shown, *said; /* the latter by its first mark; NULL: it says nothing */
    size_t head, tail;        /* bytes with which all that it says begins and ends */
    bool differs;             /* ... what its marks say */
    const char *text;         /* all that is shown */
};

struct marks {
    struct report *report;
    struct krait_strtab keys; /* what makes a row; its ids are their indices */
    struct krait_arena arena;
    struct krait_buf key, shown, said, own; /* of the mark at hand */
    struct mark *items;
    uint32_t count, cap;
    uint32_t *of_names; /* the row + 1 of each name whose marks are told apart by nothing; 0: none yet */
    uint32_t name_cap;
    uint32_t track;     /* that is walked */
    uint64_t of_slices; /* begins and ends of spans, which are no marks */
};

static void marks_done(struct marks *marks)
{
    krait_strtab_done(&marks->keys);
    krait_arena_done(&marks->arena);
    krait_buf_done(&marks->key);
    krait_buf_done(&marks->shown);
    krait_buf_done(&marks->said);
    krait_buf_done(&marks->own);
    free(marks->of_names);
    free(marks->items);
}

/* -- columns -- */

/* A time of the mark at an offset, from the zero of the trace. */
static struct krait_sheet_cell get_time(void *of, const void *row, size_t offset)
{
    const struct marks *marks = of;
    uint64_t zero_ns = marks->report->zero_ns, ns = krait_sheet_number_at(NULL, row, offset).number;
    return krait_sheet_number(ns > zero_ns ? ns - zero_ns : 0);
}

static struct krait_sheet_cell get_name(void *of, const void *row, size_t arg)
{
    const struct marks *marks = of;
    const struct mark *mark = row;
    return krait_sheet_name(krait_track_text(marks->report->trace, mark->name));
}

static const struct krait_sheet_column columns[] = {
#define OF(member) offsetof(struct mark, member)
    { { "marks", 0, 0, 0 }, "marks", KRAIT_SHEET_COUNT, 0, krait_sheet_number_at, OF(count) },
    { { "first", 0, 0, 1 }, "first_ns", KRAIT_SHEET_TIME, 0, get_time, OF(first_ns) },
    { { "last", 0, 0, 2 }, "last_ns", KRAIT_SHEET_TIME, 0, get_time, OF(last_ns) },
    { { "tracks", 0, 0, 3 }, "tracks", KRAIT_SHEET_COUNT, 0, krait_sheet_number_at, OF(tracks) },
    { { "mark", KRAIT_COLUMN_LEFT | KRAIT_COLUMN_SHORTEN, 12, 0 }, "name", KRAIT_SHEET_NAME, 0, get_name, 0 },
    /* The last: a table in which no mark has a text has none. */
    { { "text", KRAIT_COLUMN_LEFT | KRAIT_COLUMN_SHORTEN, 12, 0 },
      "text",
      KRAIT_SHEET_NAME,
      KRAIT_SHEET_DASH,
      krait_sheet_name_at,
      OF(text) },
#undef OF
};

/* -- what marks say -- */

static bool is_of(const struct telling *telling, const char *event)
{
    size_t n = strlen(telling->event);
    return telling->event[n - 1] == '*' ? strncmp(telling->event, event, n - 1) == 0
                                        : strcmp(telling->event, event) == 0;
}

/* NULL: nothing tells the event's marks apart. */
static const struct telling *telling_of(const struct krait_track *track, const char *event)
{
    bool is_known = track->importer == KRAIT_IMPORTER_krait_marks ||
                    track->importer == KRAIT_IMPORTER_krait_told ||
                    track->importer == KRAIT_IMPORTER_kernel_said;
    const struct telling *of = is_known ? tellings : others;
    size_t count = is_known ? KRAIT_ARRAY_LEN(tellings) : KRAIT_ARRAY_LEN(others);
    for (size_t i = 0; i < count; i++) {
        if (is_of(&of[i], event))
            return &of[i];
    }
    return NULL;
}

static void add_shown(struct krait_buf *shown, const struct krait_field *field, const char *text, size_t n)
{
    const char *level = strncmp(field->name, "level ", strlen("level ")) == 0
                            ? krait_log_level_label((int32_t)strtol(text, NULL, 10))
                            : NULL;
    krait_buf_str(shown, shown->len ? " " : "");
    krait_buf_add(shown, level ? level : text, level ? strlen(level) : n);
}

static void read_message(struct marks *marks, const char *text)
{
    size_t n;
    const char *message = krait_fields_message(text, &marks->own, &n);
    krait_buf_clear(&marks->said);
    if (message)
        krait_buf_add(&marks->said, message, n);
}

static void read_fields(struct marks *marks, const struct telling *telling, const char *text)
{
    struct krait_fields fields = { text, text + strlen(text) };
    struct krait_field field;
    for (uint32_t i = 0; krait_fields_find(&fields, telling->fields, &field); i++) {
        size_t n;
        const char *value = krait_field_text(&field, &marks->own, &n);
        if (i < telling->shown)
            add_shown(&marks->shown, &field, value, n);
        krait_buf_add(i == telling->shown && !telling->has_message ? &marks->said : &marks->key, value, n);
        krait_buf_char(&marks->key, '\n');
    }
    if (telling->has_message)
        read_message(marks, text);
}

/* The arguments of a probe: `event = "open", arg2 = 7`. perf puts fields of its own before them. */
static void read_arguments(struct marks *marks, const char *text)
{
    struct krait_fields fields = krait_fields_own((struct krait_fields){ text, text + strlen(text) });
    struct krait_field field;
    while (krait_fields_next(&fields, &field)) {
        if (strncmp(field.name, "perf_", strlen("perf_")) == 0)
            continue;
        krait_buf_fmt(&marks->said, "%s%.*s = %.*s", marks->said.len ? ", " : "", (int)field.name_len,
                      field.name, (int)field.value_len, field.value);
        krait_buf_add(&marks->key, field.value, *field.value == '"' ? field.value_len : 0);
        krait_buf_char(&marks->key, '\n');
    }
}

/* A mark says the same as those before it, or from now on only what they have in common. */
static void take_said(struct mark *mark, const char *said, size_t n)
{
    const char *first = mark->said;
    size_t length = strlen(first), head = 0, tail = 0;
    if (n == length && memcmp(first, said, n) == 0)
        return;
    while (head < KRAIT_MIN(mark->head, n) && first[head] == said[head])
        head++;
    size_t most = KRAIT_MIN(mark->tail, KRAIT_MIN(n, length) - head);
    while (tail < most && first[length - 1 - tail] == said[n - 1 - tail])
        tail++;
    mark->head = head;
    mark->tail = tail;
    mark->differs = true;
}

static bool is_in_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

/* "WARNING shop.orders: order ... has no address"; words that differ in a part are left out as a whole. */
static const char *text_of(struct marks *marks, const struct mark *mark)
{
    const char *said = mark->said, *lead = mark->shown ? mark->shown : "", *colon = mark->shown ? ": " : "";
    size_t head = mark->head, length = said ? strlen(said) : 0, tail = length - mark->tail;
    if (!said || !mark->differs)
        return said ? krait_arena_fmt(&marks->arena, "%s%s%s", lead, colon, said) : mark->shown;
    while (head && is_in_word(said[head - 1]))
        head--;
    while (tail < length && is_in_word(said[tail]))
        tail++;
    return krait_arena_fmt(&marks->arena, "%s%s%.*s...%s", lead, colon, (int)head, said, said + tail);
}

/* -- rows -- */

static struct mark *new_row(struct marks *marks, uint32_t name)
{
    bool has_text = marks->shown.len > 0, says = marks->said.len > 0;
    if (!KRAIT_GROW(marks->items, marks->cap, marks->count + 1))
        return NULL;
    struct mark *mark = &marks->items[marks->count++];
    *mark = (struct mark){
        .name = name, .last_track = KRAIT_NO_ID, .head = marks->said.len, .tail = marks->said.len
    };
    if (has_text)
        mark->shown = krait_arena_strndup(&marks->arena, marks->shown.data, marks->shown.len);
    if (says)
        mark->said = krait_arena_strndup(&marks->arena, marks->said.data, marks->said.len);
    return (has_text && !mark->shown) || (says && !mark->said) ? NULL : mark;
}

/* What the mark at hand says is no row's if there are too many. */
static void forget_text(struct marks *marks, uint32_t name)
{
    krait_buf_clear(&marks->key);
    krait_buf_clear(&marks->shown);
    krait_buf_clear(&marks->said);
    krait_buf_fmt(&marks->key, "%u more", name);
    krait_buf_str(&marks->shown, "(more texts)");
}

/* The row of the mark at hand, new if there was none; NULL: memory is out. */
static struct mark *row_of(struct marks *marks, uint32_t name, const struct telling *telling,
                           const char *text)
{
    struct krait_buf *key = &marks->key;
    krait_buf_clear(key);
    krait_buf_clear(&marks->shown);
    krait_buf_clear(&marks->said);
    krait_buf_fmt(key, "%u\n", name);
    if (telling && telling->fields)
        read_fields(marks, telling, text);
    else if (telling)
        read_arguments(marks, text);
    else
        read_message(marks, text);
    if (key->failed || marks->shown.failed || marks->said.failed)
        return NULL;
    uint32_t id = krait_strtab_find(&marks->keys, key->data, key->len);
    if (id == KRAIT_NO_ID && telling && marks->count >= MOST_ROWS)
        forget_text(marks, name);
    id = id == KRAIT_NO_ID ? krait_strtab_add(&marks->keys, key->data, key->len) : id;
    return id == KRAIT_NO_ID ? NULL : id >= marks->count ? new_row(marks, name) : &marks->items[id];
}

/* The same where nothing tells the name's marks apart, without a key for each. If the first one has no message, none is
 * looked for in the others. */
static struct mark *row_of_name(struct marks *marks, uint32_t name, const char *text)
{
    if (!KRAIT_GROW_FILLED(marks->of_names, marks->name_cap, name + 1, 0))
        return NULL;
    uint32_t *of = &marks->of_names[name];
    if (*of && marks->items[*of - 1].said)
        read_message(marks, text);
    if (*of)
        return &marks->items[*of - 1];
    struct mark *mark = row_of(marks, name, NULL, text);
    *of = mark ? (uint32_t)(mark - marks->items) + 1 : 0;
    return mark;
}

static void count_mark(const struct marks *marks, struct mark *mark, uint64_t t_ns)
{
    mark->first_ns = mark->count ? KRAIT_MIN(mark->first_ns, t_ns) : t_ns;
    mark->last_ns = KRAIT_MAX(mark->last_ns, t_ns);
    mark->tracks += mark->last_track != marks->track;
    mark->last_track = marks->track;
    mark->count++;
    if (mark->said)
        take_said(mark, marks->said.data, marks->said.len);
}

static int add_batch(void *ctx, const struct krait_track *track, const struct krait_batch *batch)
{
    struct marks *marks = ctx;
    const struct krait_trace *trace = marks->report->trace;
    const struct telling *telling = NULL;
    uint32_t last = KRAIT_NO_ID;
    bool is_mark = true;
    for (uint32_t i = 0; i < batch->n; i++) {
        uint32_t name = batch->name[i];
        if (!krait_ranges_have(&marks->report->options->select.parts, batch->t_ns[i]))
            continue;
        if (name != last) {
            telling = telling_of(track, krait_track_text(trace, name));
            is_mark = krait_marks_take(track, krait_track_text(trace, name));
        }
        last = name;
        marks->of_slices += !is_mark;
        if (!is_mark)
            continue;
        struct mark *mark =
            telling ? row_of(marks, name, telling, batch->text[i]) : row_of_name(marks, name, batch->text[i]);
        if (!mark)
            return -ENOMEM;
        count_mark(marks, mark, batch->t_ns[i]);
    }
    return 0;
}

static bool takes(const struct report *report, const struct krait_track *track)
{
    return track->kind == KRAIT_TRACK_INSTANTS &&
           krait_select_place((void *)&report->options->select, report->trace, track);
}

static int walk_all(struct marks *marks)
{
    struct report *report = marks->report;
    const struct krait_trace *trace = report->trace;
    int rc = 0;
    for (uint32_t i = 0; i < trace->track_count && !rc; i++) {
        marks->track = i;
        if (takes(report, &trace->tracks[i]))
            rc = krait_track_walk(trace, i, report->range, add_batch, marks, report->damage,
                                  sizeof(report->damage));
    }
    return rc;
}

static int fill(struct marks *marks, struct krait_sheet *sheet)
{
    bool has_text = marks->report->format != REPORT_TABLE;
    for (uint32_t i = 0; i < marks->count; i++) {
        struct mark *mark = &marks->items[i];
        mark->text = text_of(marks, mark);
        if ((mark->shown || mark->said) && !mark->text)
            return -ENOMEM;
        has_text |= mark->text != NULL;
    }
    sheet->column_count -= !has_text;
    for (uint32_t i = 0; i < marks->count; i++)
        krait_sheet_add(sheet, &marks->items[i]);
    return sheet->failed ? -ENOMEM : 0;
}

static void note_spans(struct report *report)
{
    if (report->format == REPORT_TABLE)
        krait_buf_str(&report->notes, "spans are not marks; krait report --by span shows them\n");
}

int krait_report_marks(struct report *report, struct krait_trace *trace, struct krait_err *err)
{
    KRAIT_CLEANUP(marks_done) struct marks marks = { .report = report };
    KRAIT_CLEANUP(krait_sheet_done)
    struct krait_sheet sheet = { .columns = columns, .of = &marks, .column_count = KRAIT_ARRAY_LEN(columns) };
    int rc = krait_tracks_find(trace, err);
    if (rc)
        return rc;
    report->zero_ns = krait_trace_zero(trace);
    report->range = krait_select_range(&report->options->select, trace);
    rc = walk_all(&marks);
    rc = rc ? rc : fill(&marks, &sheet);
    rc = rc ? rc : krait_sheet_sort(&sheet, "marks", err);
    rc = rc ? rc : krait_report_sheet(report, &sheet, "marks");
    if (marks.of_slices)
        note_spans(report);
    return rc == -ENOMEM ? krait_err_set(err, rc, "out of memory") : rc;
}
