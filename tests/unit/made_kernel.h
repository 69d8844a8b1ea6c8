/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernel's part of a made recording: a CTF trace of few event classes, beside the program's.
 */
#ifndef KRAIT_TESTS_MADE_KERNEL_H
#define KRAIT_TESTS_MADE_KERNEL_H

#include "made_trace.h"

enum { MADE_KERNEL_THREADS = 6 }; /* numbers from 9; 10 is the program's */

/* The offset of the clock is MADE_EPOCH_NS. */
static const char made_kernel_metadata[] =
    "/* CTF 1.8 */\n"
    "typealias integer { size = 8; align = 8; signed = true; } := i8;\n"
    "typealias integer { size = 32; align = 8; } := u32;\n"
    "typealias integer { size = 64; align = 8; map = clock.m.value; } := t64;\n"
    "trace { major = 1; minor = 8; byte_order = le; };\n"
    "env { domain = \"kernel\"; hostname = \"made\"; };\n"
    "clock { name = m; freq = 1000000000; offset = 1767225600000000000; };\n"
    "stream { packet.context := struct { i8 cpu_id; };\n"
    "event.header := struct { integer { size = 8; align = 8; } id; t64 timestamp; };\n"
    "event.context := struct { i8 _tid; }; };\n"
    "event { name = \"sched_switch\"; id = 0;\n"
    "  fields := struct { i8 prev_tid; i8 prev_state; i8 next_tid; string next_comm; }; };\n"
    "event { name = \"syscall_entry_read\"; id = 1; fields := struct { i8 fd; }; };\n"
    "event { name = \"syscall_exit_read\"; id = 2; fields := struct { i8 ret; }; };\n"
    "event { name = \"cpu_frequency\"; id = 3; fields := struct { u32 state; i8 cpu_id; }; };\n"
    "event { name = \"sched_wakeup\"; id = 4; fields := struct { i8 tid; }; };\n";

static inline void made_kernel_event(struct krait_buf *to, uint8_t id, uint64_t t_ns, uint8_t tid,
                                     const void *fields, size_t n)
{
    krait_buf_char(to, (char)id);
    krait_buf_add(to, &t_ns, sizeof(t_ns));
    krait_buf_char(to, (char)tid);
    krait_buf_add(to, fields, n);
}

/* A switch between two threads every microsecond; those with even numbers read, the first wakes the third. */
static inline void made_kernel_events(struct krait_buf *to, uint32_t switches)
{
    for (uint32_t i = 0; i < switches; i++) {
        uint8_t from = (uint8_t)(9 + i % MADE_KERNEL_THREADS),
                next = (uint8_t)(9 + (i + 1) % MADE_KERNEL_THREADS);
        uint64_t t_ns = 1000 * (i + 1ull);
        const uint8_t change[] = { from, i % 2, next, 't', 0 };
        made_kernel_event(to, 0, t_ns, from, change, sizeof(change));
        made_kernel_event(to, next % 2 ? 2 : 1, t_ns + 100, next, "\3", 1);
        if (next == 9)
            made_kernel_event(to, 4, t_ns + 200, next, "\13", 1);
    }
    made_kernel_event(to, 3, 1000ull * (switches + 1), 9, "\0\0\1\0\0", 5);
}

static inline void made_write(const char *folder, const char *name, const void *bytes, size_t n)
{
    char path[160];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert(file);
    size_t written = fwrite(bytes, 1, n, file);
    assert(written == n);
    fclose(file);
}

/* In made->parent. */
static inline void made_kernel(const struct made *made, uint32_t switches)
{
    char folder[128];
    KRAIT_AUTO_BUF events = { 0 };
    snprintf(folder, sizeof(folder), "%s/kernel", made->parent);
    int rc = mkdir(folder, 0700);
    krait_buf_char(&events, 0); /* cpu_id */
    made_kernel_events(&events, switches);
    assert(!rc && !events.failed);
    made_write(folder, "metadata", made_kernel_metadata, sizeof(made_kernel_metadata) - 1);
    made_write(folder, "cpu_0", events.data, events.len);
}

#endif
