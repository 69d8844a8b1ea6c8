/* SPDX-License-Identifier: Apache-2.0
 *
 * Words of a command line that a person pastes into a shell.
 */
#ifndef KRAIT_BASE_SHELL_H
#define KRAIT_BASE_SHELL_H

#include "base/buf.h"

/* Appends a file's name as one word of a command: plain where a shell takes it as it stands, else in single
 * quotes; and with what a terminal could obey, or is not UTF-8, in bash's $'...', as \n, \t or \xNN. What
 * begins with a dash gets ./ before it, lest it is taken for an option. */
void krait_shell_file(struct krait_buf *out, const char *name);

#endif
