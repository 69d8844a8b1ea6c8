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
    SHORT_BYTES = 128,   /* of a string that is written the short way */
    NESTED_BYTES = 2048, /* after which a list or dict ends */
};

_Static_assert(KRAIT_TEXT_ITEM_BYTES >= SHORT_BYTES + 2 + 1 + SHORT_BYTES + 2, "two strings and a colon");

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

/* Of n bytes so many as take at most `most` with each NUL written as four. */
static size_t fit(const char *s, size_t n, size_t most)
{
    enum { MORE = sizeof("\\x00") - 2 };
    size_t whole = krait_utf8_whole(s, n, most), end = 0;
    const char *nul;
    for (; (nul = memchr(s + end, '\0', whole - end)); most -= MORE) {
        end = (size_t)(nul + 1 - s);
        if (end + MORE > most)
            return end - 1;
        whole = krait_utf8_whole(s, whole, most - MORE);
    }
    return whole;
}

/* `cut` says, where it is cut, that the whole is so long. */
static void add_str(struct krait_buf *to, PyObject *str, size_t most, const char *cut, Py_ssize_t length)
{
    PyObject *bytes = str && PyUnicode_Check(str) ? encode(str, most) : NULL;
    if (!bytes)
        return;
    const char *s = PyBytes_AsString(bytes);
    size_t n = (size_t)PyBytes_Size(bytes), whole = fit(s, n, most);
    add_without_nul(to, s, whole);
    if (whole < n || (size_t)PyUnicode_GetLength(str) > most)
        krait_buf_fmt(to, cut, length);
    Py_DECREF(bytes);
}

void krait_text_str(struct krait_buf *to, PyObject *str, size_t most)
{
    if (str && PyUnicode_Check(str))
        add_str(to, str, most, KRAIT_TEXT_CUT, PyUnicode_GetLength(str));
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

/* Whether it has more digits than Python writes of its own accord (sys.set_int_max_str_digits): the time is quadratic. */
static bool is_long_int(PyObject *obj)
{
    enum { MOST_BITS = 14284 }; /* 4300 digits */
    int overflow = 0;
    if (!PyLong_Check(obj) || PyLong_AsLongLongAndOverflow(obj, &overflow) != -1 || !overflow)
        return false;
    PyObject *bits = PyObject_CallMethod((PyObject *)&PyLong_Type, "bit_length", "O", obj);
    bool is_long = !bits || PyLong_AsLongLong(bits) > MOST_BITS;
    Py_XDECREF(bits);
    PyErr_Clear();
    return is_long;
}

/* The begin of bytes that would be cut anyway: the repr of all may take more memory than the program has. */
static bool add_long_bytes(struct krait_buf *to, PyObject *obj, enum krait_text_calls calls, size_t most)
{
    bool is_bytes = Py_TYPE(obj) == &PyBytes_Type;
    bool is_array = Py_TYPE(obj) == &PyByteArray_Type && calls == KRAIT_TEXT_CALLS;
    Py_ssize_t n = is_bytes ? PyBytes_Size(obj) : is_array ? PyByteArray_Size(obj) : 0;
    if (n <= (Py_ssize_t)most)
        return false;
    PyObject *begin = is_bytes ? PyBytes_FromStringAndSize(PyBytes_AsString(obj), (Py_ssize_t)most)
                               : PyByteArray_FromStringAndSize(PyByteArray_AsString(obj), (Py_ssize_t)most);
    PyObject *repr = begin ? PyObject_Repr(begin) : NULL;
    add_str(to, repr, most, KRAIT_TEXT_CUT_BYTES, n);
    Py_XDECREF(repr);
    Py_XDECREF(begin);
    PyErr_Clear();
    return true;
}

static bool add_by(PyObject *(*function)(PyObject *), struct krait_buf *to, PyObject *obj,
                   enum krait_text_calls calls, size_t most)
{
    if (add_long_bytes(to, obj, calls, most))
        return true;
    bool is_written = (calls == KRAIT_TEXT_CALLS || is_plain(obj)) && !is_long_int(obj);
    PyObject *str = is_written ? function(obj) : NULL;
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

/* ---- the short way of an item: nothing of the program runs, and no object is made ---- */

/* Of a str that is no ASCII, or of a subclass. */
static const char *short_utf8(PyObject *obj, size_t *size)
{
    Py_ssize_t n = 0;
    bool is_short = PyUnicode_Check(obj) && PyUnicode_GetLength(obj) <= SHORT_BYTES;
    const char *s = is_short && krait_compat.utf8 ? krait_compat.utf8(obj, &n) : NULL;
    if (is_short && !s)
        PyErr_Clear(); /* of a lone surrogate */
    *size = (size_t)n;
    return s;
}

static const char *short_bytes(PyObject *obj, size_t *size)
{
    const char *s = krait_ascii(obj, size);
    if (KRAIT_UNLIKELY(!s))
        s = short_utf8(obj, size);
    return s && *size <= SHORT_BYTES ? s : NULL;
}

/* A str in quotes; NULL if it is long, or has to be escaped. */
static char *put_str(char *to, PyObject *str)
{
    size_t n;
    const char *s = short_bytes(str, &n);
    if (!s || krait_json_copy(to + 1, s, n) & KRAIT_JSON_ESCAPES)
        return NULL;
    to[0] = to[n + 1] = '"';
    return to + n + 2;
}

static char *put_int(char *to, PyObject *value)
{
    int overflow;
    long long n = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow)
        return NULL;
    if (n < 0)
        *to++ = '-';
    return krait_json_put_u64(to, n < 0 ? -(uint64_t)n : (uint64_t)n);
}

/* A float that has at most three decimals, as its repr() is: decimals of 15 digits that are distinct are distinct doubles (C17
 * 5.2.4.2.2, DBL_DIG), so that no shorter one stands for the same. */
static char *put_thousandths(char *to, double size)
{
    enum { THOUSAND = 1000 };
    uint64_t n = (uint64_t)(size * THOUSAND + 0.5);
    if ((double)n / THOUSAND != size)
        return NULL;
    to = krait_json_put_u64(to, n / THOUSAND);
    *to++ = '.';
    uint32_t rest = n % THOUSAND;
    do {
        *to++ = (char)('0' + rest / (THOUSAND / 10));
        rest = rest % (THOUSAND / 10) * 10;
    } while (rest);
    return to;
}

/* Freed by PyMem_Free; NULL with an exception set. */
static char *float_repr(double number)
{
    return PyOS_double_to_string(number, 'r', 0, Py_DTSF_ADD_DOT_0, NULL);
}

/* As repr(); NULL if it is infinite or nan, which JSON does not have. */
static char *put_float(char *to, PyObject *value)
{
    static const double most = 1e12; /* with three decimals 15 digits */
    double number = PyFloat_AsDouble(value), size = number < 0 ? -number : number;
    if (!__builtin_isfinite(number))
        return NULL;
    *to = '-';
    char *end = size < most ? put_thousandths(to + !!__builtin_signbit(number), size) : NULL;
    if (end)
        return end;
    char *text = float_repr(number);
    size_t n = text ? strlen(text) : 0;
    if (n && n <= SHORT_BYTES)
        end = (char *)memcpy(to, text, n) + n;
    PyMem_Free(text);
    PyErr_Clear();
    return end;
}

static char *put_word(char *to, const char *word)
{
    size_t n = strlen(word);
    memcpy(to, word, n);
    return to + n;
}

static char *put_value(char *to, PyObject *value)
{
    const PyTypeObject *type = Py_TYPE(value);
    if (type == &PyUnicode_Type)
        return put_str(to, value);
    if (type == &PyLong_Type)
        return put_int(to, value);
    if (type == &PyFloat_Type)
        return put_float(to, value);
    if (type == &PyBool_Type)
        return put_word(to, value == Py_True ? "true" : "false");
    return value == Py_None ? put_word(to, "null") : NULL;
}

char *krait_text_put_item(char *to, PyObject *key, PyObject *value)
{
    to = put_str(to, key);
    if (!to)
        return NULL;
    *to++ = ':';
    return put_value(to, value);
}

/* ---- JSON ---- */

static bool add_json(struct krait_buf *to, PyObject *obj, enum krait_text_calls calls, int level);

/* A str that is ASCII, in quotes; false, and nothing is written, for what is cut or changed. */
static bool quote_ascii(struct krait_buf *to, PyObject *str)
{
    size_t n;
    const char *s = krait_ascii(str, &n);
    if (!s || n > VALUE_BYTES || memchr(s, '\0', n))
        return false;
    krait_json_str(to, s, n);
    return true;
}

static bool add_quoted(struct krait_buf *to, PyObject *obj, enum krait_text_calls calls)
{
    if (quote_ascii(to, obj))
        return true;
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

static PyObject *float_str(double number)
{
    if (!__builtin_isfinite(number))
        return PyUnicode_FromString(number > 0 ? "Infinity" : number < 0 ? "-Infinity" : "NaN");
    char *text = float_repr(number);
    PyObject *str = text ? PyUnicode_FromString(text) : NULL;
    PyMem_Free(text);
    return str;
}

/* The str that json.dumps() writes for a key; new reference. NULL: it would raise. None of the program's code runs. */
static PyObject *key_str(PyObject *key)
{
    PyObject *str = NULL;
    if (PyUnicode_Check(key)) {
        Py_INCREF(key);
        return key;
    }
    if (key == Py_None || PyBool_Check(key))
        str = PyUnicode_FromString(key == Py_None ? "null" : key == Py_True ? "true" : "false");
    else if (PyFloat_Check(key))
        str = float_str(PyFloat_AsDouble(key));
    else if (PyLong_Check(key) && !is_long_int(key))
        str = PyObject_CallMethod((PyObject *)&PyLong_Type, "__repr__", "O", key);
    PyErr_Clear();
    return str;
}

/* The key in quotes; false: an object of JSON cannot have it. */
static bool quote_key(struct krait_buf *to, PyObject *key)
{
    if (quote_ascii(to, key))
        return true;
    KRAIT_AUTO_BUF name = { 0 };
    PyObject *str = key_str(key);
    if (!str)
        return false;
    krait_text_str(&name, str, VALUE_BYTES);
    krait_json_str(to, name.data ? name.data : "", name.len);
    to->failed |= name.failed;
    Py_DECREF(str);
    return true;
}

static bool add_item(struct krait_text_object *object, PyObject *key, PyObject *value, int level)
{
    char few[VALUE_BYTES];
    KRAIT_AUTO_BUF item = KRAIT_BUF_IN(few);
    if (!quote_key(&item, key)) {
        object->left_out++;
        return true;
    }
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
    object->to->failed |= item.failed;
    return whole;
}

bool krait_text_object_add(struct krait_text_object *object, PyObject *key, PyObject *value)
{
    struct krait_buf *to = object->to;
    char *at = krait_buf_room(to, 1 + KRAIT_TEXT_ITEM_BYTES);
    char *end = at ? krait_text_put_item(at + 1, key, value) : NULL;
    if (end && to->len + (size_t)(end - at) < object->most) {
        *at = object->open ? ',' : '{';
        *end = '\0';
        to->len += (size_t)(end - at);
        object->open = true;
        return true;
    }
    if (at)
        *at = '\0';
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
    for (; whole && n < ITEMS && PyDict_Next(dict, &at, &key, &value); n++)
        whole = add_item(&object, key, value, level);
    object.left_out += KRAIT_MAX(PyDict_Size(dict) - n, (Py_ssize_t)0);
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
