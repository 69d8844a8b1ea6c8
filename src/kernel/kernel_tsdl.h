/* SPDX-License-Identifier: Apache-2.0
 *
 * The metadata of a kernel trace: CTF 1.8 TSDL with LTTng's names.
 */
#ifndef KRAIT_KERNEL_KERNEL_TSDL_H
#define KRAIT_KERNEL_KERNEL_TSDL_H

#include "base/clock.h"
#include "kernel/kernel_class.h"

/* Writes DIR/metadata, beside the old and then over it. */
int krait_kernel_tsdl_write(const char *dir, const struct krait_kernel_classes *classes,
                            const struct krait_clock *clock, const uint8_t uuid[16], struct krait_err *err);

#endif
