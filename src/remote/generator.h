/* SPDX-License-Identifier: Apache-2.0
 *
 * Generators, coroutines and asynchronous generators of another process that are suspended: they are on no stack.
 */
#ifndef KRAIT_REMOTE_GENERATOR_H
#define KRAIT_REMOTE_GENERATOR_H

#include "remote/remote.h"

/* Whether the frame at that address, which krait_remote_read has met before in the function of that code object, is of a generator
 * that is suspended there at this moment. False too if its memory cannot be read, or is something else by now. */
bool krait_generator_is_suspended(const struct krait_remote *remote, uint64_t frame, uint64_t code);

#endif
