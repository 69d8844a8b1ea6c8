/* SPDX-License-Identifier: Apache-2.0
 *
 * What comes from the kernel, made up here: pages of its ring, format files, events; and what is made of
 * them.
 */
#include "ctf/meta/open.h"
#include "ctf/read/cursor.h"
#include "ctf/read/loss.h"
#include "ctf/read/reader.h"
#include "kernel/functions.h"
#include "kernel/kernel_op.h"
#include "kernel/kernel_stream.h"
#include "kernel/kernel_tsdl.h"
#include "kernel/perf_clock.h"
#include "kernel/perf_record.h"
#include "kernel/ringpage.h"
#include "kernel/steal.h"
#include "kernel/tracefs.h"

#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* ---- pages ---- */

enum { PAGE = 4096 };

struct made {
    uint8_t bytes[PAGE];
    size_t at; /* of the next event, behind the head */
};

static void put_word(struct made *page, uint32_t word)
{
    memcpy(page->bytes + KRAIT_RINGPAGE_HEAD + page->at, &word, sizeof(word));
    page->at += sizeof(word);
}

static void put_event(struct made *page, unsigned type_len, uint32_t delta)
{
    put_word(page, delta << 5 | type_len);
}

static void head(struct made *page, uint64_t time, uint64_t flags)
{
    uint64_t commit = page->at | flags;
    memcpy(page->bytes, &time, sizeof(time));
    memcpy(page->bytes + 8, &commit, sizeof(commit));
}

static void expect(struct krait_ringpage *page, uint64_t time, uint32_t first, size_t size)
{
    const uint8_t *event;
    size_t n;
    uint32_t word;
    assert_true(krait_ringpage_next(page, &event, &n));
    assert_int_equal(page->time, time);
    assert_int_equal(n, size);
    memcpy(&word, event, sizeof(word));
    assert_int_equal(word, first);
}

static void expect_end(struct krait_ringpage *page, bool damaged)
{
    const uint8_t *event;
    size_t n;
    assert_false(krait_ringpage_next(page, &event, &n));
    assert_int_equal(page->damaged, damaged);
    assert_false(krait_ringpage_next(page, &event, &n));
}

static void test_a_page_of_every_kind_of_event(void **state)
{
    struct made made = { 0 };
    struct krait_ringpage page;
    put_event(&made, 2, 5); /* 8 bytes */
    put_word(&made, 100);
    put_word(&made, 0);
    put_event(&made, 30, 7); /* later by 3 * 2^27 + 7 */
    put_word(&made, 3);
    put_event(&made, 0, 1); /* length 4 + 6 in the next word: 8 bytes with the padding */
    put_word(&made, 10);
    put_word(&made, 101);
    put_word(&made, 0);
    put_event(&made, 29, 9); /* discarded: 8 bytes in all, its delta does not count */
    put_word(&made, 4);
    put_event(&made, 31, 11); /* at 2 * 2^27 + 11 */
    put_word(&made, 2);
    put_event(&made, 1, 0);
    put_word(&made, 102);
    put_event(&made, 29, 0); /* the end, whatever follows */
    put_word(&made, 0xffffffff);
    head(&made, 1000, 0);
    assert_true(krait_ringpage_begin(&page, made.bytes, PAGE));
    assert_int_equal(page.lost, 0);
    expect(&page, 1005, 100, 8);
    expect(&page, 1005 + (3ull << 27) + 7 + 1, 101, 8);
    expect(&page, (2ull << 27) + 11, 102, 4);
    expect_end(&page, false);
}

static void test_absolute_times_keep_the_upper_bits(void **state)
{
    struct made made = { 0 };
    struct krait_ringpage page;
    const uint64_t msb = 1ull << 59;
    put_event(&made, 31, 11);
    put_word(&made, 2);
    put_event(&made, 1, 0);
    put_word(&made, 1);
    put_event(&made, 31, 10); /* before that: the upper bits went on by one */
    put_word(&made, 2);
    put_event(&made, 1, 0);
    put_word(&made, 2);
    head(&made, 3 * msb + 5, 0);
    assert_true(krait_ringpage_begin(&page, made.bytes, PAGE));
    expect(&page, 3 * msb + (2ull << 27) + 11, 1, 4);
    expect(&page, 4 * msb + (2ull << 27) + 10, 2, 4);
    expect_end(&page, false);
}

static void test_lost_events_stand_behind_the_last(void **state)
{
    struct made made = { 0 };
    struct krait_ringpage page;
    uint64_t lost = 4711;
    put_event(&made, 1, 0);
    put_word(&made, 1);
    memcpy(made.bytes + KRAIT_RINGPAGE_HEAD + made.at, &lost, sizeof(lost));
    head(&made, 0, 1u << 30 | 1ull << 31);
    assert_true(krait_ringpage_begin(&page, made.bytes, PAGE));
    assert_int_equal(page.lost, 4711);
    head(&made, 0, 1ull << 31);
    assert_true(krait_ringpage_begin(&page, made.bytes, PAGE));
    assert_true(page.lost == KRAIT_RINGPAGE_LOST_UNKNOWN);
    expect(&page, 0, 1, 4);
    expect_end(&page, false);
}

static void test_a_page_that_claims_too_much_is_damage(void **state)
{
    struct made made = { 0 };
    struct krait_ringpage page;
    made.at = PAGE - KRAIT_RINGPAGE_HEAD + 1;
    head(&made, 0, 0);
    assert_false(krait_ringpage_begin(&page, made.bytes, PAGE));
    assert_false(krait_ringpage_begin(&page, made.bytes, 15));

    static const struct {
        uint32_t type_len, delta, second;
        size_t size;
    } cases[] = {
        { 2, 0, 0, 8 },          /* 4 of 8 bytes */
        { 0, 0, 0, 4 },          /* no length */
        { 0, 0, 3, 8 },          /* a length that does not hold itself */
        { 0, 0, 0xffffffff, 8 }, /* one that overflows */
        { 30, 1, 0, 4 },         /* half a time */
        { 29, 1, 0xfffffffc, 8 },
    };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(cases); i++) {
        made = (struct made){ 0 };
        put_event(&made, cases[i].type_len, cases[i].delta);
        put_word(&made, cases[i].second);
        made.at = cases[i].size;
        head(&made, 0, 0);
        assert_true(krait_ringpage_begin(&page, made.bytes, PAGE));
        expect_end(&page, true);
    }
}

static void test_pages_of_random_bytes_end(void **state)
{
    uint64_t seed = 88172645463325252ull;
    for (int round = 0; round < 20000; round++) {
        uint8_t bytes[256];
        for (size_t i = 0; i < sizeof(bytes); i++) {
            seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17; /* xorshift64 */
            bytes[i] = (uint8_t)seed;
        }
        uint64_t commit = seed % 256 | (uint64_t)(bytes[0] & 3) << 30;
        memcpy(bytes + 8, &commit, sizeof(commit));
        struct krait_ringpage page;
        const uint8_t *event;
        size_t n;
        if (!krait_ringpage_begin(&page, bytes, sizeof(bytes)))
            continue;
        while (krait_ringpage_next(&page, &event, &n))
            assert_true(event >= bytes + KRAIT_RINGPAGE_HEAD && event + n <= bytes + sizeof(bytes));
    }
}

/* ---- formats ---- */

#define COMMON                                                                     \
    "format:\n"                                                                    \
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"         \
    "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"         \
    "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n" \
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"

static const char wakeup_format[] =
    "name: sched_wakeup\nID: 7\n" COMMON "\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
    "\tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n"
    "\tfield:int prio;\toffset:28;\tsize:4;\tsigned:1;\n"
    "\tfield:int target_cpu;\toffset:32;\tsize:4;\tsigned:1;\n\n"
    "print fmt: \"field:nonsense\", REC->comm\n";

static void test_a_format_file(void **state)
{
    struct krait_tracefmt format;
    struct krait_err err = { 0 };
    assert_int_equal(krait_tracefmt_parse(&format, wakeup_format, &err), 0);
    assert_string_equal(format.name, "sched_wakeup");
    assert_int_equal(format.id, 7);
    assert_int_equal(format.size, 36);
    assert_int_equal(format.field_count, 8);
    const struct krait_tracefmt_field *comm = krait_tracefmt_find(&format, "comm");
    assert_non_null(comm);
    assert_true(comm->is_array && comm->size == 16 && comm->offset == 8);
    assert_string_equal(comm->type, "char");
    assert_null(krait_tracefmt_find(&format, "nonsense"));
}

static void test_declarations(void **state)
{
    static const char text[] = "name: x\nID: 1\nformat:\n"
                               "\tfield:const char * filename;\toffset:0;\tsize:8;\tsigned:0;\n"
                               "\tfield:__data_loc char[] name;\toffset:8;\tsize:4;\tsigned:0;\n"
                               "\tfield:unsigned long args[6];\toffset:16;\tsize:48;\tsigned:0;\n"
                               "\tfield:enum hrtimer_mode mode;\toffset:64;\tsize:4;\tsigned:0;\n";
    struct krait_tracefmt format;
    assert_int_equal(krait_tracefmt_parse(&format, text, NULL), 0);
    assert_true(krait_tracefmt_find(&format, "filename")->is_pointer);
    assert_true(krait_tracefmt_find(&format, "name")->is_data_loc);
    assert_true(krait_tracefmt_find(&format, "args")->is_array);
    assert_string_equal(krait_tracefmt_find(&format, "mode")->type, "enum hrtimer_mode");
    assert_int_equal(format.size, 68);
}

static void test_formats_that_are_none(void **state)
{
    static const char *const texts[] = {
        "",
        "name: x\n",
        "name: x\nID: 1\n",
        "name: x\nID: 70000\nformat:\n\tfield:int a;\toffset:0;\tsize:4;\tsigned:1;\n",
        "name: x\nID: 1\nformat:\n\tfield:int a\n",
        "name: x\nID: 1\nformat:\n\tfield:int a;\tsize:4;\tsigned:1;\n",
        "name: x\nID: 1\nformat:\n\tfield:;\toffset:0;\tsize:4;\tsigned:1;\n",
        "name: x\nID: 1\nformat:\n\tfield:int a;\toffset:70000;\tsize:4;\tsigned:1;\n",
    };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(texts); i++) {
        struct krait_tracefmt format;
        struct krait_err err = { 0 };
        assert_int_equal(krait_tracefmt_parse(&format, texts[i], &err), -EBADMSG);
        assert_true(err.text[0]);
    }
}

/* ---- classes ---- */

static const struct krait_kernel_class *add(struct krait_kernel_classes *classes, const char *text,
                                            const char *name)
{
    struct krait_tracefmt format;
    assert_int_equal(krait_tracefmt_parse(&format, text, NULL), 0);
    assert_int_equal(krait_kernel_classes_add(classes, &format, name), 0);
    return &classes->items[classes->count - 1];
}

static void put_common(uint8_t *event, uint16_t type, int32_t tid)
{
    memcpy(event, &type, sizeof(type));
    memcpy(event + 4, &tid, sizeof(tid));
}

static void put_i32(uint8_t *event, size_t at, int32_t value)
{
    memcpy(event + at, &value, sizeof(value));
}

static int32_t get_i32(const uint8_t *bytes, size_t at)
{
    int32_t value;
    memcpy(&value, bytes + at, sizeof(value));
    return value;
}

static void test_a_wake_up(void **state)
{
    struct krait_kernel_classes classes = { 0 };
    const struct krait_kernel_class *class = add(&classes, wakeup_format, "sched_wakeup");
    uint8_t event[36] = { 0 }, out[256];
    put_common(event, 7, 12);
    memcpy(event + 8, "python3", 8);
    put_i32(event, 24, 4711);
    put_i32(event, 28, 120);
    put_i32(event, 32, 1);
    assert_ptr_equal(krait_kernel_class_of(&classes, event, 36), class);
    assert_null(krait_kernel_class_of(&classes, event, 35));
    assert_int_equal(krait_kernel_tid(event), 12);
    assert_int_equal(krait_kernel_convert(&classes, class, event, 36, out), 28);
    assert_string_equal((char *)out, "python3");
    assert_int_equal(get_i32(out, 16), 4711);
    assert_int_equal(get_i32(out, 20), 20); /* nice 0, as LTTng has it */
    assert_int_equal(get_i32(out, 24), 1);
    put_common(event, 8, 12);
    assert_null(krait_kernel_class_of(&classes, event, 36));
    krait_kernel_classes_done(&classes);
}

static void test_text_stays_within_its_event(void **state)
{
    struct krait_kernel_classes classes = { 0 };
    const struct krait_kernel_class *class =
        add(&classes,
            "name: irq_handler_entry\nID: 9\n" COMMON "\tfield:int irq;\toffset:8;\tsize:4;\tsigned:1;\n"
            "\tfield:__data_loc char[] name;\toffset:12;\tsize:4;\tsigned:0;\n",
            "irq_handler_entry");
    static const struct {
        uint32_t loc;
        const char *text;
    } cases[] = { { 5u << 16 | 16, "eth0" },    { 3u << 16 | 16, "eth" },  { 100u << 16 | 16, "eth0" },
                  { 5u << 16 | 20, "" },        { 4u << 16 | 0xffff, "" }, { 0, "" },
                  { 0xffffu << 16 | 17, "th0" } };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(cases); i++) {
        uint8_t event[24] = { 0 }, out[8192];
        put_common(event, 9, 0);
        put_i32(event, 8, 33);
        put_i32(event, 12, (int32_t)cases[i].loc);
        memcpy(event + 16, "eth0", 5);
        assert_true(class->out_max <= sizeof(out));
        size_t n = krait_kernel_convert(&classes, class, event, sizeof(event), out);
        assert_int_equal(n, 4 + strlen(cases[i].text) + 1);
        assert_int_equal(get_i32(out, 0), 33);
        assert_string_equal((char *)out + 4, cases[i].text);
    }
    krait_kernel_classes_done(&classes);
}

static void test_system_calls_have_the_widths_that_they_declare(void **state)
{
    struct krait_kernel_classes classes = { 0 };
    const struct krait_kernel_class *enter = add(&classes,
                                                 "name: sys_enter_openat\nID: 20\n" COMMON
                                                 "\tfield:int __syscall_nr;\toffset:8;\tsize:4;\tsigned:1;\n"
                                                 "\tfield:int dfd;\toffset:16;\tsize:8;\tsigned:0;\n"
                                                 "\tfield:const char * buf;\toffset:24;\tsize:8;\tsigned:0;\n"
                                                 "\tfield:size_t length;\toffset:32;\tsize:8;\tsigned:0;\n"
                                                 "\tfield:umode_t mode;\toffset:40;\tsize:8;\tsigned:0;\n",
                                                 NULL);
    enum krait_kernel_type types[] = { KRAIT_KTYPE_I32, KRAIT_KTYPE_X64, KRAIT_KTYPE_U64, KRAIT_KTYPE_U16 };
    assert_string_equal(enter->name, "syscall_entry_openat");
    assert_int_equal(enter->field_count, 4);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(enter->fields[i].type, types[i]);
    uint8_t event[48] = { 0 }, out[64];
    int64_t dfd = -100;
    uint64_t mode = 0644;
    put_common(event, 20, 1);
    memcpy(event + 16, &dfd, 8);
    memcpy(event + 40, &mode, 8);
    assert_int_equal(krait_kernel_convert(&classes, enter, event, sizeof(event), out), 4 + 8 + 8 + 2);
    assert_int_equal(get_i32(out, 0), -100);
    assert_int_equal(out[20] | out[21] << 8, 0644);
    const struct krait_kernel_class *exit_class = add(
        &classes,
        "name: sys_exit_openat\nID: 21\n" COMMON "\tfield:int __syscall_nr;\toffset:8;\tsize:4;\tsigned:1;\n"
        "\tfield:long ret;\toffset:16;\tsize:8;\tsigned:1;\n",
        NULL);
    assert_string_equal(exit_class->name, "syscall_exit_openat");
    assert_int_equal(exit_class->fields[0].type, KRAIT_KTYPE_I64);
    krait_kernel_classes_done(&classes);
}

#define NAMED                                                          \
    "\tfield:int __syscall_nr;\toffset:8;\tsize:4;\tsigned:1;\n"       \
    "\tfield:const char * filename;\toffset:16;\tsize:8;\tsigned:0;\n" \
    "\tfield:int flags;\toffset:24;\tsize:8;\tsigned:0;\n"

/* LTTng has the text there. Linux before 6.19 tells the address alone: then that is the text. */
static void test_names_that_system_calls_are_given_are_texts(void **state)
{
    static const char with_text[] =
        "name: sys_enter_chdir\nID: 20\n" COMMON NAMED
        "\tfield:__data_loc char[] __filename_val;\toffset:32;\tsize:4;\tsigned:0;\n";
    static const char without[] = "name: sys_enter_chdir\nID: 21\n" COMMON NAMED;
    static const struct {
        const char *format, *told;
        uint32_t size;
        uint64_t address;
    } cases[] = { { with_text, "/etc", 41, 0x7ffc01abcdef },
                  { without, "0x7ffc01abcdef", 32, 0x7ffc01abcdef },
                  { without, "0x0", 32, 0 },
                  { without, "0xffffffffffffffff", 32, UINT64_MAX } };
    struct krait_kernel_classes classes = { 0 };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(cases); i++) {
        const struct krait_kernel_class *enter = add(&classes, cases[i].format, NULL);
        uint8_t event[48] = { 0 }, out[8192];
        assert_int_equal(enter->field_count, 2);
        assert_string_equal(enter->fields[0].name, "filename");
        assert_int_equal(enter->fields[0].type, KRAIT_KTYPE_STR);
        assert_true(enter->out_max <= sizeof(out));
        memcpy(event + 16, &cases[i].address, 8);
        put_i32(event, 24, 7);
        put_i32(event, 32, 5 << 16 | 36);
        memcpy(event + 36, "/etc", 5);
        size_t n = krait_kernel_convert(&classes, enter, event, cases[i].size, out);
        assert_string_equal((char *)out, cases[i].told);
        assert_int_equal(n, strlen(cases[i].told) + 1 + 4);
        assert_int_equal(get_i32(out, n - 4), 7);
    }
    krait_kernel_classes_done(&classes);
}

static int32_t forked(struct krait_kernel_classes *classes, const struct krait_kernel_class *fork_class,
                      int32_t parent, int32_t child, int32_t *parent_pid)
{
    uint8_t event[48] = { 0 }, out[64];
    put_common(event, 31, parent);
    put_i32(event, 24, parent);
    put_i32(event, 44, child);
    assert_int_equal(krait_kernel_convert(classes, fork_class, event, sizeof(event), out), 48);
    *parent_pid = get_i32(out, 20);
    assert_int_equal(get_i32(out, 16), parent);
    assert_int_equal(get_i32(out, 40), child);
    return get_i32(out, 44);
}

static void new_task(struct krait_kernel_classes *classes, const struct krait_kernel_class *class,
                     int32_t parent, int32_t child, uint64_t flags)
{
    uint8_t event[40] = { 0 };
    put_common(event, 30, parent);
    put_i32(event, 8, child);
    memcpy(event + 32, &flags, sizeof(flags));
    assert_int_equal(krait_kernel_convert(classes, class, event, sizeof(event), NULL), 0);
}

static void test_threads_are_of_their_makers_process(void **state)
{
    enum { PARENT = 0x7ffffff0, SIBLING, THREAD, CHILD }; /* no such threads: pid_max is 2^22 */
    struct krait_kernel_classes classes = { 0 };
    size_t task = (size_t)(add(&classes,
                               "name: task_newtask\nID: 30\n" COMMON
                               "\tfield:pid_t pid;\toffset:8;\tsize:4;\tsigned:1;\n"
                               "\tfield:char comm[16];\toffset:12;\tsize:16;\tsigned:0;\n"
                               "\tfield:u64 clone_flags;\toffset:32;\tsize:8;\tsigned:0;\n",
                               "") -
                           classes.items);
    size_t fork_at = (size_t)(add(&classes,
                                  "name: sched_process_fork\nID: 31\n" COMMON
                                  "\tfield:char parent_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
                                  "\tfield:pid_t parent_pid;\toffset:24;\tsize:4;\tsigned:1;\n"
                                  "\tfield:char child_comm[16];\toffset:28;\tsize:16;\tsigned:0;\n"
                                  "\tfield:pid_t child_pid;\toffset:44;\tsize:4;\tsigned:1;\n",
                                  "sched_process_fork") -
                              classes.items);
    const struct krait_kernel_class *newtask = &classes.items[task], *fork_class = &classes.items[fork_at];
    int32_t parent_pid;
    krait_map_put(&classes.tgids, SIBLING, PARENT);
    new_task(&classes, newtask, SIBLING, THREAD, CLONE_THREAD | CLONE_VM);
    assert_int_equal(forked(&classes, fork_class, SIBLING, THREAD, &parent_pid), PARENT);
    assert_int_equal(parent_pid, PARENT);
    new_task(&classes, newtask, THREAD, CHILD, SIGCHLD);
    assert_int_equal(forked(&classes, fork_class, THREAD, CHILD, &parent_pid), CHILD);
    assert_int_equal(parent_pid, PARENT);
    assert_int_equal(forked(&classes, fork_class, CHILD, 0x7ffffffe, &parent_pid), 0); /* nobody knows */
    krait_kernel_classes_done(&classes);
}

static uint32_t rwbs(const char *letters)
{
    struct krait_kernel_op op;
    struct krait_kernel_classes classes = { 0 };
    struct krait_tracefmt_field field = { .size = 10, .is_array = true };
    uint8_t event[10] = { 0 };
    uint32_t flags;
    memcpy(event, letters, strlen(letters));
    assert_true(krait_kernel_op_make(&op, KRAIT_KHOW_RWBS, &field));
    krait_kernel_op_run(&op, &classes, event, sizeof(event), (uint8_t *)&flags);
    return flags;
}

static void test_letters_of_a_block_request(void **state)
{
    enum { WRITE = 1, DISCARD = 2, READ = 4, RAHEAD = 8, SYNC = 32, META = 64, SECURE = 128 };
    enum { FLUSH = 256, FUA = 512, PREFLUSH = 1024 };
    assert_int_equal(rwbs("R"), READ);
    assert_int_equal(rwbs("RA"), READ | RAHEAD);
    assert_int_equal(rwbs("WS"), WRITE | SYNC);
    assert_int_equal(rwbs("WFSM"), WRITE | FUA | SYNC | META);
    assert_int_equal(rwbs("FWFS"), PREFLUSH | WRITE | FUA | SYNC);
    assert_int_equal(rwbs("FF"), FLUSH);
    assert_int_equal(rwbs("DE"), DISCARD | SECURE);
    assert_int_equal(rwbs(""), 0);
}

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
    assert_int_equal(krait_kernel_tsdl_write(dir, KRAIT_KERNEL_LTTNG, &classes, &clock, uuid, 0, NULL), 0);
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
    assert_int_equal(krait_kernel_tsdl_write(dir, KRAIT_KERNEL_LTTNG, classes, &clock, uuid, 0, NULL), 0);
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

/* ---- perf events ---- */

/* A record of `type`: words of 32 bits behind its head. */
static size_t put_record(uint8_t bytes[128], uint32_t type, uint16_t misc, const uint32_t *words,
                         size_t count)
{
    struct perf_event_header head = { type, misc, (uint16_t)(sizeof(head) + 4 * count) };
    memcpy(bytes, &head, sizeof(head));
    memcpy(bytes + sizeof(head), words, 4 * count);
    return head.size;
}

#define IN_THREAD 10, 11, 1000, 1, 7, 0 /* pid, tid, time 2^32 + 1000, id */

static const struct {
    uint32_t type;
    size_t count;
    uint32_t words[16];
} perf_records[] = {
    { PERF_RECORD_SAMPLE, 12, { 7, 0, 0x40, 0, 10, 11, 1000, 1, 0xabc, 0 } },
    { PERF_RECORD_FORK, 12, { 20, 10, 21, 11, 1000, 1, IN_THREAD } },
    { PERF_RECORD_EXIT, 12, { 20, 10, 21, 11, 1000, 1, IN_THREAD } },
    { PERF_RECORD_COMM, 10, { 20, 21, 0x64636261, 0x00000065, IN_THREAD } },
    { PERF_RECORD_LOST, 10, { 7, 0, 4711, 0, IN_THREAD } },
    { PERF_RECORD_SWITCH, 6, { IN_THREAD } },
};

static void test_records_of_perf_events(void **state)
{
    struct krait_perf_record records[KRAIT_ARRAY_LEN(perf_records)];
    uint8_t bytes[128];
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(perf_records); i++) {
        size_t n = put_record(bytes, perf_records[i].type, 9, perf_records[i].words, perf_records[i].count);
        assert_true(krait_perf_record_parse(&records[i], bytes, n));
        assert_int_equal(records[i].type, perf_records[i].type);
        assert_int_equal(records[i].misc, 9);
        assert_int_equal(records[i].pid, 10);
        assert_int_equal(records[i].tid, 11);
        assert_int_equal(records[i].time, (1ull << 32) + 1000);
    }
    assert_int_equal(records[0].sample.id, 7);
    assert_int_equal(records[0].sample.ip, 0x40);
    assert_int_equal(records[0].sample.addr, 0xabc);
    assert_int_equal(records[1].task.pid, 20);
    assert_int_equal(records[1].task.ppid, 10);
    assert_int_equal(records[1].task.tid, 21);
    assert_int_equal(records[1].task.ptid, 11);
    assert_int_equal(records[3].comm.tid, 21);
    assert_string_equal(records[3].comm.text, "abcde");
    assert_int_equal(records[4].lost, 4711);
}

static void test_records_that_are_none(void **state)
{
    struct krait_perf_record record;
    uint8_t bytes[128];
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(perf_records); i++) {
        size_t n = put_record(bytes, perf_records[i].type, 0, perf_records[i].words, perf_records[i].count);
        assert_false(krait_perf_record_parse(&record, bytes, n - 8)); /* not as long as it says */
        n = put_record(bytes, perf_records[i].type, 0, perf_records[i].words, 4);
        assert_false(krait_perf_record_parse(&record, bytes, n));
    }
    size_t n = put_record(bytes, PERF_RECORD_THROTTLE, 0, perf_records[0].words, 12);
    assert_false(krait_perf_record_parse(&record, bytes, n));
    n = put_record(bytes, 1000, 0, perf_records[0].words, 12);
    assert_false(krait_perf_record_parse(&record, bytes, n));
    assert_false(krait_perf_record_parse(&record, bytes, 4));
}

static void test_perfs_clock_and_the_counter_are_a_straight_line(void **state)
{
    const struct krait_clock counter = { .counter = true, .freq = 2 * KRAIT_NS_PER_S };
    struct krait_perf_clock clock = { &counter, { 1000, 500 }, { 1000, 500 } };
    assert_int_equal(krait_perf_clock_ticks(&clock, 700), 1000); /* nothing is known of its pace */
    clock.last = (struct krait_perf_moment){ 5000, 2500 };
    assert_int_equal(krait_perf_clock_ticks(&clock, 2500), 5000);
    assert_int_equal(krait_perf_clock_ticks(&clock, 2400), 4800);
    assert_int_equal(krait_perf_clock_ticks(&clock, 500), 1000);
    assert_int_equal(krait_perf_clock_ticks(&clock, 2600), 5200);
    const struct krait_clock plain = { .freq = KRAIT_NS_PER_S };
    clock.clock = &plain;
    assert_int_equal(krait_perf_clock_ticks(&clock, 2400), 2400);
}

static void test_perfs_clock_on_this_machine(void **state)
{
    struct krait_clock recording;
    struct krait_perf_clock clock;
    krait_clock_init(&recording);
    krait_perf_clock_init(&clock, &recording);
    nanosleep(&(struct timespec){ .tv_nsec = 20 * KRAIT_NS_PER_MS }, NULL);
    uint64_t before = krait_clock_now(&recording);
    uint64_t event = krait_clock_ns(krait_perf_clock_id(&recording));
    uint64_t after = krait_clock_now(&recording);
    krait_perf_clock_sync(&clock);
    const uint64_t slack = recording.freq / 1000000; /* 1 us */
    uint64_t ticks = krait_perf_clock_ticks(&clock, event);
    assert_true(ticks + slack >= before && ticks <= after + slack);
}

/* ---- steal time ---- */

enum { READINGS = 4 };

struct readings {
    uint32_t count, cpus[READINGS];
    uint64_t ns[READINGS];
};

static void keep_reading(void *ctx, uint32_t cpu, uint64_t total_ns)
{
    struct readings *readings = ctx;
    assert_true(readings->count < READINGS);
    readings->cpus[readings->count] = cpu;
    readings->ns[readings->count++] = total_ns;
}

static void test_steal_time_is_the_eighth_number_of_each_cpu(void **state)
{
    struct readings readings = { 0 };
    krait_steal_parse("cpu  9 9 9 9 9 9 9 953 9 9\n"
                      "cpu0 169106 211984 54624 77759 163 0 45 451 0 0\n"
                      "cpu12 1 2 3 4 5 6 7 18446744073 9\n"
                      "cpu13 1 2 3 4 5 6 7\n"
                      "intr 1 2 3 4 5 6 7 8 9\n"
                      "cpu2 0 0 0 0 0 0 0 0",
                      100, keep_reading, &readings);
    assert_int_equal(readings.count, 3);
    assert_int_equal(readings.cpus[0], 0);
    assert_int_equal(readings.ns[0], 4510000000);
    assert_int_equal(readings.cpus[1], 12);
    assert_true(readings.ns[1] == 184467440730000000u);
    assert_int_equal(readings.cpus[2], 2);
    assert_int_equal(readings.ns[2], 0);
    krait_steal_parse("", 100, keep_reading, &readings);
    assert_int_equal(readings.count, 3);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_page_of_every_kind_of_event),
        cmocka_unit_test(test_absolute_times_keep_the_upper_bits),
        cmocka_unit_test(test_lost_events_stand_behind_the_last),
        cmocka_unit_test(test_a_page_that_claims_too_much_is_damage),
        cmocka_unit_test(test_pages_of_random_bytes_end),
        cmocka_unit_test(test_a_format_file),
        cmocka_unit_test(test_declarations),
        cmocka_unit_test(test_formats_that_are_none),
        cmocka_unit_test(test_a_wake_up),
        cmocka_unit_test(test_text_stays_within_its_event),
        cmocka_unit_test(test_system_calls_have_the_widths_that_they_declare),
        cmocka_unit_test(test_names_that_system_calls_are_given_are_texts),
        cmocka_unit_test(test_threads_are_of_their_makers_process),
        cmocka_unit_test(test_letters_of_a_block_request),
        cmocka_unit_test(test_a_stream_is_read_as_it_was_written),
        cmocka_unit_test(test_what_the_disk_refuses_is_counted),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_the_kernels_functions_have_names),
        cmocka_unit_test(test_the_pattern_of_functions_is_whole_when_it_is_written),
        cmocka_unit_test(test_steal_time_is_the_eighth_number_of_each_cpu),
        cmocka_unit_test(test_records_of_perf_events),
        cmocka_unit_test(test_records_that_are_none),
        cmocka_unit_test(test_perfs_clock_and_the_counter_are_a_straight_line),
        cmocka_unit_test(test_perfs_clock_on_this_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
