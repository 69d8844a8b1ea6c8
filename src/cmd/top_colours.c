/* SPDX-License-Identifier: Apache-2.0
 *
 * Colours of functions on a terminal: the hues of `krait view` (view/hues.h). A package keeps its hue while krait runs, so that
 * nothing changes its colour from one frame to the next.
 */
#include "base/array.h"
#include "cmd/top.h"
#include "sample/sample.h"

#include <string.h>

/* Of xterm's 256 colours those that are nearest to OKLCH (0.7 +- 0.075, 0.125, 20 + 30 * hue); both a dark and a light ground show
 * them. Where there are only 16 colours, a hue has one. */
static const struct {
    uint8_t shades[KRAIT_SHADES], plain;
} codes[KRAIT_HUES + 1] = {
    { { 167, 174, 210 }, 31 }, { { 166, 173, 209 }, 91 }, { { 136, 172, 179 }, 33 },
    { { 100, 143, 178 }, 93 }, { { 71, 107, 114 }, 32 },  { { 36, 72, 79 }, 92 },
    { { 37, 73, 44 }, 36 },    { { 31, 38, 45 }, 96 },    { { 68, 75, 111 }, 34 },
    { { 104, 140, 147 }, 94 }, { { 133, 176, 183 }, 35 }, { { 132, 175, 211 }, 95 },
    { { 102, 247, 249 }, 37 },
};

void top_colours_done(struct top_colours *colours)
{
    krait_strtab_done(&colours->packages);
    free(colours->hues);
}

static uint32_t hue_of(struct top_colours *colours, const char *package, size_t n)
{
    uint32_t known = colours->packages.len, id = krait_strtab_add(&colours->packages, package, n);
    if (id == KRAIT_NO_ID || !KRAIT_GROW(colours->hues, colours->cap, colours->packages.len))
        return KRAIT_HUES;
    if (id == known)
        colours->hues[id] = (uint8_t)krait_hues_take(colours->taken, colours->packages.texts[id]);
    return colours->hues[id];
}

uint32_t top_colour_of(struct top_colours *colours, const char *module, const char *file, const char *name)
{
    KRAIT_AUTO_BUF of_file = { 0 };
    if (!*module && *file)
        krait_sample_add_module(&of_file, file);
    const char *text = of_file.len ? of_file.data : module;
    return hue_of(colours, text, strcspn(text, ".")) * KRAIT_SHADES + krait_hues_shade(name);
}

static bool has_many(void)
{
    const char *term = getenv("TERM"), *more = getenv("COLORTERM");
    return (term && strstr(term, "256color")) || (more && *more);
}

void top_colour_begin(struct krait_buf *out, uint32_t colour)
{
    uint32_t hue = KRAIT_MIN(colour / KRAIT_SHADES, (uint32_t)KRAIT_HUES);
    if (has_many())
        krait_buf_fmt(out, "\033[38;5;%um", codes[hue].shades[colour % KRAIT_SHADES]);
    else
        krait_buf_fmt(out, "\033[%um", codes[hue].plain);
}
