/* SPDX-License-Identifier: Apache-2.0
 *
 * Colours of functions, the same in every picture. Each of the heaviest packages has a hue by its name, so a package
 * mostly looks the same everywhere. The function's name decides the shade, so that neighbours differ.
 * tools/flame_palette.py has the colours: classes mHUE and sSHADE.
 */
#ifndef KRAIT_VIEW_HUES_H
#define KRAIT_VIEW_HUES_H

#include "base/base.h"

enum {
    KRAIT_HUES = 12,  /* packages with a colour of their own; hue KRAIT_HUES is all others */
    KRAIT_SHADES = 3, /* of each hue */
};

struct krait_package {
    const char *text; /* top-level module: "json" */
    uint64_t weight;  /* in this picture, in any unit */
    uint32_t hue;     /* KRAIT_HUES: no colour of its own */
};

/* Sets the hues of all packages by their weights. Returns 0 or -ENOMEM. */
int krait_hues_give(struct krait_package *packages, uint32_t count);

/* The hue of one more package, which it marks as taken; KRAIT_HUES: all are. */
uint32_t krait_hues_take(bool taken[KRAIT_HUES], const char *package);

/* 0 to KRAIT_SHADES - 1. */
uint32_t krait_hues_shade(const char *name);

#endif
