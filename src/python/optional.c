/* SPDX-License-Identifier: Apache-2.0 */
#include "python/optional.h"
#include "python/modules.h"

#include "python/log.h"

void krait_optional_read(void)
{
    const struct krait_control *control = krait_agent.writer.shm.control;
    krait_agent.asks = control->flags & KRAIT_RECORD_ASKED;
    krait_log_read();
    krait_audit_read();
}

/* Those whose functions log.c and warnings.c patch. */
static const char *const awaited[] = { "logging", "warnings", "threading" };

/* importlib's own mark, which import looks at too (import_ensure_initialized, Python/import.c). */
static bool is_initializing(const char *name)
{
    PyObject *spec = krait_module_item(krait_module(name), "__spec__");
    bool is_plain = spec && PyType_GetSlot(Py_TYPE(spec), Py_tp_getattro) == (void *)PyObject_GenericGetAttr;
    PyObject *mark = is_plain ? PyObject_GetAttrString(spec, "_initializing") : NULL;
    bool is_set = mark == Py_True;
    Py_XDECREF(mark);
    PyErr_Clear();
    return is_set;
}

static bool any_is_initializing(void)
{
    bool any = false;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(awaited); i++)
        any = any || is_initializing(awaited[i]);
    return any;
}

/* A look takes a microsecond, and is taken at each audit event: also where logging looks who called it. A module's
 * functions are there after it has run, which is audited as import and as exec. A reload of one has no end that is
 * told: so krait looks a few times more. */
enum { LOOKS = 64 };

void krait_optional_look(struct krait_interp *in)
{
    in->looks = LOOKS;
}

void krait_optional_audit(struct krait_interp *in, const char *event)
{
    if (strcmp(event, "import") == 0 || strcmp(event, "exec") == 0)
        krait_optional_look(in);
}

void krait_optional_see(struct krait_interp *in)
{
    uint32_t asks = in->agent->asks;
    if (KRAIT_LIKELY(!asks || !in->looks) || in->seeing)
        return;
    PyObject *type, *value, *traceback;
    in->seeing = true; /* it may import, which is audited */
    PyErr_Fetch(&type, &value, &traceback);
    in->looks -= !any_is_initializing();
    if (asks & (KRAIT_RECORD_LOG | KRAIT_RECORD_AUDIT))
        krait_audit_see();
    if (asks & KRAIT_RECORD_LOG) {
        krait_log_see(in);
        krait_warnings_see(in);
    }
    if (asks & KRAIT_RECORD_GC)
        krait_collections_see(in);
    if (asks & KRAIT_RECORD_IMPORTS)
        krait_imports_see(in);
    in->seeing = false;
    PyErr_Restore(type, value, traceback);
}

bool krait_optional_awaits(const struct krait_interp *in)
{
    if (!(in->agent->asks & KRAIT_RECORD_LOG))
        return false;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    bool any = any_is_initializing();
    PyErr_Restore(type, value, traceback);
    return any;
}

bool krait_optional_is_imported(const struct krait_interp *in, const char *event, PyObject *args)
{
    bool is_import = in->agent->asks & KRAIT_RECORD_LOG && strcmp(event, "import") == 0;
    PyObject *name = is_import && args && PyTuple_Check(args) ? PyTuple_GetItem(args, 0) : NULL;
    for (size_t i = 0; name && PyUnicode_Check(name) && i < KRAIT_ARRAY_LEN(awaited); i++) {
        if (PyUnicode_CompareWithASCIIString(name, awaited[i]) == 0)
            return true;
    }
    return false;
}

void krait_optional_end(struct krait_interp *in)
{
    krait_log_end(in);
    krait_warnings_end(in);
    krait_collections_end(in);
    krait_imports_end(in);
}

void krait_optional_forget(struct krait_interp *in)
{
    krait_log_forget(in);
    krait_map_done(&in->audited);
}

void krait_optional_done(struct krait_interp *in)
{
    krait_log_done(in);
    Py_CLEAR(in->stand_in_type);
    krait_map_done(&in->audited);
}
