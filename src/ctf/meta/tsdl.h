/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the TSDL parser share: tsdl_type.c (types), tsdl_attr.c (integer { ... } and the like),
 * tsdl_block.c (trace, env, clock, stream, event), tsdl_finish.c (paths, alignment, checks). The parser makes one pass
 * and no syntax tree: types become field classes as they are read.
 *
 * A failure sticks: krait_tsdl_fail sets the reason once and ends the tokens. So every loop over tokens ends, and
 * callers need not check each step; functions may return NULL meanwhile.
 */
#ifndef KRAIT_CTF_META_TSDL_H
#define KRAIT_CTF_META_TSDL_H

#include "ctf/meta/metadata.h"
#include "ctf/meta/tsdl_lex.h"

enum {
    KRAIT_TSDL_MAX_DEPTH = 96, /* how deep types may nest, which bounds every recursion over field classes */
};

enum krait_type_space {
    KRAIT_TYPE_ALIAS,
    KRAIT_TYPE_STRUCT,
    KRAIT_TYPE_VARIANT,
    KRAIT_TYPE_ENUM,
};

struct krait_type_entry {
    struct krait_type_entry *next; /* of equal hash */
    enum krait_type_space space;
    const char *name;
    struct krait_fc *fc;
};

struct krait_type_scope {
    struct krait_type_scope *parent;
    struct krait_map entries; /* hash of space and name to struct krait_type_entry */
};

struct krait_tsdl_members; /* of a struct or variant whose braces are open */

struct krait_tsdl_parser {
    struct krait_lex lex;
    struct krait_tok tok, next;
    struct krait_arena *arena;
    struct krait_ctf_metadata *md;
    struct krait_type_scope *scope;
    const struct krait_tsdl_members *members; /* the innermost; NULL outside of any */
    struct krait_err *err;
    int rc;
    unsigned depth;
    uint32_t fc_count;
    bool has_trace;
    bool is_lttng;                           /* by its env */
    uint32_t env_cap, clock_cap, stream_cap; /* of md's lists */
};

int krait_tsdl_fail(struct krait_tsdl_parser *p, int code, const char *fmt, ...) KRAIT_PRINTF(3, 4);
void krait_tsdl_oom(struct krait_tsdl_parser *p);
void krait_tsdl_advance(struct krait_tsdl_parser *p);

bool krait_tsdl_is(const struct krait_tok *tok, char punct);
bool krait_tsdl_is_word(const struct krait_tok *tok, const char *word);
/* Consumes the punctuation if it is next; returns whether it was. */
bool krait_tsdl_accept(struct krait_tsdl_parser *p, char punct);
bool krait_tsdl_accept_word(struct krait_tsdl_parser *p, const char *word);
/* Consumes the punctuation or fails. */
void krait_tsdl_expect(struct krait_tsdl_parser *p, char punct);
/* True until the punctuation comes (and is consumed) or the text ends (which is an error). */
bool krait_tsdl_until(struct krait_tsdl_parser *p, char punct);

/* Grows an arena array by doubling; `count` entries are in it. Returns the array, NULL when memory is out. */
void *krait_tsdl_grow(struct krait_tsdl_parser *p, void *array, uint32_t count, uint32_t *cap, size_t size);

/* -- values of attributes: a number, a string, or words joined by dots -- */
struct krait_tsdl_value {
    enum { KRAIT_VALUE_INT, KRAIT_VALUE_TEXT } kind;
    bool negative;
    bool quoted;
    uint64_t number; /* two's complement when negative */
    const char *text;
};

struct krait_tsdl_value krait_tsdl_value(struct krait_tsdl_parser *p);
/* a.b.c or a->b, as one text. */
const char *krait_tsdl_path(struct krait_tsdl_parser *p);

/* For attributes that may occur once: bit i of *seen belongs to names[i]. Returns i, or -1 for an unknown name. */
int krait_tsdl_attr(struct krait_tsdl_parser *p, const char *const *names, const char *name, uint32_t *seen);

/* -- field classes -- */
struct krait_fc *krait_tsdl_fc_new(struct krait_tsdl_parser *p, enum krait_fc_kind kind);
struct krait_fc *krait_tsdl_fc_copy(struct krait_tsdl_parser *p, const struct krait_fc *fc);

struct krait_fc *krait_tsdl_integer(struct krait_tsdl_parser *p);
struct krait_fc *krait_tsdl_float(struct krait_tsdl_parser *p);
struct krait_fc *krait_tsdl_string(struct krait_tsdl_parser *p);
struct krait_fc *krait_tsdl_enum_body(struct krait_tsdl_parser *p, const struct krait_fc *integer);
enum krait_byte_order krait_tsdl_byte_order(struct krait_tsdl_parser *p,
                                            const struct krait_tsdl_value *value);
uint64_t krait_tsdl_number(struct krait_tsdl_parser *p, const struct krait_tsdl_value *value,
                           const char *what);
/* true, false, or a number, which is true unless it is 0. */
bool krait_tsdl_boolean(struct krait_tsdl_parser *p, const struct krait_tsdl_value *value, const char *what);

/* -- types -- */
void krait_tsdl_push(struct krait_tsdl_parser *p, struct krait_type_scope *scope);
void krait_tsdl_pop(struct krait_tsdl_parser *p);
/* A type: integer { }, struct x { }, a name of several words. */
struct krait_fc *krait_tsdl_type(struct krait_tsdl_parser *p);
/* At the word struct, variant or enum. */
bool krait_tsdl_at_tagged(const struct krait_tsdl_parser *p);
/* A statement that only declares types, up to its semicolon; it may have several (CTF 1.8.3, appendix C.2.2:
 * declaration-specifiers). */
void krait_tsdl_types(struct krait_tsdl_parser *p);
/* Reads a typealias or typedef, if one is next; returns whether it was. */
bool krait_tsdl_type_decl(struct krait_tsdl_parser *p);

/* -- blocks, and the end -- */
/* Each reads the block after its keyword. */
void krait_tsdl_trace(struct krait_tsdl_parser *p);
void krait_tsdl_env(struct krait_tsdl_parser *p);
void krait_tsdl_clock(struct krait_tsdl_parser *p);
void krait_tsdl_stream(struct krait_tsdl_parser *p);
void krait_tsdl_event(struct krait_tsdl_parser *p);
void krait_tsdl_callsite(struct krait_tsdl_parser *p);

/* A path from the root of a dynamic scope: event.fields.x. */
bool krait_tsdl_is_absolute(const char *path);
void krait_tsdl_finish(struct krait_tsdl_parser *p);

/* Reads the whole text into md, whose arena is used. Returns 0 or a negative errno with err set. */
int krait_tsdl_parse(struct krait_ctf_metadata *md, const char *text, size_t size, struct krait_err *err);

#endif
