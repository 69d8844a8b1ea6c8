/* SPDX-License-Identifier: Apache-2.0
 *
 * Characters as JSON (base/json.h) and as cells of CSV (base/csv.h), sixteen at a time, at a place that has room.
 */
#ifndef KRAIT_CTF_SCALAR_JSON_TEXT_H
#define KRAIT_CTF_SCALAR_JSON_TEXT_H

#include "ctf/scalar/text.h"

enum { KRAIT_JSON_ESCAPE = 8 }; /* bytes of one character */

/* Copies 16 bytes; returns how many of them come before the first that JSON does not have as it is: NUL among them, and
 * what is not ASCII. */
static inline size_t krait_put_json_plain(char *to, const char *from)
{
    krait_chunk c;
    memcpy(&c, from, sizeof(c));
    memcpy(to, &c, sizeof(c));
    return krait_first_lane((krait_chunk)((c < 0x20) | (c >= 0x7f) | (c == '\\') | (c == '"')));
}

/* The same of a cell that needs no quotes. */
static inline size_t krait_put_cell_plain(char *to, const char *from)
{
    krait_chunk c;
    memcpy(&c, from, sizeof(c));
    memcpy(to, &c, sizeof(c));
    return krait_first_lane(
        (krait_chunk)((c == 0) | (c == '\n') | (c == '\r') | (c >= 0x80) | (c == ',') | (c == '"')));
}

/* One character that is not plain, which *from goes past: an escape, UTF-8 as it is, U+FFFD for a byte that is none of
 * that. With `twice`, a quote is two: it stands in a cell of CSV. */
char *krait_put_json_escaped(char *to, const uint8_t **from, const uint8_t *end, bool twice);

#endif
