/* SPDX-License-Identifier: Apache-2.0
 *
 * See modules.h.
 */
#include "python/modules.h"

PyObject *krait_module(const char *name)
{
    PyObject *modules = PySys_GetObject("modules"); /* PyImport_GetModuleDict kills one that is ending, 3.8 */
    PyObject *module = modules && PyDict_Check(modules) ? PyDict_GetItemString(modules, name) : NULL;
    return module && PyModule_Check(module) ? module : NULL;
}

PyObject *krait_module_item(PyObject *module, const char *name)
{
    return module && PyModule_Check(module) ? PyDict_GetItemString(PyModule_GetDict(module), name) : NULL;
}
