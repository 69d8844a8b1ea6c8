/* SPDX-License-Identifier: Apache-2.0
 *
 * What a thread that is looked at does, by what the kernel says of it: its state, and the system call that it is in (proc(5)).
 */
#include "base/system_calls.h"
#include "cmd/top.h"
#include "remote/thread.h"
#include "trace/kernel/kernel_block.h"

#include <string.h>

/* System calls that wait for any of several files; a timeout ends them too. */
static bool is_poll(const char *call)
{
    static const char *const calls[] = { "poll", "ppoll", "select", "pselect6", "epoll_wait", "epoll_pwait" };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(calls); i++) {
        if (strcmp(call, calls[i]) == 0)
            return true;
    }
    return false;
}

/* Of one whose first argument is a file descriptor. */
static bool is_on_socket(pid_t pid, const struct krait_remote_thread *thread)
{
    char path[64], file[16] = "";
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, (int)thread->arg);
    return readlink(path, file, sizeof(file) - 1) > 0 && strncmp(file, "socket:", strlen("socket:")) == 0;
}

/* What a system call says by itself, as for recordings of the kernel. */
static enum top_state state_of_call(pid_t pid, const struct krait_remote_thread *thread, const char *call)
{
    static const uint8_t states[KRAIT_TS_COUNT] = {
        [KRAIT_TS_LOCK] = TOP_LOCK,       [KRAIT_TS_DISK] = TOP_DISK,   [KRAIT_TS_TIMER] = TOP_TIMER,
        [KRAIT_TS_NETWORK] = TOP_NETWORK, [KRAIT_TS_CHILD] = TOP_CHILD,
    };
    const struct krait_kcall_kind kind = krait_kernel_kind_of_call(call);
    if (states[kind.blocks_on])
        return (enum top_state)states[kind.blocks_on];
    if (is_poll(call))
        return TOP_POLL;
    return kind.is_of_files && is_on_socket(pid, thread) ? TOP_NETWORK : TOP_OTHER;
}

enum top_state top_state_of(pid_t pid, const struct krait_remote_thread *thread)
{
    const char *call = thread->call >= 0 ? krait_system_call_name(thread->call) : NULL;
    if (thread->state == 'R')
        return TOP_CPU;
    if (thread->gil_wait)
        return TOP_GIL;
    enum top_state state = call ? state_of_call(pid, thread, call) : TOP_OTHER;
    /* mostly it waits for a page, or for what it reads or writes */
    return state == TOP_OTHER && thread->state == 'D' ? TOP_DISK : state;
}

enum top_state top_state_of_task(pid_t pid, const struct krait_os_task *task)
{
    const struct krait_remote_thread thread = { .state = task->state, .call = task->call, .arg = task->arg };
    return top_state_of(pid, &thread);
}
