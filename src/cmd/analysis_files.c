/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/analysis_files.h"

#include "analysis/provider.h"
#include "analysis/rule_lanes.h"
#include "base/suggest.h"
#include "base/xml.h"
#include "cmd/ending.h"
#include "cmd/terminal.h"

#include <dirent.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SUFFIX ".toml"

void krait_analysis_file_done(struct krait_analysis_file *file)
{
    free(file->path);
    krait_buf_done(&file->text);
}

char *krait_analysis_folder(void)
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    char *path;
    if (config && config[0] == '/')
        return asprintf(&path, "%s/krait/analyses", config) < 0 ? NULL : path;
    if (!home || home[0] != '/')
        return NULL;
    return asprintf(&path, "%s/.config/krait/analyses", home) < 0 ? NULL : path;
}

static bool has_suffix(const char *name, const char *suffix)
{
    size_t n = strlen(name), m = strlen(suffix);
    return n > m && strcmp(name + n - m, suffix) == 0;
}

static bool is_path(const char *name)
{
    return strchr(name, '/') || has_suffix(name, SUFFIX) || has_suffix(name, ".xml");
}

int krait_analysis_file_rules(const struct krait_analysis_file *file, const char *name,
                              struct krait_rules *rules, const char **about, struct krait_err *err)
{
    const char *path = file->path ? file->path : name, *text = file->text.data ? file->text.data : "";
    int rc = has_suffix(path, ".xml") ? krait_provider_read(rules, path, text, file->text.len, about, err)
                                      : krait_declared_read(rules, path, text, file->text.len, about, err);
    if (rc == -EBADMSG) {
        krait_terminal_print(&(struct krait_buf){ 0 }, &rules->notes, "", NULL);
        krait_buf_clear(&rules->notes);
    }
    return rc;
}

static int read_file(struct krait_analysis_file *file, struct krait_err *err)
{
    char part[4096];
    struct stat st;
    FILE *from = fopen(file->path, "re");
    if (!from)
        return krait_err_errno(err, "%s", file->path);
    if (fstat(fileno(from), &st) == 0 && S_ISDIR(st.st_mode)) {
        fclose(from);
        return krait_err_set(err, -EISDIR, "%s is a folder; name a file of analyses in it", file->path);
    }
    for (size_t n; file->text.len <= KRAIT_XML_MOST && (n = fread(part, 1, sizeof(part), from));)
        krait_buf_add(&file->text, part, n);
    bool failed = ferror(from);
    int rc = failed ? krait_err_errno(err, "%s", file->path) : 0;
    fclose(from);
    return rc || !file->text.failed ? rc : krait_err_set(err, -ENOMEM, "out of memory");
}

/* The one of that name in the user's folder. -ENOENT: there is none. */
static int read_users(struct krait_analysis_file *file, const char *name, struct krait_err *err)
{
    KRAIT_AUTO_FREE char *folder = krait_analysis_folder();
    if (!folder || asprintf(&file->path, "%s/%s" SUFFIX, folder, name) < 0) {
        file->path = NULL;
        return -ENOENT;
    }
    if (access(file->path, F_OK) == 0)
        return read_file(file, err);
    free(file->path);
    file->path = NULL;
    return -ENOENT;
}

static int none_of_that_name(const char *name, struct krait_err *err)
{
    struct krait_suggest suggest = KRAIT_SUGGEST(name, strlen(name));
    for (const struct krait_declared_builtin *b = krait_declared_builtins; b->name; b++)
        krait_suggest_try(&suggest, b->name);
    if (access(name, F_OK) == 0)
        return krait_err_set(err, -ENOENT, "there is no analysis '%s'; if you mean the file, name it ./%s",
                             name, name);
    if (suggest.best)
        return krait_err_set(err, -ENOENT, "there is no analysis '%s'; did you mean '%s'?", name,
                             suggest.best);
    return krait_err_set(err, -ENOENT,
                         "there is no analysis '%s'; name a file (./%s" SUFFIX
                         "), or one that krait analyses lists",
                         name, name);
}

int krait_analysis_file_read(struct krait_analysis_file *file, const char *name, struct krait_err *err)
{
    if (is_path(name)) {
        file->path = strdup(name);
        return file->path ? read_file(file, err) : krait_err_set(err, -ENOMEM, "out of memory");
    }
    int rc = read_users(file, name, err);
    if (rc != -ENOENT)
        return rc;
    for (const struct krait_declared_builtin *b = krait_declared_builtins; b->name; b++) {
        if (strcmp(b->name, name) != 0)
            continue;
        krait_buf_add(&file->text, b->text, *b->size);
        return file->text.failed ? krait_err_set(err, -ENOMEM, "out of memory") : 0;
    }
    return none_of_that_name(name, err);
}

/* The names that a file has for a trace to have: a built-in one is for all, one of the user's folder for many. `first`, and
 * `first_rule`: of that file. */
static void keep_names(struct krait_rules *rules, uint32_t first, uint32_t first_rule,
                       const struct krait_analysis_file *file, const char *name)
{
    if (!file->path)
        rules->named_count = first;
    for (uint32_t i = first; i < rules->named_count; i++)
        rules->named[i].is_of_many |= !is_path(name);
    for (uint32_t i = first_rule; i < rules->count; i++) {
        rules->items[i].is_of_many = !is_path(name);
        rules->items[i].key_at = file->path ? rules->items[i].key_at : NULL;
    }
}

int krait_analysis_rules(struct krait_rules *rules, const struct krait_opt_list *names, struct krait_err *err)
{
    int rc = 0;
    for (size_t i = 0; i < names->count && !rc; i++) {
        KRAIT_CLEANUP(krait_analysis_file_done) struct krait_analysis_file file = { 0 };
        uint32_t named = rules->named_count, first = rules->count;
        rc = krait_analysis_file_read(&file, names->items[i], err);
        rc = rc ? rc : krait_analysis_file_rules(&file, names->items[i], rules, NULL, err);
        keep_names(rules, named, first, &file, names->items[i]);
    }
    return rc;
}

static bool takes(void *select, const struct krait_trace *trace, const struct krait_track *track)
{
    return krait_select_place(select, trace, track);
}

void krait_analysis_forget_told(struct krait_buf *notes, const struct krait_buf *told)
{
    size_t kept = 0;
    for (size_t at = 0, n; told->len && at < notes->len; at += n) {
        const char *line = notes->data + at, *end = memchr(line, '\n', notes->len - at);
        n = end ? (size_t)(end - line) + 1 : notes->len - at;
        if (memmem(told->data, told->len, line, n))
            continue;
        memmove(notes->data + kept, line, n);
        kept += n;
    }
    if (told->len && notes->len) {
        notes->len = kept;
        notes->data[kept] = '\0';
    }
}

/* "krait view: warning: ...", a line each. */
static void tell(const char *verb, const struct krait_buf *notes)
{
    const char *at = notes->data;
    for (size_t n; at && *at; at += n + (at[n] == '\n')) {
        n = strcspn(at, "\n");
        fprintf(stderr, "krait %s: warning: %.*s\n", verb, (int)n, at);
    }
}

int krait_analysis_lanes(const struct krait_select *select, struct krait_trace *trace,
                         struct krait_trace *onto, const char *verb, struct krait_rules *kept,
                         struct krait_err *err)
{
    KRAIT_CLEANUP(krait_rules_done) struct krait_rules rules = { 0 };
    KRAIT_CLEANUP(krait_lanes_done) struct krait_lanes lanes = { 0 };
    const struct krait_rule_lanes_options options = { takes, (void *)select };
    if (!select->analyses.count)
        return 0;
    int rc = krait_analysis_rules(&rules, &select->analyses, err);
    rc = rc ? rc : krait_rule_lanes_make(&lanes, trace, &rules, &options, NULL, 0, err);
    if (rc)
        return rc;
    krait_analysis_forget_told(&rules.notes, &select->told);
    krait_buf_char(&rules.notes, '\0');
    tell(verb, &rules.notes);
    if (krait_trace_add_lanes(onto, &lanes))
        return krait_err_set(err, -ENOMEM, "out of memory");
    if (kept) {
        *kept = rules;
        rules = (struct krait_rules){ 0 };
    }
    return 0;
}
