/* SPDX-License-Identifier: Apache-2.0
 *
 * What depends on the processor: the instructions of the stub, how a stopped thread is sent to them, and how it gets its
 * registers back. One file for each processor defines all of this: x86_64.c, aarch64.c.
 */
#ifndef KRAIT_ATTACH_MACHINE_H
#define KRAIT_ATTACH_MACHINE_H

#include "base/base.h"

#include <sys/types.h>
#include <sys/user.h>

/* The stub's code begins with the stack pointer at the frame (below), and reads the data of stub.c, which follows it. */
extern const uint8_t krait_stub_begin[], krait_stub_end[];

/* A stopped thread. */
struct krait_stopped {
    pid_t tid;
    bool is_first; /* the thread that the process began with */
    struct user_regs_struct regs;
    uint64_t pc, sp;
    uint64_t pointer; /* the thread pointer: libc's data of the thread, at the top of its first stack */
    uint64_t caller;  /* the return address, where the processor may keep it in a register alone; else 0 */
    bool waits;       /* the stop has interrupted a system call, which is called again or returns EINTR */
};

/* What krait writes below the thread's stack. At its end the stub takes all registers of the thread from here. The
 * frame's address is a multiple of 64. */
struct krait_stub_frame {
    uint8_t bytes[8192];
    size_t size; /* of the bytes */
    size_t room; /* of the frame: the stub itself writes what follows the bytes */
};

/* Reads the registers of a thread that krait has stopped. Returns 0 or a negative errno; -ENOTSUP: krait has no stub for
 * its registers. */
int krait_stopped_read(pid_t pid, pid_t tid, struct krait_stopped *stopped);
/* Whether the instruction before `address` is a call; true if it cannot be read. */
bool krait_stopped_is_return(pid_t pid, uint64_t address);
/* Makes the frame from which the thread goes on as if it had not been stopped; a system call that waited is called again.
 * Returns 0; KRAIT_THREAD_UNSAFE: not with the registers that it uses now; a negative errno: -ENOTSUP as above. */
int krait_stopped_frame(const struct krait_stopped *stopped, struct krait_stub_frame *frame);
/* Makes the thread run the code at `code`, with its frame at `frame`, and block all signals until that has ended. Returns 0 or a
 * negative errno. */
int krait_stopped_send(const struct krait_stopped *stopped, uint64_t code, uint64_t frame);

#endif
