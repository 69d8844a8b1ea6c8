/* SPDX-License-Identifier: Apache-2.0
 *
 * Recording: limits of processes and disks; shared memory that is not sound.
 */
#include "forbid.h"
#include "record/tracedir.h"
#include "record_fixture.h"

#include <dirent.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

/* ---- limits ---- */

/* Open descriptors of this process. */
static int count_descriptors(void)
{
    int n = 0;
    DIR *dir = opendir("/proc/self/fd");
    assert_non_null(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

static void a_recorded_process_keeps_no_descriptor(void **state)
{
    struct fixture *f = *state;
    struct krait_writer writer;
    collect(f, NULL);
    int before = count_descriptors();
    join(f, &writer);
    for (uint32_t i = 0; i < 5; i++)
        assert_non_null(krait_writer_ring_new(&writer, KRAIT_RING_THREAD, i + 1));
    assert_int_equal(count_descriptors(), before);
    leave(&writer);
    assert_int_equal(count_descriptors(), before);
}

/* As after chroot, or setuid, which closes /proc/PID/fd of others. */
static void rings_are_had_where_the_sessions_path_leads_nowhere(void **state)
{
    struct fixture *f = *state;
    struct krait_writer first, writer;
    collect(f, NULL);
    join(f, &first);
    join(f, &writer);
    strcpy(writer.path, "/nowhere");
    enum { RINGS = 12 };
    for (uint32_t i = 0; i < RINGS; i++) {
        assert_non_null(
            krait_writer_ring_new(&first, KRAIT_RING_THREAD, i % 3 + 1)); /* not all are neighbours */
        struct krait_ring *ring = krait_writer_ring_new(&writer, KRAIT_RING_THREAD, 100 + i);
        assert_non_null(ring);
        for (uint32_t k = 0; k < 3000; k++)
            assert_int_equal(put(&writer, ring, k + 1), KRAIT_ROOM_OK);
    }
    leave(&writer);
    leave(&first);
    finish(f);
    struct seen seen = look(f);
    assert_int_equal(seen.calls, RINGS * 3000);
    assert_int_equal(seen.out_of_turn, 0);
}

static void a_program_with_little_address_space_is_recorded(void **state)
{
    struct fixture *f = *state;
    struct krait_writer others;
    collect(f, NULL);
    join(f, &others);
    for (uint32_t i = 0; i < 40; i++) /* more than the program has room to map in passing */
        assert_non_null(krait_writer_ring_new(&others, KRAIT_RING_THREAD, i + 1));
    pid_t pid = fork();
    if (pid == 0) {
        struct krait_writer writer;
        struct krait_ring *ring;
        unsigned long pages = 0;
        FILE *statm = fopen("/proc/self/statm", "r");
        if (!statm || fscanf(statm, "%lu", &pages) != 1)
            _exit(97);
        struct rlimit limit = { (pages << 12) + (16u << 20), (pages << 12) + (16u << 20) };
        setrlimit(RLIMIT_AS, &limit);
        child_writer(f, &writer, &ring);
        put(&writer, ring, 1);
        void *mine = malloc(4 << 20); /* what the program needs is still there */
        while (krait_writer_ring_new(&writer, KRAIT_RING_THREAD, 2))
            ;
        _exit(mine ? 0 : 96);
    }
    assert_int_equal(wait_status(pid), 0);
    leave(&others);
    finish(f);
    assert_int_equal(look(f).calls, 1);
}

static void rings_that_cannot_be_opened_are_mapped_anew(void **state)
{
    enum { NO_FILTER = 95 };
    struct fixture *f = *state;
    collect(f, NULL);
    pid_t pid = fork();
    if (pid == 0) {
        struct krait_writer writer;
        struct krait_ring *ring;
        if (!forbid_mprotect())
            _exit(NO_FILTER);
        child_writer(f, &writer, &ring);
        put(&writer, ring, 1);
        _exit(0);
    }
    int status = wait_status(pid);
    finish(f);
    if (WIFEXITED(status) && WEXITSTATUS(status) == NO_FILTER)
        skip();
    assert_int_equal(status, 0);
    assert_int_equal(look(f).calls, 1);
}

static void a_recording_fits_a_limit_on_file_sizes(void **state)
{
    struct fixture *f = *state;
    pid_t pid = fork();
    if (pid == 0) {
        struct krait_collector_options options = { .dir = f->dir };
        struct krait_err err = { 0 };
        struct rlimit limit = { 64 << 20, 64 << 20 };
        setrlimit(RLIMIT_FSIZE, &limit);
        int rc = krait_collector_new(&f->collector, &options, &err);
        limit.rlim_cur = 1 << 20;
        setrlimit(RLIMIT_FSIZE, &limit);
        options.dir = f->root;
        int none = krait_collector_new(&f->collector, &options, &err);
        _exit(rc == 0 && none < 0 && strstr(err.text, "r") ? 0 : 1);
    }
    assert_int_equal(wait_status(pid), 0);
}

static void what_the_disk_refuses_is_counted_and_the_rest_is_whole(void **state)
{
    struct fixture *f = *state;
    struct shared *shared = share();
    collect(f, NULL);
    pid_t pid = fork();
    if (pid == 0) {
        /* The collector's own limit: it stands for a full disk, with short writes. */
        signal(SIGXFSZ, SIG_IGN);
        struct rlimit limit = { 300001, 300001 };
        setrlimit(RLIMIT_FSIZE, &limit);
        struct krait_writer writer;
        struct krait_ring *ring;
        child_writer(f, &writer, &ring);
        for (uint32_t i = 1; i <= 100000; i++) {
            put(&writer, ring, i);
            if (i % 20000 == 0)
                krait_collector_round(f->collector);
        }
        leave(&writer);
        struct krait_collector_summary summary = finish(f);
        atomic_store(&shared->published, summary.lost[KRAIT_lost_reason_disk]);
        _exit(krait_collector_trouble(f->collector) ? 0 : 1);
    }
    assert_int_equal(wait_status(pid), 0);
    struct seen seen = look(f);
    assert_in_range(seen.calls, 30000, 40000);
    assert_int_equal(seen.calls + atomic_load(&shared->published), 100000);
    munmap(shared, sizeof(*shared));
}

/* ---- what is not a recording, and what is not sound ---- */

/* Who sleeps until the recording changes, as in a process whose hooks are removed, has nothing else to see it by. */
static void at_its_largest_size_a_recording_wakes_those_that_wait_for_it(void **state)
{
    struct fixture *f = *state;
    struct krait_writer writer;
    collect(f, &(struct krait_collector_options){ .max_bytes = 1 << 20 });
    join(f, &writer);
    struct krait_ring *ring = krait_writer_ring_new(&writer, KRAIT_RING_THREAD, 1);
    struct krait_control *control = writer.shm.control;
    uint32_t wakes = atomic_load(&control->wakes);
    for (uint32_t i = 0; i < 1000000 && atomic_load(&control->state) == KRAIT_SESSION_RUN; i++) {
        assert_int_equal(atomic_load(&control->wakes), wakes);
        put(&writer, ring, 1);
        if (i % 1000 == 0)
            krait_collector_round(f->collector);
    }
    assert_int_equal(atomic_load(&control->state), KRAIT_SESSION_STOP);
    assert_int_equal(atomic_load(&control->wakes), wakes + 1);
    leave(&writer);
    finish(f);
}

static void what_is_not_a_recording_is_refused(void **state)
{
    struct fixture *f = *state;
    struct krait_writer writer = { 0 };
    char path[64];
    snprintf(path, sizeof(path), "%s/big", f->root);
    FILE *file = fopen(path, "w");
    assert_int_equal(ftruncate(fileno(file), 64 << 20), 0);
    fclose(file);
    assert_int_equal(krait_writer_map(&writer, path), -EPROTO);
    assert_int_equal(krait_writer_map(&writer, f->root), -EPROTO);
    assert_int_equal(krait_writer_map(&writer, "/dev/null"), -EPROTO);
    assert_int_equal(krait_writer_map(&writer, "/proc/self/fd/12345"), -ENOENT);
}

static void nobody_can_pull_the_memory_from_under_the_others(void **state)
{
    struct fixture *f = *state;
    collect(f, NULL);
    assert_int_equal(truncate(krait_collector_session(f->collector), 0), -1);
    assert_int_equal(errno, EPERM);
}

static uint64_t any(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    uint64_t r = *seed;
    static const uint64_t odd[] = { 0, 1, 2, 3, 63, 64, UINT32_MAX, UINT64_MAX, 1u << 31, 84, 32768, 32769 };
    return r % 3 ? odd[(r >> 8) % KRAIT_ARRAY_LEN(odd)] : r;
}

/* Everything that a program can reach: words of the heads, of its slot and of its packets. */
static void scribble(struct krait_writer *writer, struct krait_ring *ring, uint64_t *seed)
{
    static const size_t keep = offsetof(struct krait_ring, state);
    uint8_t *where;
    size_t size;
    switch (any(seed) % 5) {
    case 0:
        where = (uint8_t *)ring + (any(seed) % 2 ? keep + 4 : 0);
        size = any(seed) % 2 ? 64 : sizeof(*ring) - keep - 4;
        break;
    case 1:
        where = (uint8_t *)&writer->shm.procs[writer->proc_index].lost;
        size = sizeof(writer->proc->lost);
        break;
    case 2:
        where = (uint8_t *)writer->shm.control;
        size = offsetof(struct krait_control, collector_pid);
        break;
    case 3:
        where = (uint8_t *)&writer->shm.control->sleeping;
        size = 12;
        break;
    default:
        where = ring->packets;
        where = writer->ring_maps[ring - writer->shm.rings] + any(seed) % 2 * (writer->shm.packet_bytes);
        size = 4096;
    }
    for (int i = 0; i < 8; i++) {
        uint64_t word = any(seed);
        size_t at = (size_t)(any(seed) % size) & ~7ull;
        memcpy(where + at, &word, at + 8 <= size ? 8 : size - at);
    }
}

static void garbage_in_shared_memory_harms_only_its_own_trace(void **state)
{
    struct fixture *f = *state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        snprintf(f->dir, sizeof(f->dir), "%s/%d", f->root, (int)seed);
        uint64_t random = seed * 0x9e3779b97f4a7c15ull;
        struct krait_writer good, bad;
        collect(f, &(struct krait_collector_options){ .rings = 8 });
        join(f, &good);
        join(f, &bad);
        bad.proc->pid = 1; /* anyone else who lives */
        struct krait_ring *good_ring = krait_writer_ring_new(&good, KRAIT_RING_THREAD, 1);
        struct krait_ring *bad_ring =
            krait_writer_ring_new(&bad, seed % 2 ? KRAIT_RING_THREAD : KRAIT_RING_DEFINITIONS, 2);
        for (uint32_t i = 1; i <= 2000; i++) {
            put(&good, good_ring, i);
            if (i % 20)
                continue;
            scribble(&bad, bad_ring, &random);
            krait_collector_round(f->collector);
        }
        leave(&good);
        krait_collector_round(f->collector);
        atomic_store(&bad.shm.procs[bad.proc_index].state, KRAIT_SLOT_CLOSED);
        finish(f);
        char path[128];
        snprintf(path, sizeof(path), "%s/%s-%d/thread-1-0", f->dir, own_comm(), getpid());
        struct stat st;
        assert_int_equal(stat(path, &st), 0);
        assert_true(st.st_size >= 2000 * 8);
        krait_writer_unmap(&bad);
        krait_collector_free(f->collector);
        f->collector = NULL;
        remove_folder(f->dir);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RECORD_TEST(a_recorded_process_keeps_no_descriptor),
        RECORD_TEST(rings_are_had_where_the_sessions_path_leads_nowhere),
        RECORD_TEST(a_program_with_little_address_space_is_recorded),
        RECORD_TEST(rings_that_cannot_be_opened_are_mapped_anew),
        RECORD_TEST(a_recording_fits_a_limit_on_file_sizes),
        RECORD_TEST(what_the_disk_refuses_is_counted_and_the_rest_is_whole),
        RECORD_TEST(at_its_largest_size_a_recording_wakes_those_that_wait_for_it),
        RECORD_TEST(what_is_not_a_recording_is_refused),
        RECORD_TEST(nobody_can_pull_the_memory_from_under_the_others),
        RECORD_TEST(garbage_in_shared_memory_harms_only_its_own_trace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
