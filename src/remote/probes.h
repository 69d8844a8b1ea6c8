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

struct krait_usdt_probe {
    const char *provider, *name, *arguments; /* in the file */
    uint64_t offset, semaphore;              /* in the file; a semaphore of 0: there is none */
};

/* A result other than 0 ends the search, which returns it. */
typedef int krait_usdt_probe_fn(void *ctx, const struct krait_usdt_probe *probe);

/* Calls fn for each place. A damaged note ends the search. */
int krait_probes_each(const struct krait_elf *elf, krait_usdt_probe_fn *fn, void *ctx);

/* Appends the arguments as the kernel's uprobe events take them (Documentation/trace/uprobetracer.rst), "
 * arg1=%bx:u64". `names` is a list such as "file:str, line" with names for the first arguments, or NULL; `:str`
 * means that the argument is the address of a text. krait leaves out arguments in places that the kernel cannot
 * express, such as those with an index register. On x86-64 all other places work, on aarch64 only registers. */
void krait_probe_fetch(struct krait_buf *out, const char *arguments, const char *names);

#endif
