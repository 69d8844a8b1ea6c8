/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/probes.h"

#include <ctype.h>
#include <link.h>
#include <string.h>

enum { NT_STAPSDT = 3 };

/* -- notes -- */

/* The next text up to its NUL, or NULL. */
static const char *take_text(const char **at, const char *end)
{
    const char *text = *at, *nul = memchr(text, 0, (size_t)(end - text));
    if (nul)
        *at = nul + 1;
    return nul ? text : NULL;
}

/* What the note's addresses are off by: prelink moves code, but no notes. */
static uint64_t moved_by(const struct krait_elf *elf, uint64_t base)
{
    uint64_t now;
    return base && krait_elf_section(elf, ".stapsdt.base", &now) ? now - base : 0;
}

static bool read_probe(const struct krait_elf *elf, const char *at, size_t size,
                       struct krait_usdt_probe *probe)
{
    ElfW(Addr) addresses[3]; /* place, base, semaphore */
    const char *end = at + size;
    if (size < sizeof(addresses))
        return false;
    memcpy(addresses, at, sizeof(addresses));
    at += sizeof(addresses);
    uint64_t moved = moved_by(elf, addresses[1]);
    *probe = (struct krait_usdt_probe){ .provider = take_text(&at, end) };
    probe->name = probe->provider ? take_text(&at, end) : NULL;
    probe->arguments = probe->name ? take_text(&at, end) : NULL;
    if (!probe->arguments || !krait_elf_offset(elf, addresses[0] + moved, &probe->offset))
        return false;
    return !addresses[2] || krait_elf_offset(elf, addresses[2] + moved, &probe->semaphore);
}

int krait_probes_each(const struct krait_elf *elf, krait_usdt_probe_fn *fn, void *ctx)
{
    size_t left;
    const char *at = krait_elf_section_bytes(elf, ".note.stapsdt", &left);
    ElfW(Nhdr) note;
    int rc = 0;
    while (!rc && at && left >= sizeof(note)) {
        struct krait_usdt_probe probe;
        memcpy(&note, at, sizeof(note));
        uint64_t name = (note.n_namesz + 3ull) & ~3ull, rest = (note.n_descsz + 3ull) & ~3ull;
        if (sizeof(note) + name + rest > left)
            return 0;
        if (note.n_type == NT_STAPSDT && note.n_namesz == sizeof("stapsdt") &&
            memcmp(at + sizeof(note), "stapsdt", sizeof("stapsdt")) == 0 &&
            read_probe(elf, at + sizeof(note) + name, note.n_descsz, &probe))
            rc = fn(ctx, &probe);
        at += sizeof(note) + name + rest;
        left -= sizeof(note) + name + rest;
    }
    return rc;
}

/* -- arguments -- */

/* Assembler's names of a register, by width, behind the kernel's (arch/x86/kernel/ptrace.c, regoffset_table). */
static const char *const registers[][5] = {
    { "ax", "rax", "eax", "ax", "al" },       { "bx", "rbx", "ebx", "bx", "bl" },
    { "cx", "rcx", "ecx", "cx", "cl" },       { "dx", "rdx", "edx", "dx", "dl" },
    { "si", "rsi", "esi", "si", "sil" },      { "di", "rdi", "edi", "di", "dil" },
    { "bp", "rbp", "ebp", "bp", "bpl" },      { "sp", "rsp", "esp", "sp", "spl" },
    { "r8", "r8", "r8d", "r8w", "r8b" },      { "r9", "r9", "r9d", "r9w", "r9b" },
    { "r10", "r10", "r10d", "r10w", "r10b" }, { "r11", "r11", "r11d", "r11w", "r11b" },
    { "r12", "r12", "r12d", "r12w", "r12b" }, { "r13", "r13", "r13d", "r13w", "r13b" },
    { "r14", "r14", "r14d", "r14w", "r14b" }, { "r15", "r15", "r15d", "r15w", "r15b" },
};

static const char *kernels_register(const char *name, size_t n)
{
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(registers); i++) {
        for (size_t w = 1; w < KRAIT_ARRAY_LEN(registers[i]); w++) {
            if (strlen(registers[i][w]) == n && memcmp(registers[i][w], name, n) == 0)
                return registers[i][0];
        }
    }
    return NULL;
}

/* x0 to x30, or with 32 bits w0: the kernel's x0. */
static bool put_arm(char *to, size_t size, const char *place, size_t n)
{
    bool is_register = n >= 2 && n <= 3 && (place[0] == 'x' || place[0] == 'w') &&
                       isdigit((unsigned char)place[1]) && isdigit((unsigned char)place[n - 1]);
    if (is_register)
        snprintf(to, size, "%%x%.*s", (int)n - 1, place + 1);
    return is_register;
}

/* "%rbx", "$5", "112(%rsp)", "x0" as the kernel has it: "%bx", "\\5", "+112(%sp)", "%x0". */
static bool put_place(char *to, size_t size, const char *place, size_t n)
{
    const char *open = memchr(place, '(', n), *reg = open ? open + 1 : place;
    size_t reg_len = open ? n - (size_t)(reg - place) - 1 : n;
    char *end = NULL;
    if (*place == '$') {
        long long value = strtoll(place + 1, &end, 0);
        snprintf(to, size, "\\%lld", value);
        return end == place + n && n > 1;
    }
    if (*reg != '%' || (open && place[n - 1] != ')'))
        return !open && put_arm(to, size, place, n);
    const char *kernels = kernels_register(reg + 1, reg_len - 1);
    long long offset = open ? strtoll(place, &end, 0) : 0;
    if (!kernels || (open && end != open))
        return false;
    if (open)
        snprintf(to, size, "%+lld(%%%s)", offset, kernels);
    else
        snprintf(to, size, "%%%s", kernels);
    return true;
}

static size_t blanks(const char *at)
{
    return strspn(at, " \t,");
}

/* The next name of the list, and whether it is of a text. */
static size_t take_name(const char **names, const char **name, bool *is_text)
{
    if (!*names)
        return 0;
    *names += blanks(*names);
    *name = *names;
    size_t n = strcspn(*names, " \t,"), own = strcspn(*names, ":, \t");
    *is_text = n == own + strlen(":str") && strncmp(*names + own, ":str", strlen(":str")) == 0;
    *names += n;
    return own;
}

void krait_probe_fetch(struct krait_buf *out, const char *arguments, const char *names)
{
    for (unsigned i = 1; *(arguments += strspn(arguments, " ")); i++) {
        char *place, to[64], own[16];
        const char *name = own;
        bool is_text = false;
        size_t n = strcspn(arguments, " "), name_len = take_name(&names, &name, &is_text);
        long size = strtol(arguments, &place, 10);
        size_t head = (size_t)(place - arguments) + 1; /* with the @ */
        bool is_number = *place == '@' && (size == 8 || size == 4 || size == 2 || size == 1 || size == -8 ||
                                           size == -4 || size == -2 || size == -1);
        if (!name_len) {
            name = own;
            name_len = (size_t)snprintf(own, sizeof(own), "arg%u", i);
        }
        if (is_number && head < n && put_place(to, sizeof(to), place + 1, n - head)) {
            if (is_text)
                krait_buf_fmt(out, " %.*s=+0(%s):string", (int)name_len, name, to);
            else
                krait_buf_fmt(out, " %.*s=%s:%c%ld", (int)name_len, name, to, size < 0 ? 's' : 'u',
                              8 * labs(size));
        }
        arguments += n;
    }
}
