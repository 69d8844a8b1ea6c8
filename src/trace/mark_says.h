/* SPDX-License-Identifier: Apache-2.0
 *
 * What a mark says in a picture, and how serious it is: by the name and the text of its instant (batch->name, batch->text).
 */
#ifndef KRAIT_TRACE_MARK_SAYS_H
#define KRAIT_TRACE_MARK_SAYS_H

#include "base/buf.h"

/* From the least to the most serious. Of several marks in one place, pictures show the most serious. */
enum krait_mark_level {
    KRAIT_MARK_DEBUG, /* of a log record: below 20 */
    KRAIT_MARK_INFO,
    KRAIT_MARK_PLAIN, /* it is no log record and no warning: krait.mark(), events of other traces */
    KRAIT_MARK_WARNING,
    KRAIT_MARK_ERROR,
    KRAIT_MARK_CRITICAL,
    KRAIT_MARK_EXCEPTION, /* that nobody caught */
    KRAIT_MARK_LEVELS
};

/* The words of legends, and of classes of SVG. */
extern const char *const krait_mark_level_names[KRAIT_MARK_LEVELS];

enum krait_mark_level krait_mark_level(const char *event, const char *text);

/* Appends "ERROR shop.orders: order 7 failed" of a log record, "UserWarning: ..." of a warning, the message of any other, or else
 * its name; the first line. It may be any text of the program. */
void krait_mark_says(struct krait_buf *to, const char *event, const char *text);

#endif
