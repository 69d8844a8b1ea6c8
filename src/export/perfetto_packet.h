/* SPDX-License-Identifier: Apache-2.0
 *
 * The fields of Perfetto's TracePacket (protos/perfetto/trace/trace_packet.proto), for all that writes them.
 */
#ifndef KRAIT_EXPORT_PERFETTO_PACKET_H
#define KRAIT_EXPORT_PERFETTO_PACKET_H

enum { TRACE_PACKET = 1 };
enum {
    PACKET_FTRACE = 1,
    PACKET_PROCESS_TREE = 2,
    PACKET_CLOCK_SNAPSHOT = 6,
    PACKET_TIMESTAMP = 8,
    PACKET_SEQUENCE_ID = 10,
    PACKET_TRACK_EVENT = 11,
    PACKET_INTERNED_DATA = 12,
    PACKET_SEQUENCE_FLAGS = 13,
    PACKET_SYSTEM_INFO = 45,
    PACKET_DEFAULTS = 59,
    PACKET_TRACK_DESCRIPTOR = 60,
};

/* protos/perfetto/trace/track_event: track_descriptor, track_event, debug_annotation;
 * protos/perfetto/trace/interned_data */
enum {
    TRACK_UUID = 1,
    TRACK_NAME = 2,
    TRACK_PROCESS = 3,
    TRACK_THREAD = 4,
    TRACK_PARENT = 5,
    TRACK_COUNTER = 8
};
enum {
    EVENT_CATEGORY = 3,
    EVENT_ANNOTATION = 4,
    EVENT_TYPE = 9,
    EVENT_NAME = 10,
    EVENT_TRACK = 11,
    EVENT_CATEGORY_TEXT = 22,
    EVENT_NAME_TEXT = 23,
    EVENT_LOCATION = 34,
    EVENT_DOUBLE_VALUE = 44,
    EVENT_FLOW = 47,
};
enum { SLICE_BEGIN = 1, SLICE_END = 2, INSTANT = 3, COUNTER = 4 };
enum {
    ANNOTATION_NAME = 1,
    ANNOTATION_NUMBER = 3,
    ANNOTATION_SIGNED = 4,
    ANNOTATION_STRING = 6,
    ANNOTATION_NAME_TEXT = 10,
    ANNOTATION_TEXT = 17
};
enum {
    INTERNED_CATEGORY = 1,
    INTERNED_NAME = 2,
    INTERNED_KEY = 3,
    INTERNED_LOCATION = 4,
    INTERNED_TEXT = 29
};
enum { IID = 1, INTERNED_STRING = 2, LOCATION_FILE = 2, LOCATION_LINE = 4 };

#endif
