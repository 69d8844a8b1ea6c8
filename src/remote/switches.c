/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/switches.h"

#include <linux/perf_event.h>

#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#ifndef PERF_RECORD_MISC_SWITCH_OUT_PREEMPT /* Linux 4.17 */
#define PERF_RECORD_MISC_SWITCH_OUT_PREEMPT (1 << 14)
#endif

/* A record, as the attributes below ask for it. A page holds a whole number of them, so none wraps around. */
struct record {
    struct perf_event_header header;
    uint32_t cpu, reserved;
};
_Static_assert(sizeof(struct record) == KRAIT_SWITCH_BYTES, "records have one size");

/* Its ring is mapped for reading alone: the kernel then overwrites the oldest, and waits for nobody. */
bool krait_switches_open(struct krait_switches *switches, pid_t tid)
{
    struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
                                    .size = sizeof(attr),
                                    .config = PERF_COUNT_SW_DUMMY,
                                    .sample_type = PERF_SAMPLE_CPU,
                                    .exclude_kernel = 1,
                                    .exclude_hv = 1,
                                    .sample_id_all = 1,
                                    .context_switch = 1 };
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    KRAIT_AUTO_CLOSE int fd = (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
    void *mapped = fd < 0 ? MAP_FAILED : mmap(NULL, 2 * page, PROT_READ, MAP_SHARED, fd, 0);
    *switches = (struct krait_switches){ 0 };
    if (mapped != MAP_FAILED) /* which keeps the event */
        *switches = (struct krait_switches){ mapped, 2 * page };
    return switches->page;
}

void krait_switches_close(struct krait_switches *switches)
{
    if (switches->page)
        munmap(switches->page, switches->size);
    *switches = (struct krait_switches){ 0 };
}

bool krait_switches_last(const struct krait_switches *switches, struct krait_switch *last)
{
    if (!switches->page)
        return false;
    struct record record;
    uint64_t ring = switches->size / 2;
    __atomic_thread_fence(__ATOMIC_SEQ_CST); /* what was copied before was read before */
    uint64_t head = __atomic_load_n(&switches->page->data_head, __ATOMIC_ACQUIRE);
    if (!head)
        return false;
    memcpy(&record, (const char *)switches->page + ring + (head - sizeof(record)) % ring, sizeof(record));
    bool is_whole = record.header.type == PERF_RECORD_SWITCH && record.header.size == sizeof(record);
    *last = (struct krait_switch){ .count = head,
                                   .away = record.header.misc & PERF_RECORD_MISC_SWITCH_OUT,
                                   .ready = record.header.misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT,
                                   .cpu = (int)record.cpu };
    return is_whole;
}
