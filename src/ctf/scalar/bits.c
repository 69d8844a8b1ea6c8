/* SPDX-License-Identifier: Apache-2.0 */
#include "ctf/scalar/bits.h"

const char *krait_leb_read(const uint8_t *p, uint64_t size, bool is_signed, uint64_t *value, unsigned *bits)
{
    uint8_t byte = 0x80;
    *value = 0;
    for (*bits = 0; byte & 0x80; *bits += 7) {
        if (*bits / 7 >= size)
            return "an integer is longer than the rest of its packet";
        byte = p[*bits / 7];
        /* The tenth group has one bit of value, and nothing else than its sign may follow. */
        uint8_t only = is_signed && byte & 1 ? 0x7f : byte & 1;
        if (*bits >= 63 && (*bits > 63 || (byte & 0x7f) != only))
            return "an integer of more than 64 bits";
        *value |= (uint64_t)(byte & 0x7f) << *bits;
    }
    if (is_signed && *bits < 64)
        *value = krait_sign_extend(*value, *bits);
    return NULL;
}
