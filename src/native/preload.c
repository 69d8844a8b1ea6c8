/* SPDX-License-Identifier: Apache-2.0
 *
 * Preloaded into every program of a recording. In one that runs Python it loads the agent as soon as the
 * interpreter stands; in any other it does nothing more than look once.
 *
 * How it knows: an audit hook (PEP 578) may be added before the interpreter exists, and the interpreter
 * raises audit events from its first import on, with the GIL held. This reaches what no sitecustomize does:
 * -I, -E and -S, frozen programs, and programs that embed Python. Symbols of Python are looked up, never
 * linked: most programs have none. A program that loads Python while it runs (PyInstaller's do, and servers
 * with modules) is known by the calls that Python makes then.
 */
#include "native/native.h"
#include "python/compat/versions.h"

#include "record/shm.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* include/krait/annotate.h: the first in the global scope, so the one of all shared objects. The agent fills it in. */
PUBLIC const void *krait_annotate_recorder;
const void *krait_annotate_recorder;

typedef int audit_hook(const char *event, void *args, void *data);

static int (*is_initialized)(void);
static const void *(*this_thread_state)(void);
static int (*agent_enter)(const char *session, const char **why);
static void (*agent_audit)(const char *event, void *args);
static void (*agent_again)(void);
static void (*_Atomic agent_thread_state)(unsigned key, const void *value);
static const char *session;
static char agent_path[PATH_MAX];

typedef int add_hook(audit_hook *hook, void *data);
static add_hook *_Atomic add_audit_hook; /* until it has been called for the interpreter that is to come */
static add_hook *known_add_hook;
static audit_hook on_audit;

/* CPython first has a thread state when it has chosen its memory allocators and before it audits anything.
 * Not sooner: it frees the hook's entry by the allocator that it has then, which with -X dev or PYTHONMALLOC
 * is not the one that it begins with, and finding that out ends the program. */
static void add_hook_once(void)
{
    add_hook *add = atomic_load_explicit(&add_audit_hook, memory_order_relaxed);
    if (!add || !this_thread_state() || !atomic_compare_exchange_strong(&add_audit_hook, &add, NULL))
        return;
    int saved = errno;
    add(on_audit, NULL);
    errno = saved;
}

void *krait_native_real(void *_Atomic *known, const char *name)
{
    void *function = atomic_load_explicit(known, memory_order_relaxed);
    if (!function) {
        function = dlsym(RTLD_NEXT, name);
        atomic_store(known, function);
    }
    return function;
}

/* Whether this process has Python, in the global scope: there the agent finds it too. */
static bool look_for_python(void)
{
    add_hook *add;
    *(void **)&add = dlsym(RTLD_DEFAULT, KRAIT_PYTHON_KNOWN);
    *(void **)&is_initialized = dlsym(RTLD_DEFAULT, "Py_IsInitialized");
    *(void **)&this_thread_state = dlsym(RTLD_DEFAULT, KRAIT_PYTHON_ANY);
    bool found = add && is_initialized && this_thread_state;
    known_add_hook = found ? add : NULL;
    return found;
}

/* glibc's struct dl_find_object, as far as it is read here. */
struct found_object {
    unsigned long long flags;
    void *begin, *end;
    struct link_map *map;
    void *rest[16];
};

static void refuse(const char *why);

static int (*_Atomic find_object)(void *address, struct found_object *found); /* until Python is there */

/* A Python that is loaded with RTLD_LOCAL is out of the agent's reach. One that has no thread yet may be on its
 * way to the global scope: mimalloc, in 3.13 on, begins while it is loaded. */
static void refuse_hidden_python(const char *path)
{
    const void *(*thread_state)(void);
    void *python = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    *(void **)&thread_state = python ? dlsym(python, KRAIT_PYTHON_ANY) : NULL;
    if (thread_state && thread_state() && atomic_exchange(&find_object, NULL))
        refuse("libpython is loaded with RTLD_LOCAL; krait needs RTLD_GLOBAL");
    if (python)
        dlclose(python);
}

/* `caller` has called a function that CPython calls when it begins. Where that is a libpython that was loaded
 * after main() began, this process is one that runs Python. glibc's _dl_find_object takes no lock, and has
 * been there since 2.35: who calls may be anybody. */
static void look_at_caller(void *caller)
{
    int (*find)(void *, struct found_object *) = atomic_load_explicit(&find_object, memory_order_relaxed);
    struct found_object found;
    if (!find || find(caller, &found))
        return;
    const char *slash = strrchr(found.map->l_name, '/');
    if (!slash || strncmp(slash + 1, "libpython", strlen("libpython")) != 0)
        return;
    if (!look_for_python()) {
        refuse_hidden_python(found.map->l_name);
        return;
    }
    atomic_store(&find_object, NULL);
    krait_environment_is_python();
    atomic_store(&add_audit_hook, known_add_hook);
}

/* Called in each new thread when CPython up to 3.14 notes its thread state, before it can run anything: the
 * one place where a thread made by C code shows itself before 3.12. CPython's mimalloc (3.13 on) calls it
 * too, before main() begins. */
PUBLIC int pthread_setspecific(pthread_key_t key, const void *value);
PUBLIC int pthread_setspecific(pthread_key_t key, const void *value)
{
    static void *_Atomic known;
    int (*set)(pthread_key_t, const void *);
    *(void **)&set = krait_native_real(&known, "pthread_setspecific");
    if (!set)
        return ENOMEM; /* as when there is no room for the value */
    int rc = set(key, value);
    look_at_caller(__builtin_return_address(0));
    add_hook_once();
    void (*seen)(unsigned, const void *) = atomic_load_explicit(&agent_thread_state, memory_order_acquire);
    if (seen && value)
        seen(key, value);
    return rc;
}

/* CPython from 3.14 on asks for a new thread state's stack by it; 3.15 notes thread states without a call. */
PUBLIC int pthread_getattr_np(pthread_t thread, pthread_attr_t *attr);
PUBLIC int pthread_getattr_np(pthread_t thread, pthread_attr_t *attr)
{
    static void *_Atomic known;
    int (*get)(pthread_t, pthread_attr_t *);
    *(void **)&get = krait_native_real(&known, "pthread_getattr_np");
    look_at_caller(__builtin_return_address(0));
    add_hook_once();
    return get ? get(thread, attr) : ENOMEM;
}

static int load_agent(void)
{
    void *agent = dlopen(agent_path, RTLD_NOW | RTLD_LOCAL);
    *(void **)&agent_enter = agent ? dlsym(agent, "krait_agent_enter") : NULL;
    *(void **)&agent_audit = agent ? dlsym(agent, "krait_agent_audit") : NULL;
    *(void **)&agent_again = agent ? dlsym(agent, "krait_agent_again") : NULL;
    return agent_enter && agent_audit && agent_again ? 0 : -1;
}

static void watch_threads(void)
{
    void *agent = dlopen(agent_path, RTLD_NOW | RTLD_NOLOAD);
    void (*thread_state)(unsigned, const void *);
    *(void **)&thread_state = dlsym(agent, "krait_agent_thread_state");
    atomic_store(&agent_thread_state, thread_state);
}

enum entered {
    NOT_YET = 0,
    TRYING,
    RECORDING,
    ENDED, /* the program has finalised Python, and may initialise it once more */
    NEVER,
};

/* Returns what `entered` is next. Why a program cannot be recorded is told to the collector by the agent; the
 * program just runs. */
static enum entered enter(enum entered before)
{
    const char *why;
    if (before == ENDED) {
        agent_again();
        return RECORDING;
    }
    int rc = agent_enter ? 0 : load_agent();
    if (!rc)
        rc = agent_enter(session, &why);
    if (rc)
        return NEVER;
    watch_threads();
    return RECORDING;
}

/* Py_FinalizeEx takes all audit hooks away, and says so to them first. The next Py_Initialize gets ours anew.
 * A program may audit an event of that name itself; then Python is not ending. */
static bool is_end(const char *event)
{
    return event[0] == 'c' && strcmp(event, "cpython._PySys_ClearAuditHooks") == 0 && !is_initialized();
}

/* GIL held. */
static int on_audit(const char *event, void *args, void *data)
{
    static _Atomic int entered; /* enum entered */
    int state = atomic_load_explicit(&entered, memory_order_relaxed);
    if (state == RECORDING)
        agent_audit(event, args);
    if (is_end(event)) {
        atomic_store(&entered, state == RECORDING ? ENDED : state);
        atomic_store(&add_audit_hook, known_add_hook);
    }
    if ((state != NOT_YET && state != ENDED) || !is_initialized() ||
        !atomic_compare_exchange_strong(&entered, &state, TRYING))
        return 0;
    int saved = errno;
    atomic_store(&entered, enter(state));
    errno = saved;
    return 0;
}

/* The agent lies beside this library. */
static int find_agent(void)
{
    Dl_info info;
    if (!dladdr((void *)on_audit, &info) || !info.dli_fname)
        return -1;
    const char *slash = strrchr(info.dli_fname, '/');
    int dir = slash ? (int)(slash - info.dli_fname) : 0;
    int n =
        snprintf(agent_path, sizeof(agent_path), "%.*s/_agent.abi3.so", dir, slash ? info.dli_fname : ".");
    return n < 0 || (size_t)n >= sizeof(agent_path) ? -1 : 0;
}

/* What the collector says at the end of a process that is not recorded (shm.h). */
static void refuse(const char *why)
{
    char path[64];
    if (snprintf(path, sizeof(path), "%.*s", (int)strcspn(session, "@"), session) >= (int)sizeof(path))
        return; /* behind it is the key of the collector's socket */
    int fd = open(path, O_RDWR | O_CLOEXEC);
    struct krait_control *control =
        fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    if (control == MAP_FAILED)
        return;
    if (control->magic == KRAIT_SHM_MAGIC && control->version == KRAIT_SHM_VERSION)
        krait_shm_refuse(control, getpid(), why);
    munmap(control, sizeof(*control));
}

static bool has_symbol(const void *process, const char *symbol)
{
    (void)process;
    return dlsym(RTLD_DEFAULT, symbol);
}

/* A Python without what krait begins by: an old one, and PyPy, whose library has this symbol alone
 * (pypy/interpreter/app_main.py is started by it). */
static void refuse_other_python(void)
{
    const char *(*version)(void);
    char why[92];
    *(void **)&version = dlsym(RTLD_DEFAULT, "Py_GetVersion");
    const char *text = version ? version() : "";
    if (dlsym(RTLD_DEFAULT, "pypy_main_startup"))
        refuse("PyPy; krait records CPython " KRAIT_PYTHON_SPAN);
    else if (krait_python_is_too_old(has_symbol, NULL)) {
        snprintf(why, sizeof(why), "Python %.*s is too old; krait records CPython " KRAIT_PYTHON_SPAN,
                 (int)strcspn(text, " "), text);
        refuse(why);
    }
}

__attribute__((constructor)) static void preload(void)
{
    int saved = errno;
    bool is_python = look_for_python();
    session = krait_environment_begin(is_python);
    if (session && !is_python)
        refuse_other_python();
    if (!session || find_agent())
        known_add_hook = NULL;
    else if (!is_python)
        *(void **)&find_object = dlsym(RTLD_DEFAULT, "_dl_find_object");
    atomic_store(&add_audit_hook, known_add_hook);
    errno = saved;
}
