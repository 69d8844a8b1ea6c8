/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of declared analyses, as -f names them: a file's path, or the name of one in the user's folder
 * ($XDG_CONFIG_HOME/krait/analyses, else ~/.config/krait/analyses), or of a built-in one.
 */
#ifndef KRAIT_CMD_ANALYSIS_FILES_H
#define KRAIT_CMD_ANALYSIS_FILES_H

#include "analysis/declared.h"
#include "cmd/select.h"

/* One that was found. */
struct krait_analysis_file {
    char *path; /* NULL: built in */
    struct krait_buf text;
};

void krait_analysis_file_done(struct krait_analysis_file *file);

/* The rules of its text, TOML or XML. `about` as for krait_declared_read. On -EBADMSG, stderr has rules->notes, which are
 * then empty: they say why. */
int krait_analysis_file_rules(const struct krait_analysis_file *file, const char *name,
                              struct krait_rules *rules, const char **about, struct krait_err *err);

/* Finds and reads one. -ENOENT: there is none; err names the nearest. */
int krait_analysis_file_read(struct krait_analysis_file *file, const char *name, struct krait_err *err);

/* The user's folder; NULL where there is none, or memory is out. To be freed. */
char *krait_analysis_folder(void);

/* Adds the rules of all that were named. Returns 0 or a negative errno with err set. */
int krait_analysis_rules(struct krait_rules *rules, const struct krait_opt_list *names,
                         struct krait_err *err);

/* Takes the lines out of `notes` that `told` has: krait_within told them. */
void krait_analysis_forget_told(struct krait_buf *notes, const struct krait_buf *told);

/* Makes lanes of what the files declare, as tracks of `onto`, whose tracks were found: none without files. What they
 * find comes from `trace`, which may be the same. Tells `verb`'s user what was not found. `kept` (may be NULL) gets the
 * rules. Returns 0 or a negative errno with err set. */
int krait_analysis_lanes(const struct krait_select *select, struct krait_trace *trace,
                         struct krait_trace *onto, const char *verb, struct krait_rules *kept,
                         struct krait_err *err);

#endif
