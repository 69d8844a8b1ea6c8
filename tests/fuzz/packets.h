/* SPDX-License-Identifier: Apache-2.0
 *
 * A trace's folder out of an input's bytes, and metadata that goes well with any bytes.
 */
#ifndef KRAIT_TESTS_FUZZ_PACKETS_H
#define KRAIT_TESTS_FUZZ_PACKETS_H

#include "base/base.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define INTS                                                                              \
    "typealias integer { size = 8; align = 8; encoding = UTF8; } := u8;\n"                \
    "typealias integer { size = 16; } := u16; typealias integer { size = 32; } := u32;\n" \
    "typealias integer { size = 64; } := u64; typealias integer { size = 32; signed = true; } := int;\n"

/* As LTTng's: compact header, sizes, discarded events. */
static const char fuzz_lttng[] =
    INTS "trace { major = 1; minor = 8; byte_order = le;\n"
         "packet.header := struct { u32 magic; u8 uuid[16]; u32 stream_id; u64 stream_instance_id; }; };\n"
         "clock { name = m; freq = 1234567; offset_s = 5; };\n"
         "typealias integer { size = 27; align = 1; map = clock.m.value; } := t27;\n"
         "typealias integer { size = 64; align = 8; map = clock.m.value; } := t64;\n"
         "struct header { enum : integer { size = 5; align = 1; } { compact = 0 ... 30, extended = 31 } id;\n"
         "variant <id> { struct { t27 timestamp; } compact; struct { u32 id; t64 timestamp; } extended; } v; "
         "} align(8);\n"
         "stream { id = 0; event.header := struct header; packet.context := struct { t64 timestamp_begin;\n"
         "t64 timestamp_end; u64 content_size; u64 packet_size; u64 packet_seq_num; u32 events_discarded; "
         "u32 cpu_id; };\n"
         "event.context := struct { int _vpid; u8 _procname[17]; }; };\n"
         "event { name = a; id = 0; stream_id = 0; fields := struct { u32 n; string s; u16 tail; }; };\n"
         "event { name = b; id = 1; stream_id = 0; fields := struct { u16 _len; u8 _text[_len]; u16 _n; int "
         "_list[_n]; }; };\n"
         "event { name = c; id = 40; stream_id = 0; };\n";

/* All kinds of fields, in bits of both orders; sizes of packets are not said. */
static const char fuzz_mixed[] = INTS
    "trace { major = 1; minor = 8; byte_order = be; };\n"
    "stream { event.header := struct { integer { size = 3; } id; integer { size = 13; map = clock.c.value; } "
    "timestamp; };\n"
    "packet.context := struct { u16 content_size; }; };\n"
    "clock { name = c; };\n"
    "event { name = a; id = 0; fields := struct { integer { size = 7; signed = true; base = 2; } b;\n"
    "integer { size = 61; byte_order = be; base = 16; } h; floating_point { exp_dig = 8; mant_dig = 24; } "
    "f;\n"
    "integer { size = 5; byte_order = le; align = 8; base = 8; } o; }; };\n"
    "event { name = b; id = 1; fields := struct { enum : u8 { A = 0, B = 1 ... 5, \"x\" = 3, C = 200 ... 255 "
    "} tag;\n"
    "variant <tag> { string A; struct { u8 n; struct { u8 k; u16 a[k]; string s; } list[n]; } B; u64 C[3]; } "
    "v; }; };\n"
    "event { name = d; id = 2; fields := struct { struct { } none; struct { } many[stream.event.header.id];\n"
    "u8 zero[0]; u8 grid[2][3]; integer { size = 1; align = 1; } bits[9]; string last; } align(16); };\n"
    "event { name = e; id = 3; context := struct { u8 n; }; fields := struct { struct { } "
    "none[event.context.n]; }; };\n";

/* CTF 2: what CTF 1.8 has not. */
static const char fuzz_ctf2[] =
    "\x1e"
    "{\"type\":\"preamble\",\"version\":2,\"uuid\":[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15]}"
    "\x1e"
    "{\"type\":\"field-class-alias\",\"name\":\"byte\",\"field-class\":{\"type\":\"fixed-length-unsigned-i"
    "nteger\",\"length\":8,\"byte-order\":\"little-endian\",\"alignment\":8}}"
    "\x1e"
    "{\"type\":\"trace-class\",\"environment\":{\"hostname\":\"h\",\"vpid\":3},\"packet-header-field-class"
    "\":{\"type\":\"structure\",\"member-classes\":[{\"name\":\"magic\",\"field-class\":{\"type\":\"fixed-len"
    "gth-unsigned-integer\",\"length\":32,\"byte-order\":\"little-endian\",\"alignment\":8,\"roles\":[\"p"
    "acket-magic-number\"]}},{\"name\":\"uuid\",\"field-class\":{\"type\":\"static-length-blob\",\"length"
    "\":16,\"roles\":[\"metadata-stream-uuid\"]}},{\"name\":\"stream\",\"field-class\":{\"type\":\"fixed-le"
    "ngth-unsigned-integer\",\"length\":8,\"byte-order\":\"little-endian\",\"alignment\":8,\"roles\":[\"d"
    "ata-stream-id\"]}}]}}"
    "\x1e"
    "{\"type\":\"clock-class\",\"id\":\"c\",\"frequency\":1234567,\"offset-from-origin\":{\"seconds\":-3,\"c"
    "ycles\":5}}"
    "\x1e"
    "{\"type\":\"data-stream-class\",\"default-clock-class-id\":\"c\",\"packet-context-field-class\":{\""
    "type\":\"structure\",\"member-classes\":[{\"name\":\"begin\",\"field-class\":{\"type\":\"variable-leng"
    "th-unsigned-integer\",\"roles\":[\"default-clock-timestamp\"]}},{\"name\":\"end\",\"field-class\":{"
    "\"type\":\"variable-length-unsigned-integer\",\"roles\":[\"packet-end-default-clock-timestamp\"]"
    "}},{\"name\":\"content\",\"field-class\":{\"type\":\"fixed-length-unsigned-integer\",\"length\":16,\""
    "byte-order\":\"little-endian\",\"alignment\":8,\"roles\":[\"packet-content-length\"]}},{\"name\":\"t"
    "otal\",\"field-class\":{\"type\":\"fixed-length-unsigned-integer\",\"length\":16,\"byte-order\":\"li"
    "ttle-endian\",\"alignment\":8,\"roles\":[\"packet-total-length\"]}},{\"name\":\"seq\",\"field-class\""
    ":{\"type\":\"fixed-length-unsigned-integer\",\"length\":8,\"byte-order\":\"little-endian\",\"alignm"
    "ent\":8,\"roles\":[\"packet-sequence-number\"]}},{\"name\":\"lost\",\"field-class\":{\"type\":\"fixed-"
    "length-unsigned-integer\",\"length\":8,\"byte-order\":\"little-endian\",\"alignment\":8,\"roles\":["
    "\"discarded-event-record-counter-snapshot\"]}}]},\"event-record-header-field-class\":{\"type\""
    ":\"structure\",\"member-classes\":[{\"name\":\"id\",\"field-class\":{\"type\":\"fixed-length-unsigned"
    "-integer\",\"length\":4,\"byte-order\":\"little-endian\",\"alignment\":1,\"roles\":[\"event-record-c"
    "lass-id\"]}},{\"name\":\"t\",\"field-class\":{\"type\":\"fixed-length-unsigned-integer\",\"length\":1"
    "2,\"byte-order\":\"little-endian\",\"alignment\":1,\"roles\":[\"default-clock-timestamp\"]}}]},\"ev"
    "ent-record-common-context-field-class\":{\"type\":\"structure\",\"member-classes\":[{\"name\":\"n\""
    ",\"field-class\":\"byte\"}]}}"
    "\x1e"
    "{\"type\":\"event-record-class\",\"id\":0,\"name\":\"texts\",\"payload-field-class\":{\"type\":\"struct"
    "ure\",\"member-classes\":[{\"name\":\"z\",\"field-class\":{\"type\":\"null-terminated-string\"}},{\"na"
    "me\":\"w\",\"field-class\":{\"type\":\"null-terminated-string\",\"encoding\":\"utf-16le\"}},{\"name\":\""
    "w4\",\"field-class\":{\"type\":\"static-length-string\",\"length\":8,\"encoding\":\"utf-32be\"}},{\"na"
    "me\":\"n\",\"field-class\":\"byte\"},{\"name\":\"d\",\"field-class\":{\"type\":\"dynamic-length-"
    "string\","
    "\"length-field-location\":{\"path\":[\"n\"]},\"encoding\":\"utf-16be\"}},{\"name\":\"e\",\"field-class\""
    ":{\"type\":\"dynamic-length-string\",\"length-field-location\":{\"path\":[\"n\"],\"origin\":\"event-r"
    "ecord-common-context\"}}},{\"name\":\"b\",\"field-class\":{\"type\":\"dynamic-length-blob\",\"length"
    "-field-location\":{\"path\":[\"n\"]}}}]}}"
    "\x1e"
    "{\"type\":\"event-record-class\",\"id\":1,\"name\":\"numbers\",\"payload-field-class\":{\"type\":\"stru"
    "cture\",\"member-classes\":[{\"name\":\"v\",\"field-class\":{\"type\":\"variable-length-unsigned-int"
    "eger\"}},{\"name\":\"s\",\"field-class\":{\"type\":\"variable-length-signed-integer\",\"mappings\":{\""
    "low\":[[-5,-1]],\"high\":[[7,9],[20,20]]}}},{\"name\":\"m\",\"field-class\":{\"type\":\"fixed-length"
    "-bit-map\",\"length\":9,\"byte-order\":\"big-endian\",\"bit-order\":\"last-to-first\",\"flags\":{\"a\":"
    "[[0,3]],\"b\":[[2,8]]}}},{\"name\":\"t\",\"field-class\":{\"type\":\"fixed-length-boolean\",\"length\""
    ":7,\"byte-order\":\"big-endian\",\"bit-order\":\"last-to-first\"}},{\"name\":\"f\",\"field-class\":{\"t"
    "ype\":\"fixed-length-floating-point-number\",\"length\":32,\"byte-order\":\"big-endian\"}},{\"name"
    "\":\"g\",\"field-class\":{\"type\":\"fixed-length-floating-point-number\",\"length\":64,\"byte-order"
    "\":\"little-endian\",\"alignment\":32}},{\"name\":\"r\",\"field-class\":{\"type\":\"fixed-length-unsig"
    "ned-integer\",\"length\":13,\"byte-order\":\"little-endian\",\"alignment\":1,\"bit-order\":\"last-to"
    "-first\"}},{\"name\":\"a\",\"field-class\":{\"type\":\"fixed-length-bit-array\",\"length\":3,\"byte-or"
    "der\":\"little-endian\"}}]}}"
    "\x1e"
    "{\"type\":\"event-record-class\",\"id\":2,\"name\":\"choices\",\"specific-context-field-class\":{\"ty"
    "pe\":\"structure\",\"member-classes\":[{\"name\":\"k\",\"field-class\":{\"type\":\"fixed-length-signed"
    "-integer\",\"length\":8,\"byte-order\":\"big-endian\"}}]},\"payload-field-class\":{\"type\":\"struct"
    "ure\",\"member-classes\":[{\"name\":\"o\",\"field-class\":{\"type\":\"optional\",\"selector-field-loca"
    "tion\":{\"path\":[\"k\"],\"origin\":\"event-record-specific-context\"},\"selector-field-ranges\":[["
    "-9,4],[100,127]],\"field-class\":{\"type\":\"structure\",\"member-classes\":[{\"name\":\"i\",\"field-"
    "class\":\"byte\"},{\"name\":\"l\",\"field-class\":{\"type\":\"dynamic-length-array\",\"length-field-lo"
    "cation\":{\"path\":[\"i\"]},\"element-field-class\":{\"type\":\"variable-length-signed-integer\"}}}"
    "]}}},{\"name\":\"v\",\"field-class\":{\"type\":\"variant\",\"selector-field-location\":{\"path\":[\"k\"]"
    ",\"origin\":\"event-record-specific-context\"},\"options\":[{\"name\":\"one\",\"selector-field-rang"
    "es\":[[-128,0]],\"field-class\":{\"type\":\"null-terminated-string\"}},{\"selector-field-ranges\""
    ":[[1,100]],\"field-class\":{\"type\":\"static-length-array\",\"length\":3,\"minimum-alignment\":16"
    ",\"element-field-class\":{\"type\":\"structure\",\"member-classes\":[{\"name\":\"x\",\"field-class\":{"
    "\"type\":\"fixed-length-unsigned-integer\",\"length\":5,\"byte-order\":\"little-endian\",\"alignmen"
    "t\":1}},{\"name\":\"y\",\"field-class\":{\"type\":\"static-length-blob\",\"length\":2}}]}}}]}},{\"name"
    "\":\"end\",\"field-class\":{\"type\":\"fixed-length-unsigned-integer\",\"length\":16,\"byte-order\":\""
    "big-endian\",\"alignment\":8}}]}}"
    "\x1e"
    "{\"type\":\"event-record-class\",\"id\":3,\"payload-field-class\":{\"type\":\"structure\",\"member-cl"
    "asses\":[]}}";

enum { FUZZ_TEXTS = 3 };

static char fuzz_dir[64];

static void fuzz_remove_dir(void)
{
    static const char *const names[] = { "metadata", "s0",          "s1",          "index/s0.idx",
                                         "index",    "definitions", "thread-10-0", "." };
    char path[96];
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(names); i++) {
        snprintf(path, sizeof(path), "%s/%s", fuzz_dir, names[i]);
        remove(path);
    }
    rmdir(fuzz_dir);
}

static int fuzz_make_dir(void)
{
    char index[96];
    strcpy(fuzz_dir, access("/dev/shm", W_OK) ? "/tmp/fuzzXXXXXX" : "/dev/shm/fuzzXXXXXX");
    if (!mkdtemp(fuzz_dir))
        return 1;
    snprintf(index, sizeof(index), "%s/index", fuzz_dir);
    return mkdir(index, 0700) ? 1 : atexit(fuzz_remove_dir);
}

static void fuzz_write_file(const char *name, const void *bytes, size_t n)
{
    char path[96];
    snprintf(path, sizeof(path), "%s/%s", fuzz_dir, name);
    KRAIT_AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, bytes, n) != (ssize_t)n)
        abort();
}

/* Writes what is before the next ff ff ff ff to a file, and goes behind it. */
static void fuzz_write_part(const char *name, const uint8_t **data, size_t *size)
{
    const uint8_t *cut = *size ? memmem(*data, *size, "\xff\xff\xff\xff", 4) : NULL;
    size_t n = cut ? (size_t)(cut - *data) : *size, behind = cut ? n + 4 : n;
    fuzz_write_file(name, *data, n);
    *data += behind;
    *size -= behind;
}

static inline void fuzz_write_trace(const uint8_t *data, size_t size)
{
    static const struct {
        const char *text;
        size_t n;
    } texts[FUZZ_TEXTS] = { { fuzz_lttng, sizeof(fuzz_lttng) - 1 },
                            { fuzz_mixed, sizeof(fuzz_mixed) - 1 },
                            { fuzz_ctf2, sizeof(fuzz_ctf2) - 1 } };
    if (size && data[0] < FUZZ_TEXTS) {
        fuzz_write_file("metadata", texts[data[0]].text, texts[data[0]].n);
        fuzz_write_file("s0", data + 1, size - 1);
        fuzz_write_file("s1", "", 0);
        return;
    }
    fuzz_write_part("metadata", &data, &size);
    fuzz_write_part("s0", &data, &size);
    fuzz_write_file("s1", data, size);
}

#endif
