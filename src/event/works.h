/* SPDX-License-Identifier: Apache-2.0
 *
 * Ids of work for executors, of the events work:*. Most are counted from 1 in each process. What one process submits and
 * another one starts has an id that both can tell: the pipe that it goes through, and its number there. What the pools of
 * multiprocessing hand to threads has their number of it, too, since nothing else of it gets to the thread.
 */
#ifndef KRAIT_EVENT_WORKS_H
#define KRAIT_EVENT_WORKS_H

#include "base/map.h"

#include <string.h>

enum { KRAIT_WORK_NUMBER_BITS = 30, KRAIT_WORK_PIPE_BITS = 32 };
#define KRAIT_WORK_SHARED \
    (1ull << (KRAIT_WORK_PIPE_BITS + KRAIT_WORK_NUMBER_BITS)) /* all fit into 63 bits, as numbers of others */
#define KRAIT_WORK_NUMBERED (KRAIT_WORK_SHARED >> 1)          /* above all that are counted */

/* 0: there is none that no other work has. `pipe` is its inode (Linux counts those of pipes in 32 bits: get_next_ino in
 * fs/inode.c). */
static inline uint64_t krait_work_shared_id(uint64_t pipe, int64_t number)
{
    if (!pipe || pipe >> KRAIT_WORK_PIPE_BITS || number < 0 || number >> KRAIT_WORK_NUMBER_BITS)
        return 0;
    return KRAIT_WORK_SHARED | pipe << KRAIT_WORK_NUMBER_BITS | (uint64_t)number;
}

/* The same of what stays in the process; 0: there is none. */
static inline uint64_t krait_work_numbered_id(int64_t number)
{
    return number < 0 || number >> KRAIT_WORK_NUMBER_BITS ? 0 : KRAIT_WORK_NUMBERED | (uint64_t)number;
}

/* Of a part of the job that has this id; the first part has the same. The number of a part has no room in 63 bits, so its hash
 * is mixed in: among a million parts, two have the same id in one of 10^6 recordings at most. 0: there is none. */
static inline uint64_t krait_work_part_id(uint64_t id, int64_t part)
{
    uint64_t kind = id & KRAIT_WORK_SHARED ? KRAIT_WORK_SHARED : id & KRAIT_WORK_NUMBERED;
    if (part <= 0 || !kind)
        return part == 0 ? id : 0;
    return kind | (krait_hash_u64(id ^ krait_hash_u64((uint64_t)part)) & (kind - 1));
}

/* The same for all events of one piece of work, in whatever process of the host they are: another host has pipes of the same
 * numbers. */
static inline uint64_t krait_work_key(const char *host, uint32_t process, uint64_t id)
{
    uint64_t of =
        id & KRAIT_WORK_SHARED ? krait_hash_bytes(host, strlen(host)) : krait_hash_u64((uint64_t)process + 1);
    return of ^ id;
}

#endif
