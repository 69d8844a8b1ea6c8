/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/native.h"

#include "base/array.h"
#include "remote/demangle.h"
#include "remote/epilogue.h"
#include "remote/modules.h"

#include <string.h>

enum { FRAMES_MAX = 50000, BASES = 256, RULES = 4096, PAGE = 4096 };

static const char NO_FILE[] = "[no file]";

struct place {
    uint64_t pc, sp;
    bool called;
};

/* The rules for an address, found before. */
struct rules {
    uint64_t pc; /* 0: none */
    struct krait_cfi cfi;
    bool made; /* from code in no file, which programs change */
};

/* What a stop has told of a place: functions with a frame pointer need it, and the kernel does not report it. */
struct base {
    uint64_t pc, sp, value;
    uint32_t of; /* the register: krait_unwind_base */
};

struct krait_natives {
    struct krait_modules modules;
    bool all_known; /* reading the list of files again has found no others; not known after a while */
    bool has_made;  /* some of the rules are */
    /* Of struct krait_remote_code *: by address, and by the function's begin. NULL: its file is gone. */
    struct krait_map places, functions;
    size_t places_most, functions_most; /* krait_map_trim */
    struct rules *rules;                /* by krait_hash_u64 of the address; new ones replace old ones */
    struct krait_memory_block stack;
    struct place *found; /* the walk's frames, innermost first */
    uint32_t count, cap;
    bool whole;
    struct base bases[BASES]; /* by krait_hash_u64 of the stack pointer; a new one replaces an old one */
};

/* -- files -- */

void krait_natives_free(struct krait_natives *natives)
{
    if (!natives)
        return;
    krait_modules_done(&natives->modules);
    krait_map_done(&natives->places);
    krait_map_done(&natives->functions);
    free(natives->rules);
    free(natives->found);
    free(natives);
}

static void forget_gone(struct krait_map *kept, size_t *most, const struct krait_modules *modules,
                        const struct krait_modules *newer)
{
    for (size_t i = 0; i < kept->cap; i++) {
        if (!krait_modules_same_at(modules, newer, kept->slots[i].key))
            kept->slots[i].value = 0;
    }
    krait_map_trim(kept, most);
}

/* What is kept for addresses stays as long as their files do. */
static int read_modules(struct krait_natives *natives)
{
    struct krait_modules newer = { .pid = natives->modules.pid };
    int rc = krait_modules_read(&newer);
    natives->all_known = !rc && krait_modules_same(&newer, &natives->modules);
    if (rc || natives->all_known) {
        krait_modules_done(&newer);
        return rc;
    }
    forget_gone(&natives->places, &natives->places_most, &natives->modules, &newer);
    forget_gone(&natives->functions, &natives->functions_most, &natives->modules, &newer);
    memset(natives->rules, 0, RULES * sizeof(*natives->rules));
    krait_modules_replace(&natives->modules, &newer);
    return 0;
}

static void forget_made(struct krait_natives *natives)
{
    for (uint32_t i = 0; natives->has_made && i < RULES; i++) {
        if (natives->rules[i].made)
            natives->rules[i] = (struct rules){ 0 };
    }
    natives->has_made = false;
}

int krait_native_prepare(struct krait_remote *remote)
{
    struct krait_natives *natives = remote->natives;
    if (natives) {
        natives->all_known = false;
        forget_made(natives);
        return krait_modules_check(&natives->modules) ? 0 : read_modules(natives);
    }
    natives = calloc(1, sizeof(*natives));
    if (natives)
        natives->rules = calloc(RULES, sizeof(*natives->rules));
    if (!natives || !natives->rules) {
        free(natives);
        return -ENOMEM;
    }
    natives->stack.pid = natives->modules.pid = remote->pid;
    remote->natives = natives;
    return read_modules(natives);
}

/* The file that has the code at an address; NULL: none that can be read. It may have been loaded since the list was read. */
static struct krait_module *find_module(struct krait_natives *natives, uint64_t pc)
{
    struct krait_module *module = krait_modules_find(&natives->modules, pc);
    if (!module && !natives->all_known && !read_modules(natives))
        module = krait_modules_find(&natives->modules, pc);
    return module;
}

/* -- walking -- */

static int add_place(struct krait_natives *natives, const struct krait_registers *registers)
{
    if (!KRAIT_GROW(natives->found, natives->cap, natives->count + 1))
        return -ENOMEM;
    uint64_t sp = registers->value[KRAIT_CFI_SP];
    natives->found[natives->count++] = (struct place){ krait_registers_pc(registers), sp, registers->called };
    return 0;
}

static struct base *base_at(struct krait_natives *natives, uint64_t sp)
{
    return &natives->bases[krait_hash_u64(sp) % BASES];
}

/* Adds the register that this place needs, from those of a stop, or from what an earlier one has told. */
static bool add_base(struct krait_natives *natives, const struct krait_cfi *cfi,
                     struct krait_registers *registers, const struct krait_registers *stopped)
{
    uint64_t pc = krait_registers_pc(registers), sp = registers->value[KRAIT_CFI_SP];
    uint32_t of = krait_unwind_base(cfi);
    struct base *base = base_at(natives, sp);
    if (of == KRAIT_CFI_REGISTERS || registers->known >> of & 1)
        return false;
    if (stopped && stopped->known >> of & 1)
        *base = (struct base){ .pc = pc, .sp = sp, .value = stopped->value[of], .of = of };
    if (base->pc != pc || base->sp != sp || base->of != of)
        return false;
    registers->value[of] = base->value;
    registers->known |= 1ull << of;
    return true;
}

/* Goes to the caller; by all registers of a thread that is stopped where those that the kernel reports do not do. */
static int step(struct krait_natives *natives, const struct krait_cfi *cfi, struct krait_registers *registers,
                struct krait_registers *stopped)
{
    int rc = krait_unwind_by(registers, cfi, &natives->stack);
    if (rc == -ENXIO && add_base(natives, cfi, registers, stopped))
        rc = krait_unwind_by(registers, cfi, &natives->stack);
    int with_all = stopped ? krait_unwind_by(stopped, cfi, &natives->stack) : rc;
    if (rc == -ENXIO && stopped)
        *registers = *stopped;
    return rc == -ENXIO ? with_all : rc;
}

/* Of a place in no file, which is a return address. */
static int make_rules(struct krait_natives *natives, const struct krait_registers *registers,
                      struct rules *kept)
{
    uint8_t code[KRAIT_EPILOGUE_BYTES];
    if (!registers->called ||
        krait_memory_read(natives->modules.pid, krait_registers_pc(registers), code, sizeof(code)) ||
        !krait_epilogue_rules(code, &kept->cfi))
        return -ENODATA;
    return 0;
}

/* The rules for the place where the registers are. */
static int find_rules(struct krait_natives *natives, const struct krait_registers *registers,
                      const struct krait_cfi **cfi)
{
    uint64_t pc = krait_registers_pc(registers) - registers->called;
    struct rules *kept = &natives->rules[krait_hash_u64(pc) % RULES];
    *cfi = &kept->cfi;
    if (kept->pc == pc)
        return 0;
    struct krait_module *module = find_module(natives, pc);
    int rc = module ? krait_unwind_find(registers, &module->elf, module->moved, &kept->cfi)
                    : make_rules(natives, registers, kept);
    kept->pc = rc ? 0 : pc;
    kept->made = !rc && !module;
    natives->has_made |= kept->made;
    return rc;
}

/* A walk that ends too early is cut, unless other registers would help. `stopped` can be NULL. */
static int walk(struct krait_remote *remote, struct krait_registers *registers,
                struct krait_registers *stopped)
{
    struct krait_natives *natives = remote->natives;
    int rc = 0;
    natives->count = 0;
    natives->stack.size = 0; /* the thread may have run since */
    while (!rc && natives->count < FRAMES_MAX) {
        const struct krait_cfi *cfi;
        rc = add_place(natives, registers);
        rc = rc ? rc : find_rules(natives, registers, &cfi);
        rc = rc ? rc : step(natives, cfi, registers, stopped);
    }
    natives->whole = rc == -ENOENT;
    return rc == -ENOENT || rc == -ENODATA || rc == -EINVAL || rc == -EFAULT ? 0 : rc;
}

int krait_native_walk(struct krait_remote *remote, struct krait_registers *registers)
{
    return walk(remote, registers, NULL);
}

static struct krait_registers reported(uint64_t pc, uint64_t sp)
{
    struct krait_registers registers = { .known = 1ull << KRAIT_CFI_SP | 1ull << KRAIT_CFI_PC };
    registers.value[KRAIT_CFI_SP] = sp;
    registers.value[KRAIT_CFI_PC] = pc;
    return registers;
}

/* The last two words are stack pointer and place: "running", "-1 SP PC" or "NUMBER six arguments SP PC" (proc(5)). */
static int read_waiting(pid_t pid, pid_t tid, struct krait_registers *registers)
{
    char text[256];
    ssize_t n = krait_task_read(pid, tid, "syscall", text, sizeof(text));
    if (n <= 0)
        return n < 0 ? (int)n : -ESRCH;
    char *pc = strrchr(text, ' ');
    if (!pc)
        return -EBUSY;
    *pc = '\0';
    char *sp = strrchr(text, ' ');
    *registers = reported(strtoull(pc + 1, NULL, 16), sp ? strtoull(sp + 1, NULL, 16) : 0);
    return registers->value[KRAIT_CFI_SP] ? 0 : -EBUSY;
}

int krait_native_walk_waiting(struct krait_remote *remote, pid_t tid)
{
    struct krait_registers registers;
    int rc = read_waiting(remote->pid, tid, &registers);
    return rc ? rc : walk(remote, &registers, NULL);
}

/* All registers were known: if one is missing, a function has lost it, and the stack is cut there. */
int krait_native_walk_stopped(struct krait_remote *remote, pid_t tid, bool waited)
{
    struct krait_registers stopped;
    int rc = krait_registers_read(tid, &stopped);
    if (rc)
        return rc;
    struct krait_registers registers = reported(krait_registers_pc(&stopped), stopped.value[KRAIT_CFI_SP]);
    rc = waited ? walk(remote, &registers, &stopped) : walk(remote, &stopped, NULL);
    return rc == -ENXIO ? 0 : rc;
}

/* -- names -- */

/* What it is called: by its symbol, or by its file and where it begins there. */
static void put_function(struct krait_buf *out, const char *file, const char *symbol, uint64_t linked)
{
    if (symbol) {
        krait_demangle(out, symbol);
        return;
    }
    if (*file == '/')
        krait_buf_fmt(out, "%s+", strrchr(file, '/') + 1);
    krait_buf_fmt(out, "0x%llx", (unsigned long long)linked);
}

static const struct krait_remote_code *make_function(struct krait_remote *remote, const char *file,
                                                     const char *symbol, uint64_t begin, uint64_t linked)
{
    uint64_t *known = krait_map_get(&remote->natives->functions, begin);
    if (known && *known)
        return (const void *)(uintptr_t)*known;
    struct krait_remote_code *code = KRAIT_ARENA_NEW(&remote->arena, struct krait_remote_code);
    KRAIT_AUTO_BUF name = { 0 };
    put_function(&name, file, symbol, linked);
    if (!code || name.failed)
        return NULL;
    code->addr = begin;
    code->native = true;
    code->name = krait_arena_strndup(&remote->arena, name.data, name.len);
    code->file = krait_arena_strndup(&remote->arena, file, strlen(file));
    bool ok = code->name && code->file;
    return ok && !krait_map_put(&remote->natives->functions, begin, (uint64_t)(uintptr_t)code) ? code : NULL;
}

/* The function at an address; NULL: out of memory. Of code in no file nothing tells where a function begins; it is the page, since
 * each address would be one of its own. */
static const struct krait_remote_code *name_place(struct krait_remote *remote, const struct place *place)
{
    uint64_t pc = place->pc - place->called, begin = pc;
    struct krait_natives *natives = remote->natives;
    uint64_t *known = krait_map_get(&natives->places, pc);
    if (known && *known)
        return (const void *)(uintptr_t)*known;
    const char *name = NULL;
    struct krait_module *module = find_module(natives, pc);
    if (module)
        krait_module_function(&natives->modules, module, pc - module->moved, &name, &begin);
    else
        begin -= begin % PAGE;
    uint64_t moved = module ? module->moved : 0;
    const struct krait_remote_code *code =
        make_function(remote, module ? module->path : NO_FILE, name, begin + moved, begin);
    return code && !krait_map_put(&natives->places, pc, (uint64_t)(uintptr_t)code) ? code : NULL;
}

/* -- together with Python's -- */

struct merge {
    struct krait_remote_frame *to; /* room for all */
    uint32_t count;
    const struct krait_remote_frame *python;
    uint32_t python_count, used;
    bool has_marks, fits;
    bool ended; /* what follows is of other greenlets, or of none */
    bool cut;   /* what follows is being overwritten */
    bool ran;   /* the last native frame was that of a loop, which Python functions replace */
};

/* Compilers append .cold, .lto_priv.0 and such to the names of parts. */
static bool is_named_loop(const struct krait_remote_code *code)
{
    static const char loop[] = "_PyEval_EvalFrameDefault";
    size_t n = sizeof(loop) - 1;
    return strncmp(code->name, loop, n) == 0 && (!code->name[n] || code->name[n] == '.');
}

/* Whether native frame i is the interpreter's loop. */
static bool is_loop(const struct krait_natives *natives, const struct merge *merge, uint32_t i,
                    const struct krait_remote_code *code)
{
    uint32_t k = merge->used;
    while (k < merge->python_count && !merge->python[k].entry)
        k++;
    uint64_t mark = k < merge->python_count ? merge->python[k].mark : 0;
    if (!mark && !merge->has_marks)
        return is_named_loop(code);
    return mark >= natives->found[i].sp && i + 1 < natives->count && mark < natives->found[i + 1].sp;
}

/* The Python functions that one activation of the loop runs. */
static void add_run(struct merge *merge)
{
    merge->fits &= merge->used < merge->python_count;
    while (merge->used < merge->python_count) {
        const struct krait_remote_frame *frame = &merge->python[merge->used++];
        merge->to[merge->count++] = *frame;
        if (frame->entry)
            break;
    }
}

static void add_rest(struct merge *merge)
{
    while (merge->used < merge->python_count)
        merge->to[merge->count++] = merge->python[merge->used++];
}

/* Whether a greenlet's stack ends with this frame of greenlet's, which has called the outermost Python function. */
static bool is_outermost(const struct merge *merge, const struct krait_remote_code *code)
{
    return merge->used && merge->used == merge->python_count && krait_mapped_is_greenlet(code->file);
}

/* Whether greenlet copies the part of a greenlet to the stack, on which it is already (slp_switch()). */
static bool is_overwriting(const struct krait_remote_code *code)
{
    static const char name[] = "slp_restore_state"; /* from 2.0 on, _trampoline follows */
    return krait_mapped_is_greenlet(code->file) && strncmp(code->name, name, sizeof(name) - 1) == 0;
}

/* Whether a frame is that of code which Python makes with -X perf to call the loop: it says no more than the loop. */
static bool is_trampoline(const struct merge *merge, const struct krait_remote_code *code)
{
    return merge->ran && strcmp(code->file, NO_FILE) == 0;
}

static bool is_whole(const struct krait_natives *natives, const struct merge *merge)
{
    return merge->ended || (natives->whole && !merge->cut);
}

/* How native and Python frames go together. */
enum way { BETWEEN, BETWEEN_BUT_FIRST, BEFORE, WAYS };

/* BETWEEN_BUT_FIRST: the innermost loop has not begun its function, or has ended it. */
static int add_natives(struct krait_remote *remote, struct merge *merge, enum way way)
{
    uint32_t loops = 0;
    const struct krait_natives *natives = remote->natives;
    merge->count = merge->used = 0;
    merge->fits = true;
    merge->ended = merge->cut = merge->ran = false;
    for (uint32_t i = 0; i < natives->count && !merge->ended && !merge->cut; i++) {
        const struct krait_remote_code *code = name_place(remote, &natives->found[i]);
        if (!code)
            return -ENOMEM;
        bool runs = way != BEFORE && is_loop(natives, merge, i, code) && loops++ >= (uint32_t)way;
        if (runs)
            add_run(merge);
        else if (!is_trampoline(merge, code))
            merge->to[merge->count++] =
                (struct krait_remote_frame){ .code = code, .addr = natives->found[i].pc };
        merge->ran = runs;
        merge->ended = is_outermost(merge, code);
        merge->cut = is_overwriting(code);
    }
    bool whole = is_whole(natives, merge); /* else what does not fit may be missing */
    merge->fits &= !whole || merge->used == merge->python_count;
    merge->fits &= way != BETWEEN_BUT_FIRST || whole;
    add_rest(merge);
    return 0;
}

int krait_native_merge(struct krait_remote *remote, struct krait_remote_stacks *stacks,
                       struct krait_remote_thread *thread)
{
    const struct krait_natives *natives = remote->natives;
    uint32_t most = thread->count + natives->count;
    KRAIT_AUTO_FREE struct krait_remote_frame *python = calloc(thread->count + 1, sizeof(*python));
    if (!python || !KRAIT_GROW(stacks->frames, stacks->frame_cap, thread->first + most + 1))
        return -ENOMEM;
    memcpy(python, stacks->frames + thread->first, thread->count * sizeof(*python));
    struct merge merge = { .to = stacks->frames + thread->first,
                           .python = python,
                           .python_count = thread->count,
                           .has_marks = thread->count && python[thread->count - 1].mark };
    bool fits = false;
    int rc = 0;
    for (enum way way = BETWEEN; way < WAYS && !rc && !fits; way++) {
        rc = add_natives(remote, &merge, way);
        fits = merge.fits && way != BEFORE;
    }
    bool whole = is_whole(natives, &merge);
    thread->native = !fits ? KRAIT_NATIVE_APART : whole ? KRAIT_NATIVE_WHOLE : KRAIT_NATIVE_CUT;
    thread->count = rc ? 0 : merge.count;
    return rc;
}
