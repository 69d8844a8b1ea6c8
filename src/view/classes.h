/* SPDX-License-Identifier: Apache-2.0
 *
 * Hues of the entries of tracks, as numbers. A function has the hue of its package (view/hues.h). A text of another
 * track has a class: the number of a row in krait's table of known names, or, after the last row, one of KRAIT_HUES
 * computed from the text. The page decides how each looks.
 */
#ifndef KRAIT_VIEW_CLASSES_H
#define KRAIT_VIEW_CLASSES_H

#include "analysis/wall.h"
#include "view/hues.h"

struct krait_class {
    const char *name; /* the name in the track: "blocked_disk" */
    /* of colour: "run", "system", "interrupt", "ready", "wait", "lock", "idle", "unknown", "lost", "off" */
    const char *role;
    uint8_t look; /* of krait_looks */
};

/* How states look in pictures: first those of enum krait_wall_state, then those that only the kernel distinguishes. */
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

/* Whether this is the state of a thread that has a CPU. */
bool krait_class_runs(uint8_t class);

/* The class of a text of a track. */
uint8_t krait_class_of(const char *text);

/* The hue of a text that is drawn as what it names, and not as a state. */
static inline uint8_t krait_class_hue(uint8_t class)
{
    return (uint8_t)((class < krait_class_count ? class : class - krait_class_count) % KRAIT_HUES);
}

/* Hues of all functions, by id. A package's weight is the number of its functions, so the same trace always looks
 * the same; a program's own packages weigh more than the standard library. NULL if memory is out; the caller frees
 * the result. */
uint8_t *krait_hues_of_funcs(const struct krait_trace *trace);

#endif
