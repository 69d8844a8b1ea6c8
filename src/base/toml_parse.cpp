// SPDX-License-Identifier: Apache-2.0
//
// toml++ behind a C interface. No exception leaves this file.
#include "base/toml_parse.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <new>
#include <string_view>
#include <vector>

#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

namespace
{

struct member {
    std::string_view key;
    toml::source_position at;
    const toml::node *node;
};

int give(const krait_toml_calls &calls, const char *key, size_t key_len, uint32_t line, const toml::node &node);

int give_table(const krait_toml_calls &calls, const toml::table &table)
{
    std::vector<member> members; // a toml::table has its own order
    for (auto &&[key, node] : table)
        members.push_back({ key.str(), key.source().begin, &node });
    std::stable_sort(members.begin(), members.end(),
                     [](const member &a, const member &b) { return a.at < b.at; });
    for (const member &m : members) {
        if (int rc = give(calls, m.key.data(), m.key.size(), m.at.line, *m.node))
            return rc;
    }
    return 0;
}

int give_array(const krait_toml_calls &calls, const toml::array &array)
{
    for (const toml::node &node : array) {
        if (int rc = give(calls, nullptr, 0, node.source().begin.line, node))
            return rc;
    }
    return 0;
}

int give(const krait_toml_calls &calls, const char *key, size_t key_len, uint32_t line, const toml::node &node)
{
    krait_toml_value value = {};
    value.kind = KRAIT_TOML_TIME;
    value.line = line;
    value.key = key;
    value.key_len = key_len;
    if (node.is_table())
        value.kind = KRAIT_TOML_TABLE;
    else if (node.is_array())
        value.kind = KRAIT_TOML_ARRAY;
    else if (const auto *text = node.as_string()) {
        value.kind = KRAIT_TOML_TEXT;
        value.text = text->get().data();
        value.text_len = text->get().size();
    } else if (const auto *integer = node.as_integer()) {
        value.kind = KRAIT_TOML_INTEGER;
        value.integer = integer->get();
    } else if (const auto *real = node.as_floating_point()) {
        value.kind = KRAIT_TOML_REAL;
        value.real = real->get();
    } else if (const auto *boolean = node.as_boolean()) {
        value.kind = KRAIT_TOML_BOOL;
        value.integer = boolean->get();
    }
    if (int rc = calls.value(calls.ctx, &value))
        return rc;
    int rc = node.is_table()   ? give_table(calls, *node.as_table())
             : node.is_array() ? give_array(calls, *node.as_array())
                               : 0;
    return rc || (!node.is_table() && !node.is_array()) ? rc : calls.end(calls.ctx);
}

} // namespace

extern "C" int krait_toml_parse(const char *text, size_t n, const krait_toml_calls *calls, uint32_t *line,
                                char *why, size_t size)
{
    *line = 0;
    try {
        const toml::table table = toml::parse(std::string_view(text, n));
        return give_table(*calls, table);
    } catch (const toml::parse_error &error) {
        *line = error.source().begin.line;
        std::snprintf(why, size, "%s", error.what());
        return -EINVAL;
    } catch (const std::bad_alloc &) {
        return -ENOMEM;
    } catch (...) {
        std::snprintf(why, size, "it cannot be read");
        return -EINVAL;
    }
}
