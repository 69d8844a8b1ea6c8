/* SPDX-License-Identifier: Apache-2.0
 *
 * What a program starts is recorded too, whatever environment it gives to it: subprocess.run(env={}), env -i,
 * and all that begins others with few variables. The functions of libc that begin a program are called here
 * first; where the recording's variables are missing they are put in, with one that says so, by which the
 * begun program takes them out again before its main(): it sees the environment that it was given.
 *
 * Between vfork and exec nothing but the stack may be written, and signal handlers may call exec: no memory
 * is allocated here, and no lock taken.
 */
#include "native/native.h"

#include "record/shm.h"

#include <alloca.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SESSION     KRAIT_ENV_SESSION "="
#define PRELOAD     "LD_PRELOAD="
#define CARRIED     "KRAIT_CARRIED="
#define NO_CHILDREN KRAIT_ENV_NO_CHILDREN "="

/* Threads may have stacks of 16 kB: a larger environment goes as it is. */
enum { MOST_VARIABLES = 400, MOST_PRELOAD = 2048, OURS = 4 };

/* An environment on the stack of who begins a program. */
struct carried {
    char *env[OURS + MOST_VARIABLES + 1];
    char preload[MOST_PRELOAD];
};

static char session[sizeof(SESSION) + PATH_MAX]; /* as it is in an environment */
static const char *library;                      /* this one's path, as the loader was given it */
static bool carries;                             /* what is begun is to be recorded */
static bool alone;                               /* ... up to the first Python: --no-children */

/* ---- the variables ---- */

/* The value of `entry` if it is of that variable, else NULL; `name` ends with '='. */
static const char *value_of(const char *entry, const char *name)
{
    size_t len = strlen(name);
    return strncmp(entry, name, len) == 0 ? entry + len : NULL;
}

/* Where this library stands in a value of LD_PRELOAD, or NULL. */
static char *find_library(const char *list)
{
    size_t len = strlen(library);
    for (const char *at = list; (at = strstr(at, library)); at++) {
        if ((at == list || strchr(": ", at[-1])) && strchr(": ", at[len])) /* or the list's end */
            return (char *)at;
    }
    return NULL;
}

/* LD_PRELOAD with this library behind what it names, some of which has to be first (sanitizers). Returns
 * false when that is too long. */
static bool join_preload(char joined[MOST_PRELOAD], const char *list)
{
    const char *parts[] = { PRELOAD, list ? list : "", list && *list ? ":" : "", library };
    size_t len = 0;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        size_t part = strlen(parts[i]);
        if (len + part >= MOST_PRELOAD)
            return false;
        memcpy(joined + len, parts[i], part + 1);
        len += part;
    }
    return true;
}

static bool is_ours(const char *entry)
{
    return value_of(entry, SESSION) || value_of(entry, CARRIED) || value_of(entry, NO_CHILDREN);
}

/* `env` in its order, with the recording's variables behind it. */
static char *const *fill(struct carried *room, char *const *env, bool has_preload)
{
    static char mark[] = CARRIED "1", no_children[] = NO_CHILDREN "1";
    size_t k = 0;
    for (; *env; env++) {
        if (!is_ours(*env))
            room->env[k++] = value_of(*env, PRELOAD) ? room->preload : *env;
    }
    if (!has_preload)
        room->env[k++] = room->preload;
    room->env[k++] = session;
    room->env[k++] = mark;
    room->env[k++] = alone ? no_children : NULL;
    room->env[k] = NULL;
    return room->env;
}

/* Takes this library, which is at `own`, out of a value of LD_PRELOAD. */
static void cut_library(char *list, char *own)
{
    char *rest = own + strlen(library);
    rest += *rest != '\0';
    own -= !*rest && own > list; /* the last goes with what stands before it */
    memmove(own, rest, strlen(rest) + 1);
}

static void cut_all(char *list)
{
    for (char *own; (own = find_library(list));)
        cut_library(list, own);
}

/* Whether there is no such file here, as after a chroot: the loader would say so to the program's stderr. */
static bool is_out_of_reach(void)
{
    int saved = errno;
    bool out = access(library, F_OK) < 0 && errno == ENOENT;
    errno = saved;
    return out;
}

/* `env` without this library: there may be several entries of LD_PRELOAD, and it may be in each more than once.
 * What is left of them stands in `room`; where that is too long, all goes as it is. */
static char *const *drop_preload(struct carried *room, char *const *env)
{
    char *const *all = env;
    size_t k = 0, used = 0;
    for (; *env; env++) {
        bool has_library = value_of(*env, PRELOAD) && find_library(value_of(*env, PRELOAD));
        size_t size = has_library ? strlen(*env) + 1 : 0;
        if (used + size > MOST_PRELOAD)
            return all;
        char *entry = has_library ? memcpy(room->preload + used, *env, size) : *env;
        if (has_library)
            cut_all(entry + strlen(PRELOAD));
        if (!has_library || *value_of(entry, PRELOAD))
            room->env[k++] = entry;
        used += size;
    }
    room->env[k] = NULL;
    return room->env;
}

/* The environment for a program that is about to begin: `env`, or `room` with what it lacks. Another
 * recording's is left alone, and so is one whose KRAIT_SESSION is empty: that is not to be recorded. */
static char *const *carry(struct carried *room, char *const *env)
{
    static char *const none[] = { NULL };
    const char *found = NULL, *list = NULL;
    size_t n = 0;
    if (!carries)
        return env;
    env = env ? env : none;
    for (; env[n]; n++) {
        found = value_of(env[n], SESSION) ? env[n] : found;
        list = !list ? value_of(env[n], PRELOAD) : list;
    }
    bool has_library = list && find_library(list);
    if (is_out_of_reach())
        return n <= MOST_VARIABLES ? drop_preload(room, env) : env;
    bool complete = found && has_library, other = found && strcmp(found, session) != 0;
    if (complete || other || n > MOST_VARIABLES || !join_preload(room->preload, list))
        return env;
    return fill(room, env, list);
}

/* The environment as it would be without krait. */
static void leave_environment(void)
{
    char *list = getenv("LD_PRELOAD");
    if (list && find_library(list)) {
        cut_all(list);
        if (!*list)
            unsetenv("LD_PRELOAD");
    }
    unsetenv(KRAIT_ENV_SESSION);
    unsetenv("KRAIT_CARRIED");
    unsetenv(KRAIT_ENV_NO_CHILDREN);
}

/* ---- what begins a program ---- */

enum function { EXECVE, EXECVPE, FEXECVE, EXECVEAT, POSIX_SPAWN, POSIX_SPAWNP };

static struct {
    const char *name;
    void *_Atomic real;
} functions[] = {
    [EXECVE] = { "execve", NULL },           [EXECVPE] = { "execvpe", NULL },
    [FEXECVE] = { "fexecve", NULL },         [EXECVEAT] = { "execveat", NULL },
    [POSIX_SPAWN] = { "posix_spawn", NULL }, [POSIX_SPAWNP] = { "posix_spawnp", NULL },
};

static void *real(enum function f)
{
    void *function = krait_native_real(&functions[f].real, functions[f].name);
    if (!function)
        errno = ENOSYS;
    return function;
}

static int begin(enum function f, const char *file, char *const *argv, char *const *env)
{
    struct carried room;
    int (*call)(const char *, char *const *, char *const *);
    *(void **)&call = real(f);
    return call ? call(file, argv, carry(&room, env)) : -1;
}

/* The arguments from `first` up to NULL, as an array on the stack; `list` is then behind NULL. */
#define GATHER(list, argv, first)                      \
    va_list list;                                      \
    size_t count = 1;                                  \
    va_start(list, first);                             \
    while (va_arg(list, char *))                       \
        count++;                                       \
    va_end(list);                                      \
    char **argv = alloca((count + 1) * sizeof(*argv)); \
    argv[0] = (char *)first;                           \
    va_start(list, first);                             \
    for (size_t i = 1; i <= count; i++)                \
        argv[i] = va_arg(list, char *);

PUBLIC int execve(const char *path, char *const argv[], char *const env[])
{
    return begin(EXECVE, path, argv, env);
}

PUBLIC int execv(const char *path, char *const argv[])
{
    return begin(EXECVE, path, argv, environ);
}

PUBLIC int execvpe(const char *file, char *const argv[], char *const env[])
{
    return begin(EXECVPE, file, argv, env);
}

PUBLIC int execvp(const char *file, char *const argv[])
{
    return begin(EXECVPE, file, argv, environ);
}

PUBLIC int execl(const char *path, const char *arg, ...)
{
    GATHER(list, argv, arg);
    va_end(list);
    return begin(EXECVE, path, argv, environ);
}

PUBLIC int execlp(const char *file, const char *arg, ...)
{
    GATHER(list, argv, arg);
    va_end(list);
    return begin(EXECVPE, file, argv, environ);
}

PUBLIC int execle(const char *path, const char *arg, ...)
{
    GATHER(list, argv, arg);
    char *const *env = va_arg(list, char *const *);
    va_end(list);
    return begin(EXECVE, path, argv, env);
}

PUBLIC int fexecve(int fd, char *const argv[], char *const env[])
{
    struct carried room;
    int (*call)(int, char *const *, char *const *);
    *(void **)&call = real(FEXECVE);
    return call ? call(fd, argv, carry(&room, env)) : -1;
}

PUBLIC int execveat(int dir, const char *path, char *const argv[], char *const env[], int flags);
PUBLIC int execveat(int dir, const char *path, char *const argv[], char *const env[], int flags)
{
    struct carried room;
    int (*call)(int, const char *, char *const *, char *const *, int);
    *(void **)&call = real(EXECVEAT);
    return call ? call(dir, path, argv, carry(&room, env), flags) : -1;
}

static int spawn(enum function f, pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                 const posix_spawnattr_t *attr, char *const *argv, char *const *env)
{
    struct carried room;
    int (*call)(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
                char *const *, char *const *);
    *(void **)&call = real(f);
    return call ? call(pid, file, actions, attr, argv, carry(&room, env)) : ENOSYS;
}

PUBLIC int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                       const posix_spawnattr_t *attr, char *const argv[], char *const env[])
{
    return spawn(POSIX_SPAWN, pid, path, actions, attr, argv, env);
}

PUBLIC int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                        const posix_spawnattr_t *attr, char *const argv[], char *const env[])
{
    return spawn(POSIX_SPAWNP, pid, file, actions, attr, argv, env);
}

/* ---- the beginning ---- */

const char *krait_environment_begin(bool is_python)
{
    const char *path = getenv(KRAIT_ENV_SESSION);
    Dl_info info;
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
        real((enum function)i); /* not in a signal handler, or behind vfork */
    if (!path || !*path || strlen(path) > PATH_MAX || !dladdr((void *)carry, &info) || !info.dli_fname)
        return NULL;
    snprintf(session, sizeof(session), SESSION "%s", path);
    library = info.dli_fname;
    alone = getenv(KRAIT_ENV_NO_CHILDREN);
    carries = !(alone && is_python);
    if (!carries || getenv("KRAIT_CARRIED"))
        leave_environment();
    return session + strlen(SESSION);
}

void krait_environment_is_python(void)
{
    if (!alone)
        return;
    carries = false;
    leave_environment();
}
