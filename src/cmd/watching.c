/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/watching.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>

extern char **environ;

enum { NAP_MS = 50 };

/* What the command prints is its own: the link goes where krait's messages go. */
static int set_files(posix_spawn_file_actions_t *files)
{
    int rc = posix_spawn_file_actions_init(files);
    rc = rc ? rc : posix_spawn_file_actions_addopen(files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    return rc ? rc : posix_spawn_file_actions_adddup2(files, STDERR_FILENO, STDOUT_FILENO);
}

/* The recording may be over before the viewer can take the signal. */
static void set_attributes(posix_spawnattr_t *attributes)
{
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, KRAIT_VIEW_RECORDED);
    posix_spawnattr_init(attributes);
    posix_spawnattr_setsigmask(attributes, &blocked);
    posix_spawnattr_setpgroup(attributes, 0);
    posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
}

int krait_watching_start(pid_t *viewer, const char *dir, struct krait_err *err)
{
    char *const command[] = { "krait", "view", "--" KRAIT_WATCHING_OPTION, "--", (char *)dir, NULL };
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    int rc = set_files(&files);
    set_attributes(&attributes);
    rc = rc ? rc : posix_spawn(viewer, "/proc/self/exe", &files, &attributes, command, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    errno = rc;
    return rc ? krait_err_errno(err, "cannot start krait view") : 0;
}

void krait_watching_tell(pid_t viewer, bool has_something)
{
    kill(viewer, has_something ? KRAIT_VIEW_RECORDED : SIGTERM);
}

void krait_watching_wait(pid_t viewer, const volatile sig_atomic_t *ended)
{
    bool told = false;
    while (waitpid(viewer, NULL, WNOHANG) == 0) {
        if (*ended && !told)
            kill(viewer, SIGTERM);
        told = *ended;
        nanosleep(&(struct timespec){ .tv_nsec = NAP_MS * 1000000l }, NULL); /* a signal breaks it off */
    }
}
