/* SPDX-License-Identifier: Apache-2.0
 *
 * read_babeltrace stream|time|count TRACE: what babeltrace2's C interface takes for a trace. Prints one line
 * of JSON: the events, and sums of what is in them, to be compared with other readers'.
 *
 *   stream   every field of each event, one stream after the other: no muxer in the graph
 *   time     the same with all streams in order of time, by the muxer of the plugin `utils`
 *   count    events by class, without a muxer and without looking at fields
 *
 * The library hands messages out in arrays of 15 and cannot be asked for more. It decodes all fields in every
 * mode. Built with 2.0's headers it runs with 2.1 too. Traces without a clock are not for it.
 */
#include <babeltrace2/babeltrace.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CLASSES = 8192 }; /* a power of two, more than a trace has */

struct sums {
    uint64_t events, numbers, text, times, classes;
};

struct sink {
    bool count_only;
    uint64_t ports, port;
    bt_message_iterator **iterators;
    struct sums sums;
    struct {
        const bt_event_class *cls;
        uint64_t count;
    } counts[CLASSES]; /* open addressing by the class's address */
};

static void die(const char *what)
{
    fprintf(stderr, "read_babeltrace: %s failed\n", what);
    exit(1);
}

/* ---- values ---- */

static void touch(struct sums *sums, const bt_field *field);

static void touch_unsigned(struct sums *sums, const bt_field *field)
{
    sums->numbers += bt_field_integer_unsigned_get_value(field);
}

static void touch_signed(struct sums *sums, const bt_field *field)
{
    sums->numbers += (uint64_t)bt_field_integer_signed_get_value(field);
}

static void touch_double(struct sums *sums, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    sums->numbers += bits;
}

static void touch_struct(struct sums *sums, const bt_field *field)
{
    uint64_t count = bt_field_class_structure_get_member_count(bt_field_borrow_class_const(field));
    for (uint64_t i = 0; i < count; i++)
        touch(sums, bt_field_structure_borrow_member_field_by_index_const(field, i));
}

static void touch_array(struct sums *sums, const bt_field *field)
{
    uint64_t count = bt_field_array_get_length(field);
    for (uint64_t i = 0; i < count; i++)
        touch(sums, bt_field_array_borrow_element_field_by_index_const(field, i));
}

static void touch_option(struct sums *sums, const bt_field *field)
{
    const bt_field *content = bt_field_option_borrow_field_const(field);
    if (content)
        touch(sums, content);
}

static void touch(struct sums *sums, const bt_field *field)
{
    bt_field_class_type type = bt_field_get_class_type(field);
    if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_UNSIGNED_INTEGER))
        touch_unsigned(sums, field);
    else if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_SIGNED_INTEGER))
        touch_signed(sums, field);
    else if (type == BT_FIELD_CLASS_TYPE_STRING)
        sums->text += bt_field_string_get_length(field);
    else if (type == BT_FIELD_CLASS_TYPE_STRUCTURE)
        touch_struct(sums, field);
    else if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_ARRAY))
        touch_array(sums, field);
    else if (type == BT_FIELD_CLASS_TYPE_DOUBLE_PRECISION_REAL)
        touch_double(sums, bt_field_real_double_precision_get_value(field));
    else if (type == BT_FIELD_CLASS_TYPE_SINGLE_PRECISION_REAL)
        touch_double(sums, bt_field_real_single_precision_get_value(field));
    else if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_VARIANT))
        touch(sums, bt_field_variant_borrow_selected_option_field_const(field));
    else if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_OPTION))
        touch_option(sums, field);
    else if (type == BT_FIELD_CLASS_TYPE_BOOL)
        sums->numbers += bt_field_bool_get_value(field) != 0;
    else if (type == BT_FIELD_CLASS_TYPE_BIT_ARRAY)
        sums->numbers += bt_field_bit_array_get_value_as_integer(field);
}

static void touch_event(struct sums *sums, const bt_message *message)
{
    const bt_event *event = bt_message_event_borrow_event_const(message);
    const bt_field *scopes[] = { bt_event_borrow_common_context_field_const(event),
                                 bt_event_borrow_specific_context_field_const(event),
                                 bt_event_borrow_payload_field_const(event) };
    int64_t ns = 0;
    for (size_t i = 0; i < sizeof(scopes) / sizeof(*scopes); i++)
        if (scopes[i])
            touch(sums, scopes[i]);
    bt_clock_snapshot_get_ns_from_origin(bt_message_event_borrow_default_clock_snapshot_const(message), &ns);
    sums->times += (uint64_t)ns;
    sums->events++;
}

static void count_event(struct sink *sink, const bt_message *message)
{
    const bt_event_class *cls = bt_event_borrow_class_const(bt_message_event_borrow_event_const(message));
    size_t i = (uintptr_t)cls / 64 % CLASSES;
    while (sink->counts[i].cls && sink->counts[i].cls != cls)
        i = (i + 1) % CLASSES;
    sink->counts[i].cls = cls;
    sink->counts[i].count++;
}

/* ---- the graph's sink ---- */

static void take(struct sink *sink, const bt_message *message)
{
    if (bt_message_get_type(message) == BT_MESSAGE_TYPE_EVENT) {
        if (sink->count_only)
            count_event(sink, message);
        else
            touch_event(&sink->sums, message);
    }
    bt_message_put_ref(message);
}

static bt_component_class_sink_consume_method_status consume(bt_self_component_sink *self)
{
    struct sink *sink = bt_self_component_get_data(bt_self_component_sink_as_self_component(self));
    bt_message_array_const messages;
    uint64_t count;
    int status = bt_message_iterator_next(sink->iterators[sink->port], &messages, &count);
    if (status == BT_MESSAGE_ITERATOR_NEXT_STATUS_END) {
        bt_message_iterator_put_ref(sink->iterators[sink->port]);
        return ++sink->port < sink->ports ? BT_COMPONENT_CLASS_SINK_CONSUME_METHOD_STATUS_OK
                                          : BT_COMPONENT_CLASS_SINK_CONSUME_METHOD_STATUS_END;
    }
    if (status)
        return (bt_component_class_sink_consume_method_status)status;
    for (uint64_t i = 0; i < count; i++)
        take(sink, messages[i]);
    return BT_COMPONENT_CLASS_SINK_CONSUME_METHOD_STATUS_OK;
}

static bt_component_class_initialize_method_status init(bt_self_component_sink *self,
                                                        bt_self_component_sink_configuration *config,
                                                        const bt_value *params, void *data)
{
    struct sink *sink = data;
    bt_self_component_set_data(bt_self_component_sink_as_self_component(self), sink);
    for (uint64_t i = 0; i < sink->ports; i++) {
        char name[32];
        snprintf(name, sizeof(name), "in%" PRIu64, i);
        if (bt_self_component_sink_add_input_port(self, name, NULL, NULL))
            return BT_COMPONENT_CLASS_INITIALIZE_METHOD_STATUS_ERROR;
    }
    return BT_COMPONENT_CLASS_INITIALIZE_METHOD_STATUS_OK;
}

static bt_component_class_sink_graph_is_configured_method_status configured(bt_self_component_sink *self)
{
    struct sink *sink = bt_self_component_get_data(bt_self_component_sink_as_self_component(self));
    for (uint64_t i = 0; i < sink->ports; i++)
        if (bt_message_iterator_create_from_sink_component(
                self, bt_self_component_sink_borrow_input_port_by_index(self, i), &sink->iterators[i]))
            return BT_COMPONENT_CLASS_SINK_GRAPH_IS_CONFIGURED_METHOD_STATUS_ERROR;
    return BT_COMPONENT_CLASS_SINK_GRAPH_IS_CONFIGURED_METHOD_STATUS_OK;
}

/* ---- the graph ---- */

static const bt_plugin *plugin(const char *name)
{
    const bt_plugin *found;
    if (bt_plugin_find(name, BT_TRUE, BT_TRUE, BT_TRUE, BT_FALSE, BT_TRUE, &found))
        die(name);
    return found;
}

static const bt_component_source *add_source(bt_graph *graph, const char *trace)
{
    const bt_component_source *source;
    bt_value *params = bt_value_map_create(), *inputs = bt_value_array_create();
    if (!params || !inputs || bt_value_array_append_string_element(inputs, trace) ||
        bt_value_map_insert_entry(params, "inputs", inputs))
        die("parameters");
    const bt_component_class_source *cls =
        bt_plugin_borrow_source_component_class_by_name_const(plugin("ctf"), "fs");
    if (bt_graph_add_source_component(graph, cls, "source", params, BT_LOGGING_LEVEL_WARNING, &source))
        die("opening the trace");
    bt_value_put_ref(inputs);
    bt_value_put_ref(params);
    return source;
}

static const bt_component_sink *add_sink(bt_graph *graph, struct sink *sink, uint64_t ports)
{
    const bt_component_sink *component;
    bt_component_class_sink *cls = bt_component_class_sink_create("touch", consume);
    sink->ports = ports;
    sink->iterators = calloc(ports, sizeof(*sink->iterators));
    if (!cls || !sink->iterators || bt_component_class_sink_set_initialize_method(cls, init) ||
        bt_component_class_sink_set_graph_is_configured_method(cls, configured) ||
        bt_graph_add_sink_component_with_initialize_method_data(graph, cls, "sink", NULL, sink,
                                                                BT_LOGGING_LEVEL_WARNING, &component))
        die("the sink");
    return component;
}

static void connect(bt_graph *graph, const bt_port_output *from, const bt_port_input *to)
{
    if (bt_graph_connect_ports(graph, from, to, NULL))
        die("connecting");
}

static void connect_streams(bt_graph *graph, const bt_component_source *source, struct sink *sink)
{
    uint64_t streams = bt_component_source_get_output_port_count(source);
    const bt_component_sink *to = add_sink(graph, sink, streams);
    for (uint64_t i = 0; i < streams; i++)
        connect(graph, bt_component_source_borrow_output_port_by_index_const(source, i),
                bt_component_sink_borrow_input_port_by_index_const(to, i));
}

static void connect_muxed(bt_graph *graph, const bt_component_source *source, struct sink *sink)
{
    const bt_component_filter *muxer;
    const bt_component_class_filter *cls =
        bt_plugin_borrow_filter_component_class_by_name_const(plugin("utils"), "muxer");
    if (bt_graph_add_filter_component(graph, cls, "muxer", NULL, BT_LOGGING_LEVEL_WARNING, &muxer))
        die("the muxer");
    for (uint64_t i = 0; i < bt_component_source_get_output_port_count(source); i++)
        connect(graph, bt_component_source_borrow_output_port_by_index_const(source, i),
                bt_component_filter_borrow_input_port_by_index_const(muxer, i)); /* has always one more */
    connect(graph, bt_component_filter_borrow_output_port_by_index_const(muxer, 0),
            bt_component_sink_borrow_input_port_by_index_const(add_sink(graph, sink, 1), 0));
}

static void finish_counts(struct sink *sink)
{
    for (size_t i = 0; i < CLASSES; i++) {
        sink->sums.events += sink->counts[i].count;
        sink->sums.classes += sink->counts[i].count > 0;
    }
}

int main(int argc, char **argv)
{
    static struct sink sink;
    if (argc != 3)
        die("usage: read_babeltrace stream|time|count TRACE:");
    bt_graph *graph = bt_graph_create(0);
    const bt_component_source *source = add_source(graph, argv[2]);
    sink.count_only = strcmp(argv[1], "count") == 0;
    if (strcmp(argv[1], "time") == 0)
        connect_muxed(graph, source, &sink);
    else
        connect_streams(graph, source, &sink);
    if (bt_graph_run(graph))
        die("reading");
    finish_counts(&sink);
    const struct sums *s = &sink.sums;
    if (sink.count_only)
        printf("{\"events\": %" PRIu64 ", \"classes\": %" PRIu64 "}\n", s->events, s->classes);
    else
        printf("{\"events\": %" PRIu64 ", \"numbers\": %" PRIu64 ", \"text\": %" PRIu64
               ", \"times\": %" PRIu64 "}\n",
               s->events, s->numbers, s->text, s->times);
    return 0;
}
