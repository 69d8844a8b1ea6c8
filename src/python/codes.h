/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the id of a function by its address. GIL held everywhere.
 */
#ifndef KRAIT_PYTHON_CODES_H
#define KRAIT_PYTHON_CODES_H

#include "python/agent.h"
#include "python/compat/running.h"

/* Addresses are multiples of at least 16; the multiplication moves the other bits to the top. */
static inline uint32_t krait_code_hash(const struct krait_interp *in, const void *key)
{
    return (uint32_t)(((uintptr_t)key >> 4) * 0x9e3779b97f4a7c15ull >> in->code_shift);
}

struct krait_code *krait_code_probe(struct krait_interp *in, const void *key);

/* The same as krait_code_find, but never moves slots. */
struct krait_code *krait_code_peek(const struct krait_interp *in, const void *key);

/* The function's slot, or NULL; valid until the next look-up. Hot path: one multiplication and one load if it is in its
 * own slot. */
static inline struct krait_code *krait_code_find(struct krait_interp *in, const void *key)
{
    struct krait_code *slot = &in->codes[krait_code_hash(in, key)];
    return KRAIT_LIKELY(slot->key == key) ? slot : krait_code_probe(in, key);
}

/* Whether it was looked at and needs nothing more. */
static inline bool krait_code_is_defined(const struct krait_code *slot)
{
    return slot && (slot->id || slot->flags & KRAIT_CODE_OMIT);
}

/* Its id; 0 if it must be defined first, or is not recorded. */
static inline uint32_t krait_code_id(struct krait_interp *in, const void *key)
{
    const struct krait_code *slot = krait_code_find(in, key);
    return KRAIT_LIKELY(slot != NULL) ? slot->id : 0;
}

/* Gives what has this address an id for a while, without a definition; 0: takes it back. */
void krait_code_lend(struct krait_interp *in, const void *key, uint32_t id);

/* Finds the addresses of krait's own functions beforehand. Later this could deadlock: the loader holds a lock while it
 * runs the constructors of a library, and these may wait for the GIL. */
void krait_codes_find_own(void);

int krait_codes_init(struct krait_interp *in);
/* The interpreter has ended: empties the table. */
void krait_codes_done(struct krait_interp *in);

/* Defines a function at its first call: finds its name, applies the filters, assigns an id, writes code:define. Keeps
 * the current exception. Returns its slot; NULL if memory or the ring is full (then the next call tries again). `frame`
 * is a frame of the function, or NULL; borrowed. */
struct krait_code *krait_code_define(struct krait_interp *in, PyObject *code, PyObject *frame);
struct krait_code *krait_code_define_c(struct krait_interp *in, const void *key, PyObject *callable);
/* The id of an exception's type, whose address is the key; 0 if it cannot be defined now. */
uint32_t krait_code_exception(struct krait_interp *in, PyObject *exception);

enum {
    KRAIT_NEW_OF = 2, /* added to a type's address: the slot of its __new__ */
};

const void *krait_code_key_rare(PyObject *callable);

/* The __new__ of all types share one method definition, so the key is the type. That definition is never in the table,
 * so the hooks, which look there first, come here. */
static inline const void *krait_code_key_new(const void *def, PyObject *callable)
{
    if (KRAIT_LIKELY(def != krait_compat.new_def))
        return def;
    return (const char *)krait_at(callable, KRAIT_CFUNCTION_SELF) + KRAIT_NEW_OF;
}

/* The key of a function written in C; NULL for every other callable. A function is whatever PyEval_SetProfile's c_call
 * counts, so that all versions agree (docs/calls.md): builtin functions and methods of builtin types, whose keys are
 * their method definitions. From 3.12 on also functions of types that extension modules define, which are their own
 * keys. Classes, objects with a __call__ and slot wrappers are no functions; their Python functions are recorded
 * themselves. The two most common kinds are handled here. Hot path. */
static inline const void *krait_code_key(PyObject *callable)
{
    const PyTypeObject *type = Py_TYPE(callable);
    if (type == krait_compat.function_type)
        return NULL;
    if (type == krait_compat.cfunction_type)
        return krait_code_key_new(krait_at(callable, KRAIT_CFUNCTION_ML), callable);
    if (type == krait_compat.method_descr_type)
        return krait_at(callable, KRAIT_METHOD_DESCR_DEF);
    return krait_code_key_rare(callable);
}

/* An attribute that `type` itself defines, of a class: what its metaclass says is the program's own code, which is not
 * to run here. New reference or NULL. */
PyObject *krait_type_attr(PyObject *cls, const char *name);

/* A new id for what is no function of the program; 0 when that is not possible now. */
uint32_t krait_code_define_name(struct krait_interp *in, enum krait_event_enum_value kind, const char *module,
                                const char *name);

/* The id of a name that events refer to; 0 when that is not possible now. A name that comes after very many has that of
 * "(more names)", since a program that makes names of numbers would fill its memory. */
uint32_t krait_code_name(struct krait_interp *in, const char *name);
/* The same; 0 where it was not asked for before. */
uint32_t krait_code_name_known(const struct krait_interp *in, const char *name);

/* With --call-sites: the id of the function `id` at the place that calls it. `caller` is the calling frame, borrowed,
 * or NULL. `key` is that of a C callable, NULL for the code object `callee`. */
uint32_t krait_code_at_site(struct krait_interp *in, uint32_t id, const void *key, PyObject *callee,
                            PyObject *caller);

/* Records arguments of a function, if it is defined already and recorded, from now on: `which` is as of krait_args_of. */
void krait_code_add_args(struct krait_interp *in, PyObject *code, uint64_t which);

/* After fork: every id must be defined again. */
void krait_codes_forget_ids(struct krait_interp *in);
/* For another recording: the same, and what is excluded is decided again too. */
void krait_codes_forget(struct krait_interp *in);

#endif
