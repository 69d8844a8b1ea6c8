/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/title.h"

#include "base/fmt.h"
#include "trace/folders.h"

#include <string.h>

/* Of the first process below a path; "": there is none, or nobody knows. */
static const char *command_of(const struct krait_trace *trace, const char *const *paths, size_t count,
                              uint32_t path)
{
    for (uint32_t i = 0; i < trace->process_count; i++) {
        const struct krait_process *process = &trace->processes[i];
        if (krait_folders_path_of(paths, count, process->dir) == path)
            return krait_fmt_command(*process->command ? process->command : process->name);
    }
    return "";
}

void krait_title(struct krait_buf *to, const struct krait_trace *trace, const char *const *paths,
                 size_t count)
{
    size_t begin = to->len;
    for (uint32_t path = 0; path < count; path++) {
        const char *command = command_of(trace, paths, count, path);
        bool is_new = *command;
        for (uint32_t i = 0; i < path && is_new; i++)
            is_new = strcmp(command, command_of(trace, paths, count, i)) != 0;
        if (is_new)
            krait_buf_fmt(to, "%s%s", to->len > begin ? ", " : "", command);
    }
}
