/* SPDX-License-Identifier: Apache-2.0
 *
 * krait ctl PID set: other filters and another budget for a recording that runs. The collector writes them into the
 * control page and counts control->changes. A process that sees a new count, in a slow path or in its waking thread,
 * switches itself off, and its waking thread switches it on with what the page says then (python/switch.c).
 *
 *   set include=app*\nexclude=test*\noverhead=5\nc-calls=off
 *
 * A comma before a key divides as well, also before one that is none, so that it is refused. Each key replaces what there was
 * of it; include= and exclude= without a glob leave none.
 */
#include "base/array.h"
#include "base/buf.h"
#include "base/suggest.h"
#include "record/collector_inside.h"
#include "record/switch.h"

#include <stdlib.h>
#include <string.h>

struct change {
    struct krait_buf globs; /* strings as in control->filters */
    bool kinds[128];        /* that are replaced: of enum krait_filter_kind */
    uint32_t set, clear;    /* flags */
    bool has_overhead;
    double overhead;
};

static int bad(const char *item, const char *what, struct krait_err *err)
{
    return krait_err_set(err, -EINVAL, "set: '%s' %s", item, what);
}

static int set_globs(struct change *change, uint32_t kind, const char *item, const char *value,
                     struct krait_err *err)
{
    char c = (char)kind;
    change->kinds[kind] = true;
    if (!*value)
        return 0;
    krait_buf_add(&change->globs, &c, 1);
    krait_buf_add(&change->globs, value, strlen(value) + 1);
    return 0;
}

static int set_overhead(struct change *change, uint32_t of, const char *item, const char *value,
                        struct krait_err *err)
{
    char *end;
    change->overhead = strtod(value, &end);
    change->has_overhead = true;
    if (!*value || *end || !(change->overhead >= 0 && change->overhead <= 100))
        return bad(item, "is no percentage from 0 to 100", err);
    return 0;
}

static int set_flag(struct change *change, uint32_t flag, const char *item, const char *value,
                    struct krait_err *err)
{
    bool on = strcmp(value, "on") == 0;
    if (!on && strcmp(value, "off") != 0)
        return bad(item, "is neither on nor off", err);
    *(on ? &change->set : &change->clear) |= flag;
    return 0;
}

static const struct {
    const char *name;
    uint32_t of; /* what is passed to set: a kind of filter, or a flag */
    int (*set)(struct change *, uint32_t of, const char *item, const char *value, struct krait_err *);
} keys[] = {
    { "include", KRAIT_FILTER_INCLUDE, set_globs },
    { "exclude", KRAIT_FILTER_EXCLUDE, set_globs },
    { "overhead", 0, set_overhead },
    { "c-calls", KRAIT_RECORD_C_CALLS, set_flag },
};

/* Of the key that the text begins with, or KRAIT_ARRAY_LEN(keys). */
static size_t find_key(const char *text)
{
    size_t i = 0, n = strcspn(text, "=");
    while (i < KRAIT_ARRAY_LEN(keys) &&
           (text[n] != '=' || strlen(keys[i].name) != n || strncmp(text, keys[i].name, n) != 0))
        i++;
    return i;
}

/* Bytes of what looks like a key, without the equals sign; 0: it does not. */
static size_t key_length(const char *text)
{
    size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_");
    return text[n] == '=' ? n : 0;
}

/* All other commas are a value's: a glob may have some. */
static void divide_at_keys(char *items)
{
    for (char *comma = items; (comma = strchr(comma, ',')); comma++) {
        if (key_length(comma + 1))
            *comma = '\n';
    }
}

static int refuse_key(const char *item, struct krait_err *err)
{
    struct krait_suggest suggest = KRAIT_SUGGEST(item, strcspn(item, "="));
    KRAIT_AUTO_BUF what = { 0 };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(keys); i++)
        krait_suggest_try(&suggest, keys[i].name);
    krait_buf_str(&what, "is none of include=GLOB, exclude=GLOB, overhead=PERCENT, c-calls=on|off");
    if (suggest.best)
        krait_buf_fmt(&what, "; did you mean %s=?", suggest.best);
    return bad(item, what.data ? what.data : "is no key", err);
}

static int set_item(struct change *change, const char *item, struct krait_err *err)
{
    size_t i = find_key(item);
    if (i == KRAIT_ARRAY_LEN(keys))
        return refuse_key(item, err);
    return keys[i].set(change, keys[i].of, item, item + strlen(keys[i].name) + 1, err);
}

/* A program may write anything there meanwhile: what is read ends. */
static void copy_filters(char to[KRAIT_FILTER_BYTES], const struct krait_control *control)
{
    memcpy(to, control->filters, KRAIT_FILTER_BYTES);
    to[KRAIT_FILTER_BYTES - 2] = to[KRAIT_FILTER_BYTES - 1] = '\0';
}

/* The new filters, and then what is kept of the old ones. */
static int put_filters(const struct krait_control *control, const struct change *change, char *to,
                       struct krait_err *err)
{
    char old[KRAIT_FILTER_BYTES];
    size_t at = change->globs.len;
    copy_filters(old, control);
    memset(to, 0, KRAIT_FILTER_BYTES);
    if (at > KRAIT_FILTER_BYTES - 2)
        return krait_err_set(err, -E2BIG, "set: the globs take more than %d bytes", KRAIT_FILTER_BYTES - 2);
    if (at)
        memcpy(to, change->globs.data, at);
    for (const char *s = old; *s; s += strlen(s) + 1) {
        size_t n = strlen(s) + 1;
        if ((unsigned char)*s < sizeof(change->kinds) && change->kinds[(unsigned char)*s])
            continue;
        if (at + n > KRAIT_FILTER_BYTES - 2)
            return krait_err_set(err, -E2BIG, "set: the globs take more than %d bytes",
                                 KRAIT_FILTER_BYTES - 2);
        memcpy(to + at, s, n);
        at += n;
    }
    return 0;
}

static bool is_alike_in(const char *a, const char *b, enum krait_filter_kind kind)
{
    for (;; a += strlen(a) + 1, b += strlen(b) + 1) {
        while (*a && *a != (char)kind)
            a += strlen(a) + 1;
        while (*b && *b != (char)kind)
            b += strlen(b) + 1;
        if (!*a || !*b)
            return *a == *b;
        if (strcmp(a, b) != 0)
            return false;
    }
}

/* Whether the same functions are recorded with these filters: in what order the kinds come makes no difference. */
static bool are_alike(const char *filters, const struct krait_control *control)
{
    char old[KRAIT_FILTER_BYTES];
    copy_filters(old, control);
    return is_alike_in(filters, old, KRAIT_FILTER_INCLUDE) && is_alike_in(filters, old, KRAIT_FILTER_EXCLUDE);
}

static int apply(struct krait_collector *c, const struct change *change, struct krait_err *err)
{
    struct krait_control *control = c->shm.control;
    char filters[KRAIT_FILTER_BYTES];
    int rc = change->globs.failed ? krait_err_set(err, -ENOMEM, "out of memory")
                                  : put_filters(control, change, filters, err);
    if (rc)
        return rc;
    uint32_t flags = (control->flags | change->set) & ~change->clear;
    uint32_t overhead = change->has_overhead ? (uint32_t)(change->overhead * 1e4) : control->max_overhead_ppm;
    if (flags == control->flags && overhead == control->max_overhead_ppm && are_alike(filters, control))
        return 0;
    memcpy(control->filters, filters, sizeof(filters));
    control->flags = flags;
    control->max_overhead_ppm = overhead;
    /* The command line's are others; its --log are the same, in their order. */
    atomic_store(&control->filters_met, UINT64_MAX);
    atomic_store(&control->set_met, 0);
    atomic_fetch_add(&control->changes, 1);
    krait_ctl_force_slow_path(c);
    krait_switch_wake(control, UINT32_MAX);
    return 0;
}

int krait_ctl_set(struct krait_collector *c, const char *items, struct krait_err *err)
{
    struct change change = { 0 };
    KRAIT_AUTO_FREE char *copy = strdup(items);
    char *save = NULL;
    int rc = copy ? 0 : krait_err_set(err, -ENOMEM, "out of memory");
    if (!rc && !*items)
        rc = krait_err_set(err, -EINVAL, "set what? As in: krait ctl PID set include='app*' overhead=5");
    if (!rc)
        divide_at_keys(copy);
    for (char *item = rc ? NULL : strtok_r(copy, "\n", &save); item && !rc;
         item = strtok_r(NULL, "\n", &save))
        rc = set_item(&change, item, err);
    rc = rc ? rc : apply(c, &change, err);
    krait_buf_done(&change.globs);
    return rc;
}

size_t krait_collector_set_unmet(const struct krait_collector *c, krait_collector_unmet_fn *fn, void *ctx)
{
    static const enum krait_filter_kind kinds[] = { KRAIT_FILTER_INCLUDE, KRAIT_FILTER_EXCLUDE };
    const struct krait_control *control = c->shm.control;
    uint64_t met = atomic_load(&control->set_met);
    char filters[KRAIT_FILTER_BYTES];
    size_t i = 0, unmet = 0;
    copy_filters(filters, control);
    for (size_t k = 0; k < KRAIT_ARRAY_LEN(kinds) && atomic_load(&control->changes); k++) {
        for (const char *at = filters; *at; at += strlen(at) + 1) {
            if (*at != (char)kinds[k])
                continue;
            bool is_met = i >= 64 || met >> i & 1;
            i++;
            unmet += !is_met;
            if (!is_met)
                fn(ctx, kinds[k] == KRAIT_FILTER_INCLUDE ? "include" : "exclude", at + 1);
        }
    }
    return unmet;
}

bool krait_ctl_slot_is_set(const struct krait_collector *c, uint32_t i)
{
    const struct krait_proc *slot = &c->shm.procs[i];
    return krait_slot_state(atomic_load(&slot->state)) != KRAIT_SLOT_OPEN || atomic_load(&slot->off) ||
           atomic_load(&slot->changes) == atomic_load(&c->shm.control->changes);
}

bool krait_ctl_is_set(struct krait_collector *c)
{
    uint32_t i = 0, used = krait_collector_procs_used(c);
    while (i < used && krait_ctl_slot_is_set(c, i))
        i++;
    return i == used;
}
