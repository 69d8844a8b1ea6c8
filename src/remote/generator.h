/* SPDX-License-Identifier: Apache-2.0
 *
 * Generators, coroutines and asynchronous generators of another process that are suspended: they are on no stack.
 */
#ifndef KRAIT_REMOTE_GENERATOR_H
#define KRAIT_REMOTE_GENERATOR_H

#include "remote/remote.h"

/* Whether the frame, which krait_remote_read has met before, is of a generator that is suspended at this moment, in the same
 * function. False too if its memory cannot be read, or is something else by now. */
bool krait_generator_is_suspended(const struct krait_remote *remote, const struct krait_remote_frame *frame);

#endif
