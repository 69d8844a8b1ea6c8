/* SPDX-License-Identifier: Apache-2.0
 *
 * The program's modules, read without running any of its code.
 *
 * An attribute of a module would not do: a module may have a function __getattr__ (PEP 562) or be loaded lazily, and for a
 * name that is not there, Python 3.13 asks for the property ModuleSpec.has_location, which is written in Python, to complete
 * the message (_Py_module_getattro_impl, Objects/moduleobject.c). All: GIL held; borrowed references; no exception is set.
 */
#ifndef KRAIT_PYTHON_MODULES_H
#define KRAIT_PYTHON_MODULES_H

#include "python/compat/running.h"

/* sys.modules[name], if it is a module; else NULL. */
PyObject *krait_module(const char *name);
/* A name of a module's dictionary; NULL if it is not there, or if `module` is NULL or no module. */
PyObject *krait_module_item(PyObject *module, const char *name);

#endif
