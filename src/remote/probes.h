/* SPDX-License-Identifier: Apache-2.0
 *
 * SystemTap's static probes (USDT, sys/sdt.h) of a file: notes in .note.stapsdt, one for each place of a probe. Their form
 * is described in sourceware.org/systemtap/wiki/UserSpaceProbeImplementation:
 *
 *   ┌──────┬──────────┬───────────┬──────────┬──────┬───────────┐
 *   │ place│ the base │ semaphore │ provider │ name │ arguments │    three addresses, three texts with their NULs
 *   └──────┴──────────┴───────────┴──────────┴──────┴───────────┘
 *
 * The arguments are operands of assembler, "8@%rbx -4@112(%rsp)": a size in bytes, negative if it has a sign, and where the
 * value is.
 */
#ifndef KRAIT_REMOTE_PROBES_H
#define KRAIT_REMOTE_PROBES_H

#include "base/buf.h"
#include "remote/elf.h"

struct krait_probe {
    const char *provider, *name, *arguments; /* in the file */
    uint64_t offset, semaphore;              /* in the file; a semaphore of 0: it has none */
};

/* A value other than 0 ends the search, and is returned by it. */
typedef int krait_probe_fn(void *ctx, const struct krait_probe *probe);

/* Calls fn for each place. Notes that are damaged end the search. */
int krait_probes_each(const struct krait_elf *elf, krait_probe_fn *fn, void *ctx);

/* Appends the arguments as the kernel's uprobe events take them (Documentation/trace/uprobetracer.rst), " arg1=%bx:u64". `names` is
 * the text of a list such as "file:str, line" that names the first of them, or NULL; str: it is the address of a text. An
 * argument in a place that the kernel has no word for, as with an index register, is left out. x86-64; of other machines
 * those in registers of aarch64. */
void krait_probe_fetch(struct krait_buf *out, const char *arguments, const char *names);

#endif
