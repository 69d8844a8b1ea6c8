/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a trace, as the target packets takes them: what its classes hold, and seeking in it.
 */
#define main seek_check_main
#include "program.h"

/* The program itself; program.h comes first. */
#include "../seek_check.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *argv[] = { "seek_check", fuzz_dir, NULL };
    fuzz_write_trace(data, size);
    if (seek_check_main(2, argv))
        abort();
    return 0;
}
