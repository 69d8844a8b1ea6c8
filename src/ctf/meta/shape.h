/* SPDX-License-Identifier: Apache-2.0
 *
 * Common forms of event headers, which krait recognizes and reads directly. Source: lttng-ust, the metadata of its
 * compact and large event headers.
 */
#ifndef KRAIT_CTF_META_SHAPE_H
#define KRAIT_CTF_META_SHAPE_H

#include "ctf/meta/metadata.h"

enum krait_header_shape {
    KRAIT_SHAPE_OTHER,
    KRAIT_SHAPE_COMPACT, /* 5 bits of id, 27 of time; id 31: u32 id, u64 time */
    KRAIT_SHAPE_LARGE,   /* u16 id, u32 time; id 65535: u32 id, u64 time */
    KRAIT_SHAPE_FLAT, /* little-endian integers of whole bytes at fixed offsets (barectf, Zephyr and others) */
};

enum krait_header_shape krait_header_shape(const struct krait_fc *header);

/* The form of a header, with the offsets for FLAT. */
struct krait_header_form {
    enum krait_header_shape shape;
    uint32_t size;  /* bytes, not 0 */
    uint32_t align; /* bytes */
    uint32_t id_at, time_at;
    uint8_t id_bits, time_bits; /* 8, 16, 32, 64; 0: there is none */
    uint64_t only_id;           /* without an id: that of the only class */
};

/* Never fails: any other header is OTHER. */
void krait_header_form(struct krait_header_form *form, const struct krait_stream_class *cls);

#endif
