/* SPDX-License-Identifier: Apache-2.0
 *
 * stream_events pipe|tcp COUNT AT_ONCE FILE: what an event of 8 bytes, its time and a 32-bit value, costs through a pipe or
 * a TCP connection on the loopback interface, AT_ONCE of them with one write.
 *
 * Another process reads them and writes them to FILE, as a tracer's collector does. Prints one line of JSON.
 */
#include "base/clock.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { AT_ONCE_MOST = 4096, READ_BYTES = 1 << 16 };

struct event {
    uint32_t ticks, code;
};

static int fail(const char *what)
{
    perror(what);
    return 1;
}

/* Both ends: [0] to read. Returns 0 or -1. */
static int connect_tcp(int ends[2])
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof(at);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ends[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(listener, (struct sockaddr *)&at, size) || listen(listener, 1) ||
        getsockname(listener, (struct sockaddr *)&at, &size) ||
        connect(ends[1], (struct sockaddr *)&at, size))
        return -1;
    ends[0] = accept(listener, NULL, NULL);
    close(listener);
    return ends[0] < 0 ? -1 : 0;
}

static int write_whole(int fd, const void *bytes, size_t size)
{
    for (const char *at = bytes; size;) {
        ssize_t n = write(fd, at, size);
        if (n < 0)
            return -1;
        at += n;
        size -= (size_t)n;
    }
    return 0;
}

static int read_events(int from, const char *path)
{
    static char bytes[READ_BYTES];
    ssize_t n = 0;
    int to = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (to < 0)
        return fail(path);
    while ((n = read(from, bytes, sizeof(bytes))) > 0) {
        if (write_whole(to, bytes, (size_t)n))
            return fail(path);
    }
    return n ? fail("read") : 0;
}

static int write_events(int to, uint64_t count, uint64_t at_once)
{
    static struct event events[AT_ONCE_MOST];
    uint64_t held = 0;
    for (uint64_t i = 0; i < count; i++) {
        events[held++] = (struct event){ (uint32_t)krait_clock_counter(), (uint32_t)i };
        if (held < at_once && i + 1 < count)
            continue;
        if (write_whole(to, events, held * sizeof(*events)))
            return fail("write");
        held = 0;
    }
    return 0;
}

int main(int argc, char **argv)
{
    int ends[2], status = 0;
    uint64_t count = argc == 5 ? strtoull(argv[2], NULL, 10) : 0,
             at_once = argc == 5 ? strtoull(argv[3], NULL, 10) : 0;
    if (!count || !at_once || at_once > AT_ONCE_MOST) {
        fputs("usage: stream_events pipe|tcp COUNT AT_ONCE FILE\n", stderr);
        return 2;
    }
    if (strcmp(argv[1], "tcp") == 0 ? connect_tcp(ends) : pipe2(ends, O_CLOEXEC))
        return fail(argv[1]);
    pid_t child = fork();
    if (child == 0) {
        close(ends[1]);
        _exit(read_events(ends[0], argv[4]));
    }
    close(ends[0]);
    uint64_t begin = krait_clock_ns(CLOCK_MONOTONIC);
    int rc = write_events(ends[1], count, at_once);
    uint64_t written = krait_clock_ns(CLOCK_MONOTONIC);
    close(ends[1]);
    waitpid(child, &status, 0);
    uint64_t end = krait_clock_ns(CLOCK_MONOTONIC);
    printf("{\"ns_event\": %.2f, \"events\": %llu, \"seconds\": %.6f, \"lost\": 0, \"bytes\": %llu}\n",
           (double)(written - begin) / (double)count, (unsigned long long)count, 1e-9 * (double)(end - begin),
           (unsigned long long)(count * sizeof(struct event)));
    return rc || status;
}
