/* SPDX-License-Identifier: Apache-2.0 */
#include "record/join.h"

#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/un.h>

static int make_key(char key[KRAIT_JOIN_KEY + 1])
{
    uint8_t bytes[KRAIT_JOIN_KEY / 2];
    if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
        return -1;
    for (size_t i = 0; i < sizeof(bytes); i++)
        sprintf(key + 2 * i, "%02x", bytes[i]);
    return 0;
}

void krait_join_socket_open(struct krait_join_socket *join)
{
    struct sockaddr_un address;
    int on = 1, fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct stat network;
    *join = (struct krait_join_socket){ .fd = -1 };
    if (stat("/proc/thread-self/ns/net", &network) == 0)
        join->network = network.st_ino;
    if (fd < 0)
        return;
    if (make_key(join->key) == 0 && setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) == 0 &&
        bind(fd, (struct sockaddr *)&address, krait_join_address(&address, join->key)) == 0) {
        join->fd = fd;
        return;
    }
    join->key[0] = '\0';
    close(fd);
}

/* Its network namespace; setns(2) moves this thread alone, and a socket stays where it was made. */
static int open_inside(struct krait_join_socket *join, int there)
{
    KRAIT_AUTO_CLOSE int here = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    if (here < 0 || setns(there, CLONE_NEWNET))
        return -EPERM;
    krait_join_socket_open(join);
    setns(here, CLONE_NEWNET);
    return join->fd < 0 ? -EPERM : 0;
}

static bool is_seen_from(const struct krait_join_socket *join, int there)
{
    struct stat network;
    return !join->network || fstat(there, &network) || network.st_ino == join->network;
}

int krait_join_socket_admit(struct krait_join_socket *join, pid_t pid)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/ns/net", pid);
    KRAIT_AUTO_CLOSE int there = open(path, O_RDONLY | O_CLOEXEC);
    if (!is_seen_from(join, there)) {
        struct krait_join_socket made;
        if (open_inside(&made, there))
            return -EPERM;
        krait_join_socket_close(join);
        memcpy(made.admitted, join->admitted, sizeof(made.admitted));
        made.admitted_count = join->admitted_count;
        *join = made;
    }
    join->admitted[join->admitted_count++ % KRAIT_ARRAY_LEN(join->admitted)] = pid;
    return 0;
}

/* Files that came with a question are not wanted. */
static bool get_credentials(struct msghdr *message, struct ucred *who)
{
    bool found = false;
    for (struct cmsghdr *head = CMSG_FIRSTHDR(message); head; head = CMSG_NXTHDR(message, head)) {
        if (head->cmsg_level != SOL_SOCKET)
            continue;
        if (head->cmsg_type == SCM_CREDENTIALS && head->cmsg_len == CMSG_LEN(sizeof(*who))) {
            memcpy(who, CMSG_DATA(head), sizeof(*who));
            found = true;
        }
        for (size_t at = 0; head->cmsg_type == SCM_RIGHTS && CMSG_LEN(at + sizeof(int)) <= head->cmsg_len;
             at += sizeof(int)) {
            int file;
            memcpy(&file, CMSG_DATA(head) + at, sizeof(file));
            close(file);
        }
    }
    return found;
}

/* In a time that does not tell how much of it is right. */
static bool is_question(const struct krait_join_socket *join, const struct krait_join_question *asked,
                        ssize_t n)
{
    unsigned differ = n != sizeof(*asked);
    for (size_t i = 0; !differ && i < KRAIT_JOIN_WORD; i++)
        differ |= (unsigned)(asked->question[i] ^ join->key[KRAIT_JOIN_NAME + i]) << 8;
    return !differ;
}

/* memfd: -1 where there is none for it. */
static void answer_to(const struct krait_join_socket *join, int memfd, struct sockaddr_un *to, socklen_t size,
                      pid_t pid)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = { .bytes = { 0 } };
    struct krait_join_answer answer = { .pid = pid };
    memcpy(answer.answer, join->key + KRAIT_JOIN_NAME + KRAIT_JOIN_WORD, KRAIT_JOIN_WORD);
    struct iovec part = { &answer, sizeof(answer) };
    struct msghdr message = { .msg_name = to,
                              .msg_namelen = size,
                              .msg_iov = &part,
                              .msg_iovlen = 1,
                              .msg_control = memfd < 0 ? NULL : &control,
                              .msg_controllen = memfd < 0 ? 0 : sizeof(control) };
    struct cmsghdr *head = &control.head;
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(memfd));
    memcpy(CMSG_DATA(head), &memfd, sizeof(memfd));
    sendmsg(join->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL); /* who waits no more gets none */
}

/* Other users than the recording's, but for root, have no business in it. */
static bool may_join(const struct krait_join_socket *join, const struct ucred *who)
{
    bool is_admitted = false;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(join->admitted); i++)
        is_admitted |= join->admitted[i] == who->pid;
    return who->uid == geteuid() || !who->uid || is_admitted;
}

bool krait_join_socket_answer(const struct krait_join_socket *join, int memfd, struct ucred *refused)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(64 * sizeof(int))];
    } control;
    struct krait_join_question asked;
    char more; /* that it asks too much is seen by a byte more */
    struct sockaddr_un from;
    struct ucred who;
    struct iovec parts[] = { { &asked, sizeof(asked) }, { &more, 1 } };
    struct msghdr message = { .msg_name = &from,
                              .msg_namelen = sizeof(from),
                              .msg_iov = parts,
                              .msg_iovlen = KRAIT_ARRAY_LEN(parts),
                              .msg_control = &control,
                              .msg_controllen = sizeof(control) };
    *refused = (struct ucred){ 0 };
    ssize_t n = join->fd < 0 ? -1 : recvmsg(join->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0)
        return false;
    bool known = get_credentials(&message, &who);
    if (!known || !is_question(join, &asked, n) || who.pid <= 0)
        return true;
    bool joins = asked.wish == KRAIT_JOIN_MEMFD;
    answer_to(join, joins && may_join(join, &who) ? memfd : -1, &from, message.msg_namelen, who.pid);
    if (joins && !may_join(join, &who))
        *refused = who;
    return true;
}

void krait_join_socket_close(struct krait_join_socket *join)
{
    if (join->fd >= 0)
        close(join->fd);
    join->fd = -1;
}
