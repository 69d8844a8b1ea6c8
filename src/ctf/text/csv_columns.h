/* SPDX-License-Identifier: Apache-2.0
 *
 * The first line of events as CSV (data_event.h), and which events have the same columns.
 */
#ifndef KRAIT_CTF_TEXT_CSV_COLUMNS_H
#define KRAIT_CTF_TEXT_CSV_COLUMNS_H

#include "ctf/read/filter.h"
#include "ctf/text/data_event.h"

/* Appends a text that two classes have in common where they are of one name, and their fields have the same names. */
void krait_csv_key(struct krait_buf *out, const struct krait_event_class *event);

/* The class that stands for all that the filter may want (NULL: all); NULL where they differ, or there is none. */
const struct krait_event_class *krait_csv_only_class(const struct krait_ctf_reader *reader,
                                                     const struct krait_filter *filter);

/* Appends the line: of the wide form for the events of a class, of the long form for NULL. In the wide form a field
 * whose name another column bears has its scope before it ("payload.event"). */
void krait_csv_columns(struct krait_buf *out, const struct krait_event_class *event);

#endif
