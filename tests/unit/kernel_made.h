/* SPDX-License-Identifier: Apache-2.0
 *
 * What comes from the kernel, made up: format files and events.
 */
#ifndef KRAIT_TESTS_KERNEL_MADE_H
#define KRAIT_TESTS_KERNEL_MADE_H

#include "kernel/kernel_class.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* The fields that every event begins with. */
#define COMMON                                                                     \
    "format:\n"                                                                    \
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"         \
    "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"         \
    "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n" \
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"

__attribute__((unused)) static const char wakeup_format[] =
    "name: sched_wakeup\nID: 7\n" COMMON "\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
    "\tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n"
    "\tfield:int prio;\toffset:28;\tsize:4;\tsigned:1;\n"
    "\tfield:int target_cpu;\toffset:32;\tsize:4;\tsigned:1;\n\n"
    "print fmt: \"field:nonsense\", REC->comm\n";

static inline const struct krait_kernel_class *add(struct krait_kernel_classes *classes, const char *text,
                                                   const char *name)
{
    struct krait_tracefmt format;
    assert_int_equal(krait_tracefmt_parse(&format, text, NULL), 0);
    assert_int_equal(krait_kernel_classes_add(classes, &format, name), 0);
    return &classes->items[classes->count - 1];
}

static inline void put_common(uint8_t *event, uint16_t type, int32_t tid)
{
    memcpy(event, &type, sizeof(type));
    memcpy(event + 4, &tid, sizeof(tid));
}

static inline void put_i32(uint8_t *event, size_t at, int32_t value)
{
    memcpy(event + at, &value, sizeof(value));
}

static inline int32_t get_i32(const uint8_t *bytes, size_t at)
{
    int32_t value;
    memcpy(&value, bytes + at, sizeof(value));
    return value;
}

#endif
