/* SPDX-License-Identifier: Apache-2.0
 *
 * Internal to remote/: names in dicts, modules and instances, and what sets, lists and tuples hold. As with object.h, what is read
 * may be wrong if it changes meanwhile; it is bounded.
 */
#ifndef KRAIT_REMOTE_LOOKUP_H
#define KRAIT_REMOTE_LOOKUP_H

#include "remote/remote.h"

/* Addresses of objects, as they were read. */
struct krait_found {
    uint64_t *items;
    uint32_t count, cap;
};

static inline void krait_found_done(struct krait_found *found)
{
    free(found->items);
}

/* Where the pointer to a value is: in a dict with text keys, in a module, in an instance of a class that is written in Python. 0:
 * it has no such name. */
uint64_t krait_dict_place(const struct krait_remote *remote, uint64_t dict, const char *name);
uint64_t krait_module_place(const struct krait_remote *remote, uint64_t module, const char *name);
uint64_t krait_attribute_place(const struct krait_remote *remote, uint64_t object, const char *name);

/* The pointer at an address, or at `at` bytes from it; 0: none, or it cannot be read. */
uint64_t krait_pointer_at(const struct krait_remote *remote, uint64_t place);

/* Append the first `most` objects, or fewer, of a set, a list or a tuple, and of a dict each key with its value. A dict of an
 * instance has its keys in the order that the instances of its class have in common. Return 0, -ENOMEM, or the errors of
 * krait_memory_read; -EFAULT: it is none. */
int krait_set_first(const struct krait_remote *remote, uint64_t set, uint32_t most,
                    struct krait_found *found);
int krait_list_first(const struct krait_remote *remote, uint64_t list, uint32_t most,
                     struct krait_found *found);
int krait_tuple_first(const struct krait_remote *remote, uint64_t tuple, uint32_t most,
                      struct krait_found *found);
int krait_dict_first(const struct krait_remote *remote, uint64_t dict, uint32_t most,
                     struct krait_found *found);

/* Append all of them, up to a million. */
int krait_set_items(const struct krait_remote *remote, uint64_t set, struct krait_found *found);
int krait_list_items(const struct krait_remote *remote, uint64_t list, struct krait_found *found);
int krait_tuple_items(const struct krait_remote *remote, uint64_t tuple, struct krait_found *found);

/* Reads into `found` with `once`, which appends, until it is the same twice. Returns 0; -EAGAIN: it never was; -ENOMEM. */
typedef int krait_found_fn(void *ctx, struct krait_found *found);
int krait_found_read(krait_found_fn *once, void *ctx, struct krait_found *found);

#endif
