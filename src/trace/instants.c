/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/instants.h"

#include <string.h>

int krait_instants_add(struct krait_instants *instants, uint64_t t_ns, uint32_t name, const char *text)
{
    const struct krait_range *range = &instants->walking->range;
    t_ns = KRAIT_MAX(t_ns, instants->last_ns);
    instants->last_ns = t_ns;
    if (t_ns >= range->to_ns)
        return -ERANGE;
    if (t_ns < range->from_ns)
        return 0;
    instants->t_ns[instants->n] = t_ns;
    instants->name[instants->n] = name;
    instants->at[instants->n] = instants->texts.len;
    krait_buf_add(&instants->texts, text, strlen(text) + 1);
    if (name == KRAIT_NO_ID || instants->texts.failed)
        return -ENOMEM;
    return ++instants->n == KRAIT_INSTANTS_BATCH ? krait_instants_flush(instants) : 0;
}

int krait_instants_flush(struct krait_instants *instants)
{
    const char *text[KRAIT_INSTANTS_BATCH];
    const struct krait_batch batch = {
        .n = instants->n, .t_ns = instants->t_ns, .name = instants->name, .text = text
    };
    for (uint32_t i = 0; i < instants->n; i++)
        text[i] = instants->texts.data + instants->at[i];
    instants->n = 0;
    int rc = batch.n ? instants->walking->batch(instants->walking->ctx, instants->track, &batch) : 0;
    krait_buf_clear(&instants->texts);
    return rc;
}

void krait_instants_done(struct krait_instants *instants)
{
    krait_buf_done(&instants->texts);
}
