/* SPDX-License-Identifier: Apache-2.0 */
#include "sample/codes.h"

#include "event/own.h"
#include "sample/sample.h"

#include <string.h>

void krait_sample_codes_done(struct krait_sample_codes *codes)
{
    krait_map_done(&codes->ids);
}

/* What a definition says. Code objects of which that is the same are one function, which a program may compile again and again. */
static uint64_t hash_of(const struct krait_remote_code *code)
{
    const uint64_t parts[] = { krait_hash_bytes(code->name, strlen(code->name)),
                               krait_hash_bytes(code->file, strlen(code->file)),
                               code->module ? krait_hash_bytes(code->module, strlen(code->module)) : 0,
                               (uint64_t)(uint32_t)code->first_line << 1 | code->native };
    return krait_hash_bytes(parts, sizeof(parts));
}

/* The functions that have no code object any more are among these, too: there may be no end of them. One that is forgotten is
 * defined again when it comes again. */
static int keep_id(struct krait_sample_codes *codes, uint64_t hash, uint32_t id)
{
    enum { MOST = 1 << 16 };
    if (codes->ids.len >= MOST)
        krait_map_done(&codes->ids);
    return krait_map_put(&codes->ids, hash, id);
}

/* Where the path below the folder begins that the file was imported from, as far as one can tell; else its name. */
static const char *below_root(const char *file)
{
    static const char *const roots[] = { "/site-packages/", "/dist-packages/" };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(roots); i++) {
        const char *at = strstr(file, roots[i]);
        if (at)
            return at + strlen(roots[i]);
    }
    const char *lib = strstr(file, "/lib/python3"), *end = lib ? strchr(lib + strlen("/lib/"), '/') : NULL;
    const char *slash = strrchr(file, '/');
    return end ? end + 1 : slash ? slash + 1 : file;
}

void krait_sample_add_module(struct krait_buf *out, const char *file)
{
    static const char *const ends[] = { "/__init__.py", ".py", ">" };
    static const char frozen[] = "<frozen ";
    struct krait_own_before before;
    KRAIT_AUTO_FREE char *own = krait_own_file(file) ? strdup(file) : NULL;
    out->failed |= krait_own_file(file) && !own;
    if (own && krait_own_read(own, &before))
        file = before.file;
    bool is_frozen = strncmp(file, frozen, strlen(frozen)) == 0;
    const char *path = is_frozen ? file + strlen(frozen) : below_root(file);
    size_t n = strlen(path);
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(ends); i++) {
        size_t end = strlen(ends[i]);
        if (n <= end || strcmp(path + n - end, ends[i]) != 0 || (*ends[i] == '>' && !is_frozen))
            continue;
        n -= end;
        break;
    }
    for (size_t i = 0; i < n; i++)
        krait_buf_char(out, path[i] == '/' ? '.' : path[i]);
}

int krait_sample_code(struct krait_sample_codes *codes, struct krait_sample_stream *definitions, uint64_t t,
                      const struct krait_remote_code *code, uint32_t *id, struct krait_err *err)
{
    uint32_t *own = &((struct krait_remote_code *)code)->id;
    if (*own) {
        *id = *own;
        return 0;
    }
    uint64_t hash = hash_of(code);
    const uint64_t *known = krait_map_get(&codes->ids, hash);
    if (known) {
        *id = *own = (uint32_t)*known;
        return 0;
    }
    KRAIT_AUTO_BUF module = { 0 };
    uint8_t payload[KRAIT_PAYLOAD_MAX];
    bool is_c = code->native || code->module;
    if (!is_c)
        krait_sample_add_module(&module, code->file);
    *id = *own = ++codes->count;
    if (module.failed || keep_id(codes, hash, *id))
        return krait_err_set(err, -ENOMEM, "out of memory");
    struct krait_payload_code_define define = { .id = *id,
                                                .kind = is_c ? KRAIT_code_kind_c : KRAIT_code_kind_python,
                                                .line = (uint32_t)KRAIT_MAX(code->first_line, 0),
                                                .module = code->module  ? code->module
                                                          : module.data ? module.data
                                                                        : "",
                                                .qualname = code->name,
                                                .file = code->file };
    size_t n = krait_put_code_define(payload, &define);
    return krait_sample_stream_put(definitions, t, KRAIT_EVENT_code_define, payload, n, err);
}
