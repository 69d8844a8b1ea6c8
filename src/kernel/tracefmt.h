/* SPDX-License-Identifier: Apache-2.0
 *
 * How the kernel says that an event lies in its ring: the `format` file of each event, as in
 *
 *     name: sched_waking
 *     ID: 375
 *     format:
 *             field:unsigned short common_type;       offset:0;       size:2; signed:0;
 *             field:char comm[16];    offset:8;       size:16;        signed:0;
 *             field:__data_loc char[] filename;       offset:8;       size:4; signed:0;
 *
 *     print fmt: "comm=%s", REC->comm
 *
 * A __data_loc is 32 bits: the offset of the bytes in the low half, their number in the high half
 * (include/trace/stages/stage1_struct_define.h).
 */
#ifndef KRAIT_KERNEL_TRACEFMT_H
#define KRAIT_KERNEL_TRACEFMT_H

#include "base/err.h"

struct krait_tracefmt_field {
    char name[64];
    char type[64]; /* as the kernel writes it: "unsigned int", "const char *" */
    uint32_t offset;
    uint32_t size;
    bool is_signed;
    bool is_array;
    bool is_pointer;
    bool is_data_loc;
};

struct krait_tracefmt {
    char name[64];
    uint32_t id;
    uint32_t size; /* the end of the last field: an event that is shorter is damaged */
    uint32_t field_count;
    struct krait_tracefmt_field fields[48];
};

/* Reads one format file's text. Returns 0, or -EBADMSG with err saying what is not understood. */
int krait_tracefmt_parse(struct krait_tracefmt *format, const char *text, struct krait_err *err);
/* The field, or NULL. */
const struct krait_tracefmt_field *krait_tracefmt_find(const struct krait_tracefmt *format, const char *name);

#endif
