/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait view`: as a page over HTTP (view_serve.c), as a page without a server (view_html.c), or as a picture (view.c).
 */
#ifndef KRAIT_CMD_VIEW_H
#define KRAIT_CMD_VIEW_H

#include "analysis/wall.h"
#include "base/buf.h"
#include "cmd/select.h"
#include "cmd/watching.h"

struct krait_timeline;

struct view_options {
    const char *svg, *png, *html, *title, *limit, *listen;
    struct krait_select select;
    uint64_t width, depth, port, max_size;
    bool no_open, perfetto, no_source;
    bool follow; /* krait record --view: see cmd/watching.h */
};

/* What a page without a server is made of (view_html.c). */
struct view_page {
    const struct krait_trace *trace;
    const struct krait_wall *wall; /* NULL: nobody says what threads did */
    const struct krait_select *select;
    struct krait_range range;
    uint64_t zero_ns;
    const char *title, *folders;
    const struct krait_buf *timeline; /* as SVG */
    const char *left_of_timeline;     /* what is not drawn for want of room; NULL: all is */
    const char *whole_timeline;       /* options of `view` that draw it */
    bool no_source;
    uint64_t max_size; /* bytes of the page */
    const char *const *notes;
    uint32_t note_count;
};

/* Appends the page. Returns 0 or a negative errno with err set. */
int krait_view_html(struct krait_buf *out, const struct view_page *page, struct krait_err *err);

/* Serves the page until SIGINT or SIGTERM. Returns 0 or a negative errno with err set. */
int krait_view_serve(const struct view_options *options, char **paths, size_t count, struct krait_err *err);

/* From the program's begin to its end, unless more is asked for; of a trace without programs all, for which
 * `picture` gets the damage found on the way. The trace's tracks are found. Returns 0 or -ENOMEM. */
int krait_view_whole(struct krait_range *out, struct krait_timeline *picture, const struct krait_trace *trace,
                     const struct view_options *options);

/* Opens an address in a browser, where there is a screen to show it on. */
void krait_view_open_browser(const char *url);

/* Exports the trace and hands it to Perfetto's page, until SIGINT or SIGTERM. Returns 0 or a negative errno with err
 * set. */
int krait_view_perfetto(const struct view_options *options, char **paths, size_t count,
                        struct krait_err *err);

#endif
