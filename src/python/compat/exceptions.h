/* SPDX-License-Identifier: Apache-2.0
 *
 * The exception tables of code objects, from Python 3.11 on (InternalDocs/exception_handling.md).
 */
#ifndef KRAIT_PYTHON_COMPAT_EXCEPTIONS_H
#define KRAIT_PYTHON_COMPAT_EXCEPTIONS_H

#include <stddef.h>
#include <stdint.h>

/* How many values an exception at the instruction at `offset` bytes would leave on the frame's stack; 0 also if the table has
 * no entry for it. The table may contain any bytes. */
uint32_t krait_exception_depth(const uint8_t *table, size_t size, int64_t offset);

/* Calls `each` for each entry of the table with its handler, in instructions of 2 bytes, and how many values are on the stack
 * when that begins. */
typedef void krait_handler_fn(void *ctx, uint32_t instruction, uint32_t depth);
void krait_exception_handlers(const uint8_t *table, size_t size, krait_handler_fn *each, void *ctx);

#endif
