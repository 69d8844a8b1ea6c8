/* SPDX-License-Identifier: Apache-2.0
 *
 * Text for pictures. Names from a trace are untrusted bytes: they are cleaned once (krait_text_clean), then escaped
 * for the place where they are used.
 */
#ifndef KRAIT_VIEW_FLAME_TEXT_H
#define KRAIT_VIEW_FLAME_TEXT_H

#include "base/buf.h"

enum { KRAIT_TEXT_MAX = 1000 }; /* bytes of a name; longer ones end with an ellipsis */

/* Appends s as valid UTF-8 that is legal in XML 1.0 and keeps its order on the screen: C0 controls become
 * their pictures (U+2400...), invalid bytes, C1 controls, noncharacters and bidirectional controls U+FFFD. */
void krait_text_clean(struct krait_buf *to, const char *s);

/* Appends clean text, escaped for XML content and for attribute values in double quotes. */
void krait_text_xml(struct krait_buf *to, const char *s, size_t n);

/* Appends an untrusted text, cleaned and then escaped for XML. */
void krait_text_xml_raw(struct krait_buf *to, const char *s);

/* Appends as much of clean text, escaped for XML, as fits into `columns`; with an ellipsis if it does not fit. */
void krait_text_xml_cut(struct krait_buf *to, const char *s, size_t columns);

/* Appends clean text as a JSON string with its quotes. It is safe inside <script> and CDATA too (< > & become \u
 * escapes). */
void krait_text_json(struct krait_buf *to, const char *s);

/* The width of n bytes of clean text in columns of a fixed-width font; wide East Asian characters and emoji take
 * two. */
size_t krait_text_columns(const char *s, size_t n);

/* The number of bytes of clean text that fit into `columns`, in whole characters. */
size_t krait_text_fit(const char *s, size_t n, size_t columns);

/* Append numbers for people: "1.23 s", "45.6 ms", "789 ns"; "12,345,678"; "45.6 %" (narrow no-break space). */
void krait_text_duration(struct krait_buf *to, uint64_t ns);
void krait_text_count(struct krait_buf *to, uint64_t n);
void krait_text_percent(struct krait_buf *to, double share);

#endif
