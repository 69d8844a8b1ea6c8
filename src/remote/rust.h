/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of Rust functions, from both kinds of symbols that rustc writes:
 *
 *     _ZN4core3fmt5write17h0123456789abcdefE      legacy: numbers of bytes and parts, the last of which is a hash
 *     _RNvNtC4core3fmt5write                      v0: RFC 2603; a tree, each node with a letter before it
 *       N   value      of   N   type      of   C   crate 4core   called 3fmt   called 5write
 */
#ifndef KRAIT_REMOTE_RUST_H
#define KRAIT_REMOTE_RUST_H

#include "base/buf.h"

enum { KRAIT_RUST_LONGEST = 64 * 1024 };

/* Appends the name without hashes: <app::Cart as core::iter::Iterator>::next. Returns what is behind in the symbol: a compiler's
 * suffix or nothing. NULL: it is no such symbol, or its name has more than KRAIT_RUST_LONGEST bytes; then `out` is no name. */
const char *krait_rust_name(struct krait_buf *out, const char *symbol);

#endif
