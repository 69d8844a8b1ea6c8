/* SPDX-License-Identifier: Apache-2.0
 *
 *   nlmsghdr | cn_msg | proc_event            from the kernel
 *   nlmsghdr | cn_msg | proc_cn_mcast_op      to it: from now on, or not any more
 */
#include "remote/births.h"

#include <errno.h>
#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ROOM = 4 << 20, HEAD = NLMSG_HDRLEN + sizeof(struct cn_msg) };

/* In linux/cn_proc.h they stand within struct proc_event up to Linux 6.5, and beside it from then on. */
enum { WHAT_FORK = 0x00000001 };
#define WHAT_EXIT 0x80000000u

struct krait_births {
    int fd;
};

/* Threads are forked too, and programs are executed, far more often than processes begin and end. */
static int filter_events(int fd)
{
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, HEAD + offsetof(struct proc_event, what)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __builtin_bswap32(WHAT_FORK), 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __builtin_bswap32(WHAT_EXIT), 0, 1),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
        BPF_STMT(BPF_RET | BPF_K, 0),
    };
    const struct sock_fprog program = { KRAIT_ARRAY_LEN(steps), steps };
    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
}

static int ask(int fd)
{
    const enum proc_cn_mcast_op op = PROC_CN_MCAST_LISTEN;
    const struct cn_msg about = { .id = { CN_IDX_PROC, CN_VAL_PROC }, .len = sizeof(op) };
    _Alignas(struct nlmsghdr) char message[HEAD + sizeof(op)] = { 0 };
    const struct nlmsghdr head = { .nlmsg_len = sizeof(message), .nlmsg_type = NLMSG_DONE };
    memcpy(message, &head, sizeof(head));
    memcpy(message + NLMSG_HDRLEN, &about, sizeof(about));
    memcpy(message + HEAD, &op, sizeof(op));
    return send(fd, message, sizeof(message), 0) < 0 ? -errno : 0;
}

static int listen_to_kernel(int fd)
{
    const struct sockaddr_nl from = { .nl_family = AF_NETLINK, .nl_groups = CN_IDX_PROC };
    const int room = ROOM;
    if (filter_events(fd) || bind(fd, (const struct sockaddr *)&from, sizeof(from)))
        return -errno;
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)))
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
    return ask(fd);
}

int krait_births_open(struct krait_births **out)
{
    int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_CONNECTOR);
    if (fd < 0)
        return -errno;
    struct krait_births *births = malloc(sizeof(*births));
    int rc = births ? listen_to_kernel(fd) : -ENOMEM;
    if (rc) {
        free(births);
        close(fd);
        return rc;
    }
    births->fd = fd;
    *out = births;
    return 0;
}

void krait_births_free(struct krait_births *births)
{
    if (!births)
        return;
    close(births->fd);
    free(births);
}

/* Returns false for an event of a thread that is not its process's first. */
static bool take(const struct proc_event *event, struct krait_birth *out)
{
    bool ends = (uint32_t)event->what == WHAT_EXIT;
    pid_t thread = ends ? event->event_data.exit.process_pid : event->event_data.fork.child_pid;
    *out = (struct krait_birth){
        .pid = ends ? event->event_data.exit.process_tgid : event->event_data.fork.child_tgid,
        .parent = ends ? 0 : event->event_data.fork.parent_tgid,
        .ends = ends,
    };
    return thread == out->pid;
}

bool krait_births_next(struct krait_births *births, struct krait_birth *out)
{
    char message[512];
    struct proc_event event;
    ssize_t n;
    do {
        n = recv(births->fd, message, sizeof(message), 0);
        if (n < 0 && errno != ENOBUFS) /* that tells of lost ones */
            return false;
        memset(&event, 0, sizeof(event));
        memcpy(&event, message + HEAD, n > HEAD ? KRAIT_MIN((size_t)n - HEAD, sizeof(event)) : 0);
    } while (n <= HEAD || !take(&event, out));
    return true;
}
