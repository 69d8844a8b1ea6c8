/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait info --json`.
 */
#include "analysis/cost.h"
#include "base/json.h"
#include "cmd/args_unmet.h"
#include "cmd/changed.h"
#include "cmd/cost_line.h"
#include "cmd/ending.h"
#include "cmd/info.h"
#include "cmd/omitted.h"

/* Returns how many events they are. */
static uint64_t json_losses_of(struct info *info, const char *key, bool anywhere)
{
    uint64_t events = 0;
    krait_json_key_open(&info->out, key, '{');
    for (uint32_t i = 0; i < krait_info_loss_count(info); i++) {
        struct loss loss = krait_info_loss_at(info, i);
        if (!loss.count || loss.is_anywhere != anywhere)
            continue;
        krait_json_key_u64(&info->out, loss.reason, loss.count);
        events += loss.of_packets ? 0 : loss.count;
    }
    krait_buf_char(&info->out, '}');
    return events;
}

static void json_losses(struct info *info)
{
    uint64_t events = json_losses_of(info, "lost", false);
    krait_json_lost_events(&info->out, events);
    json_losses_of(info, "lost_anywhere", true);
}

static void json_kernel(struct info *info)
{
    struct krait_buf *out = &info->out;
    if (!info->kernel.streams) {
        krait_json_key_null(out, "kernel");
        return;
    }
    krait_json_key_open(out, "kernel", '{');
    krait_json_key_u64(out, "events", info->kernel.events);
    krait_json_key_u64(out, "streams", info->kernel.streams);
    krait_json_key_u64(out, "lost", info->kernel.lost_events);
    krait_json_lost_events(out, info->kernel.lost_events);
    krait_json_key_open(out, "stolen_ns", '[');
    for (uint32_t i = 0; i < info->steals.count; i++)
        krait_buf_fmt(out, "%s%llu", i ? "," : "", (unsigned long long)info->steals.items[i].stolen_ns);
    krait_buf_str(out, "]}");
}

static void json_gil(struct info *info)
{
    struct krait_buf *out = &info->out;
    if (!info->gil.waits) {
        krait_json_key_null(out, "gil");
        return;
    }
    krait_json_key_open(out, "gil", '{');
    krait_json_key_u64(out, "waits", info->gil.waits);
    krait_json_key_u64(out, "wait_ns", info->gil.ns);
    krait_json_key_u64(out, "threads", info->gil.threads);
    krait_json_key_u64(out, "held_ns", info->gil.split.ns[KRAIT_GIL_HELD]);
    krait_json_key_u64(out, "free_ns", info->gil.split.ns[KRAIT_GIL_FREE]);
    krait_json_key_u64(out, "unknown_ns", info->gil.split.ns[KRAIT_GIL_UNKNOWN]);
    krait_buf_char(out, '}');
}

static void json_rings(struct info *info)
{
    struct krait_buf *out = &info->out;
    uint64_t ring = krait_info_most_of(info, "ring_size");
    if (!ring) {
        krait_json_key_null(out, "rings");
        return;
    }
    krait_json_key_open(out, "rings", '{');
    krait_json_key_u64(out, "ring_bytes", ring);
    krait_json_key_u64(out, "buffer_bytes", krait_info_most_of(info, "buffer_size"));
    krait_json_key_u64(out, "grown_bytes", krait_info_most_of(info, "buffer_used"));
    krait_buf_char(out, '}');
}

static void json_samples(struct krait_buf *out, const struct krait_trace_samples *samples)
{
    krait_json_key_open(out, "samples", '{');
    krait_json_key_u64(out, "rate", samples->rate);
    krait_json_key_u64(out, "interval_ns", samples->interval_ns);
    krait_json_key_u64(out, "taken", samples->taken);
    krait_json_key_u64(out, "dropped", samples->dropped);
    krait_buf_char(out, '}');
}

void krait_info_json(struct info *info)
{
    struct krait_buf *out = &info->out;
    krait_buf_char(out, '{');
    krait_json_key_u64(out, "duration_ns", krait_info_duration(info));
    krait_json_key_u64_or_null(out, "processes", info->trace,
                               info->trace ? krait_info_process_count(info) : 0);
    krait_json_key_u64_or_null(out, "threads", info->trace, info->trace ? krait_info_thread_count(info) : 0);
    krait_json_key_u64(out, "events", info->count.events);
    krait_json_key_u64(out, "bytes", info->count.bytes);
    json_losses(info);
    krait_json_key_text_or_null(out, "damage", info->count.damage.text);
    krait_info_classes_json(info);
    krait_json_key_u64(out, "streams", info->reader->stream_count);
    krait_json_key_u64(out, "packets", info->count.packets);
    json_kernel(info);
    json_gil(info);
    json_rings(info);
    krait_json_key_text_or_null(out, "limit", krait_info_limit_of(info));
    if (info->trace && krait_cost_is_known(info->trace))
        krait_cost_json(out, info->trace);
    if (info->trace && !info->is_part && info->trace->samples.rate)
        json_samples(out, &info->trace->samples);
    krait_json_key_u64_or_null(out, "dropped", info->trace, krait_info_most_of(info, "dropped_events"));
    if (info->trace)
        krait_json_key_u64(out, "kept_from_ns", krait_info_kept_from(info));
    if (info->trace)
        krait_json_key_u64(out, "kept_ns", krait_info_kept(info));
    if (info->trace)
        krait_ending_off_json(out, info->trace, info->range);
    if (info->trace)
        krait_changed_json(out, info->trace, info->range);
    if (info->trace)
        krait_omitted_json(out, info->trace);
    if (info->trace)
        krait_args_unmet_json(out, info->trace, krait_info_args_of(info));
    if (info->trace)
        krait_info_processes_json(info);
    krait_info_declared_json(info);
    krait_buf_str(out, "}\n");
}
