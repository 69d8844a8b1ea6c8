/* SPDX-License-Identifier: Apache-2.0
 *
 * The reason for a failure, on its way from where it happened to the verb that prints it.
 *
 * A function that can fail returns a negative errno and fills `err` with one sentence: what failed, on what
 * (file, offset), and what to do, if that is known. It never prints. `err` may be NULL everywhere.
 */
#ifndef KRAIT_BASE_ERR_H
#define KRAIT_BASE_ERR_H

#include "base/base.h"

#include <stdarg.h>

struct krait_err {
    int code; /* the negative errno; 0 when nothing failed */
    char text[1024];
    size_t file_len; /* of the file's path, with which the text then begins; 0 if there is none */
    uint64_t offset; /* bytes in that file, or KRAIT_NO_OFFSET */
    bool lines;      /* line ends in the text are krait's own, and not of something that it quotes */
};

#define KRAIT_NO_OFFSET UINT64_MAX

/* Sets the reason and returns `code` (a negative errno), so that a caller can `return krait_err_set(...)`. */
int krait_err_set(struct krait_err *err, int code, const char *fmt, ...) KRAIT_PRINTF(3, 4);

/* The same, with ": " and the system's text for errno appended; returns -errno. */
int krait_err_errno(struct krait_err *err, const char *fmt, ...) KRAIT_PRINTF(2, 3);

/* Sets the reason for what is wrong at a byte of a text: "byte 12: why". Returns `code`. */
int krait_err_at_byte(struct krait_err *err, int code, size_t byte, const char *fmt, va_list ap);

/* Puts "prefix: " before the reason; returns err's code. For callers that know the file or the place. */
int krait_err_prefix(struct krait_err *err, int code, const char *fmt, ...) KRAIT_PRINTF(3, 4);

/* Marks the reason as one that has line ends of its own. Returns its code. */
int krait_err_lines(struct krait_err *err, int code);

/* Notes, for programs, which file the reason is about: its text begins with the file's path, which is file_len
 * bytes long. Returns err's code. */
int krait_err_place(struct krait_err *err, size_t file_len, uint64_t offset);

#endif
