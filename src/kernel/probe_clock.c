/* SPDX-License-Identifier: Apache-2.0
 *
 * Which clock a recording gets here, and what a read of it costs: measured now, not looked up.
 */
#include "kernel/probe.h"

#include "base/buf.h"
#include "base/clock.h"

#include <string.h>

#define CLOCKSOURCE "/sys/devices/system/clocksource/clocksource0/"

enum { READS = 20000, TRIES = 5 };

/* Best of a few tries: an interrupt in between only makes a try slower. */
static double read_cost(const struct krait_clock *clock)
{
    uint64_t best = UINT64_MAX;
    for (int try = 0; try < TRIES; try++) {
        uint64_t start = krait_clock_ns(CLOCK_MONOTONIC);
        for (int i = 0; i < READS; i++) {
            uint64_t now = krait_clock_now(clock);
            __asm__ volatile("" : : "r"(now));
        }
        best = KRAIT_MIN(best, krait_clock_ns(CLOCK_MONOTONIC) - start);
    }
    return (double)best / READS;
}

void krait_probe_clock(struct krait_check *check)
{
    struct krait_clock clock = { .counter = krait_clock_counter_is_invariant(), .freq = KRAIT_NS_PER_S };
    struct krait_clock monotonic = { .counter = false, .freq = KRAIT_NS_PER_S };
    double slow = read_cost(&monotonic);
    if (clock.counter) {
        krait_check_value(check, KRAIT_CLOCK_COUNTER ", invariant: %.1f ns a read (CLOCK_MONOTONIC: %.1f ns)",
                          read_cost(&clock), slow);
        return;
    }
    krait_check_value(check, "CLOCK_MONOTONIC: %.1f ns a read, and a call reads it twice", slow);
    krait_check_fix(
        check, KRAIT_CHECK_WARN,
        "the time-stamp counter is not invariant here, or the kernel found it unstable (dmesg | grep -i "
        "tsc); in a virtual machine, let the host pass the flag on (qemu: -cpu host,+invtsc)");
}

static bool has_word(const char *text, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = strstr(text, word); p; p = strstr(p + n, word)) {
        if ((p == text || p[-1] == ' ') && (p[n] == ' ' || p[n] == '\n' || !p[n]))
            return true;
    }
    return false;
}

void krait_probe_clocksource(struct krait_check *check)
{
    KRAIT_AUTO_BUF current = { 0 };
    KRAIT_AUTO_BUF available = { 0 };
    if (krait_buf_read_file(&current, CLOCKSOURCE "current_clocksource") || !current.data ||
        krait_buf_read_file(&available, CLOCKSOURCE "available_clocksource") || !available.data) {
        krait_check_value(check, "not shown by this kernel");
        return;
    }
    current.data[strcspn(current.data, " \n")] = '\0';
    available.data[strcspn(available.data, "\n")] = '\0';
    krait_check_value(check, "%s", current.data);
    if (strcmp(current.data, "tsc") == 0 || !has_word(available.data, "tsc"))
        return;
    krait_check_value(check, "%s, though tsc is there", current.data);
    krait_check_fix(check, KRAIT_CHECK_WARN, "echo tsc | sudo tee " CLOCKSOURCE "current_clocksource");
}
