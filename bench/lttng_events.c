/* SPDX-License-Identifier: Apache-2.0
 *
 * lttng_events COUNT: nanoseconds that a tracepoint takes, while a session records it. Prints one line of JSON.
 */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "lttng_events.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double seconds(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

int main(int argc, char **argv)
{
    long count = argc > 1 ? atol(argv[1]) : 1000000;
    enum { WARM_UP = 1000 };
    for (unsigned i = 0; i < WARM_UP; i++)
        lttng_ust_tracepoint(krait_bench, call, i);
    double start = seconds();
    for (long i = 0; i < count; i++)
        lttng_ust_tracepoint(krait_bench, call, (unsigned)i);
    printf("{\"ns_event\": %.2f, \"events\": %ld, \"written\": %ld}\n",
           (seconds() - start) / (double)count * 1e9, count, count + WARM_UP);
    return 0;
}
