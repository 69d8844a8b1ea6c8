/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait info`: its lists of processes and event classes, each column described once for text and JSON.
 */
#include "base/fmt.h"
#include "base/json.h"
#include "cmd/ending.h"
#include "cmd/info.h"

#include <string.h>

enum { LISTED = 12 }; /* rows without --all */

struct info_column {
    const char *title; /* NULL: JSON alone has it */
    int width;         /* at least, in bytes; below 0: aligned left; 0: the last */
    void (*text)(struct krait_buf *out, const struct info *info, uint32_t row);
    bool (*is_bad)(const struct info *info, uint32_t row); /* where it is shown in red; or NULL */
    const char *key;                                       /* NULL: text alone has it */
    uint32_t place;                                        /* in JSON, from 0 */
    void (*json)(struct krait_buf *out, const char *key, const struct info *info, uint32_t row);
};

struct info_list {
    const struct info_column *columns;
    uint32_t column_count, rows;
};

void krait_info_cut(struct krait_buf *out, const char *text, size_t room)
{
    KRAIT_AUTO_BUF safe = { 0 };
    krait_fmt_safe(&safe, text);
    if (!safe.len)
        return;
    size_t used = 0, n = 0;
    while (n < safe.len) {
        size_t len = krait_utf8_len(safe.data + n, safe.len - n);
        if (++used > room)
            break;
        n += len ? len : 1;
    }
    bool cut = n < safe.len;
    if (cut && n)
        for (n--; n && ((unsigned char)safe.data[n] & 0xc0) == 0x80;)
            n--;
    krait_buf_add(out, safe.data, n);
    krait_buf_str(out, cut ? "~" : "");
}

/* -- lists -- */

static void print_cells(struct info *info, const struct info_list *list, uint32_t row)
{
    const char *between = "  ";
    for (uint32_t i = 0; i < list->column_count; i++) {
        const struct info_column *column = &list->columns[i];
        KRAIT_AUTO_BUF cell = { 0 };
        if (!column->title)
            continue;
        column->text(&cell, info, row);
        bool bad = column->is_bad && column->is_bad(info, row);
        krait_buf_fmt(&info->out, "%s%s%*s%s", between, bad ? info->red : "", column->width,
                      cell.data ? cell.data : "", column->is_bad && bad ? info->plain : "");
    }
    krait_buf_char(&info->out, '\n');
}

static void print_list(struct info *info, const struct info_list *list, const char *title)
{
    const char *between = "";
    uint32_t shown = info->all ? list->rows : KRAIT_MIN(list->rows, (uint32_t)LISTED);
    krait_buf_fmt(&info->out, "\n%s%s%s\n  %s", info->bold, title, info->plain, info->dim);
    for (uint32_t i = 0; i < list->column_count; i++) {
        if (!list->columns[i].title)
            continue;
        krait_buf_fmt(&info->out, "%s%*s", between, list->columns[i].width, list->columns[i].title);
        between = "  ";
    }
    krait_buf_fmt(&info->out, "%s\n", info->plain);
    for (uint32_t row = 0; row < shown; row++)
        print_cells(info, list, row);
    if (shown < list->rows)
        krait_buf_fmt(&info->out, "  %s%u more: --all%s\n", info->dim, list->rows - shown, info->plain);
}

/* The column at a place in JSON; NULL behind the last. */
static const struct info_column *column_at(const struct info_list *list, uint32_t place)
{
    for (uint32_t i = 0; i < list->column_count; i++) {
        if (list->columns[i].key && list->columns[i].place == place)
            return &list->columns[i];
    }
    return NULL;
}

static void json_list(struct info *info, const struct info_list *list, const char *key)
{
    const struct info_column *column;
    krait_json_key_open(&info->out, key, '[');
    for (uint32_t row = 0; row < list->rows; row++) {
        krait_json_item(&info->out, "{");
        for (uint32_t n = 0; (column = column_at(list, n)); n++)
            column->json(&info->out, column->key, info, row);
        krait_buf_char(&info->out, '}');
    }
    krait_buf_char(&info->out, ']');
}

/* -- processes -- */

static const struct krait_process *process_at(const struct info *info, uint32_t row)
{
    return &info->trace->processes[row];
}

static uint64_t duration_of(const struct info *info, uint32_t row)
{
    return process_at(info, row)->end_ns - process_at(info, row)->begin_ns;
}

static uint32_t threads_of(const struct info *info, uint32_t row)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < info->trace->thread_count; i++)
        n += info->trace->threads[i].process == row;
    return n;
}

#define TEXT(name) static void name##_text(struct krait_buf *out, const struct info *info, uint32_t row)
#define JSON(name) \
    static void name##_json(struct krait_buf *out, const char *key, const struct info *info, uint32_t row)

TEXT(pid)
{
    krait_buf_fmt(out, "%u", process_at(info, row)->pid);
}

JSON(pid)
{
    krait_json_key_u64(out, key, process_at(info, row)->pid);
}

TEXT(threads)
{
    krait_buf_fmt(out, "%u", threads_of(info, row));
}

JSON(threads)
{
    krait_json_key_u64(out, key, threads_of(info, row));
}

TEXT(duration)
{
    char buf[KRAIT_FMT_SIZE];
    krait_buf_str(out, krait_fmt_ns(buf, duration_of(info, row)));
}

JSON(duration)
{
    krait_json_key_u64(out, key, duration_of(info, row));
}

TEXT(end)
{
    char buf[KRAIT_FMT_SIZE];
    krait_buf_str(out, krait_ending_text(buf, process_at(info, row)));
}

static bool has_no_end(const struct info *info, uint32_t row)
{
    return !process_at(info, row)->end[0];
}

JSON(end)
{
    krait_json_key_text_or_null(out, key, process_at(info, row)->end);
}

JSON(status)
{
    const struct krait_process *process = process_at(info, row);
    bool known = process->end[0] && process->end_status >= 0;
    krait_json_key_u64_or_null(out, key, known, (uint64_t)process->end_status);
}

TEXT(runtime)
{
    krait_info_cut(out, process_at(info, row)->runtime, 16);
}

JSON(runtime)
{
    krait_json_key_text_or_null(out, key, process_at(info, row)->runtime);
}

/* The command line without the folder of its program: what tells processes apart comes after it. */
TEXT(command)
{
    const struct krait_process *process = process_at(info, row);
    krait_info_cut(out, krait_fmt_command(process->command[0] ? process->command : process->name),
                   info->columns > 79 ? info->columns - 63 : 16);
}

JSON(command)
{
    krait_json_key_text_or_null(out, key, process_at(info, row)->command);
}

JSON(name)
{
    krait_json_key_text_or_null(out, key, process_at(info, row)->name);
}

static const struct info_column process_columns[] = {
    { "pid", 7, pid_text, NULL, "pid", 0, pid_json },
    { "threads", 7, threads_text, NULL, "threads", 4, threads_json },
    { "duration", 9, duration_text, NULL, "duration_ns", 5, duration_json },
    { "end", -10, end_text, has_no_end, "end", 6, end_json },
    { "runtime", -16, runtime_text, NULL, "runtime", 3, runtime_json },
    { "command", 0, command_text, NULL, "command", 2, command_json },
    { NULL, 0, NULL, NULL, "name", 1, name_json },
    { NULL, 0, NULL, NULL, "status", 7, status_json },
};

static struct info_list processes(const struct info *info)
{
    return (struct info_list){ process_columns, KRAIT_ARRAY_LEN(process_columns),
                               info->trace->process_count };
}

void krait_info_processes(struct info *info)
{
    const struct krait_trace *trace = info->trace;
    const struct info_list list = processes(info);
    char title[64];
    snprintf(title, sizeof(title), "%u process%s, %u thread%s", trace->process_count,
             trace->process_count == 1 ? "" : "es", trace->thread_count, trace->thread_count == 1 ? "" : "s");
    print_list(info, &list, title);
}

void krait_info_processes_json(struct info *info)
{
    const struct info_list list = processes(info);
    krait_json_key_bool(&info->out, "finished", !krait_ending_unfinished(info->trace));
    json_list(info, &list, "process_list");
}

/* -- event classes -- */

TEXT(count)
{
    char number[KRAIT_FMT_SIZE];
    krait_buf_str(out, krait_fmt_count(number, info->count.classes[row].count));
}

JSON(count)
{
    krait_json_key_u64(out, key, info->count.classes[row].count);
}

TEXT(share)
{
    char share[KRAIT_FMT_SIZE];
    krait_buf_str(out, krait_fmt_share(share, info->count.classes[row].count, info->count.events));
}

TEXT(class)
{
    krait_info_cut(out, info->count.classes[row].name, info->columns > 50 ? info->columns - 27 : 30);
}

JSON(class)
{
    krait_json_key_text(out, key, info->count.classes[row].name);
}

static const struct info_column class_columns[] = {
    { "events", 13, count_text, NULL, "count", 1, count_json },
    { "share", 6, share_text, NULL, NULL, 0, NULL },
    { "name", 0, class_text, NULL, "name", 0, class_json },
};

static struct info_list classes(const struct info *info)
{
    return (struct info_list){ class_columns, KRAIT_ARRAY_LEN(class_columns), info->count.class_count };
}

void krait_info_classes(struct info *info)
{
    const struct info_list list = classes(info);
    print_list(info, &list, "Event classes");
}

void krait_info_classes_json(struct info *info)
{
    const struct info_list list = classes(info);
    json_list(info, &list, "event_classes");
}
