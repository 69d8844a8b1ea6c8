/* SPDX-License-Identifier: Apache-2.0
 *
 * The heading of events as CSV (data_event.h), and which events have the same columns.
 */
#ifndef KRAIT_CTF_TEXT_CSV_COLUMNS_H
#define KRAIT_CTF_TEXT_CSV_COLUMNS_H

#include "ctf/read/filter.h"
#include "ctf/text/data_event.h"

/* Appends a text that is equal for two classes if they and their fields have the same names. */
void krait_csv_key(struct krait_buf *out, const struct krait_event_class *event);

/* A class that represents all those that the filter can match (NULL: all); NULL if they differ, or if there are
 * none. */
const struct krait_event_class *krait_csv_only_class(const struct krait_ctf_reader *reader,
                                                     const struct krait_filter *filter);

/* Appends the heading: of the wide form for the events of a class, of the long form for NULL. In the wide form, a field
 * whose name another column has gets its scope as a prefix ("payload.event"). */
void krait_csv_columns(struct krait_buf *out, const struct krait_event_class *event);

#endif
