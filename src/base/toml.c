/* SPDX-License-Identifier: Apache-2.0 */
#include "base/toml.h"

#include <string.h>

enum { DEEPEST = 64, MOST_DOTS = 64 };

/* What is open: the place where the next member goes. */
struct building {
    struct krait_arena *arena;
    struct krait_toml **next[DEEPEST];
    uint32_t depth;
    uint32_t line; /* of what is nested too deep; 0: nothing is */
};

static int add_value(void *ctx, const struct krait_toml_value *value)
{
    struct building *b = ctx;
    struct krait_toml *node = KRAIT_ARENA_NEW(b->arena, struct krait_toml);
    bool has_members = value->kind == KRAIT_TOML_TABLE || value->kind == KRAIT_TOML_ARRAY;
    if (!node)
        return -ENOMEM;
    node->kind = value->kind;
    node->line = value->line;
    node->integer = value->integer;
    node->real = value->real;
    node->key = value->key ? krait_arena_strndup(b->arena, value->key, value->key_len) : NULL;
    node->text = value->text ? krait_arena_strndup(b->arena, value->text, value->text_len) : NULL;
    if ((value->key && !node->key) || (value->text && !node->text))
        return -ENOMEM;
    *b->next[b->depth] = node;
    b->next[b->depth] = &node->next;
    if (!has_members)
        return 0;
    if (b->depth + 1 == DEEPEST) {
        b->line = value->line;
        return -E2BIG;
    }
    b->next[++b->depth] = &node->first;
    return 0;
}

static int end_value(void *ctx)
{
    struct building *b = ctx;
    b->depth--;
    return 0;
}

/* What is checked before the library reads: a line with a dotted key of many parts, for each of which it makes a table in
 * the one before, without a limit; and control characters, which TOML does not allow. */
static int check_lines(const char *text, size_t n, uint32_t *line, struct krait_err *err)
{
    uint32_t dots = 0;
    *line = 1;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];
        if ((c < ' ' && c != '\t' && c != '\n' && c != '\r') || c == 0x7f)
            return krait_err_set(err, -EBADMSG, "a control character");
        dots = c == '\n' ? 0 : dots + (c == '.');
        if (dots > MOST_DOTS)
            return krait_err_set(err, -EBADMSG, "more than %d dots in a line", MOST_DOTS);
        *line += c == '\n';
    }
    *line = 0;
    return 0;
}

int krait_toml_read(struct krait_toml **out, struct krait_arena *arena, const char *text, size_t n,
                    uint32_t *line, struct krait_err *err)
{
    char why[512] = "";
    *line = 0;
    struct krait_toml *root = KRAIT_ARENA_NEW(arena, struct krait_toml);
    if (!root)
        return krait_err_set(err, -ENOMEM, "out of memory");
    if (n > KRAIT_TOML_MOST)
        return krait_err_set(err, -EFBIG, "it has more than %d bytes", KRAIT_TOML_MOST);
    if (check_lines(text, n, line, err))
        return -EBADMSG;
    struct building building = { .arena = arena, .next = { &root->first } };
    const struct krait_toml_calls calls = { &building, add_value, end_value };
    int rc = krait_toml_parse(text, n, &calls, line, why, sizeof(why));
    if (rc == -EINVAL)
        return krait_err_set(
            err, -EBADMSG, "%s%s", why,
            strstr(why, "escape sequence") ? "; between single quotes, \\ stands for itself: '\\d'" : "");
    *line = building.line;
    if (rc == -E2BIG)
        return krait_err_set(err, -EBADMSG, "tables are nested too deep");
    if (rc)
        return krait_err_set(err, rc, "out of memory");
    *out = root;
    return 0;
}

const struct krait_toml *krait_toml_get(const struct krait_toml *table, const char *key)
{
    const struct krait_toml *at = table->first;
    while (at && strcmp(at->key, key) != 0)
        at = at->next;
    return at;
}
