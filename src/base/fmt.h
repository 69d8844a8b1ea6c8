/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers as people read and write them. Each writer fills `buf` (always terminated, KRAIT_FMT_SIZE is
 * enough) and returns it. Plain ASCII.
 */
#ifndef KRAIT_BASE_FMT_H
#define KRAIT_BASE_FMT_H

#include "base/buf.h"
#include "base/err.h"

enum { KRAIT_FMT_SIZE = 64 };

/* Behind names of functions whose self time holds that of functions that --max-overhead has dropped. */
#define KRAIT_HOLDS_DROPPED " [+dropped]"

/* Four digits and a unit: "999 ns", "1.234 us", "12.34 ms", "123.4 s"; "27.30 min" from 10 minutes on, "2.50 h" from
 * 90, "4.17 d" from 100 hours. */
char *krait_fmt_ns(char *buf, uint64_t ns);
/* "1,234,567" */
char *krait_fmt_count(char *buf, uint64_t n);
/* "1 call", "2,345 calls", "2 processes", "3 branches". */
char *krait_fmt_counted(char *buf, uint64_t n, const char *noun);
/* "999 B", "1.2 KiB", "34.5 MiB" */
char *krait_fmt_bytes(char *buf, uint64_t bytes);
/* "12.3%"; "<0.1%" for smaller shares; "0.0%" for 0. */
char *krait_fmt_share(char *buf, uint64_t part, uint64_t whole);

/* Text from a trace made harmless for a terminal: control characters and bytes that are not UTF-8 become \n,
 * \t or \xNN. Appends to `out`. */
void krait_fmt_safe(struct krait_buf *out, const char *text);

/* A command line without the folder of its program: "python3 -m pip" from "/usr/bin/python3 -m pip". Returns a
 * pointer into `command`. */
const char *krait_fmt_command(const char *command);

/* "1.5s", "200ms", "80us", "5ns", "2min", or seconds without a unit. -EINVAL if it is none of these or
 * negative. */
int krait_parse_ns(const char *text, uint64_t *ns);

#endif
