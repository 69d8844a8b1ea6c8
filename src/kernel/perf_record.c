/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/perf_record.h"

#include <string.h>

/* What stands behind a record's own fields. */
struct trailer {
    int32_t pid, tid;
    uint64_t time, id;
};

struct sample {
    uint64_t id, ip;
    int32_t pid, tid;
    uint64_t time, addr;
};

static bool take(void *to, size_t size, const uint8_t *body, size_t n)
{
    if (n < size)
        return false;
    memcpy(to, body, size);
    return true;
}

static bool take_sample(struct krait_perf_record *record, const uint8_t *body, size_t n)
{
    struct sample sample;
    if (!take(&sample, sizeof(sample), body, n))
        return false;
    record->pid = sample.pid;
    record->tid = sample.tid;
    record->time = sample.time;
    record->sample.id = sample.id;
    record->sample.ip = sample.ip;
    record->sample.addr = sample.addr;
    return true;
}

static bool take_task(struct krait_perf_record *record, const uint8_t *body, size_t n)
{
    return take(&record->task, sizeof(record->task), body, n);
}

static bool take_comm(struct krait_perf_record *record, const uint8_t *body, size_t n)
{
    const size_t text = offsetof(__typeof__(record->comm), text);
    if (!take(&record->comm, text, body, n))
        return false;
    n = strnlen((const char *)body + text, KRAIT_MIN(n - text, sizeof(record->comm.text) - 1));
    memset(record->comm.text, 0, sizeof(record->comm.text));
    memcpy(record->comm.text, body + text, n);
    return true;
}

static bool take_lost(struct krait_perf_record *record, const uint8_t *body, size_t n)
{
    uint64_t id_and_count[2];
    bool whole = take(id_and_count, sizeof(id_and_count), body, n);
    record->lost = whole ? id_and_count[1] : 0;
    return whole;
}

static bool take_switch(struct krait_perf_record *record, const uint8_t *body, size_t n)
{
    (void)record;
    (void)body;
    (void)n;
    return true;
}

static bool take_trailer(struct krait_perf_record *record, const uint8_t *body, size_t *n)
{
    struct trailer trailer;
    if (*n < sizeof(trailer))
        return false;
    *n -= sizeof(trailer);
    memcpy(&trailer, body + *n, sizeof(trailer));
    record->pid = trailer.pid;
    record->tid = trailer.tid;
    record->time = trailer.time;
    return true;
}

typedef bool take_body(struct krait_perf_record *record, const uint8_t *body, size_t n);

bool krait_perf_record_parse(struct krait_perf_record *record, const void *bytes, size_t n)
{
    static take_body *const takes[] = {
        [PERF_RECORD_SAMPLE] = take_sample, [PERF_RECORD_FORK] = take_task,
        [PERF_RECORD_EXIT] = take_task,     [PERF_RECORD_COMM] = take_comm,
        [PERF_RECORD_LOST] = take_lost,     [PERF_RECORD_SWITCH] = take_switch,
    };
    struct perf_event_header head;
    if (!take(&head, sizeof(head), bytes, n) || head.size != n || head.type >= KRAIT_ARRAY_LEN(takes) ||
        !takes[head.type])
        return false;
    const uint8_t *body = (const uint8_t *)bytes + sizeof(head);
    size_t left = n - sizeof(head);
    record->type = head.type;
    record->misc = head.misc;
    return (head.type == PERF_RECORD_SAMPLE || take_trailer(record, body, &left)) &&
           takes[head.type](record, body, left);
}
