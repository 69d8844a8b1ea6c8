/* SPDX-License-Identifier: Apache-2.0
 *
 * TSDL's types and their names: structs, variants, enumerations, aliases, declarators (CTF 1.8.3, section 4.2
 * and 7.3).
 */
#include "ctf/meta/tsdl.h"

#include <string.h>

/* -- names -- */

void krait_tsdl_push(struct krait_tsdl_parser *p, struct krait_type_scope *scope)
{
    *scope = (struct krait_type_scope){ .parent = p->scope };
    p->scope = scope;
}

void krait_tsdl_pop(struct krait_tsdl_parser *p)
{
    krait_map_done(&p->scope->entries);
    p->scope = p->scope->parent;
}

static uint64_t type_hash(enum krait_type_space space, const char *name)
{
    return krait_hash_bytes(name, strlen(name)) * 4 + (uint64_t)space;
}

static struct krait_type_entry *find_in(const struct krait_type_scope *scope, enum krait_type_space space,
                                        const char *name)
{
    uint64_t *found = krait_map_get(&scope->entries, type_hash(space, name));
    struct krait_type_entry *entry = found ? (struct krait_type_entry *)(uintptr_t)*found : NULL;
    while (entry && (entry->space != space || strcmp(entry->name, name) != 0))
        entry = entry->next;
    return entry;
}

static struct krait_fc *look_up(struct krait_tsdl_parser *p, enum krait_type_space space, const char *name)
{
    for (const struct krait_type_scope *scope = p->scope; scope; scope = scope->parent) {
        const struct krait_type_entry *entry = find_in(scope, space, name);
        if (entry)
            return entry->fc;
    }
    return NULL;
}

static void declare(struct krait_tsdl_parser *p, enum krait_type_space space, const char *name,
                    struct krait_fc *fc)
{
    static const char *const spaces[] = { "type", "struct", "variant", "enum" };
    if (p->rc || !name || !fc)
        return;
    if (find_in(p->scope, space, name)) {
        krait_tsdl_fail(p, -EBADMSG, "%s '%s' is declared twice", spaces[space], name);
        return;
    }
    struct krait_type_entry *entry = KRAIT_ARENA_NEW(p->arena, struct krait_type_entry);
    if (!entry) {
        krait_tsdl_oom(p);
        return;
    }
    uint64_t hash = type_hash(space, name);
    uint64_t *before = krait_map_get(&p->scope->entries, hash);
    *entry = (struct krait_type_entry){ .space = space, .name = name, .fc = fc };
    if (before)
        entry->next = (struct krait_type_entry *)(uintptr_t)*before;
    if (krait_map_put(&p->scope->entries, hash, (uintptr_t)entry))
        krait_tsdl_oom(p);
}

/* An alias's name without its qualifiers: "const u8" is u8, unless an alias of that name is declared. */
static const char *unqualified(struct krait_tsdl_parser *p, const char *name)
{
    char *plain = krait_arena_strdup(p->arena, name), *to = plain;
    if (!plain) {
        krait_tsdl_oom(p);
        return name;
    }
    for (size_t n; *name; name += n + (name[n] == ' ')) {
        n = strcspn(name, " ");
        if (n == strlen("const") && memcmp(name, "const", n) == 0)
            continue;
        if (to != plain)
            *to++ = ' ';
        to = mempcpy(to, name, n);
    }
    *to = '\0';
    return plain;
}

/* A copy of what was declared under that name; fails when there is none. */
static struct krait_fc *named(struct krait_tsdl_parser *p, enum krait_type_space space, const char *name)
{
    struct krait_fc *fc = p->rc ? NULL : look_up(p, space, name);
    if (!fc && !p->rc && space == KRAIT_TYPE_ALIAS)
        fc = look_up(p, space, unqualified(p, name));
    if (!fc && !p->rc)
        krait_tsdl_fail(p, -EBADMSG, "type '%s' is not declared", name);
    return krait_tsdl_fc_copy(p, fc);
}

/* CTF 1.8.3, appendix C.1.1. C's own words for types can be in an alias's name: "unsigned long". */
static const struct {
    const char *text;
    bool in_alias;
} keywords[] = {
    { "align", false },     { "callsite", false }, { "char", true },       { "clock", false },
    { "const", true },      { "double", true },    { "enum", false },      { "env", false },
    { "event", false },     { "float", true },     { "int", true },        { "integer", false },
    { "long", true },       { "short", true },     { "signed", true },     { "stream", false },
    { "string", false },    { "struct", false },   { "trace", false },     { "unsigned", true },
    { "variant", false },   { "void", true },      { "_Bool", true },      { "typedef", false },
    { "typealias", false }, { "_Complex", true },  { "_Imaginary", true }, { "floating_point", false },
};

enum name_kind { NAME_PLAIN, NAME_ALIAS };

static void check_name(struct krait_tsdl_parser *p, const char *name, enum name_kind kind)
{
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(keywords); i++) {
        bool is_it = *keywords[i].text == *name && strcmp(keywords[i].text, name) == 0;
        if (is_it && (kind == NAME_PLAIN || !keywords[i].in_alias))
            krait_tsdl_fail(p, -EBADMSG, "'%s' is a word of TSDL and cannot be a name", name);
    }
}

/* -- declarators: name, *name, name[3], name[len][4] -- */

struct declarator {
    const char *name; /* NULL if there is none */
    unsigned pointers;
    unsigned dims; /* of the lengths, outermost first */
    struct krait_tsdl_value lengths[8];
};

/* A number, or the path to a field: not a quotation, which babeltrace2 2.0 takes for a path too. */
static struct krait_tsdl_value array_length(struct krait_tsdl_parser *p)
{
    bool is_path = p->tok.kind == KRAIT_TOK_WORD;
    if (is_path && krait_tsdl_is(&p->next, ']'))
        check_name(p, p->tok.text, NAME_PLAIN);
    struct krait_tsdl_value value = krait_tsdl_value(p);
    if (value.kind == KRAIT_VALUE_TEXT && !is_path)
        krait_tsdl_fail(p, -EBADMSG, "an array's length is neither a number nor the path to a field");
    return value;
}

static void declarator(struct krait_tsdl_parser *p, struct declarator *d)
{
    *d = (struct declarator){ 0 };
    while (krait_tsdl_accept(p, '*')) {
        d->pointers++;
        krait_tsdl_accept_word(p, "const");
    }
    if (p->tok.kind == KRAIT_TOK_WORD) {
        d->name = p->tok.text;
        check_name(p, d->name, NAME_PLAIN);
        krait_tsdl_advance(p);
    }
    while (krait_tsdl_accept(p, '[')) {
        if (d->dims == KRAIT_ARRAY_LEN(d->lengths)) {
            krait_tsdl_fail(p, -EBADMSG, "an array of more than %zu dimensions", KRAIT_ARRAY_LEN(d->lengths));
            return;
        }
        d->lengths[d->dims++] = array_length(p);
        krait_tsdl_expect(p, ']');
    }
}

static uint64_t env_length(struct krait_tsdl_parser *p, const char *name)
{
    const struct krait_env_entry *entry = krait_ctf_env(p->md, name);
    if (!entry || entry->text || entry->value < 0) {
        krait_tsdl_fail(p, -EBADMSG, "array length env.%s is not an integer of 0 or more in env", name);
        return 0;
    }
    return (uint64_t)entry->value;
}

/* Types grow deep through aliases too, not only through braces. */
static void deepen(struct krait_tsdl_parser *p, struct krait_fc *fc, const struct krait_fc *below)
{
    if (below && below->depth >= fc->depth)
        fc->depth = (uint8_t)(below->depth + 1);
    if (fc->depth > KRAIT_TSDL_MAX_DEPTH)
        krait_tsdl_fail(p, -EBADMSG, "types within types deeper than %d", (int)KRAIT_TSDL_MAX_DEPTH);
}

static struct krait_fc *array_of(struct krait_tsdl_parser *p, struct krait_fc *elem,
                                 const struct krait_tsdl_value *len)
{
    bool env = len->kind == KRAIT_VALUE_TEXT && strncmp(len->text, "env.", 4) == 0;
    bool fixed = len->kind == KRAIT_VALUE_INT || env;
    struct krait_fc *fc = krait_tsdl_fc_new(p, fixed ? KRAIT_FC_ARRAY : KRAIT_FC_SEQUENCE);
    if (!fc)
        return NULL;
    fc->elem = elem;
    deepen(p, fc, elem);
    if (env)
        fc->length = env_length(p, len->text + 4);
    else if (fixed)
        fc->length = krait_tsdl_number(p, len, "an array's length");
    else
        fc->ref = len->text;
    return fc;
}

/* a[3][4] is 3 of 4: the last dimension is the innermost. */
static struct krait_fc *with_dims(struct krait_tsdl_parser *p, struct krait_fc *fc,
                                  const struct declarator *d)
{
    for (unsigned i = d->dims; i > 0 && fc && !p->rc; i--)
        fc = array_of(p, fc, &d->lengths[i - 1]);
    return fc;
}

/* -- specifiers: what stands before the declarators -- */

struct spec {
    struct krait_fc *fc; /* of a type with braces or a tag; NULL for a name */
    const char *name;    /* "unsigned long"; NULL with fc */
};

/* The word is the declared name, not one of the type's: something came before and what follows ends a declarator. */
static bool is_declared_name(struct krait_tsdl_parser *p, bool any)
{
    const struct krait_tok *next = &p->next;
    return any && (krait_tsdl_is(next, ';') || krait_tsdl_is(next, ',') || krait_tsdl_is(next, '[') ||
                   krait_tsdl_is(next, ':'));
}

static struct krait_fc *struct_type(struct krait_tsdl_parser *p);
static struct krait_fc *variant_type(struct krait_tsdl_parser *p);
static struct krait_fc *enum_type(struct krait_tsdl_parser *p);

static const struct {
    const char *word;
    struct krait_fc *(*parse)(struct krait_tsdl_parser *p); /* after the word */
} constructors[] = {
    { "integer", krait_tsdl_integer }, { "floating_point", krait_tsdl_float },
    { "string", krait_tsdl_string },   { "struct", struct_type },
    { "variant", variant_type },       { "enum", enum_type },
};

static struct krait_fc *constructed(struct krait_tsdl_parser *p)
{
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(constructors); i++) {
        if (!krait_tsdl_accept_word(p, constructors[i].word))
            continue;
        struct krait_fc *fc = NULL;
        if (++p->depth > KRAIT_TSDL_MAX_DEPTH)
            krait_tsdl_fail(p, -EBADMSG, "types within types deeper than %d", (int)KRAIT_TSDL_MAX_DEPTH);
        else
            fc = constructors[i].parse(p);
        p->depth--;
        return p->rc ? NULL : fc;
    }
    return NULL;
}

static struct spec specifiers(struct krait_tsdl_parser *p)
{
    const char *name = NULL;
    while (krait_tsdl_accept_word(p, "const"))
        name = "const";
    struct spec spec = { .fc = constructed(p) };
    while (spec.fc && krait_tsdl_accept_word(p, "const"))
        continue;
    if (spec.fc || p->rc)
        return spec;
    while (p->tok.kind == KRAIT_TOK_WORD && !is_declared_name(p, name)) {
        name = name ? krait_arena_fmt(p->arena, "%s %s", name, p->tok.text) : p->tok.text;
        if (!name)
            krait_tsdl_oom(p);
        krait_tsdl_advance(p);
    }
    if (!name)
        krait_tsdl_fail(p, -EBADMSG, "a type is missing");
    spec.name = name;
    return spec;
}

/* Pointers are part of an alias's name: "void *". */
static const char *pointer_name(struct krait_tsdl_parser *p, const char *name, unsigned pointers)
{
    for (; pointers && name; pointers--)
        name = krait_arena_fmt(p->arena, "%s *", name);
    if (!name)
        krait_tsdl_oom(p);
    return name;
}

/* The type that specifiers and declarator make. A pointer is an integer shown in hexadecimal. */
static struct krait_fc *declared_type(struct krait_tsdl_parser *p, struct spec spec,
                                      const struct declarator *d)
{
    if (p->rc)
        return NULL;
    if (spec.fc && d->pointers)
        krait_tsdl_fail(p, -EBADMSG, "a pointer to a type without a name");
    struct krait_fc *fc = NULL;
    if (!p->rc && spec.fc)
        fc = krait_tsdl_fc_copy(p, spec.fc);
    else if (!p->rc)
        fc = named(p, KRAIT_TYPE_ALIAS, pointer_name(p, spec.name, d->pointers));
    if (fc && d->pointers && krait_fc_is_int(fc))
        fc->base = 16;
    return with_dims(p, fc, d);
}

struct krait_fc *krait_tsdl_type(struct krait_tsdl_parser *p)
{
    struct spec spec = specifiers(p);
    struct declarator none = { 0 };
    return declared_type(p, spec, &none);
}

bool krait_tsdl_at_tagged(const struct krait_tsdl_parser *p)
{
    return krait_tsdl_is_word(&p->tok, "struct") || krait_tsdl_is_word(&p->tok, "variant") ||
           krait_tsdl_is_word(&p->tok, "enum");
}

void krait_tsdl_types(struct krait_tsdl_parser *p)
{
    do
        krait_tsdl_type(p);
    while (!p->rc && krait_tsdl_at_tagged(p));
    krait_tsdl_expect(p, ';');
}

/* -- typealias and typedef -- */

struct krait_tsdl_members {
    const struct krait_tsdl_members *outer;
    const struct krait_fc *fc; /* whose they are */
    struct krait_fc_member *list;
    uint32_t count, cap;
    struct krait_strtab names;
};

/* The tag of a variant's alias is of the structs around the alias, not around its use (CTF 1.8.3, 4.2.2).
 * Only where those have no such field, and for arrays of variants, which babeltrace2 reads so, is it looked
 * for around the use. */
static void settle_tag(struct krait_tsdl_parser *p, const char *name, struct krait_fc *fc)
{
    if (p->rc || !fc || fc->kind != KRAIT_FC_VARIANT)
        return;
    if (!fc->ref)
        krait_tsdl_fail(p, -EBADMSG, "type '%s' is a variant without a tag", name);
    size_t n = fc->ref ? strcspn(fc->ref, ".") : 0;
    for (const struct krait_tsdl_members *m = p->members; n && m && !fc->home; m = m->outer) {
        if (m->fc->kind == KRAIT_FC_STRUCT && krait_strtab_find(&m->names, fc->ref, n) != KRAIT_NO_ID)
            fc->home = m->fc->home;
    }
}

static void declare_alias(struct krait_tsdl_parser *p, const char *name, struct krait_fc *fc)
{
    settle_tag(p, name, fc);
    declare(p, KRAIT_TYPE_ALIAS, name, fc);
}

static void typealias(struct krait_tsdl_parser *p)
{
    struct declarator d = { 0 };
    struct spec spec = specifiers(p);
    if (p->tok.kind != KRAIT_TOK_ASSIGN_TYPE)
        declarator(p, &d);
    struct krait_fc *fc = declared_type(p, spec, &d);
    if (!p->rc && (d.name || p->tok.kind != KRAIT_TOK_ASSIGN_TYPE))
        krait_tsdl_fail(p, -EBADMSG, "typealias without ':='");
    krait_tsdl_advance(p);
    const char *name = NULL;
    for (; p->tok.kind == KRAIT_TOK_WORD; krait_tsdl_advance(p)) {
        check_name(p, p->tok.text, NAME_ALIAS);
        name = name ? krait_arena_fmt(p->arena, "%s %s", name, p->tok.text) : p->tok.text;
    }
    declarator(p, &d);
    krait_tsdl_expect(p, ';');
    if (!p->rc && (!name || d.name || d.dims))
        krait_tsdl_fail(p, -EBADMSG, "typealias without a name");
    if (!p->rc)
        declare_alias(p, pointer_name(p, name, d.pointers), fc);
}

static void typedefs(struct krait_tsdl_parser *p)
{
    struct spec spec = specifiers(p);
    do {
        struct declarator d;
        declarator(p, &d);
        struct krait_fc *fc = declared_type(p, spec, &d);
        if (!p->rc && !d.name)
            krait_tsdl_fail(p, -EBADMSG, "typedef without a name");
        declare_alias(p, d.name, fc);
    } while (krait_tsdl_accept(p, ','));
    krait_tsdl_expect(p, ';');
}

bool krait_tsdl_type_decl(struct krait_tsdl_parser *p)
{
    if (krait_tsdl_accept_word(p, "typealias"))
        typealias(p);
    else if (krait_tsdl_accept_word(p, "typedef"))
        typedefs(p);
    else
        return false;
    return true;
}

/* -- struct and variant -- */

static void add_member(struct krait_tsdl_parser *p, struct krait_tsdl_members *m, const char *name,
                       struct krait_fc *fc)
{
    if (!p->rc && !name)
        krait_tsdl_fail(p, -EBADMSG, "a field's name is missing");
    if (p->rc)
        return;
    uint32_t id = krait_strtab_add(&m->names, name, strlen(name));
    if (id == KRAIT_NO_ID) {
        krait_tsdl_fail(p, -ENOMEM, "out of memory");
        return;
    }
    if (id != m->count) {
        krait_tsdl_fail(p, -EBADMSG, "field '%s' is declared twice", name);
        return;
    }
    m->list = krait_tsdl_grow(p, m->list, m->count, &m->cap, sizeof(*m->list));
    if (!p->rc)
        m->list[m->count++] =
            (struct krait_fc_member){ .name = name + (name[0] == '_'), .tsdl_name = name, .fc = fc };
}

/* name:5, behind the colon: its alignment is known when the struct's fields are. */
static void bit_field(struct krait_tsdl_parser *p, struct krait_fc *fc)
{
    struct krait_tsdl_value value = krait_tsdl_value(p);
    uint64_t bits = krait_tsdl_number(p, &value, "a bit field's size");
    if (p->rc)
        return;
    if (!krait_fc_is_int(fc))
        krait_tsdl_fail(p, -EBADMSG, "a bit field of what is not an integer");
    else if (fc->align != fc->bits)
        krait_tsdl_fail(p, -EBADMSG, "a bit field's unit has %u bits, but is aligned to %u", fc->bits,
                        fc->align);
    else if (bits < 1 || bits > fc->bits)
        krait_tsdl_fail(p, -EBADMSG, "a bit field's size is not 1 to the %u bits of its unit", fc->bits);
    fc->unit = fc->bits;
    fc->bits = (uint8_t)bits;
}

static void member_declaration(struct krait_tsdl_parser *p, struct krait_tsdl_members *m)
{
    struct spec spec = specifiers(p);
    do {
        struct declarator d;
        declarator(p, &d);
        struct krait_fc *fc = declared_type(p, spec, &d);
        if (krait_tsdl_accept(p, ':'))
            bit_field(p, fc);
        add_member(p, m, d.name, fc);
    } while (krait_tsdl_accept(p, ','));
    krait_tsdl_expect(p, ';');
}

/* After the opening brace. */
static struct krait_fc *members_body(struct krait_tsdl_parser *p, enum krait_fc_kind kind)
{
    struct krait_fc *fc = krait_tsdl_fc_new(p, kind);
    struct krait_tsdl_members m = { .outer = p->members, .fc = fc };
    struct krait_type_scope scope;
    if (fc && kind == KRAIT_FC_STRUCT)
        fc->home = p->fc_count;
    p->members = &m;
    krait_tsdl_push(p, &scope);
    while (krait_tsdl_until(p, '}')) {
        if (!krait_tsdl_type_decl(p))
            member_declaration(p, &m);
    }
    krait_tsdl_pop(p);
    p->members = m.outer;
    krait_strtab_done(&m.names);
    if (p->rc)
        return NULL;
    fc->members = m.list;
    fc->count = m.count;
    for (uint32_t i = 0; i < m.count; i++)
        deepen(p, fc, m.list[i].fc);
    return fc;
}

static const char *optional_name(struct krait_tsdl_parser *p)
{
    const char *name = p->tok.kind == KRAIT_TOK_WORD ? p->tok.text : NULL;
    if (name)
        check_name(p, name, NAME_PLAIN);
    if (name)
        krait_tsdl_advance(p);
    return name;
}

/* align(8) after a struct's brace: the least it has. */
static void struct_align(struct krait_tsdl_parser *p, struct krait_fc *fc)
{
    if (!krait_tsdl_accept_word(p, "align"))
        return;
    krait_tsdl_expect(p, '(');
    struct krait_tsdl_value value = krait_tsdl_value(p);
    krait_tsdl_expect(p, ')');
    uint64_t align = krait_tsdl_number(p, &value, "'align'");
    if (!p->rc && (align == 0 || (align & (align - 1)) || align > 1u << 30))
        krait_tsdl_fail(p, -EBADMSG, "'align' is not a power of two");
    if (!p->rc)
        fc->align = (uint32_t)align;
}

static struct krait_fc *struct_type(struct krait_tsdl_parser *p)
{
    const char *name = optional_name(p);
    if (!krait_tsdl_accept(p, '{')) {
        if (!name)
            krait_tsdl_fail(p, -EBADMSG, "a struct without name and body");
        return named(p, KRAIT_TYPE_STRUCT, name);
    }
    struct krait_fc *fc = members_body(p, KRAIT_FC_STRUCT);
    struct_align(p, fc);
    declare(p, KRAIT_TYPE_STRUCT, name, fc);
    return fc;
}

/* <t>, <st.t>, <event.fields.t>; NULL if there is none. */
static const char *variant_tag(struct krait_tsdl_parser *p)
{
    if (!krait_tsdl_accept(p, '<'))
        return NULL;
    const char *tag = NULL;
    if (p->tok.kind == KRAIT_TOK_WORD && krait_tsdl_is(&p->next, '.'))
        tag = krait_tsdl_path(p);
    else
        tag = optional_name(p);
    krait_tsdl_expect(p, '>');
    if (!tag)
        krait_tsdl_fail(p, -EBADMSG, "a variant's tag is missing");
    return tag;
}

static struct krait_fc *variant_type(struct krait_tsdl_parser *p)
{
    const char *name = optional_name(p), *tag = variant_tag(p);
    struct krait_fc *fc = NULL;
    if (krait_tsdl_accept(p, '{')) {
        fc = members_body(p, KRAIT_FC_VARIANT);
        if (fc && tag && krait_tsdl_is_absolute(tag))
            fc->ref = tag;
        declare(p, KRAIT_TYPE_VARIANT, name, fc);
        fc = krait_tsdl_fc_copy(p, fc); /* the declared one keeps no tag that is relative */
    } else if (name) {
        fc = named(p, KRAIT_TYPE_VARIANT, name);
    } else {
        krait_tsdl_fail(p, -EBADMSG, "a variant without name and body");
    }
    if (fc && tag)
        fc->ref = tag;
    return fc;
}

static struct krait_fc *enum_type(struct krait_tsdl_parser *p)
{
    const char *name = optional_name(p);
    struct krait_fc *integer = NULL;
    bool typed = krait_tsdl_accept(p, ':');
    if (typed)
        integer = krait_tsdl_type(p);
    if (!krait_tsdl_accept(p, '{')) {
        if (!name || typed)
            krait_tsdl_fail(p, -EBADMSG, "an enumeration without body");
        return named(p, KRAIT_TYPE_ENUM, name);
    }
    if (!typed)
        integer = named(p, KRAIT_TYPE_ALIAS, "int");
    if (!p->rc && integer->kind != KRAIT_FC_INT)
        krait_tsdl_fail(p, -EBADMSG, "an enumeration of what is not an integer");
    struct krait_fc *fc = p->rc ? NULL : krait_tsdl_enum_body(p, integer);
    declare(p, KRAIT_TYPE_ENUM, name, fc);
    return fc;
}
