/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/unwind.h"

#include "base/cursor.h"

#include <elf.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

/* -- expressions: DWARF 5, 2.5. Linkers write them for the PLT, libc for frames of signals. -- */

enum { STACK_MAX = 32, FIRST_PAGE = 4096 /* where no code is */ };

struct expression {
    const struct krait_registers *registers;
    struct krait_memory_block *memory;
    struct krait_cursor code;
    uint64_t stack[STACK_MAX];
    unsigned depth;
};

static int push(struct expression *e, uint64_t value)
{
    if (e->depth == STACK_MAX)
        return -EINVAL;
    e->stack[e->depth++] = value;
    return 0;
}

static int get_register(const struct krait_registers *registers, uint64_t n, uint64_t *value)
{
    if (n >= KRAIT_CFI_REGISTERS || !(registers->known >> n & 1))
        return -ENXIO;
    *value = registers->value[n];
    return 0;
}

static int push_register(struct expression *e, uint64_t n)
{
    int64_t offset;
    uint64_t value;
    if (!krait_cfi_signed(&e->code, &offset))
        return -EINVAL;
    int rc = get_register(e->registers, n, &value);
    return rc ? rc : push(e, value + (uint64_t)offset);
}

static int do_deref(struct expression *e, uint8_t op)
{
    uint64_t value = 0;
    int rc = !e->depth ? -EINVAL : krait_memory_near(e->memory, e->stack[e->depth - 1], &value);
    if (!rc)
        e->stack[e->depth - 1] = value;
    return rc;
}

static int do_constant(struct expression *e, uint8_t op)
{
    enum { FIRST = 0x08 }; /* of 1 to 8 bytes, unsigned and signed in turns */
    unsigned size = 1u << (op - FIRST) / 2, unused = 64 - 8 * size;
    uint64_t value = 0;
    if (!krait_read_bytes(&e->code, &value, size))
        return -EINVAL;
    return push(e, (op - FIRST) % 2 ? (uint64_t)((int64_t)(value << unused) >> unused) : value);
}

static int do_constant_leb(struct expression *e, uint8_t op)
{
    enum { SIGNED = 0x11 };
    uint64_t value = 0;
    int64_t number = 0;
    bool ok = op == SIGNED ? krait_cfi_signed(&e->code, &number) : krait_cfi_unsigned(&e->code, &value);
    return ok ? push(e, op == SIGNED ? (uint64_t)number : value) : -EINVAL;
}

static int do_add_constant(struct expression *e, uint8_t op)
{
    uint64_t by;
    if (!e->depth || !krait_cfi_unsigned(&e->code, &by))
        return -EINVAL;
    e->stack[e->depth - 1] += by;
    return 0;
}

static int do_dup(struct expression *e, uint8_t op)
{
    return e->depth ? push(e, e->stack[e->depth - 1]) : -EINVAL;
}

static uint64_t calculate(uint8_t op, uint64_t a, uint64_t b)
{
    enum {
        AND = 0x1a,
        MINUS = 0x1c,
        MUL = 0x1e,
        OR = 0x21,
        PLUS,
        SHL = 0x24,
        SHR,
        EQ = 0x29,
        GE,
        GT,
        LE,
        LT,
        NE
    };
    int64_t x = (int64_t)a, y = (int64_t)b;
    return op == AND     ? a & b
           : op == MINUS ? a - b
           : op == MUL   ? a * b
           : op == OR    ? a | b
           : op == PLUS  ? a + b
           : op == SHL   ? (b < 64 ? a << b : 0)
           : op == SHR   ? (b < 64 ? a >> b : 0)
           : op == EQ    ? x == y
           : op == GE    ? x >= y
           : op == GT    ? x > y
           : op == LE    ? x <= y
           : op == LT    ? x < y
                         : x != y;
}

static int do_two(struct expression *e, uint8_t op)
{
    if (e->depth < 2)
        return -EINVAL;
    e->depth--;
    e->stack[e->depth - 1] = calculate(op, e->stack[e->depth - 1], e->stack[e->depth]);
    return 0;
}

static int (*const operations[])(struct expression *e, uint8_t op) = {
    [0x06] = do_deref,
    [0x08 ... 0x0f] = do_constant,
    [0x10 ... 0x11] = do_constant_leb,
    [0x12] = do_dup,
    [0x1a] = do_two,
    [0x1c] = do_two,
    [0x1e] = do_two,
    [0x21 ... 0x22] = do_two,
    [0x23] = do_add_constant,
    [0x24 ... 0x25] = do_two,
    [0x29 ... 0x2e] = do_two,
};

static int evaluate(const struct krait_registers *registers, struct krait_memory_block *memory,
                    const struct krait_cfi_rule *rule, const uint64_t *cfa, uint64_t *value)
{
    enum { LIT = 0x30, LIT_END = 0x50, BREG = 0x70, BREG_END = 0x90 };
    struct expression e = {
        registers, memory, { rule->expression, rule->expression + rule->size }, { 0 }, 0
    };
    int rc = cfa ? push(&e, *cfa) : 0;
    while (!rc && e.code.at < e.code.end) {
        uint8_t op = *e.code.at++;
        if (op >= LIT && op < LIT_END)
            rc = push(&e, op - LIT);
        else if (op >= BREG && op < BREG_END)
            rc = push_register(&e, op - BREG);
        else
            rc = op < KRAIT_ARRAY_LEN(operations) && operations[op] ? operations[op](&e, op) : -EINVAL;
    }
    if (!rc && !e.depth)
        rc = -EINVAL;
    if (!rc)
        *value = e.stack[e.depth - 1];
    return rc;
}

/* -- a step -- */

static int find_cfa(const struct krait_registers *registers, struct krait_memory_block *memory,
                    const struct krait_cfi_rule *rule, uint64_t *cfa)
{
    if (rule->kind == KRAIT_CFI_EXPRESSION)
        return evaluate(registers, memory, rule, NULL, cfa);
    if (rule->kind != KRAIT_CFI_REGISTER)
        return -EINVAL;
    int rc = get_register(registers, rule->of, cfa);
    *cfa += (uint64_t)rule->offset;
    return rc;
}

/* A register of the caller; -ENXIO: its value is lost. */
static int find_register(const struct krait_registers *registers, struct krait_memory_block *memory,
                         const struct krait_cfi_rule *rule, unsigned n, uint64_t cfa, uint64_t *value)
{
    uint64_t at = cfa + (uint64_t)rule->offset; /* where it is no expression */
    int rc = 0;
    if (rule->kind == KRAIT_CFI_UNDEFINED)
        return -ENXIO;
    if (rule->kind == KRAIT_CFI_SAME || rule->kind == KRAIT_CFI_REGISTER)
        return get_register(registers, rule->kind == KRAIT_CFI_SAME ? n : rule->of, value);
    if (rule->kind == KRAIT_CFI_AT_EXPRESSION || rule->kind == KRAIT_CFI_EXPRESSION)
        rc = evaluate(registers, memory, rule, &cfa, &at);
    bool is_value = rule->kind == KRAIT_CFI_VALUE || rule->kind == KRAIT_CFI_EXPRESSION;
    *value = at;
    return rc || is_value ? rc : krait_memory_near(memory, at, value);
}

/* Arm's ARM, D8.10. */
uint64_t krait_unwind_address(uint64_t address)
{
#ifdef __aarch64__
    return address & 0xffffffffffffull;
#else
    return address;
#endif
}

int krait_unwind_find(const struct krait_registers *registers, const struct krait_elf *elf, uint64_t moved,
                      struct krait_cfi *cfi)
{
    return krait_cfi_find(elf, krait_registers_pc(registers) - moved - registers->called, cfi);
}

int krait_unwind_step(struct krait_registers *registers, const struct krait_elf *elf, uint64_t moved,
                      struct krait_memory_block *stack)
{
    struct krait_cfi cfi;
    int rc = krait_unwind_find(registers, elf, moved, &cfi);
    return rc ? rc : krait_unwind_by(registers, &cfi, stack);
}

int krait_unwind_by(struct krait_registers *registers, const struct krait_cfi *cfi,
                    struct krait_memory_block *stack)
{
    struct krait_registers caller = { 0 };
    uint64_t cfa = 0, pc = krait_registers_pc(registers);
    int rc = find_cfa(registers, stack, &cfi->row.cfa, &cfa);
    if (rc)
        return rc;
    for (unsigned n = 0; n < KRAIT_CFI_REGISTERS; n++) {
        const struct krait_cfi_rule *rule = &cfi->row.registers[n];
        bool lost =
            rule->kind == KRAIT_CFI_SAME && !((uint64_t)KRAIT_CFI_KEPT >> n & 1) && n != cfi->return_address;
        if (lost)
            continue;
        rc = find_register(registers, stack, rule, n, cfa, &caller.value[n]);
        if (rc && rc != -ENXIO)
            return rc;
        caller.known |= (uint64_t)!rc << n;
    }
    if (cfi->row.registers[cfi->return_address].kind == KRAIT_CFI_UNDEFINED)
        return -ENOENT;
    if (!(caller.known >> cfi->return_address & 1))
        return -ENXIO;
    if (cfi->row.registers[KRAIT_CFI_SP].kind == KRAIT_CFI_SAME)
        caller.value[KRAIT_CFI_SP] = cfa;
    caller.value[KRAIT_CFI_PC] = krait_unwind_address(caller.value[cfi->return_address]);
    caller.known |= 1ull << KRAIT_CFI_SP | 1ull << KRAIT_CFI_PC;
    caller.called = !cfi->is_signal;
    bool went =
        caller.value[KRAIT_CFI_SP] > registers->value[KRAIT_CFI_SP] ||
        (caller.value[KRAIT_CFI_SP] == registers->value[KRAIT_CFI_SP] && krait_registers_pc(&caller) != pc);
    if (!went && !cfi->is_signal) /* a signal's handler can be on a stack of its own */
        return -EINVAL;
    *registers = caller;
    uint64_t next = krait_registers_pc(&caller);
    return next >= FIRST_PAGE ? 0 : next ? -EINVAL : -ENOENT;
}

uint32_t krait_unwind_base(const struct krait_cfi *cfi)
{
    return cfi->row.cfa.kind == KRAIT_CFI_REGISTER ? cfi->row.cfa.of : KRAIT_CFI_REGISTERS;
}

/* -- the first -- */

#if defined(__x86_64__)
static void take_registers(const struct user_regs_struct *r, struct krait_registers *registers)
{
    const uint64_t values[] = { r->rax, r->rdx, r->rcx, r->rbx, r->rsi, r->rdi, r->rbp, r->rsp, r->r8,
                                r->r9,  r->r10, r->r11, r->r12, r->r13, r->r14, r->r15, r->rip };
    memcpy(registers->value, values, sizeof(values));
}
#else
static void take_registers(const struct user_regs_struct *r, struct krait_registers *registers)
{
    memcpy(registers->value, r->regs, sizeof(r->regs));
    registers->value[KRAIT_CFI_SP] = r->sp;
    registers->value[KRAIT_CFI_PC] = r->pc;
}
#endif

int krait_registers_read(pid_t tid, struct krait_registers *registers)
{
    struct user_regs_struct regs;
    struct iovec to = { &regs, sizeof(regs) };
    *registers = (struct krait_registers){ .known = ~0ull };
    if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &to))
        return -errno;
    if (to.iov_len != sizeof(regs))
        return -ENOTSUP; /* a program of 32 bits */
    take_registers(&regs, registers);
    return 0;
}
