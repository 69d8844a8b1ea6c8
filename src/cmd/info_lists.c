/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait info`: its lists of processes and event classes, in text and JSON.
 */
#include "base/json.h"
#include "cmd/ending.h"
#include "cmd/info.h"
#include "cmd/sheet.h"

#include <string.h>

enum {
    LISTED = 12, /* rows without --all */
    INDENT = 2,
};

/* -- processes -- */

static struct krait_sheet_cell get_pid(void *of, const void *row, size_t unused)
{
    return krait_sheet_number(((const struct krait_process *)row)->pid);
}

static struct krait_sheet_cell get_threads(void *of, const void *row, size_t unused)
{
    const struct info *info = of;
    const struct krait_trace *trace = info->trace;
    const ptrdiff_t process = (const struct krait_process *)row - trace->processes;
    uint64_t n = 0;
    for (uint32_t i = 0; i < trace->thread_count; i++)
        n += trace->threads[i].process == process &&
             krait_info_has(info, trace->threads[i].begin_ns, trace->threads[i].end_ns);
    return krait_sheet_number(n);
}

static struct krait_sheet_cell get_duration(void *of, const void *row, size_t unused)
{
    const struct krait_range span = krait_info_span(of, row);
    return krait_sheet_number(span.to_ns - span.from_ns);
}

static struct krait_sheet_cell get_status(void *of, const void *row, size_t unused)
{
    const struct krait_process *process = row;
    bool is_known = process->end[0] && process->end_status >= 0;
    return krait_sheet_number(is_known ? (uint64_t)process->end_status : KRAIT_SHEET_NONE);
}

/* A text of the process at an offset; an empty one is not known. */
static struct krait_sheet_cell get_text(void *of, const void *row, size_t offset)
{
    const char *text = krait_sheet_name_at(of, row, offset).name;
    return krait_sheet_name(*text ? text : NULL);
}

/* A text of the process that tables write in another way than JSON. */
static struct krait_sheet_cell get_process(void *of, const void *row, size_t offset)
{
    return (struct krait_sheet_cell){ .name = get_text(of, row, offset).name, .object = row };
}

static bool has_text(const struct krait_sheet_cell *cell)
{
    return cell->name;
}

static void add_text(struct krait_buf *out, const struct krait_sheet_cell *cell,
                     void (*add)(struct krait_buf *out, const char *text))
{
    add(out, cell->name);
}

static void put_end(struct krait_table *table, const struct krait_sheet_spot *at)
{
    char text[KRAIT_FMT_SIZE];
    krait_table_cell(table, krait_ending_text(text, at->cell.object),
                     at->cell.name ? KRAIT_STYLE_NONE : KRAIT_STYLE_HOT, 0);
}

/* The command line without the folder of its program: what tells processes apart comes after it. */
static void put_command(struct krait_table *table, const struct krait_sheet_spot *at)
{
    const struct krait_process *process = at->cell.object;
    KRAIT_AUTO_BUF text = { 0 };
    krait_fmt_safe(&text, krait_fmt_command(process->command[0] ? process->command : process->name));
    krait_table_cell(table, text.data ? text.data : "", KRAIT_STYLE_NONE, 0);
}

static const struct krait_sheet_kind end_kind = { .put = put_end, .is_known = has_text, .value = add_text };
static const struct krait_sheet_kind command_kind = { .put = put_command,
                                                      .is_known = has_text,
                                                      .value = add_text };

#define LEFT       KRAIT_COLUMN_LEFT
#define SHORT      (KRAIT_COLUMN_LEFT | KRAIT_COLUMN_SHORTEN)
#define PLACE      KRAIT_SHEET_PLACE
#define OF(member) offsetof(struct krait_process, member)

static const struct krait_sheet_column process_columns[] = {
    { { "pid", 0, 0, 0 }, "pid", KRAIT_SHEET_NUMBER, PLACE(0), get_pid, 0 },
    { { "threads", 0, 0, 1 }, "threads", KRAIT_SHEET_COUNT, PLACE(3), get_threads, 0 },
    { { "duration", 0, 0, 0 }, "duration_ns", KRAIT_SHEET_NS, PLACE(4), get_duration, 0 },
    { { "end", LEFT, 0, 0 }, "end", &end_kind, PLACE(5), get_process, OF(end) },
    { { "runtime", SHORT, 16, 2 }, "runtime", KRAIT_SHEET_NAME, PLACE(2), get_text, OF(runtime) },
    { { "command", SHORT, 16, 0 }, "command", &command_kind, PLACE(1), get_process, OF(command) },
    { { NULL, 0, 0, 0 }, "name", KRAIT_SHEET_NAME, KRAIT_SHEET_DATA | PLACE(0), get_text, OF(name) },
    { { NULL, 0, 0, 0 }, "status", KRAIT_SHEET_NUMBER, KRAIT_SHEET_DATA | PLACE(6), get_status, 0 },
};

/* -- event classes -- */

#undef OF
#define OF(member) offsetof(struct krait_ctf_class_count, member)

static void put_share(struct krait_table *table, const struct krait_sheet_spot *at)
{
    char text[KRAIT_FMT_SIZE];
    krait_table_cell(table, krait_fmt_share(text, at->cell.number, at->sheet->whole), KRAIT_STYLE_NONE, 0);
}

/* Like KRAIT_SHEET_PERCENT, without colours: what is red here is a defect of the recording. */
static const struct krait_sheet_kind share_kind = { .put = put_share };

static const struct krait_sheet_column class_columns[] = {
    { { "events", 0, 0, 0 }, "count", KRAIT_SHEET_COUNT, PLACE(1), krait_sheet_number_at, OF(count) },
    { { "share", 0, 0, 0 }, NULL, &share_kind, 0, krait_sheet_number_at, OF(count) },
    { { "name", SHORT, 30, 0 }, "name", KRAIT_SHEET_NAME, PLACE(0), krait_sheet_name_at, OF(name) },
};

/* -- what files declare -- */

#undef OF
#define OF(member) offsetof(struct info_declared, member)

static const struct krait_sheet_column declared_columns[] = {
    { { "found", 0, 0, 0 }, "found", KRAIT_SHEET_COUNT, PLACE(2), krait_sheet_number_at, OF(found) },
    { { "total", 0, 0, 0 },
      "total_ns",
      KRAIT_SHEET_NS,
      PLACE(3) | KRAIT_SHEET_DASH,
      krait_sheet_number_at,
      OF(total_ns) },
    { { "kind", LEFT, 0, 1 }, "kind", KRAIT_SHEET_NAME, PLACE(1), krait_sheet_name_at, OF(kind) },
    { { "name", SHORT, 16, 0 }, "name", KRAIT_SHEET_NAME, PLACE(0), krait_sheet_name_at, OF(name) },
};

/* -- both -- */

static struct krait_sheet processes_of(struct info *info)
{
    struct krait_sheet sheet = { .columns = process_columns,
                                 .column_count = KRAIT_ARRAY_LEN(process_columns),
                                 .of = info };
    for (uint32_t i = 0; i < info->trace->process_count; i++) {
        const struct krait_process *process = &info->trace->processes[i];
        if (krait_info_has(info, process->begin_ns, process->end_ns))
            krait_sheet_keep(&sheet, process);
    }
    return sheet;
}

static struct krait_sheet classes_of(struct info *info)
{
    struct krait_sheet sheet = { .columns = class_columns,
                                 .column_count = KRAIT_ARRAY_LEN(class_columns),
                                 .whole = info->count.events };
    for (uint32_t i = 0; i < info->count.class_count; i++)
        krait_sheet_keep(&sheet, &info->count.classes[i]);
    return sheet;
}

static void indent_lines(struct krait_buf *out, const struct krait_buf *text)
{
    const char *end;
    for (const char *line = text->data; line && (end = strchr(line, '\n')); line = end + 1)
        krait_buf_fmt(out, "%*s%.*s\n", INDENT, "", (int)(end - line), line);
}

static void print_list(struct info *info, const struct krait_sheet *sheet, const char *title)
{
    struct krait_table_look look = info->look;
    KRAIT_AUTO_BUF table = { 0 };
    uint32_t shown = info->all ? sheet->rows : KRAIT_MIN(sheet->rows, (uint32_t)LISTED);
    krait_buf_fmt(&info->out, "\n%s%s%s\n", info->bold, title, info->plain);
    look.width -= KRAIT_MIN(look.width - 1, (uint32_t)INDENT);
    info->out.failed |= krait_sheet_table(sheet, shown, &look, &table) != 0;
    indent_lines(&info->out, &table);
    if (shown < sheet->rows)
        krait_buf_fmt(&info->out, "  %s%u more: --all%s\n", info->dim, sheet->rows - shown, info->plain);
}

static void json_list(struct info *info, const struct krait_sheet *sheet, const char *key)
{
    krait_json_key(&info->out, key);
    info->out.failed |= krait_sheet_json(sheet, 0, &info->out) != 0;
}

void krait_info_processes(struct info *info)
{
    KRAIT_CLEANUP(krait_sheet_done) struct krait_sheet sheet = processes_of(info);
    char title[2 * KRAIT_FMT_SIZE], processes[KRAIT_FMT_SIZE], threads[KRAIT_FMT_SIZE];
    snprintf(title, sizeof(title), "%s, %s",
             krait_fmt_counted(processes, krait_info_process_count(info), "process"),
             krait_fmt_counted(threads, krait_info_thread_count(info), "thread"));
    print_list(info, &sheet, title);
}

void krait_info_processes_json(struct info *info)
{
    KRAIT_CLEANUP(krait_sheet_done) struct krait_sheet sheet = processes_of(info);
    krait_json_key_bool(&info->out, "finished", !krait_ending_unfinished(info->trace));
    json_list(info, &sheet, "process_list");
}

void krait_info_classes(struct info *info)
{
    KRAIT_CLEANUP(krait_sheet_done) struct krait_sheet sheet = classes_of(info);
    print_list(info, &sheet, "Event classes");
}

void krait_info_classes_json(struct info *info)
{
    KRAIT_CLEANUP(krait_sheet_done) struct krait_sheet sheet = classes_of(info);
    json_list(info, &sheet, "event_classes");
}

static struct krait_sheet declared_of(struct info *info)
{
    struct krait_sheet sheet = { .columns = declared_columns,
                                 .column_count = KRAIT_ARRAY_LEN(declared_columns) };
    for (uint32_t i = 0; i < info->declared_count; i++)
        krait_sheet_keep(&sheet, &info->declared[i]);
    return sheet;
}

void krait_info_declared(struct info *info)
{
    KRAIT_CLEANUP(krait_sheet_done) struct krait_sheet sheet = declared_of(info);
    if (info->declared)
        print_list(info, &sheet, "Declared");
}

void krait_info_declared_json(struct info *info)
{
    KRAIT_CLEANUP(krait_sheet_done) struct krait_sheet sheet = declared_of(info);
    if (info->declared)
        json_list(info, &sheet, "declared");
}
