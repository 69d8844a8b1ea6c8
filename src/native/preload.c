/* SPDX-License-Identifier: Apache-2.0
 *
 * Preloaded into every program of a recording. In one that runs Python it loads the agent as soon as the
 * interpreter stands; in any other it does nothing more than look once.
 *
 * How it knows: an audit hook (PEP 578) may be added before the interpreter exists, and the interpreter
 * raises audit events from its first import on, with the GIL held. This reaches what no sitecustomize does:
 * -I, -E and -S, frozen programs, and programs that embed Python. Symbols of Python are looked up, never
 * linked: most programs have none.
 */
#include "native/native.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

typedef int audit_hook(const char *event, void *args, void *data);

static int (*is_initialized)(void);
static const void *(*this_thread_state)(void);
static int (*agent_enter)(const char *session, const char **why);
static void (*agent_audit)(void);
static void (*_Atomic agent_thread_state)(unsigned key, const void *value);
static const char *session;
static char agent_path[PATH_MAX];

typedef int add_hook(audit_hook *hook, void *data);
static add_hook *_Atomic add_audit_hook; /* until it has been called */
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
    add_hook_once();
    return get ? get(thread, attr) : ENOMEM;
}

static int load_agent(void)
{
    void *agent = dlopen(agent_path, RTLD_NOW | RTLD_LOCAL);
    *(void **)&agent_enter = agent ? dlsym(agent, "krait_agent_enter") : NULL;
    *(void **)&agent_audit = agent ? dlsym(agent, "krait_agent_audit") : NULL;
    return agent_enter && agent_audit ? 0 : -1;
}

static void watch_threads(void)
{
    void *agent = dlopen(agent_path, RTLD_NOW | RTLD_NOLOAD);
    void (*thread_state)(unsigned, const void *);
    *(void **)&thread_state = dlsym(agent, "krait_agent_thread_state");
    atomic_store(&agent_thread_state, thread_state);
}

/* Returns what `entered` is next: see on_audit. Why a program cannot be recorded is told to the collector by
 * the agent; the program just runs. */
static int enter(void)
{
    const char *why;
    int rc = agent_enter ? 0 : load_agent();
    if (!rc)
        rc = agent_enter(session, &why);
    if (rc)
        return -1;
    watch_threads();
    return 2;
}

/* GIL held. */
static int on_audit(const char *event, void *args, void *data)
{
    static _Atomic int entered; /* 0 not yet, 1 trying, 2 recording, -1 never */
    int state = atomic_load_explicit(&entered, memory_order_relaxed);
    if (state == 2)
        agent_audit();
    int not_yet = 0;
    if (state != 0 || !is_initialized() || !atomic_compare_exchange_strong(&entered, &not_yet, 1))
        return 0;
    int saved = errno;
    atomic_store(&entered, enter());
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

__attribute__((constructor)) static void preload(void)
{
    int saved = errno;
    add_hook *add;
    *(void **)&add = dlsym(RTLD_DEFAULT, "PySys_AddAuditHook");
    *(void **)&is_initialized = dlsym(RTLD_DEFAULT, "Py_IsInitialized");
    *(void **)&this_thread_state = dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState");
    bool is_python = add && is_initialized && this_thread_state;
    session = krait_environment_begin(is_python);
    if (session && is_python && !find_agent())
        atomic_store(&add_audit_hook, add);
    errno = saved;
}
