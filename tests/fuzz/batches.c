/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a trace, as the target packets takes them: batches against events, cell by cell; of an odd
 * number of bytes some cells alone, unless of a multiple of three with the clock's counts.
 */
#define main batch_check_main
#include "program.h"

/* The program itself; program.h comes first. */
#include "../batch_check.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const options[] = { "--some", "--cycles" };
    char *argv[5] = { "batch_check" };
    int argc = 1;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(options); i++) {
        if (size % (2 + i))
            argv[argc++] = (char *)options[i];
    }
    argv[argc++] = fuzz_dir;
    fuzz_write_trace(data, size);
    cells = selected = lost = cycles = wrong = stepped = batched = 0;
    if (batch_check_main(argc, argv))
        abort();
    return 0;
}
