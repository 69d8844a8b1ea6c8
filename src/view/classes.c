/* SPDX-License-Identifier: Apache-2.0 */
#include "view/classes.h"

#include <string.h>

/* Threads' states and CPUs' (trace/kernel/kernel_states.h), and waits for the GIL (trace/gil_track.c). */
const struct krait_class krait_classes[] = {
    { "user", "run" },
    { "system", "system" },
    { "interrupt", "interrupt" },
    { "softirq", "interrupt" },
    { "woken", "ready" },
    { "preempted", "ready" },
    { "throttled", "ready" },
    { "blocked_disk", "wait" },
    { "blocked_network", "wait" },
    { "blocked_timer", "wait" },
    { "blocked_lock", "lock" },
    { "blocked_child", "wait" },
    { "blocked_page_fault", "wait" },
    { "blocked_stopped", "wait" },
    { "blocked_other", "wait" },
    { "idle", "idle" },
    { "unknown", "unknown" },
    { "gone", "unknown" },
    { "waits for the GIL", "lock" },
};

const uint32_t krait_class_count = KRAIT_ARRAY_LEN(krait_classes);

uint8_t krait_class_of(const char *text)
{
    for (uint32_t i = 0; i < krait_class_count; i++) {
        if (strcmp(krait_classes[i].name, text) == 0)
            return (uint8_t)i;
    }
    return (uint8_t)(krait_class_count + (uint32_t)(krait_hash_bytes(text, strlen(text)) >> 32) % KRAIT_HUES);
}

/* A program's own packages come before the interpreter's and the standard library: they are what people look for. */
static uint64_t weight_of(const struct krait_func *func)
{
    enum { OWN = 10000 };
    const char *library = strstr(func->file, "/lib/python");
    bool is_standard = library && !strstr(library, "-packages/");
    return is_standard || func->kind == KRAIT_FUNC_C || *func->file == '<' ? 1 : OWN;
}

static int give(const struct krait_trace *trace, struct krait_strtab *texts, uint32_t *package_of,
                uint8_t *hues)
{
    for (uint32_t i = 0; i < trace->func_count; i++) {
        const char *module = trace->funcs[i].module;
        package_of[i] = krait_strtab_add(texts, module, strcspn(module, "."));
        if (package_of[i] == KRAIT_NO_ID)
            return -ENOMEM;
    }
    KRAIT_AUTO_FREE struct krait_package *packages = calloc(KRAIT_MAX(texts->len, 1u), sizeof(*packages));
    if (!packages)
        return -ENOMEM;
    for (uint32_t i = 0; i < texts->len; i++)
        packages[i].text = texts->texts[i];
    for (uint32_t i = 0; i < trace->func_count; i++)
        packages[package_of[i]].weight += weight_of(&trace->funcs[i]);
    int rc = krait_hues_give(packages, texts->len);
    for (uint32_t i = 0; i < trace->func_count && !rc; i++)
        hues[i] = (uint8_t)packages[package_of[i]].hue;
    return rc;
}

uint8_t *krait_hues_of_funcs(const struct krait_trace *trace)
{
    KRAIT_CLEANUP(krait_strtab_done) struct krait_strtab texts = { 0 };
    KRAIT_AUTO_FREE uint32_t *package_of = malloc(KRAIT_MAX(trace->func_count, 1u) * sizeof(*package_of));
    uint8_t *hues = calloc(KRAIT_MAX(trace->func_count, 1u), sizeof(*hues));
    if (hues && package_of && !give(trace, &texts, package_of, hues))
        return hues;
    free(hues);
    return NULL;
}
