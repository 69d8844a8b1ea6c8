/* SPDX-License-Identifier: Apache-2.0
 *
 * Event headers that are known by their shape and read at once. Source: lttng-ust, the metadata of its
 * compact and large event headers.
 */
#ifndef KRAIT_CTF_SHAPE_H
#define KRAIT_CTF_SHAPE_H

#include "ctf/field.h"

enum krait_header_shape {
    KRAIT_SHAPE_OTHER,
    KRAIT_SHAPE_COMPACT, /* 5 bits of id, 27 of time; id 31: u32 id, u64 time */
    KRAIT_SHAPE_LARGE,   /* u16 id, u32 time; id 65535: u32 id, u64 time */
};

enum krait_header_shape krait_header_shape(const struct krait_fc *header);

#endif
