/* SPDX-License-Identifier: Apache-2.0 */
#include "base/csv.h"

#include "base/json.h"

#include <string.h>

static bool is_plain(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (s[i] == ',' || s[i] == '"' || s[i] == '\r' || s[i] == '\n')
            return false;
    }
    return true;
}

void krait_csv_str(struct krait_buf *buf, const char *s, size_t n)
{
    if (is_plain(s, n)) {
        krait_utf8_clean(buf, s, n);
        return;
    }
    krait_buf_char(buf, '"');
    for (size_t from = 0; from < n;) { /* up to each quote, which is then doubled */
        const char *quote = memchr(s + from, '"', n - from);
        size_t to = quote ? (size_t)(quote - s) + 1 : n;
        krait_utf8_clean(buf, s + from, to - from);
        krait_buf_str(buf, quote ? "\"" : "");
        from = to;
    }
    krait_buf_char(buf, '"');
}

void krait_csv_cstr(struct krait_buf *buf, const char *s)
{
    krait_csv_str(buf, s, strlen(s));
}
