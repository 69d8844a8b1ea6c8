/* SPDX-License-Identifier: Apache-2.0 */
#include "export/export.h"

#include "export/formats.h"

#include <string.h>

const struct krait_export_format krait_export_formats[] = {
#define KRAIT_EXPORT(id, text, flags, opener) { #id, text, flags, opener, krait_export_write_##id },
#include "export/exports.def"
#undef KRAIT_EXPORT
    { NULL, NULL, 0, NULL, NULL },
};

const struct krait_export_format *krait_export_find(const char *name)
{
    const struct krait_export_format *format = krait_export_formats;
    while (format->name && strcmp(format->name, name) != 0)
        format++;
    return format->name ? format : NULL;
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
