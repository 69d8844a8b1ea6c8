/* SPDX-License-Identifier: Apache-2.0
 *
 * A recording as one page that needs neither a server nor the network. The page shows what was recorded, where the time
 * went, the timeline, threads, flame graph, functions with histograms of their durations, states, system calls, waits
 * for the GIL, counters, source, and what is missing or left out.
 */
#ifndef KRAIT_VIEW_PAGE_H
#define KRAIT_VIEW_PAGE_H

#include "analysis/profile.h"
#include "analysis/track_sums.h"
#include "base/buf.h"

/* "12 more functions": krait report FOLDERS --limit 0 */
struct krait_page_left {
    char what[160];
    const char *verb;
    char options[80]; /* options after the folders; begin with a blank */
};

/* A flame graph as a separate document. */
struct krait_page_flame {
    const char *title;
    struct krait_buf html; /* krait_flame_html's */
    uint32_t height;       /* pixels */
};

struct krait_page {
    const struct krait_trace *trace;
    const struct krait_profile *profile; /* of the range, with durations; rows by self time */
    const struct krait_profile *threads; /* the same by thread */
    const struct krait_track_sums *sums; /* the same for states, system calls, GIL waits and counters */
    uint32_t rows, thread_rows;          /* maximum number of rows of each on the page */
    uint32_t sources;                    /* number of functions with their source; 0: none */
    struct krait_range range;
    uint64_t zero_ns;            /* the moment that times are relative to */
    const char *title, *folders; /* untrusted, like all texts; folders: for commands that the page names */
    const struct krait_buf *timeline; /* SVG, a part of the page (krait_timeline.is_part) */
    const struct krait_page_flame *flames;
    uint32_t flame_count;
    const char *const *notes; /* what is missing, one line each */
    uint32_t note_count;
    const struct krait_page_left *left; /* what was recorded but is left out */
    uint32_t left_count;
};

/* Appends the page (check to->failed). */
void krait_page_html(struct krait_buf *to, const struct krait_page *page);

#endif
