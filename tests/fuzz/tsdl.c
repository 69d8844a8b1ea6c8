/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a trace's metadata: TSDL, plain or in packets.
 */
#include "metadata.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_metadata(data, size);
}
