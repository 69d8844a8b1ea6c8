/* SPDX-License-Identifier: Apache-2.0
 *
 * The files that are mapped in another process. krait opens them as the process sees them: it may be in a container,
 * and the files may have been replaced on disk.
 */
#ifndef KRAIT_REMOTE_MAPS_H
#define KRAIT_REMOTE_MAPS_H

#include "remote/elf.h"

#include <sys/types.h>

/* A mapping that contains a file's first byte. */
struct krait_mapped {
    uint64_t begin, end;
    uint64_t device, inode; /* of the file; one that is mapped keeps its inode (inode(7)) */
    char *path;             /* as the process names it */
};

struct krait_maps {
    struct krait_mapped *items; /* in the order of their addresses */
    uint32_t count, cap;
    bool any; /* the process has mappings */
};

/* `list` is zeroed. Returns 0; -ESRCH: the process is gone; or why its mappings cannot be read. */
int krait_maps_read(pid_t pid, struct krait_maps *list);
void krait_maps_done(struct krait_maps *list);
/* Whether a path is that of greenlet's extension module, on which gevent and eventlet stand. Its greenlets share the stack:
 * the one that runs has the part of it up to greenlet's own frame. What is above belongs to others, or did, and no return
 * address leads there (StackState in greenlet's TStackState.cpp). */
bool krait_mapped_is_greenlet(const char *path);
/* Whether both are the same file at the same addresses. */
bool krait_mapped_same(const struct krait_mapped *a, const struct krait_mapped *b);

/* What the kernel gave the program that the process runs, by a key of getauxval(3); 0: nothing, or it cannot
 * be read. */
uint64_t krait_maps_auxv(pid_t pid, uint64_t type);

/* Opens the mapped file itself, even if it was deleted or is in another mount namespace, by a link that only root
 * may use. Other users open the path. Returns the results of krait_elf_open. */
int krait_maps_open(pid_t pid, const struct krait_mapped *mapped, struct krait_elf *elf);

#endif
