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

void krait_func_row_json(struct krait_buf *out, const char *name, const char *module, const char *file,
                         uint32_t line, const char *kind)
{
    krait_json_key_text(out, "name", name);
    krait_json_key_text(out, "module", module);
    krait_json_key_text(out, "file", file);
    krait_json_key_u64(out, "line", line);
    krait_json_key_text(out, "kind", kind);
}

void krait_func_row_csv(struct krait_buf *out, const char *name, const char *module, const char *file,
                        uint32_t line, const char *kind)
{
    const char *texts[] = { name, module, file };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(texts); i++) {
        krait_csv_cstr(out, texts[i]);
        krait_buf_char(out, ',');
    }
    krait_buf_fmt(out, "%u,%s", line, kind);
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
    krait_json_key(out, "holds_dropped");
    krait_buf_str(out, "true");
}

void krait_func_row_csv_holds(struct krait_buf *out, bool holds_dropped)
{
    krait_buf_str(out, holds_dropped ? ",1" : ",0");
}
