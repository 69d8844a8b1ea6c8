/* SPDX-License-Identifier: Apache-2.0
 *
 * Format files and events of the kernel, made up here, and the classes and events that krait makes of them.
 */
#include "kernel/kernel_op.h"
#include "kernel/tracefs.h"
#include "kernel_made.h"

#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* ---- formats ---- */

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
    assert_true(krait_kernel_op_make(&op, KRAIT_CONVERT_RWBS, &field));
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

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_format_file),
        cmocka_unit_test(test_declarations),
        cmocka_unit_test(test_formats_that_are_none),
        cmocka_unit_test(test_a_wake_up),
        cmocka_unit_test(test_text_stays_within_its_event),
        cmocka_unit_test(test_system_calls_have_the_widths_that_they_declare),
        cmocka_unit_test(test_names_that_system_calls_are_given_are_texts),
        cmocka_unit_test(test_threads_are_of_their_makers_process),
        cmocka_unit_test(test_letters_of_a_block_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
