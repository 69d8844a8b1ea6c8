/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/kept.h"

#include "ctf/format.h"
#include "trace/cut_kernel.h"
#include "trace/cut_own.h"

#include <string.h>

uint64_t krait_kept_from(const struct krait_ctf_trace *trace)
{
    const struct krait_ctf_metadata *metadata = trace->metadata;
    bool is_kernels = krait_cut_is_kernels(trace);
    bool is_own = strcmp(krait_ctf_env_text(metadata, "tracer_name", ""), "krait") == 0;
    if (metadata->clock_count != 1 || (!is_kernels && !is_own))
        return 0;
    const struct krait_range range = { (uint64_t)krait_ctf_env_int(metadata, KRAIT_ENV_CUT_FROM, 0),
                                       UINT64_MAX };
    uint64_t before =
        krait_cut_edges_of(trace, range, is_kernels ? krait_ctf_ns_rounded : krait_ctf_clock_ns).before;
    return KRAIT_MAX(before ? before + 1 : 0, (uint64_t)krait_ctf_env_int(metadata, "kept_from", 0));
}
