/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/kernel/machines.h"

#include "trace/kernel/kernel_events.h"

#include <string.h>

/* A folder, opened for its times. */
struct part {
    const struct krait_folder *folder;
    struct krait_kernel_events *events; /* NULL: they cannot be read */
    int64_t first_ns;                   /* INT64_MAX: it has none */
};

static bool is_one_host(const struct part *a, const struct part *b)
{
    return strcmp(krait_ctf_env_text(a->folder->metadata, "hostname", ""),
                  krait_ctf_env_text(b->folder->metadata, "hostname", "")) == 0;
}

static bool is_one_session(const struct part *a, const struct part *b)
{
    const struct krait_ctf_metadata *x = a->folder->metadata, *y = b->folder->metadata;
    return x->has_uuid && y->has_uuid && memcmp(x->uuid, y->uuid, sizeof(x->uuid)) == 0;
}

/* Whether the one that begins first goes on when the other one begins. */
static bool overlap(const struct part *a, const struct part *b)
{
    if (!a->events || !b->events || a->first_ns == INT64_MAX || b->first_ns == INT64_MAX)
        return false;
    return a->first_ns <= b->first_ns ? krait_kernel_events_reach(a->events, b->first_ns)
                                      : krait_kernel_events_reach(b->events, a->first_ns);
}

static bool is_one_machine(const struct part *a, const struct part *b)
{
    return is_one_host(a, b) && (a->folder->path == b->folder->path || is_one_session(a, b) || overlap(a, b));
}

/* All that were of one are of the other. */
static void join(uint32_t *machine, uint32_t count, uint32_t one, uint32_t other)
{
    for (uint32_t i = 0; i < count; i++)
        machine[i] = machine[i] == other ? one : machine[i];
}

static uint32_t number(uint32_t *machine, uint32_t count)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (machine[i] != i) /* the first of a machine bears its own number until here */
            machine[i] = machine[machine[i]];
        else
            machine[i] = found++;
    }
    return found;
}

static int open_part(struct part *part, const struct krait_folder *folder)
{
    const char *dir = folder->dir;
    struct krait_err ignored;
    *part = (struct part){ .folder = folder, .first_ns = INT64_MAX };
    int rc = krait_kernel_events_open(&part->events, &dir, 1, &ignored);
    if (!rc)
        part->first_ns = krait_kernel_events_first(part->events);
    return rc == -ENOMEM ? rc : 0;
}

int krait_kernel_machines_find(uint32_t *machine, struct krait_folder *const *folders, uint32_t count)
{
    KRAIT_AUTO_FREE struct part *parts = calloc(count, sizeof(*parts));
    int rc = parts ? 0 : -ENOMEM;
    for (uint32_t i = 0; i < count && !rc; i++) {
        machine[i] = i;
        rc = open_part(&parts[i], folders[i]);
        for (uint32_t j = 0; j < i && !rc; j++) {
            uint32_t one = KRAIT_MIN(machine[i], machine[j]), other = KRAIT_MAX(machine[i], machine[j]);
            if (one != other && is_one_machine(&parts[i], &parts[j]))
                join(machine, i + 1, one, other);
        }
    }
    for (uint32_t i = 0; i < count && parts; i++)
        krait_kernel_events_close(parts[i].events);
    return rc ? rc : (int)number(machine, count);
}
