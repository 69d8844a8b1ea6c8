/* SPDX-License-Identifier: Apache-2.0 */
#include "ctf/scalar/json_text.h"

#include "base/json.h"

static char *put_escape(char *to, uint8_t c)
{
    static const char from[] = "\\\b\f\n\r\t";
    static const char letters[] = "\\bfnrt";
    const char *found = memchr(from, c, sizeof(from) - 1);
    *to++ = '\\';
    if (found) {
        *to++ = letters[found - from];
        return to;
    }
    memcpy(to, "u00", 3);
    to[3] = "0123456789abcdef"[c >> 4];
    to[4] = "0123456789abcdef"[c & 15];
    return to + 5;
}

char *krait_put_json_escaped(char *to, const uint8_t **from, const uint8_t *end, bool twice)
{
    const uint8_t *p = *from;
    size_t n = *p < 0x80 ? 0 : krait_utf8_len((const char *)p, (size_t)(end - p));
    *from += n ? n : 1;
    if (*p == '"') {
        memcpy(to, "\\\"\"", 3);
        return to + 2 + twice;
    }
    if (*p < 0x80)
        return put_escape(to, *p);
    memcpy(to, n ? (const char *)p : "\xEF\xBF\xBD", n ? n : 3);
    return to + (n ? n : 3);
}
