/* SPDX-License-Identifier: Apache-2.0
 *
 * Names in paths to fields:
 *
 *   ports[2].high          as they are shown: LTTng's leading underscore is left out
 *   `my.name`.`a [b]`      in backquotes as the metadata writes them, whatever is in them
 *
 * In backquotes \` is a backquote and \\ a backslash. Where two members are shown alike (`_a` and `a` of CTF 1.8),
 * the name without quotes is the first's.
 */
#ifndef KRAIT_CTF_READ_PATH_H
#define KRAIT_CTF_READ_PATH_H

#include "base/buf.h"
#include "ctf/meta/field.h"

/* Bytes of the name that the path begins with, with its quotes: up to '.', '[' or the end. 0: there is none, or its
 * quotes have no end. */
size_t krait_path_name_len(const char *path);

/* The member or option of that name, of n bytes; KRAIT_NO_ID: there is none. */
uint32_t krait_path_member(const struct krait_fc *fc, const char *name, size_t n);

/* Appends a name that leads to member i of the struct. */
void krait_path_add(struct krait_buf *path, const struct krait_fc *fc, uint32_t i);

#endif
