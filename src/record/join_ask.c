/* SPDX-License-Identifier: Apache-2.0 */
#include "record/join.h"

#include "base/clock.h"
#include "record/socket_file.h"

#include <string.h>
#include <sys/un.h>

socklen_t krait_join_address(struct sockaddr_un *address, const char *key)
{
    static const char prefix[] = "krait-";
    *address = (struct sockaddr_un){ .sun_family = AF_UNIX };
    char *name = address->sun_path + 1; /* behind a NUL: abstract */
    memcpy(name, prefix, strlen(prefix));
    memcpy(name + strlen(prefix), key, KRAIT_JOIN_NAME);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(prefix) + KRAIT_JOIN_NAME);
}

/* How long a process waits for a collector that has stopped. */
#define PATIENCE_NS (2 * KRAIT_NS_PER_S)

/* What is left of it. Signals of the program's end a call that waits; it is then made again, with what is left. */
static int set_patience(int fd, int option, uint64_t begin_ns)
{
    uint64_t gone = krait_clock_ns(CLOCK_MONOTONIC) - begin_ns;
    if (gone >= PATIENCE_NS)
        return -ETIMEDOUT;
    uint64_t us = KRAIT_MAX((PATIENCE_NS - gone) / 1000, (uint64_t)1); /* 0 would be for ever */
    struct timeval patience = { .tv_sec = (time_t)(us / 1000000), .tv_usec = (suseconds_t)(us % 1000000) };
    return setsockopt(fd, SOL_SOCKET, option, &patience, sizeof(patience)) ? -errno : 0;
}

static int connect_to(const char *key, const char *file)
{
    struct sockaddr_un address;
    socklen_t size = krait_join_address(&address, key);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    int rc = connect(fd, (struct sockaddr *)&address, size) ? -errno : 0;
    if (rc && file)
        rc = krait_socket_file_connect(fd, file);
    if (!rc)
        return fd;
    close(fd);
    return rc;
}

/* Sends the question with the socket for the answer. */
static int send_question(int fd, const struct krait_join_question *question, int answer, uint64_t begin_ns)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = { .bytes = { 0 } };
    struct iovec part = { (void *)question, sizeof(*question) };
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
    };
    control.head.cmsg_level = SOL_SOCKET;
    control.head.cmsg_type = SCM_RIGHTS;
    control.head.cmsg_len = CMSG_LEN(sizeof(answer));
    memcpy(CMSG_DATA(&control.head), &answer, sizeof(answer));
    for (;;) {
        int rc = set_patience(fd, SO_SNDTIMEO, begin_ns);
        if (rc || sendmsg(fd, &message, MSG_NOSIGNAL) == sizeof(*question))
            return rc;
        if (errno != EINTR)
            return errno == EAGAIN ? -ETIMEDOUT : -errno;
    }
}

static ssize_t receive_message(int fd, struct msghdr *message, uint64_t begin_ns)
{
    for (;;) {
        int rc = set_patience(fd, SO_RCVTIMEO, begin_ns);
        ssize_t n = rc ? rc : recvmsg(fd, message, MSG_CMSG_CLOEXEC);
        if (rc || n >= 0)
            return n;
        if (errno != EINTR)
            return errno == EAGAIN ? -ETIMEDOUT : -errno;
    }
}

/* Closes the files of an answer that is none: there is room for more than one. */
static void close_all(const struct cmsghdr *head)
{
    bool are_files = head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS;
    for (size_t at = 0; are_files && CMSG_LEN(at + sizeof(int)) <= head->cmsg_len; at += sizeof(int)) {
        int file;
        memcpy(&file, CMSG_DATA(head) + at, sizeof(file));
        close(file);
    }
}

/* Returns the file that came with the answer; -EACCES where none did. */
static int receive(int fd, struct krait_join_answer *answer, uint64_t begin_ns)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec part = { answer, sizeof(*answer) };
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
    };
    ssize_t n = receive_message(fd, &message, begin_ns);
    if (n < 0)
        return (int)n;
    if (!n)
        return -ECONNRESET;
    const struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    int file;
    if (!head)
        return n == sizeof(*answer) ? -EACCES : -EPROTO;
    if (n != sizeof(*answer) || head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS ||
        head->cmsg_len != CMSG_LEN(sizeof(file))) {
        close_all(head);
        return -EPROTO;
    }
    memcpy(&file, CMSG_DATA(head), sizeof(file));
    return file;
}

/* Asks, and returns the socket on which the answer comes. */
static int ask_for_answer(const char *key, const char *socket_file, enum krait_join_wish wish,
                          uint64_t begin_ns)
{
    struct krait_join_question question = { .wish = (uint8_t)wish };
    int pair[2];
    memcpy(question.question, key + KRAIT_JOIN_NAME, KRAIT_JOIN_WORD);
    KRAIT_AUTO_CLOSE int fd = connect_to(key, socket_file);
    if (fd < 0)
        return fd;
    /* of packets: who closes its end ends the waiting at the other */
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
        return -errno;
    int rc = send_question(fd, &question, pair[1], begin_ns);
    close(pair[1]);
    if (!rc)
        return pair[0];
    close(pair[0]);
    return rc;
}

/* Returns the file, or a negative errno; with -EACCES *pid is told. */
static int ask(const char *key, const char *socket_file, enum krait_join_wish wish, pid_t *pid)
{
    struct krait_join_answer answer;
    const char *expected = key + KRAIT_JOIN_NAME + KRAIT_JOIN_WORD;
    uint64_t begin_ns = krait_clock_ns(CLOCK_MONOTONIC);
    KRAIT_AUTO_CLOSE int fd = ask_for_answer(key, socket_file, wish, begin_ns);
    if (fd < 0)
        return fd;
    int file = receive(fd, &answer, begin_ns);
    if (file < 0 && file != -EACCES)
        return file;
    if (memcmp(answer.answer, expected, KRAIT_JOIN_WORD) == 0 && answer.pid > 0) {
        *pid = answer.pid;
        return file;
    }
    if (file >= 0)
        close(file);
    return -EPROTO;
}

int krait_join_ask(const char *key, const char *file)
{
    pid_t pid;
    return ask(key, file, KRAIT_JOIN_MEMFD, &pid);
}

int krait_join_ask_number(const char *key, const char *file, pid_t *pid)
{
    int memfd = ask(key, file, KRAIT_JOIN_NUMBER, pid);
    if (memfd >= 0)
        close(memfd);
    return memfd >= 0 || memfd == -EACCES ? 0 : memfd;
}
