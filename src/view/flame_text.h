/* SPDX-License-Identifier: Apache-2.0
 *
 * Text for pictures. Names from a trace are untrusted bytes. krait_text_clean cleans them once; the other functions
 * escape clean text for XML or JSON. All functions append to a buffer that the caller owns; if memory runs out, they set
 * to->failed. They keep no state, so any thread may call them.
 */
#ifndef KRAIT_VIEW_FLAME_TEXT_H
#define KRAIT_VIEW_FLAME_TEXT_H

#include "base/buf.h"

enum { KRAIT_TEXT_MAX = 1000 }; /* bytes of a name; longer ones end with an ellipsis */

/* Appends s as valid UTF-8 that is legal in XML 1.0 and that does not change the direction of text. A line feed becomes U+21B5, a
 * tab a blank, other C0 controls their pictures (U+2400...). Invalid bytes, C1 controls, noncharacters and bidirectional controls
 * become U+FFFD. */
void krait_text_clean(struct krait_buf *to, const char *s);

/* Appends clean text, escaped for XML content and for attribute values in double quotes. */
void krait_text_xml(struct krait_buf *to, const char *s, size_t n);

/* Cleans untrusted text and appends it, escaped for XML. */
void krait_text_xml_raw(struct krait_buf *to, const char *s);

/* Appends as much of clean text as fits into `columns`, escaped for XML. Text that is cut ends with an ellipsis. */
void krait_text_xml_cut(struct krait_buf *to, const char *s, size_t columns);

/* Appends clean text for an element <text> of an SVG, in at most `columns`, escaped for XML. A name that is too long is
 * shortened as krait_width_shorten does; then an element <title> follows, with the whole name. */
void krait_text_xml_name(struct krait_buf *to, const char *s, size_t columns);

/* Appends clean text as a JSON string with quotes. The string is also safe inside <script> and CDATA, because < > & become
 * \u escapes. */
void krait_text_json(struct krait_buf *to, const char *s);

/* Append a number for people to read: "1.23 s", "45.6 ms", "789 ns"; "12,345,678"; "45.6 %". A share of 1 is 100 %.
 * The space before the unit is a narrow no-break space (U+202F). */
void krait_text_duration(struct krait_buf *to, uint64_t ns);
void krait_text_count(struct krait_buf *to, uint64_t n);
void krait_text_percent(struct krait_buf *to, double share);

#endif
