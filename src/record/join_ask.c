/* SPDX-License-Identifier: Apache-2.0 */
#include "record/join.h"

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

/* A socket with a name that the kernel gives it (autobind), which receives from the collector alone. */
static int connect_to(const char *key)
{
    struct sockaddr_un address, own = { .sun_family = AF_UNIX };
    struct timeval patience = { .tv_sec = 2 };
    socklen_t size = krait_join_address(&address, key);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (bind(fd, (struct sockaddr *)&own, sizeof(sa_family_t)) == 0 &&
        connect(fd, (struct sockaddr *)&address, size) == 0 &&
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) == 0 &&
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) == 0)
        return fd;
    int rc = -errno;
    close(fd);
    return rc;
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

/* Returns the file, or a negative errno; with -EACCES *pid is told. */
static int ask(const char *key, enum krait_join_wish wish, pid_t *pid)
{
    struct krait_join_question question = { .wish = (uint8_t)wish };
    struct krait_join_answer answer;
    memcpy(question.question, key + KRAIT_JOIN_NAME, KRAIT_JOIN_WORD);
    const char *expected = key + KRAIT_JOIN_NAME + KRAIT_JOIN_WORD;
    KRAIT_AUTO_CLOSE int fd = connect_to(key);
    if (fd < 0)
        return fd;
    if (TEMP_FAILURE_RETRY(send(fd, &question, sizeof(question), MSG_NOSIGNAL)) != sizeof(question))
        return -errno;
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

int krait_join_ask(const char *key)
{
    pid_t pid;
    return ask(key, KRAIT_JOIN_MEMFD, &pid);
}

int krait_join_ask_number(const char *key, pid_t *pid)
{
    int file = ask(key, KRAIT_JOIN_NUMBER, pid);
    if (file >= 0)
        close(file);
    return file >= 0 || file == -EACCES ? 0 : file;
}
