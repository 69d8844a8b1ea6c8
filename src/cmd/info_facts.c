/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait info`: what its text and its JSON both tell.
 */
#include "cmd/info.h"

#include <string.h>

uint64_t krait_info_most_of(const struct info *info, const char *name)
{
    int64_t most = 0;
    for (uint32_t i = 0; info->trace && i < info->reader->trace_count; i++)
        most = KRAIT_MAX(most, krait_ctf_env_int(info->reader->traces[i]->metadata, name, 0));
    return (uint64_t)most;
}

uint32_t krait_info_loss_count(const struct info *info)
{
    return info->trace ? info->trace->lost_count : 2;
}

struct loss krait_info_loss_at(const struct info *info, uint32_t i)
{
    if (info->trace)
        return (struct loss){ info->trace->lost[i].reason, info->trace->lost[i].advice,
                              info->trace->lost[i].count, false };
    if (i == 0)
        return (struct loss){ "discarded events", "the tracer's buffers were full; make them larger",
                              info->count.lost_events, false };
    return (struct loss){ "discarded packets", "the tracer overwrote or lost whole packets",
                          info->count.lost_packets, true };
}

/* The first trace that has a text of this name; "" where none has. */
static const char *text_of(const struct info *info, const char *name)
{
    const char *text = "";
    for (uint32_t i = 0; info->trace && !*text && i < info->reader->trace_count; i++)
        text = krait_ctf_env_text(info->reader->traces[i]->metadata, name, "");
    return text;
}

const char *krait_info_limit_of(const struct info *info)
{
    return text_of(info, "recording_limit");
}

const char *krait_info_args_of(const struct info *info)
{
    return text_of(info, "recording_args");
}

uint64_t krait_info_duration(const struct info *info)
{
    return (uint64_t)info->count.end_ns - (uint64_t)info->count.begin_ns;
}

bool krait_info_is_kernel(const struct krait_ctf_trace *trace)
{
    return strcmp(krait_ctf_env_text(trace->metadata, "domain", ""), "kernel") == 0;
}
