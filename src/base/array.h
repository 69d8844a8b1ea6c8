/* SPDX-License-Identifier: Apache-2.0
 *
 * Growing arrays, and binary search. The owner of a growing array keeps three variables, with any names: the items, their
 * number, and the capacity.
 *
 *   struct { struct event *items; uint32_t count, cap; } events = { 0 };
 *
 *   if (!KRAIT_GROW(events.items, events.cap, events.count + 1))
 *       return -ENOMEM;
 *   events.items[events.count++] = event;
 *   ...
 *   free(events.items);
 */
#ifndef KRAIT_BASE_ARRAY_H
#define KRAIT_BASE_ARRAY_H

#include "base/base.h"

#include <string.h>

/* Makes room for `need` items of `size` bytes in the array `items`, whose capacity is *cap (NULL and 0 at first). At
 * least doubles it, so that appending takes constant time an item. Returns the array, which may have moved, and sets
 * *cap; new items are not initialized. Returns NULL and changes nothing when memory is out or `need` exceeds `most`. */
void *krait_grow(void *items, size_t *cap, size_t need, size_t size, size_t most);

/* Makes room for `need` items; false when memory is out. `cap` is an unsigned integer of any type; it never overflows. */
#define KRAIT_GROW(items, cap, need)                                                               \
    (KRAIT_LIKELY((need) <= (cap)) || ({                                                           \
         size_t cap_ = (cap);                                                                      \
         void *grown_ = krait_grow((items), &cap_, (need), sizeof(*(items)), (__typeof__(cap))-1); \
         if (grown_) {                                                                             \
             (items) = grown_;                                                                     \
             (cap) = (__typeof__(cap))cap_;                                                        \
         }                                                                                         \
         grown_ != NULL;                                                                           \
     }))

/* The same for an array that is used up to its capacity: sets every byte of the new items to `byte`. */
#define KRAIT_GROW_FILLED(items, cap, need, byte)                                   \
    (KRAIT_LIKELY((need) <= (cap)) || ({                                            \
         size_t before_ = (cap);                                                    \
         bool has_room_ = KRAIT_GROW(items, cap, need);                             \
         if (has_room_)                                                             \
             memset((items) + before_, (byte), ((cap)-before_) * sizeof(*(items))); \
         has_room_;                                                                 \
     }))

/* Gives back the memory of what was appended one by one, behind the first `count` items; none are left of 0. Where that
 * fails, the array stays as it was. */
#define KRAIT_TRIM(items, cap, count)                                          \
    do {                                                                       \
        size_t cap_ = (cap);                                                   \
        (items) = krait_array_trim((items), &cap_, (count), sizeof(*(items))); \
        (cap) = (__typeof__(cap))cap_;                                         \
    } while (0)
void *krait_array_trim(void *items, size_t *cap, size_t count, size_t size);

/* Binary search: in n items of which those that are before something come first, the index of the first one that is not
 * before it; n if all are. `is_before` is an expression about the item i.
 *
 *   size_t first = KRAIT_PARTITION_POINT(i, events.count, events.items[i].t_ns < t_ns);
 */
#define KRAIT_PARTITION_POINT(i, n, is_before)    \
    ({                                            \
        size_t low_ = 0, high_ = (n);             \
        while (low_ < high_) {                    \
            size_t i = low_ + (high_ - low_) / 2; \
            if (is_before)                        \
                low_ = i + 1;                     \
            else                                  \
                high_ = i;                        \
        }                                         \
        low_;                                     \
    })

#endif
