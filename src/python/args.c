/* SPDX-License-Identifier: Apache-2.0 */
#include "python/args.h"

#include "base/argspec.h"
#include "base/func_glob.h"
#include "base/json.h"
#include "python/codes.h"
#include "python/compat/running.h"
#include "python/notes.h"
#include "python/text.h"

#include <string.h>

enum { SPECS = KRAIT_WORK_SHIFT, FIELDS_BYTES = 4096, NAME_BYTES = KRAIT_ARGSPEC_PATH };

static struct krait_argspec specs[SPECS];
static uint32_t spec_count;
bool krait_args_asked, krait_args_results;

void krait_args_read(void)
{
    const char *text = NULL;
    struct krait_err ignored = { 0 };
    spec_count = 0;
    krait_args_results = false;
    while (spec_count < SPECS && (text = krait_filters_next(&krait_agent, text, KRAIT_FILTER_ARGS))) {
        if (krait_argspec_read(&specs[spec_count], text, &ignored) == 0)
            krait_args_results |= specs[spec_count++].has_result;
    }
    krait_args_asked = spec_count > 0 || krait_agent.tasks;
}

uint64_t krait_args_of(const struct krait_interp *in, const char *module, const char *name, const char *file)
{
    uint64_t which = krait_agent.tasks ? krait_work_of(in, module, name) : 0;
    for (uint32_t i = 0; i < spec_count; i++)
        which |= krait_func_glob_matches(specs[i].glob, module, name, file) ? 1ull << i : 0;
    return which;
}

/* ---- values ---- */

/* An attribute without running the program's code: what a class's __dict__ and the object's own have, and what slots
 * and getters of C tell. Properties, and __getattr__, are the program's code. New reference or NULL. */
static PyObject *in_classes(PyObject *obj, const char *name)
{
    PyObject *mro = krait_type_attr((PyObject *)Py_TYPE(obj), "__mro__"), *found = NULL;
    for (Py_ssize_t i = 0; mro && PyTuple_Check(mro) && i < PyTuple_Size(mro) && !found; i++) {
        PyObject *dict = krait_type_attr(PyTuple_GetItem(mro, i), "__dict__");
        found = dict ? PyMapping_GetItemString(dict, name) : NULL;
        Py_XDECREF(dict);
        PyErr_Clear();
    }
    Py_XDECREF(mro);
    return found;
}

static PyObject *in_own_dict(PyObject *obj, const char *name)
{
    PyObject *dict = krait_compat.generic_dict ? krait_compat.generic_dict(obj, NULL) : NULL;
    PyObject *found = dict && PyDict_Check(dict) ? PyDict_GetItemString(dict, name) : NULL;
    Py_XINCREF(found);
    Py_XDECREF(dict);
    PyErr_Clear();
    return found;
}

PyObject *krait_args_plain_attr(PyObject *obj, const char *name)
{
    PyObject *of_class = in_classes(obj, name);
    const PyTypeObject *type = of_class ? Py_TYPE(of_class) : NULL;
    if (type && (type == &PyMemberDescr_Type || type == &PyGetSetDescr_Type)) {
        PyObject *value = PyObject_CallMethod(of_class, "__get__", "OO", obj, (PyObject *)Py_TYPE(obj));
        Py_DECREF(of_class);
        PyErr_Clear();
        return value;
    }
    PyObject *own = type == &PyProperty_Type ? NULL : in_own_dict(obj, name);
    if (!own)
        return of_class;
    Py_XDECREF(of_class);
    return own;
}

/* `value` is given away; new reference or NULL. */
static PyObject *follow(PyObject *value, const char *path, enum krait_argspec_how how)
{
    while (value && *path == '.') {
        char name[NAME_BYTES];
        size_t n = strcspn(++path, ".");
        snprintf(name, sizeof(name), "%.*s", (int)n, path);
        PyObject *next = how == KRAIT_ARGSPEC_REPR ? PyObject_GetAttrString(value, name)
                                                   : krait_args_plain_attr(value, name);
        Py_DECREF(value);
        value = next;
        path += n;
    }
    return value;
}

/* The program's own code has run. Ctrl-C, which came meanwhile, comes again where the program can catch it. */
static void settle(void)
{
    if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_KeyboardInterrupt))
        PyErr_SetInterrupt();
    PyErr_Clear();
}

static void add_value(struct krait_buf *to, PyObject *value, enum krait_argspec_how how)
{
    KRAIT_AUTO_BUF text = { 0 };
    bool whole =
        krait_text_json(&text, value, how == KRAIT_ARGSPEC_REPR ? KRAIT_TEXT_CALLS : KRAIT_TEXT_NO_CALLS);
    settle();
    if (!whole) { /* by SystemExit, or Ctrl-C */
        krait_buf_clear(&text);
        krait_text_json(&text, value, KRAIT_TEXT_NO_CALLS);
    }
    to->failed |= text.failed;
    if (how == KRAIT_ARGSPEC_HASH)
        krait_buf_fmt(to, "\"#%016llx\"", (unsigned long long)krait_hash_bytes(text.data, text.len));
    else
        krait_buf_add(to, text.data, text.len);
}

/* `value` is borrowed. What has no such attribute is left out; so is what makes the text too long. */
static void add_item(struct krait_buf *to, const struct krait_argspec_item *item, PyObject *value)
{
    KRAIT_AUTO_BUF text = { 0 };
    Py_XINCREF(value);
    value = follow(value, item->path + strcspn(item->path, "."), item->how);
    settle();
    if (!value)
        return;
    add_value(&text, value, item->how);
    Py_DECREF(value);
    settle();
    if (text.failed || !text.len || to->len + text.len > FIELDS_BYTES)
        return;
    krait_json_key(to, item->path);
    krait_buf_add(to, text.data, text.len);
}

/* ---- events ---- */

static bool is_result(const struct krait_argspec *spec, uint32_t item)
{
    return spec->has_result && item + 1 == spec->count;
}

/* Of the innermost frame, if that runs `code`; from 3.13 on what gives them is no dictionary, but made for each use. New
 * reference. */
static PyObject *locals_of(PyObject *code)
{
    PyObject *frame = (PyObject *)PyEval_GetFrame();
    PyObject *its = frame ? krait_frame_code(frame) : NULL;
    PyObject *locals = its == code ? PyObject_GetAttrString(frame, "f_locals") : NULL;
    Py_XDECREF(its);
    return locals;
}

static PyObject *local(PyObject *locals, const char *path)
{
    char name[NAME_BYTES];
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(path, "."), path);
    PyObject *value = PyMapping_GetItemString(locals, name);
    PyErr_Clear();
    return value;
}

/* A frame keeps its dictionary, and all that is in it. */
static void drop_locals(PyObject *locals)
{
    if (locals && PyDict_Check(locals))
        PyDict_Clear(locals);
    Py_XDECREF(locals);
    PyErr_Clear();
}

static PyObject *take_local(PyObject *locals, const char *name)
{
    PyObject *value = locals ? local(locals, name) : NULL;
    drop_locals(locals);
    return value;
}

PyObject *krait_args_local(PyObject *code, const char *name)
{
    return take_local(locals_of(code), name);
}

PyObject *krait_args_frame_local(PyObject *frame, const char *name)
{
    return take_local(PyObject_GetAttrString(frame, "f_locals"), name);
}

static void add_locals(struct krait_buf *to, PyObject *locals, uint64_t which)
{
    for (uint32_t s = 0; s < spec_count; s++) {
        for (uint32_t i = 0; which >> s & 1 && i < specs[s].count; i++) {
            PyObject *value = is_result(&specs[s], i) ? NULL : local(locals, specs[s].items[i].path);
            add_item(to, &specs[s].items[i], value);
            Py_XDECREF(value);
        }
    }
}

static void add_results(struct krait_buf *to, PyObject *value, uint64_t which)
{
    for (uint32_t s = 0; s < spec_count; s++) {
        if (which >> s & 1 && specs[s].has_result)
            add_item(to, &specs[s].items[specs[s].count - 1], value);
    }
}

/* The function's id, if anything of it is asked for and its calls are recorded. */
static uint32_t find(struct krait_interp *in, PyObject *code, uint64_t *which)
{
    const uint64_t *known = krait_map_get(&in->args, (uintptr_t)code);
    *which = known ? *known : 0;
    return *which && !krait_note_is_open() ? krait_code_id(in, code) : 0;
}

static void write_args(struct krait_note *note, uint32_t id, PyObject *locals, uint64_t which)
{
    KRAIT_AUTO_BUF text = { 0 };
    uint8_t payload[KRAIT_PAYLOAD_MAX];
    krait_buf_char(&text, '{');
    add_locals(&text, locals, which);
    krait_buf_char(&text, '}');
    const struct krait_payload_call_args event = { .code = id, .args = text.data };
    if (!text.failed && text.len > strlen("{}"))
        krait_note_put(note, KRAIT_EVENT_call_args, payload, krait_put_call_args(payload, &event));
}

void krait_args_write(struct krait_interp *in, PyObject *code)
{
    struct krait_note note;
    uint64_t which;
    uint32_t id = find(in, code, &which);
    if (!id)
        return;
    if (krait_note_begin(&note, in, krait_moment_now())) {
        PyObject *locals = locals_of(code);
        if (locals && which >> KRAIT_WORK_SHIFT)
            krait_work_write(&note, which, locals);
        if (locals)
            write_args(&note, id, locals, which);
        drop_locals(locals);
    }
    krait_note_end(&note);
}

void krait_args_write_result(struct krait_interp *in, PyObject *code, PyObject *value)
{
    struct krait_note note;
    KRAIT_AUTO_BUF text = { 0 };
    uint8_t payload[KRAIT_PAYLOAD_MAX];
    uint64_t which;
    uint32_t id = find(in, code, &which);
    if (!id)
        return;
    if (krait_note_begin(&note, in, krait_moment_now())) {
        krait_buf_char(&text, '{');
        add_results(&text, value, which);
        krait_buf_char(&text, '}');
        const struct krait_payload_call_result event = { .code = id, .result = text.data };
        if (!text.failed && text.len > strlen("{}"))
            krait_note_put(&note, KRAIT_EVENT_call_result, payload, krait_put_call_result(payload, &event));
    }
    krait_note_end(&note);
}
