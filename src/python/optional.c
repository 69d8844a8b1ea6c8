/* SPDX-License-Identifier: Apache-2.0 */
#include "python/optional.h"

#include "python/log.h"

void krait_optional_read(void)
{
    const struct krait_control *control = krait_agent.writer.shm.control;
    krait_agent.asks = control->flags & KRAIT_RECORD_ASKED;
    krait_log_read();
    krait_audit_read();
}

void krait_optional_see(struct krait_interp *in)
{
    uint32_t asks = in->agent->asks;
    if (KRAIT_LIKELY(!asks) || in->seeing)
        return;
    PyObject *type, *value, *traceback;
    in->seeing = true; /* it may import, which is audited */
    PyErr_Fetch(&type, &value, &traceback);
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
