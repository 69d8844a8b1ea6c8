/* SPDX-License-Identifier: Apache-2.0 */
#include "python/compat/printable.h"

static const struct range {
    uint32_t first, last;
    uint8_t minor;
} ranges[] = {
#define KRAIT_PRINTABLE(first, last, minor) { first, last, minor },
#include "python/compat/printable.def"
#undef KRAIT_PRINTABLE
};

bool krait_is_printable(const struct krait_layout_of *version, uint32_t character)
{
    if (character < 0x80)
        return character >= ' ' && character < 0x7f;
    size_t begin = 0, end = KRAIT_ARRAY_LEN(ranges);
    while (begin < end) {
        size_t middle = begin + (end - begin) / 2;
        if (ranges[middle].last < character)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin < KRAIT_ARRAY_LEN(ranges) && ranges[begin].first <= character &&
           ranges[begin].minor <= (version->number & 0xff);
}
