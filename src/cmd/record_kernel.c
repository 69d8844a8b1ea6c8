/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/record_kernel.h"

#include "base/fmt.h"

/* The whole machine, or else what is this user's. */
struct krait_kernel *krait_record_kernel_open(const struct krait_recording_values *values, const char *dir,
                                              const struct krait_clock *clock)
{
    struct krait_kernel *kernel = NULL;
    struct krait_err whole = { 0 }, own = { 0 }, functions = { 0 };
    struct krait_kernel_options options = { .scope = KRAIT_KERNEL_WHOLE,
                                            .dir = dir,
                                            .groups = values->kernel,
                                            .functions = values->kernel_functions,
                                            .functions_note = &functions,
                                            .ring_bytes = values->kernel_ring_size,
                                            .clock = clock };
    if (!values->kernel || !krait_kernel_open(&kernel, &options, &whole)) {
        if (functions.code)
            fprintf(stderr, "krait record: the kernel's functions are not recorded: %s. See: krait doctor\n",
                    functions.text);
        return kernel;
    }
    options.scope = KRAIT_KERNEL_OWN;
    if (!krait_kernel_open(&kernel, &options, &own))
        fprintf(stderr,
                "krait record: of the kernel, the program's own switches and page faults alone are recorded: "
                "%s. See: krait doctor\n",
                whole.text);
    else
        fprintf(
            stderr,
            "krait record: the kernel is not recorded, the program is: %s. And for its own switches and page "
            "faults: %s. See: krait doctor\n",
            whole.text, own.text);
    return kernel;
}

void krait_record_kernel_guess(const struct krait_recording_values *values, const char *command)
{
    struct krait_err no_group = { 0 };
    if (values->kernel && !krait_kernel_check_groups(command, &no_group))
        fprintf(stderr, "Did you mean --kernel=%s?\n", command);
}

void krait_record_kernel_trouble(struct krait_kernel *kernel)
{
    const char *text = kernel ? krait_kernel_trouble(kernel) : NULL;
    if (text)
        fprintf(stderr, "krait record: %s; the program runs on, what is missing is counted\n", text);
}

void krait_record_kernel_finish(struct krait_kernel *kernel, struct krait_kernel_summary *summary)
{
    if (!kernel)
        return;
    krait_kernel_finish(kernel, summary);
    krait_record_kernel_trouble(kernel);
}

static void print_loss(const char *red, const char *plain, uint64_t count, const char *what)
{
    char text[KRAIT_FMT_SIZE];
    if (count)
        fprintf(stderr, "  %slost       %s %s%s\n", red, krait_fmt_count(text, count), plain, what);
}

void krait_record_kernel_print(const struct krait_kernel_summary *s, const char *red, const char *plain)
{
    char events[KRAIT_FMT_SIZE], bytes[KRAIT_FMT_SIZE], what[128];
    fprintf(stderr, "  kernel     %s events, %s\n", krait_fmt_count(events, s->events),
            krait_fmt_bytes(bytes, s->bytes));
    if (s->scope == KRAIT_KERNEL_OWN)
        fprintf(stderr,
                "  missing    system calls, wake-ups, interrupts, other programs: they need rights\n");
    snprintf(what, sizeof(what),
             "kernel events on %u CPU%s: the kernel's ring was full; --kernel-ring-size makes it larger",
             s->cpus, s->cpus == 1 ? "" : "s");
    print_loss(red, plain, s->lost, what);
    print_loss(red, plain, s->refused, "kernel events: the disk did not take them");
    print_loss(red, plain, s->damaged,
               s->scope == KRAIT_KERNEL_OWN ? "kernel events: they are not as this krait knows them"
                                            : "kernel pages in part: they are not as this krait knows them");
}
