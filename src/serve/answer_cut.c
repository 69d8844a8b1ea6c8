/* SPDX-License-Identifier: Apache-2.0
 *
 * A range as a trace of its own, as krait cut makes it, in an archive with a folder for each served folder. krait makes
 * it in the folder for temporary files, and removes it there before it sends the answer.
 */
#include "base/dirs.h"
#include "base/fmt.h"
#include "serve/running.h"
#include "serve/serving.h"
#include "trace/cut.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MOST_BYTES ((uint64_t)1 << 30) /* an answer is made in memory */

struct written {
    uint64_t packets, bytes;
};

static int cut_one(struct krait_serving *serving, struct krait_range range, uint32_t i, const char *dir,
                   struct written *sum, struct krait_err *err)
{
    KRAIT_AUTO_FREE char *to = NULL;
    char number[16] = "";
    if (serving->path_count > 1)
        snprintf(number, sizeof(number), "%u", i + 1);
    if (asprintf(&to, "%s/part%s", dir, number) < 0)
        return krait_err_set(err, -ENOMEM, "out of memory");
    if (mkdir(to, 0777))
        return krait_err_errno(err, "cannot make the folder %s", to);
    struct krait_cut cut = { .path = serving->paths[i], .to = to, .range = range };
    int rc = krait_trace_cut(&cut, serving->trace, err);
    sum->packets += cut.copied.packets;
    sum->bytes += cut.copied.bytes;
    if (!rc && !cut.copied.packets)
        krait_dir_remove(to); /* the range is empty there */
    return rc;
}

static int cut_all(struct krait_serving *serving, struct krait_range range, const char *dir,
                   struct krait_buf *out, struct krait_err *err)
{
    struct written sum = { 0 };
    int rc = 0;
    for (uint32_t i = 0; i < serving->path_count && !rc; i++)
        rc = cut_one(serving, range, i, dir, &sum, err);
    if (rc)
        return rc;
    if (!sum.packets)
        return krait_err_set(err, -EINVAL, "no events lie in the range");
    char size[KRAIT_FMT_SIZE];
    if (sum.bytes > MOST_BYTES)
        return krait_err_set(err, -EINVAL, "the range has %s, too much to send; use the command krait cut",
                             krait_fmt_bytes(size, sum.bytes));
    return krait_dir_tar(out, dir, krait_running_progress, NULL, err);
}

int krait_answer_cut(struct krait_serving *serving, const struct krait_request *request,
                     struct krait_buf *out, struct krait_err *err)
{
    const char *above = getenv("TMPDIR");
    KRAIT_AUTO_FREE char *dir = NULL;
    if (asprintf(&dir, "%s/krait-cut-XXXXXX", above && *above ? above : "/tmp") < 0)
        return krait_err_set(err, -ENOMEM, "out of memory");
    if (!mkdtemp(dir)) {
        krait_err_errno(err, "cannot make the folder %s", dir);
        return -EIO; /* whatever it is, what was asked for is there */
    }
    int rc = cut_all(serving, krait_serving_range(serving, request), dir, out, err);
    krait_dir_remove(dir);
    return rc;
}
