/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/ctl.h"

#include "base/fmt.h"
#include "cmd/sheet.h"

#include <string.h>

static bool is_true(const struct krait_json *object, const char *key)
{
    const struct krait_json *value = krait_json_get(object, key);
    return value && value->kind == KRAIT_JSON_TRUE;
}

/* ---- what is recorded ---- */

/* What one would notice if it were otherwise: the usual is not told. */
static void put_recorded(const struct krait_json *status, struct krait_buf *out)
{
    static const struct {
        const char *key, *words;
        bool value;
    } unusual[] = { { "c_calls", "no C calls", false },   { "gil", "no GIL waits", false },
                    { "tasks", "no tasks", false },       { "children", "no children", false },
                    { "call_sites", "call sites", true }, { "gc", "garbage collection", true },
                    { "imports", "imports", true },       { "lossless", "lossless", true } };
    static const char *const lists[] = { "include", "exclude", "log", "audit", "args" };
    const struct krait_json *recorded = krait_json_get(status, "recorded");
    if (!recorded || recorded->kind != KRAIT_JSON_OBJECT)
        return;
    krait_buf_str(out, "  records    calls");
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(unusual); i++) {
        if (krait_json_get(recorded, unusual[i].key) && is_true(recorded, unusual[i].key) == unusual[i].value)
            krait_buf_fmt(out, ", %s", unusual[i].words);
    }
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(lists); i++) {
        for (const struct krait_json *item = krait_json_items(recorded, lists[i]); item; item = item->next) {
            krait_buf_fmt(out, ", --%s ", lists[i]);
            krait_fmt_safe(out, item->kind == KRAIT_JSON_TEXT ? item->text : "");
        }
    }
    const struct krait_json *overhead = krait_json_get(recorded, "max_overhead");
    if (overhead && !(overhead->kind == KRAIT_JSON_UNSIGNED && !overhead->number))
        krait_buf_str(out, ", a limited slowdown (--max-overhead)");
    krait_buf_char(out, '\n');
}

/* ---- who has not followed ---- */

/* A process without such calls has no hook that could notice: as long as it runs C code, or a loop without calls. */
static const char at_call[] = "at its next call of a recorded function";

static void put_later(const struct krait_json *process, const char *when, struct krait_buf *out)
{
    krait_buf_fmt(out, "  %llu follows %s: ", (unsigned long long)krait_json_number(process, "pid"), when);
    krait_fmt_safe(out, krait_fmt_command(krait_json_string(process, "command")));
    krait_buf_char(out, '\n');
}

/* Those that do not record yet what was set. */
static void put_not_set(const struct krait_json *status, struct krait_buf *out)
{
    for (const struct krait_json *p = krait_json_items(status, "processes"); p; p = p->next) {
        if (krait_json_get(p, "set") && !is_true(p, "set"))
            put_later(p, at_call, out);
    }
}

/* ---- processes ---- */

enum { PID, STATE, THREADS, EVENTS, LOST };
static const char *const members[] = {
    [PID] = "pid", [STATE] = "state", [THREADS] = "threads", [EVENTS] = "events", [LOST] = "lost"
};

static struct krait_sheet_cell get_number(void *of, const void *process, size_t member)
{
    return krait_sheet_number(krait_json_number(process, members[member]));
}

static struct krait_sheet_cell get_text(void *of, const void *process, size_t member)
{
    return krait_sheet_name(krait_json_string(process, members[member]));
}

static struct krait_sheet_cell get_command(void *of, const void *process, size_t unused)
{
    return krait_sheet_name(krait_fmt_command(krait_json_string(process, "command")));
}
#define LEFT KRAIT_COLUMN_LEFT

static const struct krait_sheet_column columns[] = {
    { { "pid", 0, 0, 0 }, NULL, KRAIT_SHEET_NUMBER, 0, get_number, PID },
    { { "state", LEFT, 0, 0 }, NULL, KRAIT_SHEET_NAME, 0, get_text, STATE },
    { { "threads", 0, 0, 0 }, NULL, KRAIT_SHEET_COUNT, 0, get_number, THREADS },
    { { "events", 0, 0, 0 }, NULL, KRAIT_SHEET_COUNT, 0, get_number, EVENTS },
    { { "lost", 0, 0, 1 }, NULL, KRAIT_SHEET_COUNT, KRAIT_SHEET_ALARM, get_number, LOST },
    { { "command", LEFT | KRAIT_COLUMN_SHORTEN, 10, 0 },
      NULL,
      KRAIT_SHEET_NAME,
      KRAIT_SHEET_BLANK,
      get_command,
      0 },
};

static int put_processes(const struct krait_json *status, const struct krait_table_look *look,
                         struct krait_buf *out)
{
    KRAIT_CLEANUP(krait_sheet_done)
    struct krait_sheet sheet = { .columns = columns, .column_count = KRAIT_ARRAY_LEN(columns) };
    for (const struct krait_json *p = krait_json_items(status, "processes"); p; p = p->next)
        krait_sheet_add(&sheet, p);
    if (sheet.rows)
        krait_buf_char(out, '\n');
    return krait_sheet_table(&sheet, 0, look, out);
}

/* ---- the status ---- */

static void put_line(struct krait_buf *out, const char *name, const char *value)
{
    krait_buf_fmt(out, "  %-10s ", name);
    krait_fmt_safe(out, value);
    krait_buf_char(out, '\n');
}

static uint64_t count_in(const struct krait_json *status, const char *state)
{
    uint64_t n = 0;
    for (const struct krait_json *p = krait_json_items(status, "processes"); p; p = p->next)
        n += strcmp(krait_json_string(p, "state"), state) == 0;
    return n;
}

static void put_state(const struct krait_json *status, const struct krait_table_look *look,
                      struct krait_buf *out)
{
    char since[KRAIT_FMT_SIZE], whole[KRAIT_FMT_SIZE];
    const char *state = krait_json_string(status, "state");
    const char *bold = look->colour ? KRAIT_BOLD : "", *plain = look->colour ? KRAIT_PLAIN : "";
    uint64_t since_ns = krait_json_number(status, "since_ns"),
             duration_ns = krait_json_number(status, "duration_ns");
    krait_buf_fmt(out, "Recording is %s%s%s for %s", bold, state, plain, krait_fmt_ns(since, since_ns));
    if (duration_ns > since_ns + since_ns / 100)
        krait_buf_fmt(out, ", begun %s ago", krait_fmt_ns(whole, duration_ns));
    uint64_t on = strcmp(state, "off") == 0 ? count_in(status, "on") : 0;
    if (on)
        krait_buf_fmt(out, ", not yet in %s", krait_fmt_counted(whole, on, "process"));
    krait_buf_char(out, '\n');
}

int ctl_print_status(const struct krait_json *status, const struct krait_table_look *look,
                     struct krait_buf *out)
{
    char a[KRAIT_FMT_SIZE], b[KRAIT_FMT_SIZE], line[4 * KRAIT_FMT_SIZE];
    const char *folder = krait_json_string(status, "folder");
    put_state(status, look, out);
    put_line(out, "folder", *folder ? folder : "none: watched by krait top");
    snprintf(line, sizeof(line), "%s, %s/s in the last %.1f s",
             krait_fmt_counted(a, krait_json_number(status, "events"), "event"),
             krait_fmt_count(b, krait_json_number(status, "events_per_s")),
             (double)krait_json_number(status, "rate_window_ns") / KRAIT_NS_PER_S);
    put_line(out, "recorded", line);
    put_line(out, "on disk", krait_fmt_bytes(a, krait_json_number(status, "bytes")));
    if (krait_json_number(status, "dropped")) {
        snprintf(line, sizeof(line), "%s, the oldest",
                 krait_fmt_counted(a, krait_json_number(status, "dropped"), "event"));
        put_line(out, "dropped", line);
    }
    uint64_t lost = krait_json_number(status, "lost");
    put_line(out, "lost", lost ? krait_fmt_counted(a, lost, "event") : "nothing");
    put_recorded(status, out);
    put_not_set(status, out);
    return put_processes(status, look, out) || out->failed ? -ENOMEM : 0;
}

/* ---- start and stop ---- */

int ctl_print_switch(const struct krait_json *status, const char *verb, struct krait_buf *out)
{
    bool on = strcmp(verb, "start") == 0;
    const char *wanted = on ? "on" : "off";
    char count[KRAIT_FMT_SIZE];
    uint64_t follow = count_in(status, wanted) + (on ? 0 : count_in(status, "ready"));
    krait_buf_fmt(out, "Recording is %s in %s\n", wanted, krait_fmt_counted(count, follow, "process"));
    for (const struct krait_json *p = krait_json_items(status, "processes"); p; p = p->next) {
        const char *state = krait_json_string(p, "state");
        if (strcmp(state, wanted) == 0 || (!on && strcmp(state, "ready") == 0))
            continue;
        put_later(p, on ? "when it lets go of the GIL" : at_call, out);
    }
    return out->failed ? -ENOMEM : 0;
}

/* ---- snapshots ---- */

int ctl_print_snapshot(const struct krait_json *snapshot, struct krait_buf *out)
{
    char bytes[KRAIT_FMT_SIZE], took[KRAIT_FMT_SIZE];
    krait_buf_fmt(
        out, "Snapshot of %s, written in %s: ", krait_fmt_bytes(bytes, krait_json_number(snapshot, "bytes")),
        krait_fmt_ns(took, krait_json_number(snapshot, "took_ns")));
    krait_fmt_safe(out, krait_json_string(snapshot, "snapshot"));
    krait_buf_char(out, '\n');
    return out->failed ? -ENOMEM : 0;
}

int ctl_print_set(const struct krait_json *status, struct krait_buf *out)
{
    put_recorded(status, out);
    put_not_set(status, out);
    return out->failed ? -ENOMEM : 0;
}
