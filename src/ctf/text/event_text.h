/* SPDX-License-Identifier: Apache-2.0
 *
 * An event's fields alone, as lines of pretty.h have them behind the event's name:
 *
 *   { cpu_id = 0 }, { vtid = 4711 }, { n = 3, text = "hello" }
 */
#ifndef KRAIT_CTF_TEXT_EVENT_TEXT_H
#define KRAIT_CTF_TEXT_EVENT_TEXT_H

#include "ctf/text/line.h"

/* Appends the fields of the cursor's event, and passes them. `lines` keeps what was printed before, of one reader's
 * events. On failure `out` is as before and cursor->err is set, whose code is returned. */
int krait_event_text(struct krait_lines *lines, struct krait_ctf_cursor *cursor, struct krait_buf *out);

#endif
