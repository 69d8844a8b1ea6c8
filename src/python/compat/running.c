/* SPDX-License-Identifier: Apache-2.0
 *
 * Offsets are of 64-bit release builds: Include/cpython/pystate.h, Include/frameobject.h (3.11:
 * Include/internal/pycore_frame.h), Include/cpython/code.h of each version.
 */
#include "python/compat/running.h"

#include "python/compat/versions.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

struct krait_compat krait_compat;

enum {
    OP_RETURN_VALUE = 83, /* Include/opcode.h, 3.8 to 3.11 */
    OP_YIELD_VALUE = 86,  /* the same */
    OP_RESUME = 151,      /* 3.11 */
    OP_RESUME_QUICK = 150,
    OP_CALL_FUNCTION_EX_313 = 54, /* Include/opcode_ids.h */
    BYTES_DATA = 32,              /* ob_sval of PyBytesObject */
};

/* What 3.8, 3.9 and 3.10 share; what 3.12 and later do. */
#define KRAIT_BEFORE_311                                                                   \
    .hook_ns = 16, .layout.frame_code = KRAIT_FRAME_CODE, .layout.frame_back = 24,         \
    .layout.code_flags = KRAIT_CODE_FLAGS, .layout.code_code = 48, .layout.ts_interp = 16, \
    .layout.ts_tracing = 48, .layout.ts_profilefunc = 56, .layout.ts_profileobj = 72, .layout.tracing_on = 1
#define KRAIT_FROM_312 .hook_ns = 90, .monitoring = true, .links_thrown = true, .has_qualname = true

static const struct krait_version versions[] = {
    { 0x0308, KRAIT_BEFORE_311, .layout.frame_lasti = 104, .layout.lasti_scale = 1 },
    { 0x0309, KRAIT_BEFORE_311, .layout.frame_lasti = 104, .layout.lasti_scale = 1 },
    { 0x030a, KRAIT_BEFORE_311, .layout.frame_lasti = 96, .layout.lasti_scale = 2, .links_thrown = true,
      .layout.tracing_is_cframe = true },
    { 0x030b, .hook_ns = 106, .links_thrown = true, .has_qualname = true, .inlines_unseen = true,
      .layout = { .frame_inner = KRAIT_FRAME_INNER_311,
                  .frame_code = KRAIT_FRAME_CODE,
                  .frame_lasti = 56,
                  .frame_previous = 48,
                  .code_flags = KRAIT_CODE_FLAGS_311,
                  .ts_interp = 16,
                  .ts_tracing = 56,
                  .tracing_is_cframe = true,
                  .ts_profilefunc = 64,
                  .ts_profileobj = 80,
                  .tracing_on = 255 } },
    { 0x030c, KRAIT_FROM_312, .ends_have_function = true, .frozen_keep_events = true },
    { 0x030d, KRAIT_FROM_312, .ends_have_function = true, .signals_first = true,
      .call_without_end = OP_CALL_FUNCTION_EX_313 },
    { 0x030e, KRAIT_FROM_312, .signals_first = true },
    { 0x030f, KRAIT_FROM_312, .signals_first = true },
};

_Static_assert(KRAIT_ARRAY_LEN(versions) == KRAIT_PYTHON_COUNT, "a row a version");

static void *find(const char *name)
{
    return dlsym(RTLD_DEFAULT, name);
}

static int find_version(const char **why)
{
    const char *text = Py_GetVersion();
    char *rest;
    long major = strtol(text, &rest, 10);
    long minor = *rest == '.' ? strtol(rest + 1, NULL, 10) : 0;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(versions); i++) {
        if (versions[i].number == (major << 8 | minor))
            krait_compat.version = versions[i];
    }
    if (krait_compat.version.number != (major << 8 | minor)) {
        *why = "this Python's version is not one of " KRAIT_PYTHON_SPAN;
        return -ENOTSUP;
    }
    if (strstr(text, "free-threading")) {
        *why = "free-threaded builds of Python are not supported";
        return -ENOTSUP;
    }
    return 0;
}

static void find_functions(struct krait_compat *c)
{
    c->code_type = find("PyCode_Type");
    c->function_type = find("PyFunction_Type");
    c->method_type = find("PyMethod_Type");
    c->cfunction_type = find("PyCFunction_Type");
    c->cmethod_type = find("PyCMethod_Type"); /* 3.9 */
    c->method_descr_type = find("PyMethodDescr_Type");
    c->wrapper_descr_type = find("PyWrapperDescr_Type");
    c->coroutine_type = find("PyCoro_Type");
    c->generator_type = find("PyGen_Type");
    c->async_yield_type = find("_PyAsyncGenWrappedValue_Type");
    c->context_type = find("PyContext_Type");
    *(void **)&c->interp_get = find("PyInterpreterState_Get");
    if (!c->interp_get)
        *(void **)&c->interp_get = find("_PyInterpreterState_Get");
    *(void **)&c->is_finalizing = find("Py_IsFinalizing"); /* 3.13 */
    if (!c->is_finalizing)
        *(void **)&c->is_finalizing = find("_Py_IsFinalizing");
    *(void **)&c->utf8 = find("PyUnicode_AsUTF8AndSize");
    *(void **)&c->frame_get_code = find("PyFrame_GetCode");
    *(void **)&c->frame_get_back = find("PyFrame_GetBack");
    *(void **)&c->set_profile = find("PyEval_SetProfile");
    *(void **)&c->current_frames = find("_PyThread_CurrentFrames");
    *(void **)&c->interp_head = find("PyInterpreterState_Head");
    *(void **)&c->thread_head = find("PyInterpreterState_ThreadHead");
    *(void **)&c->thread_next = find("PyThreadState_Next");
    *(void **)&c->add_audit_hook = find("PySys_AddAuditHook");
    *(void **)&c->vectorcall_call = find("PyVectorcall_Call");
    *(void **)&c->generic_dict = find("PyObject_GenericGetDict");
    *(void **)&c->method_new = find("PyMethod_New");
    *(void **)&c->member = find("PyMember_GetOne");
    *(void **)&c->function_code = find("PyFunction_GetCode");
    *(void **)&c->function_globals = find("PyFunction_GetGlobals");
    *(void **)&c->function_closure = find("PyFunction_GetClosure");
    *(void **)&c->set_vectorcall = find("PyFunction_SetVectorcall");
}

krait_interp_fn *krait_find_interp_main(void)
{
    krait_interp_fn *interp_main;
    *(void **)&interp_main = find("PyInterpreterState_Main");
    return interp_main;
}

/* Other builds have other objects (Py_TRACE_REFS): what krait_ascii reads has to be what it is known to be. */
static size_t find_ascii_offset(const struct krait_compat *c)
{
    static const char text[] = "krait's own", wide[] = "\xC3\xA9"; /* U+00E9 */
    enum { LEAST = KRAIT_TEXT_STATE + sizeof(uint32_t), MOST = 64 };
    size_t size = 0, offset = 0;
    Py_ssize_t n;
    PyObject *ascii = PyUnicode_FromString(text), *other = PyUnicode_FromString(wide);
    const char *at = ascii && other && c->utf8 ? c->utf8(ascii, &n) : NULL;
    if (at)
        offset = (uintptr_t)at - (uintptr_t)ascii;
    bool holds = offset >= LEAST && offset <= MOST && krait_ascii_at(ascii, offset, &size) == at &&
                 size == sizeof(text) - 1 && !krait_ascii_at(other, offset, &size);
    Py_XDECREF(ascii);
    Py_XDECREF(other);
    PyErr_Clear();
    return holds ? offset : 0;
}

/* From 3.12 on an interpreter may have a GIL of its own, and CPython adds it to the list without the GIL of who makes it: so the
 * list alone does not tell any more once there was one. */
static _Atomic bool had_others;

/* The list of interpreters begins with the newest. Where that is the main one, who holds its GIL is the only one that could make
 * another. */
bool krait_is_alone(void)
{
    static krait_interp_fn *interp_main;
    const struct krait_compat *c = &krait_compat;
    if (!interp_main)
        interp_main = krait_find_interp_main();
    return !atomic_load_explicit(&had_others, memory_order_relaxed) && interp_main && c->interp_head &&
           c->interp_head() == interp_main();
}

void krait_see_another_interp(void)
{
    atomic_store_explicit(&had_others, krait_compat.version.monitoring, memory_order_relaxed);
}

PyObject *krait_frames_of_threads(void)
{
    return krait_is_alone() && krait_compat.current_frames ? krait_compat.current_frames() : NULL;
}

int krait_compat_init(const char **why)
{
    struct krait_compat *c = &krait_compat;
    int rc = find_version(why);
    if (rc)
        return rc;
    find_functions(c);
    if (!c->interp_get || !c->function_type || !c->method_type || !c->cfunction_type || !c->set_profile) {
        *why = "this Python does not export its C API";
        return -ENOTSUP;
    }
    PyObject *its_new = PyObject_GetAttrString((PyObject *)&PyBaseObject_Type, "__new__");
    c->new_def = its_new ? krait_at(its_new, KRAIT_CFUNCTION_ML) : NULL;
    Py_XDECREF(its_new);
    PyErr_Clear();
    c->ascii_offset = find_ascii_offset(c);
    return 0;
}

static long attr_long(PyObject *obj, const char *name)
{
    PyObject *value = PyObject_GetAttrString(obj, name);
    long n = value ? PyLong_AsLong(value) : -2;
    Py_XDECREF(value);
    PyErr_Clear();
    return n;
}

static int lasti_bytes(PyObject *frame)
{
    const struct krait_hook_layout *l = &krait_compat.version.layout;
    return krait_int_at(frame, l->frame_lasti) * l->lasti_scale;
}

int krait_compat_check_layout(PyObject *frame, krait_profile_fn *fn, const char **why)
{
    const struct krait_hook_layout *l = &krait_compat.version.layout;
    const void *tstate = PyThreadState_Get();
    PyObject *code = PyObject_GetAttrString(frame, "f_code");
    bool holds = code && sizeof(PyObject) == 16 &&
                 krait_at(tstate, l->ts_interp) == krait_compat.interp_get() &&
                 krait_at(tstate, l->ts_profilefunc) == (void *)fn && krait_frame_code_fast(frame) == code &&
                 krait_int_at(code, l->code_flags) == attr_long(code, "co_flags");
    if (holds && l->code_code)
        holds = lasti_bytes(frame) ==
                attr_long(frame, "f_lasti"); /* the attribute counts bytes in all versions */
    Py_XDECREF(code);
    PyErr_Clear();
    if (holds)
        return 0;
    *why = "this build of Python has layouts of its own (a debug build?)";
    return -ENOTSUP;
}

/* 3.11: prev_instr points at the instruction itself, two bytes: opcode and argument. */
static const uint8_t *instruction(PyObject *frame, PyObject *code)
{
    const struct krait_hook_layout *l = &krait_compat.version.layout;
    if (l->frame_inner)
        return krait_at(krait_at(frame, l->frame_inner), l->frame_lasti);
    int lasti = lasti_bytes(frame);
    return lasti < 0 ? NULL : (const uint8_t *)krait_at(code, l->code_code) + BYTES_DATA + lasti;
}

/* A fresh generator has run nothing (before 3.11), or stands at RESUME 0; after a yield it is RESUME 1 to 3. */
bool krait_frame_is_resumed(PyObject *frame, PyObject *code)
{
    const uint8_t *at = instruction(frame, code);
    if (!krait_has_inner_frames())
        return at != NULL;
    return at[1] != 0 || at[0] == OP_YIELD_VALUE; /* RESUME with where from; or still at the yield: a throw */
}

bool krait_frame_is_yielding(PyObject *frame, PyObject *code)
{
    const uint8_t *at = instruction(frame, code);
    return at && at[0] != OP_RETURN_VALUE;
}

bool krait_frame_is_at_begin(PyObject *frame, PyObject *code)
{
    const uint8_t *at = krait_has_inner_frames() ? instruction(frame, code) : NULL;
    return at && (at[0] == OP_RESUME || at[0] == OP_RESUME_QUICK);
}

static bool is_async_generator(PyObject *code)
{
    return krait_int_at(code, krait_compat.version.layout.code_flags) & KRAIT_CO_ASYNC_GENERATOR;
}

/* Its innermost instruction is the yield of an `await`: something is thrown through it. */
static bool is_waiting(const void *inner)
{
    const struct krait_hook_layout *l = &krait_compat.version.layout;
    const uint8_t *at = krait_at(inner, l->frame_lasti);
    return krait_code_suspends(krait_at(inner, l->frame_code)) && at[0] == OP_YIELD_VALUE;
}

static const void *inner_back(PyObject *frame)
{
    const struct krait_hook_layout *l = &krait_compat.version.layout;
    return krait_at(krait_at(frame, l->frame_inner), l->frame_previous);
}

PyObject *krait_frame_goes_on(PyObject *frame, PyObject *code)
{
    const void *back = inner_back(frame);
    bool waits = back && !is_async_generator(code) && !krait_frame_is_yielding(frame, code);
    return waits && is_waiting(back) ? krait_at(back, krait_compat.version.layout.frame_code) : NULL;
}

static bool is_resuming(const void *inner)
{
    const struct krait_hook_layout *l = &krait_compat.version.layout;
    const uint8_t *at = krait_at(inner, l->frame_lasti);
    bool resumes = (at[0] == OP_RESUME || at[0] == OP_RESUME_QUICK) && at[1] != 0;
    return resumes && krait_code_suspends(krait_at(inner, l->frame_code));
}

bool krait_frame_is_interrupted(PyObject *frame)
{
    return krait_has_inner_frames() && is_resuming(krait_at(frame, KRAIT_FRAME_INNER_311));
}

/* The functions that the handler calls have callers that stand at calls. */
bool krait_frame_interrupts(PyObject *frame)
{
    const void *back = krait_has_inner_frames() ? inner_back(frame) : NULL;
    return back && is_resuming(back);
}

PyObject *krait_frame_back_code(PyObject *frame)
{
    const void *back = inner_back(frame);
    return back ? krait_at(back, krait_compat.version.layout.frame_code) : NULL;
}

bool krait_frame_ends_throw(PyObject *frame, PyObject *code, const PyObject *value)
{
    const void *back = inner_back(frame);
    bool is_over = !value || !krait_frame_is_yielding(frame, code);
    bool passes_on = is_over || Py_TYPE(value) == krait_compat.async_yield_type;
    return passes_on && is_async_generator(code) && back &&
           (is_waiting(back) || !krait_code_suspends(krait_at(back, krait_compat.version.layout.frame_code)));
}

PyObject *krait_frame_code(PyObject *frame)
{
    if (krait_compat.frame_get_code)
        return krait_compat.frame_get_code(frame);
    PyObject *code = krait_at(frame, krait_compat.version.layout.frame_code);
    Py_XINCREF(code);
    return code;
}

PyObject *krait_traceback_frame(PyObject *traceback)
{
    if (!PyTraceBack_Check(traceback))
        return PyObject_GetAttrString(traceback, "tb_frame");
    PyObject *frame = krait_at(traceback, KRAIT_TRACEBACK_FRAME);
    Py_XINCREF(frame);
    return frame;
}

PyObject *krait_frame_back(PyObject *frame)
{
    if (krait_compat.frame_get_back)
        return krait_compat.frame_get_back(frame);
    PyObject *back = krait_at(frame, krait_compat.version.layout.frame_back);
    Py_XINCREF(back);
    return back;
}

static int opcode_at(PyObject *code, PyObject *offset)
{
    int saved_errno = errno;
    PyObject *bytes = PyObject_GetAttrString(code, "co_code"); /* the interpreter keeps it: made once */
    Py_ssize_t at = PyLong_AsSsize_t(offset);
    bool inside = bytes && PyBytes_Check(bytes) && at >= 0 && at < PyBytes_Size(bytes);
    int opcode = inside ? (uint8_t)PyBytes_AsString(bytes)[at] : -1;
    Py_XDECREF(bytes);
    PyErr_Clear();
    errno = saved_errno;
    return opcode;
}

/* INSTRUMENTED_CALL_FUNCTION_EX, which is f(*args), gives no CALL for method objects in 3.12. */
PyObject *krait_method_called(PyObject *method, PyObject *code, PyObject *offset)
{
    const struct krait_version *v = &krait_compat.version;
    PyObject *function = krait_at(method, KRAIT_METHOD_FUNC);
    if (!v->ends_have_function || Py_TYPE(function) == krait_compat.function_type)
        return NULL;
    bool never_ends = v->call_without_end && opcode_at(code, offset) == v->call_without_end;
    return never_ends ? NULL : function;
}

/* ---- places ---- */

static uint8_t resume_opcode;

/* It is what any code begins with. */
void krait_places_init(void)
{
    if (resume_opcode)
        return;
    PyObject *code = Py_CompileString("0", "<krait>", KRAIT_COMPILE_EVAL);
    PyObject *bytes = code ? PyObject_GetAttrString(code, "co_code") : NULL;
    if (bytes && PyBytes_Check(bytes) && PyBytes_Size(bytes) > 0)
        resume_opcode = (uint8_t)PyBytes_AsString(bytes)[0];
    Py_XDECREF(bytes);
    Py_XDECREF(code);
    PyErr_Clear();
}

/* Instructions are pairs of opcode and argument; co_code has their cache entries as zeros. 3.15's RESUME has one, at which its
 * raises are told. */
enum { PAIR = 2, CACHE = 0 };

/* Of RESUME's argument: what was waited for, 0 where the call begins. 3.15 has a RESUME 4 where a generator expression is
 * called, which tells nothing. */
enum { RESUME_FROM = 3 };

static enum krait_code_place find_place(const uint8_t *code, Py_ssize_t size, Py_ssize_t offset)
{
    Py_ssize_t start = 0;
    while (offset > 0 && code[offset] == CACHE)
        offset -= PAIR;
    while (start < size && (code[start] != resume_opcode || code[start + 1]))
        start += PAIR;
    if (start >= size || (offset > start && code[offset] != resume_opcode))
        return KRAIT_PLACE_LATER;
    if (offset < start)
        return KRAIT_PLACE_BEFORE;
    return code[offset + 1] & RESUME_FROM ? KRAIT_PLACE_RESUME : KRAIT_PLACE_CALL;
}

enum krait_code_place krait_code_find_place(PyObject *code, Py_ssize_t offset)
{
    PyObject *bytes = PyObject_GetAttrString(code, "co_code");
    Py_ssize_t size = bytes && PyBytes_Check(bytes) ? PyBytes_Size(bytes) / PAIR * PAIR : 0;
    enum krait_code_place place = offset >= 0 && offset < size
                                      ? find_place((const uint8_t *)PyBytes_AsString(bytes), size, offset)
                                      : KRAIT_PLACE_LATER;
    Py_XDECREF(bytes);
    PyErr_Clear();
    return place;
}

/* ---- thread states ---- */

/* c_tracefunc comes behind c_profilefunc in all. */
static size_t trace_at(const struct krait_hook_layout *l)
{
    return l->ts_profilefunc + sizeof(krait_profile_fn *);
}

void krait_tstate_set_profile(void *tstate, krait_profile_fn *fn, PyObject *obj)
{
    const struct krait_hook_layout *l = &krait_compat.version.layout;
    char *ts = tstate;
    if (krait_at(ts, l->ts_profilefunc))
        return;
    void *tracing = l->tracing_is_cframe ? krait_at(ts, l->ts_tracing) : ts + l->ts_tracing;
    memcpy(ts + l->ts_profileobj, &obj, sizeof(obj));
    memcpy(ts + l->ts_profilefunc, &fn, sizeof(fn));
    if (tracing)
        *(uint8_t *)tracing = l->tracing_on; /* int or byte: little-endian, and it was 0 */
}

void krait_tstate_clear_profile(void *tstate, krait_profile_fn *fn)
{
    const struct krait_hook_layout *l = &krait_compat.version.layout;
    char *ts = tstate;
    if (krait_at(ts, l->ts_profilefunc) != (void *)fn)
        return;
    memset(ts + l->ts_profilefunc, 0, sizeof(fn));
    memset(ts + l->ts_profileobj, 0, sizeof(void *));
    void *tracing = l->tracing_is_cframe ? krait_at(ts, l->ts_tracing) : ts + l->ts_tracing;
    bool traced = krait_at(ts, trace_at(l)) != NULL;
    if (tracing && !traced)
        *(uint8_t *)tracing = 0;
}

bool krait_tstate_set_trace(void *tstate, krait_profile_fn *fn)
{
    char *at = (char *)tstate + trace_at(&krait_compat.version.layout);
    if (krait_at(at, 0))
        return krait_at(at, 0) == (void *)fn;
    memcpy(at, &fn, sizeof(fn));
    return true;
}

void krait_tstate_clear_trace(void *tstate, krait_profile_fn *fn)
{
    char *at = (char *)tstate + trace_at(&krait_compat.version.layout);
    if (krait_at(at, 0) == (void *)fn)
        memset(at, 0, sizeof(fn));
}

bool krait_tstate_is_of(const void *tstate, const PyInterpreterState *interp)
{
    return krait_at(tstate, krait_compat.version.layout.ts_interp) == interp;
}

void krait_type_set_vectorcall(PyObject *type, Py_ssize_t offset)
{
    if (krait_compat.version.number == 0x0308)
        memcpy((char *)type + KRAIT_TYPE_VECTORCALL_OFFSET, &offset, sizeof(offset));
}
