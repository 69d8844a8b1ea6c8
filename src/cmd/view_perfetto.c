/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait view --perfetto`: the trace for ui.perfetto.dev, by way of this machine alone.
 */
#include "cmd/analysis_files.h"
#include "cmd/ending.h"
#include "cmd/progress.h"
#include "cmd/terminal.h"
#include "cmd/view.h"
#include "cmd/within.h"
#include "export/export.h"
#include "serve/one_file.h"
#include "trace/track.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#define PAGE "https://ui.perfetto.dev"

/* The only one that its Content-Security-Policy lets the page ask (its open_trace_in_ui). */
enum { PORT = 9001 };

/* A file that nobody else sees and that is gone with the process. */
static int open_temporary(char *path, size_t size, struct krait_err *err)
{
    const char *dir = getenv("TMPDIR");
    snprintf(path, size, "%s/krait-XXXXXX.pftrace", dir && *dir ? dir : "/tmp");
    int fd = mkostemps(path, (int)sizeof(".pftrace") - 1, O_CLOEXEC);
    return fd < 0 ? krait_err_errno(err, "%s", path) : fd;
}

static int write_trace(const struct view_options *o, struct krait_trace *trace, const char *path,
                       struct krait_err *err)
{
    struct krait_export_job job = {
        .trace = trace,
        .zero_ns = krait_trace_zero(trace),
        .what = { .range = krait_select_range(&o->select, trace),
                  .take_thread = krait_select_thread,
                  .ctx = (void *)&o->select },
    };
    struct krait_progress progress;
    krait_progress_begin(&progress, "view", trace);
    int rc = krait_export_run(krait_export_find("perfetto"), &job, path, err);
    krait_progress_end(&progress);
    if (!rc) {
        krait_ending_warn("view", trace, job.what.range, *job.damage ? job.damage : trace->damage, "");
        krait_ending_warn_kernel("view", job.kernel_damage);
    }
    return rc;
}

/* Into an unnamed file; returns its descriptor or a negative errno with err set. */
static int export_trace(const struct view_options *o, char **paths, size_t count, struct krait_err *err)
{
    char path[512];
    struct krait_trace *trace = NULL;
    /* What a file declares needs no calls: other tracers' events, and the kernel's. */
    unsigned needs = o->select.analyses.count && !o->select.within ? 0 : KRAIT_NEEDS_CALLS;
    int rc = krait_trace_open(&trace, (const char *const *)paths, count, needs, err);
    if (!rc && krait_trace_find_holders(trace))
        rc = krait_err_set(err, -ENOMEM, "out of memory");
    rc = rc ? rc : krait_within((void *)&o->select, trace, "view", err);
    rc = rc ? rc : krait_select_some(&o->select, trace, err);
    rc = rc ? rc : krait_tracks_find_kinds(trace, KRAIT_EXPORT_TRACKS, err);
    rc = rc ? rc : krait_analysis_lanes(&o->select, trace, trace, "view", NULL, err);
    int fd = rc ? rc : open_temporary(path, sizeof(path), err);
    if (fd >= 0) {
        close(fd); /* the export replaces the file */
        rc = write_trace(o, trace, path, err);
        fd = rc ? rc : open(path, O_RDONLY | O_CLOEXEC);
        fd = fd < 0 && !rc ? krait_err_errno(err, "%s", path) : fd;
        unlink(path);
    }
    krait_trace_close(trace);
    return fd;
}

/* Until somebody ends it; a browser that was started may end before. */
static void wait_for_end(const sigset_t *ends)
{
    int signal;
    do {
        sigwait(ends, &signal);
        while (signal == SIGCHLD && waitpid(-1, NULL, WNOHANG) > 0)
            ;
    } while (signal == SIGCHLD);
}

static int hand_over(const struct view_options *o, int fd, const sigset_t *ends, struct krait_err *err)
{
    char at[160], url[256];
    const struct krait_one_file file = { .fd = fd, .name = "pftrace", .origin = PAGE, .port = PORT };
    int rc = krait_one_file_serve(&file, at, sizeof(at), err);
    if (rc)
        return rc;
    snprintf(url, sizeof(url), PAGE "/#!/?url=%s", at);
    printf("%s\n", url);
    fflush(stdout);
    krait_terminal_say(
        NULL, 0,
        "krait view: open this link in a browser. The browser, not krait, loads Perfetto's page from the "
        "network; the page then reads the trace from this machine. Ctrl-C ends the server");
    if (!o->no_open)
        krait_view_open_browser(url);
    wait_for_end(ends);
    krait_one_file_end();
    return 0;
}

int krait_view_perfetto(const struct view_options *options, char **paths, size_t count, struct krait_err *err)
{
    static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGCHLD };
    sigset_t ends, before;
    KRAIT_AUTO_CLOSE int fd = export_trace(options, paths, count, err);
    if (fd < 0)
        return fd;
    sigemptyset(&ends);
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(signals); i++)
        sigaddset(&ends, signals[i]);
    pthread_sigmask(SIG_BLOCK, &ends, &before); /* the threads that are made now leave them to wait_for_end */
    int rc = hand_over(options, fd, &ends, err);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}
