/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a trace, as the target packets takes them: batches against events, cell by cell; of an odd
 * number of bytes some cells alone.
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
    char *argv[] = { "batch_check", "--some", fuzz_dir, NULL };
    bool all = size % 2 == 0;
    fuzz_write_trace(data, size);
    cells = selected = lost = wrong = 0;
    if (batch_check_main(3 - all, argv + all))
        abort();
    return 0;
}
