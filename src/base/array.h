/* SPDX-License-Identifier: Apache-2.0
 *
 * Growing arrays. The owner keeps three things, under names of its own: the items, how many there are, and for how
 * many there is room.
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

/* Makes room for `need` items of `size` bytes in the memory `items`, which has room for *cap of them (NULL, 0 at
 * first). At least doubles it, so that appending one by one takes constant time each. Returns the memory, which may
 * have moved, and sets *cap; new items are not initialised. Returns NULL, with all as it was, when memory is out or
 * more than `most` items would be needed. */
void *krait_grow(void *items, size_t *cap, size_t need, size_t size, size_t most);

/* Whether `items` has room for `need` items now. `cap` is an unsigned integer of any type; it never overflows. */
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

/* The same for an array of which all that there is room for is in use: every byte of the new items is `byte`. */
#define KRAIT_GROW_FILLED(items, cap, need, byte)                                   \
    (KRAIT_LIKELY((need) <= (cap)) || ({                                            \
         size_t before_ = (cap);                                                    \
         bool has_room_ = KRAIT_GROW(items, cap, need);                             \
         if (has_room_)                                                             \
             memset((items) + before_, (byte), ((cap)-before_) * sizeof(*(items))); \
         has_room_;                                                                 \
     }))

#endif
