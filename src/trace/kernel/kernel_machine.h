/* SPDX-License-Identifier: Apache-2.0
 *
 * Internal to kernel_states.h: what its files share.
 */
#ifndef KRAIT_TRACE_KERNEL_MACHINE_H
#define KRAIT_TRACE_KERNEL_MACHINE_H

#include "trace/kernel/kernel_cpu.h"

#include "base/array.h"

/* KRAIT_GROW; where that is false m->failed is set. */
#define KRAIT_KERNEL_GROW(m, items, cap, need) (KRAIT_GROW((items), (cap), (need)) || !((m)->failed = true))

/* How much of [from_ns, to_ns) counts; whether what happens now does. */
static inline uint64_t krait_kernel_counted(const struct krait_kernel_states *m, int64_t from_ns,
                                            int64_t to_ns)
{
    bool some;
    if (KRAIT_LIKELY(!m->options->parts))
        return (uint64_t)(to_ns - from_ns);
    return krait_ranges_overlap(m->options->parts, (uint64_t)from_ns, (uint64_t)to_ns, &some);
}

static inline bool krait_kernel_counts(const struct krait_kernel_states *m)
{
    bool is_in = KRAIT_LIKELY(!m->options->parts) || krait_ranges_have(m->options->parts, (uint64_t)m->now);
    return is_in && !m->ahead;
}

/* The range begins at a time: states go on, what was counted does not count. ctx: the machine. */
void krait_kernel_count_from(void *ctx, int64_t ns);

/* Keeps the interval of a thread that ends now, in this state. */
void krait_kernel_keep_interval(struct krait_kernel_states *m, struct krait_kthread *t,
                                enum krait_thread_state state);
/* The kept intervals get what goes on at a time, where the states end so far; and are as they were before. */
void krait_kernel_keep_now(struct krait_kernel_states *m, int64_t ns);
void krait_kernel_forget_now(struct krait_kernel_states *m);

/* A process is called as its first thread, or as one of them. */
void krait_kernel_name_processes(struct krait_kernel_states *m);

/* Which event classes are of which system calls. Returns 0 or -ENOMEM. */
int krait_kernel_know_calls(struct krait_kernel_states *m, const struct krait_kernel_event_class *classes,
                            uint32_t count);

/* The id of the system call of that name; KRAIT_NO_ID for none, and when memory is out. */
uint32_t krait_kernel_call_named(struct krait_kernel_states *m, const char *name, size_t n);
/* Whether a call, or KRAIT_NO_ID, waits for a lock by its argument. */
bool krait_kernel_locks(const struct krait_kernel_states *m, uint32_t call, int64_t cmd);

/* A thread goes on under another number, also in its system call. */
void krait_kernel_hand_over_call(const struct krait_kernel_states *m, struct krait_kthread *from,
                                 struct krait_kthread *to);

/* A thread runs: the end of a system call of which a state dump told may not be recorded. */
static inline void krait_kernel_ran(const struct krait_kernel_states *m, struct krait_kthread *t)
{
    if (KRAIT_LIKELY(!t || !t->call_dumped))
        return;
    t->call_dumped = false;
    if (m->has_calls && !m->dumping)
        return;
    t->call = KRAIT_NO_ID;
    t->call_known = false;
}

/* What a blocked thread waits for as far as that is known before it is woken; KRAIT_TS_BLOCKED: it is not. */
enum krait_thread_state krait_kernel_told(const struct krait_kernel_states *m, const struct krait_kthread *t);

/* The range is over, at m->end_ns, and events go on; m->is_over says when they need not. A thread leaves its state,
 * which was `as`, by the thread `by`; one that waited so long, until it ran just now, had waited for a page; a CPU's
 * steal time is read, before it is counted. Last, all is as it was. */
void krait_kernel_look_ahead(struct krait_kernel_states *m);
void krait_kernel_ends_wait(struct krait_kernel_states *m, const struct krait_kthread *t,
                            enum krait_thread_state as, uint32_t by);
void krait_kernel_waited_for_page(const struct krait_kernel_states *m, const struct krait_kthread *t,
                                  uint64_t waited_ns);
void krait_kernel_reads_steal(struct krait_kernel_states *m, const struct krait_kernel_event *ev);
void krait_kernel_look_back(struct krait_kernel_states *m);
void krait_kernel_ahead_free(struct krait_kernel_states *m);

/* NULL for the idle tasks, for what is no thread's number, and when memory is out. */
struct krait_kthread *krait_kernel_thread_of(struct krait_kernel_states *m, int64_t tid);
/* The thread that an event of a state dump is of, at the event's time, on no CPU; NULL as above. */
struct krait_kthread *krait_kernel_dumped_thread(struct krait_kernel_states *m,
                                                 const struct krait_kernel_event *ev);
/* Text of an event's field becomes its name. */
void krait_kernel_name_thread(struct krait_kthread *t, const struct krait_kernel_event *ev, unsigned field);
/* It is of that process; not where that is no process' number. */
void krait_kernel_set_process(struct krait_kernel_states *m, struct krait_kthread *t, int64_t pid);
/* From its state to another, now. */
void krait_kernel_leave(struct krait_kernel_states *m, struct krait_kthread *t, enum krait_thread_state to);
/* The same where only now is learned what its state was; by: see struct krait_kinterval. */
void krait_kernel_leave_as(struct krait_kernel_states *m, struct krait_kthread *t, enum krait_thread_state as,
                           enum krait_thread_state to, uint32_t by);

/* As krait_kernel_cause has it. */
static inline uint32_t krait_kernel_by(const struct krait_kthread *t)
{
    return t ? t->index + 1 : 0;
}

/* The same of one that wakes or makes another. */
static inline uint32_t krait_kernel_waker(const struct krait_kernel_states *m, uint32_t by)
{
    if (by)
        m->threads[by - 1]->wakes = true;
    return by;
}

/* Times of a damaged stream may go backward: ours do not. */
static inline void krait_kernel_tick(struct krait_kernel_states *m, const struct krait_kernel_event *ev)
{
    if (KRAIT_LIKELY(ev->ns > m->now))
        m->now = ev->ns;
}

/* One that is met for the first time, in that state since the range began. NULL when memory is out. */
struct krait_kthread *krait_kernel_new_thread(struct krait_kernel_states *m, int32_t tid,
                                              enum krait_thread_state before);
/* One that is made now. NULL where that is no thread's number, and when memory is out. */
struct krait_kthread *krait_kernel_make_thread(struct krait_kernel_states *m, int64_t tid,
                                               const struct krait_kthread *parent);
krait_kernel_event_handler krait_kernel_on_fork;
krait_kernel_event_handler krait_kernel_on_thread_exit;
krait_kernel_event_handler krait_kernel_on_free;
krait_kernel_event_handler krait_kernel_on_statedump;
krait_kernel_event_handler krait_kernel_on_dumped_wait;
/* Events of kernel_carried.h. */
krait_kernel_event_handler krait_kernel_on_carried_thread;
krait_kernel_event_handler krait_kernel_on_carried_cpu;
krait_kernel_event_handler krait_kernel_on_carried_wait;
/* NULL when memory is out. */
struct krait_kcpu *krait_kernel_cpu_at(struct krait_kernel_states *m, uint32_t number);
/* Another thread has the CPU, or had it until now: the switch of who had it by what is known was lost. */
void krait_kernel_expect(struct krait_kernel_states *m, const struct krait_kcpu *cpu,
                         const struct krait_kthread *t);
/* It has the CPU from now on. */
void krait_kernel_put_on(struct krait_kernel_states *m, struct krait_kcpu *cpu, struct krait_kthread *t);
/* States of a CPU and of the thread on it, from what is known of both. */
void krait_kernel_settle(struct krait_kernel_states *m, struct krait_kcpu *cpu);
/* Its CPU's event goes on from now on, until the next one's. NULL when memory is out. */
struct krait_kcpu *krait_kernel_happen(struct krait_kernel_states *m, const struct krait_kernel_event *ev);
/* That thread runs on the CPU, or with 0 none, whatever was known. */
void krait_kernel_correct(struct krait_kernel_states *m, struct krait_kcpu *cpu, int64_t tid);
/* Where events were lost: what a thread does now does not follow from its state. It was in that up to the
 * first loss since, and what it did then is unknown. */
void krait_kernel_doubt(struct krait_kernel_states *m, struct krait_kthread *t);
krait_kernel_event_handler krait_kernel_on_lost; /* events of a CPU are missing from now on, up to its next */
krait_kernel_event_handler krait_kernel_on_found; /* who runs on a CPU since before its first event */
/* Another thread has the CPU, or none. */
void krait_kernel_log_run(struct krait_kernel_states *m, struct krait_kcpu *cpu);
/* Who had the CPU in an interval in which a thread was ready for it, and which is over now. */
void krait_kernel_keep_had(struct krait_kernel_states *m, const struct krait_kthread *t,
                           struct krait_kinterval *interval);
/* Sets err to why there was nothing to read; returns -ENODATA. */
int krait_kernel_no_events(const struct krait_kernel_events *events,
                           const struct krait_kernel_options *options, struct krait_err *err);
/* A thread is found running, and no event said how it came to that. */
void krait_kernel_found_running(struct krait_kernel_states *m, struct krait_kthread *t);

krait_kcpu_step krait_kernel_exec_thread;
krait_kcpu_step krait_kernel_run_thread;
krait_kcpu_step krait_kernel_leave_thread;
krait_kcpu_step krait_kernel_end_thread;
krait_kcpu_step krait_kernel_fault_thread;
krait_kcpu_step krait_kernel_name_running;
krait_kcpu_step krait_kernel_begin_call;
krait_kcpu_step krait_kernel_end_call;

#endif
