/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "cmd/analysis_files.h"
#include "cmd/ending.h"
#include "cmd/terminal.h"
#include "cmd/view.h"
#include "cmd/within.h"
#include "serve/running.h"
#include "serve/server.h"
#include "trace/growing.h"
#include "view/index.h"
#include "view/timeline.h"

#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define FOLLOW_NS (KRAIT_NS_PER_S / 2)    /* between two looks at a recording that goes on, at least */
#define FIRST_NS  (100 * KRAIT_NS_PER_MS) /* between two looks for its first process */
#define CHANGED   SIGUSR2                 /* what is declared is another */
#define NAP_NS    (20 * KRAIT_NS_PER_MS)  /* between two looks at its index */

/* What is larger goes back to the kernel when it is freed, and does not stay in the arena of the thread that made it. Left alone,
 * glibc raises this limit to 32 MiB (mallopt(3)), and each update leaves large holes: with 322 MB of events, 706 MB instead of
 * 352 MB. */
#define LARGE (1 << 20)

extern char **environ;

/* A browser, where there is a screen to show it on. Whether it opens is its own affair: the address is printed. */
void krait_view_open_browser(const char *url)
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

/* ---- what is shown ---- */

struct shown {
    const struct view_options *o;
    struct krait_view_options of;
    sigset_t ends; /* signals that end the server, or a browser that was started, or the recording */
    struct krait_select select; /* of lanes: options' files, and the one beside the recording */
    char *beside;               /* that one's path */
    char *analyses;             /* the user's folder */
    char *place;                /* of the link: where the page opens; NULL: it shows all */
    uint32_t changes;           /* atomic: how often the page has changed what is declared */
    uint32_t changes_shown;     /* of these, what is shown has; the main thread's */
    /* What is shown last of a recording that goes on; the server's, until it shows another. */
    struct krait_trace *trace;
    struct krait_view *view;
    bool recording; /* krait record, which started this, has not said yet that it is over */
    struct krait_server *server;
};

static void close_shown(struct krait_view *view, struct krait_trace *trace)
{
    krait_view_close(view);
    krait_trace_close(trace);
}

/* One that the server did not take; it may have no view yet. */
static void give_up(struct krait_server_trace *shown)
{
    krait_rules_done(&shown->rules);
    close_shown(shown->view, shown->trace);
}

/* By the recording opened once more: the index's cache wants that nobody has walked the one that is shown. One that goes on has no
 * cache, and knows already what the ones before it have read. */
static int make_lanes(struct krait_server_trace *now, const struct shown *shown, struct krait_err *err)
{
    struct krait_trace *own = NULL;
    if (!shown->select.analyses.count)
        return 0;
    int rc = now->growing
                 ? 0
                 : krait_trace_open(&own, shown->of.paths, shown->of.path_count, KRAIT_MACHINES_APART, err);
    rc = rc ? rc : krait_tracks_find(now->trace, err);
    rc = rc ? rc
            : krait_analysis_lanes(&shown->select, own ? own : now->trace, now->trace, "view", &now->rules,
                                   err);
    krait_trace_close(own);
    return rc;
}

/* Of the files that -f names, and of the page's, where there is one: if that one does not fit, it is left out. */
static int add_lanes(struct krait_server_trace *now, struct shown *shown, struct krait_err *err)
{
    struct krait_opt_list *files = &shown->select.analyses;
    bool has_pages = access(shown->beside, R_OK) == 0;
    files->count = shown->o->select.analyses.count + has_pages;
    int rc = make_lanes(now, shown, err);
    if (!rc || rc == -ENOMEM || !has_pages)
        return rc;
    fputs("krait view: warning: ", stderr);
    krait_terminal_safe(stderr, err->text);
    fputc('\n', stderr);
    files->count--;
    return make_lanes(now, shown, err);
}

static bool takes(void *select, const struct krait_trace *trace, const struct krait_track *track)
{
    return krait_select_place(select, trace, track);
}

/* Opens the recording as it is now, with its declared lanes, without a view of it. What is asked before it is opened is
 * whether it goes on: so nothing is missed. */
static int open_trace(struct krait_server_trace *out, struct shown *shown, struct krait_err *err)
{
    const struct krait_view_options *of = &shown->of;
    shown->changes_shown =
        __atomic_load_n(&shown->changes, __ATOMIC_ACQUIRE); /* one from now on may be in it, too */
    struct krait_server_trace now = { .changes = shown->changes_shown,
                                      .growing =
                                          shown->recording || krait_trace_grows(of->paths, of->path_count),
                                      .takes = takes,
                                      .takes_ctx = &shown->select,
                                      .close = close_shown };
    int rc = now.growing ? krait_trace_open_on(&now.trace, shown->trace, of->paths, of->path_count,
                                               KRAIT_MACHINES_APART, err)
                         : krait_trace_open(&now.trace, of->paths, of->path_count, KRAIT_MACHINES_APART, err);
    if (rc)
        return rc;
    if (krait_trace_find_holders(now.trace))
        rc = krait_err_set(err, -ENOMEM, "out of memory");
    now.trace->progress = krait_running_progress;
    if (!rc && !now.growing)
        krait_ending_warn("view", now.trace, KRAIT_RANGE_ALL, now.trace->damage, "");
    rc = rc ? rc : add_lanes(&now, shown, err);
    if (rc)
        give_up(&now);
    else
        *out = now;
    return rc;
}

/* Adds the view, which takes a look at all events of the kernel the first time. Gives `now` up if it fails. */
static int open_view(struct krait_server_trace *now, struct shown *shown, struct krait_err *err)
{
    struct krait_view_options of = shown->of;
    of.flags |= now->growing ? KRAIT_VIEW_NO_CACHE : 0;
    of.before = shown->view;
    int rc = krait_view_open(&now->view, now->trace, &of, err);
    if (rc)
        give_up(now);
    return rc;
}

static int open_shown(struct krait_server_trace *out, struct shown *shown, struct krait_err *err)
{
    int rc = open_trace(out, shown, err);
    return rc ? rc : open_view(out, shown, err);
}

/* ---- waiting ---- */

/* Whether somebody ends the server within a time; a browser that was started may end before. Returns early where the
 * recording is over. */
static bool is_ended(struct shown *shown, uint64_t ns)
{
    const struct timespec wait = { (time_t)(ns / KRAIT_NS_PER_S), (long)(ns % KRAIT_NS_PER_S) };
    int signal = sigtimedwait(&shown->ends, NULL, &wait);
    while (signal == SIGCHLD && waitpid(-1, NULL, WNOHANG) > 0)
        ;
    shown->recording = shown->recording && signal != KRAIT_VIEW_RECORDED;
    return signal > 0 && signal != SIGCHLD && signal != KRAIT_VIEW_RECORDED && signal != CHANGED;
}

/* From a thread of the server's: the main thread waits for signals. */
static uint32_t on_changed(void *ctx)
{
    struct shown *shown = ctx;
    uint32_t changes = __atomic_add_fetch(&shown->changes, 1, __ATOMIC_ACQ_REL);
    kill(getpid(), CHANGED);
    return changes;
}

/* Returns whether the server is ended meanwhile. */
static bool wait_for_index(struct shown *shown, struct krait_view *view)
{
    struct krait_view_progress progress;
    bool ended = false;
    do
        krait_view_progress(view, &progress);
    while (!progress.is_done && !(ended = is_ended(shown, NAP_NS)));
    return ended;
}

/* Returns 0 or -ENOMEM. What is opened next begins with what is shown now, as long as the recording goes on. */
static int show(struct shown *shown, const struct krait_server_trace *now)
{
    int rc = krait_server_show(shown->server, now);
    if (rc)
        return rc;
    shown->trace = now->growing ? now->trace : NULL;
    shown->view = now->growing ? now->view : NULL;
    return 0;
}

/* Shows more of a recording that goes on, or other lanes. Returns whether the server is ended. */
static bool show_more(struct shown *shown, bool *growing)
{
    struct krait_server_trace next;
    struct krait_err err = { 0 };
    bool ended = shown->view && wait_for_index(shown, shown->view); /* the next one begins with it */
    if (ended || open_shown(&next, shown, &err))
        return ended; /* half of it is written: next time */
    ended = wait_for_index(shown, next.view);
    if (ended || show(shown, &next))
        give_up(&next);
    else
        *growing = next.growing;
    return ended;
}

/* To show more takes the longer the more has come: a third of the time at most goes into it. krait record's signal that the
 * recording is over may have come while the last part was being read. */
static void follow(struct shown *shown, bool growing)
{
    uint64_t pause_ns = FOLLOW_NS;
    bool ended = false;
    while (growing && !ended) {
        ended = is_ended(shown, pause_ns);
        uint64_t begin_ns = krait_clock_ns(CLOCK_MONOTONIC);
        ended = ended || show_more(shown, &growing);
        uint64_t took_ns = krait_clock_ns(CLOCK_MONOTONIC) - begin_ns;
        bool is_over = shown->o->follow && !shown->recording;
        pause_ns = is_over ? NAP_NS : KRAIT_MAX(FOLLOW_NS, 2 * took_ns);
    }
    while (!ended) {
        if (__atomic_load_n(&shown->changes, __ATOMIC_ACQUIRE) != shown->changes_shown)
            ended = show_more(shown, &growing);
        else
            ended = is_ended(shown, UINT32_MAX * KRAIT_NS_PER_S);
    }
}

/* The recording has no process yet. Returns as open_trace does, or -EINTR. */
static int wait_for_first(struct krait_server_trace *first, struct shown *shown, struct krait_err *err)
{
    int rc;
    while ((rc = open_trace(first, shown, err)) && shown->recording) {
        if (is_ended(shown, FIRST_NS))
            return -EINTR;
    }
    return rc;
}

/* ---- where the page opens ---- */

static bool is_chosen(const struct view_options *o)
{
    return o->select.within || o->select.from || o->select.until;
}

/* The range on the screen, with some room, and the selected one, if one was chosen: web/src/store.ts, decode. */
static int set_place(struct shown *shown, const struct krait_trace *trace)
{
    KRAIT_CLEANUP(krait_timeline_done) struct krait_timeline picture = { 0 };
    struct krait_range range = krait_select_range(&shown->o->select, trace), whole;
    int64_t zero_ns = (int64_t)krait_trace_zero(trace);
    if (krait_view_whole(&whole, &picture, trace, shown->o))
        return -ENOMEM;
    range.from_ns = KRAIT_MAX(range.from_ns, whole.from_ns);
    range.to_ns = KRAIT_MIN(range.to_ns, whole.to_ns - 1);
    if (range.from_ns >= range.to_ns)
        return 0;
    int64_t from = (int64_t)range.from_ns - zero_ns, span = (int64_t)(range.to_ns - range.from_ns);
    int64_t room = span / 10;
    KRAIT_AUTO_BUF place = { 0 };
    krait_buf_fmt(&place, "#r=%lld,%lld", (long long)(from - room), (long long)(span + 2 * room));
    if (is_chosen(shown->o))
        krait_buf_fmt(&place, ";s=%lld,%lld", (long long)from, (long long)span);
    shown->place = place.failed ? NULL : strdup(place.data);
    return shown->place ? 0 : -ENOMEM;
}

/* Where the recording dropped what was earlier; or what was chosen, by the recording opened once more, as for lanes. */
static int find_place(struct shown *shown, const struct krait_server_trace *first, struct krait_err *err)
{
    const struct krait_select *select = &shown->o->select;
    struct krait_trace *own = NULL;
    bool is_late = !first->growing && krait_trace_kept(first->trace) > first->trace->begin_ns;
    if (!is_chosen(shown->o))
        return is_late && set_place(shown, first->trace) ? krait_err_set(err, -ENOMEM, "out of memory") : 0;
    int rc = krait_trace_open(&own, shown->of.paths, shown->of.path_count, KRAIT_MACHINES_APART, err);
    rc = rc ? rc : krait_tracks_find(own, err);
    rc = rc ? rc : krait_within((void *)select, own, "view", err);
    if (!rc && set_place(shown, own))
        rc = krait_err_set(err, -ENOMEM, "out of memory");
    krait_trace_close(own);
    return rc;
}

/* ---- the server ---- */

static void say_link(const struct shown *shown)
{
    const struct view_options *o = shown->o;
    KRAIT_AUTO_BUF url = { 0 };
    krait_buf_fmt(&url, "%s%s", krait_server_url(shown->server), shown->place ? shown->place : "");
    if (!is_from_here(o->listen))
        fputs(
            "krait view: warning: whoever reaches this address and has the link sees the recording; nothing is "
            "encrypted\n",
            stderr);
    printf("%s\n", url.failed ? "" : url.data);
    fflush(stdout);
    krait_terminal_say(NULL, 0, "krait view: open this link in a browser; Ctrl-C ends the server");
    if (!o->no_open && !url.failed)
        krait_view_open_browser(url.data);
}

/* Shows the recording, which the page, on its way to the browser, waits for. */
static int show_first(struct shown *shown, struct krait_server_trace *first, struct krait_err *err)
{
    int rc = open_view(first, shown, err);
    if (rc)
        return rc;
    if (show(shown, first)) {
        give_up(first);
        return krait_err_set(err, -ENOMEM, "out of memory");
    }
    return 0;
}

static int serve(struct shown *shown, struct krait_err *err)
{
    const struct view_options *o = shown->o;
    struct krait_server_trace first = { 0 };
    const struct krait_server_options options = { .address = o->listen,
                                                  .port = (uint16_t)o->port,
                                                  .paths = shown->of.paths,
                                                  .path_count = shown->of.path_count,
                                                  .analyses = shown->analyses,
                                                  .changed = on_changed,
                                                  .ctx = shown };
    int rc = wait_for_first(&first, shown, err);
    if (rc)
        return rc == -EINTR ? 0 : rc;
    rc = find_place(shown, &first, err);
    rc = rc ? rc : krait_server_new(&shown->server, &options, err);
    if (rc) {
        give_up(&first);
        return rc;
    }
    say_link(shown);
    rc = show_first(shown, &first, err);
    if (!rc)
        follow(shown, first.growing);
    krait_server_free(shown->server);
    return rc;
}

/* Names the files of lanes; the last is the page's. */
static int prepare(struct shown *shown)
{
    const struct krait_opt_list *own = &shown->o->select.analyses;
    shown->analyses = krait_analysis_folder();
    shown->select = shown->o->select;
    shown->select.analyses.items = calloc(own->count + 1, sizeof(*own->items));
    if (!shown->select.analyses.items ||
        asprintf(&shown->beside, "%s/" KRAIT_DECLARED_BESIDE, shown->of.paths[0]) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < own->count; i++)
        shown->select.analyses.items[i] = own->items[i];
    shown->select.analyses.items[own->count] = shown->beside;
    return 0;
}

int krait_view_serve(const struct view_options *options, char **paths, size_t count, struct krait_err *err)
{
    static const int ends[] = { SIGINT, SIGTERM, SIGHUP, SIGCHLD, KRAIT_VIEW_RECORDED, CHANGED };
    struct shown shown = { .o = options,
                           .recording = options->follow,
                           .of = { .paths = (const char *const *)paths, .path_count = count } };
    sigset_t before;
    sigemptyset(&shown.ends);
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(ends); i++)
        sigaddset(&shown.ends, ends[i]);
    pthread_sigmask(SIG_BLOCK, &shown.ends,
                    &before); /* the threads that are made now leave them to is_ended */
    mallopt(M_MMAP_THRESHOLD, LARGE);
    if (options->follow)
        prctl(PR_SET_PDEATHSIG, SIGTERM); /* of krait record, which has no page without a recording */
    int rc = prepare(&shown) ? krait_err_set(err, -ENOMEM, "out of memory") : serve(&shown, err);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    free(shown.select.analyses.items);
    free(shown.beside);
    free(shown.analyses);
    free(shown.place);
    return rc;
}
