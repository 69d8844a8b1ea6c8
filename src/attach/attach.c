/* SPDX-License-Identifier: Apache-2.0 */
#include "attach/attach.h"

#include "attach/inside.h"
#include "attach/stub.h"
#include "base/clock.h"
#include "base/fmt.h"
#include "remote/remote.h"
#include "remote/stop.h"

#include <string.h>

static int check(pid_t pid, struct krait_err *err)
{
    int tracer = (int)krait_task_number(pid, "TracerPid");
    if (tracer)
        return krait_err_set(
            err, -EBUSY,
            "process %d is already traced by process %d (a debugger or strace); end that one first", pid,
            tracer);
    if (krait_task_number(pid, "Seccomp") == KRAIT_SECCOMP_FILTER)
        return krait_err_set(
            err, -EPERM,
            "process %d has a seccomp filter, which could kill it for the system calls that krait makes in it; start the program with krait record -- COMMAND, or sample it: krait record --sample --pid %d",
            pid, pid);
    return 0;
}

/* The mapping is private, so that only this process sees it. Nothing reads the stub until a thread is sent there. */
static int write_stub(struct krait_stub *stub, const struct krait_target *target, enum krait_bring how,
                      struct krait_attach_call *call, struct krait_err *err)
{
    char memfd[KRAIT_BRING_NAME];
    krait_bring_name(memfd);
    struct krait_stub_call made = {
        .function = call->function,
        .argument = call->argument,
        .path = how == KRAIT_BRING_LOADED ? basename(call->library) : call->library, /* by its DT_SONAME */
        .memfd = how == KRAIT_BRING_MEMFD ? memfd : NULL,
    };
    if (!krait_stub_make(stub, target, &made))
        return krait_err_set(err, -ENOTSUP, "cannot attach: the path of krait's agent is too long: %s",
                             call->library);
    int rc = krait_write(target->pid, target->room, stub->bytes, stub->size, call);
    return rc ? krait_attach_refusal(target->pid, rc, err) : 0;
}

/* The threads that krait has stopped so far, until one was at a safe place. */
struct tries {
    struct krait_target *target;
    struct krait_attach_call *call;
    uint32_t count;
};

static int try_thread(void *ctx, pid_t tid)
{
    enum { AT_ONCE = 64 };
    struct tries *tries = ctx;
    char ns[KRAIT_FMT_SIZE];
    uint64_t stopped_ns;
    if (tries->call->between && tries->count % AT_ONCE == AT_ONCE - 1)
        tries->call->between(tries->call->ctx);
    int rc = krait_thread_send(tries->target, tid, &stopped_ns);
    tries->call->paused_ns = KRAIT_MAX(tries->call->paused_ns, stopped_ns);
    tries->count += stopped_ns != 0;
    if (!rc)
        krait_attach_tell(tries->call, "thread %d was stopped for %s, and starts a thread that calls %s", tid,
                          krait_fmt_ns(ns, stopped_ns), tries->call->function);
    else if (rc == KRAIT_THREAD_UNSAFE && tries->count <= 8) /* there may be thousands */
        krait_attach_tell(tries->call, "thread %d was stopped for %s, at no safe place", tid,
                          krait_fmt_ns(ns, stopped_ns));
    return rc;
}

/* Tries all threads, however many there are, and again until one is at a safe place or the time is over. */
static int try_for_a_while(struct tries *tries, struct krait_err *err)
{
    struct krait_target *target = tries->target;
    uint64_t end = krait_clock_ns(CLOCK_MONOTONIC) + 10 * KRAIT_NS_PER_S;
    int rc;
    do {
        rc = krait_target_look(target, err);
        if (rc)
            return rc;
        rc = krait_thread_any(target->pid, try_thread, tries);
        if (rc > 0)
            krait_attach_pause(tries->call, 3 * KRAIT_NS_PER_MS);
    } while (rc > 0 && krait_clock_ns(CLOCK_MONOTONIC) < end);
    if (tries->count > 1)
        krait_attach_tell(tries->call, "threads were stopped %u times in all", tries->count);
    return rc ? krait_attach_refusal(target->pid, rc, err) : 0;
}

static int attach(pid_t pid, struct krait_attach_call *call, struct krait_err *err)
{
    KRAIT_CLEANUP(krait_target_done) struct krait_target target = { 0 };
    struct tries tries = { &target, call, 0 };
    struct krait_stub stub;
    int rc = check(pid, err);
    rc = rc ? rc : krait_target_find(&target, pid, err);
    int how = rc ? rc : krait_bring_how(pid, call->library, err);
    rc = how < 0 ? how : write_stub(&stub, &target, (enum krait_bring)how, call, err);
    if (rc)
        return rc;
    krait_attach_tell(call, "the stub lies in process %d at %#llx, behind the code of a mapped file", pid,
                      (unsigned long long)target.room);
    rc = try_for_a_while(&tries, err);
    if (rc || how != KRAIT_BRING_MEMFD)
        return rc;
    krait_attach_tell(call, "the process does not see %s; krait brings it along by a memfd", call->library);
    return krait_bring(&target, &stub, call, err);
}

struct attaching {
    pid_t pid;
    struct krait_attach_call *call;
    struct krait_err *err;
    int rc;
};

static void *attach_in_thread(void *arg)
{
    struct attaching *a = arg;
    a->rc = attach(a->pid, a->call, a->err);
    return NULL;
}

int krait_attach(pid_t pid, struct krait_attach_call *call, struct krait_err *err)
{
    struct attaching a = { pid, call, err, 0 };
    krait_stop_in_thread(attach_in_thread, &a);
    /* Of a process that ends meanwhile, krait may have read too little for a true reason. */
    return a.rc && krait_task_memory(pid) == 0 ? krait_remote_refusal(pid, -ESRCH, err) : a.rc;
}
