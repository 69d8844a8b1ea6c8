/* SPDX-License-Identifier: Apache-2.0 */
#include "ctf/rows/check.h"

#include "ctf/rows/row_source.h"

static void note_damage(struct krait_ctf_stream *stream, const struct krait_ctf_cursor *cursor)
{
    if (!cursor->err.code || !cursor->packet)
        return;
    stream->damage = cursor->err;
    stream->damaged = (uint32_t)(cursor->packet - stream->packets) + 1;
}

int krait_ctf_check(const struct krait_row_set *set, struct krait_ctf_stream *stream)
{
    KRAIT_AUTO_FREE struct krait_row_tally *tally = calloc(1, sizeof(*tally));
    KRAIT_AUTO_FREE uint64_t *counts = calloc(KRAIT_MAX(set->class_count, 1u), sizeof(*counts));
    struct krait_row_source source;
    if (!tally || !counts)
        return -ENOMEM;
    tally->counts = counts;
    krait_row_source_init(&source, set, stream);
    krait_row_count(&source, tally);
    int rc = source.cursor.err.code == -ENOMEM ? -ENOMEM : 0;
    if (!rc)
        note_damage(stream, &source.cursor);
    krait_row_source_done(&source);
    return rc;
}
