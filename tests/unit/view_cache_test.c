/* SPDX-License-Identifier: Apache-2.0
 *
 * The index in a file: it is used while it fits the trace and is whole, and else it is as if it were not there.
 */
#include "made_kernel.h"
#include "made_view.h"
#include "trace/kernel/kernel_list.h"
#include "view/cache_own.h"

#include <setjmp.h>
#include <stdarg.h>
/* cmocka wants these before it */
#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>

enum { SWITCHES = 100, WAITS = 200 };

static struct made *new_trace(void)
{
    struct made *made = made_new();
    made_thread(made, 10);
    run(made, &(struct shape){ .step = 500, .pause = 100, .depth = 150 }, 1000, 3);
    const struct krait_payload_gil_wait wait = { .holder = 11 };
    uint8_t payload[KRAIT_BYTES_gil_wait];
    for (uint32_t i = 0; i < WAITS; i++) {
        made->t += 100 + i;
        made_put(made, KRAIT_EVENT_gil_wait, payload, krait_put_gil_wait(payload, &wait));
        made->t += 50 * i;
        made_end(made, KRAIT_EVENT_gil_take);
    }
    made_close(made);
    made_kernel(made, SWITCHES);
    return made;
}

static const char *cache_of(const struct made *made)
{
    static char path[128];
    snprintf(path, sizeof(path), "%s/.krait-view", made->parent);
    return path;
}

static void assert_same_track(const struct krait_track *a, const struct krait_track *b)
{
    const uint64_t of_a[] = { a->kind,   a->of,     a->flags, a->importer, a->process,
                              a->thread, a->number, a->pid,   a->key };
    const uint64_t of_b[] = { b->kind,   b->of,     b->flags, b->importer, b->process,
                              b->thread, b->number, b->pid,   b->key };
    assert_memory_equal(of_a, of_b, sizeof(of_a));
    assert_string_equal(a->name, b->name);
    assert_string_equal(a->host ? a->host : "", b->host ? b->host : "");
    assert_string_equal(a->thread_name ? a->thread_name : "", b->thread_name ? b->thread_name : "");
    assert_string_equal(a->process_name ? a->process_name : "", b->process_name ? b->process_name : "");
}

static void assert_same_tracks(const struct krait_trace *a, const struct krait_trace *b)
{
    assert_int_equal(a->track_count, b->track_count);
    for (uint32_t i = 0; i < a->track_count; i++)
        assert_same_track(&a->tracks[i], &b->tracks[i]);
    const struct krait_range of_a = krait_kernel_range(a, 0), of_b = krait_kernel_range(b, 0);
    assert_true(of_a.from_ns && of_a.from_ns == of_b.from_ns && of_a.to_ns == of_b.to_ns);
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
    assert_same_tracks(index.trace, walk.trace);
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
    uint32_t places = tries(6, 20), cuts = tries(4, 10);
    for (uint32_t i = 0; i < places; i++) {
        off_t at = st.st_size * i / places;
        uint8_t byte;
        int fd = open(cache_of(made), O_RDWR | O_CLOEXEC);
        assert_int_equal(pread(fd, &byte, 1, at), 1);
        byte ^= 1 << i % 8;
        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
        close(fd);
        assert_false(opens_cached(made));
        assert_true(opens_cached(made));
    }
    for (uint32_t i = 0; i < cuts; i++) {
        assert_int_equal(truncate(cache_of(made), st.st_size * i / cuts), 0);
        assert_false(opens_cached(made));
    }
    assert_true(opens_cached(made));
    made_free(made);
}

/* ---- the list of the kernel's tracks ---- */

static void read_cache(const struct made *made, struct krait_buf *bytes)
{
    assert_int_equal(krait_buf_read_file(bytes, cache_of(made)), 0);
}

/* With a sum that fits. */
static void write_cache(const struct made *made, struct krait_buf *bytes)
{
    uint64_t sum = krait_cache_sum(0, bytes->data, bytes->len - sizeof(sum));
    memcpy(bytes->data + bytes->len - sizeof(sum), &sum, sizeof(sum));
    made_write(made->parent, KRAIT_CACHE_NAME, bytes->data, bytes->len);
}

static struct krait_cache_machine *machine_in(const struct krait_buf *bytes)
{
    return (struct krait_cache_machine *)(void *)(bytes->data + sizeof(struct krait_cache_head));
}

static struct krait_kernel_listed_thread *threads_in(const struct krait_buf *bytes)
{
    return (struct krait_kernel_listed_thread *)(void *)(machine_in(bytes) + 1);
}

static struct krait_kernel_listed_cpu *cpus_in(const struct krait_buf *bytes)
{
    size_t threads = machine_in(bytes)->threads * sizeof(struct krait_kernel_listed_thread);
    return (struct krait_kernel_listed_cpu *)(void *)((char *)threads_in(bytes) +
                                                      ((threads + 7) & ~(size_t)7));
}

/* The events are others then, and the files as they were by name, size and time: whoever walked them would find no
 * thread. */
static void overwrite_events(const struct made *made)
{
    char path[128], zero[4096] = { 0 };
    struct stat st;
    snprintf(path, sizeof(path), "%s/kernel/cpu_0", made->parent);
    assert_int_equal(stat(path, &st), 0);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    for (off_t at = 0; at < st.st_size; at += (off_t)sizeof(zero))
        assert_true(pwrite(fd, zero, KRAIT_MIN(sizeof(zero), (size_t)(st.st_size - at)), at) > 0);
    const struct timespec times[] = { st.st_atim, st.st_mtim };
    assert_int_equal(futimens(fd, times), 0);
    close(fd);
}

static void a_trace_that_is_opened_again_needs_no_walk_for_its_tracks(void **state)
{
    struct made *made = new_trace();
    assert_false(opens_cached(made));
    struct opened before = open_view(made, 0);
    overwrite_events(made);
    struct opened after = open_view(made, 0), walk = open_view(made, KRAIT_VIEW_WALK);
    assert_same_tracks(before.trace, after.trace);
    assert_true(walk.trace->track_count < after.trace->track_count);
    assert_int_equal(krait_view_length(before.view), krait_view_length(after.view));
    close_view(&before);
    close_view(&after);
    close_view(&walk);
    made_free(made);
}

typedef void change_fn(const struct krait_buf *bytes);

static void more_machines(const struct krait_buf *bytes)
{
    ((struct krait_cache_head *)(void *)bytes->data)->machines++;
}

static void many_threads(const struct krait_buf *bytes)
{
    machine_in(bytes)->threads = UINT32_MAX;
}

static void other_times(const struct krait_buf *bytes)
{
    machine_in(bytes)->end_ns = machine_in(bytes)->begin_ns - 1;
}

static void a_name_without_end(const struct krait_buf *bytes)
{
    memset(threads_in(bytes)[1].name, 'x', KRAIT_KERNEL_NAME);
}

static void a_thread_that_is_not_there(const struct krait_buf *bytes)
{
    threads_in(bytes)[1].thread = 1;
}

static void a_process_that_is_not_there(const struct krait_buf *bytes)
{
    threads_in(bytes)[1].process = 1;
}

static void a_cpu_that_linux_cannot_have(const struct krait_buf *bytes)
{
    cpus_in(bytes)->number = 8192;
}

/* From here on the list fits the trace by itself, and the tracks that it makes do not fit the rest of the file. */
static void another_track(const struct krait_buf *bytes)
{
    assert_false(threads_in(bytes)[1].runs_functions);
    threads_in(bytes)[1].runs_functions = 1;
}

static void a_track_less(const struct krait_buf *bytes)
{
    assert_true(cpus_in(bytes)->has_frequency);
    cpus_in(bytes)->has_frequency = 0;
}

static void no_lists(const struct krait_buf *bytes)
{
    ((struct krait_cache_head *)(void *)bytes->data)->machines = 0;
}

static void a_list_that_does_not_fit_is_made_anew(void **state)
{
    static change_fn *const changes[] = { more_machines,
                                          many_threads,
                                          other_times,
                                          a_name_without_end,
                                          a_thread_that_is_not_there,
                                          a_process_that_is_not_there,
                                          a_cpu_that_linux_cannot_have,
                                          another_track,
                                          a_track_less,
                                          no_lists };
    struct made *made = new_trace();
    assert_false(opens_cached(made));
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(changes); i++) {
        KRAIT_AUTO_BUF bytes = { 0 };
        read_cache(made, &bytes);
        assert_int_equal(machine_in(&bytes)->threads, MADE_KERNEL_THREADS);
        changes[i](&bytes);
        write_cache(made, &bytes);
        assert_false(opens_cached(made));
        assert_true(opens_cached(made));
    }
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
        cmocka_unit_test(a_trace_that_is_opened_again_needs_no_walk_for_its_tracks),
        cmocka_unit_test(a_list_that_does_not_fit_is_made_anew),
        cmocka_unit_test(it_goes_to_the_users_folder_where_none_can_lie_beside),
        cmocka_unit_test(without_room_there_is_no_file_and_no_failure),
        cmocka_unit_test(a_cancelled_index_is_not_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
