/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside of krait ctl: what it prints of a collector's answer (record/ctl.h).
 */
#ifndef KRAIT_CMD_CTL_H
#define KRAIT_CMD_CTL_H

#include "base/json_read.h"
#include "view/table.h"

/* Each appends text to `out`, from an answer that may lack anything. Return 0 or -ENOMEM. */
int ctl_print_status(const struct krait_json *status, const struct krait_table_look *look,
                     struct krait_buf *out);
/* One line. */
int ctl_print_snapshot(const struct krait_json *snapshot, struct krait_buf *out);
int ctl_print_set(const struct krait_json *status, struct krait_buf *out);
/* `verb`: start or stop. One line, and one for each process that has not followed. */
int ctl_print_switch(const struct krait_json *status, const char *verb, struct krait_buf *out);

#endif
