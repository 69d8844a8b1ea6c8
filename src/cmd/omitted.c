/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/omitted.h"

#include "base/fmt.h"
#include "base/json.h"
#include "cmd/func_row.h"
#include "event/event.h"

#include <string.h>

static int by_calls(const void *a, const void *b)
{
    const struct krait_trace_omitted *x = a, *y = b;
    return (x->calls < y->calls) - (x->calls > y->calls);
}

/* A copy of trace->omitted, those with the most recorded calls first; NULL if there is none, or no memory. */
static struct krait_trace_omitted *sorted_omitted(const struct krait_trace *trace)
{
    uint32_t n = trace->omitted_count;
    struct krait_trace_omitted *omitted = n ? calloc(n, sizeof(*omitted)) : NULL;
    if (!omitted)
        return NULL;
    memcpy(omitted, trace->omitted, n * sizeof(*omitted));
    qsort(omitted, n, sizeof(*omitted), by_calls);
    return omitted;
}

void krait_omitted_list(struct krait_buf *out, const struct krait_trace *trace, uint32_t most)
{
    KRAIT_AUTO_FREE struct krait_trace_omitted *omitted = sorted_omitted(trace);
    uint32_t n = omitted ? KRAIT_MIN(trace->omitted_count, most) : 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct krait_func *func = &trace->funcs[omitted[i].func];
        char count[KRAIT_FMT_SIZE];
        krait_buf_str(out, i ? ", " : "");
        krait_fmt_safe(out, func->module);
        krait_buf_str(out, *func->module && *func->name ? "." : "");
        krait_fmt_safe(out, func->name);
        krait_buf_fmt(out, "%s (after %s)", func->kind == KRAIT_FUNC_C ? " (C)" : "",
                      krait_fmt_counted(count, omitted[i].calls, "call"));
    }
    krait_buf_str(out, n < trace->omitted_count ? ", ..." : "");
}

const char krait_omitted_pause[] =
    "recording paused at times, the calls in them are not counted: their time is "
    "that of " KRAIT_PAUSE_MODULE "." KRAIT_PAUSE_NAME;

bool krait_omitted_paused(const struct krait_trace *trace)
{
    for (uint32_t i = 0; i < trace->func_count; i++) {
        const struct krait_func *func = &trace->funcs[i];
        if (strcmp(func->module, KRAIT_PAUSE_MODULE) == 0 && strcmp(func->name, KRAIT_PAUSE_NAME) == 0)
            return true;
    }
    return false;
}

void krait_omitted_json(struct krait_buf *out, const struct krait_trace *trace)
{
    krait_json_key_open(out, "omitted", '[');
    for (uint32_t i = 0; i < trace->omitted_count; i++) {
        const struct krait_func *func = &trace->funcs[trace->omitted[i].func];
        krait_json_item(out, "{");
        krait_func_row_json(out, KRAIT_FUNC_ROW(func));
        krait_json_key_u64(out, "calls", trace->omitted[i].calls);
        krait_json_key_text(out, "reason", trace->omitted[i].reason);
        krait_buf_char(out, '}');
    }
    krait_buf_char(out, ']');
    krait_json_key_bool(out, "paused", krait_omitted_paused(trace));
}
