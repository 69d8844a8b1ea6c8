/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as CTF 2's metadata: a record separator comes before what has none.
 */
#include "metadata.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bool has_separator = size && data[0] == 0x1e;
    uint8_t *bytes = malloc(size + 1);
    if (!bytes)
        return 0;
    bytes[0] = 0x1e;
    if (size)
        memcpy(bytes + !has_separator, data, size);
    fuzz_metadata(bytes, size + !has_separator);
    free(bytes);
    return 0;
}
