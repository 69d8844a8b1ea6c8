/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait analyses`: which declared analyses there are, and what they say.
 */
#include "base/array.h"
#include "base/json.h"
#include "cmd/analysis_files.h"
#include "cmd/cmds.h"
#include "cmd/sheet.h"
#include "cmd/terminal.h"

#include <dirent.h>
#include <string.h>

struct analyses_options {
    bool json;
};

/* One of the table. */
struct listed {
    const char *name, *where, *declares, *about;
};

#define NAME(member) krait_sheet_name_at, offsetof(struct listed, member)

static const struct krait_sheet_column columns[] = {
    { { "name", KRAIT_COLUMN_LEFT, 0, 0 }, "name", KRAIT_SHEET_NAME, 0, NAME(name) },
    { { "about", KRAIT_COLUMN_LEFT | KRAIT_COLUMN_SHORTEN, 24, 0 },
      "about",
      KRAIT_SHEET_NAME,
      KRAIT_SHEET_DASH,
      NAME(about) },
    { { "declares", KRAIT_COLUMN_LEFT | KRAIT_COLUMN_SHORTEN, 16, 1 },
      "declares",
      KRAIT_SHEET_NAME,
      KRAIT_SHEET_DASH,
      NAME(declares) },
    { { "file", KRAIT_COLUMN_LEFT | KRAIT_COLUMN_SHORTEN, 12, 2 }, "file", KRAIT_SHEET_NAME, 0, NAME(where) },
};

#undef NAME

struct list {
    struct krait_sheet sheet;
    struct krait_arena arena; /* of its texts */
    struct krait_err *err;
    bool failed; /* one of the files is wrong, which was told */
};

/* The names of what a file declares. */
static const char *names_of(struct list *list, const struct krait_rules *rules)
{
    KRAIT_AUTO_BUF all = { 0 };
    for (uint32_t i = 0; i < rules->count; i++)
        krait_buf_fmt(&all, "%s%s", i ? ", " : "", rules->items[i].name);
    return all.failed ? NULL : krait_arena_strdup(&list->arena, all.data ? all.data : "");
}

static int add_text(struct list *list, const char *name, const char *path, const struct krait_buf *text)
{
    KRAIT_CLEANUP(krait_rules_done) struct krait_rules rules = { 0 };
    const char *about = "";
    int rc = krait_declared_read(&rules, path ? path : name, text->data ? text->data : "", text->len, &about,
                                 list->err);
    if (rc == -EBADMSG || rc == -EFBIG) {
        krait_cmd_fail(&krait_cmd_analyses, list->err);
        list->failed = true;
        return 0;
    }
    if (rc)
        return rc;
    const struct listed row = { krait_arena_strdup(&list->arena, name),
                                krait_arena_strdup(&list->arena, path ? path : "built in"),
                                names_of(list, &rules), krait_arena_strdup(&list->arena, about) };
    if (!row.name || !row.where || !row.declares || !row.about)
        return krait_err_set(list->err, -ENOMEM, "out of memory");
    krait_sheet_add(&list->sheet, &row);
    return 0;
}

static int is_analysis(const struct dirent *entry)
{
    size_t n = strlen(entry->d_name), m = strlen(".toml");
    return n > m && entry->d_name[0] != '.' && strcmp(entry->d_name + n - m, ".toml") == 0;
}

/* Those of the user's folder, by name. */
static int add_users(struct list *list)
{
    KRAIT_AUTO_FREE char *folder = krait_analysis_folder();
    struct dirent **entries = NULL;
    int count = folder ? scandir(folder, &entries, is_analysis, alphasort) : 0, rc = 0;
    for (int i = 0; i < count; i++) {
        KRAIT_CLEANUP(krait_analysis_file_done) struct krait_analysis_file file = { 0 };
        KRAIT_AUTO_FREE char *path = NULL;
        if (!rc && asprintf(&path, "%s/%s", folder, entries[i]->d_name) < 0)
            rc = krait_err_set(list->err, -ENOMEM, "out of memory");
        rc = rc ? rc : krait_analysis_file_read(&file, path, list->err);
        entries[i]->d_name[strlen(entries[i]->d_name) - strlen(".toml")] = '\0';
        rc = rc ? rc : add_text(list, entries[i]->d_name, path, &file.text);
        free(entries[i]);
    }
    free(entries);
    return rc;
}

static int add_builtins(struct list *list)
{
    int rc = 0;
    for (const struct krait_declared_builtin *b = krait_declared_builtins; b->name && !rc; b++) {
        KRAIT_AUTO_BUF text = { 0 };
        krait_buf_add(&text, b->text, *b->size);
        rc = text.failed ? krait_err_set(list->err, -ENOMEM, "out of memory")
                         : add_text(list, b->name, NULL, &text);
    }
    return rc;
}

static void list_done(struct list *list)
{
    krait_sheet_done(&list->sheet);
    krait_arena_done(&list->arena);
}

static int show_list(const struct analyses_options *o, struct krait_buf *out, struct krait_err *err)
{
    KRAIT_CLEANUP(list_done)
    struct list list = { .sheet = { .columns = columns, .column_count = KRAIT_ARRAY_LEN(columns) },
                         .err = err };
    const struct krait_table_look look = krait_terminal_look(stdout);
    int rc = add_users(&list);
    rc = rc ? rc : add_builtins(&list);
    if (rc)
        return rc;
    rc = o->json ? krait_sheet_json(&list.sheet, 0, out) : krait_sheet_table(&list.sheet, 0, &look, out);
    if (o->json)
        krait_buf_char(out, '\n');
    return rc ? krait_err_set(err, rc, "out of memory") : list.failed ? -EBADMSG : 0;
}

/* The text of each, which has to be right. */
static int show_texts(struct krait_buf *out, struct krait_buf *notes, int count, char **names,
                      struct krait_err *err)
{
    int rc = 0;
    for (int i = 0; i < count && !rc; i++) {
        KRAIT_CLEANUP(krait_analysis_file_done) struct krait_analysis_file file = { 0 };
        KRAIT_CLEANUP(krait_rules_done) struct krait_rules rules = { 0 };
        rc = krait_analysis_file_read(&file, names[i], err);
        rc = rc ? rc : krait_analysis_file_rules(&file, names[i], &rules, NULL, err);
        krait_buf_add(notes, rules.notes.data, rules.notes.len);
        if (!rc)
            krait_buf_add(out, file.text.data, file.text.len);
    }
    return rc;
}

static int run_analyses(void *values, int argc, char **argv)
{
    const struct analyses_options *o = values;
    struct krait_err err = { 0 };
    KRAIT_AUTO_BUF out = { 0 };
    KRAIT_AUTO_BUF notes = { 0 };
    if (o->json && argc) {
        krait_err_set(&err, -EINVAL, "--json lists all; it does not go with a name");
        return krait_cmd_usage(&krait_cmd_analyses, &err);
    }
    int rc = argc ? show_texts(&out, &notes, argc, argv, &err) : show_list(o, &out, &err);
    struct krait_err unwritten = { 0 };
    if (krait_terminal_print(&out, &notes, "the analyses", &unwritten) && !rc)
        return krait_cmd_fail(&krait_cmd_analyses, &unwritten);
    return !rc ? 0 : rc == -EBADMSG && !argc ? 1 : krait_cmd_fail(&krait_cmd_analyses, &err);
}

static const struct krait_opt analyses_opts[] = {
    { "json", 0, KRAIT_OPT_FLAG, NULL, offsetof(struct analyses_options, json), "Print one JSON array" },
    KRAIT_OPTS_END,
};

const struct krait_cmd krait_cmd_analyses = {
    .name = "analyses",
    .operands = "[NAME|FILE...]",
    .summary = "List declared analyses, or print and check them",
    .description =
        "A declared analysis is a TOML file that names intervals, states and signals: which events begin and "
        "end them, which field distinguishes them, and what they are called. Give the file to other verbs "
        "with -f: krait intervals shows everything in it, and --within takes the names of its intervals.\n\n"
        "Without an operand, krait lists the analyses of the user's folder ($XDG_CONFIG_HOME/krait/analyses, "
        "by default "
        "~/.config/krait/analyses) and the built-in ones. With names or files, krait checks them and prints "
        "their text, which you can copy and change.\n\n"
        "docs/analyses.md has all keys.",
    .examples = "# List them\n"
                "krait analyses\n"
                "# Time in each system call, by the kernel's events\n"
                "krait intervals trace -f syscalls\n"
                "# Check a file\n"
                "krait analyses orders.toml\n",
    .opts = analyses_opts,
    .values_size = sizeof(struct analyses_options),
    .run = run_analyses,
};
