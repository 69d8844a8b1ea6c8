/* SPDX-License-Identifier: Apache-2.0
 *
 * The metadata of a kernel trace: CTF 1.8 TSDL with LTTng's names.
 */
#ifndef KRAIT_KERNEL_KERNEL_TSDL_H
#define KRAIT_KERNEL_KERNEL_TSDL_H

#include "base/clock.h"
#include "kernel/kernel_class.h"

/* What tells LTTng's readers which names to expect: those of lttng-modules 2.10. */
#define KRAIT_KERNEL_LTTNG                                                                  \
    "    tracer_name = \"lttng-modules\";\n    tracer_major = 2;\n    tracer_minor = 10;\n" \
    "    tracer_patchlevel = 0;\n"

/* Events that are missing for other reasons than that the kernel's rings were full. */
struct krait_kernel_unwritten {
    uint64_t refused; /* the disk did not take them */
    uint64_t no_room; /* the recording's size has no room for them */
};

/* Writes DIR/metadata, beside the old and then over it. `tracer`: lines of its env block that say who
 * recorded. */
int krait_kernel_tsdl_write(const char *dir, const char *tracer, const struct krait_kernel_classes *classes,
                            const struct krait_clock *clock, const uint8_t uuid[16],
                            const struct krait_kernel_unwritten *unwritten, struct krait_err *err);

#endif
