/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/epilogue.h"

#include <string.h>

#if defined(__x86_64__)

/* Intel's manual, volume 2: ADD, POP, RET. */
enum {
    WORD = 8,
    REX_B = 0x41,
    REX_W = 0x48,
    POP = 0x58,
    RET = 0xc3,
    ADD_8 = 0x83,
    ADD_32 = 0x81,
    RSP = 0xc4
};

/* By the number of a register in an instruction, its number in DWARF; from the 8th on they are the same. */
static const uint8_t numbers[] = { 0, 2, 1, 3, KRAIT_CFI_SP, 6, 4, 5 };

struct epilogue {
    const uint8_t *at, *end;
    int64_t freed; /* bytes of the stack */
    struct krait_cfi *cfi;
};

/* Returns the bytes of the instruction, or 0: it is another one. */
static size_t do_add(struct epilogue *e, size_t left)
{
    int32_t by = 0;
    size_t size = left < 3 || e->at[0] != REX_W || e->at[2] != RSP ? 0
                  : e->at[1] == ADD_8                              ? 1
                  : e->at[1] == ADD_32                             ? sizeof(by)
                                                                   : 0;
    if (!size || left < 3 + size)
        return 0;
    memcpy(&by, e->at + 3, size);
    by = size == 1 ? (int8_t)by : by;
    e->freed += by;
    return by > 0 ? 3 + size : 0;
}

static size_t do_pop(struct epilogue *e, size_t left)
{
    size_t prefix = left > 1 && e->at[0] == REX_B;
    uint8_t n = (uint8_t)(e->at[prefix] - POP);
    if (n >= KRAIT_ARRAY_LEN(numbers) || (!prefix && numbers[n] == KRAIT_CFI_SP))
        return 0;
    e->cfi->row.registers[prefix ? 8 + n : numbers[n]] =
        (struct krait_cfi_rule){ .kind = KRAIT_CFI_OFFSET, .offset = e->freed };
    e->freed += WORD;
    return prefix + 1;
}

/* Rules count from the address behind the return address. */
static void end_rules(struct krait_cfi *cfi, int64_t freed)
{
    for (unsigned n = 0; n < KRAIT_CFI_REGISTERS; n++) {
        if (cfi->row.registers[n].kind == KRAIT_CFI_OFFSET)
            cfi->row.registers[n].offset -= freed + WORD;
    }
    cfi->row.cfa =
        (struct krait_cfi_rule){ .kind = KRAIT_CFI_REGISTER, .of = KRAIT_CFI_SP, .offset = freed + WORD };
    cfi->return_address = KRAIT_CFI_PC;
    cfi->row.registers[KRAIT_CFI_PC] = (struct krait_cfi_rule){ .kind = KRAIT_CFI_OFFSET, .offset = -WORD };
}

bool krait_epilogue_rules(const uint8_t code[KRAIT_EPILOGUE_BYTES], struct krait_cfi *cfi)
{
    struct epilogue e = { .at = code, .end = code + KRAIT_EPILOGUE_BYTES, .cfi = cfi };
    *cfi = (struct krait_cfi){ 0 };
    for (size_t size = 1; size && e.at < e.end && *e.at != RET; e.at += size) {
        size_t left = (size_t)(e.end - e.at);
        size = do_add(&e, left);
        size = size ? size : do_pop(&e, left);
        if (!size)
            return false;
    }
    if (e.at == e.end)
        return false;
    end_rules(cfi, e.freed);
    return true;
}

#else

bool krait_epilogue_rules(const uint8_t code[KRAIT_EPILOGUE_BYTES], struct krait_cfi *cfi)
{
    (void)code;
    (void)cfi;
    return false;
}

#endif
