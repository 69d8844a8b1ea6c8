/* SPDX-License-Identifier: Apache-2.0
 *
 * The instruction at which the frame is says whether it calls, and the code how deep the stack is there (python/compat/calls.h).
 * So it is known where the callable lies. It lies there before the call and during it. Behind it, until the next instruction
 * begins, it may be gone: the result has taken its place, or its memory has been freed and used for another object. The thread may
 * even wait there for the GIL. A callable is believed if one of these shows that it is the one that the instruction calls:
 *
 *   - The slot below it is NULL, where the result would be (KRAIT_CALL_METHOD_FIRST).
 *   - Its name is that by which the code has found it, and it is no bound method: d.get("get") may return another type's `get`.
 *   - It is the value of the local variable from which the code has it. A variable that functions share
 *     is no proof: the call may have set it to its result.
 *
 * From 3.14 on the frame also stores its stack pointer when it calls C code: the arguments are on the stack. That is no proof: 3.15
 * stores the result before it frees them, and the thread may sleep there, as a file is closed.
 *
 * A bound method can be freed while the arguments are. So it always has to pass the last of these, and to have references; the
 * other kinds are not freed. Which callables are functions, and their names: docs/calls.md, as python/codes.c finds them; and
 * classes that are static in C.
 */
#include "remote/called.h"

#include "python/compat/calls.h"
#include "remote/memory.h"
#include "remote/object.h"

#include <string.h>

enum kind {
    OTHER = 1,
    FUNCTION,   /* builtin_function_or_method */
    DESCRIPTOR, /* method_descriptor */
    CLASS,      /* type */
    MODULE,
};

enum { HEAD_WORDS = KRAIT_OBJECT_HEAD / sizeof(uint64_t), WORD = sizeof(uint64_t), BASES_MAX = 64 };
enum { SIZE_MAX_CODE = 1 << 20, LOCALS_MAX = 1 << 16, DEFINITIONS_MAX = 512 };

/* The calls of a code object. */
struct krait_calling {
    struct krait_calls calls;
    const char *(*names)[2]; /* of the values of each call, once they are read */
    uint64_t bottom;         /* of the stack: bytes from the frame's begin */
};

/* Where the fields of an object are that tell it from others of its type: words of its head. */
enum { HEAD_TYPE = KRAIT_OBJECT_TYPE / 8, HEAD_MODULE = KRAIT_BUILTIN_MODULE / 8 };
enum { HEAD_DEFINITION = KRAIT_BUILTIN_DEFINITION / 8, HEAD_SELF = KRAIT_BUILTIN_SELF / 8 };
enum { HEAD_OF_TYPE = KRAIT_DESCRIPTOR_TYPE / 8, HEAD_NAME = KRAIT_DESCRIPTOR_NAME / 8 };

struct callee {
    uint64_t key[3];                      /* what it was read from */
    const struct krait_remote_code *code; /* NULL: of no kind that is told */
    const char *name;                     /* not qualified */
    uint64_t of;                          /* of a method: its type; else 0 */
    bool may_be_freed;                    /* a bound method: it lives only as long as someone needs it */
};

struct krait_callees {
    struct krait_map kinds;   /* address of a static type -> enum kind */
    struct krait_map callees; /* hash of a key -> struct callee * */
    struct krait_map codes;   /* hash of module and name -> struct krait_remote_code * */
};

void krait_callees_free(struct krait_callees *callees)
{
    if (!callees)
        return;
    krait_map_done(&callees->kinds);
    krait_map_done(&callees->callees);
    krait_map_done(&callees->codes);
    free(callees);
}

static bool read_word(const struct krait_remote *remote, uint64_t addr, uint64_t *word)
{
    return !krait_memory_read(remote->pid, addr, word, sizeof(*word));
}

/* -- the calls of a code object -- */

/* From 3.11 on the instructions are in the code object; before, in a bytes. */
static bool find_bytes(const struct krait_remote *remote, uint64_t code, uint64_t *bytes, uint64_t *size)
{
    const uint32_t *at = remote->layout.at;
    bool apart = at[KRAIT_AT_CODE_BYTES] == KRAIT_NOWHERE;
    uint64_t of = code;
    if (apart && !read_word(remote, code + at[KRAIT_AT_CODE_STRING], &of))
        return false;
    *bytes = apart ? of + KRAIT_BYTES_DATA : code + at[KRAIT_AT_CODE_BYTES];
    if (!read_word(remote, of + KRAIT_OBJECT_SIZE, size) || *size > SIZE_MAX_CODE)
        return false;
    *size *= apart ? 1 : KRAIT_CODE_UNIT;
    return true;
}

static uint8_t *read_bytes(const struct krait_remote *remote, uint64_t addr, uint64_t size)
{
    uint8_t *bytes = malloc(size + 1);
    if (!bytes || !krait_memory_read(remote->pid, addr, bytes, size))
        return bytes;
    free(bytes);
    return NULL;
}

static int find_calls(const struct krait_remote *remote, uint64_t code, struct krait_arena *arena,
                      struct krait_calls *calls)
{
    const uint32_t *at = remote->layout.at;
    uint64_t from = 0, size = 0, table = 0, table_size = 0;
    bool has_table = at[KRAIT_AT_CODE_EXCEPTIONS] != KRAIT_NOWHERE;
    if (!find_bytes(remote, code, &from, &size) ||
        (has_table &&
         (!read_word(remote, code + at[KRAIT_AT_CODE_EXCEPTIONS], &table) ||
          !read_word(remote, table + KRAIT_OBJECT_SIZE, &table_size) || table_size > SIZE_MAX_CODE)))
        return -EAGAIN;
    KRAIT_AUTO_FREE uint8_t *bytes = read_bytes(remote, from, size);
    KRAIT_AUTO_FREE uint8_t *exceptions =
        has_table ? read_bytes(remote, table + KRAIT_BYTES_DATA, table_size) : NULL;
    if (!bytes || (has_table && !exceptions))
        return -EAGAIN;
    return krait_calls_make(calls, arena, remote->layout.version, bytes, size, exceptions, table_size);
}

/* Where the stack of a frame begins: the local variables end there. */
static bool find_bottom(const struct krait_remote *remote, const struct krait_raw_frame *frame,
                        uint64_t *bottom)
{
    const uint32_t *at = remote->layout.at;
    uint64_t names = 0, count = 0, values = 0;
    if (at[KRAIT_AT_FRAME_VALUES] != KRAIT_NOWHERE) {
        bool read = read_word(remote, frame->addr + at[KRAIT_AT_FRAME_VALUES], &values);
        *bottom = values - frame->addr;
        return read && *bottom < LOCALS_MAX * WORD;
    }
    bool read = read_word(remote, frame->code + at[KRAIT_AT_CODE_LOCALS], &names) &&
                read_word(remote, names + KRAIT_OBJECT_SIZE, &count) && count < LOCALS_MAX;
    *bottom = at[KRAIT_AT_FRAME_LOCALS] + count * WORD;
    return read;
}

/* What is read while another code object may come to lie there is not kept. */
static struct krait_calling *read_calling(struct krait_remote *remote, const struct krait_raw_frame *frame,
                                          const struct krait_remote_code *of)
{
    struct krait_remote_code *code = (struct krait_remote_code *)of;
    struct krait_calling read = { 0 }; /* not in the arena: it may be too large, at each sample again */
    if (!find_bottom(remote, frame, &read.bottom) ||
        find_calls(remote, code->addr, &code->arena, &read.calls))
        return NULL;
    struct krait_calling *made = KRAIT_ARENA_NEW(&code->arena, struct krait_calling);
    if (!made)
        return NULL;
    *made = read;
    made->names = krait_arena_alloc(&code->arena, (made->calls.count + 1) * sizeof(*made->names));
    bool stayed = made->names && krait_code_read(remote, code->addr) == code;
    if (stayed)
        code->calling = made;
    return stayed ? made : NULL;
}

/* -- what lies on the stack -- */

/* False: they cannot be read, or are not there any more. */
static bool read_slots(const struct krait_remote *remote, const struct krait_stack_reader *reader,
                       const struct krait_calling *calling, struct krait_called_values *values)
{
    const uint32_t *at = remote->layout.at;
    uint64_t place = calling->bottom + (uint64_t)values->call->slot * WORD, top = 0;
    size_t size = values->call->shape == KRAIT_CALL_PLAIN ? WORD : 2 * WORD;
    if (remote->layout.version->link == KRAIT_LINK_POINTER) {
        uint64_t end = reader->frames[0].addr + calling->bottom + (uint64_t)values->call->depth * WORD;
        if (!krait_stack_innermost(remote, reader, at[KRAIT_AT_FRAME_STACK], &top, WORD) || top != end)
            return false;
    }
    bool read = krait_stack_innermost(remote, reader, place, values->words, size);
    values->words[0] &= ~KRAIT_REFERENCE_TAGS;
    values->words[1] &= ~KRAIT_REFERENCE_TAGS;
    return read;
}

/* False: the instruction calls nothing, or what is not certain. */
static bool find_values(const struct krait_remote *remote, const struct krait_stack_reader *reader,
                        const struct krait_remote_code *code, struct krait_called_values *values)
{
    *values = (struct krait_called_values){ .call = krait_calls_find(&code->calling->calls,
                                                                     reader->frames[0].offset) };
    if (!values->call || !read_slots(remote, reader, code->calling, values))
        return false;
    enum krait_call_shape shape = values->call->shape;
    bool first = shape == KRAIT_CALL_METHOD_FIRST;
    values->which = first && !values->words[0];
    values->is_method = first ? !values->which : shape == KRAIT_CALL_METHOD_SECOND && values->words[1];
    values->is_certain = values->which;
    return values->words[values->which] && values->words[values->which] % WORD == 0;
}

/* What is read of the callable and of its object. */
static uint32_t add_pieces(struct krait_called_values *values, struct krait_memory_piece *pieces)
{
    uint32_t count = 0;
    pieces[count++] =
        (struct krait_memory_piece){ values->words[values->which], values->head, sizeof(values->head) };
    if (values->is_method && !values->is_certain)
        pieces[count++] = (struct krait_memory_piece){ values->words[1] + KRAIT_OBJECT_TYPE, &values->type,
                                                       sizeof(values->type) };
    return count;
}

uint32_t krait_called_expect(struct krait_remote *remote, struct krait_stack_reader *reader,
                             struct krait_memory_piece *pieces)
{
    const uint64_t *known =
        reader->count ? krait_map_get(&remote->codes.by_addr, reader->frames[0].code) : NULL;
    const struct krait_remote_code *code = known ? (const void *)(uintptr_t)*known : NULL;
    reader->called.code = NULL;
    if (!code || !code->calling)
        return 0;
    if (!find_values(remote, reader, code, &reader->called))
        reader->called.call = NULL;
    reader->called.code = code;
    return reader->called.call ? add_pieces(&reader->called, pieces) : 0;
}

/* -- names -- */

/* Item `index` of a tuple of names; NULL: there is none. */
static const char *read_item(struct krait_remote *remote, struct krait_arena *arena, uint64_t tuple,
                             uint32_t index)
{
    KRAIT_AUTO_BUF text = { 0 };
    uint64_t count = 0, item = 0;
    if (!read_word(remote, tuple + KRAIT_OBJECT_SIZE, &count) || index >= count ||
        !read_word(remote, tuple + remote->layout.at[KRAIT_AT_TUPLE_ITEMS] + index * WORD, &item) ||
        krait_object_text(remote, item, KRAIT_TYPE_NAME_MAX, &text) || !text.data)
        return NULL;
    return krait_arena_strndup(arena, text.data, text.len);
}

/* The name of a variable that functions share. */
static const char *read_cell(struct krait_remote *remote, struct krait_arena *arena, uint64_t code,
                             uint32_t index)
{
    const uint32_t *at = remote->layout.at;
    uint64_t names = 0, cells = 0;
    if (at[KRAIT_AT_CODE_CELLS] == KRAIT_NOWHERE)
        return read_word(remote, code + at[KRAIT_AT_CODE_LOCALS], &names)
                   ? read_item(remote, arena, names, index)
                   : NULL;
    if (!read_word(remote, code + at[KRAIT_AT_CODE_CELLS], &names) ||
        !read_word(remote, names + KRAIT_OBJECT_SIZE, &cells))
        return NULL;
    if (index < cells)
        return read_item(remote, arena, names, index);
    return read_word(remote, code + at[KRAIT_AT_CODE_FREE], &names)
               ? read_item(remote, arena, names, index - (uint32_t)cells)
               : NULL;
}

/* The name by which the code has found value `which` of a call; NULL: by none. */
static const char *name_of(struct krait_remote *remote, const struct krait_remote_code *code,
                           const struct krait_call *call, int which)
{
    const struct krait_calling *calling = code->calling;
    struct krait_arena *arena = &((struct krait_remote_code *)code)->arena;
    const char **name = &calling->names[call - calling->calls.items][which];
    uint64_t names = 0;
    if (*name)
        return *name;
    if (call->of[which].source == KRAIT_SOURCE_CELL)
        *name = read_cell(remote, arena, code->addr, call->of[which].index);
    else if (call->of[which].source == KRAIT_SOURCE_NAME &&
             read_word(remote, code->addr + remote->layout.at[KRAIT_AT_CODE_NAMES], &names))
        *name = read_item(remote, arena, names, call->of[which].index);
    if (*name && krait_code_read(remote, code->addr) != code) /* another one's */
        *name = NULL;
    return *name;
}

/* -- which function a callable is -- */

/* A type's kind. Types that are no static data of C come and go: what they are is not kept. */
static enum kind kind_of(struct krait_remote *remote, uint64_t type)
{
    static const char *const names[] = { [FUNCTION] = "builtin_function_or_method",
                                         [DESCRIPTOR] = "method_descriptor",
                                         [CLASS] = "type",
                                         [MODULE] = "module" };
    const uint64_t *known = krait_map_get(&remote->callees->kinds, type);
    char name[KRAIT_TYPE_NAME_MAX];
    uint64_t flags = 0;
    enum kind kind = OTHER;
    if (known)
        return (enum kind) * known;
    if (!read_word(remote, type + KRAIT_TYPE_FLAGS, &flags) || flags & KRAIT_TYPE_HEAP ||
        !krait_type_name(remote, type, name))
        return OTHER;
    for (enum kind k = FUNCTION; k <= MODULE; k++)
        kind = strcmp(name, names[k]) == 0 ? k : kind;
    kind = strcmp(name, "builtin_method") == 0 ? FUNCTION : kind;
    krait_map_put(&remote->callees->kinds, type, kind);
    return kind;
}

/* The one code for each name. */
static const struct krait_remote_code *code_of(struct krait_remote *remote, const char *module,
                                               const char *name)
{
    uint64_t hash = krait_hash_u64(krait_hash_bytes(module, strlen(module)) ^
                                   krait_hash_u64(krait_hash_bytes(name, strlen(name))));
    const uint64_t *known = krait_map_get(&remote->callees->codes, hash);
    const struct krait_remote_code *found = known ? (const void *)(uintptr_t)*known : NULL;
    if (found)
        return strcmp(found->module, module) == 0 && strcmp(found->name, name) == 0 ? found : NULL;
    struct krait_remote_code *made = KRAIT_ARENA_NEW(&remote->arena, struct krait_remote_code);
    if (!made)
        return NULL;
    *made = (struct krait_remote_code){ .name = krait_arena_strdup(&remote->arena, name),
                                        .module = krait_arena_strdup(&remote->arena, module),
                                        .file = "<built-in>" };
    bool ok = made->name && made->module && !krait_map_put(&remote->callees->codes, hash, (uintptr_t)made);
    return ok ? made : NULL;
}

/* A function of a type that C code has made: its name in C is that of its module and its own. A class of Python's has no module
 * there. */
static const struct krait_remote_code *code_of_type(struct krait_remote *remote, uint64_t type,
                                                    const char *name)
{
    char full[KRAIT_TYPE_NAME_MAX], qualified[2 * KRAIT_TYPE_NAME_MAX + 1];
    uint64_t flags = 0;
    if (!read_word(remote, type + KRAIT_TYPE_FLAGS, &flags) || !krait_type_name(remote, type, full) ||
        strlen(full) == sizeof(full) - 1)
        return NULL;
    char *dot = strrchr(full, '.');
    if (!dot && flags & KRAIT_TYPE_HEAP)
        return NULL;
    if (dot)
        *dot = '\0';
    snprintf(qualified, sizeof(qualified), "%s%s%s", dot ? dot + 1 : full, *name ? "." : "", name);
    return code_of(remote, dot ? full : "builtins", qualified);
}

/* Whether a type has a method's definition in its own table. */
static bool defines(const struct krait_remote *remote, uint64_t type, uint64_t definition)
{
    uint64_t methods = 0;
    if (!read_word(remote, type + KRAIT_TYPE_METHODS, &methods) || !methods || definition < methods ||
        definition - methods >= DEFINITIONS_MAX * KRAIT_DEFINITION_SIZE ||
        (definition - methods) % KRAIT_DEFINITION_SIZE)
        return false;
    uint64_t size = definition - methods;
    KRAIT_AUTO_FREE uint8_t *bytes = read_bytes(remote, methods, size);
    bool within = bytes;
    for (uint64_t at = 0; at < size && within; at += KRAIT_DEFINITION_SIZE)
        within = krait_memory_number(bytes + at, WORD); /* a name; the last one has none */
    return within;
}

/* 0: it has none. */
static uint64_t base_of(const struct krait_remote *remote, uint64_t type)
{
    uint64_t base = 0;
    return read_word(remote, type + KRAIT_TYPE_BASE, &base) ? base : 0;
}

/* The class that defines the method of a bound method's class; that itself if none does. */
static uint64_t definer(const struct krait_remote *remote, uint64_t type, uint64_t definition)
{
    uint64_t base = type;
    for (int i = 0; i < BASES_MAX && base; i++, base = base_of(remote, base)) {
        if (defines(remote, base, definition))
            return base;
    }
    return type;
}

static bool is_derived(const struct krait_remote *remote, uint64_t type, uint64_t from)
{
    for (int i = 0; i < BASES_MAX && type && type != from; i++)
        type = base_of(remote, type);
    return type == from;
}

static struct callee *find_callee(const struct krait_remote *remote, const uint64_t key[3], uint64_t *hash)
{
    *hash = krait_hash_u64(key[0] ^ krait_hash_u64(key[1] ^ krait_hash_u64(key[2])));
    const uint64_t *known = krait_map_get(&remote->callees->callees, *hash);
    struct callee *found = known ? (void *)(uintptr_t)*known : NULL;
    return found && memcmp(found->key, key, sizeof(found->key)) == 0 ? found : NULL;
}

static const struct callee *keep_callee(struct krait_remote *remote, uint64_t hash,
                                        const struct callee *callee)
{
    struct callee *made = callee->code ? KRAIT_ARENA_NEW(&remote->arena, struct callee) : NULL;
    if (!made)
        return NULL;
    *made = *callee;
    made->name = krait_arena_strdup(&remote->arena, callee->name);
    return made->name && !krait_map_put(&remote->callees->callees, hash, (uintptr_t)made) ? made : NULL;
}

/* A function of a module, known by its definition and the module; or a bound method, by its definition and its object's type. */
static const struct callee *function_of(struct krait_remote *remote, const uint64_t head[HEAD_WORDS])
{
    uint64_t definition = head[HEAD_DEFINITION], self = head[HEAD_SELF], hash, type = 0, flags = 0;
    struct callee made = { { head[HEAD_TYPE], definition, self }, NULL, NULL, 0, false };
    const struct callee *known = find_callee(remote, made.key, &hash);
    char name[KRAIT_TYPE_NAME_MAX];
    KRAIT_AUTO_BUF module = { 0 };
    if (known)
        return known;
    if (self && !read_word(remote, self + KRAIT_OBJECT_TYPE, &type))
        return NULL;
    if (self && kind_of(remote, type) != MODULE) {
        uint32_t references = (uint32_t)head[0];
        if (!references) /* it has been freed, and its fields may be links of a free list */
            return NULL;
        if (!read_word(remote, type + KRAIT_TYPE_FLAGS, &flags) || flags & KRAIT_TYPE_OF_TYPES)
            return NULL; /* a class method, or __new__: several types share its definition */
        made.key[2] = type;
        made.may_be_freed = true;
        known = find_callee(remote, made.key, &hash);
        if (known)
            return known;
    }
    if (!krait_name_at(remote, definition, name) || strlen(name) == sizeof(name) - 1)
        return NULL;
    made.name = name;
    if (made.may_be_freed) {
        made.code = code_of_type(remote, definer(remote, type, definition), name);
    } else {
        if (head[HEAD_MODULE])
            krait_object_text(remote, head[HEAD_MODULE], KRAIT_TYPE_NAME_MAX, &module);
        made.code = code_of(remote, module.data ? module.data : "<unknown>", name);
    }
    return keep_callee(remote, hash, &made);
}

static const struct callee *descriptor_of(struct krait_remote *remote, const uint64_t head[HEAD_WORDS])
{
    struct callee made = {
        { head[HEAD_TYPE], head[HEAD_OF_TYPE], head[HEAD_NAME] }, NULL, NULL, head[HEAD_OF_TYPE], false
    };
    KRAIT_AUTO_BUF name = { 0 };
    uint64_t hash;
    const struct callee *known = find_callee(remote, made.key, &hash);
    if (known)
        return known;
    if (krait_object_text(remote, head[HEAD_NAME], KRAIT_TYPE_NAME_MAX - 1, &name) || !name.data)
        return NULL;
    made.name = name.data;
    made.code = code_of_type(remote, head[HEAD_OF_TYPE], name.data);
    return keep_callee(remote, hash, &made);
}

/* A class that is static data of C. */
static const struct callee *class_of(struct krait_remote *remote, uint64_t addr,
                                     const uint64_t head[HEAD_WORDS])
{
    struct callee made = { { head[HEAD_TYPE], addr, head[KRAIT_TYPE_NAME / WORD] }, NULL, NULL, 0, false };
    uint64_t hash, flags = 0;
    const struct callee *known = find_callee(remote, made.key, &hash);
    if (known)
        return known;
    if (!read_word(remote, addr + KRAIT_TYPE_FLAGS, &flags) || flags & KRAIT_TYPE_HEAP)
        return NULL;
    made.code = code_of_type(remote, addr, "");
    made.name = made.code ? made.code->name : NULL;
    return keep_callee(remote, hash, &made);
}

static const struct callee *callee_of(struct krait_remote *remote, const struct krait_called_values *values)
{
    switch (kind_of(remote, values->head[HEAD_TYPE])) {
    case FUNCTION:
        return function_of(remote, values->head);
    case DESCRIPTOR:
        return descriptor_of(remote, values->head);
    case CLASS:
        return class_of(remote, values->words[values->which], values->head);
    default:
        return NULL;
    }
}

void krait_remote_put_name(struct krait_buf *out, const struct krait_remote_code *code)
{
    if (code->module && strcmp(code->module, "builtins") != 0)
        krait_buf_fmt(out, "%s.", code->module);
    krait_buf_str(out, code->name);
}

/* -- the whole -- */

/* Whether the callable is what the code has loaded there. */
static bool is_as_loaded(struct krait_remote *remote, const struct krait_stack_reader *reader,
                         const struct krait_remote_code *code, const struct krait_called_values *values,
                         const struct callee *callee)
{
    uint64_t variable = 0;
    uint32_t index = values->call->of[values->which].index;
    enum krait_call_source source = values->call->of[values->which].source;
    const char *name = callee->may_be_freed ? NULL : name_of(remote, code, values->call, values->which);
    if (name && strcmp(name, callee->name) == 0)
        return true;
    bool read = source == KRAIT_SOURCE_LOCAL &&
                krait_stack_innermost(remote, reader, remote->layout.at[KRAIT_AT_FRAME_LOCALS] + index * WORD,
                                      &variable, WORD);
    return read && (variable & ~KRAIT_REFERENCE_TAGS) == values->words[values->which];
}

static bool is_believed(struct krait_remote *remote, const struct krait_stack_reader *reader,
                        const struct krait_remote_code *code, const struct krait_called_values *values,
                        const struct callee *callee)
{
    if (values->is_certain && !callee->may_be_freed)
        return true;
    if (values->is_method && !values->is_certain &&
        !(callee->of && is_derived(remote, values->type, callee->of)))
        return false;
    return is_as_loaded(remote, reader, code, values, callee);
}

/* What could not be read with the code objects. */
static bool read_values(struct krait_remote *remote, struct krait_stack_reader *reader,
                        const struct krait_remote_code *code)
{
    struct krait_memory_piece pieces[KRAIT_CALLED_PIECES];
    if (!code->calling && !read_calling(remote, &reader->frames[0], code))
        return false;
    return find_values(remote, reader, code, &reader->called) &&
           !krait_memory_pieces(remote->pid, pieces, add_pieces(&reader->called, pieces));
}

static bool has_callees(struct krait_remote *remote)
{
    if (!remote->callees)
        remote->callees = calloc(1, sizeof(*remote->callees));
    return remote->callees;
}

const struct krait_remote_code *krait_called_read(struct krait_remote *remote,
                                                  struct krait_stack_reader *reader,
                                                  const struct krait_remote_code *code)
{
    if (!has_callees(remote))
        return NULL;
    if ((reader->called.code != code && !read_values(remote, reader, code)) || !reader->called.call)
        return NULL;
    const struct callee *callee = callee_of(remote, &reader->called);
    return callee && is_believed(remote, reader, code, &reader->called, callee) ? callee->code : NULL;
}

static bool is_function(struct krait_remote *remote, uint64_t object, const char *module, const char *name)
{
    uint64_t head[HEAD_WORDS];
    char text[KRAIT_TYPE_NAME_MAX];
    KRAIT_AUTO_BUF of = { 0 };
    return !krait_memory_read(remote->pid, object, head, sizeof(head)) &&
           kind_of(remote, head[HEAD_TYPE]) == FUNCTION &&
           krait_name_at(remote, head[HEAD_DEFINITION], text) && strcmp(text, name) == 0 &&
           !krait_object_text(remote, head[HEAD_MODULE], KRAIT_TYPE_NAME_MAX, &of) && of.data &&
           strcmp(of.data, module) == 0;
}

uint64_t krait_called_argument(struct krait_remote *remote, const struct krait_stack_reader *reader,
                               const char *module, const char *name)
{
    struct krait_called_values values;
    char type[KRAIT_TYPE_NAME_MAX];
    uint64_t argument = 0;
    const struct krait_remote_code *code =
        reader->count && has_callees(remote) ? krait_code_read(remote, reader->frames[0].code) : NULL;
    if (!code || (!code->calling && !read_calling(remote, &reader->frames[0], code)) ||
        !find_values(remote, reader, code, &values) ||
        !is_function(remote, values.words[values.which], module, name))
        return 0;
    uint64_t place = code->calling->bottom + (values.call->slot + values.which + 1ull) * WORD;
    if (!krait_stack_innermost(remote, reader, place, &argument, WORD))
        return 0;
    bool is_tuple = krait_object_type(remote, argument, type) && strcmp(type, "tuple") == 0; /* f(*x) */
    if (is_tuple && !read_word(remote, argument + remote->layout.at[KRAIT_AT_TUPLE_ITEMS], &argument))
        return 0;
    return argument;
}
