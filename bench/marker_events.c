/* SPDX-License-Identifier: Apache-2.0
 *
 * marker_events PATH COUNT: nanoseconds that a write of twelve bytes to a trace_marker takes. Prints one line
 * of JSON.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static double seconds(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

int main(int argc, char **argv)
{
    long count = argc > 2 ? atol(argv[2]) : 100000;
    int fd = argc > 1 ? open(argv[1], O_WRONLY | O_CLOEXEC) : -1;
    if (fd < 0) {
        perror("trace_marker");
        return 1;
    }
    static const char text[] = "B 0000001a4\n";
    double start = seconds();
    for (long i = 0; i < count; i++) {
        if (write(fd, text, sizeof(text) - 1) < 0) {
            perror("trace_marker");
            return 1;
        }
    }
    printf("{\"ns_event\": %.2f, \"events\": %ld}\n", (seconds() - start) / (double)count * 1e9, count);
    close(fd);
    return 0;
}
