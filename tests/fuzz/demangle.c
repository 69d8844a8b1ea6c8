/* SPDX-License-Identifier: Apache-2.0
 *
 * Any text as the symbol of a function.
 */
#include "remote/demangle.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { LONGEST = 64 * 1024 };
    KRAIT_AUTO_BUF symbol = { 0 }, name = { 0 };
    krait_buf_str(&symbol, size && *data % 2 ? "_R" : "_Z"); /* of Rust; of C++, and Rust's old ones */
    krait_buf_add(&symbol, data + !!size, size ? strnlen((const char *)data + 1, size - 1) : 0);
    krait_demangle(&name, symbol.data);
    if (!name.len || name.len > LONGEST + symbol.len)
        abort();
    return 0;
}
