/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts the kernel's events to LTTng's. Each kind of event is compiled once into a class with a few instructions,
 * which copy its bytes.
 *
 * System calls are classes too: syscalls:sys_enter_NAME becomes syscall_entry_NAME with the arguments that the kernel
 * declares, in the widths that they are declared with. Where LTTng has a string there is one too: the text where the
 * kernel tells it (Linux 6.19: __filename_val beside filename), else the address in digits.
 */
#ifndef KRAIT_KERNEL_KERNEL_CLASS_H
#define KRAIT_KERNEL_KERNEL_CLASS_H

#include "base/map.h"
#include "kernel/symbols.h"
#include "kernel/tracefmt.h"

enum krait_kernel_group {
    KRAIT_KERNEL_SCHED,
    KRAIT_KERNEL_SYSCALLS,
    KRAIT_KERNEL_IRQ,
    KRAIT_KERNEL_NET,
    KRAIT_KERNEL_BLOCK,
    KRAIT_KERNEL_POWER,
    KRAIT_KERNEL_GROUPS,
    KRAIT_KERNEL_FUNCTIONS = KRAIT_KERNEL_GROUPS, /* not one to be named: --kernel-functions */
    KRAIT_KERNEL_MARKS,                           /* the same: what programs say, which is always recorded */
};

/* Types of LTTng's fields, as the metadata names them. */
enum krait_kernel_type {
    KRAIT_KTYPE_I32,
    KRAIT_KTYPE_U16,
    KRAIT_KTYPE_U32,
    KRAIT_KTYPE_I64,
    KRAIT_KTYPE_U64,
    KRAIT_KTYPE_X64,
    KRAIT_KTYPE_COMM,
    KRAIT_KTYPE_STR,
    KRAIT_KTYPE_FUNC, /* an address, with the names of functions */
    KRAIT_KTYPES,
};

struct krait_kernel_field {
    const char *name;
    enum krait_kernel_type type;
};

struct krait_kernel_op;

struct krait_kernel_class {
    const char *name; /* LTTng's; empty: only krait itself reads these events */
    uint16_t id;      /* in the trace */
    uint16_t field_count, op_count;
    uint32_t in_size; /* an event with fewer bytes is damaged */
    uint32_t out_max; /* bytes of a payload at the most */
    const struct krait_kernel_field *fields;
    const struct krait_kernel_op *ops;
    uint32_t tid_at, flags_at; /* of task_newtask: where they lie */
    bool is_mark, seen;        /* of KRAIT_KERNEL_MARKS, or a probe; there was one */
};

enum { KRAIT_KERNEL_OUT_MAX = 32 * 1024 }; /* no class has a larger out_max */

struct krait_kernel_classes {
    struct krait_arena arena;
    struct krait_kernel_class *items; /* by id */
    size_t count, cap;
    struct krait_map types; /* the kernel's number of an event to the index in items */
    struct krait_map tgids; /* threads to their processes */
    struct krait_kernel_symbols symbols;
};

/* Of "sched,irq": one bit a group; an empty text is all. -EINVAL for a word that is none. */
int krait_kernel_groups_parse(const char *text, uint32_t *groups, struct krait_err *err);

/* Compiles the events of the groups that this kernel has, from the format files of the tracefs instance
 * `dir`. Returns 0, -ENOENT when there is none of them, or what went wrong. */
int krait_kernel_classes_load(struct krait_kernel_classes *classes, int dir, uint32_t groups,
                              struct krait_err *err);
/* One class, from a format and a row's LTTng name: for system calls name is NULL. */
int krait_kernel_classes_add(struct krait_kernel_classes *classes, const struct krait_tracefmt *format,
                             const char *name);
/* One class of a probe, with all its fields: of the event below events/, by this name, which is copied. */
int krait_kernel_classes_probe(struct krait_kernel_classes *classes, int dir, const char *path,
                               const char *name);
/* One class that krait writes itself; the fields stay the caller's. Returns its id, or -ENOMEM. */
int krait_kernel_classes_declare(struct krait_kernel_classes *classes, const char *name,
                                 const struct krait_kernel_field *fields, uint16_t field_count);
/* Takes the marks' classes without an event out of the metadata that is written from now on, so that readers
 * need not look for any. */
void krait_kernel_classes_drop_unseen(struct krait_kernel_classes *classes);
void krait_kernel_classes_done(struct krait_kernel_classes *classes);

/* Switches the events of the groups on in the instance. */
int krait_kernel_enable(int dir, uint32_t groups, struct krait_err *err);
/* One event below events/; that this kernel has none is no failure. */
int krait_kernel_enable_event(int dir, const char *path, struct krait_err *err);

/* The class of one of the ring's events; NULL when it is of no class, or cut short. */
const struct krait_kernel_class *krait_kernel_class_of(const struct krait_kernel_classes *classes,
                                                       const uint8_t *event, size_t n);
/* The thread in which the event happened. */
int32_t krait_kernel_tid(const uint8_t *event);
/* Writes the payload to `out`, which has room for out_max; returns its bytes. Notes forks. Hot path. */
size_t krait_kernel_convert(struct krait_kernel_classes *classes, const struct krait_kernel_class *class,
                            const uint8_t *event, size_t n, uint8_t *out);

#endif
