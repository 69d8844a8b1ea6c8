/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts a picture from SVG to PNG with librsvg and cairo. They are loaded only when needed; krait works without
 * them.
 */
#ifndef KRAIT_VIEW_PNG_H
#define KRAIT_VIEW_PNG_H

#include "base/buf.h"
#include "base/err.h"

/* Appends the picture to `png`, with `scale` pixels for each of the SVG's. Returns 0, or a negative errno with err
 * set: -ENOENT the libraries are not installed, -E2BIG the picture is too large for them, -ENOMEM, -EIO. */
int krait_png_of_svg(struct krait_buf *png, const struct krait_buf *svg, double scale, struct krait_err *err);

#endif
