/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/thread_file.h"

#include "base/array.h"

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
    *file = (struct krait_thread_file){ 0 };
}

size_t krait_thread_file_seek(const struct krait_thread_file *file, uint64_t from_ns)
{
    /* the first that begins behind it */
    uint32_t low = (uint32_t)KRAIT_PARTITION_POINT(i, file->goes_back ? 0 : file->packet_count,
                                                   file->packets[i].begin_ns <= from_ns);
    return low > 1 ? file->packets[low - 2].offset : 0;
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
