/* SPDX-License-Identifier: Apache-2.0
 *
 * Declared analyses that the page makes: what they find, and the files that keep them. A definition is the text of a
 * TOML file (analysis/declared.h).
 */
#include "analysis/declared.h"
#include "base/dirs.h"
#include "base/json.h"
#include "base/outfile.h"
#include "serve/grid.h"
#include "serve/server.h"
#include "serve/serving.h"
#include "view/source.h"

#include <ctype.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define P(name) (1u << KRAIT_PARAM_##name)

enum { FIRST = 5, FIRST_MOST = 100, NAME_MOST = 64 };

/* A definition with its results. */
struct found {
    struct krait_rules rules;
    struct krait_intervals of;
};

static void found_done(struct found *found)
{
    krait_intervals_done(&found->of);
    krait_rules_done(&found->rules);
}

static bool takes_all(void *ctx, const struct krait_trace *trace, const struct krait_track *track)
{
    return track->of != KRAIT_OF_LANE;
}

static int bad_request(struct krait_err *err)
{
    return err->code = -EINVAL;
}

/* Reads the definition in the request's body and runs it. -EINVAL: it is wrong. `notes` gets a line for each part that is
 * left out, because the program has no such function, and for keys that are ignored; NULL: the first is wrong. */
static int find(struct found *found, struct krait_serving *serving, const struct krait_request *request,
                struct krait_buf *notes, struct krait_err *err)
{
    int rc = krait_declared_read(&found->rules, "definition", request->body, request->body_len, NULL, err);
    if (rc)
        return rc == -ENOMEM ? rc : bad_request(err);
    if (notes)
        krait_buf_add(notes, found->rules.notes.data, found->rules.notes.len);
    const struct krait_interval_options options = { .rules = found->rules.items,
                                                    .rule_count = found->rules.count,
                                                    .range = krait_serving_range(serving, request),
                                                    .takes = takes_all,
                                                    .wants_stays = true,
                                                    .notes = notes };
    krait_view_lock(serving->view);
    rc = krait_intervals_find(&found->of, serving->trace, &options, NULL, 0, err);
    krait_view_unlock(serving->view);
    return rc == -ENOENT ? bad_request(err) : rc;
}

/* -- preview -- */

/* Nanoseconds from the origin, as a text. */
static void put_time(struct krait_buf *out, const struct krait_serving *serving, const char *key, uint64_t ns)
{
    krait_json_key(out, key);
    krait_buf_fmt(out, "\"%llu\"", (unsigned long long)(ns - KRAIT_MIN(ns, serving->origin_ns)));
}

static void put_key(struct krait_buf *out, const struct krait_intervals *of, uint32_t key)
{
    krait_json_key_text_or_null(out, "key", key == KRAIT_NO_ID ? NULL : of->keys.texts[key]);
}

static void put_track(struct krait_buf *out, uint32_t track)
{
    krait_json_key_u64_or_null(out, "track", track != KRAIT_NO_ID, track);
}

static void put_intervals(struct krait_buf *out, const struct krait_serving *serving,
                          const struct krait_intervals *of, uint32_t rule, uint64_t limit)
{
    for (size_t i = 0; i < of->count && limit; i++) {
        const struct krait_interval *item = &of->items[i];
        if (of->rows[item->row].rule != rule)
            continue;
        krait_json_item(out, "\n{");
        put_time(out, serving, "begin", item->begin_ns);
        put_time(out, serving, "until", item->end_ns);
        put_key(out, of, item->key);
        put_track(out, item->begin_track);
        krait_buf_char(out, '}');
        limit--;
    }
}

static void put_samples(struct krait_buf *out, const struct krait_serving *serving,
                        const struct krait_intervals *of, uint32_t rule, uint64_t limit)
{
    for (size_t i = 0; i < of->sample_count && limit; i++) {
        const struct krait_sample *sample = &of->samples[i];
        if (of->signals[sample->row].rule != rule)
            continue;
        krait_json_item(out, "\n{");
        put_time(out, serving, "begin", sample->t_ns);
        krait_json_key(out, "value");
        krait_json_real(out, sample->value);
        put_key(out, of, sample->key);
        put_track(out, sample->track);
        krait_buf_char(out, '}');
        limit--;
    }
}

/* A number that does not exist if there are too few values. */
static void put_real(struct krait_buf *out, const char *key, double value)
{
    krait_json_key(out, key);
    krait_json_real(out, value);
}

static void put_row(struct krait_buf *out, const struct krait_intervals *of,
                    const struct krait_interval_row *row)
{
    krait_json_item(out, "\n{");
    put_key(out, of, row->key);
    krait_json_key_u64(out, "count", row->count);
    krait_json_key_u64(out, "total", row->total_ns);
    krait_json_key_u64(out, "min", row->min_ns);
    put_real(out, "mean", row->mean_ns);
    krait_json_key_u64(out, "median", row->median_ns);
    krait_json_key_u64(out, "p90", row->p90_ns);
    krait_json_key_u64(out, "p99", row->p99_ns);
    krait_json_key_u64(out, "max", row->max_ns);
    put_real(out, "deviation", row->deviation_ns);
    krait_json_key_u64(out, "noStop", row->no_stop);
    krait_json_key_u64(out, "noStart", row->no_start);
    krait_json_key_u64(out, "noKey", row->no_key);
    krait_buf_char(out, '}');
}

static void put_signal_row(struct krait_buf *out, const struct krait_intervals *of,
                           const struct krait_signal_row *row)
{
    krait_json_item(out, "\n{");
    put_key(out, of, row->key);
    krait_json_key_u64(out, "count", row->count);
    put_real(out, "total", row->total);
    put_real(out, "min", row->min);
    put_real(out, "mean", row->mean);
    put_real(out, "median", row->median);
    put_real(out, "p90", row->p90);
    put_real(out, "p99", row->p99);
    put_real(out, "max", row->max);
    put_real(out, "deviation", row->deviation);
    put_real(out, "last", row->last);
    put_real(out, "perSecond", row->per_s);
    krait_json_key_u64(out, "noNumber", row->no_number);
    krait_json_key_u64(out, "noKey", row->no_key);
    krait_buf_char(out, '}');
}

/* Not a state that became another one. */
static bool is_told(const struct krait_interval_row *row)
{
    return row->key == KRAIT_NO_ID || row->starts || row->stops || row->no_start || row->no_key;
}

/* As krait intervals has them, a row for each name, key or state; and which state followed which how often. */
static void put_rows(struct krait_buf *out, const struct krait_intervals *of, uint32_t rule)
{
    krait_json_key_open(out, "rows", '[');
    for (uint32_t i = 0; i < of->row_count; i++) {
        const struct krait_interval_row *row = &of->rows[i];
        if (row->rule == rule && is_told(row))
            put_row(out, of, row);
    }
    for (uint32_t i = 0; i < of->signal_count; i++) {
        if (of->signals[i].rule == rule)
            put_signal_row(out, of, &of->signals[i]);
    }
    krait_buf_char(out, ']');
    krait_json_key_open(out, "transitions", '[');
    for (uint32_t i = 0; i < of->transition_count; i++) {
        const struct krait_transition *next = &of->transitions[i];
        if (next->rule != rule)
            continue;
        krait_json_item(out, "\n{");
        krait_json_key_text(out, "from", of->keys.texts[next->from]);
        krait_json_key_text(out, "to", of->keys.texts[next->to]);
        krait_json_key_u64(out, "count", next->count);
        krait_buf_char(out, '}');
    }
    krait_buf_char(out, ']');
}

static void put_name(struct krait_buf *out, const struct krait_interval_rule *of)
{
    bool is_signal = of->kind == KRAIT_RULE_SIGNAL;
    krait_json_key_text(out, "name", of->name);
    krait_json_key_text(out, "kind",
                        is_signal                       ? "signal"
                        : of->kind == KRAIT_RULE_STATES ? "state"
                                                        : "interval");
}

static void put_rule(struct krait_buf *out, const struct krait_serving *serving, const struct found *found,
                     uint32_t rule, uint64_t limit)
{
    const struct krait_interval_rule *of = &found->rules.items[rule];
    krait_json_item(out, "\n{");
    put_name(out, of);
    put_rows(out, &found->of, rule);
    krait_json_key_open(out, "first", '[');
    if (of->kind == KRAIT_RULE_SIGNAL)
        put_samples(out, serving, &found->of, rule, limit);
    else
        put_intervals(out, serving, &found->of, rule, limit);
    krait_buf_str(out, "]}");
}

int krait_answer_preview(struct krait_serving *serving, const struct krait_request *request,
                         struct krait_buf *out, struct krait_err *err)
{
    KRAIT_CLEANUP(found_done) struct found found = { 0 };
    uint64_t limit = KRAIT_MIN(krait_request_number(request, KRAIT_PARAM_limit, FIRST), (uint64_t)FIRST_MOST);
    if (!request->body)
        return krait_err_set(err, -EINVAL, "preview: send the text of a definition with POST");
    int rc = find(&found, serving, request, NULL, err);
    if (rc)
        return rc;
    krait_buf_char(out, '{');
    krait_json_key_u64(out, "messages", found.of.messages);
    krait_json_key_u64(out, "givenUp", found.of.given_up);
    krait_json_key_open(out, "rules", '[');
    for (uint32_t i = 0; i < found.rules.count; i++)
        put_rule(out, serving, &found, i, limit);
    krait_buf_str(out, "]}\n");
    return 0;
}

/* -- what is shown -- */

/* Numbers of a signal in one column of the range. */
struct column {
    uint64_t count;
    double min, max, last;
};

static bool takes_shown(void *ctx, const struct krait_trace *trace, const struct krait_track *track)
{
    const struct krait_serving *serving = ctx;
    return track->of != KRAIT_OF_LANE &&
           (!serving->takes || serving->takes(serving->takes_ctx, trace, track));
}

/* The place of each row among those of the rule that are answered. NULL: no memory. */
static uint32_t *row_numbers(const struct krait_intervals *of, uint32_t rule)
{
    uint32_t *numbers = calloc((size_t)of->row_count + 1, sizeof(*numbers)), next = 0;
    for (uint32_t i = 0; numbers && i < of->row_count; i++) {
        numbers[i] = next;
        next += of->rows[i].rule == rule && is_told(&of->rows[i]);
    }
    return numbers;
}

static int put_cells(struct krait_buf *out, const struct krait_serving *serving,
                     const struct krait_intervals *of, uint32_t rule, struct krait_grid *grid)
{
    KRAIT_AUTO_FREE uint32_t *numbers = row_numbers(of, rule);
    int rc = numbers ? 0 : -ENOMEM;
    for (size_t i = 0; i < of->count && !rc; i++) {
        const struct krait_interval *item = &of->items[i];
        if (of->rows[item->row].rule != rule)
            continue;
        const struct krait_grid_point point = { .begin_ns = item->begin_ns - serving->origin_ns,
                                                .end_ns = item->end_ns - serving->origin_ns,
                                                .track = item->begin_track,
                                                .name = numbers[item->row] };
        rc = krait_grid_add(grid, &point);
    }
    if (!rc)
        krait_grid_put(out, grid);
    return rc;
}

static int put_columns(struct krait_buf *out, const struct krait_serving *serving,
                       const struct krait_intervals *of, uint32_t rule, const struct krait_grid *grid)
{
    KRAIT_AUTO_FREE struct column *columns = calloc(grid->columns + 1, sizeof(*columns));
    double length = (double)KRAIT_MAX(grid->range.to_ns - grid->range.from_ns, 1ull);
    if (!columns)
        return -ENOMEM;
    for (size_t i = 0; i < of->sample_count; i++) {
        const struct krait_sample *sample = &of->samples[i];
        uint64_t t_ns = sample->t_ns - serving->origin_ns;
        if (of->signals[sample->row].rule != rule)
            continue;
        double share = (double)(t_ns - KRAIT_MIN(grid->range.from_ns, t_ns)) / length;
        uint64_t at = KRAIT_MIN((uint64_t)(share * (double)grid->columns), grid->columns);
        struct column *column = &columns[at];
        column->min = column->count && column->min < sample->value ? column->min : sample->value;
        column->max = column->count && column->max > sample->value ? column->max : sample->value;
        column->last = sample->value;
        column->count++;
    }
    krait_json_key_open(out, "values", '[');
    for (uint64_t i = 0; i <= grid->columns; i++) {
        if (!columns[i].count)
            continue;
        krait_json_item(out, "\n[");
        krait_buf_fmt(out, "%llu,%llu,", (unsigned long long)i, (unsigned long long)columns[i].count);
        krait_json_real(out, columns[i].min);
        krait_buf_char(out, ',');
        krait_json_real(out, columns[i].max);
        krait_buf_char(out, ',');
        krait_json_real(out, columns[i].last);
        krait_buf_char(out, ']');
    }
    krait_buf_char(out, ']');
    return 0;
}

static int put_picture(struct krait_buf *out, const struct krait_serving *serving,
                       const struct krait_request *request, const struct krait_intervals *of, uint32_t rule)
{
    struct krait_range range = krait_serving_range(serving, request);
    KRAIT_CLEANUP(krait_grid_done)
    struct krait_grid grid = {
        .range = { range.from_ns - serving->origin_ns, range.to_ns - serving->origin_ns },
        .columns = krait_grid_columns(krait_request_number(request, KRAIT_PARAM_columns, KRAIT_GRID_COLUMNS))
    };
    return serving->rules.items[rule].kind == KRAIT_RULE_SIGNAL ? put_columns(out, serving, of, rule, &grid)
                                                                : put_cells(out, serving, of, rule, &grid);
}

int krait_answer_intervals(struct krait_serving *serving, const struct krait_request *request,
                           struct krait_buf *out, struct krait_err *err)
{
    const uint64_t pictured = krait_request_number(request, KRAIT_PARAM_rule, UINT64_MAX);
    KRAIT_CLEANUP(krait_intervals_done) struct krait_intervals of = { 0 };
    KRAIT_AUTO_BUF notes = { 0 }; /* they were told where the lanes were made */
    const struct krait_interval_options options = { .rules = serving->rules.items,
                                                    .rule_count = serving->rules.count,
                                                    .range = krait_serving_range(serving, request),
                                                    .takes = takes_shown,
                                                    .ctx = serving,
                                                    .notes = &notes };
    int rc = 0;
    krait_view_lock(serving->view);
    if (serving->rules.count)
        rc = krait_intervals_find(&of, serving->trace, &options, NULL, 0, err);
    krait_view_unlock(serving->view);
    if (rc)
        return rc;
    krait_buf_char(out, '{');
    krait_json_key_u64(out, "messages", of.messages);
    krait_json_key_open(out, "rules", '[');
    for (uint32_t i = 0; i < serving->rules.count && !rc; i++) {
        krait_json_item(out, "\n{");
        put_name(out, &serving->rules.items[i]);
        put_rows(out, &of, i);
        rc = i == pictured ? put_picture(out, serving, request, &of, i) : 0;
        krait_buf_char(out, '}');
    }
    krait_buf_str(out, "]}\n");
    return rc ? krait_err_set(err, rc, "out of memory") : 0;
}

/* -- the files -- */

/* A name of letters, digits, '-' and '_': it names a file of the user's folder, and no other. */
static bool is_name(const char *name)
{
    size_t n = 0;
    while (isalnum((unsigned char)name[n]) || name[n] == '-' || name[n] == '_')
        n++;
    return n && n <= NAME_MOST && !name[n];
}

/* The path for definitions: beside the recording, or by a name in the user's folder. */
static int path_of(struct krait_buf *path, const struct krait_serving *serving,
                   const struct krait_request *request, struct krait_err *err)
{
    if (!krait_request_has(request, KRAIT_PARAM_file))
        krait_buf_fmt(path, "%s/" KRAIT_DECLARED_BESIDE, serving->paths[0]);
    else if (!is_name(request->text))
        return krait_err_set(err, -EINVAL, "a name has at most %d characters: letters, digits, - and _",
                             NAME_MOST);
    else if (!serving->analyses)
        return krait_err_set(err, -EINVAL,
                             "there is no folder for analyses: neither HOME nor XDG_CONFIG_HOME is set");
    else
        krait_buf_fmt(path, "%s/%s.toml", serving->analyses, request->text);
    krait_buf_char(path, '\0');
    return path->failed ? krait_err_set(err, -ENOMEM, "out of memory") : 0;
}

/* An empty definition removes the file. */
static int write_file(const char *path, const struct krait_request *request, struct krait_err *err)
{
    KRAIT_AUTO_OUTFILE file = KRAIT_OUTFILE_INIT;
    if (!request->body_len)
        return unlink(path) && errno != ENOENT ? krait_err_errno(err, "%s", path) : 0;
    krait_dir_make_for(path);
    int rc = krait_outfile_open(&file, path, err);
    if (rc)
        return rc;
    krait_buf_add(&file.buf, request->body, request->body_len);
    return krait_outfile_commit(&file, err);
}

/* Keeps a definition only if it is valid. `changes`: lanes have it once the trace has as many. `notes`: as of find(). */
static int keep(struct krait_serving *serving, const struct krait_request *request, const char *path,
                uint32_t *changes, struct krait_buf *notes, struct krait_err *err)
{
    KRAIT_CLEANUP(found_done) struct found found = { 0 };
    int rc = request->body_len ? find(&found, serving, request, notes, err) : 0;
    if (rc)
        return rc;
    pthread_mutex_lock(&serving->one);
    rc = write_file(path, request, err);
    pthread_mutex_unlock(&serving->one);
    if (!rc && serving->changed)
        *changes = serving->changed(serving->changed_ctx);
    return rc ? -EIO : 0;
}

/* Each line of some notes as an item. */
static void put_warnings(struct krait_buf *out, const struct krait_buf *notes)
{
    const char *end = notes->data ? notes->data + notes->len : NULL;
    krait_json_key_open(out, "warnings", '[');
    for (const char *at = notes->data, *line_end; at < end; at = line_end + 1) {
        line_end = memchr(at, '\n', (size_t)(end - at)); /* each ends with one */
        krait_json_item(out, "");
        krait_json_str(out, at, (size_t)(line_end - at));
    }
    krait_buf_char(out, ']');
}

int krait_answer_declared(struct krait_serving *serving, const struct krait_request *request,
                          struct krait_buf *out, struct krait_err *err)
{
    KRAIT_AUTO_BUF path = { 0 };
    KRAIT_AUTO_BUF notes = { 0 };
    KRAIT_AUTO_BUF text = { 0 };
    struct stat of;
    uint32_t changes = serving->changes;
    int rc = path_of(&path, serving, request, err);
    if (!rc && request->body)
        rc = keep(serving, request, path.data, &changes, &notes, err);
    if (rc)
        return rc;
    krait_source_file(path.data, KRAIT_REQUEST_BODY_MAX, &text, &of); /* there may be none yet */
    krait_buf_char(&text, '\0');
    krait_buf_char(out, '{');
    krait_json_key_text(out, "path", path.data);
    krait_json_key_text(out, "text", text.failed ? "" : text.data);
    krait_json_key_u64(out, "changes", changes);
    put_warnings(out, &notes);
    krait_buf_str(out, "}\n");
    return 0;
}
