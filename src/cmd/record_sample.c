/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/record_sample.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/fmt.h"
#include "cmd/pid.h"
#include "cmd/terminal.h"
#include "record/collector.h"
#include "record/folder.h"
#include "record/tracedir.h"
#include "remote/kernel_stack.h"
#include "remote/pace.h"
#include "remote/remote.h"

#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { RATE_USUAL = 1000, RATE_MOST = 10000 };

/* -- before -- */

static int parse_rate(const char *text, uint64_t *rate, struct krait_err *err)
{
    char *end;
    errno = 0;
    long n = *text ? strtol(text, &end, 10) : RATE_USUAL;
    if ((*text && *end) || errno || n < 1 || n > RATE_MOST)
        return krait_err_set(
            err, -EINVAL,
            "--sample: '%s' is no rate from 1 to %d samples a second; as in: krait record --sample "
            "1000 -- python3 app.py",
            text, RATE_MOST);
    *rate = (uint64_t)n;
    return 0;
}

/* Whether nothing was given besides what goes with --sample. */
static bool is_all_that_goes(const struct krait_recording_values *values)
{
    static const struct krait_recording_values none;
    struct krait_recording_values rest = *values;
    rest.output = NULL;
    rest.sample = none.sample;
    rest.pid = NULL;
    rest.outside = rest.quiet = rest.no_tasks = rest.children = rest.native_stacks = rest.kernel_stacks =
        false;
    rest.duration = 0;
    return memcmp(&rest, &none, sizeof(rest)) == 0;
}

int krait_record_sample_check(struct krait_record_sample *sample, const struct krait_recording_values *values,
                              int argc, struct krait_err *err)
{
    sample->values = values;
    if (!values->sample.count)
        return krait_err_set(
            err, -EINVAL,
            "--outside, --native-stacks and --kernel-stacks need --sample, --children needs --sample or --pid");
    if (!is_all_that_goes(values))
        return krait_err_set(
            err, -EINVAL,
            "--sample goes with --output, --pid, --outside, --children, --native-stacks, --kernel-stacks, --no-tasks, "
            "--for and --quiet alone");
    if (values->pid && argc)
        return krait_err_set(err, -EINVAL, "--pid and a command exclude each other");
    if (!values->pid && !argc)
        return krait_err_set(err, -EINVAL,
                             "nothing to sample; as in: krait record --sample --pid 4711, or krait record "
                             "--sample -- python3 app.py");
    int rc = parse_rate(values->sample.items[values->sample.count - 1], &sample->rate, err);
    if (!rc && values->kernel_stacks) /* by krait's own: before a command is started */
        rc = krait_kernel_stack_check(getpid(), err);
    return rc || !values->pid ? rc : krait_pid_parse(values->pid, &sample->pid, err);
}

int krait_record_sample_prepare(struct krait_record_sample *sample, const char *command,
                                struct krait_err *err)
{
    krait_recording_dir(sample->values, command, sample->dir, sizeof(sample->dir));
    return krait_folder_make(sample->dir, &sample->made_dir, err);
}

/* -- sampling -- */

static void sleep_until(uint64_t ns)
{
    struct timespec time = { (time_t)(ns / KRAIT_NS_PER_S), (long)(ns % KRAIT_NS_PER_S) };
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
}

static struct krait_sampler_options options_of(struct krait_record_sample *sample, pid_t pid)
{
    return (struct krait_sampler_options){ .dir = sample->dir,
                                           .native = sample->values->native_stacks,
                                           .no_tasks = sample->values->no_tasks,
                                           .kernel = sample->values->kernel_stacks,
                                           .alone = !sample->values->children,
                                           .pid = pid,
                                           .spare_fds = &sample->spare_fds,
                                           .rate = sample->rate };
}

/* -- what it starts -- */

struct krait_record_child {
    pid_t pid;
    struct krait_sampler *sampler;
};

static void add_sums(struct krait_record_sample *sample, const struct krait_sampler_summary *of)
{
    struct krait_sampler_summary *sums = &sample->sums;
    sums->samples += of->samples;
    sums->dropped += of->dropped;
    sums->bytes += of->bytes;
    sums->threads += of->threads;
    sums->duration_ns = KRAIT_MAX(sums->duration_ns, of->duration_ns);
    sample->processes++;
}

/* Writes the rest of a child's, and forgets it: it has ended, or executed a program that is no Python. */
static int close_child(struct krait_record_sample *sample, uint32_t i, enum krait_event_enum_value how,
                       const char *limit, struct krait_err *err)
{
    struct krait_sampler_summary summary;
    struct krait_record_child child = sample->children[i];
    int rc = krait_sampler_finish(child.sampler, how, -1, limit, &summary, err);
    krait_sampler_free(child.sampler);
    sample->children[i] = sample->children[--sample->child_count];
    if (!rc)
        add_sums(sample, &summary);
    return rc;
}

static bool is_sampled(const struct krait_record_sample *sample, pid_t pid)
{
    bool found = false;
    for (uint32_t i = 0; i < sample->child_count && !found; i++)
        found = sample->children[i].pid == pid;
    return found;
}

/* One that cannot be read is no Python, or not yet one, or has ended: it is tried again at the next look. */
static int add_child(struct krait_record_sample *sample, pid_t pid)
{
    struct krait_err why = { 0 };
    struct krait_sampler_options options = options_of(sample, pid);
    options.joins = true;
    if (!KRAIT_GROW(sample->children, sample->child_cap, sample->child_count + 1))
        return -ENOMEM;
    struct krait_record_child *child = &sample->children[sample->child_count];
    *child = (struct krait_record_child){ .pid = pid };
    if (!krait_sampler_new(&child->sampler, &options, &why))
        sample->child_count++;
    return 0;
}

static int look_for_children(struct krait_record_sample *sample, uint64_t now)
{
    enum { LOOK_NS = 100 * KRAIT_NS_PER_MS };
    KRAIT_CLEANUP(krait_pids_done) struct krait_pids pids = { 0 };
    if (!sample->values->children || now - sample->looked_ns < LOOK_NS)
        return 0;
    sample->looked_ns = now;
    int rc = krait_pids_add_children(&pids, sample->pid);
    for (uint32_t i = 0; i < pids.count && !rc; i++) {
        if (!is_sampled(sample, pids.items[i]))
            rc = add_child(sample, pids.items[i]);
    }
    return rc;
}

static int sample_children(struct krait_record_sample *sample, uint64_t now, struct krait_err *err)
{
    int rc = look_for_children(sample, now);
    if (rc)
        return krait_err_set(err, rc, "out of memory");
    for (uint32_t i = sample->child_count; i-- && !rc;) {
        struct krait_err why = { 0 };
        if (krait_sampler_round(sample->children[i].sampler, &why))
            rc = close_child(sample, i, KRAIT_process_end_gone, NULL, err);
    }
    return rc;
}

/* A command becomes Python at some time, or never: a shell first, then what it executes. With --children it need not: then there is
 * no sampler for it. */
static int open_sampler(struct krait_record_sample *sample, struct krait_sampler **sampler,
                        struct krait_err *err)
{
    struct krait_sampler_options options = options_of(sample, sample->pid);
    struct krait_err before = { 0 }; /* while it was there */
    int rc;
    do {
        rc = krait_sampler_new(sampler, &options, err);
        before = rc && rc != -ESRCH ? *err : before;
        if (rc && rc != -ENOMEM && rc != -EEXIST)
            look_for_children(sample, krait_clock_ns(CLOCK_MONOTONIC));
        if (sample->child_count)
            return 0;
        if (rc && !sample->values->pid)
            sleep_until(krait_clock_ns(CLOCK_MONOTONIC) + KRAIT_NS_PER_MS);
    } while (rc && !sample->values->pid && rc != -ENOMEM && rc != -EEXIST && !sample->over(sample->ctx));
    if (rc == -ESRCH && before.code) {
        *err = before;
        rc = before.code;
    }
    return rc == -ENOEXEC && sample->values->pid && sample->values->children
               ? krait_pid_no_python(sample->pid, err)
               : rc;
}

/* Returns 0 at the end of --for or when it is over, -ESRCH when the process has ended, or another negative errno. */
static int take_samples(struct krait_record_sample *sample, struct krait_sampler *sampler,
                        struct krait_err *err)
{
    KRAIT_CLEANUP(krait_pace_close) struct krait_pace pace;
    uint64_t begin = krait_clock_ns(CLOCK_MONOTONIC), now = begin;
    uint64_t most = sample->values->duration;
    int rc = 0;
    krait_pace_open(&pace, sample->rate);
    prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
    while (!rc && !sample->over(sample->ctx) && (!most || now - begin < most)) {
        rc = sampler                                  ? krait_sampler_round(sampler, err)
             : kill(sample->pid, 0) && errno == ESRCH ? -ESRCH
                                                      : 0;
        rc = rc ? rc : sample_children(sample, now, err);
        krait_pace_next(&pace, krait_clock_ns(CLOCK_MONOTONIC));
        krait_pace_wait(&pace, most ? begin + most : UINT64_MAX);
        now = krait_clock_ns(CLOCK_MONOTONIC);
    }
    return rc;
}

/* -- the end -- */

static void print_summary(const struct krait_record_sample *sample, const struct krait_sampler_summary *s)
{
    char who[96];
    uint32_t started = sample->processes - sample->itself;
    if (!sample->itself)
        snprintf(who, sizeof(who), "%u process%s that %d started", started, started == 1 ? "" : "es",
                 sample->pid);
    else if (started)
        snprintf(who, sizeof(who), "process %d and %u that it started", sample->pid, started);
    else
        snprintf(who, sizeof(who), "process %d", sample->pid);
    char duration[KRAIT_FMT_SIZE], threads[KRAIT_FMT_SIZE], samples[KRAIT_FMT_SIZE], bytes[KRAIT_FMT_SIZE];
    const char *bold = krait_terminal_colour(stderr, KRAIT_BOLD);
    const char *plain = krait_terminal_colour(stderr, KRAIT_PLAIN);
    fprintf(stderr, "krait: sampled %s for %s%s%s; %s, %s, %s in %s", who, bold,
            krait_fmt_ns(duration, s->duration_ns), plain, krait_fmt_counted(threads, s->threads, "thread"),
            krait_fmt_counted(samples, s->samples, "sample"), krait_fmt_bytes(bytes, s->bytes), bold);
    krait_terminal_safe(stderr, sample->dir);
    fprintf(stderr, "%s\n", plain);
    if (s->dropped)
        krait_terminal_say(NULL, 2, "%s dropped: the thread ran while krait read it",
                           krait_fmt_counted(samples, s->dropped, "sample"));
}

/* Its memory goes before its status comes. */
static void wait_for_status(struct krait_record_sample *sample)
{
    uint64_t end = krait_clock_ns(CLOCK_MONOTONIC) + KRAIT_NS_PER_S;
    for (uint64_t now = 0; now < end && !sample->over(sample->ctx); now = krait_clock_ns(CLOCK_MONOTONIC))
        sleep_until(krait_clock_ns(CLOCK_MONOTONIC) + KRAIT_NS_PER_MS);
}

static int finish(struct krait_record_sample *sample, struct krait_sampler *sampler, const int *status,
                  struct krait_err *err)
{
    struct krait_sampler_summary summary = { 0 };
    char limit[KRAIT_FMT_SIZE], ns[KRAIT_FMT_SIZE];
    if (status && sample->ended)
        wait_for_status(sample);
    bool over = status && sample->over(sample->ctx);
    enum krait_event_enum_value how = !over ? sample->ended ? KRAIT_process_end_gone : KRAIT_process_end_stop
                                      : WIFSIGNALED(*status) ? KRAIT_process_end_signal
                                                             : KRAIT_process_end_exit;
    int code = !over ? -1 : WIFSIGNALED(*status) ? WTERMSIG(*status) : WEXITSTATUS(*status);
    snprintf(limit, sizeof(limit), "--for %s", krait_fmt_ns(ns, sample->values->duration));
    bool limited = sample->values->duration && !over && !sample->ended;
    const char *limited_by = limited ? limit : NULL;
    int rc = sampler ? krait_sampler_finish(sampler, how, code, limited_by, &summary, err) : 0;
    while (sample->child_count && !rc)
        rc = close_child(sample, sample->child_count - 1, KRAIT_process_end_stop, limited_by, err);
    sample->itself = sampler;
    if (sampler)
        add_sums(sample, &summary);
    if (!rc && !sample->values->quiet)
        print_summary(sample, &sample->sums);
    return rc;
}

int krait_record_sample_run(struct krait_record_sample *sample, const int *status, struct krait_err *err)
{
    enum { OPEN_STREAMS = 256 }; /* at most: as many more files may tell of threads */
    struct krait_sampler *sampler = NULL;
    sample->spare_fds = KRAIT_MIN(krait_tracedir_spare_fds(), (int)OPEN_STREAMS);
    int rc = open_sampler(sample, &sampler, err);
    if (rc) {
        if (sample->made_dir)
            rmdir(sample->dir);
        return rc;
    }
    struct krait_err why = { 0 }; /* of an end before its time */
    krait_raise_priority();       /* on a thread's CPU it waits for that thread's slice to end */
    rc = take_samples(sample, sampler, &why);
    sample->ended = rc == -ESRCH;
    int finished = finish(sample, sampler, status, err);
    krait_sampler_free(sampler);
    for (uint32_t i = 0; i < sample->child_count; i++) /* of an error */
        krait_sampler_free(sample->children[i].sampler);
    free(sample->children);
    sample->is_cut_short = rc && !sample->ended; /* as when it executes a program that is no Python */
    if (sample->is_cut_short)
        krait_terminal_say(NULL, 2, "The recording ends here: %s", why.text);
    return finished;
}
