/* SPDX-License-Identifier: Apache-2.0 */
#include "export/proto.h"

#include "base/json.h"

#include <string.h>

enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, VARINT_MAX = 10 };

static size_t put_varint(uint8_t *to, uint64_t value)
{
    size_t n = 0;
    for (; value >= 0x80; value >>= 7)
        to[n++] = (uint8_t)(value | 0x80);
    to[n++] = (uint8_t)value;
    return n;
}

void krait_pb_varint(struct krait_buf *buf, uint64_t value)
{
    char *to = krait_buf_room(buf, VARINT_MAX);
    if (to)
        buf->len += put_varint((uint8_t *)to, value);
}

static void add_key(struct krait_buf *buf, uint32_t field, uint32_t wire)
{
    krait_pb_varint(buf, (uint64_t)field << 3 | wire);
}

void krait_pb_u64(struct krait_buf *buf, uint32_t field, uint64_t value)
{
    add_key(buf, field, WIRE_VARINT);
    krait_pb_varint(buf, value);
}

void krait_pb_fixed64(struct krait_buf *buf, uint32_t field, uint64_t value)
{
    uint8_t bytes[sizeof(value)];
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(value >> 8 * i);
    add_key(buf, field, WIRE_FIXED64);
    krait_buf_add(buf, bytes, sizeof(bytes));
}

void krait_pb_str(struct krait_buf *buf, uint32_t field, const char *s, size_t n)
{
    size_t mark = krait_pb_begin(buf, field);
    krait_utf8_clean(buf, s, n);
    krait_pb_end(buf, mark);
}

void krait_pb_cstr(struct krait_buf *buf, uint32_t field, const char *s)
{
    krait_pb_str(buf, field, s, strlen(s));
}

/* One byte is kept for the length, which is enough for most; the end makes room for more. */
size_t krait_pb_begin(struct krait_buf *buf, uint32_t field)
{
    add_key(buf, field, WIRE_BYTES);
    krait_buf_char(buf, 0);
    return buf->len;
}

void krait_pb_end(struct krait_buf *buf, size_t mark)
{
    if (buf->failed)
        return;
    size_t n = buf->len - mark;
    uint8_t length[VARINT_MAX];
    size_t extra = put_varint(length, n) - 1;
    if (extra && !krait_buf_room(buf, extra))
        return;
    char *body = buf->data + mark;
    if (extra)
        memmove(body + extra, body, n);
    memcpy(body - 1, length, extra + 1);
    buf->len += extra;
}
