/* SPDX-License-Identifier: Apache-2.0
 *
 * Passes batches of calls from the thread that walks to the thread that uses them, so that both work at a time: a
 * ring of copies, of fixed size. The faster side waits.
 */
#ifndef KRAIT_VIEW_PIPE_H
#define KRAIT_VIEW_PIPE_H

#include "trace/trace.h"

struct krait_pipe;

/* Starts a thread that hands all to `fn` in their order, without exceptions. Returns 0, -ENOMEM, or -EAGAIN. */
int krait_pipe_open(struct krait_pipe **out, krait_call_batch_fn *fn, void *ctx);

/* A krait_call_batch_fn: `pipe` is a struct krait_pipe. Returns what fn returned, if that was not 0, some batches
 * later. */
int krait_pipe_put(void *pipe, const struct krait_call_batch *batch);

/* Waits until all is used, and frees; returns what fn returned. */
int krait_pipe_close(struct krait_pipe *pipe);

#endif
