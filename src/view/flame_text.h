/* SPDX-License-Identifier: Apache-2.0
 *
 * Text for pictures. Names from a trace are untrusted bytes: they are cleaned once (krait_text_clean), then escaped
 * for the place where they are used.
 */
#ifndef KRAIT_VIEW_FLAME_TEXT_H
#define KRAIT_VIEW_FLAME_TEXT_H

#include "base/buf.h"

enum { KRAIT_TEXT_MAX = 1000 }; /* bytes kept of one name; more is cut with an ellipsis */

/* Appends s as valid UTF-8 that is legal in XML 1.0 and keeps its order on the screen: C0 controls become
 * their pictures (U+2400...), invalid bytes, C1 controls, noncharacters and bidirectional controls U+FFFD. */
void krait_text_clean(struct krait_buf *to, const char *s);

/* Clean text for XML content and attribute values in double quotes. */
void krait_text_xml(struct krait_buf *to, const char *s, size_t n);

/* A text that somebody gave, cleaned, then escaped so. */
void krait_text_xml_raw(struct krait_buf *to, const char *s);

/* As much of clean text, for XML, as fits into `columns`; where that is not all, with an ellipsis. */
void krait_text_xml_cut(struct krait_buf *to, const char *s, size_t columns);

/* Clean text as a JSON string with its quotes, safe inside <script> and CDATA too (< > & are \u escapes). */
void krait_text_json(struct krait_buf *to, const char *s);

/* Columns of a fixed-width font that n bytes of clean text take: wide East Asian characters and emoji are two. */
size_t krait_text_columns(const char *s, size_t n);

/* How many bytes of clean text fit into `columns`, whole characters. */
size_t krait_text_fit(const char *s, size_t n, size_t columns);

/* Numbers as people read them: "1.23 s", "45.6 ms", "789 ns"; "12,345,678"; "45.6 %" (narrow no-break space). */
void krait_text_duration(struct krait_buf *to, uint64_t ns);
void krait_text_count(struct krait_buf *to, uint64_t n);
void krait_text_percent(struct krait_buf *to, double share);

#endif
