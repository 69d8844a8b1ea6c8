/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of the preloaded library, which is in every program of a recording and uses libc alone.
 */
#ifndef KRAIT_NATIVE_NATIVE_H
#define KRAIT_NATIVE_NATIVE_H

#include <stdatomic.h>
#include <stdbool.h>

#define PUBLIC __attribute__((visibility("default")))

/* The function of that name that would have been called without this library; looked up once. NULL: there is none. */
void *krait_native_real(void *_Atomic *known, const char *name);

/* ---- environment.c ---- */

/* Reads the recording's variables, before main() begins. `is_python`: this process is one to be recorded, and
 * under --no-children the last. Returns the recording's path, or NULL: there is none. */
const char *krait_environment_begin(bool is_python);

/* ... which has turned out to be one to be recorded. */
void krait_environment_is_python(void);

#endif
