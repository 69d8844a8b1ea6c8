/* SPDX-License-Identifier: Apache-2.0
 *
 * Internal to record/: triggers as they are written.
 */
#ifndef KRAIT_RECORD_TRIGGERS_READ_H
#define KRAIT_RECORD_TRIGGERS_READ_H

#include "base/err.h"

enum { KRAIT_TRIGGERS_MAX = 64 }; /* bits of a mask */

enum krait_trigger_kind {
    KRAIT_ON_CALL,
    KRAIT_ON_SPAN,
    KRAIT_ON_BETWEEN,
    KRAIT_ON_EXCEPTION,
    KRAIT_ON_LOG,
    KRAIT_ON_GIL,
    KRAIT_ON_LOOP,
    KRAIT_ON_MEMORY,
    KRAIT_ON_END,
    KRAIT_TRIGGER_KINDS
};

struct krait_trigger_kind_row {
    const char *name;
    bool named, is_time, is_size;
    uint32_t needs; /* a flag of what must be recorded */
};
extern const struct krait_trigger_kind_row krait_trigger_kinds[KRAIT_TRIGGER_KINDS];

struct krait_trigger_on {
    enum krait_trigger_kind kind;
    char *text, *glob;
    const char *second;    /* in `glob`: of two messages */
    uint64_t limit, ticks; /* ns, bytes or a level; of a time also in ticks of the recording's clock */
    uint64_t fired_ns;     /* 0: never */
};

/* Returns 0, -EINVAL with err saying why the text is none, or -ENOMEM; krait_trigger_done in any case. */
int krait_trigger_parse(struct krait_trigger_on *trigger, const char *text, struct krait_err *err);
void krait_trigger_done(struct krait_trigger_on *trigger);

#endif
