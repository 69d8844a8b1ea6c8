/* SPDX-License-Identifier: Apache-2.0 */
#include "ctf/meta/open.h"

#include "base/buf.h"
#include "ctf/meta/ctf2.h"
#include "ctf/meta/model.h"
#include "ctf/meta/tsdl.h"

#include <string.h>

/* -- packets of metadata: CTF 1.8.3, 7.1; CTF2-PMETA-1.0; byte order by the magic number -- */

#define METADATA_MAGIC 0x75D11D57u

struct metadata_packet {
    uint32_t magic;
    uint8_t uuid[16];
    uint32_t checksum;
    uint32_t content_size; /* bits, with this header */
    uint32_t packet_size;  /* bits */
    uint8_t compression, encryption, checksum_scheme;
    uint8_t major, minor;
} __attribute__((packed));

static bool is_packets(const void *bytes, size_t size, bool *swapped)
{
    uint32_t magic;
    if (size < sizeof(magic))
        return false;
    memcpy(&magic, bytes, sizeof(magic));
    *swapped = magic == __builtin_bswap32(METADATA_MAGIC);
    return magic == METADATA_MAGIC || *swapped;
}

static int check_packet(const struct metadata_packet *packet, size_t at, size_t left, struct krait_err *err)
{
    if (packet->magic != METADATA_MAGIC)
        return krait_err_set(err, -EBADMSG, "byte %zu: no metadata packet begins here", at);
    bool is_known = (packet->major == 1 && packet->minor == 8) || (packet->major == 2 && packet->minor == 0);
    if (!is_known)
        return krait_err_set(err, -ENOTSUP,
                             "byte %zu: metadata of version %u.%u; this reads CTF 1.8 and CTF 2", at,
                             packet->major, packet->minor);
    if (packet->compression || packet->encryption)
        return krait_err_set(err, -ENOTSUP, "byte %zu: compressed or encrypted metadata", at);
    size_t content = packet->content_size / 8, whole = packet->packet_size / 8;
    if (content < sizeof(*packet) || content > whole)
        return krait_err_set(err, -EBADMSG,
                             "byte %zu: a metadata packet of %zu bytes has %zu bytes of content", at, whole,
                             content);
    if (content > left)
        return krait_err_set(err, -EBADMSG, "byte %zu: a metadata packet of %zu bytes, but %zu are left", at,
                             content, left);
    return 0;
}

/* A header of CTF 2 may go on with three zero bytes and its own size in bits; text never begins with a zero. */
static size_t header_size(const struct metadata_packet *packet, const char *bytes, bool swapped)
{
    uint32_t bits;
    size_t content = packet->content_size / 8;
    if (packet->major != 2 || content < sizeof(*packet) + 7 || bytes[sizeof(*packet)])
        return sizeof(*packet);
    memcpy(&bits, bytes + sizeof(*packet) + 3, sizeof(bits));
    size_t size = (swapped ? __builtin_bswap32(bits) : bits) / 8;
    return size >= sizeof(*packet) + 7 && size <= content ? size : sizeof(*packet);
}

static int unpack(struct krait_buf *text, const char *bytes, size_t size, bool swapped, uint8_t uuid[16],
                  struct krait_err *err)
{
    struct metadata_packet packet;
    /* Bytes that are fewer than a header say nothing. */
    for (size_t at = 0; size - at >= sizeof(packet);) {
        memcpy(&packet, bytes + at, sizeof(packet));
        if (swapped) {
            packet.magic = __builtin_bswap32(packet.magic);
            packet.content_size = __builtin_bswap32(packet.content_size);
            packet.packet_size = __builtin_bswap32(packet.packet_size);
        }
        int rc = check_packet(&packet, at, size - at, err);
        if (rc)
            return rc;
        if (at == 0)
            memcpy(uuid, packet.uuid, 16);
        else if (memcmp(uuid, packet.uuid, 16) != 0)
            return krait_err_set(err, -EBADMSG,
                                 "byte %zu: a metadata packet of another trace (its uuid differs)", at);
        size_t header = header_size(&packet, bytes + at, swapped);
        krait_buf_add(text, bytes + at + header, packet.content_size / 8 - header);
        at += KRAIT_MIN((size_t)packet.packet_size / 8, size - at);
    }
    return 0;
}

/* -- text -- */

/* CTF 2's metadata is a JSON text sequence (RFC 7464): its records begin with the byte 0x1e. Who forgot it is
 * told so. */
static bool is_json_sequence(const char *text, size_t size)
{
    return size && (*text == '\x1e' || *text == '{');
}

static int check_signature(const char *text, size_t size, struct krait_err *err)
{
    unsigned major, minor;
    char head[32] = "";
    memcpy(head, text, KRAIT_MIN(size, sizeof(head) - 1));
    if (sscanf(head, "/* CTF %9u.%9u", &major, &minor) == 2 && (major != 1 || minor != 8))
        return krait_err_set(err, -ENOTSUP, "the metadata is of CTF %u.%u; this reads CTF 1.8 and CTF 2",
                             major, minor);
    return 0;
}

static int parse_text(struct krait_ctf_metadata *md, const char *text, size_t size, struct krait_err *err)
{
    if (is_json_sequence(text, size))
        return krait_ctf2_parse(md, text, size, err);
    int rc = check_signature(text, size, err);
    return rc ? rc : krait_tsdl_parse(md, text, size, err);
}

static int parse_bytes(struct krait_ctf_metadata *md, const char *bytes, size_t size, struct krait_err *err)
{
    bool swapped;
    if (!is_packets(bytes, size, &swapped))
        return parse_text(md, bytes, size, err);
    KRAIT_AUTO_BUF text = { 0 };
    uint8_t uuid[16];
    int rc = unpack(&text, bytes, size, swapped, uuid, err);
    if (rc)
        return rc;
    if (text.failed)
        return krait_err_set(err, -ENOMEM, "out of memory");
    rc = parse_text(md, text.data ? text.data : "", text.len, err);
    return rc ? krait_err_prefix(err, rc, "in the text of its packets") : 0;
}

/* -- open -- */

int krait_ctf_metadata_parse(struct krait_ctf_metadata **out, const char *dir, const void *bytes, size_t size,
                             struct krait_err *err)
{
    struct krait_ctf_metadata *md = calloc(1, sizeof(*md));
    if (!md)
        return krait_err_set(err, -ENOMEM, "out of memory");
    int rc = 0;
    md->dir = krait_arena_strdup(&md->arena, dir);
    if (!md->dir)
        rc = krait_err_set(err, -ENOMEM, "out of memory");
    if (!rc)
        rc = parse_bytes(md, bytes, size, err);
    if (!rc && krait_model_context_fields(md) > KRAIT_CTF_MAX_CONTEXT_FIELDS)
        rc = krait_err_set(err, -EBADMSG, "more than %d fields in the common contexts of all events",
                           KRAIT_CTF_MAX_CONTEXT_FIELDS);
    if (!rc)
        krait_model_note_orders(md);
    if (rc) {
        krait_ctf_metadata_free(md);
        krait_err_prefix(err, rc, "%s/metadata", dir);
        krait_err_place(err, strlen(dir) + strlen("/metadata"), KRAIT_NO_OFFSET);
        return rc;
    }
    *out = md;
    return 0;
}

int krait_ctf_metadata_open(struct krait_ctf_metadata **out, const char *dir, struct krait_err *err)
{
    KRAIT_AUTO_BUF path = { 0 };
    KRAIT_AUTO_BUF bytes = { 0 };
    krait_buf_fmt(&path, "%s/metadata", dir);
    if (path.failed)
        return krait_err_set(err, -ENOMEM, "out of memory");
    int rc = krait_buf_read_file(&bytes, path.data);
    if (rc) {
        errno = -rc;
        return krait_err_errno(err, "%s", path.data);
    }
    return krait_ctf_metadata_parse(out, dir, bytes.data ? bytes.data : "", bytes.len, err);
}

void krait_ctf_metadata_free(struct krait_ctf_metadata *metadata)
{
    if (!metadata)
        return;
    for (uint32_t i = 0; i < metadata->stream_count; i++)
        krait_map_done(&metadata->streams[i]->by_id);
    krait_arena_done(&metadata->arena);
    free(metadata);
}
