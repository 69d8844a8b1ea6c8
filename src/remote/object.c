/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/object.h"

#include "base/json.h"
#include "remote/memory.h"

#include <string.h>

enum { SHOWN_TEXT = 60, SHOWN_ITEMS = 5, SHOWN_DEPTH = 3 };

/* -- texts -- */

static void add_characters(struct krait_buf *out, const char *from, uint64_t count, unsigned width)
{
    for (uint64_t i = 0; i < count; i++)
        krait_utf8_add(out, (uint32_t)krait_memory_number(from + i * width, width));
}

struct text {
    uint32_t at; /* from the object to its characters */
    unsigned kind;
    uint64_t length;
};

static bool read_text_head(const struct krait_remote *remote, uint64_t addr, struct text *text)
{
    char head[KRAIT_OBJECT_HEAD];
    if (!addr || krait_memory_read(remote->pid, addr, head, sizeof(head)))
        return false;
    uint64_t state = krait_memory_number(head + KRAIT_TEXT_STATE, 4);
    enum krait_at at = krait_text_is_ascii(state) ? KRAIT_AT_TEXT_ASCII : KRAIT_AT_TEXT_WIDE;
    *text = (struct text){ .at = remote->layout.at[at],
                           .kind = krait_text_kind(state),
                           .length = krait_memory_number(head + KRAIT_OBJECT_SIZE, 8) };
    return krait_text_is_compact(state) && (text->kind == 1 || text->kind == 2 || text->kind == 4) &&
           text->length <= INT64_MAX;
}

int krait_object_text(const struct krait_remote *remote, uint64_t addr, uint32_t most, struct krait_buf *out)
{
    struct text text;
    char body[KRAIT_TEXT_MAX * 4];
    if (!read_text_head(remote, addr, &text))
        return -EINVAL;
    uint64_t count = KRAIT_MIN(text.length, (uint64_t)KRAIT_MIN(most, (uint32_t)KRAIT_TEXT_MAX));
    if (krait_memory_read(remote->pid, addr + text.at, body, count * text.kind))
        return -EINVAL;
    add_characters(out, body, count, text.kind);
    return out->failed ? -ENOMEM : text.length > count;
}

/* -- values: one function for each type -- */

struct value {
    const struct krait_remote *remote;
    uint64_t addr;
    char head[KRAIT_OBJECT_HEAD];
    int depth;
};

static void show(const struct krait_remote *remote, uint64_t addr, int depth, struct krait_buf *out);

static uint64_t head_number(const struct value *value, size_t at)
{
    return krait_memory_number(value->head + at, sizeof(uint64_t));
}

static void add_type(struct krait_buf *out, const char *type, uint64_t count)
{
    krait_buf_fmt(out, "<%s of %llu>", type, (unsigned long long)count);
}

static void show_text(const struct value *value, struct krait_buf *out)
{
    krait_buf_char(out, '\'');
    int more = krait_object_text(value->remote, value->addr, SHOWN_TEXT, out);
    krait_buf_str(out, more > 0 ? "'..." : "'");
}

static void show_bytes(const struct value *value, struct krait_buf *out)
{
    uint8_t bytes[SHOWN_TEXT];
    uint64_t size = head_number(value, KRAIT_OBJECT_SIZE), n = KRAIT_MIN(size, sizeof(bytes));
    if (krait_memory_read(value->remote->pid, value->addr + KRAIT_BYTES_DATA, bytes, n))
        n = 0;
    krait_buf_str(out, "b'");
    for (uint64_t i = 0; i < n; i++)
        krait_buf_fmt(
            out, bytes[i] >= ' ' && bytes[i] < 127 && bytes[i] != '\\' && bytes[i] != '\'' ? "%c" : "\\x%02x",
            bytes[i]);
    krait_buf_str(out, n < size ? "'..." : "'");
}

static void show_int(const struct value *value, struct krait_buf *out)
{
    enum { EXACT = 2 };
    int64_t size = (int64_t)head_number(value, KRAIT_OBJECT_SIZE);
    bool tagged = value->remote->layout.version->int_has_tag;
    bool negative = tagged ? (size & KRAIT_INT_TAG_SIGN) == KRAIT_INT_TAG_NEGATIVE : size < 0;
    uint64_t count = tagged ? (uint64_t)size >> KRAIT_INT_TAG_BITS : (uint64_t)(size < 0 ? -size : size);
    uint64_t number = 0;
    if (count > EXACT) {
        krait_buf_fmt(out, "%s<int of about %llu bits>", negative ? "-" : "",
                      (unsigned long long)count * KRAIT_INT_DIGIT_BITS);
        return;
    }
    for (uint64_t i = count; i > 0; i--)
        number = number << KRAIT_INT_DIGIT_BITS |
                 krait_memory_number(value->head + KRAIT_INT_DIGITS + 4 * (i - 1), 4);
    krait_buf_fmt(out, "%s%llu", negative ? "-" : "", (unsigned long long)number);
}

static void show_bool(const struct value *value, struct krait_buf *out)
{
    krait_buf_str(out, krait_memory_number(value->head + KRAIT_INT_DIGITS, 4) ? "True" : "False");
}

static void show_float(const struct value *value, struct krait_buf *out)
{
    double number;
    memcpy(&number, value->head + KRAIT_FLOAT_VALUE, sizeof(number));
    krait_buf_fmt(out, "%.12g", number);
}

static void show_none(const struct value *value, struct krait_buf *out)
{
    krait_buf_str(out, "None");
}

static void show_items(const struct value *value, uint64_t items, const char *ends, struct krait_buf *out)
{
    uint64_t size = head_number(value, KRAIT_OBJECT_SIZE), addrs[SHOWN_ITEMS],
             n = KRAIT_MIN(size, SHOWN_ITEMS);
    if (value->depth >= SHOWN_DEPTH ||
        krait_memory_read(value->remote->pid, items, addrs, n * sizeof(*addrs))) {
        krait_buf_str(out, "...");
        return;
    }
    krait_buf_char(out, ends[0]);
    for (uint64_t i = 0; i < n; i++) {
        krait_buf_str(out, i ? ", " : "");
        show(value->remote, addrs[i], value->depth + 1, out);
    }
    if (n < size)
        krait_buf_fmt(out, ", ... %llu in all", (unsigned long long)size);
    krait_buf_char(out, ends[1]);
}

static void show_list(const struct value *value, struct krait_buf *out)
{
    show_items(value, head_number(value, KRAIT_LIST_ITEMS), "[]", out);
}

static void show_tuple(const struct value *value, struct krait_buf *out)
{
    show_items(value, value->addr + value->remote->layout.at[KRAIT_AT_TUPLE_ITEMS], "()", out);
}

static void show_dict(const struct value *value, struct krait_buf *out)
{
    add_type(out, "dict", head_number(value, KRAIT_DICT_USED));
}

static void show_set(const struct value *value, struct krait_buf *out)
{
    add_type(out, "set", head_number(value, KRAIT_SET_USED));
}

static void show_cell(const struct value *value, struct krait_buf *out)
{
    uint64_t inside = head_number(value, KRAIT_CELL_VALUE);
    if (inside)
        show(value->remote, inside, value->depth + 1, out);
}

static const struct {
    const char *type;
    void (*show)(const struct value *value, struct krait_buf *out);
} kinds[] = {
    { "str", show_text },    { "int", show_int },   { "bool", show_bool },     { "NoneType", show_none },
    { "float", show_float }, { "list", show_list }, { "tuple", show_tuple },   { "dict", show_dict },
    { "bytes", show_bytes }, { "set", show_set },   { "frozenset", show_set }, { "cell", show_cell },
};

bool krait_name_at(const struct krait_remote *remote, uint64_t addr, char name[KRAIT_TYPE_NAME_MAX])
{
    uint64_t at = 0;
    if (krait_memory_read(remote->pid, addr, &at, sizeof(at)))
        return false;
    size_t n = KRAIT_TYPE_NAME_MAX - 1;
    while (n && krait_memory_read(remote->pid, at, name,
                                  n)) /* it may end right before the end of what is mapped */
        n /= 2;
    name[n] = '\0';
    size_t length = strlen(name);
    return length && krait_utf8_len(name, length);
}

bool krait_type_name(const struct krait_remote *remote, uint64_t type, char name[KRAIT_TYPE_NAME_MAX])
{
    return krait_name_at(remote, type + KRAIT_TYPE_NAME, name);
}

bool krait_object_type(const struct krait_remote *remote, uint64_t addr, char name[KRAIT_TYPE_NAME_MAX])
{
    uint64_t type = 0;
    return !krait_memory_read(remote->pid, addr + KRAIT_OBJECT_TYPE, &type, sizeof(type)) &&
           krait_type_name(remote, type, name);
}

bool krait_object_is_method(const struct krait_remote *remote, uint64_t addr, const char *name)
{
    char type[KRAIT_TYPE_NAME_MAX];
    uint64_t text = 0;
    KRAIT_AUTO_BUF own = { 0 };
    return addr && krait_object_type(remote, addr, type) && strcmp(type, "method_descriptor") == 0 &&
           !krait_memory_read(remote->pid, addr + KRAIT_DESCRIPTOR_NAME, &text, sizeof(text)) &&
           krait_object_text(remote, text, KRAIT_TYPE_NAME_MAX, &own) == 0 && own.data &&
           strcmp(own.data, name) == 0;
}

uint64_t krait_object_bound_to(const struct krait_remote *remote, uint64_t addr, const char *name)
{
    char text[KRAIT_TYPE_NAME_MAX];
    uint64_t definition = 0, self = 0;
    if (!addr || !krait_object_type(remote, addr, text) || strcmp(text, "builtin_function_or_method") != 0 ||
        krait_memory_read(remote->pid, addr + KRAIT_BUILTIN_DEFINITION, &definition, sizeof(definition)) ||
        !krait_name_at(remote, definition, text) || strcmp(text, name) != 0 ||
        krait_memory_read(remote->pid, addr + KRAIT_BUILTIN_SELF, &self, sizeof(self)))
        return 0;
    return self;
}

static void show(const struct krait_remote *remote, uint64_t addr, int depth, struct krait_buf *out)
{
    struct value value = { .remote = remote, .addr = addr, .depth = depth };
    char type[KRAIT_TYPE_NAME_MAX];
    bool whole = !krait_memory_read(remote->pid, addr, value.head, sizeof(value.head)) ||
                 !krait_memory_read(remote->pid, addr, value.head, sizeof(value.head) / 2);
    if (!whole || !krait_type_name(remote, head_number(&value, KRAIT_OBJECT_TYPE), type)) {
        krait_buf_str(out, "?");
        return;
    }
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(kinds); i++) {
        if (strcmp(kinds[i].type, type) == 0) {
            kinds[i].show(&value, out);
            return;
        }
    }
    krait_buf_fmt(out, "<%s object at 0x%llx>", type, (unsigned long long)addr);
}

void krait_object_show(const struct krait_remote *remote, uint64_t addr, struct krait_buf *out)
{
    show(remote, addr, 0, out);
}

/* -- names of tasks -- */

static bool is_text(const struct krait_remote *remote, uint64_t addr)
{
    char type[KRAIT_TYPE_NAME_MAX];
    return krait_object_type(remote, addr, type) && strcmp(type, "str") == 0;
}

void krait_task_name(const struct krait_remote *remote, uint64_t addr, char name[KRAIT_TASK_NAME_MAX])
{
    KRAIT_AUTO_BUF text = { 0 };
    if (!is_text(remote, addr) || krait_object_text(remote, addr, KRAIT_TASK_NAME_MAX, &text) < 0) {
        krait_buf_str(&text, "Task-"); /* a number until somebody asks for the name: 3.12 */
        krait_object_show(remote, addr, &text);
    }
    size_t used = 0, next;
    while (text.data && used < text.len && (next = krait_utf8_len(text.data + used, text.len - used)) &&
           used + next < KRAIT_TASK_NAME_MAX)
        used += next;
    snprintf(name, KRAIT_TASK_NAME_MAX, "%.*s", text.data ? (int)used : 1, text.data ? text.data : "?");
}

size_t krait_task_name_size(const struct krait_remote *remote, uint64_t addr)
{
    enum { OF_NUMBER = 32 }; /* an int of up to two digits */
    struct text text;
    if (!is_text(remote, addr) || !read_text_head(remote, addr, &text))
        return OF_NUMBER;
    size_t size = text.at + (size_t)KRAIT_MIN(text.length, (uint64_t)KRAIT_TASK_NAME_MAX) * text.kind;
    return KRAIT_MIN(size, (size_t)KRAIT_TASK_NAME_BYTES);
}

/* -- local variables -- */

struct names {
    uint64_t items[KRAIT_LOCALS_MAX];
    uint32_t count;
};

static void add_names(const struct krait_remote *remote, uint64_t code, enum krait_at at, struct names *names)
{
    uint64_t tuple = 0, size = 0;
    if (remote->layout.at[at] == KRAIT_NOWHERE ||
        krait_memory_read(remote->pid, code + remote->layout.at[at], &tuple, sizeof(tuple)) ||
        krait_memory_read(remote->pid, tuple + KRAIT_OBJECT_SIZE, &size, sizeof(size)))
        return;
    uint32_t n = (uint32_t)KRAIT_MIN(size, (uint64_t)KRAIT_LOCALS_MAX - names->count);
    if (!krait_memory_read(remote->pid, tuple + remote->layout.at[KRAIT_AT_TUPLE_ITEMS],
                           &names->items[names->count], n * sizeof(uint64_t)))
        names->count += n;
}

/* A frame's code object, to see whether it is still the same. */
static bool runs(const struct krait_remote *remote, const struct krait_remote_frame *frame)
{
    uint64_t code = 0;
    int rc = krait_memory_read(remote->pid, frame->addr + remote->layout.at[KRAIT_AT_FRAME_CODE], &code,
                               sizeof(code));
    return !rc && (code & ~KRAIT_REFERENCE_TAGS) == frame->code->addr;
}

int krait_locals_read(const struct krait_remote *remote, const struct krait_remote_frame *frame,
                      krait_local_fn *each, void *ctx)
{
    static const enum krait_at lists[] = { KRAIT_AT_CODE_LOCALS, KRAIT_AT_CODE_CELLS, KRAIT_AT_CODE_FREE };
    KRAIT_AUTO_BUF text = { 0 };
    uint64_t values[KRAIT_LOCALS_MAX];
    size_t at[KRAIT_LOCALS_MAX];
    struct names names = { .count = 0 };
    if (frame->code->native)
        return 0;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(lists); i++)
        add_names(remote, frame->code->addr, lists[i], &names);
    int rc = krait_memory_read(remote->pid, frame->addr + remote->layout.at[KRAIT_AT_FRAME_LOCALS], values,
                               names.count * sizeof(*values));
    for (uint32_t i = 0; i < names.count && !rc; i++) {
        at[i] = text.len;
        values[i] &= ~KRAIT_REFERENCE_TAGS;
        krait_object_text(remote, names.items[i], KRAIT_TEXT_MAX, &text);
        krait_buf_char(&text, '\0');
        if (values[i])
            krait_object_show(remote, values[i], &text);
        krait_buf_char(&text, '\0');
    }
    if (text.failed)
        return -ENOMEM;
    if (rc || !runs(remote, frame))
        return -EAGAIN;
    for (uint32_t i = 0; i < names.count; i++) {
        const char *name = text.data + at[i], *value = name + strlen(name) + 1;
        if (*name && *value)
            each(ctx, name, value);
    }
    return 0;
}
