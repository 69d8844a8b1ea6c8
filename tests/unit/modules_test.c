/* SPDX-License-Identifier: Apache-2.0
 *
 * The files of a process, which others replace at the same addresses: copies of this program, mapped into itself.
 */
#include "remote/modules.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>

#include <cmocka.h>

enum { PAGE = 4096, PADDING = 9 }; /* EI_PAD: bytes of the ELF header that mean nothing */

struct copy {
    char path[32];
    int fd;
};

static void make_copy(struct copy *copy, char padding)
{
    static char bytes[64 * 1024 * 1024];
    KRAIT_AUTO_CLOSE int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    ssize_t n = read(self, bytes, sizeof(bytes));
    assert_true(n > PAGE && (size_t)n < sizeof(bytes));
    bytes[PADDING] = padding;
    snprintf(copy->path, sizeof(copy->path), "/tmp/krait-modules-XXXXXX");
    copy->fd = mkstemp(copy->path);
    assert_int_equal(write(copy->fd, bytes, (size_t)n), n);
}

static void remove_copy(const struct copy *copy)
{
    unlink(copy->path);
    close(copy->fd);
}

static char *map_copy(const struct copy *copy, void *at)
{
    char *mapped = mmap(at, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | (at ? MAP_FIXED : 0), copy->fd, 0);
    assert_ptr_not_equal(mapped, MAP_FAILED);
    return mapped;
}

/* Where its code would be. */
static uint64_t code_at(const struct copy *copy, const char *mapped)
{
    struct krait_elf elf;
    uint64_t offset = 0;
    assert_int_equal(krait_elf_open(&elf, copy->path), 0);
    while (!krait_elf_is_code(&elf, elf.base + offset))
        offset += PAGE;
    krait_elf_done(&elf);
    return (uint64_t)(uintptr_t)mapped + offset;
}

static struct krait_modules read_list(void)
{
    struct krait_modules modules = { .pid = getpid() };
    assert_int_equal(krait_modules_read(&modules), 0);
    return modules;
}

struct two {
    struct copy first, second;
    char *mapped;
    uint64_t pc;
};

static void begin_two(struct two *two)
{
    make_copy(&two->first, 1);
    make_copy(&two->second, 2);
    two->mapped = map_copy(&two->first, NULL);
    two->pc = code_at(&two->first, two->mapped);
}

static void end_two(struct two *two)
{
    munmap(two->mapped, PAGE);
    remove_copy(&two->first);
    remove_copy(&two->second);
}

static void test_a_file_in_the_place_of_one_that_was_opened_is_noticed(void **state)
{
    (void)state;
    struct two two;
    begin_two(&two);
    struct krait_modules modules = read_list();
    assert_string_equal(krait_modules_find(&modules, two.pc)->path, two.first.path);
    assert_true(krait_modules_check(&modules));
    map_copy(&two.second, two.mapped);
    assert_false(krait_modules_check(&modules));
    struct krait_modules newer = read_list();
    assert_false(krait_modules_same(&modules, &newer));
    assert_false(krait_modules_same_at(&modules, &newer, two.pc));
    krait_modules_replace(&modules, &newer);
    assert_string_equal(krait_modules_find(&modules, two.pc)->path, two.second.path);
    assert_true(krait_modules_check(&modules));
    krait_modules_done(&modules);
    end_two(&two);
}

static void test_other_files_stay_open_under_their_names(void **state)
{
    (void)state;
    struct two two;
    begin_two(&two);
    struct krait_modules modules = read_list();
    struct krait_module own = *krait_modules_find(&modules, (uint64_t)(uintptr_t)&read_list);
    struct krait_module found = *krait_modules_find(&modules, two.pc);
    unlink(two.first.path);
    struct krait_modules newer = read_list();
    assert_true(krait_modules_same_at(&modules, &newer, two.pc));
    krait_modules_replace(&modules, &newer);
    assert_ptr_equal(krait_modules_find(&modules, (uint64_t)(uintptr_t)&read_list)->elf.bytes, own.elf.bytes);
    assert_ptr_equal(krait_modules_find(&modules, two.pc)->elf.bytes, found.elf.bytes);
    assert_string_equal(krait_modules_find(&modules, two.pc)->path, two.first.path);
    krait_modules_done(&modules);
    end_two(&two);
}

static void test_a_file_that_was_not_opened_yet_is_not_taken_for_another(void **state)
{
    (void)state;
    struct two two;
    begin_two(&two);
    struct krait_modules modules = read_list();
    map_copy(&two.second, two.mapped);
    assert_null(krait_modules_find(&modules, two.pc));
    struct krait_modules newer = read_list();
    krait_modules_replace(&modules, &newer);
    assert_string_equal(krait_modules_find(&modules, two.pc)->path, two.second.path);
    krait_modules_done(&modules);
    end_two(&two);
}

/* Root opens the mapped file itself; others have no other way to it than its path. */
static void test_a_file_that_took_the_path_of_the_mapped_one_is_not_used(void **state)
{
    (void)state;
    struct two two;
    begin_two(&two);
    assert_int_equal(rename(two.second.path, two.first.path), 0);
    struct krait_modules modules = read_list();
    krait_modules_find(&modules, two.pc);
    const struct krait_module *found = krait_modules_find(&modules, two.pc);
    assert_true(!found || found->elf.bytes[PADDING] == two.mapped[PADDING]);
    krait_modules_done(&modules);
    end_two(&two);
}

static void test_a_program_that_changes_a_files_first_bytes_has_it_all_the_same(void **state)
{
    (void)state;
    struct two two;
    begin_two(&two);
    two.mapped[PADDING] = 3;
    struct krait_modules modules = read_list();
    assert_null(krait_modules_find(&modules, two.pc)); /* once: the list may be old */
    assert_non_null(krait_modules_find(&modules, two.pc));
    assert_true(krait_modules_check(&modules));
    krait_modules_done(&modules);
    end_two(&two);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_file_in_the_place_of_one_that_was_opened_is_noticed),
        cmocka_unit_test(test_other_files_stay_open_under_their_names),
        cmocka_unit_test(test_a_file_that_was_not_opened_yet_is_not_taken_for_another),
        cmocka_unit_test(test_a_file_that_took_the_path_of_the_mapped_one_is_not_used),
        cmocka_unit_test(test_a_program_that_changes_a_files_first_bytes_has_it_all_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
