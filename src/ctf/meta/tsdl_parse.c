/* SPDX-License-Identifier: Apache-2.0
 *
 * The TSDL parser's floor (tokens, values) and its order: statements may stand in any order in the text, and
 * are read in the order in which they need each other.
 */
#include "ctf/meta/model.h"
#include "ctf/meta/tsdl.h"

#include <stdarg.h>
#include <string.h>

int krait_tsdl_fail(struct krait_tsdl_parser *p, int code, const char *fmt, ...)
{
    if (p->rc)
        return p->rc;
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    p->rc = krait_err_set(p->err, code, "line %u: %s", p->tok.line, text);
    p->tok.kind = p->next.kind = KRAIT_TOK_END;
    p->lex.at = p->lex.end;
    return p->rc;
}

void krait_tsdl_oom(struct krait_tsdl_parser *p)
{
    krait_tsdl_fail(p, -ENOMEM, "out of memory");
}

void krait_tsdl_advance(struct krait_tsdl_parser *p)
{
    if (p->rc)
        return;
    p->tok = p->next;
    int rc = krait_lex_next(&p->lex, &p->next);
    if (rc) {
        p->rc = rc;
        p->tok.kind = KRAIT_TOK_END;
    }
}

bool krait_tsdl_is(const struct krait_tok *tok, char punct)
{
    return tok->kind == KRAIT_TOK_PUNCT && tok->value == (unsigned char)punct;
}

bool krait_tsdl_is_word(const struct krait_tok *tok, const char *word)
{
    return tok->kind == KRAIT_TOK_WORD && *tok->text == *word && strcmp(tok->text, word) == 0;
}

bool krait_tsdl_accept(struct krait_tsdl_parser *p, char punct)
{
    if (!krait_tsdl_is(&p->tok, punct))
        return false;
    krait_tsdl_advance(p);
    return true;
}

bool krait_tsdl_accept_word(struct krait_tsdl_parser *p, const char *word)
{
    if (!krait_tsdl_is_word(&p->tok, word))
        return false;
    krait_tsdl_advance(p);
    return true;
}

static void describe(const struct krait_tok *tok, char *buf, size_t size)
{
    static const char *const signs[] = {
        [KRAIT_TOK_ASSIGN_TYPE] = ":=", [KRAIT_TOK_RANGE] = "...", [KRAIT_TOK_ARROW] = "->"
    };
    if (tok->kind == KRAIT_TOK_END)
        snprintf(buf, size, "the end of the text");
    else if (tok->kind == KRAIT_TOK_INT)
        snprintf(buf, size, "number %llu", (unsigned long long)tok->value);
    else if (tok->kind == KRAIT_TOK_PUNCT)
        snprintf(buf, size, "'%c'", (char)tok->value);
    else
        snprintf(buf, size, "'%s'", tok->text ? tok->text : signs[tok->kind]);
}

void krait_tsdl_expect(struct krait_tsdl_parser *p, char punct)
{
    char found[128];
    if (p->rc || krait_tsdl_accept(p, punct))
        return;
    describe(&p->tok, found, sizeof(found));
    krait_tsdl_fail(p, -EBADMSG, "'%c' is missing before %s", punct, found);
}

bool krait_tsdl_until(struct krait_tsdl_parser *p, char punct)
{
    if (p->rc || krait_tsdl_accept(p, punct))
        return false;
    if (p->tok.kind == KRAIT_TOK_END)
        krait_tsdl_fail(p, -EBADMSG, "the text ends before '%c'", punct);
    return !p->rc;
}

void *krait_tsdl_grow(struct krait_tsdl_parser *p, void *array, uint32_t count, uint32_t *cap, size_t size)
{
    void *to = p->rc ? array : krait_arena_grow(p->arena, array, count, cap, size);
    if (!to)
        krait_tsdl_oom(p);
    return to ? to : array;
}

/* -- values -- */

static bool is_name_token(const struct krait_tok *tok)
{
    return tok->kind == KRAIT_TOK_WORD || tok->kind == KRAIT_TOK_STRING || tok->kind == KRAIT_TOK_CHAR;
}

const char *krait_tsdl_path(struct krait_tsdl_parser *p)
{
    const char *path = NULL, *sign = "";
    do {
        if (!is_name_token(&p->tok)) {
            krait_tsdl_fail(p, -EBADMSG, "a name is missing");
            return NULL;
        }
        bool is_first =
            !path; /* a text alone, such as a command, may be of any length; each more costs a copy */
        path = is_first ? p->tok.text : krait_arena_fmt(p->arena, "%s%s%s", path, sign, p->tok.text);
        if (!path || (!is_first && strlen(path) > 4096))
            krait_tsdl_fail(p, -EBADMSG, "a path of more than 4096 bytes");
        krait_tsdl_advance(p);
        sign = p->tok.kind == KRAIT_TOK_ARROW ? "->" : ".";
        if (!krait_tsdl_is(&p->tok, '.') && p->tok.kind != KRAIT_TOK_ARROW)
            break;
        krait_tsdl_advance(p);
    } while (!p->rc);
    return p->rc ? NULL : path;
}

static struct krait_tsdl_value int_value(struct krait_tsdl_parser *p)
{
    struct krait_tsdl_value value = { .kind = KRAIT_VALUE_INT };
    if (krait_tsdl_accept(p, '-'))
        value.negative = true;
    else
        krait_tsdl_accept(p, '+');
    if (p->tok.kind != KRAIT_TOK_INT)
        krait_tsdl_fail(p, -EBADMSG, "a number is missing");
    if (value.negative && p->tok.value > (uint64_t)INT64_MAX + 1)
        krait_tsdl_fail(p, -EBADMSG, "the number does not fit 64 bits");
    value.number = value.negative ? -p->tok.value : p->tok.value;
    krait_tsdl_advance(p);
    return value;
}

struct krait_tsdl_value krait_tsdl_value(struct krait_tsdl_parser *p)
{
    if (p->tok.kind == KRAIT_TOK_INT || krait_tsdl_is(&p->tok, '-') || krait_tsdl_is(&p->tok, '+'))
        return int_value(p);
    struct krait_tsdl_value value = { .kind = KRAIT_VALUE_TEXT, .quoted = p->tok.kind == KRAIT_TOK_STRING };
    value.text = krait_tsdl_path(p);
    if (!value.text)
        value.text = "";
    return value;
}

/* -- order -- */

enum pass { PASS_ENV, PASS_CLOCK, PASS_TYPE, PASS_TRACE, PASS_STREAM, PASS_EVENT, PASS_COUNT };

static const struct {
    const char *word;
    enum pass pass;
    void (*parse)(struct krait_tsdl_parser *p);
} blocks[] = {
    { "env", PASS_ENV, krait_tsdl_env },       { "clock", PASS_CLOCK, krait_tsdl_clock },
    { "trace", PASS_TRACE, krait_tsdl_trace }, { "stream", PASS_STREAM, krait_tsdl_stream },
    { "event", PASS_EVENT, krait_tsdl_event }, { "callsite", PASS_EVENT, krait_tsdl_callsite },
};

struct statement {
    const char *at;
    unsigned line;
    uint8_t pass;
};

struct statements {
    struct statement *list;
    uint32_t count, cap;
};

static enum pass pass_of(const char *at, const char *end)
{
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(blocks); i++) {
        size_t n = strlen(blocks[i].word);
        if ((size_t)(end - at) > n && memcmp(at, blocks[i].word, n) == 0 && strchr(" \t\r\n{/", at[n]))
            return blocks[i].pass;
    }
    return PASS_TYPE;
}

/* Goes past one statement, up to the semicolon outside of braces; notes where it begins. False at the end. */
static bool skip_statement(struct krait_tsdl_parser *p, struct krait_lex *lex, struct statements *all)
{
    size_t braces = 0;
    char sign;
    p->rc = krait_lex_peek(lex);
    struct statement here = { .at = lex->at, .line = lex->line };
    if (p->rc || lex->at >= lex->end)
        return false;
    here.pass = (uint8_t)pass_of(lex->at, lex->end);
    do {
        p->rc = krait_lex_pass(lex, &sign);
        braces += sign == '{';
        braces -= braces && sign == '}';
    } while (!p->rc && sign && (braces || sign != ';'));
    if (p->rc)
        return false;
    all->list = krait_tsdl_grow(p, all->list, all->count, &all->cap, sizeof(*all->list));
    if (!p->rc)
        all->list[all->count++] = here;
    return !p->rc;
}

static void type_statement(struct krait_tsdl_parser *p)
{
    if (!krait_tsdl_type_decl(p))
        krait_tsdl_types(p);
}

static void parse_statement(struct krait_tsdl_parser *p, const struct statement *statement)
{
    p->lex.at = statement->at;
    p->lex.line = statement->line;
    krait_tsdl_advance(p); /* fills `next`, then `tok` */
    krait_tsdl_advance(p);
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(blocks); i++) {
        if (statement->pass != PASS_TYPE && krait_tsdl_accept_word(p, blocks[i].word)) {
            blocks[i].parse(p);
            return;
        }
    }
    type_statement(p);
}

int krait_tsdl_parse(struct krait_ctf_metadata *md, const char *text, size_t size, struct krait_err *err)
{
    struct krait_type_scope root;
    struct krait_tsdl_parser p = { .md = md, .arena = &md->arena, .err = err };
    struct statements all = { 0 };
    p.lex = (struct krait_lex){ .at = text, .end = text + size, .line = 1, .err = err };
    struct krait_lex scan = p.lex;
    p.lex.arena = &md->arena;
    while (skip_statement(&p, &scan, &all))
        continue;
    krait_tsdl_push(&p, &root);
    for (int pass = 0; pass < PASS_COUNT; pass++) {
        for (uint32_t i = 0; i < all.count && !p.rc; i++) {
            if (all.list[i].pass == pass)
                parse_statement(&p, &all.list[i]);
        }
    }
    krait_tsdl_pop(&p);
    krait_tsdl_finish(&p);
    return p.rc;
}
