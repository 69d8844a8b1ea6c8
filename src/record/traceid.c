/* SPDX-License-Identifier: Apache-2.0 */
#include "record/traceid.h"

#include <string.h>
#include <sys/random.h>

int krait_traceid_new(uint8_t uuid[16], struct krait_err *err)
{
    if (getrandom(uuid, 16, 0) != 16)
        return krait_err_errno(err, "no random numbers");
    uuid[6] = (uuid[6] & 0x0f) | 0x40; /* RFC 4122, version 4 */
    uuid[8] = (uuid[8] & 0x3f) | 0x80;
    return 0;
}

static void boot_id(char out[37])
{
    KRAIT_AUTO_BUF text = { 0 };
    memset(out, '0', 36);
    out[36] = '\0';
    out[8] = out[13] = out[18] = out[23] = '-';
    if (krait_buf_read_file(&text, "/proc/sys/kernel/random/boot_id") == 0 && text.len >= 36)
        memcpy(out, text.data, 36);
}

void krait_traceid_clock(struct krait_tsdl_clock *to, const struct krait_clock *clock)
{
    *to = (struct krait_tsdl_clock){ .freq = clock->freq, .tsc = clock->counter };
    boot_id(to->uuid);
    krait_clock_offset(clock, &to->offset_s, &to->offset);
}
