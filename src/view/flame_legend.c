/* SPDX-License-Identifier: Apache-2.0
 *
 * The meaning of the colours. The file contains all legends; the class of the whole picture decides which one is
 * visible.
 */
#include "view/flame_draw.h"

#include "view/flame_text.h"
#include "view/width.h"

#include <stdbool.h>
#include <string.h>

enum { OTHERS_WIDTH = 110 }; /* pixels, of the entry that sums up those without one of their own */

struct entry {
    const char *class;
    const char *key; /* package to search for when it is clicked, or NULL */
    const char *text;
    double share;
    double base; /* flame.js shows more entries in a wider window: the share of "others" beside all of them */
};

static void entry_attributes(struct krait_buf *to, const struct entry *entry, double end, double limit)
{
    krait_buf_fmt(to, "<g class=\"e %s%s\" data-x=\"%.0f\" data-s=\"%.5f\"", entry->class,
                  end > limit ? " far" : "", end, entry->base);
    if (!entry->key)
        return;
    krait_buf_str(to, " data-k=\"");
    krait_text_xml(to, entry->key, strlen(entry->key));
    krait_buf_char(to, '"');
}

/* A swatch, its meaning and its share. Returns the place of the next one; nothing is shown beyond `limit`. */
static double legend_entry(struct krait_buf *to, const struct entry *entry, double x, double limit)
{
    KRAIT_AUTO_BUF share = { 0 };
    krait_text_percent(&share, entry->share);
    if (share.failed) {
        to->failed = true;
        return x;
    }
    enum { COLUMNS = 24 };
    size_t len = strlen(entry->text), text_len = krait_width_fit(entry->text, len, COLUMNS);
    bool cut = text_len < len;
    if (cut)
        text_len = krait_width_fit(entry->text, len, COLUMNS - 1);
    size_t columns = krait_width_of(entry->text, text_len) + cut + 1 + krait_width_of(share.data, share.len);
    double end = x + 32 + 6.7 * (double)columns;
    entry_attributes(to, entry, end, limit);
    krait_buf_fmt(
        to, "><rect x=\"%.1f\" y=\"63\" width=\"11\" height=\"11\" rx=\"2.5\"/><text x=\"%.1f\" y=\"73\">", x,
        x + 16);
    krait_text_xml(to, entry->text, text_len);
    krait_buf_str(to, cut ? "\u2026" : "");
    krait_buf_fmt(to, " <tspan class=\"q\">%s</tspan></text></g>\n", share.data);
    return end;
}

/* The package that has a hue, or NULL. */
static const struct krait_package *next_package(const struct krait_flame *flame, uint64_t *below,
                                                uint32_t *used)
{
    const struct krait_package *best = NULL;
    for (uint32_t i = 0; i < flame->package_texts.len; i++) {
        const struct krait_package *package = &flame->packages[i];
        if (package->hue == KRAIT_HUES || *used & 1u << package->hue || package->weight > *below)
            continue;
        if (!best || package->weight > best->weight)
            best = package;
    }
    if (best) {
        *below = best->weight;
        *used |= 1u << best->hue;
    }
    return best;
}

static double package_entry(struct krait_buf *to, const struct krait_package *package, double share, double x,
                            double limit)
{
    KRAIT_AUTO_BUF text = { 0 };
    char class[16];
    snprintf(class, sizeof(class), "m%u s1", package->hue);
    krait_text_clean(&text, *package->text ? package->text : "(no module)");
    if (text.failed) {
        to->failed = true;
        return x;
    }
    struct entry entry = { class, *package->text ? text.data : NULL, text.data, share, share };
    return legend_entry(to, &entry, x, limit);
}

static void module_legend(struct krait_buf *to, const struct krait_flame *flame, double width)
{
    double all = (double)KRAIT_MAX(krait_flame_total(flame, &flame->nodes[0], 0), (uint64_t)1);
    double limit = width - FLAME_PAD - OTHERS_WIDTH, x = FLAME_PAD, shown_end = x, unnamed = 0, far = 0;
    uint64_t below = UINT64_MAX;
    uint32_t used = 0;
    for (uint32_t i = 0; i < flame->package_texts.len; i++)
        unnamed += flame->packages[i].hue == KRAIT_HUES ? (double)flame->packages[i].weight / all : 0;
    krait_buf_str(to, "<g class=\"legend by-module\">\n");
    for (const struct krait_package *package; (package = next_package(flame, &below, &used));) {
        double share = (double)package->weight / all;
        x = package_entry(to, package, share, x, limit);
        if (x <= limit)
            shown_end = x;
        else
            far += share;
    }
    struct entry others = { "others m12 s1", NULL, "others", unnamed + far, unnamed };
    legend_entry(to, &others, shown_end, unnamed + far > 0 ? width : 0);
    krait_buf_str(to, "</g>\n");
}

static void layer_legend(struct krait_buf *to, const struct krait_flame *flame, double width)
{
    uint64_t weights[KRAIT_LAYER_COUNT] = { 0 };
    for (uint32_t i = 0; i < flame->count; i++) {
        const struct krait_flame_node *node = &flame->nodes[i];
        if (!flame->reversed)
            weights[flame->names[node->name].layer] += krait_flame_own(flame, node, 0);
        else if (node->depth == 1)
            weights[flame->names[node->name].layer] += krait_flame_total(flame, node, 0);
    }
    double all = (double)KRAIT_MAX(krait_flame_total(flame, &flame->nodes[0], 0), (uint64_t)1), x = FLAME_PAD;
    double python = (double)weights[KRAIT_LAYER_PYTHON] / all, c = (double)weights[KRAIT_LAYER_C] / all;
    krait_buf_str(to, "<g class=\"legend by-layer\">\n");
    x = legend_entry(to, &(struct entry){ "lp s1", NULL, "Python", python, python }, x, width);
    legend_entry(to, &(struct entry){ "lc s1", NULL, "C functions", c, c }, x, width);
    krait_buf_str(to, "</g>\n");
}

/* Functions that are not drawn, because they have no width in this trace. */
static void only_in_other(struct krait_buf *to, const struct krait_flame *flame)
{
    uint64_t gone = 0, all = krait_flame_total(flame, &flame->nodes[0], 1);
    for (uint32_t i = 0; i < flame->count; i++) {
        if (!krait_flame_total(flame, &flame->nodes[i], 0))
            gone += krait_flame_own(flame, &flame->nodes[i], 1);
    }
    if (!gone)
        return;
    krait_buf_str(to, " \u00b7 only in the other, so not drawn: ");
    krait_text_percent(to, (double)gone / (double)all);
}

static void diff_legend(struct krait_buf *to, const struct krait_flame *flame)
{
    krait_buf_fmt(
        to, "<g class=\"legend by-diff\"><text x=\"%d\" y=\"73\">smaller share than in the other</text>\n",
        FLAME_PAD);
    double x = FLAME_PAD + 31 * 6.7 + 8;
    for (int d = 0; d <= 2 * FLAME_DIFF_STEPS; d++, x += 27) {
        int step = d - FLAME_DIFF_STEPS;
        krait_buf_fmt(to, "<g class=\"d%d\"><rect x=\"%.1f\" y=\"61\" width=\"26\" height=\"15\" rx=\"2\"/>",
                      d, x);
        if (step)
            krait_buf_fmt(to, "<text class=\"in\" x=\"%.1f\" y=\"72\">%s%g</text>", x + 13,
                          step < 0 ? "\u2212" : "+", krait_flame_diff_steps[(step < 0 ? -step : step) - 1]);
        krait_buf_str(to, "</g>\n");
    }
    krait_buf_fmt(to, "<text x=\"%.1f\" y=\"73\">larger, in percentage points", x + 8);
    if (flame->judged)
        krait_buf_str(to, "; grey: no more than chance");
    only_in_other(to, flame);
    krait_buf_str(to, "</text></g>\n");
}

void krait_flame_legends(struct krait_buf *to, const struct krait_flame *flame,
                         const struct krait_flame_options *options)
{
    if (flame->has_other)
        diff_legend(to, flame);
    module_legend(to, flame, options->width);
    layer_legend(to, flame, options->width);
}
