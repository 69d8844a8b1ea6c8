/* SPDX-License-Identifier: Apache-2.0
 *
 * Imports, with --imports: a span for each module that is loaded, in the thread that loads it, with the modules that it
 * imports inside. -X importtime measures the same function: importlib._bootstrap._find_and_load.
 */
#include "python/notes.h"
#include "python/optional.h"
#include "python/patch.h"
#include "python/text.h"

#include "base/json.h"

enum { NAME_BYTES = 512, FILE_BYTES = 1024 };

/* sys.modules[name]; borrowed or NULL. */
static PyObject *find_module(PyObject *name)
{
    PyObject *modules = PySys_GetObject("modules");
    PyObject *module = modules && PyDict_Check(modules) ? PyDict_GetItem(modules, name) : NULL;
    return module && module != Py_None ? module : NULL;
}

/* Where it came from, or why it did not. */
static void add_fields(struct krait_buf *fields, PyObject *name, PyObject *raised)
{
    KRAIT_AUTO_BUF text = { 0 };
    PyObject *module = raised ? NULL : find_module(name);
    PyObject *file =
        module && PyModule_Check(module) ? PyDict_GetItemString(PyModule_GetDict(module), "__file__") : NULL;
    if (raised)
        krait_text_add_attr(&text, raised, "__name__", NAME_BYTES);
    else
        krait_text_str(&text, file, FILE_BYTES);
    krait_buf_char(fields, '{');
    if (text.len)
        krait_json_key_text(fields, raised ? "error" : "file", text.data);
    krait_buf_char(fields, '}');
}

static void end(struct krait_interp *in, uint64_t id, PyObject *name)
{
    PyObject *type, *value, *traceback;
    KRAIT_AUTO_BUF fields = { 0 };
    PyErr_Fetch(&type, &value, &traceback);
    add_fields(&fields, name, type);
    krait_note_end_span(in, id, fields.failed ? KRAIT_NO_FIELDS : fields.data);
    PyErr_Restore(type, value, traceback);
}

/* _find_and_load(name, import_). */
static PyObject *on_find_and_load(PyObject *function, PyObject *const *args, size_t nargs, PyObject *names)
{
    struct krait_interp *in = krait_agent_interp();
    PyObject *name = KRAIT_NARGS(nargs) ? args[0] : NULL;
    bool loads =
        in && !in->seeing && krait_agent_records(in) && name && PyUnicode_Check(name) && !find_module(name);
    if (!loads)
        return krait_call_original(function, args, nargs, names);
    char text[NAME_BYTES];
    krait_text_name(name, text, sizeof(text));
    uint64_t id = krait_note_begin_span(in, KRAIT_span_category_import, text, KRAIT_NO_FIELDS);
    Py_INCREF(name); /* an argument that the call may take */
    PyObject *result = krait_call_original(function, args, nargs, names);
    end(in, id, name);
    Py_DECREF(name);
    return result;
}

static const struct krait_patch_python patches[] = {
    { "_frozen_importlib", NULL, "_find_and_load", on_find_and_load },
};

void krait_imports_see(struct krait_interp *in)
{
    krait_patch_python(patches, in->patched_imports, KRAIT_ARRAY_LEN(patches));
}

void krait_imports_end(struct krait_interp *in)
{
    krait_unpatch_python(patches, in->patched_imports, KRAIT_ARRAY_LEN(patches));
}
