/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of this machine: the source that a recording names, and the notes beside it.
 */
#include "base/arena.h"
#include "base/json.h"
#include "base/json_read.h"
#include "base/outfile.h"
#include "serve/serving.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define P(name) (1u << KRAIT_PARAM_##name)

enum { SOURCE_MAX = 4 << 20, LINES = 200, LINES_BEFORE = 20 };

/* A regular file of at most `most` bytes, whole. Returns 0, -EFBIG, -EINVAL for what is no file, or open's. */
static int read_file(const char *path, size_t most, struct krait_buf *out, struct stat *of)
{
    char part[16384];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return -errno;
    int rc = fstat(fd, of) ? -errno : !S_ISREG(of->st_mode) ? -EINVAL : 0;
    ssize_t n = 0;
    while (!rc && (n = read(fd, part, sizeof(part))) > 0) {
        krait_buf_add(out, part, (size_t)n);
        rc = out->len > most ? -EFBIG : out->failed ? -ENOMEM : 0;
    }
    rc = rc ? rc : n < 0 ? -errno : 0;
    close(fd);
    return rc;
}

/* ---- source ---- */

/* A trace may name any file: what is no Python source stays where it is. */
static bool is_python(const char *path, const struct krait_buf *text)
{
    const char *end = strrchr(path, '.');
    if (end && (strcmp(end, ".py") == 0 || strcmp(end, ".pyw") == 0))
        return true;
    const char *line_end = text->len ? memchr(text->data, '\n', text->len) : NULL;
    size_t n = line_end ? (size_t)(line_end - text->data) : text->len;
    return n > 2 && memcmp(text->data, "#!", 2) == 0 && memmem(text->data, n, "python", 6);
}

static void put_lines(struct krait_buf *out, const struct krait_buf *text, uint32_t first)
{
    const char *at = text->data, *end = at + text->len;
    for (uint32_t line = 1; at < end && line < first + LINES; line++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop ? stop : end;
        if (line >= first) {
            krait_json_item(out, "");
            krait_json_str(out, at, (size_t)(stop - at));
        }
        at = stop + 1;
    }
}

static void put_source(struct krait_buf *out, const struct krait_func *func, const struct krait_buf *text,
                       bool is_newer)
{
    uint32_t first = func->line > LINES_BEFORE ? func->line - LINES_BEFORE : 1;
    krait_buf_char(out, '{');
    krait_json_key_text(out, "file", func->file);
    krait_json_key_u64(out, "line", func->line);
    krait_json_key_u64(out, "first", first);
    krait_json_key_bool(out, "changed", is_newer);
    krait_json_key_open(out, "lines", '[');
    put_lines(out, text, first);
    krait_buf_str(out, "]}\n");
}

int krait_answer_source(struct krait_serving *serving, const struct krait_request *request,
                        struct krait_buf *out, struct krait_err *err)
{
    KRAIT_AUTO_BUF text = { 0 };
    struct stat of = { 0 };
    int rc = krait_request_needs(request, P(func), err);
    if (rc)
        return rc;
    uint64_t id = request->numbers[KRAIT_PARAM_func];
    const struct krait_func *func = id < serving->trace->func_count ? &serving->trace->funcs[id] : NULL;
    if (!func || func->kind != KRAIT_FUNC_PYTHON || *func->file != '/')
        return krait_err_set(err, -ENOENT, "the recording names no source file of this function");
    rc = read_file(func->file, SOURCE_MAX, &text, &of);
    if (rc == -ENOMEM)
        return krait_err_set(err, rc, "out of memory");
    if (rc)
        return krait_err_set(err, -ENOENT, "cannot read %s: %s", func->file, strerror(-rc));
    if (!is_python(func->file, &text))
        return krait_err_set(err, -ENOENT, "%s is not a Python source file", func->file);
    uint64_t changed_ns = (uint64_t)of.st_mtim.tv_sec * KRAIT_NS_PER_S + (uint64_t)of.st_mtim.tv_nsec;
    put_source(out, func, &text, changed_ns > serving->trace->end_ns);
    return 0;
}

/* ---- notes ---- */

static int write_notes(const char *path, const struct krait_request *request, struct krait_err *err)
{
    struct krait_arena arena = { 0 };
    struct krait_json *value = NULL;
    struct krait_err why = { 0 };
    int rc = krait_json_read(&value, &arena, request->body, request->body_len, 0, &why);
    bool is_object = !rc && value->kind == KRAIT_JSON_OBJECT;
    krait_arena_done(&arena);
    if (!is_object)
        return krait_err_set(err, rc == -ENOMEM ? rc : -EINVAL, "notes: %s", rc ? why.text : "not an object");
    KRAIT_AUTO_OUTFILE file = KRAIT_OUTFILE_INIT;
    rc = krait_outfile_open(&file, path, err);
    if (rc)
        return rc;
    krait_buf_add(&file.buf, request->body, request->body_len);
    return krait_outfile_commit(&file, err);
}

int krait_answer_notes(struct krait_serving *serving, const struct krait_request *request,
                       struct krait_buf *out, struct krait_err *err)
{
    KRAIT_AUTO_BUF path = { 0 };
    struct stat of;
    krait_buf_fmt(&path, "%s/.krait-notes.json", serving->paths[0]);
    if (path.failed)
        return krait_err_set(err, -ENOMEM, "out of memory");
    int rc = 0;
    if (request->body) {
        pthread_mutex_lock(&serving->one);
        rc = write_notes(path.data, request, err);
        pthread_mutex_unlock(&serving->one);
        krait_buf_str(out, "{}\n");
        return rc == -EINVAL && err->code == -EINVAL ? rc : rc ? -EIO : 0;
    }
    rc = read_file(path.data, KRAIT_REQUEST_BODY_MAX, out, &of);
    struct krait_arena arena = { 0 };
    struct krait_json *value = NULL;
    struct krait_err why = { 0 };
    if (rc || krait_json_read(&value, &arena, out->data, out->len, 0, &why) ||
        value->kind != KRAIT_JSON_OBJECT) {
        out->len = 0; /* none yet, or not what was written here */
        krait_buf_str(out, "{}\n");
    }
    krait_arena_done(&arena);
    return 0;
}
