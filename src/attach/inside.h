/* SPDX-License-Identifier: Apache-2.0
 *
 * Declarations that the files of attach/ share.
 */
#ifndef KRAIT_ATTACH_INSIDE_H
#define KRAIT_ATTACH_INSIDE_H

#include "attach/attach.h"
#include "base/base.h"
#include "remote/elf.h"

struct krait_address_range {
    uint64_t begin, end;
};

enum krait_target_function {
    KRAIT_TARGET_CREATE,
    KRAIT_TARGET_DETACH,
    KRAIT_TARGET_DLOPEN,
    KRAIT_TARGET_DLSYM,
    KRAIT_TARGET_FUNCTIONS
};

struct krait_address_ranges {
    struct krait_address_range items[32];
    uint32_t count;
};

struct krait_target {
    pid_t pid;
    uint64_t functions[KRAIT_TARGET_FUNCTIONS];
    uint64_t room; /* for the stub */
    /* Code that holds locks of libc or of the loader while it calls other code; all of libc's code, which may hold them
     * itself. */
    struct krait_address_ranges holds, libc;
    struct {
        struct krait_target_file {
            struct krait_elf elf;
            uint64_t begin, moved; /* address of the first byte; what was added to the file's addresses */
            bool is_greenlet;      /* the extension module of greenlet, on which gevent and eventlet stand */
        } * items;                 /* in ascending order */
        uint32_t count, cap;
    } files;
    /* Writable mappings, in ascending order, with the threads' stacks. */
    struct {
        struct krait_address_range *items;
        uint32_t count, cap;
    } data;
    uint64_t main_stack; /* its end */
};

/* Fills in the whole struct. */
int krait_target_find(struct krait_target *target, pid_t pid, struct krait_err *err);
/* Reads the list of writable mappings again. Called before a thread is stopped, so that the thread does not wait for
 * it. */
int krait_target_look(struct krait_target *target, struct krait_err *err);
/* The writable mapping that contains `address`; NULL if there is none. */
const struct krait_address_range *krait_target_data(const struct krait_target *target, uint64_t address);
/* The file that contains the code at `address`. If the code is in no file, the result is any file, or NULL. */
const struct krait_target_file *krait_target_file(const struct krait_target *target, uint64_t address);
void krait_target_done(struct krait_target *target);

/* ---- told.c ---- */

/* Sleeps a moment, and lets who attaches do other things. */
void krait_attach_pause(const struct krait_attach_call *call, uint64_t ns);
/* Tells who attaches what is done. */
KRAIT_PRINTF(2, 3) void krait_attach_tell(const struct krait_attach_call *call, const char *fmt, ...);
/* Sets err to the reason why a thread could not be stopped or written to. Returns a negative errno. */
int krait_attach_refusal(pid_t pid, int rc, struct krait_err *err);

/* ---- bring.c ---- */

struct krait_stub;

enum { KRAIT_BRING_NAME = 32 };

enum krait_bring {
    KRAIT_BRING_NOT,    /* the process opens the file itself */
    KRAIT_BRING_LOADED, /* an earlier call brought it along: its DT_SONAME is enough */
    KRAIT_BRING_MEMFD,
};
/* Decides how the process gets the library. Returns an enum krait_bring or a negative errno. */
int krait_bring_how(pid_t pid, const char *library, struct krait_err *err);
/* Chooses the name of the memfd, by which krait finds it. */
void krait_bring_name(char name[KRAIT_BRING_NAME]);
/* Waits until a thread of the process has made it, and writes the library into it. */
int krait_bring(const struct krait_target *target, const struct krait_stub *stub,
                struct krait_attach_call *call, struct krait_err *err);

/* ---- thread.c ---- */

enum { KRAIT_THREAD_UNSAFE = 1 };
enum { KRAIT_SECCOMP_FILTER = 2 }; /* as /proc/PID/status says it */
/* Sends a thread to target->room if it is at a safe place. Returns 0, KRAIT_THREAD_UNSAFE or a negative errno; then the
 * thread goes on as if nothing had been. *stopped_ns is how long it was stopped. */
int krait_thread_send(const struct krait_target *target, pid_t tid, uint64_t *stopped_ns);
/* Calls `try` for each thread until it returns 0, for the first thread of the process at last: Python calls its handlers of signals
 * there, and while that is stopped, the kernel gives the signals of the process to other threads (wants_signal() in
 * kernel/signal.c), so that it goes on to wait. Returns 0, or what it returned for the last thread that is not
 * ending, of which KRAIT_THREAD_UNSAFE goes before errors; -ESRCH if there is none. */
int krait_thread_any(pid_t pid, int (*try)(void *ctx, pid_t tid), void *ctx);
/* Writes through a thread that krait has stopped. Returns 0 or a negative errno; then some of the bytes may be written. */
int krait_write_stopped(pid_t tid, uint64_t at, const void *bytes, size_t n);

/* ---- write.c ---- */

/* Writes into the process, also where the process itself may not write. If the kernel requires it, a thread is stopped
 * for that. Returns 0 or a negative errno; then some of the bytes may be written. */
int krait_write(pid_t pid, uint64_t at, const void *bytes, size_t n, struct krait_attach_call *call);

#endif
