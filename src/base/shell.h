/* SPDX-License-Identifier: Apache-2.0
 *
 * Words of a command line that a person pastes into a shell.
 */
#ifndef KRAIT_BASE_SHELL_H
#define KRAIT_BASE_SHELL_H

#include "base/buf.h"

/* Appends a file's name as one word of a command: unquoted if that is safe, otherwise in single quotes. A name with
 * control characters or invalid UTF-8 is written in bash's $'...', as \n, \t or \xNN. A name that begins with a dash
 * gets ./ before it, so that it is not taken for an option. */
void krait_shell_file(struct krait_buf *out, const char *name);

#endif
