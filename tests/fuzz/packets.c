/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a trace's stream: all events are printed and counted, whatever they are. The first byte
 * chooses the metadata; with ff ff ff ff in the input, what is before them is the metadata itself.
 */
#include "ctf/count.h"
#include "ctf/pretty.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

#define INTS                                                                              \
    "typealias integer { size = 8; align = 8; encoding = UTF8; } := u8;\n"                \
    "typealias integer { size = 16; } := u16; typealias integer { size = 32; } := u32;\n" \
    "typealias integer { size = 64; } := u64; typealias integer { size = 32; signed = true; } := int;\n"

/* As LTTng's: compact header, sizes, discarded events. */
static const char lttng[] =
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
static const char mixed[] = INTS
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

static char dir[64];

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    strcpy(dir, access("/dev/shm", W_OK) ? "/tmp/fuzzXXXXXX" : "/dev/shm/fuzzXXXXXX");
    return mkdtemp(dir) ? 0 : 1;
}

static void write_file(const char *name, const void *bytes, size_t n)
{
    char path[96];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    KRAIT_AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, bytes, n) != (ssize_t)n)
        abort();
}

static void write_trace(const uint8_t *data, size_t size)
{
    static const struct {
        const char *text;
        size_t n;
    } texts[] = { { lttng, sizeof(lttng) - 1 }, { mixed, sizeof(mixed) - 1 } };
    const uint8_t *cut = memmem(data, size, "\xff\xff\xff\xff", 4);
    const uint8_t *stream = cut ? cut + 4 : data + (size > 0);
    size_t which = size ? data[0] % KRAIT_ARRAY_LEN(texts) : 0;
    write_file("metadata", cut ? (const char *)data : texts[which].text,
               cut ? (size_t)(cut - data) : texts[which].n);
    write_file("stream", stream, (size_t)(data + size - stream));
}

static void print_all(struct krait_ctf_reader *reader)
{
    struct krait_ctf_merge *merge;
    struct krait_ctf_cursor *cursor;
    struct krait_pretty pretty = { .flags = KRAIT_PRETTY_GMT | KRAIT_PRETTY_DATE };
    KRAIT_AUTO_BUF out = { 0 };
    if (krait_ctf_merge_new(&merge, reader, NULL))
        abort();
    while ((cursor = krait_ctf_merge_next(merge))) {
        if (krait_pretty_event(&pretty, cursor, &out) && !cursor->err.text[0])
            abort();
        krait_buf_clear(&out);
    }
    krait_ctf_merge_free(merge);
    krait_pretty_done(&pretty);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct krait_ctf_options options = { .text = KRAIT_TEXT_FIELD_NAMES };
    struct krait_ctf_reader *reader = NULL;
    struct krait_ctf_count count;
    const char *path = dir;
    write_trace(data, size);
    if (krait_ctf_open(&reader, &path, 1, &options, NULL))
        return 0;
    print_all(reader);
    if (krait_ctf_count(&count, reader) == 0)
        krait_ctf_count_done(&count);
    krait_ctf_close(reader);
    return 0;
}
