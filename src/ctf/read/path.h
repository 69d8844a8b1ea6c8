/* SPDX-License-Identifier: Apache-2.0
 *
 * Names in paths to fields:
 *
 *   ports[2].high          as they are printed: without LTTng's leading underscore
 *   `my.name`.`a [b]`      in backquotes, as the metadata writes them, with any characters
 *
 * In backquotes \` is a backquote and \\ a backslash. If two members are printed alike (`_a` and `a` in CTF 1.8), the
 * name without quotes means the first.
 */
#ifndef KRAIT_CTF_READ_PATH_H
#define KRAIT_CTF_READ_PATH_H

#include "base/buf.h"
#include "ctf/meta/field.h"

/* Length of the name at the beginning of the path, quotes included: up to '.', '[' or the end. 0: there is no name, or
 * its quotes are not closed. */
size_t krait_path_name_len(const char *path);

/* The member or option of that name, of n bytes; KRAIT_NO_ID: there is none. */
uint32_t krait_path_member(const struct krait_fc *fc, const char *name, size_t n);

/* Appends a name by which a path finds member i of the struct. */
void krait_path_add(struct krait_buf *path, const struct krait_fc *fc, uint32_t i);

#endif
