/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/switches.h"

#include <linux/perf_event.h>

#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#ifndef PERF_RECORD_MISC_SWITCH_OUT_PREEMPT /* Linux 4.17 */
#define PERF_RECORD_MISC_SWITCH_OUT_PREEMPT (1 << 14)
#endif

/* A record, as the attributes below ask for it. */
struct record {
    struct perf_event_header header;
    uint32_t cpu, reserved;
};

/* Those that functions keep for their callers, stack pointer and place: each costs the thread time, and rules need no others but in
 * a few prologues. The kernel's numbers (asm/perf_regs.h) are in the order of their bits in the mask; these are DWARF's. */
#if defined(__x86_64__)
enum { REGISTERS = 0xf001c2 }; /* BX BP SP IP, R12 to R15 */
static const uint8_t numbers[] = { 3, 6, KRAIT_CFI_SP, KRAIT_CFI_PC, 12, 13, 14, 15 };
#elif defined(__aarch64__)
#define REGISTERS UINT64_C(0x1fff80000) /* X19 to X29, LR, SP, PC */
static const uint8_t numbers[] = {
    19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, KRAIT_CFI_SP, KRAIT_CFI_PC
};
#endif

/* What Linux before 5.11 has for most of them on x86-64 (perf_get_regs_user() in arch/x86/kernel/perf_regs.c). */
static const uint64_t NOT_KNOWN = UINT64_MAX;

struct sample {
    struct perf_event_header header;
    uint32_t cpu, reserved;
    uint64_t abi;
    uint64_t registers[KRAIT_ARRAY_LEN(numbers)];
};

/* By how much the head moves at each switch. */
static uint64_t bytes_of(const struct krait_switches *switches)
{
    return sizeof(struct record) + (switches->registers ? sizeof(struct sample) / 2 : 0);
}

/* Its ring is mapped for reading alone: the kernel then overwrites the oldest, and waits for nobody. */
bool krait_switches_open(struct krait_switches *switches, pid_t tid, bool registers)
{
    struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
                                    .size = sizeof(attr),
                                    .config = PERF_COUNT_SW_DUMMY,
                                    .sample_type = PERF_SAMPLE_CPU,
                                    .exclude_kernel = 1,
                                    .exclude_hv = 1,
                                    .sample_id_all = 1,
                                    .context_switch = 1,
                                    .watermark = 1, /* nobody waits for it: half of what a sample takes */
                                    .wakeup_watermark = INT32_MAX };
    if (registers) { /* a switch happens in the kernel */
        attr.config = PERF_COUNT_SW_CONTEXT_SWITCHES;
        attr.sample_period = 1;
        attr.sample_type |= PERF_SAMPLE_REGS_USER;
        attr.sample_regs_user = REGISTERS;
        attr.exclude_kernel = 0;
    }
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    KRAIT_AUTO_CLOSE int fd = (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
    void *mapped = fd < 0 ? MAP_FAILED : mmap(NULL, 2 * page, PROT_READ, MAP_SHARED, fd, 0);
    *switches = (struct krait_switches){ 0 };
    if (mapped != MAP_FAILED) /* which keeps the event */
        *switches = (struct krait_switches){ mapped, 2 * page, registers };
    return switches->page;
}

void krait_switches_close(struct krait_switches *switches)
{
    if (switches->page)
        munmap(switches->page, switches->size);
    *switches = (struct krait_switches){ 0 };
}

/* 0: none is read, or there is no record yet. */
static uint64_t head_of(const struct krait_switches *switches)
{
    if (!switches->page)
        return 0;
    __atomic_thread_fence(__ATOMIC_SEQ_CST); /* what was copied before was read before */
    return __atomic_load_n(&switches->page->data_head, __ATOMIC_ACQUIRE);
}

/* Copies `size` bytes of the ring, which end at `end`. */
static void copy(const struct krait_switches *switches, uint64_t end, void *to, size_t size)
{
    uint64_t ring = switches->size / 2, begin = (end - size) % ring;
    size_t first = KRAIT_MIN(size, (size_t)(ring - begin));
    const char *from = (const char *)switches->page + ring;
    memcpy(to, from + begin, first);
    memcpy((char *)to + first, from, size - first);
}

bool krait_switches_last(const struct krait_switches *switches, struct krait_switch *last)
{
    struct record record;
    uint64_t head = head_of(switches);
    if (!head)
        return false;
    copy(switches, head, &record, sizeof(record));
    bool is_whole = record.header.type == PERF_RECORD_SWITCH && record.header.size == sizeof(record);
    *last = (struct krait_switch){ .count = head,
                                   .away = record.header.misc & PERF_RECORD_MISC_SWITCH_OUT,
                                   .ready = record.header.misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT,
                                   .cpu = (int)record.cpu };
    return is_whole;
}

/* The kernel leaves samples out if there are too many (kernel.perf_event_max_sample_rate). */
bool krait_switches_registers(const struct krait_switches *switches, struct krait_registers *registers)
{
    struct sample sample;
    uint64_t head = head_of(switches);
    if (!switches->registers || head < sizeof(sample) + sizeof(struct record))
        return false;
    copy(switches, head - sizeof(struct record), &sample, sizeof(sample));
    bool is_one = sample.header.type == PERF_RECORD_SAMPLE && sample.header.size == sizeof(sample) &&
                  sample.abi == PERF_SAMPLE_REGS_ABI_64;
    *registers = (struct krait_registers){ 0 };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(numbers) && is_one; i++) {
        registers->value[numbers[i]] = sample.registers[i];
        registers->known |= (uint64_t)(sample.registers[i] != NOT_KNOWN) << numbers[i];
    }
    return is_one;
}

uint64_t krait_switches_between(const struct krait_switches *switches, uint64_t before, uint64_t count)
{
    return (count - before) / bytes_of(switches);
}
