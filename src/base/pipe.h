/* SPDX-License-Identifier: Apache-2.0
 *
 * Passes work from the thread that reads to a thread that uses, so that both work at a time: a ring of slots, of fixed
 * number. The faster side waits.
 *
 *   struct slot *slot = krait_pipe_slot(pipe, &rc);      fill it
 *   krait_pipe_push(pipe);
 */
#ifndef KRAIT_BASE_PIPE_H
#define KRAIT_BASE_PIPE_H

#include "base/base.h"

struct krait_pipe;

/* Starts a thread that hands all slots to `use` in their order; once that has returned something other than 0, no
 * more. Slots are of `size` bytes and zeroed at first; they keep what they hold when they are filled again. Returns 0,
 * -ENOMEM, or -EAGAIN. */
int krait_pipe_open(struct krait_pipe **out, size_t size, int (*use)(void *ctx, void *slot), void *ctx);

/* The next slot to fill, when there is room; *rc is what `use` returned, some slots ago: if that is not 0, NULL. */
void *krait_pipe_slot(struct krait_pipe *pipe, int *rc);
void krait_pipe_push(struct krait_pipe *pipe);

/* Waits until all is used. Returns what `use` returned. */
int krait_pipe_finish(struct krait_pipe *pipe);
/* Frees, after that; first calls `done`, unless it is NULL, for each slot. */
void krait_pipe_free(struct krait_pipe *pipe, void (*done)(void *slot));

#endif
