/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/sockets.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <poll.h>
#include <sys/socket.h>

typedef int port_fn(int fd, struct sockaddr *address, socklen_t *size);

/* 0 if the descriptor is not a connection. */
static uint16_t port_of(int fd, port_fn *fn)
{
    struct sockaddr_storage address = { 0 };
    socklen_t size = sizeof(address);
    if (fn(fd, (struct sockaddr *)&address, &size))
        return 0;
    if (address.ss_family == AF_INET)
        return ntohs(((const struct sockaddr_in *)&address)->sin_port);
    return address.ss_family == AF_INET6 ? ntohs(((const struct sockaddr_in6 *)&address)->sin6_port) : 0;
}

/* Calls fn for each socket of the port; the listening one has the peer 0. `fn` returns whether to continue. */
static void each_of(uint16_t own, bool (*fn)(void *ctx, int fd, uint16_t peer), void *ctx)
{
    DIR *dir = opendir("/proc/self/fd");
    bool goes_on = dir;
    for (struct dirent *entry; goes_on && (entry = readdir(dir));) {
        int fd = atoi(entry->d_name);
        if (port_of(fd, getsockname) == own)
            goes_on = fn(ctx, fd, port_of(fd, getpeername));
    }
    if (dir)
        closedir(dir);
}

struct wanted {
    uint16_t peer;
    int fd;
};

static bool is_other(void *ctx, int fd, uint16_t peer)
{
    struct wanted *wanted = ctx;
    if (peer == wanted->peer)
        wanted->fd = fd;
    return wanted->fd < 0;
}

int krait_socket_of(uint16_t own, uint16_t peer)
{
    struct wanted wanted = { peer, -1 };
    each_of(own, is_other, &wanted);
    return wanted.fd;
}

bool krait_socket_is_closed(int fd)
{
    struct pollfd look = { .fd = fd, .events = POLLRDHUP };
    return poll(&look, 1, 0) > 0 && look.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL);
}

static bool shut(void *ctx, int fd, uint16_t peer)
{
    (void)ctx;
    (void)peer;
    shutdown(fd, SHUT_RDWR);
    return true;
}

void krait_sockets_shut(uint16_t own)
{
    each_of(own, shut, NULL);
}
