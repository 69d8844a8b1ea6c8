/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/executed.h"

#include "remote/memory.h"

#include <elf.h>
#include <stdio.h>

/* proc(5): the words that the kernel gave the program, as pairs of a key and a value. */
static uint64_t find_random(pid_t pid)
{
    char path[64];
    uint64_t pair[2] = { 0 };
    snprintf(path, sizeof(path), "/proc/%d/auxv", pid);
    KRAIT_AUTO_FILE FILE *file = fopen(path, "re");
    while (file && fread(pair, sizeof(pair), 1, file) == 1 && pair[0] != AT_NULL) {
        if (pair[0] == AT_RANDOM)
            return pair[1];
    }
    return 0;
}

struct krait_executed krait_executed_read(pid_t pid)
{
    struct krait_executed executed = { .addr = find_random(pid) };
    if (!executed.addr || krait_memory_read(pid, executed.addr, &executed.random, sizeof(executed.random)))
        return (struct krait_executed){ 0 };
    return executed;
}

bool krait_executed_is_other(struct krait_executed before, struct krait_executed now)
{
    return now.addr && (now.addr != before.addr || now.random != before.random);
}
