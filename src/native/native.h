/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the preloaded library share. The library is in every program of a recording and uses only libc.
 */
#ifndef KRAIT_NATIVE_NATIVE_H
#define KRAIT_NATIVE_NATIVE_H

#include <stdatomic.h>
#include <stdbool.h>

#define PUBLIC __attribute__((visibility("default")))

/* The function that would be called without this library; looked up once. NULL: there is none. */
void *krait_native_real(void *_Atomic *known, const char *name);

/* ---- environment.c ---- */

/* Reads the recording's variables, before main() begins. `is_python`: this process is to be recorded, and under
 * --no-children it is the last one. Returns the recording's path, or NULL: there is no recording. */
const char *krait_environment_begin(bool is_python);

/* Tells that this process turned out to be one to record. */
void krait_environment_is_python(void);

#endif
