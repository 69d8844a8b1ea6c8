/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/kernel_tsdl.h"

#include "base/outfile.h"
#include "ctf/write/tsdl_write.h"
#include "record/traceid.h"

#include <fcntl.h>
#include <string.h>
#include <sys/utsname.h>

static const struct {
    const char *type, *behind; /* what follows the field's name */
} types[] = {
    [KRAIT_KTYPE_I32] = { "int32_t", "" },     [KRAIT_KTYPE_U16] = { "uint16_t", "" },
    [KRAIT_KTYPE_U32] = { "uint32_t", "" },    [KRAIT_KTYPE_I64] = { "int64_t", "" },
    [KRAIT_KTYPE_U64] = { "uint64_t", "" },    [KRAIT_KTYPE_X64] = { "hex64_t", "" },
    [KRAIT_KTYPE_COMM] = { "char_t", "[16]" }, [KRAIT_KTYPE_STR] = { "text_t", "" },
    [KRAIT_KTYPE_FUNC] = { "function_t", "" },
};

static void add_types(struct krait_buf *out)
{
    static const struct {
        const char *name;
        unsigned bits, base;
        bool is_signed, text;
    } ints[] = { { "uint8_t", 8, 10, false, false },   { "uint16_t", 16, 10, false, false },
                 { "uint32_t", 32, 10, false, false }, { "uint64_t", 64, 10, false, false },
                 { "int32_t", 32, 10, true, false },   { "int64_t", 64, 10, true, false },
                 { "hex64_t", 64, 16, false, false },  { "char_t", 8, 10, false, true } };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(ints); i++)
        krait_buf_fmt(out,
                      "typealias integer { size = %u; align = 8; signed = %s; base = %u; encoding = %s; } :="
                      " %s;\n",
                      ints[i].bits, ints[i].is_signed ? "true" : "false", ints[i].base,
                      ints[i].text ? "UTF8" : "none", ints[i].name);
    krait_buf_str(out, "typealias string { encoding = UTF8; } := text_t;\n");
}

/* What is traced of a function is the place where its tracing is patched in: at its beginning, or behind one
 * or two instructions that mark it as a target of jumps. */
static void add_functions(struct krait_buf *out, const struct krait_kernel_symbols *symbols)
{
    enum { PATCHED_WITHIN = 8 };
    if (!symbols->count)
        return;
    krait_buf_str(out, "typealias enum : hex64_t {");
    for (size_t i = 0; i < symbols->count; i++)
        krait_buf_fmt(out, "%s\n    \"%s\" = 0x%llx ... 0x%llx", i ? "," : "", symbols->items[i].name,
                      (unsigned long long)symbols->items[i].address,
                      (unsigned long long)symbols->items[i].address + PATCHED_WITHIN);
    krait_buf_str(out, "\n} := function_t;\n");
}

static void add_trace(struct krait_buf *out, const uint8_t uuid[16])
{
    krait_buf_str(out, "\ntrace {\n    major = 1;\n    minor = 8;\n    uuid = \"");
    krait_tsdl_write_uuid(out, uuid);
    krait_buf_str(out, "\";\n    byte_order = le;\n    packet.header := struct {\n        uint32_t magic;\n"
                       "        uint8_t uuid[16];\n        uint32_t stream_id;\n"
                       "        uint64_t stream_instance_id;\n    };\n};\n");
}

static void add_env_text(struct krait_buf *out, const char *key, const char *value)
{
    krait_buf_fmt(out, "    %s = ", key);
    krait_tsdl_write_literal(out, value);
    krait_buf_str(out, ";\n");
}

/* As wide as any number: it is written over where the disk has no room for a new file. */
#define REFUSED        "    disk_refused = "
#define NO_ROOM        "    size_limit_refused = "
#define REFUSED_FORMAT "%20llu"

static void add_env(struct krait_buf *out, const char *tracer, const struct krait_kernel_unwritten *unwritten)
{
    struct utsname host;
    uname(&host);
    krait_buf_str(out, "\nenv {\n    domain = \"kernel\";\n");
    add_env_text(out, "hostname", host.nodename);
    add_env_text(out, "sysname", host.sysname);
    add_env_text(out, "kernel_release", host.release);
    add_env_text(out, "kernel_version", host.version);
    krait_buf_str(out, tracer);
    add_env_text(out, "recorded_by", "krait " KRAIT_VERSION);
    krait_buf_fmt(out, REFUSED REFUSED_FORMAT ";\n", (unsigned long long)unwritten->refused);
    krait_buf_fmt(out, NO_ROOM REFUSED_FORMAT ";\n", (unsigned long long)unwritten->no_room);
    krait_buf_str(out, "};\n");
}

static void add_stream(struct krait_buf *out)
{
    krait_buf_str(out, "\nstruct event_header_large {\n"
                       "    enum : uint16_t { compact = 0 ... 65534, extended = 65535 } id;\n"
                       "    variant <id> {\n"
                       "        struct { uint32_time_t timestamp; } compact;\n"
                       "        struct { uint32_t id; uint64_time_t timestamp; } extended;\n"
                       "    } v;\n} align(8);\n"
                       "\nstruct packet_context {\n"
                       "    uint64_time_t timestamp_begin;\n    uint64_time_t timestamp_end;\n"
                       "    uint64_t content_size;\n    uint64_t packet_size;\n"
                       "    uint64_t packet_seq_num;\n    uint64_t events_discarded;\n"
                       "    uint32_t cpu_id;\n};\n"
                       "\nstream {\n    id = 0;\n    event.header := struct event_header_large;\n"
                       "    packet.context := struct packet_context;\n"
                       "    event.context := struct { int32_t _tid; };\n};\n");
}

static void add_event(struct krait_buf *out, const struct krait_kernel_class *class)
{
    krait_buf_fmt(out,
                  "\nevent {\n    name = \"%s\";\n    id = %u;\n    stream_id = 0;\n    fields := struct {\n",
                  class->name, class->id);
    for (uint16_t i = 0; i < class->field_count; i++)
        krait_buf_fmt(out, "        %s _%s%s;\n", types[class->fields[i].type].type, class->fields[i].name,
                      types[class->fields[i].type].behind);
    krait_buf_str(out, "    };\n};\n");
}

static void add_all(struct krait_buf *out, const char *tracer, const struct krait_kernel_classes *classes,
                    const struct krait_clock *clock, const uint8_t uuid[16],
                    const struct krait_kernel_unwritten *unwritten)
{
    struct krait_tsdl_clock about;
    krait_traceid_clock(&about, clock);
    krait_buf_str(out, "/* CTF 1.8 */\n\n");
    add_types(out);
    add_functions(out, &classes->symbols);
    add_trace(out, uuid);
    add_env(out, tracer, unwritten);
    krait_tsdl_write_clock(out, &about);
    krait_buf_str(out, "typealias integer { size = 32; align = 8; signed = false;"
                       " map = clock.monotonic.value; } := uint32_time_t;\n"
                       "typealias integer { size = 64; align = 8; signed = false;"
                       " map = clock.monotonic.value; } := uint64_time_t;\n");
    add_stream(out);
    for (size_t i = 0; i < classes->count; i++) {
        if (classes->items[i].name[0])
            add_event(out, &classes->items[i]);
    }
}

/* Writes the number of refused events over that in the metadata. */
static int write_refused(const char *path, uint64_t refused)
{
    char text[24];
    KRAIT_AUTO_BUF old = { 0 };
    KRAIT_AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);
    int rc = fd < 0 ? -errno : krait_buf_read_file(&old, path);
    const char *at = rc ? NULL : strstr(old.data, REFUSED);
    if (!at)
        return rc ? rc : -ENOENT;
    int n = snprintf(text, sizeof(text), REFUSED_FORMAT, (unsigned long long)refused);
    return pwrite(fd, text, (size_t)n, at - old.data + (off_t)strlen(REFUSED)) == n ? 0 : -EIO;
}

int krait_kernel_tsdl_write(const char *dir, const char *tracer, const struct krait_kernel_classes *classes,
                            const struct krait_clock *clock, const uint8_t uuid[16],
                            const struct krait_kernel_unwritten *unwritten, struct krait_err *err)
{
    KRAIT_AUTO_FREE char *path = NULL;
    KRAIT_AUTO_OUTFILE out = KRAIT_OUTFILE_INIT;
    if (asprintf(&path, "%s/metadata", dir) < 0)
        return krait_err_set(err, -ENOMEM, "out of memory");
    int rc = krait_outfile_open(&out, path, err);
    if (!rc) {
        add_all(&out.buf, tracer, classes, clock, uuid, unwritten);
        rc = krait_outfile_commit(&out, err);
    }
    return rc && unwritten->refused && write_refused(path, unwritten->refused) == 0 ? 0 : rc;
}
