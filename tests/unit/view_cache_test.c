/* SPDX-License-Identifier: Apache-2.0
 *
 * The index in a file: it is used while it fits the trace and is whole, and else it is as if it were not there.
 */
#include "made_view.h"

#include <setjmp.h>
#include <stdarg.h>
/* cmocka wants these before it */
#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>

static struct made *new_trace(void)
{
    struct made *made = made_new();
    made_thread(made, 10);
    run(made, &(struct shape){ .step = 500, .pause = 100, .depth = 150 }, 3000, 3);
    const struct krait_payload_gil_wait wait = { .holder = 11 };
    uint8_t payload[KRAIT_BYTES_gil_wait];
    for (uint32_t i = 0; i < 1000; i++) {
        made->t += 100 + i;
        made_put(made, KRAIT_EVENT_gil_wait, payload, krait_put_gil_wait(payload, &wait));
        made->t += 50 * i;
        made_end(made, KRAIT_EVENT_gil_take);
    }
    made_close(made);
    return made;
}

static const char *cache_of(const struct made *made)
{
    static char path[128];
    snprintf(path, sizeof(path), "%s/.krait-view", made->parent);
    return path;
}

/* Whether the index came from a file; it answers as a walk does, wherever it came from. */
static bool opens_cached(const struct made *made)
{
    struct krait_view_progress progress;
    struct opened index = open_view(made, 0);
    struct opened walk = open_view(made, KRAIT_VIEW_WALK);
    assert_int_equal(krait_view_wait(index.view), 0);
    assert_int_equal(krait_view_wait(walk.view), 0);
    krait_view_progress(index.view, &progress);
    assert_true(progress.is_done);
    assert_true(progress.share == 1);
    assert_int_equal(differences(&index, &walk, 1), 0);
    assert_int_equal(krait_view_text_count(index.view), krait_view_text_count(walk.view));
    close_view(&index);
    close_view(&walk);
    return progress.is_cached;
}

static void it_is_built_once(void **state)
{
    struct made *made = new_trace();
    assert_false(opens_cached(made));
    assert_int_equal(access(cache_of(made), R_OK), 0);
    assert_true(opens_cached(made));
    assert_true(opens_cached(made));
    made_free(made);
}

static void a_trace_that_has_changed_is_indexed_anew(void **state)
{
    struct made *made = new_trace();
    char path[128];
    assert_false(opens_cached(made));
    snprintf(path, sizeof(path), "%s/python3-10/metadata", made->parent);
    const struct timespec times[] = { { 5, 0 }, { 6, 0 } };
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    assert_false(opens_cached(made));
    assert_true(opens_cached(made));
    made_free(made);
}

static void a_damaged_file_is_replaced(void **state)
{
    struct made *made = new_trace();
    struct stat st;
    assert_false(opens_cached(made));
    assert_int_equal(stat(cache_of(made), &st), 0);
    for (uint32_t i = 0; i < 20; i++) {
        off_t at = st.st_size * i / 20;
        uint8_t byte;
        int fd = open(cache_of(made), O_RDWR | O_CLOEXEC);
        assert_int_equal(pread(fd, &byte, 1, at), 1);
        byte ^= 1 << i % 8;
        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
        close(fd);
        assert_false(opens_cached(made));
        assert_true(opens_cached(made));
    }
    for (uint32_t i = 0; i < 10; i++) {
        assert_int_equal(truncate(cache_of(made), st.st_size * i / 10), 0);
        assert_false(opens_cached(made));
    }
    assert_true(opens_cached(made));
    made_free(made);
}

/* As where the trace's folder cannot be written: the name is taken by what no file replaces. */
static void it_goes_to_the_users_folder_where_none_can_lie_beside(void **state)
{
    struct made *made = new_trace();
    char cache[] = "/tmp/krait-cache-XXXXXX", inside[160];
    assert_non_null(mkdtemp(cache));
    setenv("XDG_CACHE_HOME", cache, 1);
    snprintf(inside, sizeof(inside), "%s/x", cache_of(made));
    assert_int_equal(mkdir(cache_of(made), 0700), 0);
    assert_int_equal(mkdir(inside, 0700), 0);
    assert_false(opens_cached(made));
    assert_true(opens_cached(made));
    unsetenv("XDG_CACHE_HOME");
    assert_false(opens_cached(made));
    nftw(cache, made_remove_one, 16, FTW_DEPTH | FTW_PHYS);
    made_free(made);
}

/* As a full disk does: writes fail. */
static void without_room_there_is_no_file_and_no_failure(void **state)
{
    struct made *made = new_trace();
    struct rlimit before, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = (struct rlimit){ 1000, before.rlim_max };
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    assert_false(opens_cached(made));
    assert_false(opens_cached(made));
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_not_equal(access(cache_of(made), F_OK), 0);
    assert_false(opens_cached(made));
    assert_true(opens_cached(made));
    made_free(made);
}

static void a_cancelled_index_is_not_kept(void **state)
{
    struct made *made = new_trace();
    struct opened index = open_view(made, 0);
    krait_view_cancel(index.view);
    int rc = krait_view_wait(index.view); /* it may have been whole by then */
    struct krait_view_progress progress;
    krait_view_progress(index.view, &progress);
    assert_true(progress.is_done);
    assert_true(rc == 0 || rc == -ECANCELED);
    assert_true((access(cache_of(made), F_OK) == 0) == (rc == 0));
    KRAIT_AUTO_BUF out = { 0 };
    assert_int_equal(krait_view_tile(index.view, &(struct krait_view_query){ 0, 20, 0 }, &out), 0);
    close_view(&index);
    made_free(made);
}

int main(void)
{
    setenv("HOME", "/nowhere", 1);
    unsetenv("XDG_CACHE_HOME");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_built_once),
        cmocka_unit_test(a_trace_that_has_changed_is_indexed_anew),
        cmocka_unit_test(a_damaged_file_is_replaced),
        cmocka_unit_test(it_goes_to_the_users_folder_where_none_can_lie_beside),
        cmocka_unit_test(without_room_there_is_no_file_and_no_failure),
        cmocka_unit_test(a_cancelled_index_is_not_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
