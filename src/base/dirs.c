/* SPDX-License-Identifier: Apache-2.0 */
#include "base/dirs.h"

#include <fts.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

void krait_dir_remove(const char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void krait_dir_make_for(const char *path)
{
    KRAIT_AUTO_FREE char *part = strdup(path);
    for (char *slash = part ? strchr(part + 1, '/') : NULL; slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(part, 0700);
        *slash = '/';
    }
}

/* ---- an archive ---- */

enum { BLOCK = 512, NAME = 100, PREFIX = 155 };

#define FILE_MAX ((uint64_t)1 << 33) /* that eleven octal digits hold */

/* Octal digits; names without a NUL where they fill their field. */
struct head {
    char name[NAME], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, link[NAME], magic[6],
        version[2], user[32], group[32], major[8], minor[8], prefix[PREFIX], rest[12];
};
_Static_assert(sizeof(struct head) == BLOCK, "a head is one block");

struct tar {
    struct krait_buf *out;
    size_t above; /* characters of a path that are not in the archive */
    bool (*goes_on)(void *ctx, uint64_t bytes);
    void *ctx;
    struct krait_err *err;
};

/* A long name is cut at a slash: what stands before it is the prefix. */
static bool put_name(struct head *head, const char *name)
{
    size_t n = strlen(name);
    const char *slash = n > NAME ? strchr(name + n - NAME - 1, '/') : NULL;
    if (n > NAME && (!slash || slash - name > PREFIX))
        return false;
    if (slash)
        memcpy(head->prefix, name, (size_t)(slash - name));
    name = slash ? slash + 1 : name;
    memcpy(head->name, name, strlen(name));
    return true;
}

/* So many octal digits and a NUL. */
static void put_octal(char *to, int digits, uint64_t value)
{
    char text[32];
    snprintf(text, sizeof(text), "%0*llo", digits, (unsigned long long)value);
    memcpy(to, text, (size_t)digits + 1);
}

static int put_head(const struct tar *tar, const char *path, const struct stat *st)
{
    struct head head = { .magic = "ustar", .version = { '0', '0' } };
    bool is_dir = S_ISDIR(st->st_mode);
    unsigned sum = 0;
    if (!put_name(&head, path + tar->above))
        return krait_err_set(tar->err, -ENAMETOOLONG, "%s: the name is too long for an archive", path);
    if ((uint64_t)st->st_size >= FILE_MAX)
        return krait_err_set(tar->err, -EFBIG, "%s: the file is too large for an archive", path);
    put_octal(head.mode, 7, is_dir ? 0755 : 0644);
    put_octal(head.uid, 7, 0);
    put_octal(head.gid, 7, 0);
    put_octal(head.size, 11, is_dir ? 0 : (uint64_t)st->st_size);
    put_octal(head.mtime, 11, (uint64_t)KRAIT_MAX(st->st_mtime, 0) % FILE_MAX);
    head.type = is_dir ? '5' : '0';
    memset(head.sum, ' ', sizeof(head.sum)); /* as it is counted */
    for (size_t i = 0; i < sizeof(head); i++)
        sum += ((const unsigned char *)&head)[i];
    put_octal(head.sum, 6, sum);
    krait_buf_add(tar->out, (const char *)&head, sizeof(head));
    return 0;
}

static int put_zeros(struct krait_buf *out, size_t n)
{
    static const char zeros[2 * BLOCK];
    krait_buf_add(out, zeros, n);
    return out->failed ? -ENOMEM : 0;
}

static int put_file(const struct tar *tar, const char *path, const struct stat *st)
{
    size_t before = tar->out->len + BLOCK, size = (size_t)st->st_size;
    int rc = put_head(tar, path, st);
    if (rc)
        return rc;
    if (krait_buf_read_file(tar->out, path))
        return krait_err_errno(tar->err, "cannot read %s", path);
    if (tar->out->failed)
        return krait_err_set(tar->err, -ENOMEM, "out of memory");
    if (tar->out->len - before != size)
        return krait_err_set(tar->err, -EIO, "%s: the file changes", path);
    if (put_zeros(tar->out, (BLOCK - size % BLOCK) % BLOCK))
        return krait_err_set(tar->err, -ENOMEM, "out of memory");
    return tar->goes_on(tar->ctx, size) ? 0 : krait_err_set(tar->err, -ECANCELED, "cancelled");
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

int krait_dir_tar(struct krait_buf *out, const char *path, bool (*goes_on)(void *ctx, uint64_t bytes),
                  void *ctx, struct krait_err *err)
{
    const struct tar tar = { out, strlen(path) + 1, goes_on, ctx, err };
    char *const paths[] = { (char *)path, NULL };
    FTS *fts = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, by_name);
    int rc = fts ? 0 : krait_err_errno(err, "cannot read %s", path);
    for (FTSENT *at; !rc && (at = fts_read(fts));) {
        if (at->fts_info == FTS_D && at->fts_level > 0)
            rc = put_head(&tar, at->fts_path, at->fts_statp);
        else if (at->fts_info == FTS_F)
            rc = put_file(&tar, at->fts_path, at->fts_statp);
        else if (at->fts_info == FTS_DNR || at->fts_info == FTS_ERR || at->fts_info == FTS_NS)
            rc = krait_err_set(err, -at->fts_errno, "cannot read %s: %s", at->fts_path,
                               strerror(at->fts_errno));
    }
    if (fts)
        fts_close(fts);
    if (!rc && put_zeros(out, 2 * BLOCK)) /* two blocks of zeros are the end */
        rc = krait_err_set(err, -ENOMEM, "out of memory");
    return rc;
}
