/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernel's number of a thread that Python knows. threading.Thread has it, but a program need not import threading,
 * and threading does not know the threads of _thread and of C. thread.ident is the address of the C library's struct
 * pthread (nptl/descr.h of glibc, pthread_impl.h of musl), which holds the number at an offset that this thread's own
 * struct shows.
 */
#include "python/agent.h"
#include "python/modules.h"

#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PTHREAD_BYTES = 1024 }; /* the number lies within these, in every C library known */

/* A thread of C may have ended and left its state to Python: its memory may be gone. Where the kernel reads it, that is
 * an error and no fault. */
static size_t read_memory(unsigned long at, void *bytes, size_t n)
{
    KRAIT_AUTO_CLOSE int fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : pread(fd, bytes, n, (off_t)at);
    return got < 0 ? 0 : (size_t)got;
}

/* Of the number in struct pthread, in bytes; 0: not found. */
static size_t number_offset(void)
{
    uint32_t words[PTHREAD_BYTES / 4], own = (uint32_t)syscall(SYS_gettid);
    size_t n = read_memory((unsigned long)pthread_self(), words, sizeof(words)) / 4;
    for (size_t i = 1; i < n; i++) {
        if (words[i] == own)
            return 4 * i;
    }
    return 0;
}

/* Whether this process has a thread of that number. */
static bool is_here(uint32_t tid)
{
    return (int)tid > 0 && (syscall(SYS_tgkill, getpid(), tid, 0) == 0 || errno != ESRCH);
}

static uint32_t number_in_struct(unsigned long ident)
{
    static size_t offset; /* GIL held */
    uint32_t tid = 0;
    if (!offset)
        offset = number_offset();
    if (!offset || read_memory(ident + offset, &tid, sizeof(tid)) < sizeof(tid))
        return 0;
    return is_here(tid) ? tid : 0;
}

/* In a forked child CPython up to 3.13 may leave the number of the thread that forked, which is of the parent. */
static uint32_t number_in_threading(PyObject *thread)
{
    PyObject *value = PyObject_GetAttrString(thread, "_native_id"); /* 3.8 on */
    unsigned long tid = value && PyLong_Check(value) ? PyLong_AsUnsignedLong(value) : 0;
    Py_XDECREF(value);
    bool is_number = !PyErr_Occurred() && tid <= INT32_MAX;
    PyErr_Clear();
    return is_number && is_here((uint32_t)tid) ? (uint32_t)tid : 0;
}

uint32_t krait_native_id(unsigned long ident, PyObject *thread)
{
    int saved = errno;
    uint32_t tid = thread ? number_in_threading(thread) : 0;
    if (!tid)
        tid = number_in_struct(ident);
    errno = saved;
    return tid;
}

PyObject *krait_active_thread(unsigned long ident)
{
    PyObject *active = krait_module_item(krait_module("threading"), "_active");
    PyObject *key = PyLong_FromUnsignedLong(ident);
    PyObject *thread = active && key && PyDict_Check(active) ? PyDict_GetItem(active, key) : NULL;
    Py_XINCREF(thread);
    Py_XDECREF(key);
    PyErr_Clear();
    return thread;
}
