/* SPDX-License-Identifier: Apache-2.0
 *
 * .eh_frame_hdr has a table of functions, ordered by address; each entry leads to an FDE in .eh_frame, which names its CIE:
 *
 *     .eh_frame_hdr   version=1  encodings: 0x1b, 0x03, 0x3b  address of .eh_frame  count   { function, FDE }...
 *     CIE             length  0   version  "zR"  code align  data align  return address  ...  instructions
 *     FDE             length  to its CIE   function  bytes of it  ...  instructions
 *
 * The instructions of both make the row of rules for one place in the function.
 */
#include "remote/cfi.h"

#include "base/array.h"
#include "base/cursor.h"

/* -- numbers -- */

bool krait_cfi_unsigned(struct krait_cursor *at, uint64_t *value)
{
    uint8_t byte = 0x80;
    *value = 0;
    for (unsigned shift = 0; byte & 0x80; shift += 7) {
        if (!krait_read_bytes(at, &byte, 1))
            return false;
        *value |= shift < 64 ? (uint64_t)(byte & 0x7f) << shift : 0;
    }
    return true;
}

bool krait_cfi_signed(struct krait_cursor *at, int64_t *value)
{
    uint64_t bits;
    const uint8_t *begin = at->at;
    if (!krait_cfi_unsigned(at, &bits))
        return false;
    unsigned used = 7 * (unsigned)(at->at - begin);
    bool negative = at->at[-1] & 0x40;
    *value = (int64_t)(negative && used < 64 ? bits | ~0ull << used : bits);
    return true;
}

/* A number of 1 to 8 bytes. */
static bool read_fixed(struct krait_cursor *at, size_t size, bool is_signed, uint64_t *value)
{
    *value = 0;
    if (!krait_read_bytes(at, value, size))
        return false;
    unsigned unused = 64 - 8 * (unsigned)size;
    if (is_signed)
        *value = (uint64_t)((int64_t)(*value << unused) >> unused);
    return true;
}

/* DW_EH_PE: how a pointer is written. */
enum { FORMAT = 0x0f, RELATIVE = 0x70, TO_ITSELF = 0x10, INDIRECT = 0x80, OMITTED = 0xff };

static bool read_value(struct krait_cursor *at, uint8_t encoding, uint64_t *value)
{
    static const uint8_t sizes[FORMAT + 1] = {
        [0] = 8, [2] = 2, [3] = 4, [4] = 8, [10] = 2, [11] = 4, [12] = 8
    };
    enum { UNSIGNED_LEB = 1, SIGNED_LEB = 9 };
    unsigned format = encoding & FORMAT;
    int64_t number = 0;
    if (format == UNSIGNED_LEB)
        return krait_cfi_unsigned(at, value);
    if (format != SIGNED_LEB)
        return sizes[format] && read_fixed(at, sizes[format], format > SIGNED_LEB, value);
    bool ok = krait_cfi_signed(at, &number);
    *value = (uint64_t)number;
    return ok;
}

/* -- the file -- */

/* Bytes of a part of the file, and the address that they are linked for. */
struct section {
    struct krait_cursor bytes;
    const uint8_t *begin;
    uint64_t address;
};

static uint64_t address_of(const struct section *section, const uint8_t *at)
{
    return section->address + (uint64_t)(at - section->begin);
}

static bool read_pointer(struct section *section, uint8_t encoding, uint64_t *value)
{
    uint64_t here = address_of(section, section->bytes.at);
    bool ok = (encoding & RELATIVE) <= TO_ITSELF && !(encoding & INDIRECT) &&
              read_value(&section->bytes, encoding, value);
    if (ok && (encoding & RELATIVE) == TO_ITSELF)
        *value += here;
    return ok;
}

static bool open_section(const struct krait_elf *elf, uint64_t address, struct section *section)
{
    size_t size;
    const void *at = krait_elf_bytes(elf, address, &size);
    if (at)
        *section = (struct section){ { at, (const uint8_t *)at + size }, at, address };
    return at;
}

static int64_t number_at(const uint8_t *at)
{
    int32_t number;
    memcpy(&number, at, sizeof(number));
    return number;
}

/* The address of the FDE of the last function that begins at or before `address`. */
static int find_fde(const struct krait_elf *elf, uint64_t address, uint64_t *fde)
{
    enum { VERSION = 1, TABLE = 0x3b, ENTRY = 8 }; /* pairs of 4 bytes each, relative to the section */
    struct section head;
    uint64_t begin, frames, count;
    uint8_t kinds[4];
    if (!krait_elf_frames(elf, &begin) || !open_section(elf, begin, &head))
        return -ENODATA;
    if (!krait_read_bytes(&head.bytes, kinds, sizeof(kinds)) || kinds[0] != VERSION || kinds[3] != TABLE ||
        !read_pointer(&head, kinds[1], &frames) || !read_value(&head.bytes, kinds[2], &count) ||
        count > (uint64_t)(head.bytes.end - head.bytes.at) / ENTRY)
        return -EINVAL;
    int64_t wanted = (int64_t)(address - begin);
    uint64_t behind = KRAIT_PARTITION_POINT(i, count, number_at(head.bytes.at + i * ENTRY) <= wanted);
    if (behind)
        *fde = begin + (uint64_t)number_at(head.bytes.at + behind * ENTRY - sizeof(int32_t));
    return behind ? 0 : -ENODATA;
}

/* The record at `address`: its bytes after the length. */
static bool open_record(const struct krait_elf *elf, uint64_t address, struct section *record)
{
    enum { LONG = 0xffffffff };
    uint32_t length;
    if (!open_section(elf, address, record) || !krait_read_bytes(&record->bytes, &length, sizeof(length)) ||
        length == LONG || length > (size_t)(record->bytes.end - record->bytes.at))
        return false;
    record->bytes.end = record->bytes.at + length;
    return true;
}

struct cie {
    uint64_t code_align;
    int64_t data_align;
    uint64_t return_address;
    uint8_t pointers; /* their encoding in FDEs */
    bool has_size;    /* of what stands before the instructions of an FDE */
    bool is_signal;
    struct krait_cursor instructions;
};

/* What the letters after `z` announce. False for one that is not known. */
static bool read_augmentation(struct section *at, const char *letters, struct cie *cie)
{
    for (; *letters; letters++) {
        uint8_t encoding = 0;
        uint64_t unused;
        if (*letters == 'S' || *letters == 'B' ||
            *letters == 'G') { /* B, G: pointer authentication, memory tags */
            cie->is_signal |= *letters == 'S';
            continue;
        }
        if (!krait_read_bytes(&at->bytes, &encoding, 1))
            return false;
        if (*letters == 'R')
            cie->pointers = encoding;
        else if (*letters == 'P' ? !read_value(&at->bytes, encoding, &unused) : *letters != 'L')
            return false;
    }
    return true;
}

static bool read_cie(const struct krait_elf *elf, uint64_t address, struct cie *cie)
{
    struct section at;
    uint32_t id;
    uint8_t version, narrow = 0;
    uint64_t size = 0;
    const char *letters;
    *cie = (struct cie){ 0 };
    if (!open_record(elf, address, &at) || !krait_read_bytes(&at.bytes, &id, sizeof(id)) || id ||
        !krait_read_bytes(&at.bytes, &version, 1) || !krait_read_text(&at.bytes, &letters) ||
        !krait_cfi_unsigned(&at.bytes, &cie->code_align) || !krait_cfi_signed(&at.bytes, &cie->data_align))
        return false;
    bool ok = version == 1 ? krait_read_bytes(&at.bytes, &narrow, 1)
                           : krait_cfi_unsigned(&at.bytes, &cie->return_address);
    cie->return_address += narrow;
    cie->has_size = *letters == 'z';
    if (!ok || cie->return_address >= KRAIT_CFI_REGISTERS || (*letters && !cie->has_size))
        return false;
    cie->instructions = at.bytes;
    if (!cie->has_size)
        return true;
    if (!krait_cfi_unsigned(&at.bytes, &size) || size > (uint64_t)(at.bytes.end - at.bytes.at))
        return false;
    cie->instructions.at = at.bytes.at + size;
    return read_augmentation(&at, letters + 1, cie);
}

/* -- instructions -- */

enum { KEPT_ROWS = 8 };

struct run {
    const struct cie *cie;
    struct krait_cfi_row *row;
    struct krait_cfi_row first; /* what the CIE says */
    struct krait_cfi_row kept[KEPT_ROWS];
    unsigned depth;
    uint64_t location, wanted;
};

struct operands {
    uint64_t reg; /* or how far to advance */
    int64_t value;
    const uint8_t *block;
    uint32_t size;
};

static bool set_rule(struct run *run, const struct operands *o, enum krait_cfi_kind kind, int64_t offset)
{
    if (o->reg < KRAIT_CFI_REGISTERS) /* others are of vectors */
        run->row->registers[o->reg] =
            (struct krait_cfi_rule){ .kind = kind, .of = (uint8_t)o->value, .offset = offset };
    return true;
}

static bool set_expression(struct run *run, const struct operands *o, enum krait_cfi_kind kind)
{
    if (o->reg < KRAIT_CFI_REGISTERS)
        run->row->registers[o->reg] =
            (struct krait_cfi_rule){ .kind = kind, .size = o->size, .expression = o->block };
    return true;
}

static int64_t scaled(const struct run *run, int64_t by)
{
    return (int64_t)((uint64_t)by * (uint64_t)run->cie->data_align);
}

static bool do_nothing(struct run *run, const struct operands *o)
{
    return true;
}

static bool do_advance(struct run *run, const struct operands *o)
{
    run->location += o->reg * run->cie->code_align;
    return true;
}

static bool do_offset(struct run *run, const struct operands *o)
{
    return set_rule(run, o, KRAIT_CFI_OFFSET, scaled(run, o->value));
}

static bool do_negative_offset(struct run *run, const struct operands *o)
{
    return set_rule(run, o, KRAIT_CFI_OFFSET, -scaled(run, o->value));
}

static bool do_value(struct run *run, const struct operands *o)
{
    return set_rule(run, o, KRAIT_CFI_VALUE, scaled(run, o->value));
}

static bool do_restore(struct run *run, const struct operands *o)
{
    if (o->reg < KRAIT_CFI_REGISTERS)
        run->row->registers[o->reg] = run->first.registers[o->reg];
    return true;
}

static bool do_undefined(struct run *run, const struct operands *o)
{
    return set_rule(run, o, KRAIT_CFI_UNDEFINED, 0);
}

static bool do_same(struct run *run, const struct operands *o)
{
    return set_rule(run, o, KRAIT_CFI_SAME, 0);
}

static bool do_register(struct run *run, const struct operands *o)
{
    return (uint64_t)o->value < KRAIT_CFI_REGISTERS && set_rule(run, o, KRAIT_CFI_REGISTER, 0);
}

static bool do_keep(struct run *run, const struct operands *o)
{
    if (run->depth == KEPT_ROWS)
        return false;
    run->kept[run->depth++] = *run->row;
    return true;
}

static bool do_take_back(struct run *run, const struct operands *o)
{
    if (!run->depth)
        return false;
    *run->row = run->kept[--run->depth];
    return true;
}

static bool do_cfa(struct run *run, const struct operands *o)
{
    run->row->cfa =
        (struct krait_cfi_rule){ .kind = KRAIT_CFI_REGISTER, .of = (uint8_t)o->reg, .offset = o->value };
    return o->reg < KRAIT_CFI_REGISTERS;
}

static bool do_cfa_scaled(struct run *run, const struct operands *o)
{
    struct operands by = { .reg = o->reg, .value = scaled(run, o->value) };
    return do_cfa(run, &by);
}

static bool do_cfa_register(struct run *run, const struct operands *o)
{
    struct operands same = { .reg = o->reg, .value = run->row->cfa.offset };
    return run->row->cfa.kind == KRAIT_CFI_REGISTER && do_cfa(run, &same);
}

static bool do_cfa_offset(struct run *run, const struct operands *o)
{
    struct operands same = { .reg = run->row->cfa.of, .value = o->value };
    return run->row->cfa.kind == KRAIT_CFI_REGISTER && do_cfa(run, &same);
}

static bool do_cfa_offset_scaled(struct run *run, const struct operands *o)
{
    struct operands by = { .value = scaled(run, o->value) };
    return do_cfa_offset(run, &by);
}

static bool do_cfa_expression(struct run *run, const struct operands *o)
{
    run->row->cfa =
        (struct krait_cfi_rule){ .kind = KRAIT_CFI_EXPRESSION, .size = o->size, .expression = o->block };
    return true;
}

static bool do_at_expression(struct run *run, const struct operands *o)
{
    return set_expression(run, o, KRAIT_CFI_AT_EXPRESSION);
}

static bool do_expression(struct run *run, const struct operands *o)
{
    return set_expression(run, o, KRAIT_CFI_EXPRESSION);
}

enum operand { NONE, BYTES_1, BYTES_2, BYTES_4, REG, UNSIGNED, SIGNED, BLOCK };

/* DWARF 5, 7.24; 2d: of AArch64; 2e and 2f: of GNU. 01, which compilers do not write, is missing. */
static const struct instruction {
    bool (*run)(struct run *run, const struct operands *o);
    uint8_t first, second;
} instructions[] = {
    [0x00] = { do_nothing, NONE, NONE },
    [0x02] = { do_advance, BYTES_1, NONE },
    [0x03] = { do_advance, BYTES_2, NONE },
    [0x04] = { do_advance, BYTES_4, NONE },
    [0x05] = { do_offset, REG, UNSIGNED },
    [0x06] = { do_restore, REG, NONE },
    [0x07] = { do_undefined, REG, NONE },
    [0x08] = { do_same, REG, NONE },
    [0x09] = { do_register, REG, UNSIGNED },
    [0x0a] = { do_keep, NONE, NONE },
    [0x0b] = { do_take_back, NONE, NONE },
    [0x0c] = { do_cfa, REG, UNSIGNED },
    [0x0d] = { do_cfa_register, REG, NONE },
    [0x0e] = { do_cfa_offset, NONE, UNSIGNED },
    [0x0f] = { do_cfa_expression, NONE, BLOCK },
    [0x10] = { do_at_expression, REG, BLOCK },
    [0x11] = { do_offset, REG, SIGNED },
    [0x12] = { do_cfa_scaled, REG, SIGNED },
    [0x13] = { do_cfa_offset_scaled, NONE, SIGNED },
    [0x14] = { do_value, REG, UNSIGNED },
    [0x15] = { do_value, REG, SIGNED },
    [0x16] = { do_expression, REG, BLOCK },
    [0x2d] = { do_nothing, NONE, NONE },
    [0x2e] = { do_nothing, NONE, UNSIGNED },
    [0x2f] = { do_negative_offset, REG, UNSIGNED },
};

static bool read_operand(struct krait_cursor *code, enum operand kind, struct operands *o)
{
    uint64_t number = 0;
    bool ok = true;
    if (kind >= BYTES_1 && kind <= BYTES_4)
        return read_fixed(code, kind == BYTES_4 ? 4 : kind, false, &o->reg);
    if (kind == REG)
        return krait_cfi_unsigned(code, &o->reg);
    if (kind == SIGNED)
        return krait_cfi_signed(code, &o->value);
    if (kind == UNSIGNED || kind == BLOCK)
        ok = krait_cfi_unsigned(code, &number);
    if (kind == UNSIGNED)
        o->value = (int64_t)number;
    if (kind != BLOCK || !ok)
        return ok;
    o->block = code->at;
    o->size = (uint32_t)number;
    ok = number <= KRAIT_MIN((uint64_t)(code->end - code->at), (uint64_t)UINT32_MAX);
    code->at += ok ? number : 0;
    return ok;
}

/* Runs instructions up to the wanted place. */
static bool run_all(struct run *run, struct krait_cursor code)
{
    enum { SHORT = 0xc0, SHORT_REST = 0x3f };
    static const struct instruction shorts[] = { /* their first operand is in the byte */
                                                 [1] = { do_advance, NONE, NONE },
                                                 [2] = { do_offset, NONE, UNSIGNED },
                                                 [3] = { do_restore, NONE, NONE }
    };
    while (code.at < code.end) {
        uint8_t byte = *code.at++;
        struct operands o = { .reg = byte & SHORT ? byte & SHORT_REST : 0 };
        const struct instruction *i = byte & SHORT                           ? &shorts[byte >> 6]
                                      : byte < KRAIT_ARRAY_LEN(instructions) ? &instructions[byte]
                                                                             : &instructions[1];
        if (!i->run || !read_operand(&code, i->first, &o) || !read_operand(&code, i->second, &o))
            return false;
        if (!i->run(run, &o))
            return false;
        if (run->location > run->wanted) /* what follows is for later places */
            return true;
    }
    return true;
}

int krait_cfi_find(const struct krait_elf *elf, uint64_t address, struct krait_cfi *cfi)
{
    struct section at;
    struct cie cie;
    uint64_t fde, begin, size, skipped = 0;
    uint32_t back;
    int rc = find_fde(elf, address, &fde);
    if (rc)
        return rc;
    if (!open_record(elf, fde, &at))
        return -EINVAL;
    uint64_t here = address_of(&at, at.bytes.at);
    if (!krait_read_bytes(&at.bytes, &back, sizeof(back)) || !back || !read_cie(elf, here - back, &cie) ||
        !read_pointer(&at, cie.pointers, &begin) || !read_value(&at.bytes, cie.pointers, &size))
        return -EINVAL;
    if (address - begin >= size)
        return -ENODATA;
    if (cie.has_size &&
        (!krait_cfi_unsigned(&at.bytes, &skipped) || skipped > (uint64_t)(at.bytes.end - at.bytes.at)))
        return -EINVAL;
    at.bytes.at += skipped;
    struct run run = { .cie = &cie, .row = &cfi->row, .location = begin, .wanted = address };
    *cfi = (struct krait_cfi){ .begin = begin,
                               .return_address = (uint32_t)cie.return_address,
                               .is_signal = cie.is_signal };
    if (!run_all(&run, cie.instructions))
        return -EINVAL;
    run.first = *run.row;
    return run_all(&run, at.bytes) ? 0 : -EINVAL;
}
