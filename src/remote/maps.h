/* SPDX-License-Identifier: Apache-2.0
 *
 * The files that are mapped in another process, opened as it sees them: it may be in a container, and they may have been replaced
 * on disk.
 */
#ifndef KRAIT_REMOTE_MAPS_H
#define KRAIT_REMOTE_MAPS_H

#include "remote/elf.h"

#include <sys/types.h>

/* A mapping of a file's first byte. */
struct krait_mapped {
    uint64_t begin, end;
    char *path; /* as the process names it */
};

struct krait_maps {
    struct krait_mapped *items; /* in the order of their addresses */
    uint32_t count, cap;
    bool any; /* there are mappings */
};

/* `list` is zeroed. Returns 0; -ESRCH: the process is gone; or why its mappings cannot be read. */
int krait_maps_read(pid_t pid, struct krait_maps *list);
void krait_maps_done(struct krait_maps *list);

/* Opens the very file that is mapped, even if it was deleted or lies in another mount namespace; that link is
 * for root alone, others go by the path. Returns what krait_elf_open does. */
int krait_maps_open(pid_t pid, const struct krait_mapped *mapped, struct krait_elf *elf);

#endif
