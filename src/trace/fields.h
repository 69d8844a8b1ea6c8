/* SPDX-License-Identifier: Apache-2.0
 *
 * The fields of an instant, from its text (batch->text): `{ vtid = 7 }, { level = 30, message = "order 7", point = { x = 1 } }`,
 * as the importers write it. Nothing is copied.
 */
#ifndef KRAIT_TRACE_FIELDS_H
#define KRAIT_TRACE_FIELDS_H

#include "base/buf.h"
#include "base/map.h"

struct krait_field {
    const char *name, *value; /* as they stand in the text: not terminated, a string in quotes */
    size_t name_len, value_len;
};

/* What is not read yet of a text, or of a field's value in braces. */
struct krait_fields {
    const char *at, *end;
};

/* The next field of all groups. False behind the last one, and where the text is none of fields. */
bool krait_fields_next(struct krait_fields *fields, struct krait_field *field);

/* The next field of all groups that has one of the names, which are separated by blanks. */
bool krait_fields_find(struct krait_fields *fields, const char *names, struct krait_field *field);

/* A field by its name, or by the names on its way, with dots between: "point.x". Where a string on the way is a JSON
 * object, as log records' `extra`, the rest is the way in that. Its value, as krait_field_text has it, goes to the end
 * of `to`; false: there is none. */
bool krait_fields_get(struct krait_fields fields, const char *path, struct krait_buf *to);

/* The same of a JSON object, as spans' fields are; the whole path may be the name of one. */
bool krait_fields_get_json(const char *json, size_t n, const char *path, struct krait_buf *to);

/* Replaces what is in `to` by the fields of both objects; where both have one, by that of `later`. Returns 0, -ENOMEM, or
 * -EBADMSG if one is no JSON object, and then `to` is as it was. */
int krait_fields_join_json(struct krait_buf *to, const char *before, const char *later);

/* Adds the names of the fields of a JSON object, and the ways to those in objects in it: "who.name". Returns 0 or -ENOMEM. */
int krait_fields_names_json(struct krait_strtab *to, const char *json, size_t n);

/* What an instant says: its first field named message, msg, text or buf, if that is a string; it is where krait_field_text
 * has it. NULL: there is none. */
const char *krait_fields_message(const char *text, struct krait_buf *own, size_t *n);

/* The event's own fields: the last group, behind those of its contexts. */
struct krait_fields krait_fields_own(struct krait_fields fields);

/* What the program added, in an event's own fields: the JSON object `fields` of marks and spans, or `extra` of log records,
 * as krait_field_text has it. NULL: nothing. */
const char *krait_fields_added(struct krait_fields own_fields, struct krait_buf *own, size_t *n);

/* What a field's value says: a string without its quotes and escapes, an enumeration's label, else the value as it
 * stands. It is in the text itself, or where it has escapes in `own`, whose content is replaced. */
const char *krait_field_text(const struct krait_field *field, struct krait_buf *own, size_t *n);

#endif
