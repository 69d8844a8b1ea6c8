/* SPDX-License-Identifier: Apache-2.0
 *
 * Which functions a pattern selects. A pattern is a glob on the qualified name, the module, module and name, or the
 * file. A pattern without wildcards also selects all names that contain it as whole parts between dots or slashes:
 * app selects app.main and lib/app.py, but not list.append. "re:REGEX" is an extended regular expression, found
 * anywhere.
 */
#ifndef KRAIT_ANALYSIS_MATCH_H
#define KRAIT_ANALYSIS_MATCH_H

#include "base/arena.h"
#include "base/suggest.h"
#include "trace/trace.h"

struct krait_match;

/* `pattern` must outlive the match. -EINVAL where it is no regular expression. */
int krait_match_new(struct krait_match **out, const char *pattern, struct krait_err *err);
void krait_match_free(struct krait_match *match);

/* As it was given. */
const char *krait_match_pattern(const struct krait_match *match);

bool krait_match_text(const struct krait_match *match, const char *text);
bool krait_match_func(const struct krait_match *match, const char *module, const char *name,
                      const char *file);

/* Marks those of a trace, by id, that are called like the pattern: name, or module and name, are the text, or
 * else what the pattern means. -ENOENT: there is none; err names the nearest. */
int krait_match_mark(bool *meant, const struct krait_trace *trace, const struct krait_match *match,
                     struct krait_err *err);

/* Adds what those that are marked are called with their modules: slices of calls with recorded arguments have such names.
 * Returns 0 or -ENOMEM. */
int krait_match_labels(struct krait_strtab *labels, const struct krait_trace *trace, const bool *meant);

/* Takes a function's name into account, also with its module; `labels` then keeps that. */
void krait_match_suggest(struct krait_suggest *suggest, struct krait_arena *labels,
                         const struct krait_func *func);

/* The same of all functions of a trace; krait's own are never meant. */
void krait_match_suggest_any(struct krait_suggest *suggest, struct krait_arena *labels,
                             const struct krait_trace *trace);

#endif
