/* SPDX-License-Identifier: Apache-2.0
 *
 * Keys of a file's tables, their values, and what is said of wrong ones.
 */
#include "analysis/declared_own.h"
#include "base/suggest.h"

#include <string.h>

/* -- errors -- */

int krait_declared_no_memory(struct krait_declared_reader *r)
{
    return krait_err_set(r->err, -ENOMEM, "out of memory");
}

const char *krait_declared_place(struct krait_declared_reader *r, uint32_t line, const char *key)
{
    bool is_below = r->name && key && key != r->name; /* the table itself has the name as its key */
    return krait_arena_fmt(&r->rules->arena, "%s:%u: %s%s%s%s%s%s%s%s%s", r->path, line,
                           r->section ? r->section : "", r->name ? "." : "", r->name ? r->name : "",
                           r->edge ? "." : "", r->edge ? r->edge : "", r->is_in_where ? ".where" : "",
                           is_below ? "." : "", is_below ? key : "", r->section ? ": " : "");
}

int krait_declared_refuse(struct krait_declared_reader *r, const struct krait_toml *at, const char *fmt, ...)
{
    char why[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why, sizeof(why), fmt, ap);
    va_end(ap);
    const char *place = krait_declared_place(r, at->line, at->key);
    return place ? krait_err_set(r->err, -EBADMSG, "%s%s", place, why) : krait_declared_no_memory(r);
}

int krait_declared_refuse_name(struct krait_declared_reader *r, const struct krait_toml *at, const char *what,
                               const char *name, const char *(*of)(const void *list, size_t i),
                               const void *list, size_t count)
{
    struct krait_suggest suggest = KRAIT_SUGGEST(name, strlen(name));
    KRAIT_AUTO_BUF all = { 0 };
    for (size_t i = 0; i < count; i++) {
        if (!of(list, i))
            continue;
        krait_suggest_try(&suggest, of(list, i));
        krait_buf_fmt(&all, "%s%s", all.len ? ", " : "", of(list, i));
    }
    if (suggest.best)
        return krait_declared_refuse(r, at, "there is no %s '%s'; did you mean '%s'?", what, name,
                                     suggest.best);
    return krait_declared_refuse(r, at, "there is no %s '%s'; %s%s", what, name,
                                 all.len ? "use one of: " : "no other is declared", all.data ? all.data : "");
}

static const char *key_name(const void *list, size_t i)
{
    return ((const struct krait_declared_key *)list)[i].name;
}

int krait_declared_take_keys(struct krait_declared_reader *r, const struct krait_toml *table,
                             const struct krait_declared_keys *keys)
{
    int rc = 0;
    for (const struct krait_toml *value = table->first; value && !rc; value = value->next) {
        size_t i = 0;
        while (i < keys->count && strcmp(keys->items[i].name, value->key) != 0)
            i++;
        if (i == keys->count)
            return krait_declared_refuse_name(r, value, "key", value->key, key_name, keys->items,
                                              keys->count);
        rc = keys->items[i].take ? keys->items[i].take(r, value) : 0;
    }
    return rc;
}

int krait_declared_need_text(struct krait_declared_reader *r, const struct krait_toml *value)
{
    return value->kind == KRAIT_TOML_TEXT && *value->text
               ? 0
               : krait_declared_refuse(r, value, "it has to be a text in quotes");
}

/* -- values -- */

uint32_t krait_declared_count_texts(const struct krait_toml *value)
{
    uint32_t count = 0;
    if (value->kind == KRAIT_TOML_TEXT)
        return *value->text ? 1 : 0;
    for (const struct krait_toml *item = value->kind == KRAIT_TOML_ARRAY ? value->first : NULL; item;
         item = item->next) {
        if (item->kind != KRAIT_TOML_TEXT || !*item->text)
            return 0;
        count++;
    }
    return count;
}

const struct krait_toml *krait_declared_first(const struct krait_toml *value)
{
    return value->kind == KRAIT_TOML_ARRAY ? value->first : value;
}
