/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of functions: "json.encoder.JSONEncoder.default", the symbol of a native one, "read.constprop.0", the name of one of C++ or
 * Rust, "std::vector<int>::reserve", and where there is no symbol the file and the address in it, "libz.so.1.2.13+0x5d80". Behind
 * a blank may follow "(C)".
 */
#ifndef KRAIT_BASE_SYMBOL_H
#define KRAIT_BASE_SYMBOL_H

#include "base/buf.h"

/* If the name is an address in a file, returns where the address begins, and sets *stem to the bytes of the file's name without
 * version and ending: of "libz" here, of "libpython3.11" where it is Python's own. Otherwise returns 0. */
size_t krait_symbol_address(const char *name, size_t n, size_t *stem);

/* Appends what says most of a name in a narrow place: the last component, also of "std::vector<int>::reserve"; or stem and address,
 * "libz+0x5d80". A symbol that ends with a compiler's suffix stays whole, and a lambda has the function that it is in. */
void krait_symbol_brief(struct krait_buf *out, const char *name);

/* Where the first arguments of a template are in a C++ or Rust name, from byte `from` on, without their brackets: sets *begin and
 * *end. False if there are none; Python's <locals> are none. */
bool krait_symbol_arguments(const char *name, size_t from, size_t *begin, size_t *end);

#endif
