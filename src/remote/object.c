/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/object.h"

#include "base/json.h"
#include "remote/memory.h"
#include "remote/value.h"

#include <string.h>

/* -- texts -- */

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

int64_t krait_object_characters(const struct krait_remote *remote, uint64_t addr,
                                uint32_t characters[KRAIT_TEXT_MAX], uint32_t most)
{
    struct text text;
    char body[KRAIT_TEXT_MAX * 4];
    if (!read_text_head(remote, addr, &text))
        return -EINVAL;
    uint64_t count = KRAIT_MIN(text.length, (uint64_t)KRAIT_MIN(most, (uint32_t)KRAIT_TEXT_MAX));
    if (krait_memory_read(remote->pid, addr + text.at, body, count * text.kind))
        return -EINVAL;
    for (uint64_t i = 0; i < count; i++)
        characters[i] = (uint32_t)krait_memory_number(body + i * text.kind, text.kind);
    return (int64_t)text.length;
}

int krait_object_text(const struct krait_remote *remote, uint64_t addr, uint32_t most, struct krait_buf *out)
{
    uint32_t characters[KRAIT_TEXT_MAX];
    most = KRAIT_MIN(most, (uint32_t)KRAIT_TEXT_MAX);
    int64_t length = krait_object_characters(remote, addr, characters, most);
    for (int64_t i = 0; i < KRAIT_MIN(length, (int64_t)most); i++)
        krait_utf8_add(out, characters[i]);
    return length < 0 ? (int)length : out->failed ? -ENOMEM : length > most;
}

/* -- types -- */

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
        krait_value_show(remote, addr, &text);
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
