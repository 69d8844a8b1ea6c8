/* SPDX-License-Identifier: Apache-2.0 */
#include "ctf/read/filter.h"

#include "base/array.h"
#include "base/fmt.h"
#include "base/suggest.h"

#include <string.h>

enum { MAX_DEPTH = 64 };

enum test_op { OP_SET, OP_EQ, OP_NE, OP_LT, OP_LE, OP_GT, OP_GE };

/* What a comparison is with: it may be all three. */
struct constant {
    const char *text; /* with \ before what is meant as it is */
    bool is_int, is_negative, is_real;
    uint64_t number; /* two's complement when negative */
    double real;
};

struct expr {
    enum { EXPR_AND, EXPR_OR, EXPR_NOT, EXPR_NAME, EXPR_FIELD } kind;
    struct expr *a, *b;
    enum test_op op;
    struct constant with;
    const char *path;
    unsigned column;
    bool payload_only, context_only;
    struct krait_map locators; /* FIELD: struct krait_event_class * to struct krait_locator * */
};

struct krait_filter {
    struct krait_arena arena;
    const char *text, *at;
    unsigned depth;
    struct krait_err *err; /* of parsing */
    struct expr *root;
    struct expr **tests; /* those of fields */
    uint32_t test_count, test_cap;
};

/* -- parsing -- */

static struct expr *mistake(struct krait_filter *f, const char *at, const char *what)
{
    krait_err_set(f->err, -EINVAL, "filter, column %u: %s\n    %s\n    %*s^", (unsigned)(at - f->text) + 1,
                  what, f->text, (int)(at - f->text), "");
    return NULL;
}

static struct expr *out_of_memory(struct krait_filter *f)
{
    krait_err_set(f->err, -ENOMEM, "out of memory");
    return NULL;
}

static struct expr *new_expr(struct krait_filter *f, int kind, struct expr *a, struct expr *b)
{
    struct expr *e = KRAIT_ARENA_NEW(&f->arena, struct expr);
    if (!e)
        return out_of_memory(f);
    e->kind = kind;
    e->a = a;
    e->b = b;
    return e;
}

static bool take(struct krait_filter *f, const char *token)
{
    f->at += strspn(f->at, " \t\n");
    size_t n = strlen(token);
    if (strncmp(f->at, token, n) != 0)
        return false;
    f->at += n;
    return true;
}

static enum test_op take_op(struct krait_filter *f)
{
    static const struct {
        const char *token;
        enum test_op op;
    } rows[] = { { "==", OP_EQ }, { "!=", OP_NE }, { "<=", OP_LE },
                 { ">=", OP_GE }, { "<", OP_LT },  { ">", OP_GT } };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(rows); i++) {
        if (take(f, rows[i].token))
            return rows[i].op;
    }
    return OP_SET;
}

/* A number in all its forms, or none. */
static void read_number(struct constant *c)
{
    char *end;
    errno = 0;
    c->is_negative = c->text[0] == '-';
    c->number = strtoull(c->text, &end, 0);
    c->is_int = *c->text && !*end && !errno && (!c->is_negative || (int64_t)c->number <= 0);
    c->real = strtod(c->text, &end);
    c->is_real = *c->text && !*end;
}

static int take_constant(struct krait_filter *f, struct constant *c)
{
    f->at += strspn(f->at, " \t\n");
    const char *from = f->at;
    bool quoted = *f->at == '"';
    if (quoted) {
        for (f->at++; *f->at && *f->at != '"'; f->at++)
            f->at += f->at[0] == '\\' && f->at[1];
        if (!*f->at)
            return mistake(f, from, "this quotation has no end") ? 0 : -EINVAL;
        c->text = krait_arena_strndup(&f->arena, from + 1, (size_t)(f->at++ - from - 1));
    } else {
        size_t n = strcspn(f->at, " \t\n()&|!=<>\"");
        if (!n)
            return mistake(f, from, "a number, a word or a \"text\" is wanted here") ? 0 : -EINVAL;
        c->text = krait_arena_strndup(&f->arena, from, n);
        f->at += n;
    }
    if (!c->text)
        return out_of_memory(f) ? 0 : -ENOMEM;
    if (!quoted)
        read_number(c);
    return 0;
}

static int keep_test(struct krait_filter *f, struct expr *e)
{
    if (!KRAIT_GROW(f->tests, f->test_cap, f->test_count + 1))
        return -ENOMEM;
    f->tests[f->test_count++] = e;
    return 0;
}

/* Bytes of a name in backquotes; 0: they have no end. */
static size_t quoted_len(const char *at)
{
    size_t n = 1;
    while (at[n] && at[n] != '`')
        n += at[n] == '\\' && at[n + 1] ? 2 : 1;
    return at[n] ? n + 1 : 0;
}

/* Bytes of a path, in which names may be in quotes; of one whose quotes have no end, 0. */
static size_t path_len(const char *at)
{
    size_t n = 0;
    for (size_t name = 1; name && !strchr(" \t\n()&|!=<>\"", at[n]); n += name)
        name = at[n] == '`' ? quoted_len(at + n) : 1;
    return at[n] == '`' ? 0 : n;
}

static struct expr *parse_test(struct krait_filter *f)
{
    const char *from = f->at;
    size_t n = path_len(f->at);
    if (!n && !strchr(" \t\n()&|!=<>\"", *from))
        return mistake(f, from, "a name in backquotes has no end");
    struct expr *e =
        n ? new_expr(f, EXPR_FIELD, NULL, NULL) : mistake(f, from, "a field's name is wanted here");
    if (!e)
        return NULL;
    f->at += n;
    e->column = (unsigned)(from - f->text) + 1;
    e->path = krait_arena_strndup(&f->arena, from, n);
    if (!e->path || keep_test(f, e))
        return out_of_memory(f);
    if (strcmp(e->path, "name") == 0)
        e->kind = EXPR_NAME;
    e->context_only = strncmp(e->path, "$ctx.", 5) == 0;
    e->payload_only = strncmp(e->path, "payload.", 8) == 0;
    e->path += e->context_only ? 5 : e->payload_only ? 8 : 0;
    if (e->path[0] == '$')
        return mistake(f, from, "of the words with a $ there is only $ctx.");
    f->at += strspn(f->at, " \t\n");
    const char *op_at = f->at;
    e->op = take_op(f);
    if (*f->at == '=' && e->op == OP_SET)
        return mistake(f, op_at, "equality is written ==");
    if (e->op != OP_SET && take_constant(f, &e->with))
        return NULL;
    bool ordered = e->op >= OP_LT;
    if (ordered && (e->kind == EXPR_NAME || !e->with.is_real))
        return mistake(f, op_at, "only numbers have an order; texts are compared with == and !=");
    return e;
}

static struct expr *parse_or(struct krait_filter *f);

static struct expr *parse_unary(struct krait_filter *f)
{
    f->at += strspn(f->at, " \t\n");
    const char *from = f->at;
    if (f->depth >= MAX_DEPTH)
        return mistake(f, from, "too many brackets and negations");
    struct expr *e;
    f->depth++;
    if (take(f, "!")) {
        e = parse_unary(f);
        e = e ? new_expr(f, EXPR_NOT, e, NULL) : NULL;
    } else if (take(f, "(")) {
        e = parse_or(f);
        if (e && !take(f, ")"))
            e = mistake(f, f->at, "a closing bracket is wanted here");
    } else {
        e = parse_test(f);
    }
    f->depth--;
    return e;
}

static struct expr *parse_and(struct krait_filter *f)
{
    struct expr *e = parse_unary(f);
    while (e && take(f, "&&")) {
        struct expr *b = parse_unary(f);
        e = b ? new_expr(f, EXPR_AND, e, b) : NULL;
    }
    return e;
}

static struct expr *parse_or(struct krait_filter *f)
{
    struct expr *e = parse_and(f);
    while (e && take(f, "||")) {
        struct expr *b = parse_and(f);
        e = b ? new_expr(f, EXPR_OR, e, b) : NULL;
    }
    return e;
}

int krait_filter_new(struct krait_filter **out, const char *text, struct krait_err *err)
{
    struct krait_filter *f = calloc(1, sizeof(*f));
    if (!f)
        return krait_err_set(err, -ENOMEM, "out of memory");
    struct krait_err reason = { 0 };
    f->err = &reason;
    f->text = f->at = krait_arena_strdup(&f->arena, text);
    if (!f->text)
        out_of_memory(f);
    else
        f->root = parse_or(f);
    if (f->root && *(f->at += strspn(f->at, " \t\n")))
        f->root = mistake(f, f->at, "&&, || or the end is wanted here");
    f->err = NULL;
    if (!f->root) {
        krait_filter_free(f);
        return krait_err_lines(err, krait_err_set(err, reason.code, "%s", reason.text));
    }
    *out = f;
    return 0;
}

void krait_filter_free(struct krait_filter *filter)
{
    if (!filter)
        return;
    for (uint32_t i = 0; i < filter->test_count; i++)
        krait_map_done(&filter->tests[i]->locators);
    free(filter->tests);
    krait_arena_done(&filter->arena);
    free(filter);
}

/* -- finding the fields -- */

static int bind_class(struct krait_filter *f, struct expr *e, const struct krait_ctf_trace *trace,
                      const struct krait_event_class *event)
{
    const struct krait_locator *locator;
    enum krait_field_scope scope = e->context_only ? KRAIT_FIELD_EVENT_CONTEXT : KRAIT_FIELD_PAYLOAD;
    enum krait_field_scope last = e->payload_only ? KRAIT_FIELD_PAYLOAD : KRAIT_FIELD_PACKET_CONTEXT;
    int rc = -ENOENT;
    for (; scope <= last && rc == -ENOENT; scope++)
        rc = krait_locator_new(&locator, &f->arena, trace, event, scope, e->path, NULL);
    return rc ? rc : krait_map_put(&e->locators, (uintptr_t)event, (uintptr_t)locator);
}

static int bind_trace(struct krait_filter *f, struct expr *e, const struct krait_ctf_trace *trace)
{
    for (uint32_t s = 0; s < trace->metadata->stream_count; s++) {
        const struct krait_stream_class *cls = trace->metadata->streams[s];
        for (uint32_t i = 0; i < cls->event_count; i++) {
            int rc = bind_class(f, e, trace, cls->events[i]);
            if (rc && rc != -ENOENT)
                return rc;
        }
    }
    return 0;
}

int krait_filter_bind(struct krait_filter *filter, const struct krait_ctf_reader *reader,
                      struct krait_err *err)
{
    for (uint32_t i = 0; i < filter->test_count; i++) {
        struct expr *e = filter->tests[i];
        int rc = 0;
        for (uint32_t t = 0; t < reader->trace_count && !rc && e->kind == EXPR_FIELD; t++)
            rc = bind_trace(filter, e, reader->traces[t]);
        if (rc == -ENOMEM)
            return krait_err_set(err, rc, "out of memory");
        if (rc || (e->kind == EXPR_FIELD && !e->locators.len))
            return krait_err_set(err, -EINVAL, "filter, column %u: no event of this trace has a field '%s'",
                                 e->column, e->path);
    }
    return 0;
}

/* -- asking -- */

/* Whether a text is what the pattern says: * is anything, \ takes what follows as it is. */
static bool matches(const char *pattern, const char *text, size_t n)
{
    const char *star = NULL, *end = text + n, *resume = text;
    while (text < end || *pattern) {
        if (*pattern == '*') {
            star = ++pattern;
            resume = text;
            continue;
        }
        const char *literal = pattern[0] == '\\' && pattern[1] ? pattern + 1 : pattern;
        if (text < end && *literal == *text && *pattern) {
            pattern = literal + 1;
            text++;
        } else if (star && resume < end) {
            pattern = star;
            text = ++resume;
        } else {
            return false;
        }
    }
    return true;
}

static bool holds(enum test_op op, int order)
{
    switch (op) {
    case OP_EQ:
        return order == 0;
    case OP_NE:
    case OP_SET:
        return order != 0;
    case OP_LT:
        return order < 0;
    case OP_LE:
        return order <= 0;
    case OP_GT:
        return order > 0;
    default:
        return order >= 0;
    }
}

static bool test_text(const struct expr *e, const char *text, size_t n)
{
    if (e->op == OP_SET)
        return n > 0;
    return e->op <= OP_NE && matches(e->with.text, text, n) == (e->op == OP_EQ);
}

static bool test_real(const struct expr *e, double value)
{
    double with = e->op == OP_SET ? 0 : e->with.real;
    if (e->op != OP_SET && !e->with.is_real)
        return false;
    if (value != value) /* NaN is unequal to everything */
        return e->op == OP_NE;
    return holds(e->op, (value > with) - (value < with));
}

static bool test_int(const struct expr *e, const struct krait_fc *fc, uint64_t value)
{
    bool negative = fc->is_signed && (int64_t)value < 0;
    if (e->op == OP_SET)
        return value != 0;
    if (!e->with.is_int)
        return test_real(e, fc->is_signed ? (double)(int64_t)value : (double)value);
    if (negative != e->with.is_negative && !(e->with.is_negative && !e->with.number))
        return holds(e->op, negative ? -1 : 1);
    uint64_t with = e->with.number;
    return holds(e->op, negative ? ((int64_t)value > (int64_t)with) - ((int64_t)value < (int64_t)with)
                                 : (value > with) - (value < with));
}

static bool test_label(const struct expr *e, const struct krait_fc *fc, uint64_t value)
{
    const char *label = krait_enum_label(fc, value);
    return label && test_text(e, label, strlen(label));
}

static bool test_field(const struct expr *e, struct krait_ctf_cursor *cursor)
{
    const uint64_t *locator = krait_map_get(&e->locators, (uintptr_t)cursor->event);
    struct krait_value value;
    if (!locator || krait_locator_value((const struct krait_locator *)(uintptr_t)*locator, cursor, &value))
        return false;
    const struct krait_fc *fc = value.node->fc;
    size_t n;
    if (krait_node_is_text(value.node)) {
        const char *text = krait_value_text(&value, &n);
        return test_text(e, text, n);
    }
    if (fc->kind == KRAIT_FC_FLOAT)
        return test_real(e, krait_value_float(&value));
    if (!krait_fc_is_int(fc))
        return e->op == OP_SET && value.count;
    uint64_t number = krait_value_int(&value);
    bool by_label = fc->kind == KRAIT_FC_ENUM && e->op != OP_SET && !e->with.is_real;
    return by_label ? test_label(e, fc, number) : test_int(e, fc, number);
}

static bool test_name(const struct expr *e, const char *name)
{
    return test_text(e, name, strlen(name));
}

/* Whether an event class of the trace is called so; else it may be what was meant. */
static bool meets_name(const struct expr *e, const struct krait_ctf_trace *trace, struct krait_suggest *meant)
{
    for (uint32_t s = 0; s < trace->metadata->stream_count; s++) {
        const struct krait_stream_class *cls = trace->metadata->streams[s];
        for (uint32_t i = 0; i < cls->event_count; i++) {
            if (test_name(e, cls->events[i]->name))
                return true;
            krait_suggest_try_event(meant, cls->events[i]->name);
        }
    }
    return false;
}

void krait_filter_unmet_names(const struct krait_filter *filter, const struct krait_ctf_reader *reader,
                              struct krait_buf *out)
{
    for (uint32_t i = 0; i < filter->test_count; i++) {
        const struct expr *e = filter->tests[i];
        bool met = e->kind != EXPR_NAME || e->op != OP_EQ;
        struct krait_suggest meant = KRAIT_SUGGEST(e->with.text, met ? 0 : strlen(e->with.text));
        for (uint32_t t = 0; t < reader->trace_count && !met; t++)
            met = meets_name(e, reader->traces[t], &meant);
        if (met)
            continue;
        krait_buf_fmt(out, "%sfilter, column %u: no event of this trace is called '", out->len ? "\n" : "",
                      e->column);
        krait_fmt_safe(out, e->with.text);
        krait_buf_str(out, "'");
        krait_suggest_say(out, meant.best);
    }
}

static bool is_true(const struct expr *e, struct krait_ctf_cursor *cursor)
{
    switch (e->kind) {
    case EXPR_AND:
        return is_true(e->a, cursor) && is_true(e->b, cursor);
    case EXPR_OR:
        return is_true(e->a, cursor) || is_true(e->b, cursor);
    case EXPR_NOT:
        return !is_true(e->a, cursor);
    case EXPR_NAME:
        return test_name(e, cursor->event->name);
    default:
        return test_field(e, cursor);
    }
}

bool krait_filter_wants(const struct krait_filter *filter, struct krait_ctf_cursor *cursor)
{
    return is_true(filter->root, cursor);
}

/* What can come out: bit 0 false, bit 1 true. */
static unsigned outcomes(const struct expr *e, const struct krait_event_class *event)
{
    unsigned a, b;
    switch (e->kind) {
    case EXPR_AND:
        a = outcomes(e->a, event), b = outcomes(e->b, event);
        return ((a | b) & 1) | (a & b & 2);
    case EXPR_OR:
        a = outcomes(e->a, event), b = outcomes(e->b, event);
        return (a & b & 1) | ((a | b) & 2);
    case EXPR_NOT:
        a = outcomes(e->a, event);
        return (a & 1) << 1 | a >> 1;
    case EXPR_NAME:
        return test_name(e, event->name) ? 2 : 1;
    default:
        return krait_map_get(&e->locators, (uintptr_t)event) ? 3 : 1;
    }
}

bool krait_filter_may_want(const struct krait_filter *filter, const struct krait_event_class *event)
{
    return outcomes(filter->root, event) & 2;
}
