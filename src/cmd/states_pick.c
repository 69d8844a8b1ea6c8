/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/states.h"

#include <string.h>

const char *krait_states_process_name(const struct states *s, uint32_t process)
{
    return process == KRAIT_NO_ID ? NULL : s->found->processes[process].name;
}

uint64_t krait_states_pid(const struct states *s, uint32_t process)
{
    return process == KRAIT_NO_ID ? KRAIT_SHEET_NONE : (uint64_t)s->found->processes[process].pid;
}

bool krait_states_is_recorded(const struct states *s, uint32_t process)
{
    return s->recorded && process != KRAIT_NO_ID && s->recorded[process];
}

/* Without --all, or a choice, the rest of the machine is left out. Recorded without rights there is none. */
bool krait_states_takes_all(const struct states *s)
{
    const struct krait_select *select = &s->options->select;
    return s->options->all || s->own || !s->recorded || select->threads.count || select->processes.count;
}

bool krait_states_takes_process(const struct states *s, uint32_t process)
{
    return (krait_states_takes_all(s) || krait_states_is_recorded(s, process)) &&
           krait_select_kprocess(&s->options->select, s->found, process);
}

const char *krait_states_thread_name(const struct states *s, const struct krait_kthread *t)
{
    const char *process = krait_states_process_name(s, t->process);
    bool is_plain =
        process && strcmp(t->name, process) == 0 && (uint64_t)t->tid != krait_states_pid(s, t->process);
    const char *recorded = is_plain ? krait_own_thread_name(&s->threads, t) : NULL;
    return recorded ? recorded : t->name;
}

bool krait_states_takes_thread(const struct states *s, const struct krait_kthread *t)
{
    const struct krait_select *select = &s->options->select;
    if (!krait_states_takes_all(s) && !krait_states_is_recorded(s, t->process))
        return false;
    if (krait_select_kthread(select, s->found, t))
        return true;
    const char *recorded = krait_own_thread_name(&s->threads, t);
    return recorded && krait_select_kprocess(select, s->found, t->process) &&
           krait_select_named(&select->threads, recorded, (uint32_t)krait_kthread_own_id(t));
}
