/* SPDX-License-Identifier: Apache-2.0 */
#include "ctf/read/compare.h"

#include "ctf/read/packets.h"

#include <string.h>

/* What tells where a clock counts from, the stronger before the weaker. */
enum source { SOURCE_NO_CLOCK, SOURCE_EPOCH, SOURCE_ORIGIN, SOURCE_IDENTITY, SOURCE_CLOCK };

static enum source source_of(const struct krait_ctf_clock *clock)
{
    return !clock            ? SOURCE_NO_CLOCK
           : clock->absolute ? SOURCE_EPOCH
           : clock->origin   ? SOURCE_ORIGIN
           : clock->identity ? SOURCE_IDENTITY
                             : SOURCE_CLOCK;
}

static bool is_same_source(const struct krait_ctf_stream *a, const struct krait_ctf_stream *b)
{
    const struct krait_ctf_clock *x = a->cls->clock, *y = b->cls->clock;
    enum source source = source_of(x);
    if (x == y || source != source_of(y))
        return x == y;
    if (source == SOURCE_ORIGIN)
        return strcmp(x->origin, y->origin) == 0;
    if (source == SOURCE_IDENTITY)
        return strcmp(x->identity, y->identity) == 0;
    return source == SOURCE_EPOCH ||
           (krait_ctf_same_trace(a->trace, b->trace) && strcmp(x->name, y->name) == 0);
}

static int fail(const struct krait_ctf_stream *a, const struct krait_ctf_stream *b, struct krait_err *err)
{
    static const char *const texts[] = { [SOURCE_NO_CLOCK] = "have no clock",
                                         [SOURCE_EPOCH] = "count from the epoch",
                                         [SOURCE_ORIGIN] = "count from an origin of their tracer's",
                                         [SOURCE_IDENTITY] = "are of a clock with a uuid or uid",
                                         [SOURCE_CLOCK] = "are of a clock without origin, uuid or uid" };
    enum source x = source_of(a->cls->clock), y = source_of(b->cls->clock);
    bool one_trace = krait_ctf_same_trace(a->trace, b->trace);
    krait_err_set(err, -EINVAL, "%s: its times %s, those of %s %s%s: they cannot be compared%s", a->path,
                  texts[x], b->path, texts[y], x == y ? ", another" : "",
                  one_trace ? "" : "; print the traces one by one");
    return krait_err_place(err, strlen(a->path), KRAIT_NO_OFFSET);
}

int krait_ctf_comparable(const struct krait_ctf_reader *reader, struct krait_err *err)
{
    for (uint32_t i = 1; i < reader->stream_count; i++) {
        if (!is_same_source(reader->streams[0], reader->streams[i]))
            return fail(reader->streams[0], reader->streams[i], err);
    }
    return 0;
}
