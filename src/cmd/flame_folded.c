/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/flame_folded.h"

#include "base/fmt.h"
#include "cmd/terminal.h"

#include <string.h>

/* By the letter that a unit begins with. */
static uint64_t nanoseconds(const char *unit)
{
    return *unit == 'm' ? KRAIT_NS_PER_MS : *unit == 'u' ? KRAIT_NS_PER_US : *unit == 'n' ? 1 : 0;
}

const char *krait_flame_folded_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return strcmp(path, "-") == 0 ? "standard input" : slash ? slash + 1 : path;
}

/* Samples stand where calls do: they become the time that they are. */
static void make_times(struct krait_calltree *tree, uint64_t unit_ns)
{
    for (uint32_t i = 0; i < tree->count; i++) {
        tree->nodes[i].self_ns = tree->nodes[i].calls * unit_ns;
        tree->nodes[i].calls = 0;
    }
}

int krait_flame_folded_open(struct krait_calltree **tree, struct krait_trace **trace, bool *counts_samples,
                            const char *path, const char *unit, struct krait_err *err)
{
    struct krait_folded_facts facts = { 0 };
    int rc = krait_calltree_read_folded(tree, trace, path, &facts, err);
    if (rc)
        return rc;
    uint64_t unit_ns = unit ? nanoseconds(unit) : facts.is_microseconds ? KRAIT_NS_PER_US : 0;
    if (unit_ns)
        make_times(*tree, unit_ns);
    *counts_samples = !unit_ns;
    if (facts.skipped)
        krait_terminal_say(
            NULL, 0,
            "krait flame: warning: %s: left out %llu line%s that %s no folded stack, line %llu first",
            krait_flame_folded_name(path), (unsigned long long)facts.skipped, facts.skipped == 1 ? "" : "s",
            facts.skipped == 1 ? "is" : "are", (unsigned long long)facts.first);
    return 0;
}
