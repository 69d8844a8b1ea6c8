/* SPDX-License-Identifier: Apache-2.0
 *
 * A recording as one page that needs neither a server nor the network: what was recorded, where the time went, the
 * timeline, the flame graph, the functions, and what is missing.
 */
#ifndef KRAIT_VIEW_PAGE_H
#define KRAIT_VIEW_PAGE_H

#include "analysis/profile.h"
#include "base/buf.h"

struct krait_page {
    const struct krait_trace *trace;
    const struct krait_profile *profile; /* of the range; rows by self time */
    uint32_t rows;                       /* of it that the page has, at most */
    struct krait_range range;
    uint64_t zero_ns;            /* what times are told from */
    const char *title, *folders; /* untrusted, like all texts; folders: for commands that the page names */
    const struct krait_buf *timeline, *flame; /* SVG */
    uint32_t timeline_height, flame_height;   /* pixels */
    const char *const *notes;                 /* what is missing, a line each */
    uint32_t note_count;
};

/* Appends the page (check to->failed). */
void krait_page_html(struct krait_buf *to, const struct krait_page *page);

#endif
