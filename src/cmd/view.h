/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait view`: as a page over HTTP (view_serve.c), or as a picture (view.c).
 */
#ifndef KRAIT_CMD_VIEW_H
#define KRAIT_CMD_VIEW_H

#include "cmd/select.h"

struct view_options {
    const char *svg, *png, *title, *limit, *listen;
    struct krait_select select;
    uint64_t width, depth, port;
    bool no_open;
};

/* Serves the page until SIGINT or SIGTERM. Returns 0 or a negative errno with err set. */
int krait_view_serve(const struct view_options *options, char **paths, size_t count, struct krait_err *err);

#endif
