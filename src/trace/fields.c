/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/fields.h"

#include "base/json.h"
#include "base/json_read.h"

#include <string.h>

/* Behind a string's closing quote. */
static const char *pass_string(const char *at, const char *end)
{
    for (at++; at < end && *at != '"'; at++)
        at += *at == '\\';
    return at < end ? at + 1 : end;
}

/* At the comma or bracket that ends a value. Brackets nest; what is in quotes does not count. */
static const char *pass_value(const char *at, const char *end)
{
    int depth = 0;
    while (at < end) {
        if (*at == '"') {
            at = pass_string(at, end);
            continue;
        }
        if (!depth && (*at == ',' || *at == '}'))
            break;
        depth += *at == '{' || *at == '(' || *at == '[';
        depth -= *at == '}' || *at == ')' || *at == ']';
        at++;
    }
    return at;
}

/* At the " = " behind a name, or NULL. hot path */
static const char *pass_name(const char *at, const char *end)
{
    for (; end - at > 3; at++) {
        if (at[0] == ' ' && at[1] == '=' && at[2] == ' ')
            return at;
    }
    return NULL;
}

bool krait_fields_next(struct krait_fields *fields, struct krait_field *field)
{
    const char *at = fields->at, *end = fields->end;
    while (at < end && (*at == ' ' || *at == ',' || *at == '{' || *at == '}'))
        at++;
    const char *name_end = pass_name(at, end);
    if (!name_end || name_end == at)
        return false;
    field->name = at;
    field->name_len = (size_t)(name_end - at);
    field->value = name_end + strlen(" = ");
    at = fields->at = pass_value(field->value, end);
    while (at > field->value && at[-1] == ' ')
        at--;
    field->value_len = (size_t)(at - field->value);
    return true;
}

struct krait_fields krait_fields_own(struct krait_fields fields)
{
    struct krait_fields own = fields;
    int depth = 0;
    for (const char *at = fields.at; at < fields.end;) {
        if (*at == '"') {
            at = pass_string(at, fields.end);
            continue;
        }
        if (*at == '{' && !depth++)
            own.at = at;
        depth -= *at == '}';
        at++;
    }
    return own;
}

/* Whether `name` is one of the words. */
static bool is_one_of(const char *name, size_t n, const char *words)
{
    while (*words) {
        size_t same = 0;
        while (same < n && words[same] == name[same])
            same++;
        if (same == n && (words[n] == ' ' || !words[n]))
            return true;
        while (*words && *words++ != ' ')
            ;
    }
    return false;
}

bool krait_fields_find(struct krait_fields *fields, const char *names, struct krait_field *field)
{
    while (krait_fields_next(fields, field)) {
        if (is_one_of(field->name, field->name_len, names))
            return true;
    }
    return false;
}

/* -- values -- */

static uint32_t number_at(const char *at, const char *end, int digits)
{
    char text[8] = { 0 };
    memcpy(text, at, (size_t)KRAIT_MIN(digits, end - at));
    return (uint32_t)strtoul(text, NULL, 16);
}

/* What an escape of JSON's or of babeltrace2's stands for. Returns the byte behind it. */
static const char *add_escaped(struct krait_buf *to, const char *at, const char *end)
{
    static const char letters[] = "abefnrtv", meant[] = "\a\b\033\f\n\r\t\v";
    const char *letter = *at ? strchr(letters, *at) : NULL;
    enum { BYTE = 2, UNIT = 4 };
    if (*at == 'x') {
        krait_buf_char(to, (char)number_at(at + 1, end, BYTE));
        return KRAIT_MIN(at + 1 + BYTE, end);
    }
    if (*at == 'u') {
        krait_utf8_add(to, number_at(at + 1, end, UNIT));
        return KRAIT_MIN(at + 1 + UNIT, end);
    }
    krait_buf_char(to, letter ? meant[letter - letters] : *at);
    return at + 1;
}

static void unescape(struct krait_buf *to, const char *at, const char *end)
{
    while (at < end) {
        const char *backslash = memchr(at, '\\', (size_t)(end - at));
        const char *plain_end = backslash ? backslash : end;
        krait_buf_add(to, at, (size_t)(plain_end - at));
        at = backslash && backslash + 1 < end ? add_escaped(to, backslash + 1, end) : end;
    }
}

const char *krait_field_text(const struct krait_field *field, struct krait_buf *own, size_t *n)
{
    const char *at = field->value, *end = at + field->value_len;
    if (*at == '(') /* ( "label" : container = 7 ) */
        at += strspn(at, "( ");
    if (at >= end || *at != '"') {
        *n = field->value_len;
        return field->value;
    }
    const char *last = (at == field->value ? end : pass_string(at, end)) - 1;
    at++;
    *n = last > at ? (size_t)(last - at) : 0;
    if (!memchr(at, '\\', *n))
        return at;
    krait_buf_clear(own);
    unescape(own, at, last);
    *n = own->len;
    return own->data ? own->data : "";
}

const char *krait_fields_added(struct krait_fields own_fields, struct krait_buf *own, size_t *n)
{
    struct krait_field field;
    const char *text =
        krait_fields_find(&own_fields, "fields extra", &field) ? krait_field_text(&field, own, n) : NULL;
    return text && *n ? text : NULL;
}

/* -- by a path -- */

/* A text, a number, a word of JSON's, or an array as it is written; an object is none. */
static bool add_json(struct krait_buf *to, const struct krait_json *value, const char *text, size_t n)
{
    const char *at = text + value->at;
    if (value->kind == KRAIT_JSON_OBJECT)
        return false;
    if (value->kind == KRAIT_JSON_TEXT)
        krait_buf_str(to, value->text);
    else if (value->kind == KRAIT_JSON_ARRAY)
        krait_buf_add(to, at, (size_t)(pass_value(at, text + n) - at));
    else
        krait_buf_add(to, text + value->at, strcspn(text + value->at, ",}] \t\r\n"));
    return true;
}

bool krait_fields_get_json(const char *text, size_t n, const char *path, struct krait_buf *to)
{
    struct krait_arena arena = { 0 };
    struct krait_json *root = NULL;
    const struct krait_json *at = krait_json_read(&root, &arena, text, n, 0, NULL) ? NULL : root;
    const struct krait_json *whole = at && at->kind == KRAIT_JSON_OBJECT ? krait_json_get(at, path) : NULL;
    if (whole && *path) { /* self.owner, of arguments */
        at = whole;
        path = "";
    }
    while (at && at->kind == KRAIT_JSON_OBJECT && *path) {
        size_t length = strcspn(path, ".");
        KRAIT_AUTO_BUF key = { 0 };
        krait_buf_add(&key, path, length);
        at = key.data ? krait_json_get(at, key.data) : NULL;
        path += length + (path[length] == '.');
    }
    bool found = at && !*path && add_json(to, at, text, n);
    krait_arena_done(&arena);
    return found;
}

static void add_member(struct krait_buf *to, const char *text, size_t n, const struct krait_json *member)
{
    const char *value = text + member->at;
    krait_buf_str(to, to->len > 1 ? "," : "");
    krait_json_cstr(to, member->key);
    krait_buf_char(to, ':');
    krait_buf_add(to, value, (size_t)(pass_value(value, text + n) - value));
}

int krait_fields_join_json(struct krait_buf *to, const char *before, const char *later)
{
    KRAIT_CLEANUP(krait_arena_done) struct krait_arena arena = { 0 };
    struct krait_json *old, *new;
    size_t old_n = strlen(before), new_n = strlen(later);
    int rc = krait_json_read(&old, &arena, before, old_n, 0, NULL);
    rc = rc ? rc : krait_json_read(&new, &arena, later, new_n, 0, NULL);
    if (rc || old->kind != KRAIT_JSON_OBJECT || new->kind != KRAIT_JSON_OBJECT)
        return rc ? rc : -EBADMSG;
    krait_buf_clear(to);
    krait_buf_char(to, '{');
    for (const struct krait_json *at = old->first; at; at = at->next) {
        if (!krait_json_get(new, at->key))
            add_member(to, before, old_n, at);
    }
    for (const struct krait_json *at = new->first; at; at = at->next)
        add_member(to, later, new_n, at);
    krait_buf_char(to, '}');
    return to->failed ? -ENOMEM : 0;
}

/* `way`: of the object, with a dot behind it, or empty. */
static int add_names(struct krait_strtab *to, const struct krait_json *object, struct krait_buf *way)
{
    size_t n = way->len;
    int rc = 0;
    for (const struct krait_json *at = object->first; at && !rc; at = at->next) {
        way->len = n;
        krait_buf_str(way, at->key);
        if (way->failed)
            return -ENOMEM;
        if (at->kind != KRAIT_JSON_OBJECT) {
            rc = krait_strtab_add(to, way->data, way->len) == KRAIT_NO_ID ? -ENOMEM : 0;
            continue;
        }
        krait_buf_char(way, '.');
        rc = add_names(to, at, way);
    }
    return rc;
}

int krait_fields_names_json(struct krait_strtab *to, const char *json, size_t n)
{
    struct krait_arena arena = { 0 };
    struct krait_json *root = NULL;
    KRAIT_AUTO_BUF way = { 0 };
    int rc = krait_json_read(&root, &arena, json, n, 0, NULL);
    rc = rc == -EBADMSG || (root && root->kind != KRAIT_JSON_OBJECT) ? 0
         : rc                                                        ? rc
                                                                     : add_names(to, root, &way);
    krait_arena_done(&arena);
    return rc;
}

bool krait_fields_get(struct krait_fields fields, const char *path, struct krait_buf *to)
{
    KRAIT_AUTO_BUF own = { 0 };
    struct krait_field field;
    size_t n;
    for (;;) {
        size_t length = strcspn(path, ".");
        do {
            if (!krait_fields_next(&fields, &field))
                return false;
        } while (field.name_len != length || memcmp(field.name, path, length) != 0);
        path += length + (path[length] == '.');
        if (!*path || *field.value != '{')
            break;
        fields = (struct krait_fields){ field.value, field.value + field.value_len };
    }
    const char *value = krait_field_text(&field, &own, &n);
    if (*path)
        return krait_fields_get_json(value, n, path, to);
    krait_buf_add(to, value, n);
    return true;
}

/* Asked of every mark: lengths are compared first. hot path */
static bool is_message(const struct krait_field *field)
{
    static const struct {
        size_t len;
        const char *name;
    } names[] = { { 4, "text" }, { 7, "message" }, { 3, "msg" }, { 3, "buf" } };
    bool found = false;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(names) && !found; i++)
        found = field->name_len == names[i].len && memcmp(field->name, names[i].name, names[i].len) == 0;
    return found;
}

const char *krait_fields_message(const char *text, struct krait_buf *own, size_t *n)
{
    struct krait_fields fields = { text, text + strlen(text) };
    struct krait_field field;
    bool found = false;
    while (!found && krait_fields_next(&fields, &field))
        found = is_message(&field);
    return found && field.value[0] == '"' ? krait_field_text(&field, own, n) : NULL;
}
