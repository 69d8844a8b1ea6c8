/* SPDX-License-Identifier: Apache-2.0
 *
 * Hues of what tracks show, as numbers. For functions it is the hue of their package (view/hues.h). For the texts of
 * other tracks it is a class: the number of a row in krait's table of known names, or, after the last row, one of
 * KRAIT_HUES from the text. The page decides what each looks like.
 */
#ifndef KRAIT_VIEW_CLASSES_H
#define KRAIT_VIEW_CLASSES_H

#include "trace/trace.h"
#include "view/hues.h"

struct krait_class {
    const char *name; /* as the track has it: "blocked_disk" */
    /* of colour: "run", "system", "interrupt", "ready", "wait", "lock", "idle", "unknown" */
    const char *role;
};

extern const struct krait_class krait_classes[];
extern const uint32_t krait_class_count;

/* Of a text of a track. */
uint8_t krait_class_of(const char *text);

/* Hues of all functions, by id; a package weighs as many functions as it has, so that the same trace always looks the
 * same, and a program's own packages more than the standard library. NULL when memory is out; the caller frees. */
uint8_t *krait_hues_of_funcs(const struct krait_trace *trace);

#endif
