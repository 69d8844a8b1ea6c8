/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait flame` of files of folded stacks, which others wrote.
 */
#ifndef KRAIT_CMD_FLAME_FOLDED_H
#define KRAIT_CMD_FLAME_FOLDED_H

#include "analysis/calltree.h"
#include "base/buf.h"

#define KRAIT_FOLDED_UNITS "samples|ms|us|ns" /* choices of --folded-unit */

/* Opens one; `unit` is one of KRAIT_FOLDED_UNITS, or NULL: what the file says, else samples. *counts_samples says
 * which it was. Lines that are no stack are told on standard error. 0 or a negative errno with err set. */
int krait_flame_folded_open(struct krait_calltree **tree, struct krait_trace **trace, bool *counts_samples,
                            const char *path, const char *unit, struct krait_err *err);

/* "perf.folded"; "standard input". */
const char *krait_flame_folded_name(const char *path);

#endif
