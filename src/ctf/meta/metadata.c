/* SPDX-License-Identifier: Apache-2.0 */
#include "ctf/meta/metadata.h"

#include <string.h>

const struct krait_env_entry *krait_ctf_env(const struct krait_ctf_metadata *metadata, const char *name)
{
    for (uint32_t i = metadata->env_count; i > 0; i--) {
        if (strcmp(metadata->env[i - 1].name, name) == 0)
            return &metadata->env[i - 1];
    }
    return NULL;
}

const char *krait_ctf_env_text(const struct krait_ctf_metadata *metadata, const char *name,
                               const char *otherwise)
{
    const struct krait_env_entry *entry = krait_ctf_env(metadata, name);
    return entry && entry->text ? entry->text : otherwise;
}

int64_t krait_ctf_env_int(const struct krait_ctf_metadata *metadata, const char *name, int64_t otherwise)
{
    const struct krait_env_entry *entry = krait_ctf_env(metadata, name);
    return entry && !entry->text ? entry->value : otherwise;
}

const struct krait_ctf_clock *krait_ctf_clock_named(const struct krait_ctf_metadata *metadata,
                                                    const char *name)
{
    for (uint32_t i = 0; i < metadata->clock_count; i++) {
        if (strcmp(metadata->clocks[i]->name, name) == 0)
            return metadata->clocks[i];
    }
    return NULL;
}

const struct krait_stream_class *krait_ctf_stream(const struct krait_ctf_metadata *metadata, uint64_t id)
{
    for (uint32_t i = 0; i < metadata->stream_count; i++) {
        if (metadata->streams[i]->id == id)
            return metadata->streams[i];
    }
    return NULL;
}

const struct krait_event_class *krait_ctf_event(const struct krait_stream_class *stream, uint64_t id)
{
    const uint64_t *index = krait_map_get(&stream->by_id, id);
    return index ? stream->events[*index] : NULL;
}

const struct krait_fc_member *krait_fc_member(const struct krait_fc *fc, const char *name)
{
    for (uint32_t i = 0; i < fc->count; i++) {
        if (strcmp(fc->members[i].name, name) == 0)
            return &fc->members[i];
    }
    return NULL;
}

const struct krait_fc *krait_fc_meant(const struct krait_fc *fc, enum krait_meaning meaning)
{
    if (!fc || krait_fc_is_int(fc))
        return fc && fc->meanings & krait_meaning_bit(meaning) ? fc : NULL;
    if (fc->kind == KRAIT_FC_ARRAY || fc->kind == KRAIT_FC_SEQUENCE)
        return krait_fc_meant(fc->elem, meaning);
    bool has_members =
        fc->kind == KRAIT_FC_STRUCT || fc->kind == KRAIT_FC_VARIANT || fc->kind == KRAIT_FC_OPTIONAL;
    const struct krait_fc *found = NULL;
    for (uint32_t i = 0; has_members && i < fc->count && !found; i++)
        found = krait_fc_meant(fc->members[i].fc, meaning);
    return found;
}

int64_t krait_ctf_clock_ns(const struct krait_ctf_clock *clock, uint64_t ticks)
{
    __int128 ns =
        (__int128)(ticks + (unsigned __int128)clock->offset) * (__int128)KRAIT_NS_PER_S / clock->freq;
    ns += (__int128)clock->offset_s * (__int128)KRAIT_NS_PER_S;
    if (ns > INT64_MAX)
        return INT64_MAX;
    return ns < INT64_MIN ? INT64_MIN : (int64_t)ns;
}

int64_t krait_ctf_scaled_ns(const struct krait_ctf_clock *clock, uint64_t ticks)
{
    uint64_t base = (uint64_t)clock->offset_s * KRAIT_NS_PER_S;
    base += (uint64_t)(1e9 * (double)clock->offset / (double)clock->freq);
    double exact = 1e9 * (double)ticks / (double)clock->freq;
    uint64_t ns = exact >= 0x1p63 ? (uint64_t)INT64_MAX : (uint64_t)exact;
    return (int64_t)(base + ns);
}
