/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/func_row.h"

#include "base/csv.h"
#include "base/fmt.h"
#include "base/json.h"

#include <string.h>

const char *krait_func_row_kind(enum krait_func_kind kind)
{
    return krait_func_kind_name(kind);
}

void krait_func_row_label(struct krait_buf *out, const char *module, const char *name,
                          enum krait_func_kind kind, size_t *bright)
{
    const char *prefix = krait_func_prefix(kind, module);
    krait_fmt_safe(out, *name ? prefix : module);
    krait_buf_str(out, *prefix && *name ? "." : "");
    size_t before = out->len;
    krait_fmt_safe(out, name);
    krait_buf_str(out, kind == KRAIT_FUNC_C ? " (C)" : "");
    *bright = out->len - before;
}

static const struct {
    const char *key;
    size_t offset;
    bool is_number;
} columns[] = {
    { "name", offsetof(struct krait_func_row, name), false },
    { "module", offsetof(struct krait_func_row, module), false },
    { "file", offsetof(struct krait_func_row, file), false },
    { "line", offsetof(struct krait_func_row, line), true },
    { "kind", offsetof(struct krait_func_row, kind), false },
};

static const char *text_at(const struct krait_func_row *row, size_t column)
{
    return *(const char *const *)(const void *)((const char *)row + columns[column].offset);
}

static uint32_t number_at(const struct krait_func_row *row, size_t column)
{
    return *(const uint32_t *)(const void *)((const char *)row + columns[column].offset);
}

void krait_func_row_json(struct krait_buf *out, struct krait_func_row row)
{
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(columns); i++) {
        if (columns[i].is_number)
            krait_json_key_u64(out, columns[i].key, number_at(&row, i));
        else
            krait_json_key_text(out, columns[i].key, text_at(&row, i));
    }
}

void krait_func_row_csv(struct krait_buf *out, const struct krait_func_row *row)
{
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(columns); i++) {
        krait_buf_str(out, i ? "," : "");
        if (!row)
            krait_buf_str(out, columns[i].key);
        else if (columns[i].is_number)
            krait_buf_fmt(out, "%u", number_at(row, i));
        else
            krait_csv_cstr(out, text_at(row, i));
    }
}

void krait_func_row_mark(struct krait_buf *out, bool holds_dropped, size_t *bright)
{
    if (!holds_dropped)
        return;
    krait_buf_str(out, KRAIT_HOLDS_DROPPED);
    *bright += strlen(KRAIT_HOLDS_DROPPED);
}

void krait_func_row_marked(struct krait_buf *out, const struct krait_func *func, size_t *bright)
{
    krait_func_row_label(out, func->module, func->name, func->kind, bright);
    krait_func_row_mark(out, func->holds_dropped, bright);
}

void krait_func_row_json_holds(struct krait_buf *out, bool holds_dropped)
{
    if (!holds_dropped)
        return;
    krait_json_key_bool(out, KRAIT_HOLDS_KEY, true);
}
