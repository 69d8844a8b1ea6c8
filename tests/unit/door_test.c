/* SPDX-License-Identifier: Apache-2.0
 *
 * The door of a collector: who knows the recording's key gets its file, and nobody else.
 */
#include "record/door.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <cmocka.h>

struct asking {
    char key[KRAIT_DOOR_KEY + 1];
    pid_t pid;
    int result;
};

static void *ask(void *arg)
{
    struct asking *asking = arg;
    asking->result = krait_door_join(asking->key);
    if (asking->result >= 0 || asking->result == -EACCES)
        krait_door_number(asking->key, &asking->pid);
    return NULL;
}

/* Asks with `key` while `door` answers. */
static struct asking ask_at(const struct krait_door *door, const char *key, int file)
{
    struct asking asking = { .pid = -1 };
    struct ucred refused;
    pthread_t thread;
    memcpy(asking.key, key, sizeof(asking.key));
    assert_int_equal(pthread_create(&thread, NULL, ask, &asking), 0);
    while (pthread_tryjoin_np(thread, NULL)) {
        krait_door_answer(door, file, &refused);
        assert_int_equal(refused.pid, 0);
        usleep(1000);
    }
    return asking;
}

static void test_who_knows_the_key_gets_the_file_and_its_number(void **state)
{
    struct krait_door door;
    struct stat ours, theirs;
    krait_door_open(&door);
    assert_true(door.fd >= 0);
    int file = memfd_create("door", MFD_CLOEXEC);
    struct asking asking = ask_at(&door, door.key, file);
    assert_true(asking.result >= 0);
    assert_int_equal(asking.pid, getpid());
    assert_int_equal(fstat(file, &ours), 0);
    assert_int_equal(fstat(asking.result, &theirs), 0);
    assert_int_equal(ours.st_ino, theirs.st_ino);
    assert_true(fcntl(asking.result, F_GETFD) & FD_CLOEXEC);
    close(asking.result);
    close(file);
    krait_door_close(&door);
    assert_int_equal(krait_door_join(asking.key), -ECONNREFUSED);
    assert_int_equal(krait_door_number(asking.key, &asking.pid), -ECONNREFUSED);
}

/* Exits with what it was told: 0 as it should be. */
static void ask_as_nobody(const char *key)
{
    enum { NOBODY = 65534 };
    pid_t pid = -1;
    bool refused = setuid(NOBODY) == 0 && krait_door_join(key) == -EACCES;
    _exit(refused && krait_door_number(key, &pid) == 0 && pid == getpid() ? 0 : 1);
}

/* Waiting in vain would hold up its program. */
static void test_another_user_is_told_at_once_that_he_gets_no_file(void **state)
{
    struct krait_door door;
    struct ucred refused;
    int status, told = 0;
    if (geteuid())
        skip(); /* only root becomes somebody else */
    krait_door_open(&door);
    int file = memfd_create("door", MFD_CLOEXEC);
    pid_t child = fork();
    if (!child)
        ask_as_nobody(door.key);
    while (waitpid(child, &status, WNOHANG) == 0) {
        krait_door_answer(&door, file, &refused);
        told += refused.pid == child && refused.uid == 65534;
        usleep(1000);
    }
    assert_int_equal(status, 0);
    assert_int_equal(told, 1); /* not for its number */
    close(file);
    krait_door_close(&door);
}

static void test_a_wrong_question_gets_no_answer(void **state)
{
    struct krait_door door;
    krait_door_open(&door);
    char key[KRAIT_DOOR_KEY + 1];
    memcpy(key, door.key, sizeof(key));
    key[KRAIT_DOOR_NAME + KRAIT_DOOR_WORD - 1] ^= 1;
    assert_int_equal(ask_at(&door, key, 0).result, -ETIMEDOUT);
    krait_door_close(&door);
}

/* Who has taken the name of a collector that is gone does not know what to answer. */
static void test_a_wrong_answer_is_refused(void **state)
{
    struct krait_door door;
    krait_door_open(&door);
    char key[KRAIT_DOOR_KEY + 1];
    memcpy(key, door.key, sizeof(key));
    key[KRAIT_DOOR_KEY - 1] ^= 1;
    assert_int_equal(ask_at(&door, key, 0).result, -EPROTO);
    krait_door_close(&door);
}

static void send_raw(const struct krait_door *door, const void *bytes, size_t n)
{
    struct sockaddr_un address;
    socklen_t size = krait_door_address(&address, door->key);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(sendto(fd, bytes, n, 0, (struct sockaddr *)&address, size), n);
    close(fd);
}

static void test_what_is_no_question_is_dropped(void **state)
{
    struct krait_door door;
    struct ucred refused;
    char many[sizeof(struct krait_door_question) + 8] = { 0 };
    krait_door_open(&door);
    memcpy(many, door.key + KRAIT_DOOR_NAME, KRAIT_DOOR_WORD);
    send_raw(&door, many, 0);
    send_raw(&door, many, 1);
    send_raw(&door, many, KRAIT_DOOR_WORD);
    send_raw(&door, many, sizeof(struct krait_door_question)); /* a sender without a name gets no answer */
    send_raw(&door, many, sizeof(many));
    for (int i = 0; i < 5; i++)
        assert_true(krait_door_answer(&door, 0, &refused));
    assert_false(krait_door_answer(&door, 0, &refused));
    assert_int_equal(recv(door.fd, many, sizeof(many), MSG_DONTWAIT), -1);
    krait_door_close(&door);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_knows_the_key_gets_the_file_and_its_number),
        cmocka_unit_test(test_another_user_is_told_at_once_that_he_gets_no_file),
        cmocka_unit_test(test_a_wrong_question_gets_no_answer),
        cmocka_unit_test(test_a_wrong_answer_is_refused),
        cmocka_unit_test(test_what_is_no_question_is_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
