/* SPDX-License-Identifier: Apache-2.0
 *
 * The socket of a collector: who knows the recording's key gets its file, and nobody else.
 */
#include "record/join.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <cmocka.h>

struct asking {
    char key[KRAIT_JOIN_KEY + 1];
    const char *file;
    pid_t pid;
    int result;
};

static void *ask(void *arg)
{
    struct asking *asking = arg;
    asking->result = krait_join_ask(asking->key, asking->file);
    if (asking->result >= 0 || asking->result == -EACCES)
        krait_join_ask_number(asking->key, asking->file, &asking->pid);
    return NULL;
}

/* Asks with `key` while `join` answers. */
static struct asking ask_at(const struct krait_join_socket *join, const char *key, int file)
{
    struct asking asking = { .pid = -1, .file = join->file };
    struct ucred refused;
    pthread_t thread;
    memcpy(asking.key, key, sizeof(asking.key));
    assert_int_equal(pthread_create(&thread, NULL, ask, &asking), 0);
    while (pthread_tryjoin_np(thread, NULL)) {
        krait_join_socket_answer(join, file, &refused);
        assert_int_equal(refused.pid, 0);
        usleep(1000);
    }
    return asking;
}

static void test_who_knows_the_key_gets_the_file_and_its_number(void **state)
{
    struct krait_join_socket join;
    struct stat ours, theirs;
    krait_join_socket_open(&join);
    assert_true(join.fd >= 0);
    int file = memfd_create("memfd", MFD_CLOEXEC);
    struct asking asking = ask_at(&join, join.key, file);
    assert_true(asking.result >= 0);
    assert_int_equal(asking.pid, getpid());
    assert_int_equal(fstat(file, &ours), 0);
    assert_int_equal(fstat(asking.result, &theirs), 0);
    assert_int_equal(ours.st_ino, theirs.st_ino);
    assert_true(fcntl(asking.result, F_GETFD) & FD_CLOEXEC);
    close(asking.result);
    close(file);
    krait_join_socket_close(&join);
    assert_int_equal(krait_join_ask(asking.key, NULL), -ECONNREFUSED);
    assert_int_equal(krait_join_ask_number(asking.key, NULL, &asking.pid), -ECONNREFUSED);
}

/* Exits with what it was told: 0 as it should be. */
static void ask_as_nobody(const char *key)
{
    enum { NOBODY = 65534 };
    pid_t pid = -1;
    bool refused = setuid(NOBODY) == 0 && krait_join_ask(key, NULL) == -EACCES;
    _exit(refused && krait_join_ask_number(key, NULL, &pid) == 0 && pid == getpid() ? 0 : 1);
}

/* Waiting for an answer that never comes would hold up its program. */
static void test_another_user_is_told_at_once_that_he_gets_no_file(void **state)
{
    struct krait_join_socket join;
    struct ucred refused;
    int status, told = 0;
    if (geteuid())
        skip(); /* only root becomes somebody else */
    krait_join_socket_open(&join);
    int file = memfd_create("memfd", MFD_CLOEXEC);
    pid_t child = fork();
    if (!child)
        ask_as_nobody(join.key);
    while (waitpid(child, &status, WNOHANG) == 0) {
        krait_join_socket_answer(&join, file, &refused);
        told += refused.pid == child && refused.uid == 65534;
        usleep(1000);
    }
    assert_int_equal(status, 0);
    assert_int_equal(told, 1); /* not for its number */
    close(file);
    krait_join_socket_close(&join);
}

static void test_a_wrong_question_gets_no_answer(void **state)
{
    struct krait_join_socket join;
    krait_join_socket_open(&join);
    char key[KRAIT_JOIN_KEY + 1];
    memcpy(key, join.key, sizeof(key));
    key[KRAIT_JOIN_NAME + KRAIT_JOIN_WORD - 1] ^= 1;
    assert_int_equal(ask_at(&join, key, 0).result, -ECONNRESET);
    krait_join_socket_close(&join);
}

/* Who has taken the name of a collector that is gone does not know what to answer. */
static void test_a_wrong_answer_is_refused(void **state)
{
    struct krait_join_socket join;
    krait_join_socket_open(&join);
    char key[KRAIT_JOIN_KEY + 1];
    memcpy(key, join.key, sizeof(key));
    key[KRAIT_JOIN_KEY - 1] ^= 1;
    assert_int_equal(ask_at(&join, key, 0).result, -EPROTO);
    krait_join_socket_close(&join);
}

static void send_raw(const struct krait_join_socket *join, const void *bytes, size_t n)
{
    struct sockaddr_un address;
    socklen_t size = krait_join_address(&address, join->key);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(sendto(fd, bytes, n, 0, (struct sockaddr *)&address, size), n);
    close(fd);
}

static void test_what_is_no_question_is_dropped(void **state)
{
    struct krait_join_socket join;
    struct ucred refused;
    char many[sizeof(struct krait_join_question) + 8] = { 0 };
    krait_join_socket_open(&join);
    memcpy(many, join.key + KRAIT_JOIN_NAME, KRAIT_JOIN_WORD);
    send_raw(&join, many, 0);
    send_raw(&join, many, 1);
    send_raw(&join, many, KRAIT_JOIN_WORD);
    send_raw(&join, many, sizeof(struct krait_join_question)); /* with no socket for the answer */
    send_raw(&join, many, sizeof(many));
    while (krait_join_socket_answer(&join, 0, &refused))
        assert_int_equal(refused.pid, 0);
    assert_false(krait_join_socket_answer(&join, 0, &refused));
    assert_int_equal(recv(join.fd, many, sizeof(many), MSG_DONTWAIT), -1);
    krait_join_socket_close(&join);
}

/* Every user of the network namespace sees the name. What he sends must not fill the queue in which programs wait, nor hand files
 * to the collector: closing one may block. */
static void test_who_does_not_know_the_question_does_not_fill_the_queue(void **state)
{
    enum { MANY = 2000 }; /* /proc/sys/net/unix/max_dgram_qlen is 10 or 512 */
    struct krait_join_socket join;
    struct sockaddr_un address;
    struct krait_join_question question = { .wish = KRAIT_JOIN_MEMFD };
    krait_join_socket_open(&join);
    socklen_t size = krait_join_address(&address, join.key);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    for (int i = 0; i < MANY; i++) { /* one word is wrong, all are */
        memcpy(question.question, join.key + KRAIT_JOIN_NAME, KRAIT_JOIN_WORD);
        for (int word = 0; word < 4; word++)
            question.question[4 * word] ^= i % 5 == word || i % 5 == 4;
        ssize_t n = sendto(fd, &question, sizeof(question), MSG_DONTWAIT, (struct sockaddr *)&address, size);
        assert_int_equal(n, sizeof(question));
    }
    assert_int_equal(recv(join.fd, &question, sizeof(question), MSG_DONTWAIT), -1);
    close(fd);
    krait_join_socket_close(&join);
}

static void on_alarm(int number)
{
}

/* A signal that comes often, as a profiler's does, must not begin the waiting anew each time. */
static void test_signals_do_not_prolong_the_wait_for_a_stopped_collector(void **state)
{
    struct krait_join_socket join;
    struct sigaction action = { .sa_handler = on_alarm }, before;
    struct itimerval often = { { 0, 100000 }, { 0, 100000 } }, never = { 0 };
    krait_join_socket_open(&join); /* nobody answers */
    assert_int_equal(sigaction(SIGALRM, &action, &before), 0);
    setitimer(ITIMER_REAL, &often, NULL);
    assert_int_equal(krait_join_ask(join.key, NULL), -ETIMEDOUT);
    setitimer(ITIMER_REAL, &never, NULL);
    sigaction(SIGALRM, &before, NULL);
    krait_join_socket_close(&join);
}

/* Answers one question with two files, as no collector does. */
static void answer_with_two_files(int fd)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(2 * sizeof(int))];
    } control = { .bytes = { 0 } };
    struct krait_join_question question;
    struct krait_join_answer answer = { .pid = 1 };
    struct iovec part = { &question, sizeof(question) };
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
    };
    int to, files[2] = { fd, fd };
    while (recvmsg(fd, &message, MSG_CMSG_CLOEXEC) < 0)
        usleep(1000);
    memcpy(&to, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(to));
    part = (struct iovec){ &answer, sizeof(answer) };
    message.msg_controllen = sizeof(control);
    control.head.cmsg_len = CMSG_LEN(sizeof(files));
    control.head.cmsg_type = SCM_RIGHTS;
    memcpy(CMSG_DATA(&control.head), files, sizeof(files));
    assert_int_equal(sendmsg(to, &message, 0), sizeof(answer));
    close(to);
}

static void test_files_of_a_wrong_answer_are_closed(void **state)
{
    struct sockaddr_un address;
    struct asking asking = { .pid = -1 };
    pthread_t thread;
    memset(asking.key, 'k', sizeof(asking.key) - 1);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    socklen_t size = krait_join_address(&address, asking.key);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
    int lowest = dup(fd);
    close(lowest);
    assert_int_equal(pthread_create(&thread, NULL, ask, &asking), 0);
    answer_with_two_files(fd);
    pthread_join(thread, NULL);
    assert_int_equal(asking.result, -EPROTO);
    int after = dup(fd);
    assert_int_equal(after, lowest);
    close(after);
    close(fd);
}

/* ---- the socket that is a file ---- */

static void make_folder(char folder[PATH_MAX], size_t longer)
{
    strcpy(folder, "/tmp/krait-test-XXXXXX");
    assert_non_null(mkdtemp(folder));
    for (size_t n = strlen(folder); n < longer; n += 101) {
        snprintf(folder + n, PATH_MAX - n, "/%0100d", 0);
        assert_int_equal(mkdir(folder, 0700), 0);
    }
}

static void remove_folder(char *folder)
{
    while (strncmp(folder, "/tmp/krait-test-", 16) == 0 && rmdir(folder) == 0)
        *strrchr(folder, '/') = '\0';
}

/* Opens one that nobody finds by its name, as in another network namespace. */
static void open_file(struct krait_join_socket *join, const char *folder)
{
    krait_join_socket_open(join);
    krait_join_file_open(join, folder);
    assert_non_null(join->file);
    close(join->fd);
    join->fd = -1;
}

static void ask_at_file(struct krait_join_socket *join)
{
    int memfd = memfd_create("memfd", MFD_CLOEXEC);
    struct asking asking = ask_at(join, join->key, memfd);
    assert_true(asking.result >= 0);
    assert_int_equal(asking.pid, getpid());
    close(asking.result);
    close(memfd);
}

static void test_a_file_in_the_folder_is_asked_where_the_name_is_not_seen(void **state)
{
    static const size_t longer[] = { 0, 90, 300, 3000 };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(longer); i++) {
        struct krait_join_socket join;
        char folder[PATH_MAX];
        struct stat st;
        make_folder(folder, longer[i]);
        mode_t before = umask(0);
        open_file(&join, folder);
        umask(before);
        assert_memory_equal(join.file, folder, strlen(folder));
        assert_int_equal(stat(join.file, &st), 0);
        assert_int_equal(st.st_mode, S_IFSOCK | 0600);
        ask_at_file(&join);
        krait_join_socket_close(&join);
        assert_null(join.file);
        remove_folder(folder);
        assert_string_equal(folder, "/tmp"); /* the others were empty */
    }
}

static void test_a_folder_without_sockets_gets_one_in_tmp(void **state)
{
    struct krait_join_socket join;
    struct stat st;
    open_file(&join, "/proc/self"); /* no file can be made there */
    char folder[PATH_MAX];
    snprintf(folder, sizeof(folder), "%.*s", (int)(strrchr(join.file, '/') - join.file), join.file);
    assert_memory_equal(folder, "/tmp/krait-join-", 16);
    assert_int_equal(stat(folder, &st), 0);
    assert_int_equal(st.st_mode, S_IFDIR | 0700);
    ask_at_file(&join);
    krait_join_socket_close(&join);
    assert_int_equal(access(folder, F_OK), -1);
}

static void test_what_a_killed_collector_left_in_tmp_is_removed(void **state)
{
    struct krait_join_socket killed, runs, next;
    open_file(&killed, "/proc/self");
    open_file(&runs, "/proc/self");
    assert_int_equal(access(killed.file, F_OK), 0);
    close(killed.file_fd); /* as it is when it has been killed */
    assert_int_equal(krait_join_ask(killed.key, killed.file), -ECONNREFUSED);
    open_file(&next, "/proc/self");
    assert_int_equal(access(killed.file, F_OK), -1);
    assert_int_equal(access(runs.file, F_OK), 0);
    ask_at_file(&runs);
    krait_join_socket_close(&next);
    krait_join_socket_close(&runs);
    free(killed.file);
}

/* A collector that is killed with a question unanswered. */
static void test_nobody_waits_for_a_collector_that_is_killed(void **state)
{
    struct krait_join_socket join;
    struct asking asking = { .pid = -1 };
    pthread_t thread;
    char byte;
    krait_join_socket_open(&join);
    memcpy(asking.key, join.key, sizeof(asking.key));
    assert_int_equal(pthread_create(&thread, NULL, ask, &asking), 0);
    while (recv(join.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0)
        usleep(1000);
    krait_join_socket_close(&join);
    pthread_join(thread, NULL);
    assert_int_equal(asking.result, -ECONNRESET);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_knows_the_key_gets_the_file_and_its_number),
        cmocka_unit_test(test_another_user_is_told_at_once_that_he_gets_no_file),
        cmocka_unit_test(test_a_wrong_question_gets_no_answer),
        cmocka_unit_test(test_a_wrong_answer_is_refused),
        cmocka_unit_test(test_what_is_no_question_is_dropped),
        cmocka_unit_test(test_who_does_not_know_the_question_does_not_fill_the_queue),
        cmocka_unit_test(test_signals_do_not_prolong_the_wait_for_a_stopped_collector),
        cmocka_unit_test(test_files_of_a_wrong_answer_are_closed),
        cmocka_unit_test(test_a_file_in_the_folder_is_asked_where_the_name_is_not_seen),
        cmocka_unit_test(test_a_folder_without_sockets_gets_one_in_tmp),
        cmocka_unit_test(test_what_a_killed_collector_left_in_tmp_is_removed),
        cmocka_unit_test(test_nobody_waits_for_a_collector_that_is_killed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
