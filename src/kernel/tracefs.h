/* SPDX-License-Identifier: Apache-2.0
 *
 * tracefs, the kernel's tracing as files, and krait's instances in it.
 *
 * An instance has its own rings, events and clock (Documentation/trace/ftrace.rst, "Instances"), so krait does not
 * disturb other users of tracing. krait's instances are called krait-PID. The kernel does not remove an instance when
 * its process is killed; krait_tracefs_sweep does.
 */
#ifndef KRAIT_KERNEL_TRACEFS_H
#define KRAIT_KERNEL_TRACEFS_H

#include "base/buf.h"
#include "base/err.h"

#define KRAIT_TRACEFS_INSTANCES "instances"
#define KRAIT_TRACEFS_PREFIX    "krait-"

/* Opens tracefs where it is mounted, or, for root, mounted nowhere: such a mount lives as long as the
 * descriptor and no one sees it. Returns a descriptor of its folder. Errors: -ENOENT when this kernel has no
 * tracefs, -EPERM and -EACCES when this user may not; err says what to do. */
int krait_tracefs_open(struct krait_err *err);

/* A file below `dir`, whole. Returns 0 or a negative errno. */
int krait_tracefs_read(int dir, const char *path, struct krait_buf *text);
/* One write of `text` into a file below `dir`, as tracefs wants it. Returns 0 or a negative errno. */
int krait_tracefs_write(int dir, const char *path, const char *text);

/* Makes this process's instance. Returns a descriptor of its folder. */
int krait_tracefs_make_instance(int root, struct krait_err *err);
/* Removes this process's instance; all descriptors into it must be closed. Returns 0 or a negative errno, as
 * -EBUSY when others have a file of it open: then it stays, with its events off. */
int krait_tracefs_remove_instance(int root, struct krait_err *err);

/* Calls `each` for every instance of a krait that is no more. */
void krait_tracefs_stale(int root, void (*each)(void *data, const char *name), void *data);
/* Removes them. One that is in use stays: the kernel refuses to remove what somebody has open. */
void krait_tracefs_sweep(int root);

#endif
