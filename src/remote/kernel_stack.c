/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/kernel_stack.h"

#include "base/map.h"
#include "remote/thread.h"

#include <string.h>

int krait_kernel_stack_check(pid_t pid, struct krait_err *err)
{
    char text[16];
    ssize_t n = krait_task_read(pid, pid, "stack", text, sizeof(text));
    if (n >= 0 || n == -ESRCH)
        return 0; /* one that has ended is noticed later */
    if (n == -ENOENT)
        return krait_err_set(err, -ENOTSUP,
                             "--kernel-stacks needs /proc/PID/stack, which this kernel does not have "
                             "(CONFIG_STACKTRACE)");
    return krait_err_set(err, (int)n, "--kernel-stacks needs root: /proc/%d/stack cannot be read: %s", pid,
                         strerror((int)-n));
}

static const struct krait_remote_code *find_function(struct krait_remote *remote, const char *name, size_t n)
{
    uint64_t key = krait_hash_bytes(name, n);
    const uint64_t *known = krait_map_get(&remote->kernel, key);
    if (known) {
        const struct krait_remote_code *code = (const void *)(uintptr_t)*known;
        return strlen(code->name) == n && memcmp(code->name, name, n) == 0 ? code : NULL;
    }
    struct krait_remote_code *code = KRAIT_ARENA_NEW(&remote->arena, struct krait_remote_code);
    if (!code)
        return NULL;
    *code = (struct krait_remote_code){ .name = krait_arena_strndup(&remote->arena, name, n),
                                        .file = "[kernel]",
                                        .native = true };
    bool ok = code->name && !krait_map_put(&remote->kernel, key, (uint64_t)(uintptr_t)code);
    return ok ? code : NULL;
}

/* A line is "[<0>] futex_wait_queue+0x60/0x90", with " [MODULE]" behind it if it is a module's: fs/proc/base.c. What
 * has no name is an address; before Linux 5.2 the last one is 0xffffffffffffffff. */
static const struct krait_remote_code *parse_line(struct krait_remote *remote, const char *line)
{
    const char *name = strstr(line, "] ");
    size_t n = name ? strcspn(name + 2, "+ \n") : 0;
    bool has_name = n && strncmp(name + 2, "0x", 2) != 0;
    return has_name ? find_function(remote, name + 2, n) : NULL;
}

uint32_t krait_kernel_stack_read(struct krait_remote *remote, const struct krait_remote_thread *thread,
                                 struct krait_remote_frame frames[KRAIT_KERNEL_DEPTH_MAX])
{
    char text[8192], *rest = NULL;
    uint32_t count = 0;
    if (krait_task_read(remote->pid, thread->tid, "stack", text, sizeof(text)) <= 0 ||
        !krait_remote_has_not_run(remote, thread))
        return 0;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        const struct krait_remote_code *code = parse_line(remote, line);
        if (code && count < KRAIT_KERNEL_DEPTH_MAX)
            frames[count++] = (struct krait_remote_frame){ .code = code };
    }
    return count;
}
