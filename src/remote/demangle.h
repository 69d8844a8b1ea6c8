/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of functions as their source has them, from the symbols of ELF files.
 */
#ifndef KRAIT_REMOTE_DEMANGLE_H
#define KRAIT_REMOTE_DEMANGLE_H

#include "base/buf.h"

/* Appends a symbol's name: of a C++ function (Itanium C++ ABI, 5.1) without parameters and return type, of a Rust function
 * without hashes (rust.h). Other symbols, and those that are damaged or take more than 64 KiB, stay as they are. What
 * compilers add for parts of functions (.cold, .part.0) stays too; the version of a symbol (name@@VERSION) goes. */
void krait_demangle(struct krait_buf *out, const char *symbol);

#endif
