/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/trigger.h"

#include "trace/fields.h"

#include <fnmatch.h>
#include <string.h>

void krait_trigger_read_message(struct krait_trigger_event *said)
{
    struct krait_fields at = { said->fields, said->fields + strlen(said->fields) };
    struct krait_field field;
    if (krait_fields_find(&at, "message msg text buf", &field) && field.value[0] == '"') {
        said->message = krait_field_text(&field, &said->own, &said->n);
        return;
    }
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

bool krait_trigger_fires(const struct krait_trigger *trigger, struct krait_trigger_event *said)
{
    KRAIT_AUTO_BUF text = { 0 };
    if (said->is_kernels && !trigger->event_count)
        return false;
    if (!krait_trigger_may(trigger, said->name))
        return false;
    if (trigger->message) {
        if (!said->message)
            krait_trigger_read_message(said);
        if (!krait_regex_find(trigger->message, said->message, said->n))
            return false;
    }
    for (uint32_t i = 0; i < trigger->where_count; i++) {
        krait_buf_clear(&text);
        if (!krait_trigger_get(trigger, trigger->where[i].part, said, &text) ||
            !holds(&trigger->where[i], text.data ? text.data : ""))
            return false;
    }
    return true;
}

/* -- what is taken -- */

static bool get_number(int64_t number, struct krait_buf *to)
{
    if (number >= 0)
        krait_buf_fmt(to, "%lld", (long long)number);
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

static bool get_cpu(const struct krait_trigger *trigger, const struct krait_trigger_event *said,
                    struct krait_buf *to)
{
    return get_number(said->cpu, to);
}

static bool get_thread(const struct krait_trigger *trigger, const struct krait_trigger_event *said,
                       struct krait_buf *to)
{
    return get_number(said->tid, to);
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
} parts[] = { { "$event", get_event },
              { "$*", get_starred },
              { "$cpu", get_cpu },
              { "$thread", get_thread },
              { "$host", get_host } };

const char *krait_trigger_part(size_t i)
{
    return i < KRAIT_ARRAY_LEN(parts) ? parts[i].name : NULL;
}

/* Of the event itself, or else of its contexts. */
static bool get_field(const struct krait_trigger_event *said, const char *name, struct krait_buf *to)
{
    const struct krait_fields all = { said->fields, said->fields + strlen(said->fields) };
    return krait_fields_get(krait_fields_own(all), name, to) || krait_fields_get(all, name, to);
}

bool krait_trigger_get(const struct krait_trigger *trigger, const char *part,
                       struct krait_trigger_event *said, struct krait_buf *to)
{
    uint32_t group = trigger->message ? krait_regex_group(trigger->message, part) : 0;
    size_t n = 0;
    if (group) {
        const char *text = krait_regex_part(trigger->message, group, &n);
        krait_buf_add(to, text ? text : "", n);
        return text;
    }
    if (*part != '$')
        return get_field(said, part, to);
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(parts); i++) {
        if (strcmp(parts[i].name, part) == 0)
            return parts[i].get(trigger, said, to);
    }
    return false;
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
