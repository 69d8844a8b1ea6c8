/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/ending.h"
#include "cmd/terminal.h"
#include "cmd/view.h"
#include "serve/server.h"
#include "view/index.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>

extern char **environ;

/* A browser, where there is a screen to show it on. Whether it opens is its own affair: the address is printed. */
static void open_browser(const char *url)
{
    const char *program = getenv("BROWSER");
    bool has_screen = getenv("DISPLAY") || getenv("WAYLAND_DISPLAY") || program;
    char *const command[] = { (char *)(program && *program ? program : "xdg-open"), (char *)url, NULL };
    posix_spawn_file_actions_t silent;
    posix_spawnattr_t attributes;
    sigset_t none;
    pid_t pid;
    if (!has_screen || posix_spawn_file_actions_init(&silent))
        return;
    sigemptyset(&none);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    posix_spawn_file_actions_addopen(&silent, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&silent, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&silent, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawnp(&pid, command[0], &silent, &attributes, command, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&silent);
}

static bool is_from_here(const char *address)
{
    return !address || strncmp(address, "127.", 4) == 0 || strcmp(address, "::1") == 0;
}

/* Until somebody ends it. A browser that was started may end before. */
static void wait_for_end(const sigset_t *ends)
{
    int signal;
    do {
        sigwait(ends, &signal);
        while (signal == SIGCHLD && waitpid(-1, NULL, WNOHANG) > 0)
            ;
    } while (signal == SIGCHLD);
}

static int serve(const struct view_options *o, const struct krait_view_options *of, struct krait_view *view,
                 const struct krait_trace *trace, const sigset_t *ends, struct krait_err *err)
{
    struct krait_server *server;
    const struct krait_server_options options = {
        .address = o->listen, .port = (uint16_t)o->port, .paths = of->paths, .path_count = of->path_count
    };
    int rc = krait_server_new(&server, view, trace, &options, err);
    if (rc)
        return rc;
    if (!is_from_here(o->listen))
        fputs(
            "krait view: warning: whoever reaches this address and has the link sees the recording; nothing is "
            "encrypted\n",
            stderr);
    printf("%s\n", krait_server_url(server));
    fflush(stdout);
    krait_terminal_say(NULL, 0, "krait view: open this link in a browser; Ctrl-C ends the server");
    if (!o->no_open)
        open_browser(krait_server_url(server));
    wait_for_end(ends);
    krait_server_free(server);
    return 0;
}

int krait_view_serve(const struct view_options *options, char **paths, size_t count, struct krait_err *err)
{
    struct krait_trace *trace = NULL;
    struct krait_view *view = NULL;
    sigset_t ends, before;
    const struct krait_view_options wanted = { .paths = (const char *const *)paths, .path_count = count };
    int rc = krait_trace_open(&trace, (const char *const *)paths, count, 0, err);
    if (!rc && krait_trace_find_holders(trace))
        rc = krait_err_set(err, -ENOMEM, "out of memory");
    if (!rc)
        krait_ending_warn("view", trace, trace->damage, "");
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGHUP);
    sigaddset(&ends, SIGCHLD);
    pthread_sigmask(SIG_BLOCK, &ends, &before); /* the threads that are made now leave them to wait_for_end */
    rc = rc ? rc : krait_view_open(&view, trace, &wanted, err);
    rc = rc ? rc : serve(options, &wanted, view, trace, &ends, err);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    krait_view_close(view);
    krait_trace_close(trace);
    return rc;
}
