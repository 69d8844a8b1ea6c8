/* SPDX-License-Identifier: Apache-2.0
 *
 * Recording: names of programs, processes and functions, whatever is in them.
 */
#include "base/buf.h"
#include "ctf/read/reader.h"
#include "record_fixture.h"

#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cmocka.h>

static void hostile_names_are_escaped_for_every_reader(void **state)
{
    struct fixture *f = *state;
    struct krait_writer writer;
    static const char *const names[] = { "quote\" = 1, \"x",
                                         "back\\slash\\",
                                         "new\nline",
                                         "tab\tbell\a",
                                         "\001\033[31m\177",
                                         "\"; };",
                                         "/* */",
                                         "//",
                                         "\303\251\342\202\254\360\237\220\215",
                                         "bad\377utf8",
                                         "<module>",
                                         "%s%n",
                                         "\\x41\\101",
                                         "?",
                                         "" };
    collect(f, NULL);
    join(f, &writer);
    struct krait_ring *definitions = krait_writer_ring_new(&writer, KRAIT_RING_DEFINITIONS, 0);
    struct krait_ring *ring = krait_writer_ring_new(&writer, KRAIT_RING_THREAD, 7);
    for (uint32_t i = 0; i < KRAIT_ARRAY_LEN(names); i++) {
        assert_true(define(&writer, definitions, i + 1, names[i]));
        put(&writer, ring, i + 1);
    }
    leave(&writer);
    finish(f);
    assert_int_equal(look(f).calls, KRAIT_ARRAY_LEN(names));
    if (system("command -v babeltrace2 >/dev/null") != 0)
        return;
    char command[256];
    snprintf(command, sizeof(command),
             "n=$(babeltrace2 %s 2>%s/said | grep -c python:call) && [ \"$n\" = %zu ] && [ ! -s %s/said ]",
             f->dir, f->root, KRAIT_ARRAY_LEN(names), f->root);
    assert_int_equal(system(command), 0);
}

/* A process that joins, says what it is called, and does what comes `then`, by which it becomes `comm`,
 * before the collector sees it. */
static pid_t unseen_process(const struct fixture *f, void (*then)(void), const char *comm)
{
    pid_t pid = fork();
    if (pid == 0) {
        struct krait_writer writer;
        struct krait_ring *ring;
        uint8_t payload[KRAIT_PAYLOAD_MAX];
        child_writer(f, &writer, &ring);
        size_t n = krait_put_process_start(payload, &(struct krait_payload_process_start){
                                                        .vpid = (uint32_t)getpid(),
                                                        .vppid = (uint32_t)getppid(),
                                                        .origin = KRAIT_process_origin_fork,
                                                        .runtime = "CPython",
                                                        .command = "as it was said",
                                                    });
        ring = krait_writer_ring_new(&writer, KRAIT_RING_DEFINITIONS, 0);
        krait_writer_event(&writer, ring, KRAIT_EVENT_process_start, payload, n);
        then();
        _exit(97);
    }
    char path[32];
    snprintf(path, sizeof(path), "/proc/%d/comm", pid);
    for (bool is = false; !is; usleep(1000)) {
        KRAIT_AUTO_BUF text = { 0 };
        assert_int_equal(krait_buf_read_file(&text, path), 0);
        is = strncmp(text.data, comm, strlen(comm)) == 0;
    }
    return pid;
}

static void take_another_name(void)
{
    prctl(PR_SET_NAME, "later");
    pause();
}

static void execute_another_program(void)
{
    execlp("sleep", "sleep", "300", NULL);
}

/* Whether its metadata, in the end, has this text. */
static bool is_called(const struct fixture *f, const char *folder, pid_t pid, const char *text)
{
    char path[128];
    KRAIT_AUTO_BUF metadata = { 0 };
    snprintf(path, sizeof(path), "%s/%s-%d/metadata", f->dir, folder, pid);
    assert_int_equal(krait_buf_read_file(&metadata, path), 0);
    return strstr(metadata.data, text);
}

/* As a worker does that has just been forked. */
static void a_name_that_is_taken_before_the_process_is_seen_is_told(void **state)
{
    struct fixture *f = *state;
    collect(f, NULL);
    pid_t renamed = unseen_process(f, take_another_name, "later");
    pid_t executed = unseen_process(f, execute_another_program, "sleep");
    for (int i = 0; i < 3; i++) {
        krait_collector_round(f->collector);
        usleep(20000); /* names are looked at again after 10 ms */
    }
    finish(f);
    kill(renamed, SIGKILL);
    kill(executed, SIGKILL);
    wait_status(renamed);
    wait_status(executed);
    assert_true(is_called(f, "later", renamed, "procname = \"later\""));
    assert_false(is_called(f, "later", renamed, "command = \"as it was said\""));
    char procname[64];
    snprintf(procname, sizeof(procname), "procname = \"%s\"", own_comm());
    assert_true(is_called(f, own_comm(), executed, procname));
    assert_true(is_called(f, own_comm(), executed, "command = \"as it was said\""));
}

static void who_was_refused_is_called_as_the_collector_knows_it(void **state)
{
    struct fixture *f = *state;
    struct krait_writer writer = { 0 };
    char why[64];
    collect(f, NULL);
    assert_int_equal(krait_writer_map(&writer, krait_collector_session(f->collector)), 0);
    pid_t child = (pid_t)syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0);
    if (child < 0 && errno == EPERM)
        skip(); /* a pid namespace is root's to make */
    if (!child) {
        krait_writer_refuse(&writer, "it is another program");
        _exit(getpid() != 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(krait_collector_refusal(f->collector, 0, why, sizeof(why)), child);
    assert_string_equal(why, "it is another program");
    krait_writer_unmap(&writer);
    finish(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RECORD_TEST(hostile_names_are_escaped_for_every_reader),
        RECORD_TEST(a_name_that_is_taken_before_the_process_is_seen_is_told),
        RECORD_TEST(who_was_refused_is_called_as_the_collector_knows_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
