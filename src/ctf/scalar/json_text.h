/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes characters as JSON (base/json.h) and as cells of CSV (base/csv.h), sixteen at a time, to reserved memory.
 */
#ifndef KRAIT_CTF_SCALAR_JSON_TEXT_H
#define KRAIT_CTF_SCALAR_JSON_TEXT_H

#include "base/json.h"
#include "ctf/scalar/text.h"

enum { KRAIT_JSON_ESCAPE = 8 }; /* bytes of one character */

/* KRAIT_JSON_FIRST and KRAIT_JSON_NEXT in a cell of CSV, whose quotes are doubled. */
#define KRAIT_JSON_CELL_FIRST(key) "{\"\"" key "\"\":"
#define KRAIT_JSON_CELL_NEXT(key)  ",\"\"" key "\"\":"

/* Copies 16 bytes; returns how many of them precede the first that JSON must escape or that is not ASCII (NUL
 * included). */
static inline size_t krait_put_json_plain(char *to, const char *from)
{
    krait_chunk c;
    memcpy(&c, from, sizeof(c));
    memcpy(to, &c, sizeof(c));
    return krait_first_lane((krait_chunk)((c < 0x20) | (c >= 0x7f) | (c == '\\') | (c == '"')));
}

/* The same for characters of a cell without quotes. */
static inline size_t krait_put_cell_plain(char *to, const char *from)
{
    krait_chunk c;
    memcpy(&c, from, sizeof(c));
    memcpy(to, &c, sizeof(c));
    return krait_first_lane(
        (krait_chunk)((c == 0) | (c == '\n') | (c == '\r') | (c >= 0x80) | (c == ',') | (c == '"')));
}

/* Writes one special character and moves *from behind it: as an escape, as UTF-8, or as U+FFFD for an invalid byte.
 * With `twice`, a quote is doubled, as in a cell of CSV. */
char *krait_put_json_escaped(char *to, const uint8_t **from, const uint8_t *end, bool twice);

#endif
