/* SPDX-License-Identifier: Apache-2.0
 *
 * The border to toml++ (https://marzer.github.io/tomlplusplus), which is C++: toml_parse.cpp alone is behind it. Values
 * come as calls, in the order of the text; toml.h makes a tree of them.
 */
#ifndef KRAIT_BASE_TOML_PARSE_H
#define KRAIT_BASE_TOML_PARSE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum krait_toml_kind {
    KRAIT_TOML_TABLE,
    KRAIT_TOML_ARRAY,
    KRAIT_TOML_TEXT,
    KRAIT_TOML_INTEGER,
    KRAIT_TOML_REAL,
    KRAIT_TOML_BOOL,
    KRAIT_TOML_TIME, /* a date or a time of day, which krait has no use for */
};

struct krait_toml_value {
    enum krait_toml_kind kind;
    uint32_t line;   /* from 1 */
    const char *key; /* of a table's member, key_len bytes; NULL: an array's */
    size_t key_len;
    const char *text; /* TEXT: text_len bytes */
    size_t text_len;
    int64_t integer; /* INTEGER, BOOL */
    double real;
};

/* `value` begins a value; of tables and arrays, those in it follow, and `end`. What is not 0 ends the reading. */
struct krait_toml_calls {
    void *ctx;
    int (*value)(void *ctx, const struct krait_toml_value *value);
    int (*end)(void *ctx);
};

/* Returns 0, what a call returned, -ENOMEM, or -EINVAL: `line` and `why` (size bytes) tell what is wrong. */
int krait_toml_parse(const char *text, size_t n, const struct krait_toml_calls *calls, uint32_t *line,
                     char *why, size_t size);

#ifdef __cplusplus
}
#endif

#endif
