/* SPDX-License-Identifier: Apache-2.0 */
#include "api/trace_read_api.h"

/* What a class's events are made of. `opaque` is the field class. */

static uint32_t flags_of(const struct krait_fc *fc)
{
    bool is_int = krait_fc_is_int(fc), is_number = is_int || fc->kind == KRAIT_FC_FLOAT;
    bool is_fixed = fc->kind == KRAIT_FC_ARRAY;
    return (fc->kind == KRAIT_FC_ENUM ? KRAIT_READER_SCHEMA_ENUM : 0u) |
           (is_int && fc->form == KRAIT_INT_FLAGS ? KRAIT_READER_SCHEMA_BITS : 0u) |
           (is_int && fc->form == KRAIT_INT_BOOL ? KRAIT_READER_SCHEMA_BOOL : 0u) |
           (is_number && fc->byte_order == KRAIT_BO_BE ? KRAIT_READER_SCHEMA_BIG_ENDIAN : 0u) |
           (is_fixed ? KRAIT_READER_SCHEMA_FIXED : 0u) | (fc->is_blob ? KRAIT_READER_SCHEMA_BLOB : 0u) |
           (fc->kind == KRAIT_FC_OPTIONAL ? KRAIT_READER_SCHEMA_OPTIONAL : 0u);
}

static bool has_mappings(const struct krait_fc *fc)
{
    return fc->kind == KRAIT_FC_ENUM || (fc->kind == KRAIT_FC_INT && fc->form == KRAIT_INT_FLAGS);
}

static uint32_t child_count(const struct krait_fc *fc)
{
    bool has_members =
        fc->kind == KRAIT_FC_STRUCT || fc->kind == KRAIT_FC_VARIANT || fc->kind == KRAIT_FC_OPTIONAL;
    bool is_list = fc->kind == KRAIT_FC_ARRAY || fc->kind == KRAIT_FC_SEQUENCE;
    return has_members ? fc->count : is_list && !fc->is_text;
}

static void describe(struct krait_reader_schema *schema, const struct krait_fc *fc, const char *name)
{
    bool is_int = krait_fc_is_int(fc), is_number = is_int || fc->kind == KRAIT_FC_FLOAT;
    *schema = (struct krait_reader_schema){ .name = name ? name : "",
                                            .kind = krait_kind_of(fc),
                                            .flags = flags_of(fc),
                                            .bits = is_number && !fc->is_leb ? fc->bits : 0,
                                            .base = is_int ? fc->base : 0,
                                            .child_count = child_count(fc),
                                            .mapping_count = has_mappings(fc) ? fc->labels->count : 0,
                                            .length = fc->kind == KRAIT_FC_ARRAY ? fc->length : 0,
                                            .opaque = fc };
}

int krait_reader_class_schema(const struct krait_reader_class *cls, enum krait_reader_scope scope,
                              struct krait_reader_schema *schema)
{
    const struct krait_event_class *event = cls->event;
    const struct krait_fc *const of[] = {
        [KRAIT_READER_PAYLOAD] = event->fields,
        [KRAIT_READER_EVENT_CONTEXT] = event->context,
        [KRAIT_READER_COMMON_CONTEXT] = event->stream->event_context,
        [KRAIT_READER_PACKET_CONTEXT] = event->stream->packet_context,
        [KRAIT_READER_PACKET_HEADER] = cls->trace->metadata->packet_header,
        [KRAIT_READER_EVENT_HEADER] = event->stream->event_header,
    };
    const struct krait_fc *fc = (unsigned)scope < KRAIT_ARRAY_LEN(of) ? of[scope] : NULL;
    if (!fc)
        return -ENOENT;
    describe(schema, fc, "");
    return 0;
}

void krait_reader_field_schema(const struct krait_reader_field *field, struct krait_reader_schema *schema)
{
    const struct krait_node *node = krait_locator_node(field->locator);
    describe(schema, node->fc, node->name);
}

int krait_reader_schema_child(const struct krait_reader_schema *schema, uint32_t i,
                              struct krait_reader_schema *child)
{
    const struct krait_fc *fc = schema->opaque;
    if (i >= schema->child_count)
        return -EINVAL;
    if (fc->kind == KRAIT_FC_ARRAY || fc->kind == KRAIT_FC_SEQUENCE)
        describe(child, fc->elem, "");
    else
        describe(child, fc->members[i].fc, fc->members[i].name);
    return 0;
}

int krait_reader_schema_mapping(const struct krait_reader_schema *schema, uint32_t i,
                                struct krait_reader_mapping *mapping)
{
    const struct krait_fc *fc = schema->opaque;
    if (i >= schema->mapping_count)
        return -EINVAL;
    const struct krait_enum_range *range = &fc->labels->ranges[i];
    *mapping = (struct krait_reader_mapping){ range->label, range->lo, range->hi };
    return 0;
}
