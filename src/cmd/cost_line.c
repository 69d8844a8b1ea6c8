/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/cost_line.h"

#include "analysis/cost.h"
#include "base/json.h"

/* Of all processes that tell what a call of this kind costs. */
struct costs {
    uint32_t least, most;
    uint64_t sum, count;
};

static struct costs costs_of(const struct krait_trace *trace, enum krait_func_kind kind)
{
    struct costs costs = { .least = UINT32_MAX };
    for (uint32_t i = 0; i < trace->process_count; i++) {
        const struct krait_call_cost *cost = &trace->processes[i].cost[kind];
        uint32_t ns = cost->inside_ns + cost->outside_ns;
        if (!ns)
            continue;
        costs.least = KRAIT_MIN(costs.least, ns);
        costs.most = KRAIT_MAX(costs.most, ns);
        costs.sum += ns;
        costs.count++;
    }
    return costs;
}

static void add_costs(struct krait_buf *out, const struct costs *costs)
{
    if (costs->least == costs->most)
        krait_buf_fmt(out, "%u ns", costs->least);
    else
        krait_buf_fmt(out, "%u to %u ns", costs->least, costs->most);
}

void krait_cost_words(struct krait_buf *out, const struct krait_trace *trace)
{
    struct costs python = costs_of(trace, KRAIT_FUNC_PYTHON), c = costs_of(trace, KRAIT_FUNC_C);
    if (python.count) {
        add_costs(out, &python);
        krait_buf_str(out, " a call");
    }
    if (c.count) {
        krait_buf_str(out, python.count ? ", " : "");
        add_costs(out, &c);
        krait_buf_str(out, " a call of a C function");
    }
}

int krait_cost_compensate(bool wanted, const struct krait_trace *trace, bool *yes, struct krait_err *err)
{
    *yes = wanted && krait_cost_is_known(trace);
    if (wanted && !*yes)
        return krait_err_set(err, -EINVAL,
                             "--compensate: this recording does not tell what recording took; "
                             "krait record -- COMMAND, without --call-sites, measures it");
    return 0;
}

void krait_cost_note(struct krait_buf *notes, const struct krait_trace *trace)
{
    krait_buf_str(notes, "recording cost is taken off: ");
    krait_cost_words(notes, trace);
    krait_buf_str(notes, "\n");
}

void krait_cost_json(struct krait_buf *out, const struct krait_trace *trace)
{
    static const char *const names[] = { [KRAIT_FUNC_PYTHON] = "python", [KRAIT_FUNC_C] = "c" };
    krait_json_key_open(out, "recording_cost_ns", '{');
    for (enum krait_func_kind kind = KRAIT_FUNC_PYTHON; kind <= KRAIT_FUNC_C; kind++) {
        struct costs costs = costs_of(trace, kind);
        krait_json_key_u64(out, names[kind], costs.count ? (costs.sum + costs.count / 2) / costs.count : 0);
    }
    krait_buf_char(out, '}');
}
