/* SPDX-License-Identifier: Apache-2.0 */
#include "python/fields.h"

#include "base/json.h"
#include "python/compat/running.h"
#include "python/text.h"

#include <string.h>

_Static_assert(KRAIT_MARK_TEXT_BYTES + KRAIT_FIELDS_BYTES + 300 < KRAIT_PAYLOAD_MAX,
               "a mark fits a payload, with what says that it was cut");

static const char *text_of_others(PyObject *obj, struct krait_buf *own, size_t most, bool *is_whole)
{
    Py_ssize_t n;
    /* The object keeps its UTF-8, so not of a long one. */
    if (PyUnicode_Check(obj) && PyUnicode_GetLength(obj) <= (Py_ssize_t)most && krait_compat.utf8) {
        const char *text = krait_compat.utf8(obj, &n);
        if (text && (size_t)n <= most && strlen(text) == (size_t)n)
            return text;
        PyErr_Clear(); /* of a lone surrogate */
    }
    if (PyUnicode_Check(obj))
        krait_text_str(own, obj, most);
    else
        *is_whole = krait_text_of(own, obj, KRAIT_TEXT_CALLS, most);
    return own->data ? own->data : "";
}

const char *krait_fields_text(PyObject *obj, struct krait_buf *own, size_t most, bool *is_whole)
{
    size_t n;
    const char *text = krait_ascii(obj, &n);
    *is_whole = true;
    if (KRAIT_LIKELY(text && n <= most && strlen(text) == n))
        return text;
    return text_of_others(obj, own, most, is_whole);
}

bool krait_fields_add(struct krait_buf *to, PyObject *const *values, PyObject *names)
{
    struct krait_text_object object = { .to = to, .most = KRAIT_FIELDS_BYTES, .calls = KRAIT_TEXT_CALLS };
    bool whole = true;
    for (Py_ssize_t i = 0; whole && i < PyTuple_Size(names); i++)
        whole = krait_text_object_add(&object, PyTuple_GetItem(names, i), values[i]);
    krait_text_object_end(&object);
    return whole;
}

bool krait_fields_add_dict(struct krait_buf *to, PyObject *dict)
{
    struct krait_text_object object = { .to = to, .most = KRAIT_FIELDS_BYTES, .calls = KRAIT_TEXT_CALLS };
    Py_ssize_t at = 0;
    PyObject *key, *value;
    bool whole = true;
    while (whole && PyDict_Next(dict, &at, &key, &value))
        whole = krait_text_object_add(&object, key, value);
    krait_text_object_end(&object);
    return whole;
}

const char *krait_fields_json(const struct krait_buf *fields)
{
    return fields->len && !fields->failed ? fields->data : KRAIT_NO_FIELDS;
}

/* ---- marks ---- */

_Static_assert(KRAIT_BYTES_user_mark == 2, "a mark has two texts");

/* An object of items that are short and plain, with its NUL. Returns its end, or NULL. */
static char *put_plain(char *to, PyObject *const *values, PyObject *names)
{
    const char *most = to + KRAIT_FIELDS_BYTES - KRAIT_TEXT_ITEM_BYTES - 1;
    Py_ssize_t n = names ? PyTuple_Size(names) : 0;
    *to++ = '{';
    for (Py_ssize_t i = 0; i < n; i++) {
        to = to < most ? krait_text_put_item(to, PyTuple_GetItem(names, i), values[i]) : NULL;
        if (!to)
            return NULL;
        *to++ = ',';
    }
    to -= n > 0; /* the last comma */
    *to++ = '}';
    *to++ = '\0';
    return to;
}

/* The short way: right into the payload, if the text is ASCII and the fields are short and plain; else 0. */
static size_t put_quickly(uint8_t *payload, PyObject *text, PyObject *const *values, PyObject *names)
{
    size_t n;
    char *to = (char *)payload;
    const char *s = krait_ascii(text, &n);
    if (!s || n > KRAIT_MARK_TEXT_BYTES || (krait_json_copy(to, s, n) && memchr(s, '\0', n)))
        return 0;
    to[n] = '\0';
    char *end = put_plain(to + n + 1, values, names);
    return end ? (size_t)(end - to) : 0;
}

static size_t put_any(uint8_t *payload, PyObject *text, PyObject *const *values, PyObject *names)
{
    char few[KRAIT_FIELDS_FEW];
    KRAIT_AUTO_BUF own = { 0 };
    KRAIT_AUTO_BUF fields = KRAIT_BUF_IN(few);
    bool whole;
    struct krait_payload_user_mark event = {
        .text = krait_fields_text(text, &own, KRAIT_MARK_TEXT_BYTES, &whole),
    };
    if (!whole || (names && !krait_fields_add(&fields, values, names)))
        return 0;
    event.fields = krait_fields_json(&fields);
    return krait_put_user_mark(payload, &event);
}

size_t krait_fields_put_mark(uint8_t payload[KRAIT_PAYLOAD_MAX], PyObject *text, PyObject *const *values,
                             PyObject *names)
{
    size_t n = put_quickly(payload, text, values, names);
    return KRAIT_LIKELY(n) ? n : put_any(payload, text, values, names);
}
