/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a trace: every event in every form, which have to agree; then the public interface. The first
 * byte below FUZZ_TEXTS chooses the metadata, and what follows is a stream; else the input is
 *
 *   METADATA ff ff ff ff STREAM [ff ff ff ff STREAM]
 */
#include "packets.h"

#include "../read_all.h"
#include "base/json_read.h"
#include "ctf/read/merge.h"
#include "ctf/read/reader.h"
#include "ctf/rows/count.h"
#include "ctf/text/csv_columns.h"
#include "ctf/text/pretty.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

/* What a pass over all events came to. */
struct pass {
    uint64_t events;
    struct krait_buf text;
    struct krait_err damage;
};

static void pass_done(struct pass *pass)
{
    krait_buf_done(&pass->text);
}

/* -- forms -- */

struct forms {
    struct krait_pretty pretty;
    struct krait_data json, csv;
    struct krait_filter *filter;
    uint64_t columns;
    struct krait_buf line;
};

static void forms_done(struct forms *forms)
{
    krait_pretty_done(&forms->pretty);
    krait_data_done(&forms->json);
    krait_data_done(&forms->csv);
    krait_filter_free(forms->filter);
    krait_buf_done(&forms->line);
}

/* One comparison of each kind with the first fields of the first classes; NULL: their names are none of a
 * filter's. */
static struct krait_filter *make_filter(const struct krait_ctf_reader *reader)
{
    static const char *const tests[] = { "%s > 3", "%s == \"a*\"", "!%s", "$ctx.%s <= -1", "name == %s" };
    KRAIT_AUTO_BUF text = { 0 };
    struct krait_filter *filter = NULL;
    struct krait_err err;
    size_t n = 0;
    for (uint32_t s = 0; reader->trace_count && s < reader->traces[0]->metadata->stream_count; s++) {
        const struct krait_stream_class *cls = reader->traces[0]->metadata->streams[s];
        for (uint32_t i = 0; i < cls->event_count; i++) {
            const struct krait_fc *fields = cls->events[i]->fields;
            for (uint32_t k = 0; fields && k < fields->count && k < 4 && n < 12; k++, n++) {
                krait_buf_str(&text, n ? " || " : "");
                krait_buf_fmt(&text, tests[n % KRAIT_ARRAY_LEN(tests)], fields->members[k].name);
            }
        }
    }
    if (!text.len || krait_filter_new(&filter, text.data, &err))
        return NULL;
    if (krait_filter_bind(filter, reader, &err) == 0)
        return filter;
    krait_filter_free(filter);
    return NULL;
}

/* What is printed as JSON is JSON. */
static void check_json(const struct krait_buf *line)
{
    struct krait_arena arena = { 0 };
    struct krait_json *value;
    struct krait_err err = { 0 };
    if (!line->len || line->data[line->len - 1] != '\n' || memchr(line->data, '\n', line->len - 1))
        abort();
    if (krait_json_read(&value, &arena, line->data, line->len - 1, 0, &err) && err.code != -ENOTSUP) {
        fprintf(stderr, "%s\n%.*s", err.text, (int)line->len, line->data);
        abort();
    }
    krait_arena_done(&arena);
}

static uint64_t count_columns(const struct krait_buf *line)
{
    uint64_t n = 1;
    bool quoted = false;
    for (size_t i = 0; i < line->len; i++) {
        quoted ^= line->data[i] == '"';
        n += !quoted && line->data[i] == ',';
    }
    return n;
}

/* An event that was passed, in another form: what was passed can be printed. */
static void other_form(struct forms *forms, struct krait_data *data, struct krait_ctf_cursor *cursor)
{
    krait_buf_clear(&forms->line);
    krait_ctf_event_rewind(cursor);
    if (krait_data_event(data, cursor, &forms->line) && !strstr(cursor->err.text, "256 MiB"))
        abort();
}

static void other_forms(struct forms *forms, struct krait_ctf_cursor *cursor)
{
    bool wanted = forms->filter && krait_filter_wants(forms->filter, cursor);
    other_form(forms, &forms->json, cursor);
    if (!cursor->err.code)
        check_json(&forms->line);
    if (cursor->err.code || (forms->filter && !wanted))
        return; /* in the wide form there is no column for it */
    other_form(forms, &forms->csv, cursor);
    if (!cursor->err.code && forms->columns != count_columns(&forms->line))
        abort();
}

/* -- passes -- */

enum { SHOWN = KRAIT_PRETTY_GMT | KRAIT_PRETTY_DATE | KRAIT_PRETTY_TRACE | KRAIT_PRETTY_LOGLEVEL };

/* As `krait cat` prints it, `forms` NULL; with them, each event is passed, and printed after its other forms. */
static void read_all_events(struct pass *pass, struct krait_ctf_reader *reader, struct forms *forms)
{
    struct krait_pretty pretty = { .flags = SHOWN,
                                   .text = KRAIT_TEXT_FIELD_NAMES | KRAIT_TEXT_CONTEXT_NAMES };
    struct krait_ctf_merge *merge;
    struct krait_ctf_cursor *cursor;
    if (krait_ctf_merge_new(&merge, reader, NULL))
        abort();
    while ((cursor = krait_ctf_merge_next(merge))) {
        int rc = forms ? krait_ctf_event_skip(cursor) : 0;
        if (!rc && forms) {
            other_forms(forms, cursor);
            rc = cursor->err.code;
            krait_ctf_event_rewind(cursor);
        }
        if (!rc)
            rc = krait_pretty_event(&pretty, cursor, &pass->text);
        if (rc && !cursor->err.text[0])
            abort();
        pass->events += !rc;
    }
    pass->damage = *krait_ctf_merge_damage(merge);
    krait_ctf_merge_free(merge);
    krait_pretty_done(&pretty);
}

static void check_forms(struct krait_ctf_reader *reader, const struct pass *plain)
{
    KRAIT_CLEANUP(forms_done)
    struct forms forms = { .filter = make_filter(reader),
                           .pretty.text = KRAIT_TEXT_FIELD_NAMES | KRAIT_TEXT_CONTEXT_NAMES };
    KRAIT_CLEANUP(pass_done) struct pass pass = { 0 };
    const struct krait_event_class *only = krait_csv_only_class(reader, forms.filter);
    forms.csv.form = only ? KRAIT_DATA_WIDE : KRAIT_DATA_LONG;
    krait_csv_columns(&forms.line, only);
    forms.columns = count_columns(&forms.line);
    read_all_events(&pass, reader, &forms);
    if (pass.events != plain->events || pass.text.len != plain->text.len ||
        (pass.text.len && memcmp(pass.text.data, plain->text.data, pass.text.len) != 0))
        abort();
}

static void check_count(struct krait_ctf_reader *reader, const struct pass *plain)
{
    struct krait_ctf_count count;
    if (krait_ctf_count(&count, reader, INT64_MIN, INT64_MAX))
        abort();
    if (count.events != plain->events || !count.damage.code != !plain->damage.code)
        abort();
    krait_ctf_count_done(&count);
}

static void check_api(const struct pass *plain)
{
    struct read_all all;
    const char *path = fuzz_dir;
    int rc = read_all(&all, &path, 1);
    if (all.wrong || all.events != plain->events || all.by_stream != plain->events ||
        !rc != !plain->damage.code)
        abort();
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    return fuzz_make_dir();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct krait_ctf_reader *reader = NULL;
    struct krait_err err = { 0 };
    const char *path = fuzz_dir;
    fuzz_write_trace(data, size);
    if (krait_ctf_open(&reader, &path, 1, NULL, &err)) {
        if (!err.text[0])
            abort();
        return 0;
    }
    KRAIT_CLEANUP(pass_done) struct pass plain = { 0 };
    read_all_events(&plain, reader, NULL);
    check_forms(reader, &plain);
    check_count(reader, &plain);
    krait_ctf_close(reader);
    check_api(&plain);
    return 0;
}
