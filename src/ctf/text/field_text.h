/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints numbers by their field classes, as babeltrace2's sink.text.pretty does.
 */
#ifndef KRAIT_CTF_TEXT_FIELD_TEXT_H
#define KRAIT_CTF_TEXT_FIELD_TEXT_H

#include "base/buf.h"
#include "ctf/meta/field.h"

/* An integer or enumeration (sign-extended already) in its base. */
void krait_text_int(struct krait_buf *out, const struct krait_fc *fc, uint64_t value);

#endif
