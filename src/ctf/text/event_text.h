/* SPDX-License-Identifier: Apache-2.0
 *
 * Only the fields of an event, as pretty.h prints them after the event's name:
 *
 *   { cpu_id = 0 }, { vtid = 4711 }, { n = 3, text = "hello" }
 */
#ifndef KRAIT_CTF_TEXT_EVENT_TEXT_H
#define KRAIT_CTF_TEXT_EVENT_TEXT_H

#include "ctf/text/line.h"

/* Appends the fields of the cursor's event, and skips them. `lines` keeps texts from event to event, for one reader. On
 * failure `out` is unchanged, cursor->err is set, and its code is returned. */
int krait_event_text(struct krait_lines *lines, struct krait_ctf_cursor *cursor, struct krait_buf *out);

#endif
