/* SPDX-License-Identifier: Apache-2.0 */
#include "api/trace_read_api.h"

#include "ctf/rows/check.h"

/* The caller has the lock, which is open while a stream is read. Another thread may meanwhile read the next one. */
static void check_next_stream(struct krait_reader *reader)
{
    struct damage_check *check = &reader->check;
    struct krait_ctf_stream *stream = reader->ctf->streams[check->begun++];
    pthread_mutex_unlock(&reader->lock);
    int rc = krait_ctf_check(check->rows, stream);
    pthread_mutex_lock(&reader->lock);
    check->failed = check->failed || rc;
    if (++check->done == reader->ctf->stream_count)
        pthread_cond_broadcast(&check->all_done);
}

static int check_all(struct krait_reader *reader)
{
    struct damage_check *check = &reader->check;
    int rc = check->rows ? 0 : krait_row_set_new(&check->rows, reader->ctf, KRAIT_EMIT_COUNT, NULL);
    while (!rc && check->begun < reader->ctf->stream_count)
        check_next_stream(reader);
    while (!rc && check->done < reader->ctf->stream_count)
        pthread_cond_wait(&check->all_done, &reader->lock);
    return rc || check->failed ? -ENOMEM : 0;
}

/* As reading by time ends: the first damage by the streams' order. */
static const struct krait_err *damage_of(const struct krait_ctf_reader *ctf)
{
    const struct krait_err *damage = &ctf->damage;
    for (uint32_t i = 0; i < ctf->stream_count && !damage->code; i++)
        damage = &ctf->streams[i]->damage;
    return damage;
}

int krait_reader_check(struct krait_reader *reader, struct krait_reader_error *error)
{
    pthread_mutex_lock(&reader->lock);
    int rc = check_all(reader);
    pthread_mutex_unlock(&reader->lock);
    if (rc)
        return krait_tell_oom(error);
    const struct krait_err *damage = damage_of(reader->ctf);
    return damage->code ? krait_tell(error, damage) : 0;
}
