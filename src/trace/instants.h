/* SPDX-License-Identifier: Apache-2.0
 *
 * A batch of instants that an importer fills. It keeps those in the range, and hands them out when it is full.
 */
#ifndef KRAIT_TRACE_INSTANTS_H
#define KRAIT_TRACE_INSTANTS_H

#include "base/buf.h"
#include "trace/importer.h"

enum { KRAIT_INSTANTS_BATCH = 1024 };

/* Zeroed but for the first two. */
struct krait_instants {
    const struct krait_track *track;
    const struct krait_walking *walking;
    uint32_t n;
    uint64_t last_ns;
    uint64_t t_ns[KRAIT_INSTANTS_BATCH];
    uint32_t name[KRAIT_INSTANTS_BATCH];
    size_t at[KRAIT_INSTANTS_BATCH]; /* in texts */
    struct krait_buf texts;
};

/* One more, unless it is outside of the range; a time before the last one counts as that. The text is copied. Returns
 * 0, -ENOMEM, what the walk's function returned, or -ERANGE behind the range's end: there are no more. */
int krait_instants_add(struct krait_instants *instants, uint64_t t_ns, uint32_t name, const char *text);
int krait_instants_flush(struct krait_instants *instants);
void krait_instants_done(struct krait_instants *instants);

#endif
