/* SPDX-License-Identifier: Apache-2.0 */
#include "base/shell.h"

#include "base/fmt.h"

#include <string.h>

static bool is_plain(const char *text)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@%+=:,./-";
    return *text && strspn(text, plain) == strlen(text);
}

static void add_single_quoted(struct krait_buf *out, const char *text)
{
    krait_buf_char(out, '\'');
    for (; *text; text++) {
        if (*text == '\'')
            krait_buf_str(out, "'\\''");
        else
            krait_buf_char(out, *text);
    }
    krait_buf_char(out, '\'');
}

/* The escapes of krait_fmt_safe are bash's too (bash(1), QUOTING). */
static void add_ansi_quoted(struct krait_buf *out, const char *text)
{
    KRAIT_AUTO_BUF escaped = { 0 };
    for (; *text; text++) {
        if (*text == '\'' || *text == '\\')
            krait_buf_char(&escaped, '\\');
        krait_buf_char(&escaped, *text);
    }
    out->failed |= escaped.failed;
    krait_buf_str(out, "$'");
    krait_fmt_safe(out, escaped.data ? escaped.data : "");
    krait_buf_char(out, '\'');
}

void krait_shell_file(struct krait_buf *out, const char *name)
{
    KRAIT_AUTO_BUF text = { 0 }, safe = { 0 };
    krait_buf_fmt(&text, "%s%s", *name == '-' ? "./" : "", name);
    krait_fmt_safe(&safe, text.data ? text.data : "");
    out->failed |= text.failed || safe.failed;
    if (out->failed)
        return;
    if (is_plain(text.data))
        krait_buf_str(out, text.data);
    else if (!safe.data || strcmp(safe.data, text.data) == 0)
        add_single_quoted(out, text.data);
    else
        add_ansi_quoted(out, text.data);
}
