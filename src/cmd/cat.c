/* SPDX-License-Identifier: Apache-2.0
 *
 * krait cat: the events of CTF traces as text.
 */
#include "base/fmt.h"
#include "base/suggest.h"
#include "cmd/cmds.h"
#include "cmd/csv_dir.h"
#include "cmd/select.h"
#include "cmd/terminal.h"
#include "cmd/timearg.h"
#include "cmd/within.h"
#include "ctf/read/compare.h"
#include "ctf/read/merge.h"
#include "ctf/read/range.h"
#include "ctf/read/reader.h"
#include "ctf/text/pretty.h"
#include "trace/kept.h"

#include <signal.h>
#include <string.h>
#include <sys/stat.h>

struct cat_options {
    bool seconds, cycles, date, gmt, no_delta;
    const char *names;
    const char *fields;
    const char *begin;
    const char *end;
    const char *filter;
    bool json, csv, number;
    const char *csv_dir;
    struct krait_select select; /* --within, and its --analysis */
};

static const struct krait_opt cat_opts[] = {
    { "clock-cycles", 0, KRAIT_OPT_FLAG, NULL, offsetof(struct cat_options, cycles),
      "Print times in ticks of the clock" },
    { "clock-date", 0, KRAIT_OPT_FLAG, NULL, offsetof(struct cat_options, date),
      "Print the date before each time" },
    { "clock-gmt", 0, KRAIT_OPT_FLAG, NULL, offsetof(struct cat_options, gmt),
      "Print and read times in UTC (default: the local time zone)" },
    { "clock-seconds", 0, KRAIT_OPT_FLAG, NULL, offsetof(struct cat_options, seconds),
      "Print times as seconds since the clock's origin" },
    { "no-delta", 0, KRAIT_OPT_FLAG, NULL, offsetof(struct cat_options, no_delta),
      "Do not print the time since the previous event" },
    { "names", 'n', KRAIT_OPT_STR, "NAMES", offsetof(struct cat_options, names),
      "Print these names, separated by commas: payload, context, header, scope, all, none (default: "
      "payload,context)" },
    { "fields", 'f', KRAIT_OPT_STR, "FIELDS", offsetof(struct cat_options, fields),
      "Print these fields of the trace, separated by commas: trace, trace:hostname, trace:domain, "
      "trace:procname, trace:vpid, loglevel, emf, callsite (not in text, as in babeltrace2), all, none "
      "(default: host name, process name and id)" },
    { "begin", 'b', KRAIT_OPT_STR, "TIME", offsetof(struct cat_options, begin),
      "Skip events before TIME: [YYYY-MM-DD ]hh:mm[:ss[.nnnnnnnnn]], YYYY-MM-DD, or seconds since the "
      "clock's origin" },
    { "end", 'e', KRAIT_OPT_STR, "TIME", offsetof(struct cat_options, end), "Skip events after TIME" },
    { "within", 0, KRAIT_OPT_STR, "NAME[:N]", offsetof(struct cat_options, select.within),
      "Print only events inside one interval, such as serve:slowest, or without a number inside any of that name; see krait report --help" },
    { "analysis", 0, KRAIT_OPT_LIST, "FILE", offsetof(struct cat_options, select.analyses),
      "With --within: read declared analyses, as -f of other verbs; may be repeated" },
    { "filter", 0, KRAIT_OPT_STR, "EXPR", offsetof(struct cat_options, filter),
      "Print only events that match, such as 'name == \"sched_*\" && (prev_tid == 0 || $ctx.procname == "
      "bash)'" },
    { "json", 0, KRAIT_OPT_FLAG, NULL, offsetof(struct cat_options, json),
      "Print one JSON object per line; times, and integers of more than 53 bits, are strings" },
    { "csv", 0, KRAIT_OPT_FLAG, NULL, offsetof(struct cat_options, csv),
      "Print CSV: one column for each field if --filter selects one event name, else the scopes as JSON" },
    { "csv-dir", 0, KRAIT_OPT_STR, "DIR", offsetof(struct cat_options, csv_dir),
      "Write one CSV file for each event name into the new folder DIR, with one column for each field" },
    { "time-number", 0, KRAIT_OPT_FLAG, NULL, offsetof(struct cat_options, number),
      "With --json: print times as numbers; readers that store numbers as doubles round them" },
    KRAIT_OPTS_END,
};

/* -- lists of words -- */

struct word {
    const char *text;
    unsigned bits;
};

/* Other verbs read analyses by -f. */
static bool is_analysis(const char *name, size_t n)
{
    const char *dot = memrchr(name, '.', n);
    size_t suffix = dot ? n - (size_t)(dot - name) : 0;
    KRAIT_AUTO_FREE char *path = strndup(name, n);
    struct stat st;
    return (suffix == 5 && strncmp(dot, ".toml", suffix) == 0) ||
           (suffix == 4 && strncmp(dot, ".xml", suffix) == 0) ||
           (path && stat(path, &st) == 0 && S_ISREG(st.st_mode));
}

static int refuse_word(const char *option, const char *text, size_t n, const struct word *words,
                       struct krait_err *err)
{
    struct krait_suggest suggest = KRAIT_SUGGEST(text, n);
    KRAIT_AUTO_BUF all = { 0 };
    if (strcmp(option, "fields") == 0 && is_analysis(text, n))
        return krait_err_set(
            err, -EINVAL,
            "--fields: '%.*s' is a file, and no field; --analysis FILE reads what --within names", (int)n,
            text);
    for (const struct word *word = words; word->text; word++) {
        krait_suggest_try(&suggest, word->text);
        krait_buf_fmt(&all, "%s%s", all.len ? ", " : "", word->text);
    }
    krait_suggest_say(&all, suggest.best);
    return krait_err_set(err, -EINVAL, "--%s: '%.*s' is not one of %s", option, (int)n, text,
                         all.failed ? "its values" : all.data);
}

/* "a,b": the bits of its words. "none" starts again from nothing. */
static int parse_words(const char *list, const char *option, const struct word *words, unsigned *bits,
                       struct krait_err *err)
{
    *bits = 0;
    while (*list) {
        size_t n = strcspn(list, ",");
        const struct word *word = words;
        while (word->text && (strlen(word->text) != n || strncmp(word->text, list, n) != 0))
            word++;
        if (!word->text)
            return refuse_word(option, list, n, words, err);
        *bits = word->bits ? *bits | word->bits : 0;
        list += n + (list[n] == ',');
    }
    return 0;
}

enum { HEADER_NAMES = 1 << 16 }; /* beside krait_text_flags */

static int parse_names(const struct cat_options *opts, struct krait_pretty *pretty, struct krait_err *err)
{
    static const struct word words[] = {
        { "payload", KRAIT_TEXT_FIELD_NAMES },
        { "args", KRAIT_TEXT_FIELD_NAMES },
        { "arg", KRAIT_TEXT_FIELD_NAMES },
        { "context", KRAIT_TEXT_CONTEXT_NAMES },
        { "header", HEADER_NAMES },
        { "scope", KRAIT_TEXT_SCOPE_NAMES },
        { "all", KRAIT_TEXT_FIELD_NAMES | KRAIT_TEXT_CONTEXT_NAMES | KRAIT_TEXT_SCOPE_NAMES | HEADER_NAMES },
        { "none", 0 },
        { NULL, 0 },
    };
    unsigned bits = KRAIT_TEXT_FIELD_NAMES | KRAIT_TEXT_CONTEXT_NAMES;
    int rc = opts->names ? parse_words(opts->names, "names", words, &bits, err) : 0;
    pretty->text = bits & ~(unsigned)HEADER_NAMES;
    pretty->flags |= bits & HEADER_NAMES ? KRAIT_PRETTY_HEADER_NAMES : 0;
    return rc;
}

static int parse_fields(const struct cat_options *opts, struct krait_pretty *pretty, struct krait_err *err)
{
    static const struct word words[] = {
        { "trace", KRAIT_PRETTY_TRACE },
        { "trace:hostname", KRAIT_PRETTY_HOSTNAME },
        { "trace:domain", KRAIT_PRETTY_DOMAIN },
        { "trace:procname", KRAIT_PRETTY_PROCNAME },
        { "trace:vpid", KRAIT_PRETTY_VPID },
        { "loglevel", KRAIT_PRETTY_LOGLEVEL },
        { "emf", KRAIT_PRETTY_EMF },
        { "callsite", 0 },
        { "all", KRAIT_PRETTY_TRACE | KRAIT_PRETTY_HOSTNAME | KRAIT_PRETTY_DOMAIN | KRAIT_PRETTY_PROCNAME |
                     KRAIT_PRETTY_VPID | KRAIT_PRETTY_LOGLEVEL | KRAIT_PRETTY_EMF },
        { "none", 0 },
        { NULL, 0 },
    };
    unsigned bits = KRAIT_PRETTY_HOSTNAME | KRAIT_PRETTY_PROCNAME | KRAIT_PRETTY_VPID;
    int rc = opts->fields ? parse_words(opts->fields, "fields", words, &bits, err) : 0;
    pretty->flags |= bits;
    return rc;
}

static void parse_clock(const struct cat_options *opts, struct krait_pretty *pretty)
{
    pretty->flags |= (opts->seconds ? KRAIT_PRETTY_SECONDS : 0) | (opts->cycles ? KRAIT_PRETTY_CYCLES : 0) |
                     (opts->date ? KRAIT_PRETTY_DATE : 0) | (opts->gmt ? KRAIT_PRETTY_GMT : 0) |
                     (opts->no_delta ? KRAIT_PRETTY_NO_DELTA : 0);
}

struct cat {
    struct krait_pretty pretty;
    struct krait_data data; /* of JSON and CSV */
    struct krait_csv_dir dir;
    struct krait_filter *filter; /* NULL: all events */
    bool json, csv;
    bool text;  /* neither */
    bool plain; /* text of all events in the range */
    struct krait_buf out;
    struct krait_timearg begin, end;
    int64_t begin_ns, end_ns;
    const struct krait_ranges *parts; /* of these; NULL: all */
    struct kept {
        const struct krait_ctf_trace *trace;
        uint64_t from; /* see krait_kept_from */
    } * kept;          /* of traces that are parts, unless --begin says more */
    uint32_t kept_count;
    uint64_t before_kept; /* events that are not printed for it */
    bool reversed;        /* the range ends before it begins */
    struct krait_err err; /* of the files of --csv-dir */
};

/* -- output -- */

enum { FLUSH_AT = 256 * 1024 };

/* Returns 0, -EPIPE when the reader of our output went away, or another negative errno. */
static int flush_out(struct krait_buf *out)
{
    for (size_t done = 0; done < out->len;) {
        ssize_t n = write(STDOUT_FILENO, out->data + done, out->len - done);
        if (n < 0 && errno != EINTR)
            return -errno;
        done += n > 0 ? (size_t)n : 0;
    }
    out->len = 0;
    return 0;
}

/* A sentence, whose names are the trace's and of files. */
static void add_loss(struct cat *cat, const struct krait_ctf_loss *loss, struct krait_buf *text)
{
    KRAIT_AUTO_BUF line = { 0 };
    krait_pretty_loss(&cat->pretty, loss, &line);
    if (!line.len || line.failed)
        return;
    line.data[line.len - 1] = '\0'; /* its own line end */
    krait_fmt_safe(text, line.data);
    krait_buf_str(text, "\n");
}

/* Objects among the others in JSON; else sentences on stderr. */
static void print_losses(struct cat *cat, const struct krait_ctf_reader *reader)
{
    KRAIT_AUTO_BUF text = { 0 };
    for (uint32_t s = 0; s < reader->stream_count; s++) {
        for (uint32_t i = 0; i < reader->streams[s]->packet_count; i++) {
            struct krait_ctf_loss losses[2];
            unsigned n = krait_ctf_losses(reader->streams[s], i, losses);
            for (unsigned k = 0; k < n; k++)
                cat->json ? krait_data_json_loss(&cat->data, &losses[k], &text)
                          : add_loss(cat, &losses[k], &text);
        }
    }
    if (text.len && !text.failed)
        fwrite(text.data, 1, text.len, cat->json ? stdout : stderr);
}

/* -- events -- */

/* A time without a date is of the first event's day. */
static bool needs_first(const struct krait_timearg *time)
{
    return time->given && !time->has_day;
}

/* *some: whether there is one. */
static int know_first(struct krait_ctf_reader *reader, int64_t *ns, bool *some, struct krait_err *err)
{
    struct krait_ctf_merge *merge;
    int rc = krait_ctf_merge_new(&merge, reader, err);
    if (rc)
        return rc;
    const struct krait_ctf_cursor *first = krait_ctf_merge_next(merge);
    *some = first;
    *ns = first ? first->ns : 0;
    krait_ctf_merge_free(merge);
    return 0;
}

static int know_range(struct cat *cat, struct krait_ctf_reader *reader, struct krait_err *err)
{
    const struct krait_timearg *begin = &cat->begin, *end = &cat->end;
    int64_t first_ns = 0;
    bool some = true;
    int rc = needs_first(begin) || needs_first(end) ? know_first(reader, &first_ns, &some, err) : 0;
    cat->begin_ns = krait_timearg_ns(begin, first_ns, INT64_MIN);
    cat->end_ns = krait_timearg_ns(end, first_ns, INT64_MAX);
    cat->reversed = !rc && some && begin->given && end->given && cat->begin_ns > cat->end_ns;
    if (!cat->reversed)
        return rc;
    return krait_err_set(
        err, -EINVAL, "the range is empty: --begin %s is after --end %s%s", begin->given, end->given,
        begin->has_day != end->has_day ? "; a time without a date is of the first event's day" : "");
}

/* To the file of its name. What cannot be written ends all: `err` is the verb's. */
static int print_to_file(struct cat *cat, struct krait_ctf_cursor *cursor)
{
    struct krait_buf *out = krait_csv_dir_of(&cat->dir, cursor->event);
    if (!out)
        return krait_err_set(&cat->err, -ENOMEM, "out of memory");
    int rc = krait_data_event(&cat->data, cursor, out);
    krait_csv_dir_flush(&cat->dir, cursor->event, &cat->err);
    return rc;
}

static int print_event(struct cat *cat, struct krait_ctf_cursor *cursor)
{
    if (cat->dir.path)
        return print_to_file(cat, cursor);
    return cat->text ? krait_pretty_event(&cat->pretty, cursor, &cat->out)
                     : krait_data_event(&cat->data, cursor, &cat->out);
}

static bool is_before_kept(const struct cat *cat, const struct krait_ctf_cursor *cursor)
{
    uint32_t i = 0;
    while (i < cat->kept_count && cat->kept[i].trace != cursor->trace)
        i++;
    return i < cat->kept_count && cursor->ticks < cat->kept[i].from;
}

/* Counts it if it would be printed. */
static int pass_before_kept(struct cat *cat, struct krait_ctf_cursor *cursor)
{
    int rc = krait_ctf_event_skip(cursor);
    cat->before_kept += !rc && (!cat->filter || krait_filter_wants(cat->filter, cursor));
    return rc;
}

/* Filters look at single fields, which are there once the event was passed. */
static int cat_filtered(struct cat *cat, struct krait_ctf_cursor *cursor)
{
    int rc = krait_ctf_event_skip(cursor);
    if (rc || !krait_filter_wants(cat->filter, cursor))
        return rc;
    krait_ctf_event_rewind(cursor);
    return print_event(cat, cursor);
}

static int cat_event(struct cat *cat, struct krait_ctf_cursor *cursor)
{
    if (cursor->ns < cat->begin_ns || cursor->ns > cat->end_ns ||
        (cat->parts && !krait_ranges_have(cat->parts, (uint64_t)cursor->ns)))
        return krait_ctf_event_skip(cursor);
    if (KRAIT_UNLIKELY(cat->kept_count) && is_before_kept(cat, cursor))
        return pass_before_kept(cat, cursor);
    if (KRAIT_LIKELY(cat->plain))
        return krait_pretty_event(&cat->pretty, cursor, &cat->out);
    return cat->filter ? cat_filtered(cat, cursor) : print_event(cat, cursor);
}

/* All events. The verb's failure is in err; damage is the merge's. */
static int cat_events(struct cat *cat, struct krait_ctf_merge *merge, struct krait_err *err)
{
    struct krait_ctf_cursor *cursor;
    int rc = 0;
    while (!rc && (cursor = krait_ctf_merge_next(merge))) {
        cat_event(cat, cursor); /* its damage ends its stream at the merge's next step */
        if (cat->out.len >= FLUSH_AT)
            rc = flush_out(&cat->out);
        if (KRAIT_UNLIKELY(cat->err.code))
            break;
    }
    if (!cat->err.code && cat->dir.path)
        krait_csv_dir_flush(&cat->dir, NULL, &cat->err);
    if (cat->err.code) {
        *err = cat->err;
        return err->code;
    }
    if (!rc)
        rc = flush_out(&cat->out);
    if (rc && rc != -EPIPE)
        krait_err_set(err, rc, "cannot write the output: %s", strerror(-rc));
    return rc;
}

/* A column a field, where all events have the same. */
static void begin_csv(struct cat *cat, const struct krait_ctf_reader *reader)
{
    const struct krait_event_class *only = krait_csv_only_class(reader, cat->filter);
    cat->data.form = only ? KRAIT_DATA_WIDE : KRAIT_DATA_LONG;
    krait_csv_columns(&cat->out, only);
}

/* A mistyped name selects nothing, without a mistake in the expression. */
static void say_unmet_names(const struct cat *cat, const struct krait_ctf_reader *reader)
{
    KRAIT_AUTO_BUF text = { 0 };
    krait_filter_unmet_names(cat->filter, reader, &text);
    if (text.len && !text.failed)
        fprintf(stderr, "krait cat: %s\n", text.data);
}

/* Returns 0 or -ENOMEM with err set. */
static int know_kept(struct cat *cat, const struct krait_ctf_reader *reader, struct krait_err *err)
{
    if (cat->begin.given)
        return 0;
    cat->kept = calloc((size_t)reader->trace_count + 1, sizeof(*cat->kept));
    if (!cat->kept)
        return krait_err_set(err, -ENOMEM, "out of memory");
    for (uint32_t i = 0; i < reader->trace_count; i++) {
        struct kept kept = { reader->traces[i], krait_kept_from(reader->traces[i]) };
        if (kept.from)
            cat->kept[cat->kept_count++] = kept;
    }
    return 0;
}

static void say_before_kept(const struct cat *cat)
{
    char count[KRAIT_FMT_SIZE];
    if (cat->before_kept)
        krait_terminal_say(
            NULL, 0,
            "krait cat: %s not printed: names, what was open when the kept part begins, and what came just before it; "
            "--begin 0 prints everything",
            krait_fmt_counted(count, cat->before_kept, "event"));
}

static int cat_reader(struct cat *cat, struct krait_ctf_reader *reader, struct krait_err *err)
{
    struct krait_ctf_merge *merge;
    int rc = krait_ctf_comparable(reader, err);
    rc = rc ? rc : know_kept(cat, reader, err);
    if (!rc && cat->filter)
        rc = krait_filter_bind(cat->filter, reader, err);
    if (!rc && cat->filter)
        say_unmet_names(cat, reader);
    if (!rc)
        rc = krait_ctf_merge_new(&merge, reader, err);
    if (rc)
        return rc;
    if (cat->csv)
        begin_csv(cat, reader);
    if (cat->dir.path)
        cat->data.form = KRAIT_DATA_WIDE;
    krait_ctf_merge_by_turn(merge);
    krait_ctf_merge_range(merge, cat->begin_ns, cat->end_ns);
    rc = cat_events(cat, merge, err);
    if (!rc)
        print_losses(cat, reader);
    if (!rc)
        say_before_kept(cat);
    if (!rc && krait_ctf_merge_damage(merge)->code) {
        *err = *krait_ctf_merge_damage(merge);
        rc = err->code;
    }
    krait_ctf_merge_free(merge);
    return rc;
}

/* The event that ends an interval is in it. */
static void know_parts(struct cat *cat, struct krait_ranges *parts)
{
    for (uint32_t i = 0; i < parts->count; i++)
        parts->items[i].to_ns++;
    krait_ranges_join(parts);
    cat->parts = parts->count ? parts : NULL;
}

/* --within in place of --begin and --end. The event that ends the interval is in it. */
static int know_interval(struct cat *cat, struct krait_select *select, const char *const *paths, size_t count,
                         struct krait_err *err)
{
    struct krait_trace *trace = NULL;
    if (!select->within)
        return 0;
    int rc = krait_trace_open(&trace, paths, count, 0, err);
    select->sums_parts = true;
    rc = rc ? rc : krait_within(select, trace, "cat", err);
    if (!rc) {
        struct krait_range range = krait_select_range(select, trace);
        cat->begin_ns = (int64_t)range.from_ns;
        cat->end_ns = (int64_t)range.to_ns;
        know_parts(cat, &select->parts);
    }
    krait_trace_close(trace);
    return rc;
}

/* Of a range, few packets may be needed: index files tell of the others, unless they are wrong. */
static int open_range(struct cat *cat, struct krait_select *select, struct krait_ctf_reader **out,
                      const char *const *paths, size_t count, struct krait_ctf_options *ctf,
                      struct krait_err *err)
{
    struct krait_ctf_reader *reader = NULL;
    ctf->indexes = cat->begin.given || cat->end.given || select->within;
    int rc = krait_ctf_open(&reader, paths, count, ctf, err);
    rc = rc ? rc : know_range(cat, reader, err);
    rc = rc ? rc : know_interval(cat, select, paths, count, err);
    if (!rc && ctf->indexes && !krait_ctf_settle(reader, cat->begin_ns, cat->end_ns)) {
        krait_ctf_close(reader);
        reader = NULL;
        ctf->indexes = false;
        rc = krait_ctf_open(&reader, paths, count, ctf, err);
    }
    *out = reader;
    return rc;
}

static int parse_options(const struct cat_options *opts, struct cat *cat, struct krait_err *err)
{
    int rc = parse_names(opts, &cat->pretty, err);
    if (!rc)
        rc = parse_fields(opts, &cat->pretty, err);
    if (!rc)
        rc = krait_timearg_parse(&cat->begin, "begin", opts->begin, opts->gmt, err);
    if (!rc)
        rc = krait_timearg_parse(&cat->end, "end", opts->end, opts->gmt, err);
    if (!rc && opts->filter)
        rc = krait_filter_new(&cat->filter, opts->filter, err);
    parse_clock(opts, &cat->pretty);
    cat->json = opts->json;
    cat->csv = opts->csv;
    cat->text = !cat->json && !cat->csv && !opts->csv_dir;
    cat->data.time_is_number = opts->number;
    cat->plain = cat->text && !cat->filter;
    if (!rc && cat->json + cat->csv + !!opts->csv_dir > 1)
        rc = krait_err_set(err, -EINVAL, "--json, --csv and --csv-dir exclude each other");
    if (!rc && opts->select.within && (opts->begin || opts->end))
        rc = krait_err_set(err, -EINVAL, "--within does not go with --begin and --end: it is a range itself");
    if (!rc && opts->select.analyses.count && !opts->select.within)
        rc = krait_err_set(err, -EINVAL, "--analysis declares what --within may name; use both");
    if (!rc && opts->number && !cat->json)
        rc = krait_err_set(err, -EINVAL, "--time-number needs --json");
    return rc;
}

static void cat_done(struct cat *cat, struct cat_options *opts)
{
    free(cat->kept);
    krait_buf_done(&cat->out);
    krait_pretty_done(&cat->pretty);
    krait_data_done(&cat->data);
    krait_csv_dir_done(&cat->dir);
    krait_filter_free(cat->filter);
    krait_select_done(&opts->select);
}

static int run_cat(void *values, int argc, char **argv)
{
    struct cat cat = { 0 };
    struct cat_options *opts = values;
    struct krait_ctf_options ctf = { 0 };
    struct krait_ctf_reader *reader = NULL;
    struct krait_err err = { 0 };
    if (krait_select_given(KRAIT_SELECT_TRACE, argc, &err) || parse_options(opts, &cat, &err)) {
        cat_done(&cat, opts);
        return krait_cmd_usage(&krait_cmd_cat, &err);
    }
    signal(SIGPIPE, SIG_IGN);
    int rc = open_range(&cat, &opts->select, &reader, (const char *const *)argv, (size_t)argc, &ctf, &err);
    if (!rc && opts->csv_dir)
        rc = krait_csv_dir_open(&cat.dir, opts->csv_dir, &err);
    if (!rc)
        rc = cat_reader(&cat, reader, &err);
    krait_ctf_close(reader);
    cat_done(&cat, opts);
    if (!rc || rc == -EPIPE)
        return 0;
    krait_cmd_fail(&krait_cmd_cat, &err);
    return cat.reversed ? 2 : 1;
}

const struct krait_cmd krait_cmd_cat = {
    .name = "cat",
    .operands = "TRACE...",
    .summary = "Print the events of any CTF trace as text",
    .description =
        "Prints one event per line in the order of time, as babeltrace2 does. Reads krait's recordings and any "
        "other trace in CTF 1.8 or CTF 2 (LTTng, barectf, Zephyr ...).\n\n"
        "TRACE is a folder with a file named `metadata`, or a folder that contains such folders. krait "
        "merges several traces if their clocks can be compared.\n\n"
        "Of a recording that dropped its oldest events (--last, --keep newest), of a snapshot and of a part that krait cut "
        "made, krait prints the events from when on all are there; --begin 0 prints everything.\n\n"
        "--filter takes comparisons (== != < <= > >=) of fields with numbers or text, combined with &&, ||, "
        "! and parentheses. `name` is the event's name, * in a text matches anything, and $ctx. looks only "
        "at contexts. docs/cat.md has the rules and describes the output of --json.\n\n"
        "krait reports events that the tracer discarded on stderr. If a trace is damaged, krait prints the "
        "intact events, then the reason, and exits with status 1.",
    .examples = "krait cat trace\n"
                "# The events between two times\n"
                "krait cat --begin 14:03:07 --end 14:03:07.5 trace\n"
                "# The switches away from the idle task, as JSON\n"
                "krait cat --json --filter 'name == sched_switch && prev_tid == 0' trace\n"
                "# One CSV file for each event name, in one pass\n"
                "krait cat --csv-dir tables trace\n"
                "# Two traces on one timeline, values without names\n"
                "krait cat --names none trace ~/lttng-traces/kernel\n",
    .opts = cat_opts,
    .values_size = sizeof(struct cat_options),
    .run = run_cat,
};
