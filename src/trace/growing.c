/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/growing.h"

#include "base/growing.h"
#include "ctf/format.h"
#include "ctf/read/find.h"

#include <fcntl.h>

/* The definitions of a process are open as long as it is recorded. */
bool krait_process_grows(const char *dir)
{
    KRAIT_AUTO_FREE char *path = NULL;
    if (asprintf(&path, "%s/" KRAIT_FILE_DEFINITIONS, dir) < 0)
        return false;
    KRAIT_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd >= 0 && krait_growing(fd);
}

bool krait_trace_grows(const char *const *paths, size_t count)
{
    bool grows = false;
    for (size_t i = 0; i < count && !grows; i++) {
        KRAIT_CLEANUP(krait_names_done) struct krait_names dirs = { 0 };
        struct krait_err ignored;
        if (krait_find_traces(&dirs, paths[i], &ignored))
            continue;
        for (size_t d = 0; d < dirs.count && !grows; d++)
            grows = krait_process_grows(dirs.list[d]);
    }
    return grows;
}
