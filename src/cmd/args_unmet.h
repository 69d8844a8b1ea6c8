/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts of --args that name no function: told at the end of a recording, and by krait info.
 */
#ifndef KRAIT_CMD_ARGS_UNMET_H
#define KRAIT_CMD_ARGS_UNMET_H

#include "base/buf.h"
#include "cmd/opts.h"
#include "trace/trace.h"

/* Whether no recorded Python function is meant by `text`. Then appends to `out` what to say of it, without a line end:
 * "'Cart.ad(item)' matched no recorded function; did you mean 'Cart.add'?" */
bool krait_args_unmet(struct krait_buf *out, const struct krait_trace *trace, const char *text);

/* The same of all of `args`, on stderr, of the recording in `dir`. */
void krait_args_unmet_say(const struct krait_opt_list *args, const char *dir);

/* "args_unmet":["Cart.ad(item)"]; `texts` has a line for each. */
void krait_args_unmet_json(struct krait_buf *out, const struct krait_trace *trace, const char *texts);

#endif
