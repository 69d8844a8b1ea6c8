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

#endif
