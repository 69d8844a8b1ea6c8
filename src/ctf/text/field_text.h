/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers as their field classes show them, as babeltrace2's sink.text.pretty prints them.
 */
#ifndef KRAIT_CTF_TEXT_FIELD_TEXT_H
#define KRAIT_CTF_TEXT_FIELD_TEXT_H

#include "base/buf.h"
#include "ctf/meta/field.h"

/* An integer or enumeration (sign-extended already) in its base. */
void krait_text_int(struct krait_buf *out, const struct krait_fc *fc, uint64_t value);

#endif
