/* SPDX-License-Identifier: Apache-2.0 */
#include "attach/stub.h"

#include "attach/machine.h"

#include <string.h>

bool krait_stub_make(struct krait_stub *stub, const struct krait_target *target,
                     const struct krait_stub_call *call)
{
    enum { PATH = 2, READY = KRAIT_TARGET_FUNCTIONS + 4 };
    static const char later[KRAIT_STUB_PATH] = { 0 };
    const char *const texts[] = { call->function, call->argument, call->memfd ? later : call->path,
                                  call->memfd };
    size_t code = (size_t)(krait_stub_end - krait_stub_begin);
    uint64_t data[READY + 1] = { 0 };
    size_t at = code + sizeof(data);
    *stub = (struct krait_stub){ .ready_at = code + READY * sizeof(uint64_t) };
    memcpy(stub->bytes, krait_stub_begin, code);
    memcpy(data, target->functions, sizeof(target->functions));
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(texts); i++) {
        size_t n = texts[i] == later ? sizeof(later) : texts[i] ? strlen(texts[i]) + 1 : 0;
        if (n > KRAIT_STUB_MAX - at)
            return false;
        if (n)
            memcpy(stub->bytes + at, texts[i], n);
        data[KRAIT_TARGET_FUNCTIONS + i] = n ? target->room + at : 0;
        stub->path_at = i == PATH ? at : stub->path_at;
        at += n;
    }
    memcpy(stub->bytes + code, data, sizeof(data));
    stub->size = at;
    return true;
}
