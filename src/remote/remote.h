/* SPDX-License-Identifier: Apache-2.0
 *
 * A running CPython, read from outside: its threads and their call stacks.
 *
 * The process keeps running while krait reads it, so pieces that are copied one after the other need not belong together. A
 * stack is proved if its thread did not run while it was copied (remote/still.h). If krait cannot prove a stack, it accepts it
 * if the kernel copied it in one piece (frames lie together, about 100 bytes each), if each frame shows that it is in a call
 * (enum krait_link), and if a second copy has the same frames. Callers that were reached through C code show it only from
 * Python 3.14 on. krait leaves out, and counts, stacks that it cannot read in KRAIT_TRIES_MAX copies.
 */
#ifndef KRAIT_REMOTE_REMOTE_H
#define KRAIT_REMOTE_REMOTE_H

#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"
#include "python/compat/layout.h"
#include "remote/c_stacks.h"
#include "remote/executed.h"
#include "remote/still.h"
#include "remote/thread.h"

#include <sys/types.h>

enum { KRAIT_STEP_TYPES = 4, KRAIT_STACK_PLACES = 4, KRAIT_TASK_NAME_MAX = 64 };
enum { KRAIT_TRIES_MAX = 5000, KRAIT_DEPTH_MAX = 100000, KRAIT_LINES_KEPT = 512 };

/* A code object: a function. Texts are UTF-8. */
struct krait_remote_code {
    uint64_t addr;
    uint64_t fields
        [4]; /* the fields that it was read from: if they change, another code object has this address */
    uint64_t hashes[2]; /* of name and file, if the process has had several interpreters */
    const char *name;   /* qualified from 3.11 on */
    const char *file;
    int32_t first_line;
    const uint8_t *lines;
    size_t lines_size;
    /* A function of a native file: `name` is its symbol or file+0x1f40, `addr` is where it begins in the file. */
    bool native;
    const char *module; /* of a function written in C that Python has called (called.h); NULL: it is none */
    struct krait_calling *calling; /* of one written in Python: what it calls; NULL: not looked at yet */
    uint32_t id;                   /* for who reads; 0 at first */
    uint64_t number;          /* from 1 on, each used once; 0: it lives as long as its struct krait_remote */
    uint64_t met;             /* krait_codes.sweeps when it was read last */
    struct krait_arena arena; /* its texts and what it calls */
};

/* All code objects that were read. Where they come and go, krait frees those that are on no stack any more: once there are twice as
 * many as the last sweep has left, all stacks are read again, and what is not met then goes. */
struct krait_codes {
    struct krait_map by_addr; /* -> the struct krait_remote_code * that was there last; NULL: it is freed */
    struct krait_remote_code **items; /* also those that are not there any more */
    uint32_t count, cap, most;
    size_t by_addr_most; /* krait_map_trim */
    uint64_t numbers;
    uint64_t sweeps; /* how many have begun */
};

struct krait_remote_frame {
    const struct krait_remote_code *code;
    int32_t line; /* 0: none */
    bool entry;   /* C code called it */
    /* If `entry`, from 3.12 on: an address in the native frame of the interpreter's loop that runs the function. */
    uint64_t mark;
    uint64_t addr; /* of the frame; of a native one the instruction */
};

/* The result of KRAIT_READ_NATIVE. */
enum krait_native_result {
    KRAIT_NATIVE_NONE, /* not wanted, or not read */
    KRAIT_NATIVE_WHOLE,
    KRAIT_NATIVE_CUT,   /* its outer part is missing: a file without call frame information */
    KRAIT_NATIVE_APART, /* it does not match the Python functions, which follow it */
};

enum krait_lock_kind { KRAIT_LOCK_NONE, KRAIT_LOCK_PLAIN, KRAIT_LOCK_REENTRANT };

/* A lock of the module threading: Lock or RLock. */
struct krait_lock {
    enum krait_lock_kind kind;
    uint64_t addr; /* id(lock) */
    pid_t owner;   /* the thread that holds it; 0: not known */
};

/* A task of asyncio that runs a step in a thread. */
struct krait_running_task {
    char name[KRAIT_TASK_NAME_MAX];
    const struct krait_remote_code *code; /* of its coroutine; NULL: not known */
    uint64_t key;                         /* another one for another task */
    uint64_t addr, coroutine, text;       /* of the task, its coroutine and its name */
    uint64_t seen;                        /* the bytes of the name's object: a hash */
    uint32_t size;                        /* how many these are */
};

/* Pages in which the innermost frames of a stack were; 0: none. */
struct krait_stack_places {
    uint64_t pages[KRAIT_STACK_PLACES];
    uint64_t cframe; /* the _PyCFrame of 3.11 and 3.12; 0: not known */
};

/* A PyThreadState: what a thread has for each interpreter that it has run (remote/states.h). */
struct krait_remote_state {
    uint64_t addr;
    uint64_t interp;    /* address of its PyInterpreterState */
    uint64_t interp_id; /* 0: the main interpreter */
    uint64_t ident;     /* threading.get_ident() of the thread that has made it */
    uint64_t gil;       /* address of its GIL; 0: not known */
    uint64_t gc;        /* address of the flag that its interpreter's collector runs */
    pid_t tid;
    uint32_t thread; /* its place in krait_remote_stacks.threads, or KRAIT_NO_ID */
    bool is_first;   /* of its thread: made before the others */
    bool holds_gil;
    bool is_there;                    /* of nested.c: it is the one that was found */
    bool has_frames;                  /* ... and has frames */
    struct krait_stack_places places; /* where its stack was read from, if the thread has several states */
    struct krait_remote_state *next;  /* of the same thread */
};

struct krait_remote_thread {
    uint64_t addr;  /* of its first PyThreadState; 0: it has none */
    uint64_t ident; /* threading.get_ident() */
    pid_t tid;      /* the kernel's number; 0: not known */
    /* That of the interpreter that it runs comes first, then those of the interpreters that have called it; then those that have
     * called nothing. Valid until threads are looked for again. */
    struct krait_remote_state *states;
    uint64_t states_hash; /* another one for other states */
    bool holds_gil;
    bool runs;     /* on a CPU, or ready for one */
    bool failed;   /* its stack could not be read while it ran */
    bool proved;   /* the thread did not run while its stack was read last */
    bool wanted;   /* this call reads it */
    bool same;     /* with KRAIT_READ_AGAIN: it has not run since the last call, and has no frames here */
    char state;    /* if proved: its state just before the copy, or later: proc(5) */
    bool gil_wait; /* with KRAIT_READ_WAITS, if proved: it waits for the GIL */
    int call;      /* ... the system call that it sleeps in; -1: none, or not known */
    uint64_t arg;  /* its first argument */
    enum krait_native_result native;
    struct krait_lock waits_for; /* of krait_remote_read_locks */
    bool deadlocked;             /* it waits for a lock in a ring of threads that wait for each other */
    uint64_t switches;           /* if proved: krait_still_count; 0: not known */
    uint64_t proved_ns, seen_ns; /* CLOCK_MONOTONIC: when it was proved, and when its state was read last */
    /* With KRAIT_READ_CALLED, if proved: the function written in C that the innermost Python function has called; NULL: none. */
    const struct krait_remote_code *called;
    const struct krait_running_task *task; /* with KRAIT_READ_TASKS, if proved; NULL: none */
    struct krait_stack_places places;      /* where its stack was read from */
    uint32_t first;                        /* its frames in krait_remote_stacks.frames, innermost first */
    uint32_t count;
};

enum krait_coroutine_state { KRAIT_COROUTINE_WAITS, KRAIT_COROUTINE_RUNS, KRAIT_COROUTINE_CREATED };

/* A task of asyncio: what its coroutine awaits, innermost first. */
struct krait_remote_task {
    uint64_t addr;
    char name[KRAIT_TASK_NAME_MAX];
    pid_t tid; /* of the thread whose event loop it belongs to; 0: the loop does not run */
    enum krait_coroutine_state state;
    bool failed;                 /* it changed while it was read */
    uint32_t first, count;       /* in krait_remote_stacks.frames */
    uint32_t by_first, by_count; /* in krait_remote_stacks.awaiters: the tasks that await it */
};

/* Where a list begins, and its first item. */
struct krait_remote_first {
    uint64_t addr, first;
};

/* The threads of a process, the oldest first. krait reads each stack at a moment of its own. */
struct krait_remote_stacks {
    struct krait_remote_thread *threads;
    uint32_t thread_count, thread_cap;
    struct krait_remote_state *states;
    uint32_t state_count, state_cap;
    struct krait_remote_first *firsts; /* of the lists of interpreters and states */
    uint32_t first_count, first_cap;
    bool misplaced; /* a state was not found where it had been: threads are looked for at the next call */
    struct krait_remote_frame *frames;
    uint32_t frame_count, frame_cap;
    struct krait_remote_task *coroutines; /* of krait_remote_read_tasks */
    uint32_t coroutine_count, coroutine_cap;
    uint32_t *awaiters; /* places in coroutines */
    uint32_t awaiter_count, awaiter_cap;
    bool collects;               /* the garbage collector of one of the interpreters runs */
    struct krait_os_tasks tasks; /* the kernel's data on the threads, read just before */
};

/* The number of the interpreter whose code the thread runs; 0: the main one. */
static inline uint64_t krait_remote_interpreter(const struct krait_remote_thread *thread)
{
    return thread->states ? thread->states->interp_id : 0;
}

void krait_remote_stacks_done(struct krait_remote_stacks *stacks);

struct krait_remote {
    pid_t pid;
    struct krait_executed image; /* the program that is read */
    struct krait_layout layout;
    char version[32]; /* 3.11.2; before 3.11 3.8 */
    char *file;       /* the file that holds the interpreter, as the process names it */
    uint64_t runtime; /* addresses there: _PyRuntime; PyCode_Type, or 0 */
    uint64_t code_type;
    uint64_t asyncio;      /* address of the table of offsets of asyncio's C part; 0: not found yet */
    uint32_t running_task; /* offset of the running task in thread states; 0: not known */
    uint64_t looked_ns;    /* for that */
    /* Of running_task.c: addresses of types and of a method; 0: not met. */
    uint64_t step_types[KRAIT_STEP_TYPES], wakeup_method;
    const struct krait_remote_code *no_step;
    struct krait_map running; /* address of a frame or thread state -> struct krait_running_task * */
    uint32_t tid_offset;      /* of the kernel's number in struct pthread, once it is known; before 3.11 */
    struct krait_still still;
    bool nests; /* the process has had several interpreters */
    struct krait_c_stacks c_stacks;
    uint64_t c_stacks_hash;        /* of the threads that they are of */
    struct krait_natives *natives; /* native.h; NULL: not used yet */
    struct krait_callees *callees; /* called.h; NULL: not used yet */
    struct krait_map late;         /* a thread that did not stop in time -> krait_still_count before */
    struct krait_codes codes;
    struct krait_line_kept { /* callers stay where they are from sample to sample */
        const struct krait_remote_code *code;
        int64_t offset;
        int32_t line;
    } lines[KRAIT_LINES_KEPT];
    struct krait_map kernel; /* a name's hash -> struct krait_remote_code * of a function of the kernel */
    struct krait_arena arena;
    uint64_t now_ns;   /* CLOCK_MONOTONIC, at the beginning of a reading */
    uint64_t tries;    /* copies of stacks */
    uint64_t held_ns;  /* with KRAIT_READ_COST: CPU time that krait took where threads would have run */
    uint64_t until_ns; /* krait's own CPU time up to which that is counted */
    uint64_t failures; /* threads whose stack could not be read in KRAIT_TRIES_MAX copies */
};

/* Finds the interpreter. Returns 0, or a negative errno with the reason and what to do in err: -ESRCH no such
 * process, -EPERM not allowed, -ENOEXEC it does not run Python, -ENOTSUP a Python that krait does not read. */
int krait_remote_open(struct krait_remote **out, pid_t pid, struct krait_err *err);
void krait_remote_free(struct krait_remote *remote);

/* Whether the process has executed another program since then: what is read of it may be of the addresses of the first. */
bool krait_remote_has_executed(const struct krait_remote *remote);

enum krait_read_flags {
    KRAIT_READ_CALLS = 1 << 0,   /* also the system calls that threads are in */
    KRAIT_READ_RUNNING = 1 << 1, /* only the stacks of running threads; the others have no frames */
    KRAIT_READ_HOLDER = 1 << 2,  /* only the stacks of threads that hold the GIL */
    KRAIT_READ_PROVED = 1 << 3,  /* only proved stacks; the others fail */
    KRAIT_READ_AGAIN = 1 << 4,   /* of threads that have not run since the previous call, only the state */
    KRAIT_READ_WAITS = 1 << 5,   /* also whether sleeping threads wait for the GIL */
    KRAIT_READ_KNOWN = 1 << 6,   /* only the threads of the previous call */
    /* Also native frames, and threads without a Python state. Stops threads for a moment whose registers no record tells. */
    KRAIT_READ_NATIVE = 1 << 7,
    KRAIT_READ_TASKS = 1 << 8, /* also the tasks of asyncio that threads run */
    /* Stay on the CPU of the thread that was read last, unless there are many threads to look at: the next call is soon, no
     * other process is read before, and krait_still_leave comes at last. */
    KRAIT_READ_STAY = 1 << 9,
    /* With KRAIT_READ_KNOWN: also which threads hold the GIL, and whether a collector runs. */
    KRAIT_READ_GIL = 1 << 10,
    KRAIT_READ_COST = 1 << 11, /* count what it costs: held_ns */
    KRAIT_READ_CALLED =
        1 << 12, /* also which functions written in C were called; not with KRAIT_READ_NATIVE */
    /* Use records of switches: the process is read often from now on. Only for few threads, where they are cheaper than files; with
     * KRAIT_READ_NATIVE for all that they may be kept open for, since they save stops. */
    KRAIT_READ_SWITCHES = 1 << 13,
};

/* Reads all threads that have a Python state. `stacks` is zeroed, or from an earlier call, whose frames this replaces. A code
 * object lives until a call at which it is on no stack; codes.sweeps grows then. Returns 0, or the errors of krait_remote_open. */
int krait_remote_read(struct krait_remote *remote, struct krait_remote_stacks *stacks, uint32_t flags,
                      struct krait_err *err);

/* Whether there is an interpreter with a thread: a program may load Python and not begin it. */
bool krait_remote_has_interpreter(const struct krait_remote *remote);

/* Whether a proved thread has not run since its stack was read. */
bool krait_remote_has_not_run(struct krait_remote *remote, const struct krait_remote_thread *thread);

/* Whether the thread waits for the GIL. `task` has the kernel's data on the thread, with its system call. */
bool krait_remote_waits_for_gil(const struct krait_remote_thread *thread, const struct krait_os_task *task);

/* After krait_remote_read: adds the tasks of asyncio of all threads to `stacks`. Returns 0; -ENOTSUP: krait does not know how this
 * version keeps them; -ENOENT: the program has not imported asyncio; or the errors of krait_memory_read. */
int krait_remote_read_tasks(struct krait_remote *remote, struct krait_remote_stacks *stacks);

/* Appends the name of a function as krait top and krait dump show it: of one written in C with its module, unless that is
 * builtins. */
void krait_remote_put_name(struct krait_buf *out, const struct krait_remote_code *code);

/* Sets err to the reason why the process cannot be read. rc is from krait_memory_read. Returns rc. */
int krait_remote_refusal(pid_t pid, int rc, struct krait_err *err);

#endif
