/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/trigger.h"

#include "base/json.h"
#include "trace/fields.h"
#include "trace/importer.h"

#include <fnmatch.h>
#include <string.h>

/* Where a task's spans begin, its thread. */
static int64_t tid_of(const struct krait_trace *trace, const struct krait_track *track)
{
    return track->thread != KRAIT_NO_ID   ? (int64_t)trace->threads[track->thread].tid
           : track->of == KRAIT_OF_THREAD ? (int64_t)track->number
                                          : -1;
}

void krait_trigger_event_of(struct krait_trigger_event *said, const struct krait_trace *trace,
                            const struct krait_track *track, const char *name, const char *fields)
{
    said->name = name;
    said->fields = fields;
    if (said->track == track)
        return;
    said->track = track;
    said->host = track->host;
    said->thread = track->thread;
    said->task =
        track->of == KRAIT_OF_TASK && said->tasks ? krait_task_keys_of(said->tasks, track) : KRAIT_NO_ID;
    said->cpu = -1;
    said->tid = tid_of(trace, track);
    said->pid = track->pid ? (int64_t)track->pid : -1;
    said->is_raw_too = track->importer == KRAIT_IMPORTER_kernel_said;
}

void krait_trigger_read_message(struct krait_trigger_event *said)
{
    said->message = krait_fields_message(said->fields, &said->own, &said->n);
    if (said->message)
        return;
    krait_buf_clear(&said->text);
    krait_buf_fmt(&said->text, "%s%s%s", said->name, *said->fields ? " " : "", said->fields);
    said->n = said->text.len;
    said->message = said->text.data ? said->text.data : "";
}

/* -- whether it fires -- */

static const char *glob_of(const struct krait_trigger *trigger, const char *event)
{
    for (uint32_t i = 0; i < trigger->event_count; i++) {
        if (fnmatch(trigger->events[i], event, 0) == 0)
            return trigger->events[i];
    }
    return NULL;
}

bool krait_trigger_may(const struct krait_trigger *trigger, const char *event)
{
    return !trigger->event_count || glob_of(trigger, event);
}

bool krait_trigger_number(const char *text, double *number)
{
    char *end;
    *number = strtod(text, &end);
    return end > text && !*end;
}

static bool is_one(const struct krait_condition *c, const char *text)
{
    double number, other;
    bool is_number = krait_trigger_number(text, &number);
    for (uint32_t i = 0; i < c->count; i++) {
        if (is_number && krait_trigger_number(c->values[i], &other) ? number == other
                                                                    : fnmatch(c->values[i], text, 0) == 0)
            return true;
    }
    return false;
}

static bool holds(const struct krait_condition *c, const char *text)
{
    double number, other;
    if (c->op == KRAIT_IS || c->op == KRAIT_IS_NOT)
        return is_one(c, text) == (c->op == KRAIT_IS);
    if (!krait_trigger_number(text, &number) || !krait_trigger_number(c->values[0], &other))
        return false;
    return c->op == KRAIT_LESS           ? number < other
           : c->op == KRAIT_LESS_OR_SAME ? number <= other
           : c->op == KRAIT_MORE         ? number > other
                                         : number >= other;
}

bool krait_trigger_holds(const struct krait_trigger *trigger, struct krait_trigger_event *said)
{
    KRAIT_AUTO_BUF text = { 0 };
    for (uint32_t i = 0; i < trigger->where_count; i++) {
        krait_buf_clear(&text);
        if (!krait_trigger_get(trigger, trigger->where[i].part, said, &text) ||
            !holds(&trigger->where[i], text.data ? text.data : ""))
            return false;
    }
    return true;
}

bool krait_trigger_fires(const struct krait_trigger *trigger, struct krait_trigger_event *said)
{
    if (trigger->call || (trigger->event_count ? said->is_raw_too : said->is_by_name))
        return false;
    if (!krait_trigger_may(trigger, said->name))
        return false;
    if (trigger->message) {
        if (!said->message)
            krait_trigger_read_message(said);
        if (!krait_regex_find(trigger->message, said->message, said->n))
            return false;
    }
    return krait_trigger_holds(trigger, said);
}

/* -- what is taken -- */

static bool get_number(int64_t number, struct krait_buf *to)
{
    if (number >= 0)
        krait_json_u64(to, (uint64_t)number);
    return number >= 0;
}

static bool get_starred(const struct krait_trigger *trigger, const struct krait_trigger_event *said,
                        struct krait_buf *to)
{
    const char *glob = glob_of(trigger, said->name), *star = glob ? strchr(glob, '*') : NULL;
    if (star)
        krait_buf_str(to, said->name + KRAIT_MIN((size_t)(star - glob), strlen(said->name)));
    return star;
}

static bool get_event(const struct krait_trigger *trigger, const struct krait_trigger_event *said,
                      struct krait_buf *to)
{
    krait_buf_str(to, said->name);
    return true;
}

/* The first of some fields, of the event or of its contexts: what a stream of another tracer's does not tell as a whole. */
static bool get_first(const struct krait_trigger_event *said, const char *names, struct krait_buf *to)
{
    struct krait_fields all = { said->fields, said->fields + strlen(said->fields) };
    struct krait_field field;
    if (said->is_kernels || !krait_fields_find(&all, names, &field))
        return false;
    krait_buf_add(to, field.value, field.value_len);
    return true;
}

static bool get_cpu(const struct krait_trigger *trigger, const struct krait_trigger_event *said,
                    struct krait_buf *to)
{
    return get_number(said->cpu, to) || get_first(said, "cpu_id", to);
}

static bool get_thread(const struct krait_trigger *trigger, const struct krait_trigger_event *said,
                       struct krait_buf *to)
{
    return get_number(said->tid, to) || get_first(said, "vtid tid", to);
}

static bool get_process(const struct krait_trigger *trigger, const struct krait_trigger_event *said,
                        struct krait_buf *to)
{
    return get_number(said->pid, to) || get_first(said, "vpid pid", to);
}

static bool get_task(const struct krait_trigger *trigger, const struct krait_trigger_event *said,
                     struct krait_buf *to)
{
    struct krait_task_keys *tasks = said->tasks;
    if (!tasks)
        return false;
    uint32_t task =
        said->task == KRAIT_NO_ID ? krait_task_keys_at(tasks, said->thread, said->t_ns) : said->task;
    const char *name = krait_task_keys_name(tasks, task);
    krait_buf_str(to, name ? name : "");
    return name;
}

static bool get_host(const struct krait_trigger *trigger, const struct krait_trigger_event *said,
                     struct krait_buf *to)
{
    krait_buf_str(to, said->host);
    return *said->host;
}

static const struct {
    const char *name;
    bool (*get)(const struct krait_trigger *trigger, const struct krait_trigger_event *said,
                struct krait_buf *to);
} parts[] = { { "$event", get_event },   { "$*", get_starred },       { "$cpu", get_cpu },
              { "$thread", get_thread }, { "$process", get_process }, { "$task", get_task },
              { "$host", get_host } };

_Static_assert(KRAIT_ARRAY_LEN(parts) == KRAIT_TRIGGER_PARTS, "KRAIT_TRIGGER_PARTS");

const char *krait_trigger_part(size_t i)
{
    return i < KRAIT_ARRAY_LEN(parts) ? parts[i].name : NULL;
}

bool krait_trigger_is_part(const char *name)
{
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(parts); i++) {
        if (strcmp(parts[i].name, name) == 0)
            return true;
    }
    return false;
}

/* Of krait's own, whose text has no contexts: the track says them. */
static bool get_context(const struct krait_trigger_event *said, const char *name, struct krait_buf *to)
{
    bool is_thread = strcmp(name, "vtid") == 0, is_process = strcmp(name, "vpid") == 0;
    if (said->is_kernels || !(is_thread || is_process))
        return false;
    return get_number(is_thread ? said->tid : said->pid, to);
}

/* What the program added to a mark or to a log record: there the name is not one of events.def. */
static bool get_added(struct krait_fields own, const char *name, struct krait_buf *to)
{
    KRAIT_AUTO_BUF text = { 0 };
    size_t n;
    const char *json = krait_fields_added(own, &text, &n);
    return json && krait_fields_get_json(json, n, name, to);
}

/* Of the event itself, or else of its contexts, or of what the program added to it; of a call, an argument. */
static bool get_field(const struct krait_trigger_event *said, const char *name, struct krait_buf *to)
{
    if (said->arguments && krait_fields_get_json(said->arguments, strlen(said->arguments), name, to))
        return true;
    if (get_context(said, name, to))
        return true;
    const struct krait_fields all = { said->fields, said->fields + strlen(said->fields) };
    return krait_fields_get(krait_fields_own(all), name, to) || krait_fields_get(all, name, to) ||
           (!said->is_kernels && get_added(krait_fields_own(all), name, to));
}

bool krait_trigger_get(const struct krait_trigger *trigger, const char *part,
                       struct krait_trigger_event *said, struct krait_buf *to)
{
    bool is_field = *part != '$';
    uint32_t group = is_field && trigger->message ? krait_regex_group(trigger->message, part) : 0;
    size_t n = 0;
    if (group) {
        const char *text = krait_regex_part(trigger->message, group, &n);
        krait_buf_add(to, text ? text : "", n);
        return text;
    }
    if (is_field)
        return get_field(said, part, to);
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(parts); i++) {
        if (strcmp(parts[i].name, part) == 0)
            return parts[i].get(trigger, said, to);
    }
    return false;
}

bool krait_trigger_get_slice(struct krait_task_keys *tasks, const struct krait_trigger_slice *slice,
                             const char *part, struct krait_buf *to)
{
    static const struct krait_trigger plain = { .role = KRAIT_TRIGGER_START };
    struct krait_trigger_event said = { .tasks = tasks, .t_ns = slice->begin_ns };
    if (krait_fields_get_json(slice->fields, strlen(slice->fields), part, to))
        return true;
    krait_trigger_event_of(&said, tasks->trace, slice->track, slice->name, "");
    said.task = slice->task == KRAIT_NO_ID ? said.task : slice->task;
    return krait_trigger_get(&plain, part, &said, to);
}

bool krait_trigger_fill(const struct krait_trigger *trigger, const struct krait_template *template,
                        struct krait_trigger_event *said, struct krait_buf *to)
{
    for (uint32_t i = 0; i < template->count; i++) {
        const struct krait_template_piece *piece = &template->pieces[i];
        if (!piece->is_part)
            krait_buf_str(to, piece->text);
        else if (!krait_trigger_get(trigger, piece->text, said, to))
            return false;
    }
    return true;
}

uint32_t krait_trigger_key_group(const struct krait_trigger *trigger)
{
    return trigger->message ? krait_regex_group(trigger->message, "key") : 0;
}

bool krait_trigger_is_keyed(const struct krait_trigger *trigger)
{
    return trigger->key.count || krait_trigger_key_group(trigger);
}

/* The key's group where a template names it alone. */
static uint32_t taken_by_key(const struct krait_trigger *trigger)
{
    return trigger->key.count == 1 && trigger->key.pieces[0].is_part
               ? krait_regex_group(trigger->message, trigger->key.pieces[0].text)
               : krait_trigger_key_group(trigger);
}

uint32_t krait_trigger_what_group(const struct krait_trigger *trigger)
{
    if (!trigger->message)
        return 0;
    uint32_t named =
        krait_regex_group(trigger->message, trigger->role == KRAIT_TRIGGER_STATE ? "state" : "value");
    uint32_t first = krait_regex_group(trigger->message, "1");
    uint32_t second = krait_regex_group(trigger->message, "2");
    return named ? named : first && first == taken_by_key(trigger) ? second : first;
}
