/* SPDX-License-Identifier: Apache-2.0 */
#include "export/export.h"

#include "export/formats.h"

#include <fnmatch.h>
#include <string.h>

const struct krait_export_format krait_export_formats[] = {
#define KRAIT_EXPORT(id, text, flags, opener, names) \
    { #id, text, flags, opener, names, krait_export_write_##id },
#include "export/exports.def"
#undef KRAIT_EXPORT
    { NULL, NULL, 0, NULL, NULL, NULL },
};

const struct krait_export_format *krait_export_find(const char *name)
{
    const struct krait_export_format *format = krait_export_formats;
    while (format->name && strcmp(format->name, name) != 0)
        format++;
    return format->name ? format : NULL;
}

/* How long the longest of the format's globs is that the file's name is like; 0: none is. */
static size_t match_names(const struct krait_export_format *format, const char *file)
{
    size_t longest = 0;
    for (const char *at = format->names; *at;) {
        char glob[64];
        size_t n = strcspn(at, "|");
        snprintf(glob, sizeof(glob), "%.*s", (int)n, at);
        if (n > longest && fnmatch(glob, file, FNM_CASEFOLD) == 0)
            longest = n;
        at += n + (at[n] == '|');
    }
    return longest;
}

const struct krait_export_format *krait_export_of_file(const char *path)
{
    const struct krait_export_format *best = NULL;
    const char *slash = strrchr(path, '/');
    size_t longest = 0;
    for (const struct krait_export_format *f = krait_export_formats; f->name; f++) {
        size_t n = match_names(f, slash ? slash + 1 : path);
        best = n > longest ? f : best;
        longest = KRAIT_MAX(longest, n);
    }
    return best;
}

void krait_export_file_name(struct krait_buf *name, const struct krait_export_format *format,
                            const char *recording)
{
    size_t n = strcspn(format->names, "|"), star = strcspn(format->names, "*");
    krait_buf_add(name, format->names, star);
    krait_buf_str(name, recording);
    krait_buf_add(name, format->names + star + 1, n - star - 1);
}

int krait_export_run(const struct krait_export_format *format, struct krait_export_job *job, const char *path,
                     struct krait_err *err)
{
    KRAIT_AUTO_OUTFILE out = KRAIT_OUTFILE_INIT;
    int rc = krait_outfile_open(&out, path, err);
    if (!rc)
        rc = format->write(job, &out, err);
    /* A failure of writing has its reason in `out`; the commit says it. */
    if (!rc || out.error)
        rc = krait_outfile_commit(&out, err);
    job->bytes = out.bytes;
    return rc;
}
