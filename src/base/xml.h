/* SPDX-License-Identifier: Apache-2.0
 *
 * XML 1.0 from untrusted bytes, as a tree in an arena: elements with their attributes and lines, without the text in
 * them. expat reads; no entity of another file is followed.
 */
#ifndef KRAIT_BASE_XML_H
#define KRAIT_BASE_XML_H

#include "base/arena.h"
#include "base/err.h"

enum { KRAIT_XML_MOST = 4 << 20, KRAIT_XML_DEEPEST = 64 }; /* bytes of a text; elements within each other */

struct krait_xml {
    const char *name;
    uint32_t line;
    const char *const *attributes; /* names and values by turns, then NULL */
    struct krait_xml *first, *next;
};

/* The root. -EBADMSG: it is no XML; `line` has the line where, and err why. -EFBIG: it is too large. -ENOMEM. Of an error
 * that is in no line, `line` is 0. */
int krait_xml_read(struct krait_xml **out, struct krait_arena *arena, const char *text, size_t n,
                   uint32_t *line, struct krait_err *err);

/* An attribute's value, or "" where there is none. */
const char *krait_xml_get(const struct krait_xml *element, const char *name);

/* The first element within of that name, or NULL; and the next one beside. */
const struct krait_xml *krait_xml_first(const struct krait_xml *element, const char *name);
const struct krait_xml *krait_xml_next(const struct krait_xml *element, const char *name);

#endif
