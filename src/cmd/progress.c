/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/progress.h"

#include "base/clock.h"
#include "base/fmt.h"

#include <stdio.h>

#define FIRST_NS (500 * KRAIT_NS_PER_MS)
#define EACH_NS  (200 * KRAIT_NS_PER_MS)

enum { WIDTH = 60 }; /* that a line clears */

/* Three figures are more than an estimate is worth. */
static void left_text(char *text, size_t size, uint64_t ns)
{
    uint64_t s = ns / KRAIT_NS_PER_S + 1;
    snprintf(text, size, s < 100 ? "%llu s" : "%llu min", (unsigned long long)(s < 100 ? s : (s + 59) / 60));
}

static void tell(struct krait_progress *p)
{
    uint64_t now = krait_clock_ns(CLOCK_MONOTONIC), took = now - p->begin_ns;
    if (took < FIRST_NS || now - p->told_ns < EACH_NS || p->done >= p->total)
        return;
    char left[KRAIT_FMT_SIZE], line[WIDTH + 1];
    left_text(left, sizeof(left), (uint64_t)((double)took * (double)(p->total - p->done) / (double)p->done));
    snprintf(line, sizeof(line), "krait %s: %llu%%, about %.20s left", p->verb,
             (unsigned long long)(100 * p->done / p->total), left);
    fprintf(stderr, "\r%-*s", WIDTH, line);
    fflush(stderr);
    p->told_ns = now;
}

static bool on_progress(void *ctx, uint64_t bytes)
{
    struct krait_progress *p = ctx;
    p->done += bytes;
    tell(p);
    return true;
}

void krait_progress_begin(struct krait_progress *progress, const char *verb, struct krait_trace *trace)
{
    *progress = (struct krait_progress){ .verb = verb,
                                         .trace = trace,
                                         .total = KRAIT_MAX(trace->bytes, (uint64_t)1),
                                         .begin_ns = krait_clock_ns(CLOCK_MONOTONIC) };
    if (!isatty(STDERR_FILENO))
        return;
    trace->progress = on_progress;
    trace->progress_ctx = progress;
}

void krait_progress_end(struct krait_progress *progress)
{
    if (progress->trace)
        progress->trace->progress = NULL;
    if (progress->told_ns)
        fprintf(stderr, "\r%*s\r", WIDTH, "");
    progress->told_ns = 0;
}
