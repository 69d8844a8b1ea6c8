/* SPDX-License-Identifier: Apache-2.0
 *
 * TOML 1.0 (https://toml.io), from untrusted bytes, as a tree in an arena. Each value knows its line.
 *
 *   [interval.request]          TABLE "interval", first ->  TABLE "request", line 1, first ->
 *   start = "Start"                                         TEXT "Start", key "start", line 2
 */
#ifndef KRAIT_BASE_TOML_H
#define KRAIT_BASE_TOML_H

#include "base/arena.h"
#include "base/err.h"
#include "base/toml_parse.h"

enum { KRAIT_TOML_MOST = 1 << 20 }; /* bytes of a text */

struct krait_toml {
    enum krait_toml_kind kind;
    uint32_t line;
    const char *key;         /* of a table's member; NULL elsewhere */
    struct krait_toml *next; /* in the table or array, in the text's order */
    struct krait_toml *first;
    const char *text; /* TEXT */
    int64_t integer;  /* INTEGER, BOOL */
    double real;
};

/* The table that is the text. -EBADMSG: it is no TOML; `line` has the line where, and err why. -EFBIG: it is too large.
 * -ENOMEM. Of an error that is in no line, `line` is 0. */
int krait_toml_read(struct krait_toml **out, struct krait_arena *arena, const char *text, size_t n,
                    uint32_t *line, struct krait_err *err);

/* A table's member, or NULL. */
const struct krait_toml *krait_toml_get(const struct krait_toml *table, const char *key);

#endif
