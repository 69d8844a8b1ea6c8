/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/record_sample.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/fmt.h"
#include "cmd/pid.h"
#include "cmd/terminal.h"
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

/* How long a program that cannot be read is waited for: it may still load Python, or execute one that does. */
static const uint64_t patience_ns = 5 * KRAIT_NS_PER_S;
static const uint64_t look_ns = 100 * KRAIT_NS_PER_MS; /* how often, at least, krait looks for programs */

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

/* How a program ended that was sampled: as krait_sampler_finish takes it. */
struct krait_record_end {
    enum krait_event_enum_value how;
    int code;
    const char *limit;
};

static const struct krait_record_end executed = { KRAIT_process_end_exec, -1, NULL };
static const struct krait_record_end gone = { KRAIT_process_end_gone, -1, NULL };

static void add_sums(struct krait_record_sample *sample, const struct krait_sampler_summary *of)
{
    struct krait_sampler_summary *sums = &sample->sums;
    uint64_t begin = sums->rounds ? KRAIT_MIN(sums->begin_ns, of->begin_ns) : of->begin_ns;
    uint64_t end = KRAIT_MAX(sums->begin_ns + sums->duration_ns, of->begin_ns + of->duration_ns);
    sums->samples += of->samples;
    sums->dropped += of->dropped;
    sums->bytes += of->bytes;
    sums->threads += of->threads;
    if (!of->rounds)
        return;
    sums->rounds += of->rounds;
    sums->begin_ns = begin;
    sums->duration_ns = end - begin;
}

/* Writes the rest, and frees it. */
static int close_sampler(struct krait_record_sample *sample, struct krait_sampler *sampler,
                         const struct krait_record_end *end, struct krait_err *err)
{
    struct krait_sampler_summary summary;
    int rc = krait_sampler_finish(sampler, end->how, end->code, end->limit, &summary, err);
    krait_sampler_free(sampler);
    if (!rc)
        add_sums(sample, &summary);
    return rc;
}

static int close_child(struct krait_record_sample *sample, uint32_t i, const struct krait_record_end *end,
                       struct krait_err *err)
{
    struct krait_sampler *sampler = sample->children[i].sampler;
    sample->children[i] = sample->children[--sample->child_count];
    /* One that was seen between fork and exec counts as what it has executed, if that is Python. */
    sample->started += end->how != KRAIT_process_end_exec;
    return close_sampler(sample, sampler, end, err);
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
    KRAIT_CLEANUP(krait_pids_done) struct krait_pids pids = { 0 };
    if (!sample->values->children || now - sample->looked_ns < look_ns)
        return 0;
    sample->looked_ns = now;
    int rc = krait_pids_add_children(&pids, sample->pid);
    for (uint32_t i = 0; i < pids.count && !rc; i++) {
        if (!is_sampled(sample, pids.items[i]) && !krait_executed_is_to_come(pids.items[i]))
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
        int read = krait_sampler_round(sample->children[i].sampler, &why);
        if (read && read != -EAGAIN)
            rc = close_child(sample, i, read == -ESTALE ? &executed : &gone, err);
    }
    return rc;
}

/* -- the process itself -- */

/* Whether there is still something to wait for, where it cannot be read. */
static bool is_waited_for(struct krait_record_sample *sample, uint64_t now, int rc)
{
    struct krait_executed image = krait_executed_read(sample->pid);
    if (rc == -ESRCH || rc == -ENOMEM)
        return false;
    if (!sample->unread_ns || krait_executed_is_other(sample->unread, image)) {
        sample->unread_ns = now;
        sample->unread = image;
    }
    sample->next_ns = now + KRAIT_MIN(KRAIT_MAX(KRAIT_NS_PER_MS, (now - sample->unread_ns) / 16), look_ns);
    return sample->values->children || now - sample->unread_ns < patience_ns;
}

static int end_program(struct krait_record_sample *sample, const struct krait_record_end *end,
                       struct krait_err *err)
{
    struct krait_sampler *sampler = sample->sampler;
    sample->sampler = NULL;
    sample->programs++;
    sample->next_ns = sample->unread_ns = 0;
    return close_sampler(sample, sampler, end, err);
}

static int open_next(struct krait_record_sample *sample, struct krait_err *err)
{
    struct krait_sampler_options options = options_of(sample, sample->pid);
    options.joins = true;
    return krait_sampler_new(&sample->sampler, &options, err);
}

/* A sample of its threads, or a look whether what it has executed runs Python by now. */
static int sample_itself(struct krait_record_sample *sample, uint64_t now, struct krait_err *err)
{
    struct krait_err why = { 0 };
    bool reads = sample->sampler;
    if (!reads && now < sample->next_ns)
        return 0;
    int rc = reads ? krait_sampler_round(sample->sampler, &why) : open_next(sample, &why);
    if (rc == -ESTALE)
        return end_program(sample, &executed, err);
    if (rc && rc != -ESRCH) /* that would not tell what it had become */
        *err = why;
    if (!rc)
        sample->unread_ns = 0;
    return !rc || ((!reads || rc == -EAGAIN) && is_waited_for(sample, now, rc)) ? 0 : rc;
}

/* -- sampling -- */

/* A command becomes Python at some time, or never: a shell first, then what it executes. With --children it need not: then there is
 * no sampler for it. */
static int open_sampler(struct krait_record_sample *sample, struct krait_err *err)
{
    struct krait_sampler_options options = options_of(sample, sample->pid);
    struct krait_err before = { 0 }; /* while it was there */
    int rc;
    do {
        rc = krait_sampler_new(&sample->sampler, &options, err);
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
static int take_samples(struct krait_record_sample *sample, struct krait_err *err)
{
    KRAIT_CLEANUP(krait_pace_close) struct krait_pace pace;
    uint64_t begin = krait_clock_ns(CLOCK_MONOTONIC), now = begin;
    uint64_t most = sample->values->duration;
    int rc = 0;
    krait_pace_open(&pace, sample->rate);
    prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
    while (!rc && !sample->over(sample->ctx) && (!most || now - begin < most)) {
        rc = sample_itself(sample, now, err);
        rc = rc ? rc : sample_children(sample, now, err);
        krait_pace_next(&pace, krait_clock_ns(CLOCK_MONOTONIC));
        krait_pace_wait(&pace, most ? begin + most : UINT64_MAX);
        now = krait_clock_ns(CLOCK_MONOTONIC);
    }
    return rc;
}

/* -- the end -- */

static void put_who(const struct krait_record_sample *sample, char *who, size_t size)
{
    char process[64];
    uint32_t started = sample->started;
    snprintf(process, sizeof(process), "process %d", sample->pid);
    if (sample->programs > 1)
        snprintf(process, sizeof(process), "%u programs of process %d", sample->programs, sample->pid);
    if (!sample->programs)
        snprintf(who, size, "%u process%s that %d started", started, started == 1 ? "" : "es", sample->pid);
    else if (started)
        snprintf(who, size, "%s and %u that it started", process, started);
    else
        snprintf(who, size, "%s", process);
}

static void print_summary(const struct krait_record_sample *sample, const struct krait_sampler_summary *s)
{
    char who[128];
    put_who(sample, who, sizeof(who));
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

/* How the process has ended, or that it goes on. */
static struct krait_record_end end_of(const struct krait_record_sample *sample, const int *status)
{
    bool over = status && sample->over(sample->ctx);
    if (!over)
        return (struct krait_record_end){ .how =
                                              sample->ended ? KRAIT_process_end_gone : KRAIT_process_end_stop,
                                          .code = -1 };
    if (WIFSIGNALED(*status))
        return (struct krait_record_end){ .how = KRAIT_process_end_signal, .code = WTERMSIG(*status) };
    return (struct krait_record_end){ .how = KRAIT_process_end_exit, .code = WEXITSTATUS(*status) };
}

static int finish(struct krait_record_sample *sample, const int *status, struct krait_err *err)
{
    char limit[KRAIT_FMT_SIZE], ns[KRAIT_FMT_SIZE];
    if (status && sample->ended)
        wait_for_status(sample);
    struct krait_record_end end = end_of(sample, status), stopped = { KRAIT_process_end_stop, -1, NULL };
    snprintf(limit, sizeof(limit), "--for %s", krait_fmt_ns(ns, sample->values->duration));
    if (sample->values->duration && end.how == KRAIT_process_end_stop)
        end.limit = stopped.limit = limit;
    int rc = sample->sampler ? end_program(sample, &end, err) : 0;
    while (sample->child_count && !rc)
        rc = close_child(sample, sample->child_count - 1, &stopped, err);
    if (!rc && !sample->values->quiet)
        print_summary(sample, &sample->sums);
    return rc;
}

static void done(struct krait_record_sample *sample)
{
    for (uint32_t i = 0; i < sample->child_count; i++) /* of an error */
        krait_sampler_free(sample->children[i].sampler);
    free(sample->children);
}

int krait_record_sample_run(struct krait_record_sample *sample, const int *status, struct krait_err *err)
{
    enum { OPEN_STREAMS = 256 }; /* at most: as many more files may tell of threads */
    sample->spare_fds = KRAIT_MIN(krait_tracedir_spare_fds(), (int)OPEN_STREAMS);
    int rc = open_sampler(sample, err);
    if (rc) {
        if (sample->made_dir)
            rmdir(sample->dir);
        return rc;
    }
    krait_raise_priority(); /* on a thread's CPU it waits for that thread's slice to end */
    rc = take_samples(sample, &sample->why);
    bool became_other = sample->programs && !sample->sampler; /* which krait did not read up to now */
    sample->ended = rc == -ESRCH;
    int finished = finish(sample, status, err);
    done(sample);
    sample->is_cut_short = rc && !sample->ended;
    if (sample->is_cut_short || became_other)
        krait_terminal_say(NULL, 2, "The recording ends here: %s", sample->why.text);
    return finished;
}
