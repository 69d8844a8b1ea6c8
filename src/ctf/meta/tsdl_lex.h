/* SPDX-License-Identifier: Apache-2.0
 *
 * The tokens of TSDL. Lexical rules: CTF 1.8.3, section 7.1 and appendix C.1 (those of C99, without some).
 */
#ifndef KRAIT_CTF_META_TSDL_LEX_H
#define KRAIT_CTF_META_TSDL_LEX_H

#include "base/arena.h"
#include "base/err.h"

enum krait_tok_kind {
    KRAIT_TOK_END, /* also after an error, so that loops over tokens end */
    KRAIT_TOK_WORD,
    KRAIT_TOK_INT,
    KRAIT_TOK_STRING,
    KRAIT_TOK_CHAR,
    KRAIT_TOK_ASSIGN_TYPE, /* := */
    KRAIT_TOK_RANGE,       /* ... */
    KRAIT_TOK_ARROW,       /* -> */
    KRAIT_TOK_PUNCT,       /* one character, in value */
};

struct krait_tok {
    enum krait_tok_kind kind;
    const char *text; /* WORD, STRING, CHAR: NUL-terminated, in the arena, unescaped */
    uint64_t value;   /* INT, PUNCT */
    unsigned line;
};

struct krait_lex {
    const char *at, *end;
    unsigned line;
    struct krait_arena *arena; /* of the texts; krait_lex_pass needs none */
    struct krait_err *err;
};

/* Returns 0 or a negative errno with err set (without the file's name); *tok is then END. */
int krait_lex_next(struct krait_lex *lex, struct krait_tok *tok);

/* Skips only blanks and comments. */
int krait_lex_peek(struct krait_lex *lex);

/* Skips everything up to and including the next brace or semicolon, and sets *sign to it, or to 0 at the end. Only
 * quotations and comments are checked. Returns 0 or a negative errno with err set. */
int krait_lex_pass(struct krait_lex *lex, char *sign);

#endif
