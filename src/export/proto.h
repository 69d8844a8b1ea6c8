/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing protobuf's wire format: as much of it as Perfetto's and pprof's messages need.
 * Source: "Encoding", protobuf.dev/programming-guides/encoding.
 *
 * A field is its key (number << 3 | wire type) and its value; messages inside messages are length-prefixed bytes:
 *
 *   08 96 01        field 1, varint, 150
 *   12 02 68 69     field 2, bytes, "hi"
 */
#ifndef KRAIT_EXPORT_PROTO_H
#define KRAIT_EXPORT_PROTO_H

#include "base/buf.h"

void krait_pb_varint(struct krait_buf *buf, uint64_t value);
/* A field of type uint32, uint64, int32 that is not negative, enum or bool. */
void krait_pb_u64(struct krait_buf *buf, uint32_t field, uint64_t value);
/* A field of type fixed64, or the bits of a double. */
void krait_pb_fixed64(struct krait_buf *buf, uint32_t field, uint64_t value);
/* A field of type string, which must be UTF-8: what is not becomes U+FFFD. */
void krait_pb_str(struct krait_buf *buf, uint32_t field, const char *s, size_t n);
void krait_pb_cstr(struct krait_buf *buf, uint32_t field, const char *s);

/* A message as a field: begin it, write its fields, end it with what begin returned. They nest. */
size_t krait_pb_begin(struct krait_buf *buf, uint32_t field);
void krait_pb_end(struct krait_buf *buf, size_t mark);

#endif
