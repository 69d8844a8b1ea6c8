/* SPDX-License-Identifier: Apache-2.0 */
#include "sample/tasks.h"

enum { TASKS_MOST = 1 << 16 };

void krait_sample_tasks_done(struct krait_sample_tasks *tasks)
{
    krait_map_done(&tasks->ids);
}

int krait_sample_task(struct krait_sample_tasks *tasks, struct krait_sample_codes *codes,
                      struct krait_sample_stream *definitions, uint64_t t,
                      const struct krait_running_task *task, uint32_t *id, struct krait_err *err)
{
    const uint64_t *known = krait_map_get(&tasks->ids, task->key);
    uint32_t coroutine = 0;
    if (known) {
        *id = (uint32_t)*known;
        return 0;
    }
    int rc = task->code ? krait_sample_code(codes, definitions, t, task->code, &coroutine, err) : 0;
    *id = ++tasks->count;
    if (tasks->ids.len >= TASKS_MOST) /* one that comes again after that many is another one */
        krait_map_done(&tasks->ids);
    if (!rc && krait_map_put(&tasks->ids, task->key, *id))
        rc = krait_err_set(err, -ENOMEM, "out of memory");
    if (rc)
        return rc;
    uint8_t payload[KRAIT_PAYLOAD_MAX];
    size_t n = krait_put_task_define(payload, &(struct krait_payload_task_define){
                                                  .id = *id, .coroutine = coroutine, .name = task->name });
    return krait_sample_stream_put(definitions, t, KRAIT_EVENT_task_define, payload, n, err);
}

static int put_leave(struct krait_sample_stream *stream, uint64_t t, uint32_t task, struct krait_err *err)
{
    uint8_t payload[KRAIT_BYTES_task_leave];
    size_t n = krait_put_task_leave(payload, &(struct krait_payload_task_leave){
                                                 .task = task, .reason = KRAIT_task_leave_reason_unseen });
    return krait_sample_stream_put(stream, t, KRAIT_EVENT_task_leave, payload, n, err);
}

static int put_run(struct krait_sample_stream *stream, uint64_t t, uint32_t task, struct krait_err *err)
{
    uint8_t payload[KRAIT_BYTES_task_run];
    size_t n = krait_put_task_run(payload, &(struct krait_payload_task_run){ .task = task });
    return krait_sample_stream_put(stream, t, KRAIT_EVENT_task_run, payload, n, err);
}

int krait_sample_task_put(struct krait_sample_stream *stream, uint64_t t, uint32_t from, uint32_t to,
                          struct krait_err *err)
{
    int rc = from && from != to ? put_leave(stream, t, from, err) : 0;
    return rc || !to || from == to ? rc : put_run(stream, t, to, err);
}
