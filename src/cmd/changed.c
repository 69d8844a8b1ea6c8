/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/changed.h"

#include "base/fmt.h"
#include "base/json.h"

#include <string.h>

const char krait_changed_why[] =
    "functions that are left out before or after have calls for a part of the time alone";

/* Processes follow one after the other: those that tell the same as the one before them are of one change. */
static uint32_t alike(const struct krait_trace *trace, uint32_t first)
{
    uint32_t end = first + 1;
    while (end < trace->set_count && strcmp(trace->sets[end].what, trace->sets[first].what) == 0 &&
           trace->sets[end].pid != trace->sets[first].pid)
        end++;
    return end;
}

uint32_t krait_changed_add(struct krait_buf *out, const struct krait_trace *trace, uint32_t i)
{
    char at[KRAIT_FMT_SIZE];
    krait_buf_fmt(out, "from %s on ", krait_fmt_ns(at, trace->sets[i].t_ns - krait_trace_zero(trace)));
    krait_fmt_safe(out, trace->sets[i].what);
    return alike(trace, i);
}

uint32_t krait_changed_next(const struct krait_trace *trace, struct krait_range range, uint32_t i)
{
    while (i < trace->set_count &&
           (trace->sets[i].t_ns <= range.from_ns || trace->sets[i].t_ns >= range.to_ns))
        i++;
    return i;
}

uint32_t krait_changed_count(const struct krait_trace *trace, struct krait_range range)
{
    uint32_t n = 0, i = krait_changed_next(trace, range, 0);
    for (; i < trace->set_count; i = krait_changed_next(trace, range, alike(trace, i)))
        n++;
    return n;
}

uint32_t krait_changed_list(struct krait_buf *out, const struct krait_trace *trace, struct krait_range range,
                            uint32_t most)
{
    uint32_t n = krait_changed_count(trace, range), i = krait_changed_next(trace, range, 0);
    for (uint32_t shown = 0; i < trace->set_count && shown < most; shown++) {
        krait_buf_str(out, shown ? "; " : "");
        i = krait_changed_next(trace, range, krait_changed_add(out, trace, i));
    }
    if (n > most)
        krait_buf_str(out, "; ...");
    return n;
}

void krait_changed_json(struct krait_buf *out, const struct krait_trace *trace, struct krait_range range)
{
    uint32_t i = krait_changed_next(trace, range, 0);
    if (i == trace->set_count)
        return;
    krait_json_key_open(out, "sets", '[');
    for (; i < trace->set_count; i = krait_changed_next(trace, range, i + 1)) {
        krait_json_item(out, "{");
        krait_json_key_u64(out, "at_ns", trace->sets[i].t_ns - krait_trace_zero(trace));
        krait_json_key_u64(out, "pid", trace->sets[i].pid);
        krait_json_key_text(out, "what", trace->sets[i].what);
        krait_buf_char(out, '}');
    }
    krait_buf_char(out, ']');
}
