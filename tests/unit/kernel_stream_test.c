/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams of kernel events as they are written and read again; the names of the kernel's functions.
 */
#include "ctf/meta/open.h"
#include "ctf/read/cursor.h"
#include "ctf/read/loss.h"
#include "ctf/read/reader.h"
#include "kernel/functions.h"
#include "kernel/kernel_stream.h"
#include "kernel/kernel_tsdl.h"
#include "kernel/tracefs.h"
#include "kernel_made.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* ---- streams ---- */

static void put_number(struct krait_kernel_stream *stream, uint16_t id, uint64_t time, uint32_t number)
{
    int rc;
    uint8_t *to = krait_kernel_stream_begin(stream, id, time, 42, sizeof(number), &rc);
    assert_non_null(to);
    assert_int_equal(rc, 0);
    memcpy(to, &number, sizeof(number));
    krait_kernel_stream_end(stream, sizeof(number));
}

enum { NUMBERS = 20000 };

/* Times at the edges of 32 bits, losses, and more than a packet holds. */
static void write_numbers(struct krait_kernel_stream *stream, uint16_t id)
{
    const uint64_t wrap = 1ull << 32;
    const uint64_t times[] = { wrap - 2, wrap - 2,     wrap + 1, 2 * wrap,
                               3 * wrap, 4 * wrap + 1, 9 * wrap, 8 * wrap };
    assert_int_equal(krait_kernel_stream_mark(stream, 5), 0);
    assert_int_equal(krait_kernel_stream_lose(stream, 3), 0);
    for (uint32_t i = 0; i < KRAIT_ARRAY_LEN(times); i++)
        put_number(stream, id, times[i], i);
    assert_int_equal(krait_kernel_stream_lose(stream, 4), 0);
    for (uint32_t i = KRAIT_ARRAY_LEN(times); i < NUMBERS; i++)
        put_number(stream, id, 9 * wrap + i, i);
    assert_int_equal(krait_kernel_stream_lose(stream, 5), 0);
    assert_int_equal(krait_kernel_stream_mark(stream, 10 * wrap), 0);
    assert_int_equal(stream->events, NUMBERS);
    assert_int_equal(stream->lost, 12);
}

static uint64_t lost_in(const struct krait_ctf_stream *stream)
{
    uint64_t lost = 0;
    for (uint32_t i = 0; i < stream->packet_count; i++) {
        struct krait_ctf_loss losses[2];
        unsigned n = krait_ctf_losses(stream, i, losses);
        for (unsigned k = 0; k < n; k++)
            lost += losses[k].count;
    }
    return lost;
}

static void read_numbers(const char *dir)
{
    struct krait_ctf_reader *reader = NULL;
    struct krait_ctf_cursor cursor;
    const uint64_t wrap = 1ull << 32;
    const uint64_t times[] = { wrap - 2, wrap - 2,     wrap + 1, 2 * wrap,
                               3 * wrap, 4 * wrap + 1, 9 * wrap, 9 * wrap };
    assert_int_equal(krait_ctf_open(&reader, &dir, 1, NULL, NULL), 0);
    assert_int_equal(reader->stream_count, 1);
    assert_int_equal(lost_in(reader->streams[0]), 12);
    assert_int_equal(krait_ctf_cursor_init(&cursor, reader, reader->streams[0]), 0);
    for (uint32_t i = 0; i < NUMBERS; i++) {
        assert_true(krait_ctf_next(&cursor) > 0);
        assert_int_equal(cursor.ticks, i < KRAIT_ARRAY_LEN(times) ? times[i] : 9 * wrap + i);
        assert_string_equal(cursor.event->name, "number");
        assert_int_equal(krait_ctf_event_skip(&cursor), 0);
    }
    assert_int_equal(krait_ctf_next(&cursor), 0);
    krait_ctf_cursor_done(&cursor);
    krait_ctf_close(reader);
}

static void test_a_stream_is_read_as_it_was_written(void **state)
{
    char dir[] = "/tmp/krait-kernel-XXXXXX", path[64];
    const struct krait_kernel_field fields[] = { { "number", KRAIT_KTYPE_U32 } };
    struct krait_kernel_classes classes = { 0 };
    struct krait_kernel_stream stream;
    const uint8_t uuid[16] = { 1, 2, 3 };
    struct krait_clock clock = { .freq = KRAIT_NS_PER_S };
    assert_non_null(mkdtemp(dir));
    int id = krait_kernel_classes_declare(&classes, "number", fields, 1);
    assert_int_equal(krait_kernel_tsdl_write(dir, KRAIT_KERNEL_LTTNG, &classes, &clock, uuid,
                                             &(struct krait_kernel_unwritten){ 0 }, NULL),
                     0);
    snprintf(path, sizeof(path), "%s/channel0_0", dir);
    assert_int_equal(krait_kernel_stream_init(&stream, path, uuid, 0, 0, NULL), 0);
    write_numbers(&stream, (uint16_t)id);
    krait_kernel_stream_done(&stream);
    krait_kernel_classes_done(&classes);
    read_numbers(dir);
    unlink(path);
    snprintf(path, sizeof(path), "%s/metadata", dir);
    unlink(path);
    assert_int_equal(rmdir(dir), 0);
}

static void test_what_the_disk_refuses_is_counted(void **state)
{
    struct krait_kernel_stream stream;
    const uint8_t uuid[16] = { 0 };
    char path[] = "/tmp/krait-kernel-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    unlink(path);
    assert_int_equal(krait_kernel_stream_init(&stream, path, uuid, 0, 0, NULL), 0);
    put_number(&stream, 0, 1, 1);
    assert_int_equal(krait_kernel_stream_flush(&stream), 0);
    uint64_t bytes = stream.bytes;
    int kept = stream.fd;
    stream.fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    put_number(&stream, 0, 2, 2);
    put_number(&stream, 0, 3, 3);
    assert_true(krait_kernel_stream_flush(&stream) < 0);
    assert_int_equal(stream.events, 1);
    assert_int_equal(stream.bytes, bytes);
    assert_int_equal(stream.refused, 2);
    assert_int_equal(stream.lost, 2);
    close(kept);
    krait_kernel_stream_done(&stream);
    unlink(path);
}

static void test_groups(void **state)
{
    struct krait_err err = { 0 };
    uint32_t groups;
    assert_int_equal(krait_kernel_groups_parse("", &groups, &err), 0);
    assert_int_equal(groups, (1u << KRAIT_KERNEL_GROUPS) - 1);
    assert_int_equal(krait_kernel_groups_parse("irq,sched", &groups, &err), 0);
    assert_int_equal(groups, 1u << KRAIT_KERNEL_IRQ | 1u << KRAIT_KERNEL_SCHED);
    static const char *const wrong[] = { "schedule", "sched,", "sched,,irq", ",", "sche", "sched irq" };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(wrong); i++)
        assert_int_equal(krait_kernel_groups_parse(wrong[i], &groups, &err), -EINVAL);
}

/* ---- the kernel's functions ---- */

static const char funcgraph_exit_format[] =
    "name: funcgraph_exit\nID: 10\n" COMMON "\tfield:unsigned long func;\toffset:8;\tsize:8;\tsigned:0;\n"
    "\tfield:unsigned int depth;\toffset:16;\tsize:4;\tsigned:0;\n"
    "\tfield:unsigned int overrun;\toffset:20;\tsize:4;\tsigned:0;\n"
    "\tfield:unsigned long long calltime;\toffset:24;\tsize:8;\tsigned:0;\n"
    "\tfield:unsigned long long rettime;\toffset:32;\tsize:8;\tsigned:0;\n\n"
    "print fmt: \"<-- %ps\", (void *)REC->func\n";

static void expect_label(const char *dir, uint64_t address, const char *name)
{
    struct krait_ctf_metadata *metadata = NULL;
    assert_int_equal(krait_ctf_metadata_open(&metadata, dir, NULL), 0);
    const struct krait_event_class *event = metadata->streams[0]->events[0];
    assert_string_equal(event->name, "kernel_function_exit");
    const struct krait_fc *function = krait_fc_member(event->fields, "function")->fc;
    if (name)
        assert_string_equal(krait_enum_label(function, address), name);
    else
        assert_null(krait_enum_label(function, address));
    krait_ctf_metadata_free(metadata);
}

static void describe(const char *dir, const struct krait_kernel_classes *classes)
{
    const struct krait_clock clock = { .freq = KRAIT_NS_PER_S };
    const uint8_t uuid[16] = { 1 };
    assert_int_equal(krait_kernel_tsdl_write(dir, KRAIT_KERNEL_LTTNG, classes, &clock, uuid,
                                             &(struct krait_kernel_unwritten){ 0 }, NULL),
                     0);
}

static void test_the_kernels_functions_have_names(void **state)
{
    const uint64_t at = 0xffffffff81000104; /* behind a mark that jumps may go there */
    char dir[] = "/tmp/krait-kernel-XXXXXX", path[64];
    char text[] =
        "ffffffff81000000 T vfs_read\nffffffff81000010 d vfs_data\nffffffff81000100 t vfs_write\t[ext4]\n"
        "ffffffff81000200 T ksys_read\n";
    struct krait_kernel_classes classes = { 0 };
    uint8_t event[40] = { 0 }, out[64];
    assert_int_equal(krait_kernel_symbols_add(&classes.symbols, text, "vfs_*"), 0);
    assert_int_equal(classes.symbols.count, 2);
    const struct krait_kernel_class *class = add(&classes, funcgraph_exit_format, "kernel_function_exit");
    put_common(event, 10, 4711);
    memcpy(event + 8, &at, sizeof(at));
    put_i32(event, 16, 3);
    assert_int_equal(krait_kernel_convert(&classes, class, event, sizeof(event), out), 12);
    assert_memory_equal(out, &at, sizeof(at));
    assert_int_equal(get_i32(out, 8), 3);
    assert_non_null(mkdtemp(dir));
    describe(dir, &classes);
    expect_label(dir, at, "vfs_write");
    expect_label(dir, 0xffffffff81000000, "vfs_read");
    expect_label(dir, 0xffffffff81000010, NULL);
    krait_kernel_classes_done(&classes);
    snprintf(path, sizeof(path), "%s/metadata", dir);
    unlink(path);
    assert_int_equal(rmdir(dir), 0);
}

static void expect_file(int dir, const char *name, const char *text)
{
    KRAIT_AUTO_BUF is = { 0 };
    assert_int_equal(krait_tracefs_read(dir, name, &is), 0);
    assert_string_equal(is.data, text);
    assert_int_equal(unlinkat(dir, name, 0), 0);
}

/* The kernel matches a pattern at the white space behind it, and answers the write then. */
static void test_the_pattern_of_functions_is_whole_when_it_is_written(void **state)
{
    static const char *const files[] = { "set_ftrace_filter", "current_tracer" };
    char path[] = "/tmp/krait-kernel-XXXXXX";
    assert_non_null(mkdtemp(path));
    KRAIT_AUTO_CLOSE int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(files); i++)
        assert_int_equal(close(openat(dir, files[i], O_CREAT | O_WRONLY | O_CLOEXEC, 0600)), 0);
    assert_int_equal(krait_functions_start(dir, "function", "vfs_*", NULL), 0);
    expect_file(dir, "set_ftrace_filter", "vfs_*\n");
    expect_file(dir, "current_tracer", "function");
    assert_int_equal(rmdir(path), 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_stream_is_read_as_it_was_written),
        cmocka_unit_test(test_what_the_disk_refuses_is_counted),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_the_kernels_functions_have_names),
        cmocka_unit_test(test_the_pattern_of_functions_is_whole_when_it_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
