/* SPDX-License-Identifier: Apache-2.0
 *
 * What log.c, log_dropped.c and warnings.c share. Comes first in each: events have longer texts there than elsewhere.
 */
#ifndef KRAIT_PYTHON_LOG_INSIDE_H
#define KRAIT_PYTHON_LOG_INSIDE_H

#define KRAIT_PAYLOAD_MAX 20480 /* less than KRAIT_NOTE_BYTES, and more than the texts below can be */

#include "python/log.h"
#include "python/notes.h"
#include "python/patch.h"
#include "python/text.h"

enum {
    KRAIT_SAID_EXTRA_BYTES = 4096,
    KRAIT_SAID_FILE_BYTES = 1024,
    KRAIT_SAID_NAME_BYTES = 256,
};

/* What is known of a record that is to be recorded: texts that are none are empty. */
struct krait_said {
    struct krait_moment moment;
    long level;
    uint32_t line;
    struct krait_buf logger, message, func, file, task, exception, extra;
};

void krait_said_done(struct krait_said *said);
/* A text, or what stands for none: Babeltrace 2.0.4 prints the string before in the place of an empty one. */
const char *krait_said_text(const struct krait_buf *text, const char *none);

/* What --log asks of a logger. */
struct krait_logger {
    int32_t level;           /* the lowest that is recorded; INT32_MAX: none is */
    bool dropped;            /* those too that the program drops */
    const struct spec *open; /* the program has no level of its name so far; NULL: the level is known */
};

/* Whether --log asks for what the program drops of the logger. */
bool krait_log_wants_dropped(struct krait_interp *in, const char *logger, long level);

/* An int; 0 for another object. */
long krait_long_of(PyObject *value);

/* Parts of what is said. All return false with an exception set where it is to go on in the program: it is no
 * Exception, or a signal's handler raised it. */

/* `record` is asked for its message, if it is not NULL. */
bool krait_said_message(struct krait_said *said, PyObject *record, PyObject *msg, PyObject *args);
/* Of an exception; NULL and what is none says nothing. `traceback`: NULL is its own. */
bool krait_said_exception(struct krait_said *said, PyObject *exception, PyObject *traceback);
void krait_said_task(struct krait_said *said);

/* Writes it into this thread's ring; keeps errno. */
void krait_said_write(struct krait_interp *in, const struct krait_said *said);

/* While a record is made into text, what is logged below that goes to no handler. */
struct krait_log_mute {
    PyObject *outer; /* what was muted before; not owned */
};
struct krait_log_mute krait_log_mute(void);
void krait_log_unmute(struct krait_log_mute before);
bool krait_log_is_muted(void);

/* ---- log_dropped.c ---- */
extern const struct krait_patch_python krait_log_dropped_patches[];
extern const size_t krait_log_dropped_patch_count;

#endif
