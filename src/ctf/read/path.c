/* SPDX-License-Identifier: Apache-2.0 */
#include "ctf/read/path.h"

#include <string.h>

static size_t quoted_len(const char *path)
{
    size_t n = 1;
    while (path[n] && path[n] != '`')
        n += path[n] == '\\' && path[n + 1] ? 2 : 1;
    bool ends = path[n] == '`' && (!path[n + 1] || path[n + 1] == '.' || path[n + 1] == '[');
    return ends ? n + 1 : 0;
}

size_t krait_path_name_len(const char *path)
{
    return *path == '`' ? quoted_len(path) : strcspn(path, ".[");
}

static bool is_shown_so(const char *name, const char *path, size_t n)
{
    return name && strncmp(name, path, n) == 0 && !name[n];
}

static bool is_written_so(const char *name, const char *path, size_t n)
{
    const char *end = path + n - 1; /* the closing quote */
    for (path++; path < end; path++, name++) {
        path += *path == '\\';
        if (*path != *name)
            return false;
    }
    return !*name;
}

static const char *written(const struct krait_fc_member *member)
{
    return member->tsdl_name ? member->tsdl_name : member->name;
}

uint32_t krait_path_member(const struct krait_fc *fc, const char *name, size_t n)
{
    bool quoted = *name == '`';
    for (uint32_t i = 0; i < fc->count; i++) {
        const struct krait_fc_member *member = &fc->members[i];
        if (quoted ? is_written_so(written(member), name, n) : is_shown_so(member->name, name, n))
            return i;
    }
    for (uint32_t i = 0; i < fc->count && !quoted; i++) { /* a field may be written as another is shown */
        if (is_shown_so(fc->members[i].tsdl_name, name, n))
            return i;
    }
    return KRAIT_NO_ID;
}

static bool is_plain(const char *name)
{
    return *name && !name[strcspn(name, ".[]`\\ \t\n\r()&|!=<>\"'$")];
}

void krait_path_add(struct krait_buf *path, const struct krait_fc *fc, uint32_t i)
{
    const char *name = fc->members[i].name;
    if (is_plain(name) && krait_path_member(fc, name, strlen(name)) == i) {
        krait_buf_str(path, name);
        return;
    }
    krait_buf_char(path, '`');
    for (name = written(&fc->members[i]); *name; name++) {
        if (*name == '`' || *name == '\\')
            krait_buf_char(path, '\\');
        krait_buf_char(path, *name);
    }
    krait_buf_char(path, '`');
}
