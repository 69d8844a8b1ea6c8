/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <stdarg.h>
#include <string.h>

static int set_code(struct krait_err *err, int code)
{
    err->code = code;
    err->file_len = 0;
    err->offset = KRAIT_NO_OFFSET;
    err->lines = false;
    return code;
}

int krait_err_set(struct krait_err *err, int code, const char *fmt, ...)
{
    if (!err)
        return code;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(err->text, sizeof(err->text), fmt, ap);
    va_end(ap);
    return set_code(err, code);
}

int krait_err_at_byte(struct krait_err *err, int code, size_t byte, const char *fmt, va_list ap)
{
    char why[512];
    vsnprintf(why, sizeof(why), fmt, ap);
    return krait_err_set(err, code, "byte %zu: %s", byte, why);
}

int krait_err_errno(struct krait_err *err, const char *fmt, ...)
{
    int saved = errno ? errno : EIO;
    if (!err)
        return -saved;
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(err->text, sizeof(err->text), fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n < sizeof(err->text))
        snprintf(err->text + n, sizeof(err->text) - (size_t)n, ": %s", strerror(saved));
    return set_code(err, -saved);
}

int krait_err_prefix(struct krait_err *err, int code, const char *fmt, ...)
{
    if (!err)
        return code;
    char before[sizeof(err->text) - 2]; /* room for ": " */
    memcpy(before, err->text, sizeof(before) - 1);
    before[sizeof(before) - 1] = '\0';
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(err->text, sizeof(err->text), fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n < sizeof(err->text))
        snprintf(err->text + n, sizeof(err->text) - (size_t)n, ": %s", before);
    return set_code(err, code);
}

int krait_err_lines(struct krait_err *err, int code)
{
    if (err)
        err->lines = true;
    return code;
}

int krait_err_place(struct krait_err *err, size_t file_len, uint64_t offset)
{
    if (!err)
        return 0;
    err->file_len = file_len;
    err->offset = offset;
    return err->code;
}
