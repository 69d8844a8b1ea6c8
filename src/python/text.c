/* SPDX-License-Identifier: Apache-2.0 */
#include "python/text.h"

#include "base/json.h"
#include "python/codes.h"
#include "python/compat/running.h"

#include <string.h>

enum {
    LEVELS = 4,          /* of lists and dicts in each other */
    ITEMS = 32,          /* of each */
    VALUE_BYTES = 512,   /* of each string */
    NESTED_BYTES = 2048, /* after which a list or dict ends */
};

/* ---- str ---- */

/* New reference to bytes, or NULL. No more than `most` characters are encoded. */
static PyObject *encode(PyObject *str, size_t most)
{
    bool is_long = (size_t)PyUnicode_GetLength(str) > most;
    PyObject *head = is_long ? PyUnicode_Substring(str, 0, (Py_ssize_t)most) : str;
    PyObject *bytes = head ? PyUnicode_AsEncodedString(head, "utf-8", "backslashreplace") : NULL;
    if (is_long)
        Py_XDECREF(head);
    PyErr_Clear();
    return bytes;
}

static void add_without_nul(struct krait_buf *to, const char *s, size_t n)
{
    const char *nul;
    while ((nul = memchr(s, '\0', n))) {
        krait_buf_add(to, s, (size_t)(nul - s));
        krait_buf_str(to, "\\x00");
        n -= (size_t)(nul + 1 - s);
        s = nul + 1;
    }
    krait_buf_add(to, s, n);
}

void krait_text_str(struct krait_buf *to, PyObject *str, size_t most)
{
    PyObject *bytes = str && PyUnicode_Check(str) ? encode(str, most) : NULL;
    if (!bytes)
        return;
    const char *s = PyBytes_AsString(bytes);
    size_t n = (size_t)PyBytes_Size(bytes), whole = krait_utf8_whole(s, n, most);
    Py_ssize_t length = PyUnicode_GetLength(str);
    add_without_nul(to, s, whole);
    if (whole < n || (size_t)length > most)
        krait_buf_fmt(to, KRAIT_TEXT_CUT, length);
    Py_DECREF(bytes);
}

void krait_text_add_attr(struct krait_buf *to, PyObject *obj, const char *name, size_t most)
{
    PyObject *value = PyObject_GetAttrString(obj, name);
    krait_text_str(to, value, most);
    Py_XDECREF(value);
    PyErr_Clear();
}

void krait_text_name(PyObject *str, char *text, size_t size)
{
    text[0] = '\0';
    PyObject *bytes = str && PyUnicode_Check(str) ? encode(str, size) : NULL;
    if (!bytes)
        return;
    const char *s = PyBytes_AsString(bytes);
    size_t n = krait_utf8_whole(s, strlen(s), size - 1);
    memcpy(text, s, n);
    text[n] = '\0';
    Py_DECREF(bytes);
}

void krait_text_in_class(PyObject *cls, const char *name, char *text, size_t size)
{
    char owner[256] = "";
    size_t n = strlen(name);
    bool is_private = strncmp(name, "__", 2) == 0 && (n < 4 || strcmp(name + n - 2, "__") != 0);
    PyObject *its = is_private ? krait_type_attr(cls, "__name__") : NULL;
    krait_text_name(its, owner, sizeof(owner));
    Py_XDECREF(its);
    snprintf(text, size, "%s%s%s", is_private ? "_" : "", owner + strspn(owner, "_"), name);
}

void krait_text_attr(PyObject *obj, const char *name, char *text, size_t size)
{
    PyObject *value = PyObject_GetAttrString(obj, name);
    krait_text_name(value, text, size);
    Py_XDECREF(value);
    PyErr_Clear();
}

/* ---- str() and repr() ---- */

bool krait_text_swallow(void)
{
    PyObject *raised = PyErr_Occurred(); /* borrowed */
    if (raised && !PyErr_GivenExceptionMatches(raised, PyExc_Exception))
        return false;
    PyErr_Clear();
    return true;
}

/* Whether str() and repr() of it run C code alone. Containers may hold anything. */
static bool is_plain(PyObject *obj)
{
    const PyTypeObject *type = Py_TYPE(obj);
    return obj == Py_None || type == &PyUnicode_Type || type == &PyLong_Type || type == &PyFloat_Type ||
           type == &PyBool_Type || type == &PyBytes_Type || type == &PyComplex_Type;
}

static void add_type(struct krait_buf *to, PyObject *obj)
{
    char name[200];
    krait_text_attr((PyObject *)Py_TYPE(obj), "__name__", name, sizeof(name));
    krait_buf_fmt(to, "<%s>", name);
}

static bool add_by(PyObject *(*function)(PyObject *), struct krait_buf *to, PyObject *obj,
                   enum krait_text_calls calls, size_t most)
{
    PyObject *str = calls == KRAIT_TEXT_CALLS || is_plain(obj) ? function(obj) : NULL;
    bool swallowed = str || krait_text_swallow();
    if (str)
        krait_text_str(to, str, most);
    else if (swallowed)
        add_type(to, obj);
    Py_XDECREF(str);
    return swallowed;
}

bool krait_text_of(struct krait_buf *to, PyObject *obj, enum krait_text_calls calls, size_t most)
{
    return add_by(PyObject_Str, to, obj, calls, most);
}

bool krait_text_repr(struct krait_buf *to, PyObject *obj, enum krait_text_calls calls, size_t most)
{
    return add_by(PyObject_Repr, to, obj, calls, most);
}

/* ---- JSON ---- */

static bool add_json(struct krait_buf *to, PyObject *obj, enum krait_text_calls calls, int level);

static bool add_quoted(struct krait_buf *to, PyObject *obj, enum krait_text_calls calls)
{
    KRAIT_AUTO_BUF text = { 0 };
    bool done = true;
    if (PyUnicode_Check(obj))
        krait_text_str(&text, obj, VALUE_BYTES);
    else
        done = krait_text_repr(&text, obj, calls, VALUE_BYTES);
    krait_json_str(to, text.data ? text.data : "", text.len);
    to->failed |= text.failed;
    return done;
}

/* int and float are JSON's numbers as Python writes them, but for inf and nan, and for an int that is too long to be
 * written (sys.set_int_max_str_digits). */
static bool add_number(struct krait_buf *to, PyObject *obj)
{
    KRAIT_AUTO_BUF text = { 0 };
    krait_text_repr(&text, obj, KRAIT_TEXT_NO_CALLS, VALUE_BYTES);
    const char *s = text.data ? text.data : "";
    if (strspn(s, "+-.0123456789e") == text.len)
        krait_buf_str(to, s);
    else
        krait_json_str(to, s, text.len);
    to->failed |= text.failed;
    return true;
}

static void add_rest(struct krait_buf *to, Py_ssize_t left)
{
    char text[64];
    snprintf(text, sizeof(text), "[%zd more]", left);
    krait_json_cstr(to, text);
}

static bool add_list(struct krait_buf *to, PyObject *list, enum krait_text_calls calls, int level)
{
    bool whole = true;
    krait_buf_char(to, '[');
    Py_ssize_t i = 0;
    for (; whole && i < PySequence_Size(list) && i < ITEMS && to->len < NESTED_BYTES; i++) {
        PyObject *item = PySequence_GetItem(list, i); /* a repr may have shortened it */
        krait_json_item(to, "");
        whole = !item || add_json(to, item, calls, level + 1);
        Py_XDECREF(item);
    }
    if (i < PySequence_Size(list)) {
        krait_json_item(to, "");
        add_rest(to, PySequence_Size(list) - i);
    }
    krait_buf_char(to, ']');
    return whole;
}

static bool add_item(struct krait_text_object *object, PyObject *key, PyObject *value, int level)
{
    KRAIT_AUTO_BUF name = { 0 }, item = { 0 };
    krait_text_str(&name, key, VALUE_BYTES);
    krait_json_str(&item, name.data ? name.data : "", name.len);
    krait_buf_char(&item, ':');
    Py_INCREF(value); /* its repr may change what it is in */
    bool whole = add_json(&item, value, object->calls, level + 1);
    Py_DECREF(value);
    if (object->to->len + item.len < object->most) {
        krait_buf_char(object->to, object->open ? ',' : '{');
        krait_buf_add(object->to, item.data, item.len);
        object->open = true;
    } else {
        object->left_out++;
    }
    object->to->failed |= item.failed | name.failed;
    return whole;
}

/* A short str in quotes, by its own bytes; false where they cannot be had. */
static bool quote_quickly(struct krait_buf *to, PyObject *str)
{
    Py_ssize_t n = 0;
    bool is_short = PyUnicode_Check(str) && PyUnicode_GetLength(str) <= VALUE_BYTES / 4;
    const char *s = is_short && krait_compat.utf8 ? krait_compat.utf8(str, &n) : NULL;
    if (is_short && !s)
        PyErr_Clear(); /* of a lone surrogate */
    if (s && KRAIT_LIKELY(krait_json_plain(to, s, (size_t)n)))
        return true;
    if (!s || memchr(s, '\0', (size_t)n))
        return false;
    krait_json_str(to, s, (size_t)n);
    return true;
}

/* What is written without any object made for it: None, booleans, short texts and numbers. */
static bool add_quickly(struct krait_buf *to, PyObject *value)
{
    const PyTypeObject *type = Py_TYPE(value);
    if (type == &PyUnicode_Type)
        return quote_quickly(to, value);
    if (type == &PyLong_Type) {
        int overflow;
        long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
        if (number < 0)
            krait_buf_char(to, '-');
        krait_json_u64(to, number < 0 ? -(uint64_t)number : (uint64_t)number);
        return !overflow;
    }
    bool is_word = value == Py_None || type == &PyBool_Type;
    if (is_word)
        krait_buf_str(to, value == Py_None ? "null" : value == Py_True ? "true" : "false");
    return is_word;
}

bool krait_text_object_add(struct krait_text_object *object, PyObject *key, PyObject *value)
{
    struct krait_buf *to = object->to;
    size_t before = to->len;
    krait_buf_char(to, object->open ? ',' : '{');
    bool is_quick = quote_quickly(to, key);
    krait_buf_char(to, ':');
    if (is_quick && add_quickly(to, value) && to->len < object->most) {
        object->open = true;
        return true;
    }
    if (to->len) /* it has memory */
        to->data[to->len = before] = '\0';
    return add_item(object, key, value, 0);
}

void krait_text_object_end(struct krait_text_object *object)
{
    if (object->left_out) {
        krait_buf_str(object->to, object->open ? KRAIT_JSON_NEXT("…") : KRAIT_JSON_FIRST("…"));
        add_rest(object->to, object->left_out);
    } else if (!object->open) {
        krait_buf_char(object->to, '{');
    }
    krait_buf_char(object->to, '}');
}

static bool add_dict(struct krait_buf *to, PyObject *dict, enum krait_text_calls calls, int level)
{
    struct krait_text_object object = { .to = to, .most = NESTED_BYTES, .calls = calls };
    bool whole = true;
    Py_ssize_t at = 0, n = 0;
    PyObject *key, *value;
    for (; whole && n < ITEMS && PyDict_Next(dict, &at, &key, &value); n++) {
        if (PyUnicode_Check(key))
            whole = add_item(&object, key, value, level);
    }
    object.left_out = KRAIT_MAX(PyDict_Size(dict) - n, (Py_ssize_t)0);
    krait_text_object_end(&object);
    return whole;
}

static bool add_json(struct krait_buf *to, PyObject *obj, enum krait_text_calls calls, int level)
{
    const PyTypeObject *type = Py_TYPE(obj);
    if (obj == Py_None)
        krait_buf_str(to, "null");
    else if (type == &PyBool_Type)
        krait_buf_str(to, obj == Py_True ? "true" : "false");
    else if (type == &PyLong_Type || type == &PyFloat_Type)
        return add_number(to, obj);
    else if ((type == &PyList_Type || type == &PyTuple_Type) && level < LEVELS)
        return add_list(to, obj, calls, level);
    else if (type == &PyDict_Type && calls == KRAIT_TEXT_AUDITED)
        krait_buf_fmt(to, "\"{%zd items}\"", PyDict_Size(obj));
    else if (type == &PyDict_Type && level < LEVELS)
        return add_dict(to, obj, calls, level);
    else
        return add_quoted(to, obj, calls);
    return true;
}

bool krait_text_json(struct krait_buf *to, PyObject *obj, enum krait_text_calls calls)
{
    return add_json(to, obj, calls, 0);
}
