/* SPDX-License-Identifier: Apache-2.0 */
#include "api/trace_read_api.h"

#include <string.h>

/* -- values -- */

/* The public struct holds ours: a copy that compilers see through keeps to the aliasing rules. */
_Static_assert(sizeof(struct krait_value) <= sizeof(struct krait_reader_value), "it has to fit");

static struct krait_value inner(const struct krait_reader_value *value)
{
    struct krait_value in;
    memcpy(&in, value, sizeof(in));
    return in;
}

static void set_outer(struct krait_reader_value *value, const struct krait_value *in)
{
    memset(value, 0, sizeof(*value));
    memcpy(value, in, sizeof(*in));
}

static inline int locate(const struct krait_reader_cursor *cursor, const struct krait_reader_field *field,
                         struct krait_value *value)
{
    if (KRAIT_UNLIKELY(!cursor->at || cursor->held || field->cls != krait_reader_cursor_class(cursor)))
        return -EINVAL;
    return krait_locator_value(field->locator, cursor->at, value);
}

static int get_unsigned(const struct krait_value *value, uint64_t *number)
{
    const struct krait_fc *fc = value->node->fc;
    if (!krait_fc_is_int(fc))
        return -EINVAL;
    uint64_t n = krait_value_int(value);
    if (fc->is_signed && (int64_t)n < 0)
        return -ERANGE;
    *number = n;
    return 0;
}

static int get_signed(const struct krait_value *value, int64_t *number)
{
    const struct krait_fc *fc = value->node->fc;
    if (!krait_fc_is_int(fc))
        return -EINVAL;
    uint64_t n = krait_value_int(value);
    if (!fc->is_signed && n > INT64_MAX)
        return -ERANGE;
    *number = (int64_t)n;
    return 0;
}

static int get_double(const struct krait_value *value, double *number)
{
    const struct krait_fc *fc = value->node->fc;
    if (krait_fc_is_int(fc)) {
        uint64_t n = krait_value_int(value);
        *number = fc->is_signed ? (double)(int64_t)n : (double)n;
        return 0;
    }
    if (fc->kind != KRAIT_FC_FLOAT)
        return -EINVAL;
    *number = krait_value_float(value);
    return 0;
}

static int get_text(const struct krait_value *value, const char **text, size_t *size)
{
    if (!krait_node_is_text(value->node))
        return -EINVAL;
    *text = krait_value_text(value, size);
    return 0;
}

static int get_label(const struct krait_value *value, const char **label)
{
    const struct krait_fc *fc = value->node->fc;
    if (fc->kind != KRAIT_FC_ENUM)
        return -EINVAL;
    const char *found = krait_enum_label(fc, krait_value_int(value));
    if (!found)
        return -ENODATA;
    *label = found;
    return 0;
}

int krait_reader_cursor_unsigned(const struct krait_reader_cursor *cursor,
                                 const struct krait_reader_field *field, uint64_t *value)
{
    struct krait_value in;
    int rc = locate(cursor, field, &in);
    return rc ? rc : get_unsigned(&in, value);
}

int krait_reader_cursor_signed(const struct krait_reader_cursor *cursor,
                               const struct krait_reader_field *field, int64_t *value)
{
    struct krait_value in;
    int rc = locate(cursor, field, &in);
    return rc ? rc : get_signed(&in, value);
}

int krait_reader_cursor_double(const struct krait_reader_cursor *cursor,
                               const struct krait_reader_field *field, double *value)
{
    struct krait_value in;
    int rc = locate(cursor, field, &in);
    return rc ? rc : get_double(&in, value);
}

int krait_reader_cursor_text(const struct krait_reader_cursor *cursor, const struct krait_reader_field *field,
                             const char **text, size_t *size)
{
    struct krait_value in;
    int rc = locate(cursor, field, &in);
    return rc ? rc : get_text(&in, text, size);
}

int krait_reader_cursor_label(const struct krait_reader_cursor *cursor,
                              const struct krait_reader_field *field, const char **label)
{
    struct krait_value in;
    int rc = locate(cursor, field, &in);
    return rc ? rc : get_label(&in, label);
}

int krait_reader_cursor_value(const struct krait_reader_cursor *cursor,
                              const struct krait_reader_field *field, struct krait_reader_value *value)
{
    struct krait_value in;
    int rc = locate(cursor, field, &in);
    if (!rc)
        set_outer(value, &in);
    return rc;
}

enum krait_reader_kind krait_reader_value_kind(const struct krait_reader_value *value)
{
    return krait_kind_of(inner(value).node->fc);
}

const char *krait_reader_value_name(const struct krait_reader_value *value)
{
    return inner(value).node->name;
}

const char *krait_reader_value_option(const struct krait_reader_value *value)
{
    return inner(value).option;
}

uint64_t krait_reader_value_count(const struct krait_reader_value *value)
{
    struct krait_value in = inner(value);
    return in.node->kid_count ? in.count : 0;
}

int krait_reader_value_unsigned(const struct krait_reader_value *value, uint64_t *number)
{
    struct krait_value in = inner(value);
    return get_unsigned(&in, number);
}

int krait_reader_value_signed(const struct krait_reader_value *value, int64_t *number)
{
    struct krait_value in = inner(value);
    return get_signed(&in, number);
}

int krait_reader_value_double(const struct krait_reader_value *value, double *number)
{
    struct krait_value in = inner(value);
    return get_double(&in, number);
}

int krait_reader_value_text(const struct krait_reader_value *value, const char **text, size_t *size)
{
    struct krait_value in = inner(value);
    return get_text(&in, text, size);
}

int krait_reader_value_label(const struct krait_reader_value *value, const char **label)
{
    struct krait_value in = inner(value);
    return get_label(&in, label);
}

void krait_reader_value_children(const struct krait_reader_value *parent, struct krait_reader_value *child)
{
    memset(child, 0, sizeof(*child));
}

int krait_reader_value_next(const struct krait_reader_value *parent, struct krait_reader_value *child)
{
    struct krait_value in = inner(parent), next = inner(child);
    int rc = krait_value_next(&in, &next);
    if (rc > 0)
        set_outer(child, &next);
    return rc;
}
