/* SPDX-License-Identifier: Apache-2.0
 *
 * Declared analyses: TOML, and the XML of Trace Compass, whose providers then see some events.
 */
#include "analysis/declared.h"
#include "analysis/provider.h"

static int ignore(void *ctx, uint64_t t_ns, const char *attribute, const char *value, bool updates)
{
    return 0;
}

static int ignore_segment(void *ctx, uint32_t rule, const char *fields, size_t n, uint64_t begin_ns,
                          uint64_t end_ns)
{
    return 0;
}

static void run(struct krait_rules *rules)
{
    static const struct krait_provider_told told = { NULL, ignore, ignore_segment };
    static const char *const names[] = { "sched_switch", "syscall_entry_read", "x" };
    struct krait_trigger_event said = {
        .fields = "{ cpu_id = 1 }, { next_tid = 5, comm = \"a\", n = -1 }", .host = "h", .cpu = 1, .tid = 7
    };
    for (uint32_t i = 0; i < rules->count; i++) {
        const struct krait_interval_rule *rule = &rules->items[i];
        for (size_t n = 0; n < KRAIT_ARRAY_LEN(names); n++) {
            said.name = names[n];
            said.message = NULL;
            for (uint32_t t = 0; t < rule->trigger_count; t++) {
                KRAIT_AUTO_BUF text = { 0 };
                if (krait_trigger_fires(&rule->triggers[t], &said))
                    krait_trigger_fill(&rule->triggers[t], &rule->triggers[t].key, &said, &text);
            }
            if (rule->provider)
                krait_provider_event(rule->provider, &said, n, &told);
        }
        if (rule->provider)
            krait_provider_end(rule->provider, UINT64_MAX, KRAIT_ARRAY_LEN(names), &told);
    }
    krait_buf_done(&said.text);
    krait_buf_done(&said.own);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct krait_err err;
    KRAIT_CLEANUP(krait_rules_done) struct krait_rules rules = { 0 };
    int rc = size && *data == '<' ? krait_provider_read(&rules, "f", (const char *)data, size, NULL, &err)
                                  : krait_declared_read(&rules, "f", (const char *)data, size, NULL, &err);
    if (!rc)
        run(&rules);
    return 0;
}
