# SPDX-License-Identifier: Apache-2.0
"""CTF 1.8 streams made packet by packet, with times that wrap around."""

import struct

METADATA = """/* CTF 1.8 */
typealias integer {{ size = 16; align = 8; }} := u16;
typealias integer {{ size = 32; align = 8; }} := u32;
typealias integer {{ size = 64; align = 8; }} := u64;
typealias integer {{ size = 32; align = 8; map = clock.c.value; }} := low;
typealias integer {{ size = 64; align = 8; map = clock.c.value; }} := time;
trace {{ major = 1; minor = 8; byte_order = le; }};
clock {{ name = c; freq = {frequency}; offset = {offset}; }};
stream {{
    packet.context := struct {{ u64 content_size; u64 packet_size; time timestamp_begin; }};
    event.header := {header};
}};
event {{ name = plain; id = 1; fields := struct {{ u16 n; }}; }};
event {{ name = sets; id = {last_id}; fields := struct {{ time clock_from_now_on; }}; }};
"""
BARE = "struct { u64 id; }"
FLAT = "struct { u64 id; time timestamp; }"
LARGE = """struct { enum : u16 { compact = 0 ... 65534, extended = 65535 } id;
    variant <id> { struct { low timestamp; } compact; struct { u32 id; time timestamp; } extended; } v; } align(8)"""


def flat(time):
    return struct.pack("<QQH", 1, time, 7)


def bare():
    return struct.pack("<QH", 1, 7)


def extended(time):
    return struct.pack("<HIQH", 65535, 1, time, 7)


def low(time):
    return struct.pack("<HIH", 1, time & 0xFFFFFFFF, 7)


def packet(begin, *events):
    body = b"".join(events)
    size = (24 + len(body)) * 8
    return struct.pack("<QQQ", size, size, begin) + body


def write(folder, *streams, header=FLAT, frequency=10**9, offset=0, last_id=2):
    folder.mkdir()
    text = METADATA.format(header=header, frequency=frequency, offset=offset, last_id=last_id)
    (folder / "metadata").write_text(text)
    for i, packets in enumerate(streams):
        (folder / f"s{i}").write_bytes(b"".join(packets))
    return folder
