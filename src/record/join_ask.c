/* SPDX-License-Identifier: Apache-2.0 */
#include "record/join.h"
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
static int set_patience(int fd, int option)
{
    struct timeval patience = { .tv_sec = 2 };
    return setsockopt(fd, SOL_SOCKET, option, &patience, sizeof(patience));
}

static int connect_to(const char *key, const char *file)
{
    struct sockaddr_un address;
    socklen_t size = krait_join_address(&address, key);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    int rc = set_patience(fd, SO_SNDTIMEO) || connect(fd, (struct sockaddr *)&address, size) ? -errno : 0;
    if (rc && file)
        rc = krait_socket_file_connect(fd, file);
    if (!rc)
        return fd;
    close(fd);
    return rc;
}

/* Sends the question with the socket for the answer. */
static int send_question(int fd, const struct krait_join_question *question, int answer)
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
    return TEMP_FAILURE_RETRY(sendmsg(fd, &message, MSG_NOSIGNAL)) == sizeof(*question) ? 0 : -errno;
}

/* Returns the file that came with the answer; -EACCES where none did. */
static int receive(int fd, struct krait_join_answer *answer)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec part = { answer, sizeof(*answer) };
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
    };
    ssize_t n = TEMP_FAILURE_RETRY(recvmsg(fd, &message, MSG_CMSG_CLOEXEC));
    if (n < 0)
        return errno == EAGAIN ? -ETIMEDOUT : -errno;
    if (!n)
        return -ECONNRESET;
    const struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    int file;
    if (!head)
        return n == sizeof(*answer) ? -EACCES : -EPROTO;
    if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS ||
        head->cmsg_len != CMSG_LEN(sizeof(file)))
        return -EPROTO;
    memcpy(&file, CMSG_DATA(head), sizeof(file));
    if (n == sizeof(*answer))
        return file;
    close(file);
    return -EPROTO;
}

/* Asks, and returns the socket on which the answer comes. */
static int ask_for_answer(const char *key, const char *socket_file, enum krait_join_wish wish)
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
    int rc = set_patience(pair[0], SO_RCVTIMEO) ? -errno : send_question(fd, &question, pair[1]);
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
    KRAIT_AUTO_CLOSE int fd = ask_for_answer(key, socket_file, wish);
    if (fd < 0)
        return fd;
    int file = receive(fd, &answer);
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
