/* SPDX-License-Identifier: Apache-2.0
 *
 * The instructions of kernel_class.h: how the bytes of a field, or of several fields in a row, are copied from the
 * kernel's event to LTTng's.
 */
#ifndef KRAIT_KERNEL_KERNEL_OP_H
#define KRAIT_KERNEL_KERNEL_OP_H

#include "kernel/kernel_class.h"

/* The words of kernel_events.def. */
enum krait_kernel_conversion {
    KRAIT_CONVERT_I32,
    KRAIT_CONVERT_U16,
    KRAIT_CONVERT_U32,
    KRAIT_CONVERT_I64,
    KRAIT_CONVERT_U64,
    KRAIT_CONVERT_X64,
    KRAIT_CONVERT_COMM,
    KRAIT_CONVERT_STR,
    KRAIT_CONVERT_LINE,
    KRAIT_CONVERT_PRIO,
    KRAIT_CONVERT_RWBS,
    KRAIT_CONVERT_TGID,
    KRAIT_CONVERT_FUNC,
    KRAIT_CONVERT_ADDRESS, /* of a text that is not told: the address is the text */
};

enum krait_kernel_op_kind {
    KRAIT_KOP_COPY,   /* `bytes` as they are */
    KRAIT_KOP_NUMBER, /* `bytes` become `out` bytes, by sign */
    KRAIT_KOP_PRIO,
    KRAIT_KOP_TGID,
    KRAIT_KOP_RWBS,       /* letters in `bytes` become flags */
    KRAIT_KOP_TEXT,       /* of at most `bytes`, becomes a string */
    KRAIT_KOP_TEXT_LOC,   /* the same by __data_loc */
    KRAIT_KOP_LINE,       /* the same up to the event's end, without a newline there */
    KRAIT_KOP_COMM_LOC,   /* by __data_loc, becomes 16 bytes */
    KRAIT_KOP_COMM_SHORT, /* `bytes`, fewer than 16, become 16 */
    KRAIT_KOP_ADDRESS,    /* of 8 bytes becomes a string */
};

struct krait_kernel_op {
    uint8_t kind;
    uint8_t out;
    bool is_signed;
    uint16_t offset;
    uint16_t bytes;
};

/* False when a field of this form cannot be carried over so. */
bool krait_kernel_op_make(struct krait_kernel_op *op, enum krait_kernel_conversion how,
                          const struct krait_tracefmt_field *from);
/* Bytes that it writes at the most. */
uint32_t krait_kernel_op_max(const struct krait_kernel_op *op);
/* What becomes of it. */
enum krait_kernel_type krait_kernel_conversion_type(enum krait_kernel_conversion how);
/* Of a system call's argument, by its declaration. */
enum krait_kernel_conversion krait_kernel_conversion_of(const struct krait_tracefmt_field *field);
/* Whether an argument is the address of a name, or another text that ends itself. */
bool krait_kernel_is_name(const struct krait_tracefmt_field *field);

/* Carries over from the event of n bytes, at least the class's in_size; returns where the next goes. Hot path. */
uint8_t *krait_kernel_op_run(const struct krait_kernel_op *op, struct krait_kernel_classes *classes,
                             const uint8_t *event, size_t n, uint8_t *to);

/* The process of a thread: as noted, or as /proc says; 0 when neither knows it. */
int32_t krait_kernel_tgid(struct krait_kernel_classes *classes, int32_t tid);

#endif
