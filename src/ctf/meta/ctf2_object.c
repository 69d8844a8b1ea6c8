/* SPDX-License-Identifier: Apache-2.0
 *
 * What every object of CTF 2's metadata is asked: its keys, and values of a kind.
 */
#include "ctf/meta/ctf2.h"

#include <stdarg.h>
#include <string.h>

KRAIT_COLD void krait_ctf2_fail(struct krait_ctf2_parser *p, size_t at, int code, const char *fmt, ...)
{
    va_list args;
    if (p->rc)
        return;
    va_start(args, fmt);
    p->rc = krait_err_at_byte(p->err, code, at, fmt, args);
    va_end(args);
}

KRAIT_COLD void krait_ctf2_oom(struct krait_ctf2_parser *p)
{
    if (!p->rc)
        p->rc = krait_err_set(p->err, -ENOMEM, "out of memory");
}

static bool is_among(const char *key, const char *const *names)
{
    for (; *names; names++) {
        if (strcmp(*names, key) == 0)
            return true;
    }
    return false;
}

static void refuse_extensions(struct krait_ctf2_parser *p, const struct krait_json *extensions)
{
    for (const struct krait_json *space = extensions->first; space; space = space->next) {
        const char *name = space->kind == KRAIT_JSON_OBJECT && space->first ? space->first->key : "";
        krait_ctf2_fail(p, space->at, -ENOTSUP,
                        "the trace needs the extension '%.64s' of '%.64s', which this reader does not have",
                        name, space->key);
    }
}

void krait_ctf2_keys(struct krait_ctf2_parser *p, const struct krait_json *object, const char *const *names)
{
    static const char *const common[] = { "type", "attributes", "extensions", NULL };
    static const char *const texts[] = { "namespace", "name", "uid" };
    if (p->rc)
        return;
    for (const struct krait_json *item = object->first; item; item = item->next) {
        if (!is_among(item->key, names) && !is_among(item->key, common))
            krait_ctf2_fail(p, item->at, -EBADMSG, "the property '%.64s' is not known here", item->key);
    }
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(texts); i++)
        krait_ctf2_get(p, object, texts[i], KRAIT_JSON_TEXT);
    krait_ctf2_get(p, object, "attributes", KRAIT_JSON_OBJECT);
    const struct krait_json *extensions = krait_ctf2_get(p, object, "extensions", KRAIT_JSON_OBJECT);
    if (extensions)
        refuse_extensions(p, extensions);
}

const struct krait_json *krait_ctf2_get(struct krait_ctf2_parser *p, const struct krait_json *object,
                                        const char *key, enum krait_json_kind kind)
{
    static const char *const kinds[] = { "null",       "false",    "true",   "an integer of 0 or more",
                                         "an integer", "a number", "a text", "an array",
                                         "an object" };
    const struct krait_json *item = p->rc ? NULL : krait_json_get(object, key);
    if (!item || item->kind == kind)
        return item;
    krait_ctf2_fail(p, item->at, -EBADMSG, "'%s' is not %s", key, kinds[kind]);
    return NULL;
}

const struct krait_json *krait_ctf2_need(struct krait_ctf2_parser *p, const struct krait_json *object,
                                         const char *key, enum krait_json_kind kind)
{
    const struct krait_json *item = krait_ctf2_get(p, object, key, kind);
    if (!item)
        krait_ctf2_fail(p, object->at, -EBADMSG, "the property '%s' is missing", key);
    return item;
}

uint64_t krait_ctf2_number(struct krait_ctf2_parser *p, const struct krait_json *object, const char *key,
                           uint64_t otherwise)
{
    const struct krait_json *item = krait_ctf2_get(p, object, key, KRAIT_JSON_UNSIGNED);
    return item ? item->number : otherwise;
}

const char *krait_ctf2_keep(struct krait_ctf2_parser *p, const char *text)
{
    const char *kept = krait_arena_strdup(p->arena, text);
    if (!kept)
        krait_ctf2_oom(p);
    return kept ? kept : "";
}

const char *krait_ctf2_text(struct krait_ctf2_parser *p, const struct krait_json *object, const char *key,
                            const char *otherwise)
{
    const struct krait_json *item = krait_ctf2_get(p, object, key, KRAIT_JSON_TEXT);
    return item ? krait_ctf2_keep(p, item->text) : otherwise;
}

void *krait_ctf2_alloc(struct krait_ctf2_parser *p, size_t count, size_t size)
{
    void *to = p->rc ? NULL : krait_arena_alloc(p->arena, KRAIT_MAX(count, (size_t)1) * size);
    if (!to)
        krait_ctf2_oom(p);
    return to;
}

unsigned krait_ctf2_word(struct krait_ctf2_parser *p, const struct krait_json *text, const char *const *names,
                         unsigned count)
{
    bool is_text = text && text->kind == KRAIT_JSON_TEXT;
    for (unsigned i = 0; is_text && i < count; i++) {
        if (strcmp(names[i], text->text) == 0)
            return i;
    }
    if (text)
        krait_ctf2_fail(p, text->at, -EBADMSG, "'%.64s' is not one of '%s', '%s', ...",
                        is_text ? text->text : "(no text)", names[0], names[1]);
    return 0;
}
