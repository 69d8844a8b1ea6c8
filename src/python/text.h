/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts of Python objects: UTF-8 without a NUL inside, of bounded length.
 *
 * A text that is cut ends with what KRAIT_TEXT_CUT says. All: GIL held; they add to a buffer, whose `failed` says
 * that memory was out; they keep no exception.
 */
#ifndef KRAIT_PYTHON_TEXT_H
#define KRAIT_PYTHON_TEXT_H

#include "base/buf.h"
#include "python/agent.h"

#define KRAIT_TEXT_CUT       "… [cut: %zd characters]" /* how long the whole one is */
#define KRAIT_TEXT_CUT_BYTES "… [cut: %zd bytes]"      /* of bytes that are written as their repr() */

/* What stands for none in the events of events.def. */
#define KRAIT_NO_TEXT   "-"
#define KRAIT_NO_FIELDS "{}"

/* What may run of the program's own code: __repr__ and __str__ of its types. */
enum krait_text_calls {
    KRAIT_TEXT_NO_CALLS,
    KRAIT_TEXT_CALLS,
    KRAIT_TEXT_AUDITED, /* none; and dicts, which may be an environment with secrets, by their size alone */
};

/* A str, at most `most` bytes as it is written: lone surrogates as \udcXX, a NUL as \x00. Nothing for another object. */
void krait_text_str(struct krait_buf *to, PyObject *str, size_t most);

/* The same of an attribute; nothing where there is none. */
void krait_text_add_attr(struct krait_buf *to, PyObject *obj, const char *name, size_t most);

/* str(obj). Where that raises, or may not be called, <its type>. A signal's handler may run and raise, if `calls`: an
 * exception that is no Exception (KeyboardInterrupt) is left set, and false returned. */
bool krait_text_of(struct krait_buf *to, PyObject *obj, enum krait_text_calls calls, size_t most);
/* The same of repr(obj). Both: an int of more than 4300 digits is <its type>, and of long bytes there is the begin's repr. */
bool krait_text_repr(struct krait_buf *to, PyObject *obj, enum krait_text_calls calls, size_t most);

/* As a JSON value: None, booleans, numbers, str, lists, tuples and dicts by what they hold, others by their repr() as a string.
 * At most some levels, items and bytes of each. Returns as krait_text_of. */
bool krait_text_json(struct krait_buf *to, PyObject *obj, enum krait_text_calls calls);

/* A JSON object that is made of its items, with keys as json.dumps() writes them. Counts the items that would make it longer than
 * `most`, and those whose keys json.dumps() refuses. */
struct krait_text_object {
    struct krait_buf *to;
    size_t most;
    enum krait_text_calls calls;
    Py_ssize_t left_out;
    bool open; /* it has items */
};
/* The first one opens the object, and the end an empty one. */
bool krait_text_object_add(struct krait_text_object *object, PyObject *key, PyObject *value);
void krait_text_object_end(struct krait_text_object *object);

/* An item of such an object where it is short and plain: "key":value, at most so many bytes, without a NUL. Returns its end; or
 * NULL, and what it has written is nothing. Nothing of the program's runs. hot path */
enum { KRAIT_TEXT_ITEM_BYTES = 264 };
char *krait_text_put_item(char *to, PyObject *key, PyObject *value);

/* The current exception goes, if it is an Exception; else it stays and false is returned. */
bool krait_text_swallow(void);

/* The fixed-size form, for names: "" for another object; cut without a word. */
void krait_text_name(PyObject *str, char *text, size_t size);
/* The name by which a class has its function `name`: it mangles private ones ("Private name mangling" in Python's reference). */
void krait_text_in_class(PyObject *cls, const char *name, char *text, size_t size);
void krait_text_attr(PyObject *obj, const char *name, char *text, size_t size);

#endif
