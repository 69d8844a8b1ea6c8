/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a trace, as the target packets takes them: batches against events, cell by cell; of an odd
 * number of bytes some cells alone, unless of a multiple of three with the clock's counts.
 */
#include "packets.h"

#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);
int batch_check_main(int argc, char **argv);

/* The program as it is, once for each input; what it prints goes nowhere. */
#define main        batch_check_main
#define printf(...) ((void)snprintf(NULL, 0, __VA_ARGS__))
#include "../batch_check.c"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    return fuzz_make_dir();
}

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
