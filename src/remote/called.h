/* SPDX-License-Identifier: Apache-2.0
 *
 * Internal to remote/: the function written in C that the innermost Python function of a thread has called.
 */
#ifndef KRAIT_REMOTE_CALLED_H
#define KRAIT_REMOTE_CALLED_H

#include "remote/stack.h"

void krait_callees_free(struct krait_callees *callees);

/* After krait_stack_copy: what krait_called_read will read, if the innermost frame's code is the known one at its address. Returns
 * how many pieces, at most KRAIT_CALLED_PIECES; reader->called.code must be NULL afterwards if they could not be read. */
uint32_t krait_called_expect(struct krait_remote *remote, struct krait_stack_reader *reader,
                             struct krait_memory_piece *pieces);

/* Then: the function that the innermost frame, whose code is `code`, has called. NULL: it is in no call of one, or which one is
 * not certain. The thread must not run meanwhile, or the result must not be used. */
const struct krait_remote_code *krait_called_read(struct krait_remote *remote,
                                                  struct krait_stack_reader *reader,
                                                  const struct krait_remote_code *code);

/* After krait_stack_copy: the first argument of the call that the innermost frame is in, if that calls the function `name` of
 * `module`, which is written in C; 0: it does not. It may be about to call it, or have its result already. */
uint64_t krait_called_argument(struct krait_remote *remote, const struct krait_stack_reader *reader,
                               const char *module, const char *name);

#endif
