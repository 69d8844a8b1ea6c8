/* SPDX-License-Identifier: Apache-2.0
 *
 * Views of Trace Compass's data-driven analyses, as lanes. A view names the analyses whose attributes it draws, and has
 * entries for them, which may lie in each other; a star in a path is any attribute at that place.
 *
 *   <timeGraphView id="v"><head><analysis id="threads"/><label value="Threads"/></head>
 *     <definedValue name="running" value="1"/>                          another name of a state
 *     <entry path="Threads"><entry path="*"><display type="constant" value="status"/>    each Threads/102/status
 *
 * Source: Trace Compass's User Guide, "Data driven analysis", and xmlTimeGraphView.xsd and xmlXYView.xsd in its source.
 */
#include "analysis/provider_own.h"

#include "base/array.h"

#include <string.h>

struct viewing {
    struct krait_rules *rules;
    const char *path;
    const char **keys;
    uint32_t count;
};

bool krait_provider_refuse(struct krait_rules *rules, const char *path, const struct krait_xml *at,
                           const char *what, const char *value)
{
    KRAIT_AUTO_BUF line = { 0 };
    krait_buf_fmt(&line, "%s:%u: <%s%s%s%s> is not supported; krait leaves it out", path, at->line, at->name,
                  *what ? " " : "", what, value);
    krait_fmt_safe(&rules->notes, line.data ? line.data : "");
    krait_buf_char(&rules->notes, '\n');
    return false;
}

/* -- attributes -- */

static uint32_t count_entries(const struct krait_xml *parent)
{
    uint32_t count = 0;
    for (const struct krait_xml *at = krait_xml_first(parent, "entry"); at; at = krait_xml_next(at, "entry"))
        count += 1 + count_entries(at);
    return count;
}

/* Adds a path as a glob in which only stars are special. */
static void add_path(struct krait_buf *to, const char *path)
{
    if (to->len)
        krait_buf_char(to, '/');
    for (; *path; path++) {
        if (strchr("?[\\", *path))
            krait_buf_char(to, '\\');
        krait_buf_char(to, *path);
    }
}

/* An entry without a display only groups the entries in it. */
static int add_display(struct viewing *v, const struct krait_xml *display, const char *path)
{
    KRAIT_AUTO_BUF key = { 0 };
    bool is_self = strcmp(krait_xml_get(display, "type"), "self") == 0;
    if (!is_self && strcmp(krait_xml_get(display, "type"), "constant") != 0) {
        krait_provider_refuse(v->rules, v->path, display, "type=", krait_xml_get(display, "type"));
        return 0;
    }
    krait_buf_str(&key, path);
    if (!is_self)
        add_path(&key, krait_xml_get(display, "value"));
    const char *own = key.failed ? NULL : krait_arena_strdup(&v->rules->arena, key.data ? key.data : "");
    if (own)
        v->keys[v->count++] = own;
    return own ? 0 : -ENOMEM;
}

static int add_entries(struct viewing *v, const struct krait_xml *parent, const char *path)
{
    int rc = 0;
    for (const struct krait_xml *at = krait_xml_first(parent, "entry"); at && !rc;
         at = krait_xml_next(at, "entry")) {
        KRAIT_AUTO_BUF own = { 0 };
        const struct krait_xml *display = krait_xml_first(at, "display");
        krait_buf_str(&own, path);
        add_path(&own, krait_xml_get(at, "path"));
        if (own.failed)
            return -ENOMEM;
        if (strcmp(krait_xml_get(at, "displayType"), "delta") == 0)
            krait_provider_refuse(v->rules, v->path, at, "displayType=", "delta");
        rc = display ? add_display(v, display, own.data) : 0;
        rc = rc ? rc : add_entries(v, at, own.data);
    }
    return rc;
}

/* -- names of states -- */

static int add_labels(struct krait_rules *rules, const struct krait_xml *view, struct krait_rule_lane *lane)
{
    uint32_t count = 0;
    for (const struct krait_xml *at = krait_xml_first(view, "definedValue"); at;
         at = krait_xml_next(at, "definedValue"))
        count++;
    struct krait_rule_label *labels = krait_arena_alloc(&rules->arena, (count + 1) * sizeof(*labels));
    if (!labels)
        return -ENOMEM;
    for (const struct krait_xml *at = krait_xml_first(view, "definedValue"); at;
         at = krait_xml_next(at, "definedValue"))
        labels[lane->label_count++] =
            (struct krait_rule_label){ krait_xml_get(at, "value"), krait_xml_get(at, "name") };
    lane->labels = labels;
    return 0;
}

/* -- views -- */

uint32_t krait_provider_find(const struct krait_rules *rules, const char *id)
{
    uint32_t i = 0;
    while (i < rules->count && !(rules->items[i].provider && strcmp(rules->items[i].provider->id, id) == 0))
        i++;
    return i < rules->count ? i : KRAIT_NO_ID;
}

static int add_lane(struct krait_rules *rules, const struct krait_rule_lane *view, uint32_t rule)
{
    struct krait_rule_lane lane = *view;
    lane.rules = KRAIT_ARENA_NEW(&rules->arena, uint32_t);
    if (!lane.rules || !KRAIT_GROW(rules->lanes, rules->lane_cap, rules->lane_count + 1))
        return -ENOMEM;
    *lane.rules = rule;
    lane.count = 1;
    lane.first = rule; /* segments have a lane of their own */
    lane.end = rule + 1;
    rules->lanes[rules->lane_count++] = lane;
    return 0;
}

int krait_provider_calls_lane(struct krait_rules *rules, const char *title, const char *calls, uint32_t rule)
{
    const char **keys = krait_arena_alloc(&rules->arena, sizeof(*keys));
    if (!keys)
        return -ENOMEM;
    *keys = calls;
    const struct krait_rule_lane lane = { .title = title, .keys = keys, .key_count = 1, .are_paths = true };
    return add_lane(rules, &lane, rule);
}

const char *krait_provider_calls_glob(struct krait_rules *rules, const struct krait_xml *group)
{
    KRAIT_AUTO_BUF glob = { 0 };
    for (const struct krait_xml *at = krait_xml_first(group, "level"); at; at = krait_xml_next(at, "level")) {
        if (*krait_xml_get(at, "path"))
            add_path(&glob, krait_xml_get(at, "path"));
    }
    krait_buf_str(&glob, KRAIT_PROVIDER_CALLS "/*");
    return glob.failed ? NULL : krait_arena_strdup(&rules->arena, glob.data);
}

/* Adds a lane for each analysis of the view. Returns how many, or -ENOMEM. */
static int add_lanes(struct viewing *v, const struct krait_xml *head, const struct krait_rule_lane *view)
{
    int lanes = 0;
    for (const struct krait_xml *at = krait_xml_first(head, "analysis"); at;
         at = krait_xml_next(at, "analysis")) {
        uint32_t rule = krait_provider_find(v->rules, krait_xml_get(at, "id"));
        if (rule == KRAIT_NO_ID)
            krait_provider_refuse(v->rules, v->path, at,
                                  "that is in no file given, id=", krait_xml_get(at, "id"));
        else if (add_lane(v->rules, view, rule))
            return -ENOMEM;
        lanes += rule != KRAIT_NO_ID;
    }
    return lanes;
}

static int add_view(struct krait_rules *rules, const char *path, const struct krait_xml *view)
{
    struct viewing v = { .rules = rules, .path = path };
    const struct krait_xml *head = krait_xml_first(view, "head");
    const struct krait_xml *label = head ? krait_xml_first(head, "label") : NULL;
    struct krait_rule_lane lane = { .title = krait_xml_get(label ? label : view, label ? "value" : "id"),
                                    .are_paths = true,
                                    .is_curve = strcmp(view->name, "xyView") == 0,
                                    .line = view->line };
    v.keys = krait_arena_alloc(&rules->arena, (count_entries(view) + 1) * sizeof(*v.keys));
    if (!v.keys || add_entries(&v, view, "") || add_labels(rules, view, &lane))
        return -ENOMEM;
    if (!v.count || !head) {
        krait_provider_refuse(rules, path, view, v.count ? "of no analysis" : "that shows no attribute", "");
        return 0;
    }
    lane.keys = v.keys;
    lane.key_count = v.count;
    return add_lanes(&v, head, &lane);
}

int krait_provider_views(struct krait_rules *rules, const char *path, const struct krait_xml *root)
{
    int lanes = 0;
    for (const struct krait_xml *at = root->first; at; at = at->next) {
        bool is_view = strcmp(at->name, "timeGraphView") == 0 || strcmp(at->name, "xyView") == 0;
        int own = is_view ? add_view(rules, path, at) : 0;
        if (own < 0)
            return own;
        lanes += own;
    }
    return lanes;
}
