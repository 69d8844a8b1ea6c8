# SPDX-License-Identifier: Apache-2.0
"""Large traces, made at once: packets of equal bodies, each 2^27 ns after the one before."""

import functools
import struct

METADATA = """/* CTF 1.8 */
typealias integer { size = 32; align = 8; } := u32;
typealias integer { size = 64; align = 8; } := u64;
trace { major = 1; minor = 8; byte_order = le;
packet.header := struct { u32 magic; u32 stream_id; u64 stream_instance_id; }; };
clock { name = m; freq = 1000000000; };
typealias integer { size = 27; align = 1; map = clock.m.value; } := t27;
typealias integer { size = 64; align = 8; map = clock.m.value; } := t64;
stream { id = 0;
event.header := struct {
  enum : integer { size = 5; align = 1; } { compact = 0 ... 30, extended = 31 } id;
  variant <id> { struct { t27 timestamp; } compact; struct { u32 id; t64 timestamp; } extended; } v; } align(8);
packet.context := struct { t64 timestamp_begin; t64 timestamp_end; u64 content_size; u64 packet_size;
  u64 packet_seq_num; u64 events_discarded; u32 cpu_id; }; };
event { name = tick; id = 0; stream_id = 0; fields := struct { u32 n; }; };
"""
HEAD = struct.Struct("<IIQQQQQQQI")
PACKET_NS = 1 << 27


def events_per_packet(size):
    return (size - HEAD.size) // 8


@functools.lru_cache
def ticks(n):
    return b"".join(struct.pack("<II", i * 8 << 5, i) for i in range(n))


def write_packets(path, count, size, stream=0, discarded=lambda k: 0, seq=lambda k: k):
    """Events 8 ns apart from each packet's begin, numbered from 0 in the field n."""
    n = events_per_packet(size)
    body = ticks(n)
    content = HEAD.size + len(body)
    with open(path, "wb") as file:
        for k in range(count):
            begin = k * PACKET_NS
            sizes = (content * 8, size * 8)
            file.write(HEAD.pack(0xC1FC1FC1, 0, stream, begin, begin + n * 8, *sizes, seq(k), discarded(k), stream))
            file.write(body + bytes(size - content))


def make(folder, streams=1, count=4, size=4096, **packets):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "metadata").write_text(METADATA)
    for stream in range(streams):
        write_packets(folder / f"s{stream}", count, size, stream, **packets)
    return folder
