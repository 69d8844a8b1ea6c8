/* SPDX-License-Identifier: Apache-2.0
 *
 * Hues of what tracks show, as numbers. For functions it is the hue of their package (view/hues.h). For the texts of
 * other tracks it is a class: the number of a row in krait's table of known names, or, after the last row, one of
 * KRAIT_HUES from the text. The page decides what each looks like.
 */
#ifndef KRAIT_VIEW_CLASSES_H
#define KRAIT_VIEW_CLASSES_H

#include "analysis/wall.h"
#include "view/hues.h"

struct krait_class {
    const char *name; /* as the track has it: "blocked_disk" */
    /* of colour: "run", "system", "interrupt", "ready", "wait", "lock", "idle", "unknown" */
    const char *role;
    uint8_t look; /* of krait_looks */
};

/* How states look in pictures: first those of enum krait_wall_state, then what only the kernel tells apart. */
enum krait_look {
    KRAIT_LOOK_SYSTEM = KRAIT_WALL_COUNT,
    KRAIT_LOOK_INTERRUPT,
    KRAIT_LOOK_IDLE,
    KRAIT_LOOKS,
};

struct krait_look_words {
    const char *class, *words; /* class: in timeline.css */
};

extern const struct krait_look_words krait_looks[KRAIT_LOOKS];

extern const struct krait_class krait_classes[];
extern const uint32_t krait_class_count;

/* Whether it is a state of a thread that has a CPU. */
bool krait_class_runs(uint8_t class);

/* Of a text of a track. */
uint8_t krait_class_of(const char *text);

/* Hues of all functions, by id; a package weighs as many functions as it has, so that the same trace always looks the
 * same, and a program's own packages more than the standard library. NULL when memory is out; the caller frees. */
uint8_t *krait_hues_of_funcs(const struct krait_trace *trace);

#endif
