/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <stdarg.h>
#include <string.h>

int krait_err_set(struct krait_err *err, int code, const char *fmt, ...)
{
    if (!err)
        return code;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(err->text, sizeof(err->text), fmt, ap);
    va_end(ap);
    err->code = code;
    return code;
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
    err->code = -saved;
    return -saved;
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
    err->code = code;
    return code;
}
