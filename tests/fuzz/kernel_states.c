/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as two streams of the kernel's events, parted by ff ff ff ff: whatever happens in whatever order,
 * the states of each thread and CPU add up to the range, and durations lie between their extremes.
 */
#include "packets.h"
#include "tracks.h"

#include "trace/kernel/kernel_states.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

#define EVENT(id, name, fields) \
    "event { name = \"" name "\"; id = " #id "; fields := struct { " fields "}; };\n"

/* Few bytes an event, so that an input holds many: numbers of one byte, times that wrap. */
static const char metadata[] =
    "typealias integer { size = 8; align = 8; signed = true; } := i8;\n"
    "typealias integer { size = 8; align = 8; map = clock.m.value; } := t8;\n"
    "trace { major = 1; minor = 8; byte_order = le; };\n"
    "clock { name = m; };\n"
    "stream { packet.context := struct { i8 cpu_id; integer { size = 8; align = 8; } events_discarded; };\n"
    "event.header := struct { integer { size = 8; align = 8; } id; t8 timestamp; };\n"
    "event.context := struct { i8 _tid; }; };\n" EVENT(
        0, "sched_switch", "i8 prev_tid; i8 prev_state; i8 next_tid; string next_comm; ")
        EVENT(1, "sched_waking", "i8 tid; ") EVENT(2, "sched_wakeup", "i8 tid; ")
            EVENT(3, "sched_process_fork", "i8 child_tid; i8 child_pid; i8 parent_tid; ")
                EVENT(4, "sched_process_exit", "i8 tid; ") EVENT(5, "sched_process_free", "i8 tid; ") EVENT(
                    6, "lttng_statedump_process_state", "i8 tid; i8 pid; i8 type; i8 status; string name; ")
                    EVENT(7, "syscall_entry_read", "") EVENT(8, "syscall_exit_read", "i8 ret; ")
                        EVENT(9, "syscall_entry_futex", "") EVENT(10, "syscall_exit_futex", "i8 ret; ")
                            EVENT(11, "exit_syscall", "i8 ret; ") EVENT(12, "irq_handler_entry", "")
                                EVENT(13, "irq_handler_exit", "") EVENT(14, "irq_softirq_entry", "i8 vec; ")
                                    EVENT(15, "irq_softirq_exit", "")
                                        EVENT(16, "timer_hrtimer_expire_entry", "")
                                            EVENT(17, "block_rq_complete", "");

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    int rc = fuzz_make_dir();
    fuzz_write_file("metadata", metadata, sizeof(metadata) - 1);
    return rc;
}

static uint64_t sum_of(const uint64_t *ns, size_t count)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += ns[i];
    return sum;
}

static void check_spread(const struct krait_spread *spread)
{
    if (spread->count && (spread->min > spread->max || spread->sum < spread->max ||
                          krait_hist_count(&spread->hist) != spread->count))
        abort();
}

static bool keep_all(void *ctx, uint32_t index, int32_t tid)
{
    (void)ctx;
    return tid > 0 || index == 0;
}

/* Intervals are what the sums are of. */
static void check_intervals(const struct krait_kthread *t, int64_t end_ns)
{
    uint64_t ns[KRAIT_TS_COUNT] = { 0 };
    for (uint32_t i = 0; i < t->interval_count; i++) {
        int64_t until = i + 1 < t->interval_count ? t->intervals[i + 1].begin_ns : end_ns;
        ns[t->intervals[i].state] += (uint64_t)(until - t->intervals[i].begin_ns);
    }
    if (memcmp(ns, t->ns, sizeof(ns)) != 0)
        abort();
}

static void check(const struct krait_kernel_states *states)
{
    uint64_t range = (uint64_t)(states->end_ns - states->begin_ns);
    for (uint32_t i = 0; i < states->thread_count; i++) {
        if (sum_of(states->threads[i]->ns, KRAIT_TS_COUNT) != range)
            abort();
        check_intervals(states->threads[i], states->end_ns);
    }
    for (uint32_t i = 0; i < states->cpu_count; i++) {
        if (sum_of(states->cpus[i].ns, KRAIT_CS_COUNT) != (states->cpus[i].met ? range : 0))
            abort();
    }
    for (uint32_t i = 0; i < states->stats_count; i++)
        check_spread(&states->stats[i].took);
    for (uint32_t i = 0; i < KRAIT_LATENCIES; i++)
        check_spread(&states->latencies[i]);
}

static void analyse(struct krait_kernel_options options)
{
    struct krait_kernel_events *events = NULL;
    struct krait_kernel_states *states = NULL;
    struct krait_err err = { 0 };
    const char *path = fuzz_dir;
    int rc = krait_kernel_events_open(&events, &path, 1, &err);
    rc = rc ? rc : krait_kernel_events_prepare(events, &err);
    rc = rc ? rc : krait_kernel_states_new(&states, events, &options, &err);
    if (rc && !err.text[0])
        abort();
    if (states)
        check(states);
    krait_kernel_states_free(states);
    krait_kernel_events_close(events);
}

static void walk_tracks(void)
{
    struct krait_trace *trace;
    struct krait_err err = { 0 };
    const char *path = fuzz_dir;
    if (krait_trace_open(&trace, &path, 1, KRAIT_NEEDS_KERNEL, &err))
        return;
    fuzz_tracks(trace, 100, 1000);
    krait_trace_close(trace);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_write_part("s0", &data, &size);
    fuzz_write_file("s1", data, size);
    analyse((struct krait_kernel_options){ .until_ns = UINT64_MAX, .keep = keep_all });
    analyse((struct krait_kernel_options){ .from_ns = 100, .until_ns = 1000, .keep = keep_all });
    walk_tracks();
    return 0;
}
