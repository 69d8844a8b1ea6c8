/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/value.h"

#include "base/json.h"
#include "base/shortest.h"
#include "python/compat/printable.h"
#include "remote/lookup.h"
#include "remote/memory.h"
#include "remote/object.h"

#include <math.h>
#include <string.h>

/* Types that are built in and were met: kinds by the hash of their addresses, which stay what they are. */
enum { TYPES_KEPT = 32 };

struct types {
    uint64_t addrs[TYPES_KEPT];
    const struct kind *kinds[TYPES_KEPT];
};

struct value {
    const struct krait_remote *remote;
    struct types *types;
    uint64_t addr;
    char head[KRAIT_OBJECT_HEAD];
    const struct kind *kind;
    const struct value *outer; /* what it is in; NULL: nothing */
};

/* What krait shows of objects of a type that is built in. */
struct kind {
    const char *type;
    void (*show)(const struct value *value, struct krait_buf *out);
    const char *word; /* its only value */
};

static void show(const struct krait_remote *remote, struct types *types, uint64_t addr,
                 const struct value *outer, struct krait_buf *out);

static uint64_t head_number(const struct value *value, size_t at)
{
    return krait_memory_number(value->head + at, sizeof(uint64_t));
}

static void show_word(const struct value *value, struct krait_buf *out)
{
    krait_buf_str(out, value->kind->word);
}

/* -- texts -- */

/* Python takes the other quotes if that saves a backslash. */
static char quote_of(const uint32_t *characters, uint64_t count)
{
    bool has_single = false, has_double = false;
    for (uint64_t i = 0; i < count; i++) {
        has_single |= characters[i] == '\'';
        has_double |= characters[i] == '"';
    }
    return has_single && !has_double ? '"' : '\'';
}

/* Whether it has an escape of its own: a backslash and a letter. */
static bool add_short_escape(struct krait_buf *out, uint32_t character, char quote)
{
    static const char escapes[][2] = { { '\t', 't' }, { '\n', 'n' }, { '\r', 'r' }, { '\\', '\\' } };
    char letter = character == (uint32_t)quote ? quote : '\0';
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(escapes); i++)
        letter = character == (uint32_t)escapes[i][0] ? escapes[i][1] : letter;
    if (letter)
        krait_buf_fmt(out, "\\%c", letter);
    return letter;
}

/* `version`: NULL for bytes, of which only ASCII is shown as it is. */
static void add_quoted(struct krait_buf *out, const struct krait_layout_of *version,
                       const uint32_t *characters, uint64_t count)
{
    char quote = quote_of(characters, count);
    krait_buf_char(out, quote);
    for (uint64_t i = 0; i < count; i++) {
        uint32_t c = characters[i];
        if (add_short_escape(out, c, quote))
            continue;
        if (version ? krait_is_printable(version, c) : c >= ' ' && c < 0x7f)
            krait_utf8_add(out, c);
        else
            krait_buf_fmt(out, c <= UINT8_MAX ? "\\x%02x" : c <= UINT16_MAX ? "\\u%04x" : "\\U%08x", c);
    }
    krait_buf_char(out, quote);
}

static void show_text(const struct value *value, struct krait_buf *out)
{
    uint32_t characters[KRAIT_TEXT_MAX];
    int64_t length = krait_object_characters(value->remote, value->addr, characters, KRAIT_SHOWN_TEXT);
    if (length < 0) {
        krait_buf_char(out, '?');
        return;
    }
    add_quoted(out, value->remote->layout.version, characters, KRAIT_MIN((uint64_t)length, KRAIT_SHOWN_TEXT));
    krait_buf_str(out, length > KRAIT_SHOWN_TEXT ? "..." : "");
}

static void show_bytes(const struct value *value, struct krait_buf *out)
{
    uint8_t bytes[KRAIT_SHOWN_TEXT];
    uint32_t characters[KRAIT_SHOWN_TEXT];
    uint64_t size = head_number(value, KRAIT_OBJECT_SIZE), n = KRAIT_MIN(size, sizeof(bytes));
    if (krait_memory_read(value->remote->pid, value->addr + KRAIT_BYTES_DATA, bytes, n)) {
        krait_buf_char(out, '?');
        return;
    }
    for (uint64_t i = 0; i < n; i++)
        characters[i] = bytes[i];
    krait_buf_char(out, 'b');
    add_quoted(out, NULL, characters, n);
    krait_buf_str(out, n < size ? "..." : "");
}

/* -- numbers -- */

enum { INT_DIGITS_MOST = KRAIT_SHOWN_BITS / KRAIT_INT_DIGIT_BITS };

/* Divides the number in `digits`, lowest first, by a billion, and returns the rest. */
static uint32_t divide(uint32_t *digits, uint64_t count)
{
    enum { BILLION = 1000000000 };
    uint64_t rest = 0;
    for (uint64_t i = count; i > 0; i--) {
        rest = rest << KRAIT_INT_DIGIT_BITS | digits[i - 1];
        digits[i - 1] = (uint32_t)(rest / BILLION);
        rest %= BILLION;
    }
    return (uint32_t)rest;
}

static void add_decimal(struct krait_buf *out, uint32_t *digits, uint64_t count)
{
    enum { PARTS = INT_DIGITS_MOST + 2 };
    uint32_t parts[PARTS] = { 0 }, used = 0;
    while (count && used < PARTS) {
        parts[used++] = divide(digits, count);
        while (count && !digits[count - 1])
            count--;
    }
    krait_buf_fmt(out, "%u", used ? parts[used - 1] : 0);
    for (uint32_t i = used; i > 1; i--)
        krait_buf_fmt(out, "%09u", parts[i - 2]);
}

static void show_int(const struct value *value, struct krait_buf *out)
{
    int64_t size = (int64_t)head_number(value, KRAIT_OBJECT_SIZE);
    bool tagged = value->remote->layout.version->int_has_tag;
    bool negative = tagged ? (size & KRAIT_INT_TAG_SIGN) == KRAIT_INT_TAG_NEGATIVE : size < 0;
    uint64_t count = tagged ? (uint64_t)size >> KRAIT_INT_TAG_BITS : (uint64_t)(size < 0 ? -size : size);
    uint32_t digits[INT_DIGITS_MOST] = { 0 };
    bool is_inside = count <= (KRAIT_OBJECT_HEAD - KRAIT_INT_DIGITS) / sizeof(*digits), is_read = true;
    krait_buf_str(out, negative ? "-" : "");
    if (count > INT_DIGITS_MOST) {
        krait_buf_fmt(out, "<int of about %llu bits>", (unsigned long long)count * KRAIT_INT_DIGIT_BITS);
        return;
    }
    if (is_inside)
        memcpy(digits, value->head + KRAIT_INT_DIGITS, count * sizeof(*digits));
    else
        is_read = !krait_memory_read(value->remote->pid, value->addr + KRAIT_INT_DIGITS, digits,
                                     count * sizeof(*digits));
    if (is_read)
        add_decimal(out, digits, count);
    else
        krait_buf_char(out, '?');
}

static void show_bool(const struct value *value, struct krait_buf *out)
{
    krait_buf_str(out, krait_memory_number(value->head + KRAIT_INT_DIGITS, 4) ? "True" : "False");
}

/* `whole`: what follows a whole number. */
static void add_float(struct krait_buf *out, double number, const char *whole)
{
    static const char point_zero[] = ".0";
    char text[KRAIT_SHORTEST_MOST];
    if (!isfinite(number)) {
        krait_buf_str(out, isnan(number) ? "nan" : number < 0 ? "-inf" : "inf");
        return;
    }
    size_t n = (size_t)(krait_put_shortest(text, number) - text), end = strlen(point_zero);
    bool is_whole = n > end && memcmp(text + n - end, point_zero, end) == 0;
    krait_buf_add(out, text, is_whole ? n - end : n);
    krait_buf_str(out, is_whole ? whole : "");
}

static double double_at(const struct value *value, size_t at)
{
    double number;
    memcpy(&number, value->head + at, sizeof(number));
    return number;
}

static void show_float(const struct value *value, struct krait_buf *out)
{
    add_float(out, double_at(value, KRAIT_FLOAT_VALUE), ".0");
}

static void show_complex(const struct value *value, struct krait_buf *out)
{
    double real = double_at(value, KRAIT_FLOAT_VALUE);
    double imaginary = double_at(value, KRAIT_FLOAT_VALUE + sizeof(real));
    bool both = real != 0 || signbit(real);
    krait_buf_str(out, both ? "(" : "");
    if (both)
        add_float(out, real, "");
    krait_buf_str(out, both && (isnan(imaginary) || !signbit(imaginary)) ? "+" : "");
    add_float(out, imaginary, "");
    krait_buf_str(out, both ? "j)" : "j");
}

/* -- collections -- */

/* What repr() shows around items. */
struct ends {
    const char *begin, *end, *empty, *again; /* again: it is in itself */
    const char *alone;                       /* behind a single item */
};

/* `first`: the first KRAIT_SHOWN_ITEMS, or less; pairs: keys and their values. */
static void show_items(const struct value *value, const struct ends *ends, const struct krait_found *first,
                       bool pairs, uint64_t size, struct krait_buf *out)
{
    krait_buf_str(out, ends->begin);
    for (uint32_t i = 0; i < first->count; i++) {
        krait_buf_str(out, !i ? "" : pairs && i % 2 ? ": " : ", ");
        show(value->remote, value->types, first->items[i], value, out);
    }
    uint64_t shown = pairs ? first->count / 2 : first->count;
    krait_buf_str(out, size == 1 && shown == 1 && ends->alone ? ends->alone : "");
    if (shown < size)
        krait_buf_fmt(out, "%s... %llu in all", shown ? ", " : "", (unsigned long long)size);
    krait_buf_str(out, ends->end);
}

static uint32_t depth_of(const struct value *value)
{
    uint32_t depth = 0;
    for (; value->outer; value = value->outer)
        depth++;
    return depth;
}

static bool is_in_itself(const struct value *value)
{
    const struct value *outer = value->outer;
    while (outer && outer->addr != value->addr)
        outer = outer->outer;
    return outer;
}

typedef int first_fn(const struct krait_remote *remote, uint64_t addr, uint32_t most,
                     struct krait_found *found);

static void show_collection(const struct value *value, const struct ends *ends, first_fn *read_first,
                            uint64_t size, struct krait_buf *out)
{
    KRAIT_CLEANUP(krait_found_done) struct krait_found first = { 0 };
    if (!size)
        krait_buf_str(out, ends->empty);
    else if (is_in_itself(value))
        krait_buf_str(out, ends->again);
    else if (depth_of(value) >= KRAIT_SHOWN_DEPTH)
        krait_buf_fmt(out, "<%s of %llu>", value->kind->type, (unsigned long long)size);
    else if (read_first(value->remote, value->addr, KRAIT_SHOWN_ITEMS, &first))
        krait_buf_char(out, '?');
    else
        show_items(value, ends, &first, read_first == krait_dict_first, size, out);
}

static void show_list(const struct value *value, struct krait_buf *out)
{
    static const struct ends ends = { "[", "]", "[]", "[...]", NULL };
    show_collection(value, &ends, krait_list_first, head_number(value, KRAIT_OBJECT_SIZE), out);
}

static void show_tuple(const struct value *value, struct krait_buf *out)
{
    static const struct ends ends = { "(", ")", "()", "(...)", "," };
    show_collection(value, &ends, krait_tuple_first, head_number(value, KRAIT_OBJECT_SIZE), out);
}

static void show_dict(const struct value *value, struct krait_buf *out)
{
    static const struct ends ends = { "{", "}", "{}", "{...}", NULL };
    show_collection(value, &ends, krait_dict_first, head_number(value, KRAIT_DICT_USED), out);
}

static void show_set(const struct value *value, struct krait_buf *out)
{
    static const struct ends ends = { "{", "}", "set()", "set(...)", NULL };
    show_collection(value, &ends, krait_set_first, head_number(value, KRAIT_SET_USED), out);
}

static void show_frozenset(const struct value *value, struct krait_buf *out)
{
    static const struct ends ends = { "frozenset({", "})", "frozenset()", "frozenset(...)", NULL };
    show_collection(value, &ends, krait_set_first, head_number(value, KRAIT_SET_USED), out);
}

/* -- all -- */

static const struct kind kinds[] = {
    { "str", show_text, NULL },
    { "int", show_int, NULL },
    { "bool", show_bool, NULL },
    { "NoneType", show_word, "None" },
    { "float", show_float, NULL },
    { "list", show_list, NULL },
    { "tuple", show_tuple, NULL },
    { "dict", show_dict, NULL },
    { "bytes", show_bytes, NULL },
    { "set", show_set, NULL },
    { "frozenset", show_frozenset, NULL },
    { "complex", show_complex, NULL },
    { "ellipsis", show_word, "Ellipsis" },
    { "NotImplementedType", show_word, "NotImplemented" },
};

/* A class of the program may have the name of a type that is built in. */
static bool is_built_in(const struct krait_remote *remote, uint64_t type)
{
    uint64_t flags = 0;
    int rc = krait_memory_read(remote->pid, type + KRAIT_TYPE_FLAGS, &flags, sizeof(flags));
    return !rc && !(flags & KRAIT_TYPE_HEAP);
}

/* The kind of a type; NULL: of another one, whose name `name` is then, or "" if it has none. */
static const struct kind *find_kind(const struct krait_remote *remote, struct types *types, uint64_t type,
                                    char name[KRAIT_TYPE_NAME_MAX])
{
    uint32_t slot = krait_hash_u64(type) % TYPES_KEPT;
    if (type && types->addrs[slot] == type)
        return types->kinds[slot];
    if (!type || !krait_type_name(remote, type, name))
        *name = '\0';
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(kinds); i++) {
        if (strcmp(kinds[i].type, name) != 0 || !is_built_in(remote, type))
            continue;
        types->addrs[slot] = type;
        types->kinds[slot] = &kinds[i];
        return &kinds[i];
    }
    return NULL;
}

/* An object that lies at the end of what is mapped may be shorter than all that krait looks at. */
static bool read_head(struct value *value)
{
    enum { ALIGNED = 8 };
    size_t size = sizeof(value->head);
    while (size && krait_memory_read(value->remote->pid, value->addr, value->head, size))
        size -= ALIGNED;
    return size;
}

static void show(const struct krait_remote *remote, struct types *types, uint64_t addr,
                 const struct value *outer, struct krait_buf *out)
{
    struct value value = { .remote = remote, .types = types, .addr = addr, .outer = outer };
    char name[KRAIT_TYPE_NAME_MAX] = "";
    if (read_head(&value))
        value.kind = find_kind(remote, types, head_number(&value, KRAIT_OBJECT_TYPE), name);
    if (value.kind)
        value.kind->show(&value, out);
    else if (*name)
        krait_buf_fmt(out, "<%s object at 0x%llx>", name, (unsigned long long)addr);
    else
        krait_buf_char(out, '?');
}

void krait_value_show(const struct krait_remote *remote, uint64_t addr, struct krait_buf *out)
{
    struct types types = { .addrs = { 0 } };
    show(remote, &types, addr, NULL, out);
}

void krait_value_show_variable(const struct krait_remote *remote, uint64_t addr, struct krait_buf *out)
{
    char type[KRAIT_TYPE_NAME_MAX];
    bool is_cell = krait_object_type(remote, addr, type) && strcmp(type, "cell") == 0;
    uint64_t inside = is_cell ? krait_pointer_at(remote, addr + KRAIT_CELL_VALUE) : addr;
    if (inside)
        krait_value_show(remote, inside, out);
}
