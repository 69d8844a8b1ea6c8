/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/kernel_op.h"

#include "base/buf.h"

#include <string.h>

enum { COMM_BYTES = 16, TEXT_MAX = 4096, ADDRESS_TEXT = sizeof("0x0123456789abcdef"), MAX_RT_PRIO = 100 };

/* ---- making ---- */

static const struct {
    enum krait_kernel_type type;
    uint8_t bytes;
    enum krait_kernel_op_kind kind;
} hows[] = {
    [KRAIT_CONVERT_I32] = { KRAIT_KTYPE_I32, 4, KRAIT_KOP_NUMBER },
    [KRAIT_CONVERT_U16] = { KRAIT_KTYPE_U16, 2, KRAIT_KOP_NUMBER },
    [KRAIT_CONVERT_U32] = { KRAIT_KTYPE_U32, 4, KRAIT_KOP_NUMBER },
    [KRAIT_CONVERT_I64] = { KRAIT_KTYPE_I64, 8, KRAIT_KOP_NUMBER },
    [KRAIT_CONVERT_U64] = { KRAIT_KTYPE_U64, 8, KRAIT_KOP_NUMBER },
    [KRAIT_CONVERT_X64] = { KRAIT_KTYPE_X64, 8, KRAIT_KOP_NUMBER },
    [KRAIT_CONVERT_COMM] = { KRAIT_KTYPE_COMM, COMM_BYTES, KRAIT_KOP_COPY },
    [KRAIT_CONVERT_STR] = { KRAIT_KTYPE_STR, 0, KRAIT_KOP_TEXT },
    [KRAIT_CONVERT_LINE] = { KRAIT_KTYPE_STR, 0, KRAIT_KOP_LINE },
    [KRAIT_CONVERT_PRIO] = { KRAIT_KTYPE_I32, 4, KRAIT_KOP_PRIO },
    [KRAIT_CONVERT_RWBS] = { KRAIT_KTYPE_U32, 4, KRAIT_KOP_RWBS },
    [KRAIT_CONVERT_TGID] = { KRAIT_KTYPE_I32, 4, KRAIT_KOP_TGID },
    [KRAIT_CONVERT_FUNC] = { KRAIT_KTYPE_FUNC, 8, KRAIT_KOP_NUMBER },
    [KRAIT_CONVERT_ADDRESS] = { KRAIT_KTYPE_STR, ADDRESS_TEXT, KRAIT_KOP_ADDRESS },
};

enum krait_kernel_type krait_kernel_conversion_type(enum krait_kernel_conversion how)
{
    return hows[how].type;
}

static bool make_text(struct krait_kernel_op *op, enum krait_kernel_conversion how,
                      const struct krait_tracefmt_field *from)
{
    bool comm = how == KRAIT_CONVERT_COMM;
    if (from->is_data_loc)
        op->kind = comm ? KRAIT_KOP_COMM_LOC : KRAIT_KOP_TEXT_LOC;
    else if (comm && from->size < COMM_BYTES)
        op->kind = KRAIT_KOP_COMM_SHORT;
    if (comm && !from->is_data_loc)
        op->bytes = (uint16_t)KRAIT_MIN(op->bytes, COMM_BYTES);
    return (from->is_data_loc && from->size == 4) || from->is_array;
}

bool krait_kernel_op_make(struct krait_kernel_op *op, enum krait_kernel_conversion how,
                          const struct krait_tracefmt_field *from)
{
    *op = (struct krait_kernel_op){
        .kind = (uint8_t)hows[how].kind,
        .out = hows[how].bytes,
        .is_signed = from->is_signed,
        .offset = (uint16_t)from->offset,
        .bytes = (uint16_t)from->size,
    };
    if (how == KRAIT_CONVERT_COMM || how == KRAIT_CONVERT_STR)
        return make_text(op, how, from);
    if (how == KRAIT_CONVERT_RWBS || how == KRAIT_CONVERT_LINE)
        return from->is_array;
    if (op->kind == KRAIT_KOP_NUMBER && op->bytes == op->out)
        op->kind = KRAIT_KOP_COPY;
    return !from->is_array && !from->is_data_loc &&
           (from->size == 1 || from->size == 2 || from->size == 4 || from->size == 8);
}

uint32_t krait_kernel_op_max(const struct krait_kernel_op *op)
{
    if (op->kind == KRAIT_KOP_TEXT)
        return KRAIT_MIN(op->bytes, (uint32_t)TEXT_MAX) + 1;
    if (op->kind == KRAIT_KOP_TEXT_LOC || op->kind == KRAIT_KOP_LINE)
        return TEXT_MAX + 1;
    return op->kind == KRAIT_KOP_COPY ? op->bytes : op->out;
}

/* The kernel stores each argument in a long and says how it was declared. What is not here is as wide as a
 * long: size_t, loff_t, aio_context_t and the like. */
static const struct {
    const char *type;
    enum krait_kernel_conversion how;
} declared[] = {
    { "int", KRAIT_CONVERT_I32 },          { "pid_t", KRAIT_CONVERT_I32 },
    { "clockid_t", KRAIT_CONVERT_I32 },    { "const clockid_t", KRAIT_CONVERT_I32 },
    { "timer_t", KRAIT_CONVERT_I32 },      { "key_t", KRAIT_CONVERT_I32 },
    { "mqd_t", KRAIT_CONVERT_I32 },        { "key_serial_t", KRAIT_CONVERT_I32 },
    { "rwf_t", KRAIT_CONVERT_I32 },        { "__s32", KRAIT_CONVERT_I32 },
    { "unsigned int", KRAIT_CONVERT_U32 }, { "unsigned", KRAIT_CONVERT_U32 },
    { "uid_t", KRAIT_CONVERT_U32 },        { "gid_t", KRAIT_CONVERT_U32 },
    { "qid_t", KRAIT_CONVERT_U32 },        { "u32", KRAIT_CONVERT_U32 },
    { "__u32", KRAIT_CONVERT_U32 },        { "uint32_t", KRAIT_CONVERT_U32 },
    { "umode_t", KRAIT_CONVERT_U16 },      { "long", KRAIT_CONVERT_I64 },
    { "off_t", KRAIT_CONVERT_I64 },        { "loff_t", KRAIT_CONVERT_I64 },
};

bool krait_kernel_is_name(const struct krait_tracefmt_field *field)
{
    static const char *const buffers[] = { "buf", "ubuf", "list", "optval", "shmaddr", "u_msg_ptr" };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(buffers); i++) {
        if (strcmp(field->name, buffers[i]) == 0)
            return false;
    }
    return field->size == 8 &&
           (strcmp(field->type, "const char *") == 0 || strcmp(field->type, "char *") == 0);
}

enum krait_kernel_conversion krait_kernel_conversion_of(const struct krait_tracefmt_field *field)
{
    if (field->is_data_loc)
        return KRAIT_CONVERT_STR;
    if (field->is_pointer)
        return krait_kernel_is_name(field) ? KRAIT_CONVERT_ADDRESS : KRAIT_CONVERT_X64;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(declared); i++) {
        if (strcmp(field->type, declared[i].type) == 0)
            return declared[i].how;
    }
    return strncmp(field->type, "enum ", 5) == 0 ? KRAIT_CONVERT_I32 : KRAIT_CONVERT_U64;
}

/* ---- running ---- */

static uint64_t load(const uint8_t *from, unsigned bytes, bool is_signed)
{
    uint64_t value = 0;
    memcpy(&value, from, bytes); /* little-endian, as every machine that krait records on */
    unsigned unused = 64 - 8 * bytes;
    return is_signed ? (uint64_t)((int64_t)(value << unused) >> unused) : value;
}

static uint8_t *store(uint8_t *to, const void *value, size_t n)
{
    memcpy(to, value, n);
    return to + n;
}

static uint8_t *store_i32(uint8_t *to, int32_t value)
{
    return store(to, &value, sizeof(value));
}

/* What a __data_loc says, cut to the event: *n bytes. */
static const uint8_t *located(const uint8_t *event, size_t size, uint32_t loc, size_t *n)
{
    size_t offset = loc & 0xffff;
    offset = KRAIT_MIN(offset, size);
    *n = KRAIT_MIN((size_t)(loc >> 16), size - offset);
    return event + offset;
}

static uint8_t *put_text(uint8_t *to, const uint8_t *from, size_t n)
{
    n = strnlen((const char *)from, KRAIT_MIN(n, (size_t)TEXT_MAX));
    to = store(to, from, n);
    *to = '\0';
    return to + 1;
}

static uint8_t *put_line(uint8_t *to, const uint8_t *from, size_t n)
{
    uint8_t *end = put_text(to, from, n);
    if (end - to < 2 || end[-2] != '\n')
        return end;
    end[-2] = '\0';
    return end - 1;
}

/* "0x7ffc01abcdef" */
static uint8_t *put_address(uint8_t *to, uint64_t address)
{
    static const char digits[] = "0123456789abcdef";
    *to++ = '0';
    *to++ = 'x';
    for (int shift = address ? (63 - __builtin_clzll(address)) & ~3 : 0; shift >= 0; shift -= 4)
        *to++ = (uint8_t)digits[address >> shift & 15];
    *to = '\0';
    return to + 1;
}

static uint8_t *put_comm(uint8_t *to, const uint8_t *from, size_t n)
{
    n = strnlen((const char *)from, KRAIT_MIN(n, (size_t)COMM_BYTES - 1));
    memset(to, 0, COMM_BYTES);
    memcpy(to, from, n);
    return to + COMM_BYTES;
}

/* Letters of blk_fill_rwbs (kernel/trace/blktrace.c), and LTTng's bits (its block.h). F before the
 * operation's letter is a flush before it, behind it FUA; alone it is the operation. */
static uint32_t rwbs_flags(const uint8_t *text, size_t n)
{
    static const struct {
        char letter;
        uint32_t flag;
    } letters[] = { { 'W', 1 << 0 }, { 'D', 1 << 1 }, { 'R', 1 << 2 },         { 'A', 1 << 3 },
                    { 'S', 1 << 5 }, { 'M', 1 << 6 }, { 'E', 1 << 7 | 1 << 1 } };
    enum { FLUSH = 1 << 8, FUA = 1 << 9, PREFLUSH = 1 << 10 };
    uint32_t flags = 0;
    n = strnlen((const char *)text, n);
    if (n && text[0] == 'F')
        flags |= n > 1 && memchr("WDRE", text[1], 4) ? PREFLUSH : FLUSH;
    for (size_t i = 0; i < n; i++) {
        flags |= i && text[i] == 'F' ? (flags & FLUSH ? 0 : FUA) : 0;
        for (size_t k = 0; k < KRAIT_ARRAY_LEN(letters); k++)
            flags |= text[i] == letters[k].letter ? letters[k].flag : 0;
    }
    return flags;
}

static int32_t tgid_from_proc(int32_t tid)
{
    char path[48];
    KRAIT_AUTO_BUF text = { 0 };
    snprintf(path, sizeof(path), "/proc/%d/status", tid);
    const char *line = krait_buf_read_file(&text, path) || !text.data ? NULL : strstr(text.data, "\nTgid:");
    return line ? (int32_t)strtol(line + strlen("\nTgid:"), NULL, 10) : 0;
}

int32_t krait_kernel_tgid(struct krait_kernel_classes *classes, int32_t tid)
{
    const uint64_t *known = krait_map_get(&classes->tgids, (uint32_t)tid);
    if (known)
        return (int32_t)*known;
    int32_t tgid = tgid_from_proc(tid);
    if (tgid)
        krait_map_put(&classes->tgids, (uint32_t)tid, (uint32_t)tgid);
    return tgid;
}

uint8_t *krait_kernel_op_run(const struct krait_kernel_op *op, struct krait_kernel_classes *classes,
                             const uint8_t *event, size_t n, uint8_t *to)
{
    const uint8_t *from = event + op->offset;
    uint64_t value;
    size_t bytes;
    switch ((enum krait_kernel_op_kind)op->kind) {
    case KRAIT_KOP_COPY:
        return store(to, from, op->bytes);
    case KRAIT_KOP_NUMBER:
        value = load(from, op->bytes, op->is_signed);
        return store(to, &value, op->out);
    case KRAIT_KOP_PRIO:
        return store_i32(to, (int32_t)load(from, op->bytes, true) - MAX_RT_PRIO);
    case KRAIT_KOP_TGID:
        return store_i32(to, krait_kernel_tgid(classes, (int32_t)load(from, op->bytes, true)));
    case KRAIT_KOP_RWBS:
        return store_i32(to, (int32_t)rwbs_flags(from, op->bytes));
    case KRAIT_KOP_TEXT:
        return put_text(to, from, op->bytes);
    case KRAIT_KOP_TEXT_LOC:
        from = located(event, n, (uint32_t)load(from, 4, false), &bytes);
        return put_text(to, from, bytes);
    case KRAIT_KOP_LINE:
        return put_line(to, from, n - KRAIT_MIN(n, (size_t)op->offset));
    case KRAIT_KOP_COMM_LOC:
        from = located(event, n, (uint32_t)load(from, 4, false), &bytes);
        return put_comm(to, from, bytes);
    case KRAIT_KOP_COMM_SHORT:
        return put_comm(to, from, op->bytes);
    case KRAIT_KOP_ADDRESS:
        return put_address(to, load(from, op->bytes, false));
    }
    return to;
}
