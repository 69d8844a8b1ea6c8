/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/kernel/kernel_device.h"

#include "trace/kernel/kernel_machine.h"

typedef struct krait_kernel_states machine;

static uint32_t intern(machine *m, const char *text, size_t n)
{
    uint32_t id = krait_strtab_add(&m->devices, text, n);
    m->failed |= id == KRAIT_NO_ID;
    return id;
}

/* The kernel's own number: 20 bits for the minor (linux/kdev_t.h). No interface's name has a colon
 * (dev_valid_name() of net/core/dev.c). */
static uint32_t disk_of(machine *m, int64_t dev)
{
    char text[32];
    int n = snprintf(text, sizeof(text), "%u:%u", (uint32_t)dev >> 20, (uint32_t)dev & 0xfffff);
    return dev > 0 ? intern(m, text, (size_t)n) : KRAIT_NO_ID;
}

uint32_t krait_kernel_device_of(machine *m, const struct krait_kernel_event *ev)
{
    if (!m->options->watch)
        return KRAIT_NO_ID;
    if (ev->cls->kind == KRAIT_KERNEL_EVENT_DISK)
        return disk_of(m, krait_kernel_event_int(ev, 0));
    size_t n = 0;
    const char *name = ev->cls->kind == KRAIT_KERNEL_EVENT_NET ? krait_kernel_event_text(ev, 2, &n) : "";
    return n ? intern(m, name, n) : KRAIT_NO_ID;
}

void krait_kernel_name_disk(void *ctx, const struct krait_kernel_event *ev)
{
    machine *m = ctx;
    size_t n;
    const char *name = krait_kernel_event_text(ev, 1, &n);
    uint32_t disk = disk_of(m, krait_kernel_event_int(ev, 0));
    if (disk == KRAIT_NO_ID || !n)
        return;
    uint32_t named = intern(m, name, n);
    m->failed |= krait_map_put(&m->disk_names, disk, named) != 0;
}

const char *krait_kernel_device(const machine *m, uint32_t device)
{
    const uint64_t *named = krait_map_get(&m->disk_names, device);
    return m->devices.texts[named ? *named : device];
}
