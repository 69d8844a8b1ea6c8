/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of this machine: the source that a recording names, and the notes beside it.
 */
#include "base/arena.h"
#include "base/json.h"
#include "base/json_read.h"
#include "base/outfile.h"
#include "serve/serving.h"
#include "view/source.h"

#include <string.h>
#include <sys/stat.h>

#define P(name) (1u << KRAIT_PARAM_##name)

enum { LINES = 200, LINES_BEFORE = 20 };

/* ---- source ---- */

static void put_line(void *ctx, uint32_t line, const char *text, size_t n)
{
    struct krait_buf *out = ctx;
    (void)line;
    krait_json_item(out, "");
    krait_json_str(out, text, n);
}

static void put_source(struct krait_buf *out, const struct krait_func *func,
                       const struct krait_source *source, uint32_t limit)
{
    uint32_t first = func->line > LINES_BEFORE ? func->line - LINES_BEFORE : 1;
    krait_buf_char(out, '{');
    krait_json_key_text(out, "file", func->file);
    krait_json_key_u64(out, "line", func->line);
    krait_json_key_u64(out, "first", first);
    krait_json_key_bool(out, "changed", source->changed);
    krait_json_key_open(out, "lines", '[');
    uint32_t more = krait_source_lines(source, first, limit, put_line, out);
    krait_buf_char(out, ']');
    krait_json_key_u64(out, "more", more);
    krait_buf_str(out, "}\n");
}

int krait_answer_source(struct krait_serving *serving, const struct krait_request *request,
                        struct krait_buf *out, struct krait_err *err)
{
    KRAIT_CLEANUP(krait_source_done) struct krait_source source = { 0 };
    int rc = krait_request_needs(request, P(func), err);
    if (rc)
        return rc;
    uint64_t id = request->numbers[KRAIT_PARAM_func];
    if (id >= serving->trace->func_count)
        return krait_err_set(err, -ENOENT, "the recording names no source file of this function");
    const struct krait_func *func = &serving->trace->funcs[id];
    rc = krait_source_read(&source, serving->trace, func, err);
    if (!rc)
        put_source(out, func, &source,
                   (uint32_t)KRAIT_MIN(krait_request_number(request, KRAIT_PARAM_limit, LINES), UINT32_MAX));
    return rc;
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
    rc = krait_source_file(path.data, KRAIT_REQUEST_BODY_MAX, out, &of);
    struct krait_arena arena = { 0 };
    struct krait_json *value = NULL;
    struct krait_err why = { 0 };
    if (rc || krait_json_read(&value, &arena, out->data, out->len, 0, &why) ||
        value->kind != KRAIT_JSON_OBJECT) {
        out->len = 0; /* there is none yet, or krait did not write it */
        krait_buf_str(out, "{}\n");
    }
    krait_arena_done(&arena);
    return 0;
}
