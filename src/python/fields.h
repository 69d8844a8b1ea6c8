/* SPDX-License-Identifier: Apache-2.0
 *
 * What marks and spans say: a text, and named arguments as a JSON object. All: GIL held; what runs of the program's own code may
 * raise what is no Exception, as a signal's handler does: then they leave it set and say so.
 */
#ifndef KRAIT_PYTHON_FIELDS_H
#define KRAIT_PYTHON_FIELDS_H

#include "base/buf.h"
#include "event/payload.h"
#include "python/agent.h"

enum {
    KRAIT_MARK_TEXT_BYTES = 1024,
    KRAIT_FIELDS_BYTES = 1600, /* with a mark's text less than KRAIT_PAYLOAD_MAX */
    KRAIT_FIELDS_FEW = 1024,   /* of most objects: on the stack */
};

/* A str as it stands in the object, if it has no NUL and is not too long; else as text in `own`. `is_whole` is false where it
 * raised. The text lives as long as `obj` and `own`. */
const char *krait_fields_text(PyObject *obj, struct krait_buf *own, size_t most, bool *is_whole);

/* Adds a JSON object of named arguments, or of a dict. Returns false where a value raised. */
bool krait_fields_add(struct krait_buf *to, PyObject *const *values, PyObject *names);
bool krait_fields_add_dict(struct krait_buf *to, PyObject *dict);

/* The object as text; one without items if there was no memory. */
const char *krait_fields_json(const struct krait_buf *fields);

/* Writes the payload of a user_mark; `names` may be NULL. Returns its bytes; 0 where something raised. hot path */
size_t krait_fields_put_mark(uint8_t payload[KRAIT_PAYLOAD_MAX], PyObject *text, PyObject *const *values,
                             PyObject *names);

#endif
