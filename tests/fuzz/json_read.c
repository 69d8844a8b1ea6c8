/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as JSON: read or refused with a reason.
 */
#include "base/json_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t count_values(const struct krait_json *value)
{
    size_t n = 1;
    bool has_items = value->kind == KRAIT_JSON_ARRAY || value->kind == KRAIT_JSON_OBJECT;
    for (const struct krait_json *item = has_items ? value->first : NULL; item; item = item->next)
        n += count_values(item);
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct krait_arena arena = { 0 };
    struct krait_json *value = NULL;
    struct krait_err err = { 0 };
    int rc = krait_json_read(&value, &arena, (const char *)data, size, 0, &err);
    if (rc ? value != NULL || !err.text[0] : count_values(value) > size)
        abort();
    krait_arena_done(&arena);
    return 0;
}
