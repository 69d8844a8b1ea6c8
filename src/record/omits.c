/* SPDX-License-Identifier: Apache-2.0 */
#include "record/omits.h"

#include "base/array.h"
#include "event/payload.h"
#include "record/tracedir.h"

#include <fcntl.h>

void krait_omits_add(struct krait_omits *omits, uint64_t t, uint32_t code)
{
    if (!krait_map_get(&omits->since, code) && KRAIT_GROW(omits->times, omits->cap, omits->count + 1) &&
        krait_map_put(&omits->since, code, t) == 0)
        omits->times[omits->count++] = t;
}

void krait_omits_read(struct krait_omits *omits, const char *folder)
{
    KRAIT_AUTO_FREE char *path = NULL;
    KRAIT_AUTO_BUF packet = { 0 };
    struct krait_packet_head head;
    if (asprintf(&path, "%s/" KRAIT_FILE_DEFINITIONS, folder) < 0) {
        path = NULL;
        return;
    }
    KRAIT_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    for (uint64_t at = 0; fd >= 0 && krait_packet_read_head(fd, at, &head); at += head.packet_size / 8) {
        if (krait_packet_read_events(fd, at, &head, &packet))
            return;
        const uint8_t *bytes = (const uint8_t *)packet.data;
        struct krait_cursor events = { bytes, bytes + packet.len }, payload;
        struct krait_event_head event = { .t = head.timestamp_begin };
        struct krait_payload_code_omit omit;
        while (krait_packet_event(&events, &event, &payload)) {
            if (event.id == KRAIT_EVENT_code_omit && krait_read_code_omit(&payload, &omit))
                krait_omits_add(omits, event.t, omit.id);
        }
    }
}

void krait_omits_done(struct krait_omits *omits)
{
    krait_map_done(&omits->since);
    free(omits->times);
    *omits = (struct krait_omits){ 0 };
}

bool krait_omits_end(const struct krait_omits *omits, uint32_t code, bool is_c, bool is_caller_gone,
                     uint64_t time)
{
    if (is_c && is_caller_gone)
        return true;
    const uint64_t *since = krait_map_get(&omits->since, code);
    return since && *since <= time;
}

uint64_t krait_omits_pass(const struct krait_omits *omits, size_t *next, uint64_t time)
{
    while (*next < omits->count && omits->times[*next] <= time)
        ++*next;
    return *next < omits->count ? omits->times[*next] : UINT64_MAX;
}
