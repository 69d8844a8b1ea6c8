/* SPDX-License-Identifier: Apache-2.0
 *
 * The data of the script.
 *
 *     {"title": …, options…, "strings": [text…],
 *      "names": [name, module, file, line, layer, hue, shade, …], "tree": "…"}
 *
 * `tree` is the graph in preorder as numbers of base 32, least digit first, a digit a character of DIGITS, those from
 * 32 on say that more digits follow. A node is: how many levels up from the node before its parent is (0: that node
 * is the parent), its name, own ns, own calls, and in a differential graph own ns and calls of the other trace, and
 * where repeats were judged 1 if its change is no more than chance. A node takes about ten bytes, so 100,000 are
 * about 1 MB and read in a few milliseconds. Example: "BC-H" begins a node: up 1, name 2, own 30 + 32 * 7 = 254 ns.
 */
#include "view/flame_draw.h"

#include "base/json.h"
#include "view/flame_text.h"

#include <string.h>

static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static void number(struct krait_buf *to, uint64_t n)
{
    char digits[13];
    size_t len = 0;
    do {
        digits[len++] = DIGITS[(n & 31) | (n >> 5 ? 32 : 0)];
        n >>= 5;
    } while (n);
    krait_buf_add(to, digits, len);
}

static void tree(struct krait_buf *to, const struct krait_flame *flame)
{
    uint32_t last_depth = 0;
    for (uint32_t i = krait_flame_next(flame, 0, KRAIT_FLAME_INTO); i != KRAIT_NO_ID;
         i = krait_flame_next(flame, i, KRAIT_FLAME_INTO)) {
        const struct krait_flame_node *node = &flame->nodes[i];
        number(to, last_depth + 1 - node->depth);
        number(to, node->name);
        for (int s = 0; s < (flame->has_other ? 2 : 1); s++) {
            number(to, node->side[s].self_ns);
            number(to, node->side[s].calls);
        }
        if (flame->judged)
            number(to, node->chance);
        last_depth = node->depth;
    }
}

static void names(struct krait_buf *to, const struct krait_flame *flame, struct krait_strtab *strings)
{
    krait_json_key_open(to, "names", '[');
    for (uint32_t i = 0; i < flame->name_count; i++) {
        const struct krait_flame_name *name = &flame->names[i];
        uint32_t hue = name->package == KRAIT_NO_ID ? KRAIT_HUES : flame->packages[name->package].hue;
        const char *texts[] = { name->name, name->module, name->file };
        for (size_t t = 0; t < KRAIT_ARRAY_LEN(texts); t++) {
            uint32_t id = krait_strtab_add(strings, texts[t], strlen(texts[t]));
            to->failed |= id == KRAIT_NO_ID;
            krait_buf_fmt(to, "%s%u", i + t ? "," : "", id);
        }
        krait_buf_fmt(to, ",%u,%d,%u,%u", name->line, (int)name->layer, hue, name->shade);
    }
    krait_buf_char(to, ']');
}

static void text_member(struct krait_buf *to, const char *key, const char *text)
{
    krait_json_key(to, key);
    KRAIT_AUTO_BUF clean = { 0 };
    krait_text_clean(&clean, text);
    krait_text_json(to, clean.len ? clean.data : "");
    to->failed |= clean.failed;
}

static void settings(struct krait_buf *to, const struct krait_flame *flame,
                     const struct krait_flame_options *options)
{
    const struct {
        const char *key;
        double value;
    } numbers[] = {
        { "unit", options->unit },
        { "measures", options->measures },
        { "layers", options->color },
        { "icicle", options->icicle },
        { "reversed", flame->reversed },
        { "diff", flame->has_other },
        { "judged", flame->judged },
        { "fixed", options->fixed_width },
        { "width", options->width },
        { "min", options->min_width },
        { "row", KRAIT_FLAME_ROW },
        { "pad", FLAME_PAD },
        { "top", FLAME_TOP },
        { "foot", FLAME_FOOT },
        { "noise", FLAME_DIFF_NOISE },
    };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(numbers); i++) {
        krait_json_key(to, numbers[i].key);
        krait_buf_fmt(to, "%.10g", numbers[i].value);
    }
    krait_json_key_open(to, "steps", '[');
    for (int i = 0; i < FLAME_DIFF_STEPS; i++) {
        krait_json_item(to, "");
        krait_buf_fmt(to, "%g", krait_flame_diff_steps[i]);
    }
    krait_buf_char(to, ']');
}

void krait_flame_json(struct krait_buf *to, const struct krait_flame *flame,
                      const struct krait_flame_options *options)
{
    struct krait_strtab strings = { 0 };
    krait_buf_char(to, '{');
    text_member(to, "title", options->title);
    text_member(to, "other", options->other);
    settings(to, flame, options);
    names(to, flame, &strings);
    krait_json_key_open(to, "strings", '[');
    for (uint32_t i = 0; i < strings.len; i++) {
        krait_json_item(to, "");
        krait_text_json(to, strings.texts[i]);
    }
    krait_buf_char(to, ']');
    krait_json_key(to, "tree");
    krait_buf_char(to, '"');
    tree(to, flame);
    krait_buf_str(to, "\"}");
    krait_strtab_done(&strings);
}
