/* SPDX-License-Identifier: Apache-2.0 */
#include "base/outfile.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

static int enter_empty_folder(void **state)
{
    char folder[] = "/tmp/krait-outfile-XXXXXX";
    if (!mkdtemp(folder) || chdir(folder))
        return -1;
    *state = strdup(folder);
    return 0;
}

static unsigned entries(void)
{
    DIR *dir = opendir(".");
    unsigned n = 0;
    while (readdir(dir))
        n++;
    closedir(dir);
    return n - 2;
}

static int leave_folder(void **state)
{
    DIR *dir = opendir(".");
    for (struct dirent *e; (e = readdir(dir));)
        remove(e->d_name);
    closedir(dir);
    int rc = chdir("/") || rmdir(*state);
    free(*state);
    return rc;
}

static void expect_content(const char *path, const char *text)
{
    KRAIT_AUTO_BUF buf = { 0 };
    assert_int_equal(krait_buf_read_file(&buf, path), 0);
    assert_string_equal(buf.data, text);
}

static void put(const char *path, const char *text)
{
    struct krait_err err;
    KRAIT_AUTO_OUTFILE out = KRAIT_OUTFILE_INIT;
    assert_int_equal(krait_outfile_open(&out, path, &err), 0);
    krait_buf_str(&out.buf, text);
    assert_int_equal(krait_outfile_commit(&out, &err), 0);
}

static void a_committed_file_is_there_alone(void **state)
{
    put("a.json", "whole");
    expect_content("a.json", "whole");
    assert_int_equal(entries(), 1);
}

static void without_a_commit_nothing_is_left_and_the_old_file_stays(void **state)
{
    put("a.json", "old");
    {
        struct krait_err err;
        KRAIT_AUTO_OUTFILE out = KRAIT_OUTFILE_INIT;
        assert_int_equal(krait_outfile_open(&out, "a.json", &err), 0);
        for (int i = 0; i < 100000; i++) {
            krait_buf_str(&out.buf, "half of a file");
            assert_int_equal(krait_outfile_spill(&out), 0);
        }
        assert_true(out.bytes > 0);
    }
    expect_content("a.json", "old");
    assert_int_equal(entries(), 1);
}

static void an_old_file_is_replaced_and_keeps_its_permissions(void **state)
{
    struct stat st;
    put("a.json", "old and longer");
    assert_int_equal(chmod("a.json", 0640), 0);
    put("a.json", "new");
    expect_content("a.json", "new");
    assert_int_equal(stat("a.json", &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
}

/* A kill between two names would leave the first: where nothing is replaced, there is only one. */
static void a_new_file_has_no_name_before_its_own(void **state)
{
    int unnamed = open(".", O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600);
    if (unnamed < 0)
        skip();
    close(unnamed);
    for (int n = 0; n < 100; n++) {
        char taken[64];
        snprintf(taken, sizeof(taken), "a.json.krait-%d-%d", (int)getpid(), n);
        assert_int_equal(symlink("nowhere", taken), 0);
    }
    put("a.json", "whole");
    expect_content("a.json", "whole");
}

static void a_new_file_gets_what_the_umask_leaves(void **state)
{
    struct stat st;
    mode_t old = umask(027);
    put("a.json", "x");
    umask(old);
    assert_int_equal(stat("a.json", &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
}

static void a_symbolic_link_stays_one(void **state)
{
    struct stat st;
    put("real.json", "old");
    assert_int_equal(symlink("real.json", "link.json"), 0);
    put("link.json", "new");
    assert_int_equal(lstat("link.json", &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    expect_content("real.json", "new");
}

static void expect_refused(const char *path, int code, const char *named)
{
    struct krait_err err = { 0 };
    KRAIT_AUTO_OUTFILE out = KRAIT_OUTFILE_INIT;
    assert_int_equal(krait_outfile_open(&out, path, &err), code);
    assert_non_null(strstr(err.text, named));
}

static void what_cannot_be_written_is_named_at_once(void **state)
{
    expect_refused("no/such/a.json", -ENOENT, "no/such/a.json");
    expect_refused(".", -EISDIR, ".: cannot write");
    expect_refused("", -ENOENT, "cannot write");
}

static void a_full_disk_is_an_error_and_sticks(void **state)
{
    struct krait_err err = { 0 };
    KRAIT_AUTO_OUTFILE out = KRAIT_OUTFILE_INIT;
    assert_int_equal(krait_outfile_open(&out, "/dev/full", &err), 0);
    memset(krait_buf_room(&out.buf, 1 << 20), 'x', 1 << 20);
    out.buf.len += 1 << 20;
    assert_int_equal(krait_outfile_spill(&out), -ENOSPC);
    assert_int_equal(krait_outfile_spill(&out), -ENOSPC);
    assert_int_equal(krait_outfile_commit(&out, &err), -ENOSPC);
    assert_non_null(strstr(err.text, "/dev/full"));
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, enter_empty_folder, leave_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(a_committed_file_is_there_alone),
        IN_FOLDER(without_a_commit_nothing_is_left_and_the_old_file_stays),
        IN_FOLDER(an_old_file_is_replaced_and_keeps_its_permissions),
        IN_FOLDER(a_new_file_has_no_name_before_its_own),
        IN_FOLDER(a_new_file_gets_what_the_umask_leaves),
        IN_FOLDER(a_symbolic_link_stays_one),
        IN_FOLDER(what_cannot_be_written_is_named_at_once),
        cmocka_unit_test(a_full_disk_is_an_error_and_sticks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
