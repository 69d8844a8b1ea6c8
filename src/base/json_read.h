/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading JSON (RFC 8259), strictly, from untrusted bytes. Errors name the byte at which the text stops being JSON.
 * Values are allocated in an arena that the caller frees; they take memory in proportion to the text.
 *
 *   {"a": [1, "b"]}      OBJECT at 0, first ->  ARRAY at 6, key "a", first ->  UNSIGNED 1 at 7, next ->
 *                                                                             TEXT "b" at 10
 */
#ifndef KRAIT_BASE_JSON_READ_H
#define KRAIT_BASE_JSON_READ_H

#include "base/arena.h"
#include "base/err.h"

enum { KRAIT_JSON_MAX_DEPTH = 512 }; /* arrays and objects within each other: bounds the recursion */

enum krait_json_kind {
    KRAIT_JSON_NULL,
    KRAIT_JSON_FALSE,
    KRAIT_JSON_TRUE,
    KRAIT_JSON_UNSIGNED, /* an integer of 0 to 2^64 - 1 */
    KRAIT_JSON_NEGATIVE, /* an integer of -2^63 to -1, in two's complement */
    KRAIT_JSON_REAL, /* a number with a fraction or an exponent, or of more than 64 bits; its value is not kept */
    KRAIT_JSON_TEXT,
    KRAIT_JSON_ARRAY,
    KRAIT_JSON_OBJECT,
};

struct krait_json {
    enum krait_json_kind kind;
    uint32_t count;          /* ARRAY, OBJECT: how many values are in it */
    size_t at;               /* byte where it begins */
    const char *key;         /* of an object's member; NULL elsewhere */
    struct krait_json *next; /* in the array or object, in the text's order */
    union {
        uint64_t number;
        const char *text; /* UTF-8; of one with \u0000 in it, what is before that */
        struct krait_json *first;
    };
};

/* Reads the one value of the text. `base` is the offset of the text in its file; byte numbers in errors count from
 * there. Refuses whatever RFC 8259 does not allow (except that numbers may begin with 0, and are then decimal), text
 * that is not UTF-8, duplicate keys, and values nested deeper than KRAIT_JSON_MAX_DEPTH.
 * Errors: -EBADMSG ("byte N: ..."), -ENOMEM; *out is then untouched. */
int krait_json_read(struct krait_json **out, struct krait_arena *arena, const char *text, size_t size,
                    size_t base, struct krait_err *err);

/* The object's member, or NULL. */
const struct krait_json *krait_json_get(const struct krait_json *object, const char *key);
/* The same by kind: 0, "" and NULL where it lacks the member, or that is of another kind. */
uint64_t krait_json_number(const struct krait_json *object, const char *key);
const char *krait_json_string(const struct krait_json *object, const char *key);
const struct krait_json *krait_json_items(const struct krait_json *object, const char *key);

#endif
