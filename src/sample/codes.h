/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside of sample/: the functions that samples have met. Each gets an id and a definition when it is met first.
 */
#ifndef KRAIT_SAMPLE_CODES_H
#define KRAIT_SAMPLE_CODES_H

#include "base/map.h"
#include "remote/remote.h"
#include "sample/stream.h"

struct krait_sample_codes {
    struct krait_map ids; /* hash of a definition -> id; krait_remote_code.id has it too */
    uint32_t count;
};

void krait_sample_codes_done(struct krait_sample_codes *codes);

/* Sets *id; defines it at time t. Returns 0, or a negative errno with err set. */
int krait_sample_code(struct krait_sample_codes *codes, struct krait_sample_stream *definitions, uint64_t t,
                      const struct krait_remote_code *code, uint32_t *id, struct krait_err *err);

#endif
