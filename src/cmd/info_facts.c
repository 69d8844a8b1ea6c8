/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait info`: what its text and its JSON both tell.
 */
#include "cmd/info.h"
#include "event/event.h"

#include <string.h>

uint64_t krait_info_most_of(const struct info *info, const char *name)
{
    int64_t most = 0;
    for (uint32_t i = 0; info->trace && i < info->reader->trace_count; i++)
        most = KRAIT_MAX(most, krait_ctf_env_int(info->reader->traces[i]->metadata, name, 0));
    return (uint64_t)most;
}

static bool is_reason(const struct krait_trace_lost *lost, uint32_t reason)
{
    return strcmp(lost->reason, krait_enum_find("lost_reason", reason)->label) == 0;
}

/* What packets tell of, and where: of the kernel's, and of those of a process that found no room in its ring, or on the disk. */
static bool is_of_packets(const struct krait_trace_lost *lost, bool of_kernel)
{
    if (of_kernel || lost->of_kernel)
        return of_kernel && lost->of_kernel;
    return is_reason(lost, KRAIT_lost_reason_ring_full) || is_reason(lost, KRAIT_lost_reason_disk);
}

/* Packets do not tell why: that is known if there is one reason in the whole recording. */
static struct loss loss_of_packets(const struct info *info, bool of_kernel, uint64_t count)
{
    const char *several = of_kernel ? "discarded events of the kernel" : "discarded events";
    struct loss loss = { .reason = several,
                         .advice = "the tracer's buffers were full; make them larger",
                         .count = count };
    uint32_t reasons = 0;
    for (uint32_t i = 0; info->trace && i < info->trace->lost_count; i++) {
        const struct krait_trace_lost *lost = &info->trace->lost[i];
        if (!is_of_packets(lost, of_kernel) || ++reasons > 1)
            continue;
        loss.reason = lost->reason;
        loss.advice = lost->advice;
    }
    if (reasons > 1) {
        loss.reason = several;
        loss.advice = "krait info without a range tells for which reasons";
    }
    return loss;
}

/* Of a recording's loss, as such. Of a part: of what no packet tells, it is not known whether it is in it. */
static struct loss loss_of_recording(const struct info *info, uint32_t i)
{
    const struct krait_trace_lost *lost = &info->trace->lost[i];
    bool is_told = info->is_part && is_of_packets(lost, lost->of_kernel);
    return (struct loss){ .reason = lost->reason,
                          .advice = lost->advice,
                          .count = is_told ? 0 : lost->count,
                          .is_anywhere = info->is_part };
}

enum { OF_PACKETS = 3 };

static uint32_t first_of_recording(const struct info *info)
{
    return info->trace && !info->is_part ? 0 : OF_PACKETS;
}

uint32_t krait_info_loss_count(const struct info *info)
{
    return first_of_recording(info) + (info->trace ? info->trace->lost_count : 0);
}

struct loss krait_info_loss_at(const struct info *info, uint32_t i)
{
    uint32_t first = first_of_recording(info);
    uint64_t of_kernel = info->trace ? info->kernel.lost_events : 0;
    if (i >= first)
        return loss_of_recording(info, i - first);
    if (i == 0)
        return loss_of_packets(info, false, info->count.lost_events - of_kernel);
    if (i == 1)
        return loss_of_packets(info, true, of_kernel);
    return (struct loss){ .reason = "discarded packets",
                          .advice = "the tracer overwrote or lost whole packets",
                          .count = info->count.lost_packets,
                          .of_packets = true };
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

const char *krait_info_dropped_for(const struct info *info)
{
    return text_of(info, "dropped_for");
}

uint64_t krait_info_kept_from(const struct info *info)
{
    uint64_t kept_ns = krait_trace_kept(info->trace);
    return kept_ns > info->trace->begin_ns ? kept_ns - krait_trace_zero(info->trace) : 0;
}

uint64_t krait_info_kept(const struct info *info)
{
    uint64_t kept_ns = krait_trace_kept(info->trace), end_ns = info->trace->end_ns;
    if (!krait_info_kept_from(info))
        return krait_info_duration(info);
    return end_ns - KRAIT_MIN(kept_ns, end_ns); /* a live program that does nothing has only older events */
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
