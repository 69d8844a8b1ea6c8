/* SPDX-License-Identifier: Apache-2.0 */
#include "python/patch.h"
#include "python/codes.h"
#include "python/compat/running.h"
#include "python/modules.h"

#include <link.h>
#include <string.h>

/* Whether the loader left `address` writable: constant tables are not. */
static int is_writable(struct dl_phdr_info *info, size_t size, void *address)
{
    bool writable = false;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        bool here = (uintptr_t)address - (info->dlpi_addr + part->p_vaddr) < part->p_memsz;
        if (here && part->p_type == PT_LOAD)
            writable = part->p_flags & PF_W;
        if (here && part->p_type == PT_GNU_RELRO)
            return 0;
    }
    return writable;
}

static PyMethodDef *def_of_function(PyObject *function)
{
    return function && PyCFunction_Check(function) ? krait_at(function, KRAIT_CFUNCTION_ML) : NULL;
}

static PyMethodDef *def_of_method(PyObject *module, const char *name)
{
    char owner[64];
    const char *dot = strchr(name, '.');
    snprintf(owner, sizeof(owner), "%.*s", (int)(dot - name), name);
    PyObject *type = krait_module_item(module, owner);
    bool is_type = type && Py_TYPE(type) == &PyType_Type;
    PyObject *dict = is_type ? krait_type_attr(type, "__dict__") : NULL;
    PyObject *method = dict ? PyMapping_GetItemString(dict, dot + 1) : NULL;
    bool is_method = method && Py_TYPE(method) == krait_compat.method_descr_type;
    PyMethodDef *def = is_method ? krait_at(method, KRAIT_METHOD_DESCR_DEF) : NULL;
    Py_XDECREF(method);
    Py_XDECREF(dict);
    PyErr_Clear();
    return def;
}

/* The function's definition, where it is as expected. */
static PyMethodDef *find_def(PyObject *module, const struct krait_patch *patch)
{
    PyMethodDef *def = strchr(patch->name, '.') ? def_of_method(module, patch->name)
                                                : def_of_function(krait_module_item(module, patch->name));
    return def && def->ml_flags == patch->flags && dl_iterate_phdr(is_writable, def) ? def : NULL;
}

bool krait_patch(PyObject *module, const struct krait_patch *patches, size_t count)
{
    PyMethodDef *defs[KRAIT_PATCHES];
    bool found = count <= KRAIT_PATCHES;
    for (size_t i = 0; found && i < count; i++)
        found = (defs[i] = find_def(module, &patches[i])) != NULL;
    for (size_t i = 0; found && i < count; i++) {
        *patches[i].real = defs[i]->ml_meth;
        defs[i]->ml_meth = patches[i].ours;
    }
    return found;
}
