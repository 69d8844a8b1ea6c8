/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a trace, as the target packets takes them: what its classes hold, and seeking in it.
 */
#include "packets.h"

#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);
int seek_check_main(int argc, char **argv);

/* The program as it is, once for each input; what it prints goes nowhere. */
#define main        seek_check_main
#define printf(...) ((void)snprintf(NULL, 0, __VA_ARGS__))
#include "../seek_check.c"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    return fuzz_make_dir();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *argv[] = { "seek_check", fuzz_dir, NULL };
    fuzz_write_trace(data, size);
    if (seek_check_main(2, argv))
        abort();
    return 0;
}
