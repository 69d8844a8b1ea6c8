/* SPDX-License-Identifier: Apache-2.0 */
#include "base/system_calls.h"

#include "base/base.h"

#include <sys/syscall.h>

static const struct {
    int number;
    const char *name;
} calls[] = {
#define KRAIT_SYSTEM_CALL(name) { SYS_##name, #name },
#include "base/system_calls.def"
#undef KRAIT_SYSTEM_CALL
};

const char *krait_system_call_name(int number)
{
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(calls); i++) {
        if (calls[i].number == number)
            return calls[i].name;
    }
    return NULL;
}
