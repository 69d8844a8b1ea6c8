/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/thread_file.h"

#include "base/array.h"

#include <string.h>

int krait_thread_file_add(struct krait_thread_file *file, struct krait_packet_place place)
{
    if (file->packet_count)
        file->goes_back |= place.begin_ns < file->packets[file->packet_count - 1].begin_ns;
    if (!KRAIT_GROW(file->packets, file->packet_cap, file->packet_count + 1))
        return -ENOMEM;
    file->packets[file->packet_count++] = place;
    return 0;
}

void krait_thread_file_done(struct krait_thread_file *file)
{
    free(file->packets);
    free(file->noted.items);
    *file = (struct krait_thread_file){ 0 };
}

int krait_thread_file_copy(struct krait_thread_file *to, const struct krait_thread_file *from)
{
    const struct krait_noted_stretches *noted = &from->noted;
    if (!KRAIT_GROW(to->packets, to->packet_cap, from->packet_count) ||
        !KRAIT_GROW(to->noted.items, to->noted.cap, noted->count))
        return -ENOMEM;
    if (from->packet_count)
        memcpy(to->packets, from->packets, from->packet_count * sizeof(*to->packets));
    if (noted->count)
        memcpy(to->noted.items, noted->items, noted->count * sizeof(*noted->items));
    memcpy(to->noted.ids, noted->ids, sizeof(noted->ids));
    to->packet_count = from->packet_count;
    to->noted.count = noted->count;
    to->goes_back = from->goes_back;
    to->read_to = from->read_to;
    to->discarded = from->discarded;
    return 0;
}

uint32_t krait_thread_file_first(const struct krait_thread_file *file, uint64_t from_ns)
{
    /* the first that begins behind it */
    uint32_t low = (uint32_t)KRAIT_PARTITION_POINT(i, file->goes_back ? 0 : file->packet_count,
                                                   file->packets[i].begin_ns <= from_ns);
    return low > 1 ? low - 2 : 0;
}

size_t krait_thread_file_seek(const struct krait_thread_file *file, uint64_t from_ns)
{
    uint32_t first = krait_thread_file_first(file, from_ns);
    return first ? file->packets[first].offset : 0;
}

bool krait_thread_file_lost(const struct krait_thread_file *file, uint32_t *next, uint64_t t_ns,
                            uint64_t *after_ns)
{
    bool lost = false;
    for (; *next < file->packet_count && file->packets[*next].begin_ns <= t_ns; ++*next) {
        if (!file->packets[*next].lost)
            continue;
        if (!lost)
            *after_ns = *next ? file->packets[*next - 1].end_ns : 0;
        lost = true;
    }
    return lost;
}
