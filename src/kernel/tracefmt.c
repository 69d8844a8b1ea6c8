/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/tracefmt.h"

#include <string.h>

/* "KEY:123" somewhere in a line's part; false when it is not there. */
static bool number_of(const char *line, size_t n, const char *key, uint32_t *number)
{
    const char *at = memmem(line, n, key, strlen(key));
    if (!at)
        return false;
    char *end;
    unsigned long value = strtoul(at + strlen(key), &end, 10);
    *number = (uint32_t)value;
    return end != at + strlen(key) && value <= UINT32_MAX;
}

/* "unsigned int fd", "char comm[16]", "__data_loc char[] name", "void * p": the name is the last word. */
static bool parse_declaration(struct krait_tracefmt_field *field, const char *text, size_t n)
{
    static const char data_loc[] = "__data_loc ";
    field->is_data_loc = n > strlen(data_loc) && memcmp(text, data_loc, strlen(data_loc)) == 0;
    const char *bracket = field->is_data_loc ? NULL : memchr(text, '[', n);
    field->is_array = bracket != NULL;
    size_t end = bracket ? (size_t)(bracket - text) : n;
    size_t start = end;
    while (start > 0 && text[start - 1] != ' ' && text[start - 1] != '*')
        start--;
    field->is_pointer = !bracket && memchr(text, '*', start) != NULL;
    size_t type_end = start;
    while (type_end > 0 && text[type_end - 1] == ' ')
        type_end--;
    krait_copy_text(field->type, sizeof(field->type), text, KRAIT_MIN(type_end, sizeof(field->type) - 1));
    return end > start && krait_copy_text(field->name, sizeof(field->name), text + start, end - start);
}

static bool parse_field(struct krait_tracefmt *format, const char *line, size_t n)
{
    struct krait_tracefmt_field field = { 0 };
    const char *semicolon = memchr(line, ';', n);
    uint32_t is_signed = 0;
    if (format->field_count >= KRAIT_ARRAY_LEN(format->fields) || !semicolon)
        return false;
    number_of(line, n, "signed:", &is_signed);
    field.is_signed = is_signed != 0;
    if (!parse_declaration(&field, line, (size_t)(semicolon - line)) ||
        !number_of(line, n, "offset:", &field.offset) || !number_of(line, n, "size:", &field.size) ||
        field.offset > UINT16_MAX || field.size > UINT16_MAX)
        return false;
    format->size = KRAIT_MAX(format->size, field.offset + field.size);
    format->fields[format->field_count++] = field;
    return true;
}

static bool parse_line(struct krait_tracefmt *format, const char *line, size_t n)
{
    static const char name[] = "name: ", field[] = "field:";
    if (n > strlen(name) && memcmp(line, name, strlen(name)) == 0)
        return krait_copy_text(format->name, sizeof(format->name), line + strlen(name), n - strlen(name));
    if (memmem(line, n, "ID: ", 4) == line)
        return number_of(line, n, "ID: ", &format->id);
    const char *at = memmem(line, n, field, strlen(field));
    if (!at)
        return true;
    at += strlen(field);
    return parse_field(format, at, n - (size_t)(at - line));
}

int krait_tracefmt_parse(struct krait_tracefmt *format, const char *text, struct krait_err *err)
{
    *format = (struct krait_tracefmt){ 0 };
    unsigned number = 1;
    for (const char *line = text; *line && strncmp(line, "print fmt:", 10) != 0; number++) {
        size_t n = strcspn(line, "\n");
        if (!parse_line(format, line, n))
            return krait_err_set(err, -EBADMSG, "line %u is not understood: %.*s", number,
                                 (int)KRAIT_MIN(n, (size_t)80), line);
        line += n + (line[n] != '\0');
    }
    if (!format->name[0] || !format->id || format->id > UINT16_MAX || !format->field_count)
        return krait_err_set(err, -EBADMSG, "no name, number or fields");
    return 0;
}

const struct krait_tracefmt_field *krait_tracefmt_find(const struct krait_tracefmt *format, const char *name)
{
    for (uint32_t i = 0; i < format->field_count; i++) {
        if (strcmp(format->fields[i].name, name) == 0)
            return &format->fields[i];
    }
    return NULL;
}
