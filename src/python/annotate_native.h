/* SPDX-License-Identifier: Apache-2.0
 *
 * What C and C++ code of the program says about itself, by include/krait/annotate.h. It may be called on any thread,
 * without the GIL: nothing of Python is touched, and nothing of a krait_interp.
 */
#ifndef KRAIT_PYTHON_ANNOTATE_NATIVE_H
#define KRAIT_PYTHON_ANNOTATE_NATIVE_H

#include <stdbool.h>

/* Tells all loaded objects that include the header who records, or that nobody does. */
void krait_native_notes_offer(bool records);
/* Waits until no thread is in here, a second at most: after krait_agent.running has become 0. */
void krait_native_notes_wait(void);
/* In a forked child. Async-signal-safe. */
void krait_native_notes_forked(void);

#endif
