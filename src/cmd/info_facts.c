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

/* Of a part, only the packets tell what was lost. */
static bool has_reasons(const struct info *info)
{
    return info->trace && !info->is_part;
}

uint32_t krait_info_loss_count(const struct info *info)
{
    return has_reasons(info) ? info->trace->lost_count : 2;
}

struct loss krait_info_loss_at(const struct info *info, uint32_t i)
{
    if (has_reasons(info))
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

bool krait_info_has(const struct info *info, uint64_t begin_ns, uint64_t end_ns)
{
    return begin_ns < info->range.to_ns && end_ns >= info->range.from_ns;
}

uint32_t krait_info_process_count(const struct info *info)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < info->trace->process_count; i++)
        count += krait_info_has(info, info->trace->processes[i].begin_ns, info->trace->processes[i].end_ns);
    return count;
}

uint32_t krait_info_thread_count(const struct info *info)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < info->trace->thread_count; i++)
        count += krait_info_has(info, info->trace->threads[i].begin_ns, info->trace->threads[i].end_ns);
    return count;
}

struct krait_range krait_info_span(const struct info *info, const struct krait_process *process)
{
    return (struct krait_range){ KRAIT_MAX(process->begin_ns, info->range.from_ns),
                                 KRAIT_MIN(process->end_ns, info->range.to_ns) };
}
