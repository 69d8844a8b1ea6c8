/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts that are made from the verbs' rows.
 */
#ifndef KRAIT_CMD_HELP_H
#define KRAIT_CMD_HELP_H

#include "cmd/cmd.h"

void krait_help_all(FILE *to);
/* The manual page of a verb, or of krait itself for "", in mdoc. -ENOENT when there is no such verb. */
int krait_help_man(const char *verb, FILE *to);
/* docs/reference.md. */
void krait_help_markdown(FILE *to);
/* docs/view_api.md. */
void krait_help_endpoints(FILE *to);
/* Completion for bash. */
void krait_help_completion(FILE *to);

#endif
