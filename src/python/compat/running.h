/* SPDX-License-Identifier: Apache-2.0
 *
 * Every difference between CPython 3.8 and 3.15 that the agent must know, of the interpreter that has loaded it.
 *
 * The agent is built once, for the stable ABI of 3.8. Functions outside of it are looked up by name at run time.
 * Where a struct must be read (only before 3.12, whose layouts no longer change), its offsets come from a table, and
 * are checked against the interpreter's own answers before the first use. "borrowed" and "new reference" mean the
 * same as in CPython's documentation.
 */
#ifndef KRAIT_PYTHON_COMPAT_RUNNING_H
#define KRAIT_PYTHON_COMPAT_RUNNING_H

#include <Python.h>

/* The headers of 3.12 and later return None uncounted, since it is immortal there; an agent that is built with them runs on
 * older versions too, which end with "deallocating None" after some thousand calls: Include/object.h. */
#undef Py_RETURN_NONE
#define Py_RETURN_NONE return Py_INCREF(Py_None), Py_None

#include "base/base.h"
#include "python/compat/unicode.h"

#if PY_VERSION_HEX < 0x030c0000
/* Earlier headers count immortal objects too (PEP 683). From 3.12 on that changes what sys.getrefcount() says of them: the
 * lower half of an immortal object's count is negative (_Py_IsImmortal in Include/refcount.h), before 3.12 of none. */
static inline bool krait_is_immortal(const PyObject *op)
{
    return (int32_t)op->ob_refcnt < 0;
}

static inline void krait_incref(PyObject *op)
{
    if (op && !krait_is_immortal(op))
        op->ob_refcnt++;
}

static inline void krait_decref(PyObject *op)
{
    if (op && !krait_is_immortal(op) && --op->ob_refcnt == 0)
        _Py_Dealloc(op);
}

#undef Py_INCREF
#undef Py_DECREF
#undef Py_XINCREF
#undef Py_XDECREF
#define Py_INCREF(op)  krait_incref((PyObject *)(op))
#define Py_DECREF(op)  krait_decref((PyObject *)(op))
#define Py_XINCREF(op) krait_incref((PyObject *)(op))
#define Py_XDECREF(op) krait_decref((PyObject *)(op))
#endif

#if PY_VERSION_HEX < 0x03090000
/* 3.8 exports it, and declares it outside the stable ABI only (Include/frameobject.h). */
typedef struct _frame PyFrameObject;
int PyFrame_GetLineNumber(PyFrameObject *frame);
#endif

/* Flags of types that the header of 3.8's stable ABI lacks; the same in all versions: Include/cpython/object.h. */
#define KRAIT_TPFLAGS_HAVE_VECTORCALL   (1UL << 11)
#define KRAIT_TPFLAGS_METHOD_DESCRIPTOR (1UL << 17)

/* A function that takes a vector of arguments and their number; not in the stable ABI of 3.8 either:
 * Include/cpython/methodobject.h. */
enum {
    KRAIT_METH_FASTCALL = 0x0080,
};
typedef PyObject *krait_fastcall_fn(PyObject *self, PyObject *const *args, Py_ssize_t nargs);

/* The vectorcall protocol: Include/cpython/abstract.h. `nargs` has a flag in its highest bit. */
typedef PyObject *krait_vectorcall(PyObject *callable, PyObject *const *args, size_t nargs, PyObject *names);
#define KRAIT_NARGS(nargs) ((nargs) & ~((size_t)1 << (8 * sizeof(size_t) - 1)))

/* What code is compiled as: Include/compile.h, which is not in the stable ABI of 3.8. */
enum { KRAIT_COMPILE_FILE = 257, KRAIT_COMPILE_EVAL = 258 };

/* What a profile function is called for: Include/cpython/pystate.h, PyTrace_*. */
enum krait_profile_what {
    KRAIT_PROFILE_CALL = 0,
    KRAIT_PROFILE_EXCEPTION = 1, /* trace functions alone */
    KRAIT_PROFILE_RETURN = 3,
    KRAIT_PROFILE_C_CALL = 4,
    KRAIT_PROFILE_C_EXCEPTION = 5,
    KRAIT_PROFILE_C_RETURN = 6,
};

/* Flags of code objects, co_flags: Include/cpython/code.h. */
enum {
    KRAIT_CO_GENERATOR = 0x20,
    KRAIT_CO_COROUTINE = 0x80,
    KRAIT_CO_ITERABLE_COROUTINE = 0x100,
    KRAIT_CO_ASYNC_GENERATOR = 0x200,
    KRAIT_CO_SUSPENDS = KRAIT_CO_GENERATOR | KRAIT_CO_COROUTINE | KRAIT_CO_ASYNC_GENERATOR,
};

/* Offsets, in bytes. */
enum {
    /* The same in all versions: Include/cpython/methodobject.h, descrobject.h, classobject.h. */
    KRAIT_CFUNCTION_ML = 16,     /* PyCFunctionObject.m_ml */
    KRAIT_CFUNCTION_SELF = 24,   /* m_self */
    KRAIT_METHOD_DESCR_DEF = 40, /* PyMethodDescrObject.d_method */
    KRAIT_GETSET_DESCR_DEF = 40, /* PyGetSetDescrObject.d_getset */
    KRAIT_MEMBER_DESCR_DEF = 40, /* PyMemberDescrObject.d_member */
    KRAIT_METHOD_FUNC = 16,      /* PyMethodObject.im_func */
    KRAIT_ML_NAME = 0,           /* PyMethodDef.ml_name */
    /* The same: Include/cpython/object.h. */
    KRAIT_TYPE_VECTORCALL_OFFSET = 56, /* PyTypeObject.tp_vectorcall_offset */
    /* Before 3.12: of struct krait_hook_layout, where constants are needed. */
    KRAIT_FRAME_CODE = 32,
    KRAIT_TRACEBACK_NEXT = 16, /* PyTracebackObject: Include/cpython/traceback.h */
    KRAIT_TRACEBACK_FRAME = 24,
    KRAIT_FRAME_INNER_311 = 24,
    KRAIT_CODE_FLAGS = 36,
    KRAIT_CODE_FLAGS_311 = 48,
};

/* The offsets of struct krait_hook_layout that the shortest way needs, as constants: each kind of frames has a hook of its own
 * (profile.c). The first kind has them in the frame itself, the other where the frame points (krait_has_inner_frames). */
struct krait_frames {
    bool inner;
    uint16_t code_flags;
};
#define KRAIT_FRAMES_PLAIN ((struct krait_frames){ false, KRAIT_CODE_FLAGS })
#define KRAIT_FRAMES_INNER ((struct krait_frames){ true, KRAIT_CODE_FLAGS_311 })

typedef int krait_profile_fn(PyObject *obj, PyObject *frame, int what, PyObject *arg);

/* The properties of one version: a row of the table in running.c. */
struct krait_version {
    int number; /* 0x0308 ... */
    /* what the interpreter adds around a callback, for a begin and its end: from 3.12 on in large programs, where its data have
     * left the caches; in a loop it is 50 (docs/decisions/governor.md) */
    uint16_t hook_ns;
    /* calls are recorded by sys.monitoring: monitoring.c; else by a profile function: profile.c */
    bool monitoring;
    /* throw() links the frames of all coroutines that it passes, so that the stack's depth tells the root. */
    bool links_thrown;
    bool has_qualname;  /* code objects have co_qualname */
    bool signals_first; /* signal handlers run before PY_START and PY_RESUME are reported */
    /* Frozen modules keep the version of the monitored events, for which they were instrumented, from one Py_Initialize
     * to the next. If the new number is the same by chance, they count as up to date (deep-frozen code objects are
     * static: _PyStaticCode_Fini in Objects/codeobject.c). */
    bool frozen_keep_events;
    /* Whether the interpreter runs the frame of a Python function without a look at the address that it is called by. */
    bool inlines_unseen;
    /* Whether C_RETURN and C_RAISE come with the function of a method object that CALL came with: INSTRUMENTED_CALL
     * takes it out after CALL (Python/bytecodes.c). */
    bool ends_have_function;
    /* The opcode of f(*args), if it reports CALL for a method object but no end (the function may be written in Python
     * and has its own events); 0: there is no such opcode. */
    uint8_t call_without_end;
    /* Offsets before 3.12. */
    struct krait_hook_layout {
        uint16_t frame_code;     /* in PyFrameObject; with frame_inner, in what that points to */
        uint16_t frame_inner;    /* 0: none */
        uint16_t frame_back;     /* 3.8 */
        uint16_t frame_lasti;    /* int; in 3.11 prev_instr, a pointer */
        uint16_t frame_previous; /* 3.11: in what frame_inner points to */
        uint16_t code_flags;
        uint16_t code_code; /* PyBytes *; 0 in 3.11 */
        uint16_t ts_interp, ts_profilefunc, ts_profileobj;
        uint16_t ts_tracing; /* int use_tracing, or a pointer to the CFrame that begins with it */
        bool tracing_is_cframe;
        uint8_t tracing_on;  /* the value of use_tracing */
        uint8_t lasti_scale; /* bytes of a unit of lasti */
    } layout;
};

struct krait_compat {
    struct krait_version version; /* the one that runs */
    /* Types, by address. */
    PyTypeObject *code_type, *function_type, *method_type, *cfunction_type, *cmethod_type, *method_descr_type,
        *wrapper_descr_type, *coroutine_type, *generator_type, *async_yield_type, *context_type;
    const void *new_def; /* the PyMethodDef that the __new__ of all types share: Objects/typeobject.c */
    /* Functions; NULL if the version does not have it. */
    PyInterpreterState *(*interp_get)(void);
    int (*is_finalizing)(void);
    PyObject *(*frame_get_code)(PyObject *frame); /* new reference; 3.9 */
    PyObject *(*frame_get_back)(PyObject *frame); /* new reference or NULL; 3.9 */
    void (*set_profile)(krait_profile_fn *fn, PyObject *obj);
    PyObject *(*current_frames)(void);        /* krait_frames_of_threads */
    PyInterpreterState *(*interp_head)(void); /* the newest; 3.8 */
    PyThreadState *(*thread_head)(PyInterpreterState *interp);
    PyThreadState *(*thread_next)(PyThreadState *tstate);
    int (*add_audit_hook)(int (*hook)(const char *event, PyObject *args, void *data), void *data);
    PyObject *(*vectorcall_call)(PyObject *callable, PyObject *tuple, PyObject *dict);
    /* A str's UTF-8, in the object; NULL with an exception. In the stable ABI from 3.10, exported by all versions. */
    const char *(*utf8)(PyObject *str, Py_ssize_t *size);
    size_t ascii_offset; /* from a str that is ASCII to its characters; 0: not known */
    PyObject *(*generic_dict)(PyObject *obj,
                              void *); /* the object's own, new reference; in the stable ABI from 3.10 */
    PyObject *(*method_new)(PyObject *function, PyObject *self);
    PyObject *(*member)(const char *obj, const void *def); /* PyMember_GetOne */
    /* Of a Python function, borrowed; its attributes of the same names tell audit hooks. */
    PyObject *(*function_code)(PyObject *function);
    PyObject *(*function_globals)(PyObject *function);
    PyObject *(*function_closure)(PyObject *function);                  /* NULL: it has none */
    void (*set_vectorcall)(PyObject *function, krait_vectorcall *call); /* 3.12 */
};

extern struct krait_compat krait_compat;

/* 3.11: a frame object points to the interpreter's frame, and instructions (RESUME) show where a frame begins and
 * continues. */
static inline bool krait_has_inner_frames(void)
{
    return krait_compat.version.layout.frame_inner;
}

/* Finds out which Python it runs in. GIL held. Returns 0, or -ENOTSUP with *why set: the version is not in the table,
 * or it is a free-threaded build. */
int krait_compat_init(const char **why);

/* Whether there is one interpreter: then all threads but this one wait for its GIL until this one releases it. False too where
 * this Python does not export who is the main one, and from 3.12 on where there was another one. GIL held. */
bool krait_is_alone(void);
/* Another interpreter is there, which has run nothing yet. */
void krait_see_another_interp(void);
/* A dict of thread ident to frame, new reference; NULL where there are several interpreters, and when memory is out. The function
 * goes through the threads of all of them: it would make frame objects in this one's memory for threads that run without this
 * one's GIL, or whose objects belong to another. GIL held; leaves an exception. */
PyObject *krait_frames_of_threads(void);

typedef PyInterpreterState *krait_interp_fn(void);
/* PyInterpreterState_Main, which is no part of the stable ABI; NULL if this Python does not export it. Also before
 * krait_compat_init. No GIL. */
krait_interp_fn *krait_find_interp_main(void);

/* Before 3.12: checks the offsets against a frame and this thread's state, whose profile function is `fn` now. Returns
 * -ENOTSUP with *why set if they are wrong (debug builds, other implementations). GIL held. */
int krait_compat_check_layout(PyObject *frame, krait_profile_fn *fn, const char **why);

static inline void *krait_at(const void *p, size_t offset)
{
    void *value;
    __builtin_memcpy(&value, (const char *)p + offset, sizeof(value));
    return value;
}

static inline int krait_int_at(const void *p, size_t offset)
{
    int value;
    __builtin_memcpy(&value, (const char *)p + offset, sizeof(value));
    return value;
}

/* krait_ascii, where the offset is `offset`. */
static inline const char *krait_ascii_at(PyObject *obj, size_t offset, size_t *size)
{
    if (Py_TYPE(obj) != &PyUnicode_Type || !offset)
        return NULL;
    uint32_t state = (uint32_t)krait_int_at(obj, KRAIT_TEXT_STATE);
    if (!krait_text_is_compact(state) || !krait_text_is_ascii(state))
        return NULL;
    *size = (size_t)krait_at(obj, KRAIT_OBJECT_SIZE);
    return (const char *)obj + offset;
}

/* The characters of a str that is ASCII, in the object, with a NUL behind them; NULL for any other object. Hot path. */
static inline const char *krait_ascii(PyObject *obj, size_t *size)
{
    return krait_ascii_at(obj, krait_compat.ascii_offset, size);
}

/* The frame's code object, borrowed, before 3.12. Hot path. */
static inline PyObject *krait_frame_code_fast(PyObject *frame)
{
    const struct krait_hook_layout *l = &krait_compat.version.layout;
    const void *at = l->frame_inner ? krait_at(frame, l->frame_inner) : frame;
    return krait_at(at, l->frame_code);
}

/* The same for one kind of frames. Hot path. */
static inline __attribute__((always_inline)) PyObject *krait_frames_code(struct krait_frames frames,
                                                                         PyObject *frame)
{
    return krait_at(frames.inner ? krait_at(frame, KRAIT_FRAME_INNER_311) : frame, KRAIT_FRAME_CODE);
}

/* As krait_code_suspends. Hot path. */
static inline __attribute__((always_inline)) bool krait_frames_suspend(struct krait_frames frames,
                                                                       const void *code)
{
    return krait_int_at(code, frames.code_flags) & KRAIT_CO_SUSPENDS;
}

/* Before 3.12: whether it is a generator, a coroutine or the like, whose `call` may be a resume and whose `return` a
 * yield. */
static inline bool krait_code_suspends(PyObject *code)
{
    return krait_int_at(code, krait_compat.version.layout.code_flags) & KRAIT_CO_SUSPENDS;
}
bool krait_frame_is_resumed(PyObject *frame, PyObject *code);
bool krait_frame_is_yielding(PyObject *frame, PyObject *code);
/* 3.11: whether a frame that unwinds is at its RESUME, where a signal handler raised. */
bool krait_frame_is_at_begin(PyObject *frame, PyObject *code);
/* 3.11: the code, borrowed, of the generator or coroutine that continues without a `call` when `frame` returns; mostly
 * NULL. If an exception was thrown through a coroutine into what it awaits, and that returns, gen_throw()
 * (Objects/genobject.c) skips the RESUME that would report it. */
PyObject *krait_frame_goes_on(PyObject *frame, PyObject *code);
/* 3.11: whether the exception was thrown into an ending asynchronous generator through the object that aclose() or
 * asend() returned. Its caller then does not await it; the coroutine that does also continues without a `call`, and no
 * frame shows which one that is. */
bool krait_frame_ends_throw(PyObject *frame, PyObject *code, const PyObject *value);
/* 3.11: whether the frame is of a generator or coroutine and stands at the RESUME where it goes on: a signal handler runs. */
bool krait_frame_is_interrupted(PyObject *frame);
/* 3.11: whether that is so of the frame's caller: this is a signal handler. */
bool krait_frame_interrupts(PyObject *frame);
/* 3.11: the code, borrowed, of the frame's caller; or NULL. */
PyObject *krait_frame_back_code(PyObject *frame);

/* From 3.12: CALL reported this method object, called at `offset` of `code`. Returns what C_RETURN or C_RAISE will
 * report for it, borrowed; NULL: the method object itself, or nothing. GIL held. */
PyObject *krait_method_called(PyObject *method, PyObject *code, PyObject *offset);

/* Where in a function's code an instruction stands, by its RESUME instructions. */
enum krait_code_place {
    KRAIT_PLACE_LATER,  /* what is raised here was raised after the begin was told */
    KRAIT_PLACE_BEFORE, /* before what tells the first begin */
    KRAIT_PLACE_CALL,   /* at it */
    KRAIT_PLACE_RESUME, /* at what tells that the generator goes on */
};
/* From 3.12, once before the first krait_code_find_place: learns the opcode of RESUME, which is another in each version.
 * GIL held. */
void krait_places_init(void);
/* From 3.12: of the instruction at `offset` of `code`; KRAIT_PLACE_LATER if it has none there. GIL held. */
enum krait_code_place krait_code_find_place(PyObject *code, Py_ssize_t offset);

/* Says where a type's objects have their vectorcall: 3.8 does not read that from __vectorcalloffset__. */
void krait_type_set_vectorcall(PyObject *type, Py_ssize_t offset);

/* Any version; new references, NULL at the end of the chain. */
PyObject *krait_frame_code(PyObject *frame);
/* The frame of a traceback, or of what says that it is one. To read the attribute of a true one is an audit event. */
PyObject *krait_traceback_frame(PyObject *traceback);
PyObject *krait_frame_back(PyObject *frame);

/* Before 3.12: gives the thread of `tstate` the profile function, if it has none. `obj` must never die.
 * Without the GIL only for a thread state that no other thread uses yet. */
void krait_tstate_set_profile(void *tstate, krait_profile_fn *fn, PyObject *obj);
/* Removes the profile function if it is `fn`. GIL held. */
void krait_tstate_clear_profile(void *tstate, krait_profile_fn *fn);
/* Before 3.12: gives the thread a trace function, unless it has one; takes it away if it is `fn`. Not as PyEval_SetTrace
 * does: no audit event tells it, sys.gettrace() stays None, and 3.8 and 3.9 look for no lines. GIL held. */
bool krait_tstate_set_trace(void *tstate, krait_profile_fn *fn);
void krait_tstate_clear_trace(void *tstate, krait_profile_fn *fn);
bool krait_tstate_is_of(const void *tstate, const PyInterpreterState *interp);

#endif
