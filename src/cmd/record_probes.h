/* SPDX-License-Identifier: Apache-2.0
 *
 * The static probes that --usdt names: [FILE:]PROVIDER:NAME[(NAME[:str], ...)], found in the file's notes. PROVIDER:NAME is a
 * glob; FILE is the command's, unless it is given.
 */
#ifndef KRAIT_CMD_RECORD_PROBES_H
#define KRAIT_CMD_RECORD_PROBES_H

#include "base/arena.h"
#include "cmd/cmd.h"
#include "kernel/kernel.h"

/* Zeroed memory. */
struct krait_record_probes {
    struct krait_kernel_probe *items;
    uint32_t count;
    size_t cap;
    struct krait_arena texts;
};

/* Returns 0, or why a spec names none, with err set: then there are none at all. krait_record_probes_done in any case. */
int krait_record_probes_find(struct krait_record_probes *probes, const struct krait_opt_list *specs,
                             const char *command, struct krait_err *err);
void krait_record_probes_done(struct krait_record_probes *probes);

#endif
