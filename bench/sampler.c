/* SPDX-License-Identifier: Apache-2.0
 *
 * Where an untraced program spends its time, for the judge of --max-overhead: a truth that krait has no part in.
 *
 * A timer interrupts the thread that called start(). The handler follows the interpreter's chain of frames, which is
 * whole at each instruction, and notes the code objects. Nothing is hooked, and the program runs as fast as before
 * but for the interrupts. Functions written in C have no frame: their time is their caller's.
 *
 * It reads the interpreter's own structures, so it is compiled with the headers of the very version that it runs in: 3.8 to 3.13.
 *
 *     import krait_sampler
 *     krait_sampler.start(100)       microseconds of wall time from sample to sample
 *     krait_sampler.stop()           (bytes, {address: code object}): for each sample how many frames, as 8 bytes, and their
 *                                    addresses, innermost first
 */
#define PY_SSIZE_T_CLEAN
#define Py_BUILD_CORE_MODULE
#include <Python.h>
/* needs that before it */
#include <frameobject.h>
#if PY_VERSION_HEX >= 0x030b0000
#include <internal/pycore_frame.h>
#endif
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { WORDS = 32 << 20, DEPTH_MAX = 1000 };

static uint64_t *samples; /* the kernel gives memory for what is used of it */
static size_t used;
static PyThreadState *thread;
static timer_t timer;

/* The innermost frame, each frame's caller, and its code; NULL: of the interpreter's own frames. */
#if PY_VERSION_HEX >= 0x030d0000
typedef struct _PyInterpreterFrame frame_type;
#define INNERMOST     thread->current_frame
#define CALLER(frame) (frame)->previous
#define CODE(frame)   (frame)->f_executable
#elif PY_VERSION_HEX >= 0x030b0000
typedef struct _PyInterpreterFrame frame_type;
#define INNERMOST     thread->cframe->current_frame
#define CALLER(frame) (frame)->previous
#define CODE(frame)   (PyObject *)(frame)->f_code
#else
typedef struct _frame frame_type;
#define INNERMOST     thread->frame
#define CALLER(frame) (frame)->f_back
#define CODE(frame)   (PyObject *)(frame)->f_code
#endif

static PyObject *code_of(const frame_type *frame)
{
#if PY_VERSION_HEX >= 0x030c0000
    if (frame->owner == FRAME_OWNED_BY_CSTACK)
        return NULL;
#endif
    PyObject *code = CODE(frame);
    return PyCode_Check(code) ? code : NULL;
}

static void on_signal(int number)
{
    (void)number;
    if (used + DEPTH_MAX + 1 > WORDS)
        return;
    uint64_t *to = samples + used, n = 0;
    for (const frame_type *f = INNERMOST; f && n < DEPTH_MAX; f = CALLER(f)) {
        PyObject *code = code_of(f);
        if (!code)
            continue;
        Py_INCREF(code); /* for good: it is looked at in the end */
        to[++n] = (uintptr_t)code;
    }
    to[0] = n;
    used += n + 1;
}

static PyObject *start(PyObject *module, PyObject *args)
{
    unsigned us;
    if (!PyArg_ParseTuple(args, "I", &us))
        return NULL;
    samples = mmap(NULL, WORDS * sizeof(*samples), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (samples == MAP_FAILED)
        return PyErr_SetFromErrno(PyExc_OSError);
    thread = PyThreadState_Get();
    struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
    struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF };
    event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
    struct itimerspec when = { .it_interval.tv_nsec = us * 1000, .it_value.tv_nsec = us * 1000 };
    if (sigaction(SIGPROF, &action, NULL) || timer_create(CLOCK_MONOTONIC, &event, &timer) ||
        timer_settime(timer, 0, &when, NULL))
        return PyErr_SetFromErrno(PyExc_OSError);
    Py_RETURN_NONE;
}

static int note_code(PyObject *codes, uint64_t address)
{
    PyObject *key = PyLong_FromUnsignedLongLong(address);
    int rc = key ? PyDict_SetItem(codes, key, (PyObject *)(uintptr_t)address) : -1;
    Py_XDECREF(key);
    return rc;
}

static PyObject *stop(PyObject *module, PyObject *args)
{
    timer_delete(timer);
    PyObject *codes = PyDict_New();
    for (size_t at = 0; codes && at < used; at += samples[at] + 1) {
        for (uint64_t i = 1; i <= samples[at]; i++) {
            if (note_code(codes, samples[at + i]))
                return NULL;
        }
    }
    return Py_BuildValue("y#N", (const char *)samples, (Py_ssize_t)(used * sizeof(*samples)), codes);
}

static PyMethodDef methods[] = {
    { "start", start, METH_VARARGS, NULL },
    { "stop", stop, METH_NOARGS, NULL },
    { 0 },
};

static struct PyModuleDef definition = { PyModuleDef_HEAD_INIT, .m_name = "krait_sampler", .m_size = -1,
                                         .m_methods = methods };

PyMODINIT_FUNC PyInit_krait_sampler(void)
{
    return PyModule_Create(&definition);
}
