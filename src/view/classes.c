/* SPDX-License-Identifier: Apache-2.0 */
#include "view/classes.h"

#include "trace/track.h"

#include <string.h>

/* Threads' states and CPUs' (trace/kernel/kernel_states.h), waits for the GIL (trace/gil_track.c), states of tasks
 * (trace/tasks.h), and what is missing (trace/lost_track.c). */
const struct krait_class krait_classes[] = {
    { "user", "run", KRAIT_WALL_ON_CPU },
    { "system", "system", KRAIT_LOOK_SYSTEM },
    { "interrupt", "interrupt", KRAIT_LOOK_INTERRUPT },
    { "softirq", "interrupt", KRAIT_LOOK_INTERRUPT },
    { "woken", "ready", KRAIT_WALL_RUNNABLE },
    { "preempted", "ready", KRAIT_WALL_RUNNABLE },
    { "throttled", "ready", KRAIT_WALL_THROTTLED },
    { "blocked_disk", "wait", KRAIT_WALL_DISK },
    { "blocked_network", "wait", KRAIT_WALL_NETWORK },
    { "blocked_timer", "wait", KRAIT_WALL_TIMER },
    { "blocked_lock", "lock", KRAIT_WALL_LOCK },
    { "blocked_child", "wait", KRAIT_WALL_CHILD },
    { "blocked_page_fault", "wait", KRAIT_WALL_FAULT },
    { "blocked_stopped", "wait", KRAIT_WALL_STOPPED },
    { "blocked_other", "wait", KRAIT_WALL_OTHER },
    { "idle", "idle", KRAIT_LOOK_IDLE },
    { "unknown", "unknown", KRAIT_WALL_UNKNOWN },
    { "gone", "unknown", KRAIT_WALL_UNKNOWN },
    { KRAIT_TRACK_GIL, "lock", KRAIT_WALL_GIL },
    { "running", "run", KRAIT_WALL_ON_CPU },
    { "ready", "ready", KRAIT_WALL_RUNNABLE },
    { "timer", "wait", KRAIT_WALL_TIMER },
    { "lock", "lock", KRAIT_WALL_LOCK },
    { "queue", "lock", KRAIT_WALL_LOCK },
    { "socket", "wait", KRAIT_WALL_NETWORK },
    { "child", "wait", KRAIT_WALL_CHILD },
    { "task", "wait", KRAIT_WALL_OTHER },
    { "future", "wait", KRAIT_WALL_OTHER },
    { "switch", "wait", KRAIT_WALL_OTHER },
    { KRAIT_TRACK_EVENTS_LOST, "lost", KRAIT_WALL_UNKNOWN },
    { KRAIT_TRACK_OFF, "off", KRAIT_WALL_UNKNOWN },
};

const struct krait_look_words krait_looks[KRAIT_LOOKS] = {
#define X(name, text, title, words) { text, words },
    KRAIT_WALL_STATES(X)
#undef X
        { "system", "in the kernel" },
    { "interrupt", "interrupt" },
    { "idle", "idle" },
};

const uint32_t krait_class_count = KRAIT_ARRAY_LEN(krait_classes);
_Static_assert(KRAIT_ARRAY_LEN(krait_classes) <= 64, "krait_drawing.classes_seen has a bit for each");

bool krait_class_runs(uint8_t class)
{
    static const char *const roles[] = { "run", "system", "interrupt" };
    const char *role = class < krait_class_count ? krait_classes[class].role : "";
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(roles); i++) {
        if (strcmp(role, roles[i]) == 0)
            return true;
    }
    return false;
}

uint8_t krait_class_of(const char *text)
{
    for (uint32_t i = 0; i < krait_class_count; i++) {
        if (strcmp(krait_classes[i].name, text) == 0)
            return (uint8_t)i;
    }
    return (uint8_t)(krait_class_count + (uint32_t)(krait_hash_bytes(text, strlen(text)) >> 32) % KRAIT_HUES);
}

/* A program's own packages come before the interpreter's and the standard library, because users look for them. */
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
