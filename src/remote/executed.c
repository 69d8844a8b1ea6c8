/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/executed.h"

#include "remote/maps.h"
#include "remote/memory.h"
#include "remote/thread.h"

#include <elf.h>

struct krait_executed krait_executed_read(pid_t pid)
{
    struct krait_executed executed = { .addr = krait_maps_auxv(pid, AT_RANDOM) };
    if (!executed.addr || krait_memory_read(pid, executed.addr, &executed.random, sizeof(executed.random)))
        return (struct krait_executed){ 0 };
    return executed;
}

bool krait_executed_is_other(struct krait_executed before, struct krait_executed now)
{
    return now.addr && (now.addr != before.addr || now.random != before.random);
}

bool krait_executed_is_to_come(pid_t pid)
{
    const uint64_t young_ns = 200 * KRAIT_NS_PER_MS;
    if (krait_task_age(pid) > young_ns)
        return false;
    struct krait_executed parents = krait_executed_read((pid_t)krait_task_number(pid, "PPid"));
    struct krait_executed its = krait_executed_read(pid);
    return its.addr && !krait_executed_is_other(parents, its);
}
