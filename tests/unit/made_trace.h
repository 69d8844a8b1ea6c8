/* SPDX-License-Identifier: Apache-2.0
 *
 * Recordings that tests make, event by event, by the code that real ones are written with. The clock counts
 * nanoseconds from MADE_EPOCH_NS.
 */
#ifndef KRAIT_TESTS_MADE_TRACE_H
#define KRAIT_TESTS_MADE_TRACE_H

#include "event/payload.h"
#include "record/tracedir.h"

#include <assert.h>
#include <ftw.h>
#include <string.h>

enum { MADE_PACKET = 8 * 1024, MADE_CODES = 40 };

#define MADE_EPOCH_NS 1767225600000000000ull

struct made {
    char parent[64];
    struct krait_tracedir *dir;
    struct krait_stream *stream;
    uint64_t t, last, lost; /* t: of the events that follow */
    size_t n;
    uint8_t bytes[MADE_PACKET + 256];
};

static inline void made_flush(struct made *made)
{
    struct krait_packet_head *head = (struct krait_packet_head *)made->bytes;
    if (made->n <= sizeof(*head))
        return;
    head->timestamp_end = made->last;
    head->events_discarded = made->lost;
    int rc = krait_tracedir_write(made->dir, made->stream, head, head + 1, made->n - sizeof(*head), NULL);
    assert(!rc);
    made->n = 0;
}

static inline void made_put(struct made *made, uint32_t id, const void *payload, size_t n)
{
    if (made->n + n > MADE_PACKET)
        made_flush(made);
    if (!made->n) {
        const struct krait_packet_head head = { .timestamp_begin = made->t };
        memcpy(made->bytes, &head, sizeof(head));
        made->n = sizeof(head);
        made->last = made->t;
    }
    if (made->t < made->last || made->t >> KRAIT_CTF_TS_BITS != made->last >> KRAIT_CTF_TS_BITS || n > 8) {
        made->n += krait_head_extend(made->bytes + made->n, id, made->t);
    } else {
        uint32_t word = krait_head_pack(id, made->t);
        memcpy(made->bytes + made->n, &word, sizeof(word));
        made->n += sizeof(word);
    }
    if (n)
        memcpy(made->bytes + made->n, payload, n);
    made->n += n;
    made->last = made->t;
}

static inline void made_begin(struct made *made, uint32_t event, uint32_t code)
{
    made_put(made, event, &code, sizeof(code));
}

static inline void made_end(struct made *made, uint32_t event)
{
    made_put(made, event, NULL, 0);
}

static inline void made_thread(struct made *made, uint32_t tid)
{
    made_flush(made);
    int rc = krait_tracedir_stream(made->dir, tid, &made->stream, NULL);
    assert(!rc);
}

/* Codes 1 to MADE_CODES - 1: those that 3 divides are C functions. */
static inline void made_define(struct made *made)
{
    for (uint32_t id = 1; id < MADE_CODES; id++) {
        uint8_t payload[KRAIT_PAYLOAD_MAX];
        char module[32], name[32];
        uint64_t first, last;
        snprintf(module, sizeof(module), "package%u.module", id % 5);
        snprintf(name, sizeof(name), "function_%u", id);
        size_t n =
            krait_put_code_define(payload, &(struct krait_payload_code_define){
                                               .id = id,
                                               .kind = id % 3 ? KRAIT_code_kind_python : KRAIT_code_kind_c,
                                               .line = id,
                                               .module = module,
                                               .qualname = name,
                                               .file = "/f.py",
                                           });
        made_put(made, KRAIT_EVENT_code_define, payload, n);
        n += sizeof(struct krait_event_extended);
        krait_tracedir_define(made->dir, made->bytes + made->n - n, n, &first, &last);
    }
}

/* A folder of its own with one process; made_thread next. */
static inline struct made *made_new(void)
{
    static const struct krait_clock clock = { .freq = KRAIT_NS_PER_S,
                                              .first = { .realtime_ns = MADE_EPOCH_NS } };
    struct made *made = calloc(1, sizeof(*made));
    assert(made);
    strcpy(made->parent, "/tmp/krait-made-XXXXXX");
    char *parent = mkdtemp(made->parent);
    assert(parent);
    const struct krait_tracedir_options options = {
        .parent = made->parent, .name = "python3", .pid = 10, .command = "python3 a.py", .clock = &clock
    };
    int rc = krait_tracedir_new(&made->dir, &options, NULL);
    rc = rc ? rc : krait_tracedir_stream(made->dir, 0, &made->stream, NULL);
    assert(!rc);
    made_define(made);
    return made;
}

/* All of it is on disk: in made->parent. */
static inline void made_close(struct made *made)
{
    made_flush(made);
    int rc = krait_tracedir_write_metadata(made->dir, NULL);
    assert(!rc);
    krait_tracedir_free(made->dir);
    made->dir = NULL;
}

static inline int made_remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    return remove(path);
}

static inline void made_free(struct made *made)
{
    nftw(made->parent, made_remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(made);
}

#endif
