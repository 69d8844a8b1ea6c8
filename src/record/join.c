/* SPDX-License-Identifier: Apache-2.0 */
#include "record/join.h"
#include "record/socket_file.h"

#include <endian.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <linux/filter.h>
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

void krait_join_socket_init(struct krait_join_socket *join)
{
    *join = (struct krait_join_socket){ .fd = -1, .file_fd = -1 };
}

/* Every user may send to a socket that has a name. The kernel drops what is no question of `key`, before it takes room in the
 * queue or brings files whose closing may block, in a time that does not tell how much of it is right. If this fails, is_question()
 * drops it. */
static void take_questions_only(int fd, const char *key)
{
    enum { WORDS = KRAIT_JOIN_WORD / sizeof(uint32_t), DIFFER = 0 /* in the filter's memory */ };
    struct sock_filter code[5 * (WORDS + 1) + 3], *at = code;
    *at++ = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0);
    *at++ = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_XOR | BPF_K, sizeof(struct krait_join_question));
    *at++ = (struct sock_filter)BPF_STMT(BPF_ST, DIFFER);
    for (uint32_t i = 0; i < WORDS; i++) {
        uint32_t word;
        memcpy(&word, key + KRAIT_JOIN_NAME + i * sizeof(word), sizeof(word));
        *at++ =
            (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, i * sizeof(word)); /* too short: drops */
        *at++ = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_XOR | BPF_K, be32toh(word));
        *at++ = (struct sock_filter)BPF_STMT(BPF_LDX | BPF_W | BPF_MEM, DIFFER);
        *at++ = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_OR | BPF_X, 0);
        *at++ = (struct sock_filter)BPF_STMT(BPF_ST, DIFFER);
    }
    *at++ = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1);
    *at++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, UINT32_MAX); /* the whole */
    *at++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0);
    struct sock_fprog filter = { .len = (unsigned short)(at - code), .filter = code };
    setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter));
}

/* A socket that is told who asks with `key`. */
static int new_socket(const char *key)
{
    int on = 1, fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return fd;
    take_questions_only(fd, key);
    if (setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) == 0)
        return fd;
    close(fd);
    return -1;
}

void krait_join_socket_open(struct krait_join_socket *join)
{
    struct sockaddr_un address;
    struct stat network;
    krait_join_socket_init(join);
    if (stat("/proc/thread-self/ns/net", &network) == 0)
        join->network = network.st_ino;
    int fd = make_key(join->key) ? -1 : new_socket(join->key);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&address, krait_join_address(&address, join->key)) == 0) {
        join->fd = fd;
        return;
    }
    join->key[0] = '\0';
    if (fd >= 0)
        close(fd);
}

/* ---- the socket that is a file ---- */

#define OWN_FOLDER "/tmp/krait-join-"

/* Takes `file`, which malloc made, if the socket can be there. */
static bool take_file(struct krait_join_socket *join, int fd, char *file)
{
    if (krait_socket_file_bind(fd, file)) {
        free(file);
        return false;
    }
    join->file = file;
    join->file_fd = fd;
    return true;
}

/* The path stands behind the key in a variable of the environment: environment.c has room for PATH_MAX in all. */
static bool open_below(struct krait_join_socket *join, int fd, const char *dir)
{
    enum { BESIDE = 256 };
    char *file, path[PATH_MAX];
    if (!realpath(dir, path) || strlen(path) > PATH_MAX - BESIDE ||
        asprintf(&file, "%s/" KRAIT_JOIN_FILE, path) < 0)
        return false;
    return take_file(join, fd, file);
}

static bool open_in_own_folder(struct krait_join_socket *join, int fd)
{
    char *file, folder[] = OWN_FOLDER "XXXXXX";
    if (!mkdtemp(folder))
        return false;
    join->own = asprintf(&file, "%s/" KRAIT_JOIN_FILE, folder) >= 0 && take_file(join, fd, file);
    if (!join->own)
        rmdir(folder);
    return join->own;
}

/* A socket that nobody has open any more refuses connections. */
static bool is_left(const char *file)
{
    KRAIT_AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    return fd >= 0 && krait_socket_file_connect(fd, file) == -ECONNREFUSED;
}

static void remove_left(const char *folder)
{
    char file[sizeof(OWN_FOLDER) + 32];
    struct stat st;
    if (lstat(folder, &st) || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() ||
        snprintf(file, sizeof(file), "%s/" KRAIT_JOIN_FILE, folder) >= (int)sizeof(file) || !is_left(file))
        return;
    unlink(file);
    rmdir(folder);
}

static void remove_all_left(void)
{
    glob_t found = { 0 };
    if (glob(OWN_FOLDER "??????", GLOB_NOSORT, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++)
            remove_left(found.gl_pathv[i]);
    }
    globfree(&found);
}

void krait_join_file_open(struct krait_join_socket *join, const char *dir)
{
    int fd = *join->key ? new_socket(join->key) : -1;
    if (fd < 0 || open_below(join, fd, dir))
        return;
    remove_all_left();
    if (!open_in_own_folder(join, fd))
        close(fd);
}

static void close_file(struct krait_join_socket *join)
{
    if (join->file_fd < 0)
        return;
    close(join->file_fd);
    unlink(join->file);
    if (join->own) {
        *strrchr(join->file, '/') = '\0';
        rmdir(join->file);
    }
    free(join->file);
    join->file = NULL;
    join->file_fd = -1;
}

/* ---- processes that run already ---- */

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
        close(join->fd);
        join->fd = made.fd;
        join->network = made.network;
        memcpy(join->key, made.key, sizeof(join->key));
    }
    join->admitted[join->admitted_count++ % KRAIT_ARRAY_LEN(join->admitted)] = pid;
    return 0;
}

/* ---- answers ---- */

/* Takes the file that came with a question, the socket for the answer, into *file; further ones are not wanted. */
static bool get_credentials(struct msghdr *message, struct ucred *who, int *file)
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
            if (*file >= 0)
                close(*file);
            memcpy(file, CMSG_DATA(head) + at, sizeof(*file));
        }
    }
    return found;
}

/* In a time that does not tell how much of it is right. */
static bool is_question(const struct krait_join_socket *join, const struct krait_join_question *asked,
                        ssize_t n)
{
    unsigned differ = n != sizeof(*asked);
    for (size_t i = 0; i < KRAIT_JOIN_WORD; i++)
        differ |= (unsigned)(asked->question[i] ^ join->key[KRAIT_JOIN_NAME + i]);
    return !differ;
}

/* memfd: -1 where there is none for it. */
static void answer_to(const struct krait_join_socket *join, int memfd, int to, pid_t pid)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = { .bytes = { 0 } };
    struct krait_join_answer answer = { .pid = pid };
    memcpy(answer.answer, join->key + KRAIT_JOIN_NAME + KRAIT_JOIN_WORD, KRAIT_JOIN_WORD);
    struct iovec part = { &answer, sizeof(answer) };
    struct msghdr message = { .msg_iov = &part,
                              .msg_iovlen = 1,
                              .msg_control = memfd < 0 ? NULL : &control,
                              .msg_controllen = memfd < 0 ? 0 : sizeof(control) };
    struct cmsghdr *head = &control.head;
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(memfd));
    memcpy(CMSG_DATA(head), &memfd, sizeof(memfd));
    sendmsg(to, &message, MSG_DONTWAIT | MSG_NOSIGNAL); /* who waits no more gets none */
}

/* Other users than the recording's, but for root, have no business in it. */
static bool may_join(const struct krait_join_socket *join, const struct ucred *who)
{
    bool is_admitted = false;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(join->admitted); i++)
        is_admitted |= join->admitted[i] == who->pid;
    return who->uid == geteuid() || !who->uid || is_admitted;
}

/* One that has asked at that socket of `join`. */
static bool answer_at(const struct krait_join_socket *join, int fd, int memfd, struct ucred *refused)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(64 * sizeof(int))];
    } control;
    struct krait_join_question asked = { 0 };
    char more; /* that it asks too much is seen by a byte more */
    struct ucred who;
    KRAIT_AUTO_CLOSE int to = -1;
    struct iovec parts[] = { { &asked, sizeof(asked) }, { &more, 1 } };
    struct msghdr message = { .msg_iov = parts,
                              .msg_iovlen = KRAIT_ARRAY_LEN(parts),
                              .msg_control = &control,
                              .msg_controllen = sizeof(control) };
    ssize_t n = fd < 0 ? -1 : recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0)
        return false;
    bool known = get_credentials(&message, &who, &to);
    if (!known || !is_question(join, &asked, n) || who.pid <= 0 || to < 0)
        return true;
    bool joins = asked.wish == KRAIT_JOIN_MEMFD;
    answer_to(join, joins && may_join(join, &who) ? memfd : -1, to, who.pid);
    if (joins && !may_join(join, &who))
        *refused = who;
    return true;
}

bool krait_join_socket_answer(const struct krait_join_socket *join, int memfd, struct ucred *refused)
{
    *refused = (struct ucred){ 0 };
    return answer_at(join, join->fd, memfd, refused) || answer_at(join, join->file_fd, memfd, refused);
}

void krait_join_socket_close(struct krait_join_socket *join)
{
    if (join->fd >= 0)
        close(join->fd);
    join->fd = -1;
    close_file(join);
}
