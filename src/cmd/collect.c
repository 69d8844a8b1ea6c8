/* SPDX-License-Identifier: Apache-2.0
 *
 * krait collect: the collector of krait.start(). Prints the session and the folder, then collects, in the
 * background, until the process that asked for it stops recording or ends. For krait's own use.
 */
#include "cmd/cmds.h"
#include "cmd/recording.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>

/* Nobody's child and in nobody's terminal: no wait, no Ctrl-C and no closed pipe of the program meets it. */
static void detach(void)
{
    setsid();
    int null = open("/dev/null", O_RDWR);
    if (null < 0)
        return;
    for (int fd = 0; fd <= 2; fd++)
        dup2(null, fd);
    if (null > 2)
        close(null);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    signal(SIGTERM, SIG_IGN); /* sent to the program's group; the program's own end ends the recording */
    signal(SIGHUP, SIG_IGN);
}

static bool is_alive(pid_t pid)
{
    return kill(pid, 0) == 0 || errno == EPERM;
}

static void collect(struct krait_collector *collector, pid_t owner)
{
    while (is_alive(owner) && !krait_collector_left(collector, owner) && !krait_collector_limit(collector)) {
        krait_collector_nap(collector);
        krait_collector_round(collector);
        krait_collector_keep_newest(collector);
    }
}

static int child(struct krait_recording_values *values, pid_t owner, int ready)
{
    struct krait_err err = { 0 };
    struct krait_collector *collector = NULL;
    char dir[PATH_MAX];
    if (krait_recording_check(values, &err) ||
        krait_recording_open(&collector, values, "python", dir, sizeof(dir), &err))
        return krait_cmd_fail(&krait_cmd_collect, &err);
    KRAIT_AUTO_FREE char *full = realpath(dir, NULL);
    printf("%s\n%s\n", krait_collector_session(collector), full ? full : dir);
    fflush(stdout);
    detach();
    close(ready);
    krait_raise_priority();
    collect(collector, owner);
    struct krait_collector_summary summary;
    krait_collector_finish(collector, &summary);
    krait_collector_free(collector);
    return 0;
}

/* The program starts us with all its files. Before Linux 5.9, and where a filter refuses close_range, we look which there are: the
 * limit may be a billion. */
static void close_others(void)
{
    enum { FIRST = 3 };
    if (syscall(SYS_close_range, FIRST, ~0u, 0) == 0)
        return;
    DIR *dir = opendir("/proc/self/fd");
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        int fd = atoi(entry->d_name);
        if (fd >= FIRST && fd != dirfd(dir))
            close(fd);
    }
    if (dir)
        closedir(dir);
}

/* The program waits for our end, which comes when the child detaches. */
static int run(void *values, int argc, char **argv)
{
    int ready[2];
    char none;
    pid_t owner = getppid();
    close_others();
    if (pipe2(ready, O_CLOEXEC))
        return 1;
    pid_t pid = fork();
    if (pid == 0) {
        close(ready[0]);
        _exit(child(values, owner, ready[1]));
    }
    close(ready[1]);
    while (read(ready[0], &none, 1) < 0 && errno == EINTR)
        ;
    return pid < 0;
}

static const struct krait_opt opts[] = {
#include "cmd/recording.def"
    KRAIT_OPTS_END
};

const struct krait_cmd krait_cmd_collect = {
    .name = "collect",
    .operands = "",
    .summary = "Collect for a program that records itself with krait.start()",
    .description = "For krait's own use.",
    .opts = opts,
    .hidden = true,
    .values_size = sizeof(struct krait_recording_values),
    .run = run,
};
