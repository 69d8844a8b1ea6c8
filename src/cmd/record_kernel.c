/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/record_kernel.h"

#include "base/fmt.h"
#include "cmd/record_probes.h"
#include "cmd/terminal.h"
#include "trace/cut_kernel.h"

#include <limits.h>
#include <stdarg.h>
#include <sys/stat.h>

static void say_probes(const struct krait_err *note)
{
    if (note->code)
        krait_terminal_say(NULL, 0, "krait record: the probes are not recorded: %s", note->text);
}

/* The whole machine, and what is to be said of it. Returns NULL with `whole` set if that cannot be recorded. */
static struct krait_kernel *open_whole(const struct krait_recording_values *values, const char *command,
                                       const char *dir, const struct krait_clock *clock,
                                       struct krait_err *whole)
{
    struct krait_kernel *kernel = NULL;
    struct krait_err functions = { 0 }, probes = { 0 };
    KRAIT_CLEANUP(krait_record_probes_done) struct krait_record_probes found = { 0 };
    struct krait_kernel_record_options options = { .scope = KRAIT_KERNEL_WHOLE,
                                                   .dir = dir,
                                                   .groups = values->kernel,
                                                   .functions = values->kernel_functions,
                                                   .functions_note = &functions,
                                                   .ring_bytes = values->kernel_ring_size,
                                                   .probes_note = &probes,
                                                   .clock = clock,
                                                   .idle = values->idle };
    if (!krait_record_probes_find(&found, &values->usdt, command, &probes)) {
        options.probes = found.items;
        options.probe_count = found.count;
    }
    if (krait_kernel_open(&kernel, &options, whole)) {
        if (values->usdt.count)
            say_probes(probes.code ? &probes : whole);
        return NULL;
    }
    if (functions.code)
        krait_terminal_say(
            NULL, 0,
            functions.code == -ENOTSUP
                ? "krait record: of the kernel's functions, %s. See: krait doctor"
                : "krait record: the kernel's functions are not recorded: %s. See: krait doctor",
            functions.text);
    say_probes(&probes);
    return kernel;
}

static void say_not_recorded(const struct krait_err *whole)
{
    krait_terminal_say(NULL, 0,
                       "krait record: the kernel is not recorded, the program is: %s. See: krait doctor",
                       whole->text);
}

static void on_switched(void *kernel, bool on)
{
    krait_kernel_switch(kernel, on);
}

/* Without the rights for that, records this user's own events, which can only begin with the program. */
struct krait_kernel *krait_record_kernel_open(const struct krait_recording_values *values,
                                              const char *command, const char *dir,
                                              struct krait_collector *collector)
{
    struct krait_err whole = { 0 }, own = { 0 };
    const struct krait_clock *clock = krait_collector_clock(collector);
    struct krait_kernel *kernel = values->kernel ? open_whole(values, command, dir, clock, &whole) : NULL;
    if (kernel)
        krait_collector_set_beside(collector, on_switched, kernel, krait_kernel_clock(kernel));
    if (kernel || !values->kernel)
        return kernel;
    if (values->idle) {
        say_not_recorded(&whole);
        return NULL;
    }
    struct krait_kernel_record_options options = {
        .scope = KRAIT_KERNEL_OWN,
        .dir = dir,
        .groups = values->kernel,
        .ring_bytes = values->kernel_ring_size,
        .clock = clock,
    };
    if (!krait_kernel_open(&kernel, &options, &own))
        krait_terminal_say(
            NULL, 0,
            "krait record: only the program's own context switches and page faults are recorded, no "
            "other kernel events: "
            "%s. See: krait doctor",
            whole.text);
    else
        krait_terminal_say(
            NULL, 0,
            "krait record: the kernel is not recorded, the program is: %s. And for its own switches and page "
            "faults: %s. See: krait doctor",
            whole.text, own.text);
    return kernel;
}

struct krait_kernel *krait_record_kernel_open_beside(const struct krait_recording_values *values, pid_t pid,
                                                     const char *dir, struct krait_collector *collector)
{
    char link[64], program[PATH_MAX];
    struct krait_err whole = { 0 };
    struct stat its, ours;
    if (!values->kernel)
        return NULL;
    snprintf(link, sizeof(link), "/proc/%d/exe", pid);
    ssize_t n = readlink(link, program, sizeof(program) - 1);
    program[KRAIT_MAX(n, (ssize_t)0)] = '\0';
    bool is_here =
        !stat(link, &its) && !stat(program, &ours) && its.st_dev == ours.st_dev && its.st_ino == ours.st_ino;
    struct krait_kernel *kernel =
        open_whole(values, is_here ? program : link, dir, krait_collector_clock(collector), &whole);
    if (kernel)
        krait_collector_set_beside(collector, on_switched, kernel, krait_kernel_clock(kernel));
    else
        say_not_recorded(&whole);
    return kernel;
}

/* Says what went wrong since the last call. NULL is fine. */
static void tell_trouble(struct krait_kernel *kernel)
{
    krait_record_trouble(kernel ? krait_kernel_trouble(kernel) : NULL);
}

/* The size bounds both parts together: tells each what the other has taken. */
static void set_room(struct krait_kernel *kernel, struct krait_collector *collector)
{
    krait_kernel_set_room(kernel, krait_collector_room(collector, krait_kernel_bytes(kernel),
                                                       krait_kernel_other_bytes(kernel)));
}

/* `take` is krait_kernel_round or krait_kernel_take_all; returns what it does. */
static bool take_within(struct krait_kernel *kernel, struct krait_collector *collector,
                        bool (*take)(struct krait_kernel *kernel))
{
    set_room(kernel, collector);
    bool result = take(kernel);
    set_room(kernel, collector);
    return result;
}

void krait_record_kernel_round(struct krait_kernel *kernel, struct krait_collector *collector)
{
    if (kernel && take_within(kernel, collector, krait_kernel_round))
        krait_collector_hurry(collector);
    tell_trouble(kernel);
}

struct keeping {
    struct krait_kernel *kernel;
    struct krait_collector *collector;
};

/* Rings fill while the states are computed. */
static bool take_meanwhile(void *ctx, uint64_t bytes)
{
    struct keeping *k = ctx;
    (void)bytes;
    krait_collector_round(k->collector);
    take_within(k->kernel, k->collector, krait_kernel_round);
    return true;
}

/* How threads and CPUs are then stays known; if it cannot be written, nothing is dropped. `since`: a tick of the program's
 * clock. `meanwhile` and `summary`: see krait_cut_kernel_keep and krait_kernel_drop_before. */
static void drop_before(struct krait_kernel *kernel, struct krait_collector *collector, uint64_t since,
                        bool (*meanwhile)(void *ctx, uint64_t bytes), struct krait_kernel_summary *summary)
{
    struct keeping keeping = { kernel, collector };
    struct krait_err err = { 0 };
    since = krait_clock_convert(krait_collector_clock(collector), since, krait_kernel_clock(kernel));
    if (krait_cut_kernel_keep(krait_kernel_folder(kernel), since, meanwhile, &keeping, &err))
        krait_record_trouble(err.text);
    else
        krait_kernel_drop_before(kernel, since, summary);
    set_room(kernel, collector);
}

/* Drops the oldest events if it is time. Returns whether it was. */
static bool keep_newest(struct krait_kernel *kernel, struct krait_collector *collector)
{
    uint64_t since = krait_collector_keep_newest(collector);
    if (since && kernel) {
        take_within(kernel, collector, krait_kernel_take_all);
        drop_before(kernel, collector, since, take_meanwhile, NULL);
    }
    return since;
}

bool krait_record_kernel_limit(struct krait_kernel *kernel, struct krait_collector *collector)
{
    keep_newest(kernel, collector);
    return krait_collector_limit(collector);
}

void krait_record_kernel_stop(struct krait_kernel *kernel, struct krait_collector *collector)
{
    if (!kernel)
        return;
    krait_kernel_stop(kernel);
    if (!krait_kernel_was_on(kernel))
        return;
    /* Its rings may hold more than the size has room for. */
    while (take_within(kernel, collector, krait_kernel_take_all) && keep_newest(kernel, collector))
        continue;
}

void krait_record_kernel_guess(const struct krait_recording_values *values, const char *command)
{
    struct krait_err no_group = { 0 };
    if (values->kernel && !krait_kernel_check_groups(command, &no_group))
        fprintf(stderr, "Did you mean --kernel=%s?\n", command);
}

void krait_record_trouble(const char *text)
{
    if (text)
        krait_terminal_say(NULL, 0, "krait record: %s; the program runs on, and krait counts what is missing",
                           text);
}

bool krait_record_kernel_finish(struct krait_kernel **kernel, struct krait_collector *collector,
                                uint64_t kept_from, struct krait_kernel_summary *summary)
{
    tell_trouble(*kernel);
    if (!*kernel || !krait_kernel_was_on(*kernel)) {
        krait_kernel_discard(*kernel);
        *kernel = NULL;
        return false;
    }
    struct krait_err err = { 0 };
    set_room(*kernel, collector);
    krait_kernel_finish(*kernel, summary);
    tell_trouble(*kernel);
    if (krait_cut_kernel_describe(krait_kernel_folder(*kernel), &err))
        krait_record_trouble(err.text);
    else if (kept_from)
        drop_before(*kernel, collector, kept_from, NULL, summary);
    if (summary->left.code)
        krait_terminal_say(NULL, 0, "krait record: %s", summary->left.text);
    return true;
}

void krait_record_line(const char *code, const char *label, const char *fmt, ...)
{
    enum { LABEL = 9, COLUMN = 13 };
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    fprintf(stderr, "  %s%-*s%s  ", krait_terminal_colour(stderr, code), LABEL, label,
            krait_terminal_colour(stderr, KRAIT_PLAIN));
    krait_terminal_wrap(stderr, code, COLUMN, COLUMN, text);
}

static void print_loss(uint64_t count, const char *what)
{
    char text[KRAIT_FMT_SIZE];
    if (count)
        krait_record_line(KRAIT_RED, "lost", "%s %s", krait_fmt_count(text, count), what);
}

void krait_record_kernel_print(const struct krait_kernel_summary *s, const char *groups)
{
    char events[KRAIT_FMT_SIZE], bytes[KRAIT_FMT_SIZE], what[192];
    bool has_less = s->scope != KRAIT_KERNEL_OWN && strcmp(groups, "sched") != 0;
    krait_record_line("", "kernel", "%s, %s", krait_fmt_counted(events, s->events, "event"),
                      krait_fmt_bytes(bytes, s->bytes));
    if (s->scope == KRAIT_KERNEL_OWN)
        krait_record_line("", "missing",
                          "system calls, wake-ups, interrupts, other programs: they need rights");
    snprintf(what, sizeof(what),
             "kernel events on %u CPU%s: the kernel's ring was full; --kernel-ring-size makes it larger%s",
             s->cpus, s->cpus == 1 ? "" : "s", has_less ? ", --kernel=sched records fewer events" : "");
    print_loss(s->lost, what);
    print_loss(
        s->no_room,
        "kernel events, size limit: these events were still in rings when the recording reached --max-size");
    print_loss(s->refused, "kernel events: the disk did not take them");
    print_loss(s->damaged, s->scope == KRAIT_KERNEL_OWN
                               ? "kernel events: they are not as this krait knows them"
                               : "kernel pages in part: they are not as this krait knows them");
}
