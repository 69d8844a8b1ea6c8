/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/record_probes.h"

#include "base/array.h"
#include "base/suggest.h"
#include "cmd/before_recording.h"
#include "remote/probes.h"

#include <fnmatch.h>
#include <limits.h>
#include <string.h>

/* What one spec says. */
struct spec {
    char path[PATH_MAX];
    char glob[256];        /* of provider:name */
    const char *arguments; /* behind the parenthesis; NULL: none are named */
};

struct search {
    struct krait_record_probes *probes;
    const struct spec *spec;
    char *path, *arguments; /* in the arena */
    uint32_t found;
    struct krait_suggest near;
    char nearest[256];
};

/* The file that runs as the command: what a link leads to. A link of proc may lead to where no path of ours does. */
static int find_command(const char *command, struct spec *spec, struct krait_err *err)
{
    char path[PATH_MAX];
    if (strncmp(command, "/proc/", strlen("/proc/")) == 0 &&
        krait_copy_text(spec->path, sizeof(spec->path), command, strlen(command)))
        return 0;
    if (krait_before_look_up(command, path, sizeof(path)) || !realpath(path, spec->path))
        return krait_err_set(err, -ENOENT, "cannot find the file of %s: name it in --usdt FILE:PROVIDER:NAME",
                             command);
    return 0;
}

/* The last colon but one, before `end`, ends the file's name. */
static const char *file_end(const char *text, const char *end)
{
    const char *name = memrchr(text, ':', (size_t)(end - text));
    return name ? memrchr(text, ':', (size_t)(name - text)) : NULL;
}

static int read_spec(struct spec *spec, const char *text, const char *command, struct krait_err *err)
{
    const char *slash = strrchr(text, '/'), *open = strchr(slash ? slash : text, '(');
    const char *end = open ? open : text + strlen(text), *file = file_end(text, end);
    const char *from = file ? file + 1 : text;
    char given[PATH_MAX];
    spec->arguments = open ? open + 1 : NULL;
    if (!memchr(from, ':', (size_t)(end - from)) || (open && text[strlen(text) - 1] != ')') ||
        !krait_copy_text(spec->glob, sizeof(spec->glob), from, (size_t)(end - from)))
        return krait_err_set(err, -EINVAL, "'%s' is not [FILE:]PROVIDER:NAME[(ARGUMENT, ...)]", text);
    if (!file)
        return find_command(command, spec, err);
    if (!krait_copy_text(given, sizeof(given), text, (size_t)(file - text)) || !realpath(given, spec->path))
        return krait_err_set(err, -ENOENT, "cannot read %.*s: %s", (int)(file - text), text, strerror(errno));
    return 0;
}

static int add_probe(struct search *search, const struct krait_usdt_probe *probe, const char *name)
{
    struct krait_record_probes *probes = search->probes;
    KRAIT_AUTO_BUF fetch = { 0 }, event = { 0 };
    krait_buf_fmt(&event, "usdt:%s", name);
    krait_buf_str(&fetch, "");
    krait_probe_fetch(&fetch, probe->arguments, search->arguments);
    krait_buf_char(&event, '\0');
    krait_buf_char(&fetch, '\0');
    if (event.failed || fetch.failed || !KRAIT_GROW(probes->items, probes->cap, probes->count + 1))
        return -ENOMEM;
    struct krait_kernel_probe item = { .name = krait_arena_strdup(&probes->texts, event.data),
                                       .path = search->path,
                                       .offset = probe->offset,
                                       .semaphore = probe->semaphore,
                                       .arguments = krait_arena_strdup(&probes->texts, fetch.data) };
    probes->items[probes->count++] = item;
    search->found++;
    return item.name && item.arguments ? 0 : -ENOMEM;
}

static int look_at(void *ctx, const struct krait_usdt_probe *probe)
{
    struct search *search = ctx;
    char name[256];
    if (snprintf(name, sizeof(name), "%s:%s", probe->provider, probe->name) >= (int)sizeof(name))
        return 0;
    if (fnmatch(search->spec->glob, name, 0) == 0)
        return add_probe(search, probe, name);
    uint32_t before = search->near.best ? search->near.best_distance : UINT32_MAX;
    krait_suggest_try(&search->near, name);
    if (search->near.best == name && (search->near.best_distance < before || before == UINT32_MAX))
        snprintf(search->nearest, sizeof(search->nearest), "%s", name);
    if (search->near.best)
        search->near.best = search->nearest;
    return 0;
}

static int none_found(const struct search *search, struct krait_err *err)
{
    const struct spec *spec = search->spec;
    return krait_err_set(err, -ENOENT, "%s has no probe '%s'%s%s%s; readelf -n lists those that it has",
                         spec->path, spec->glob, *search->nearest ? "; did you mean '" : "", search->nearest,
                         *search->nearest ? "'?" : "");
}

static char *keep(struct krait_record_probes *probes, const char *text)
{
    return krait_arena_strdup(&probes->texts, text);
}

static int find(struct krait_record_probes *probes, const struct spec *spec, struct krait_err *err)
{
    struct krait_elf elf;
    struct search search = { .probes = probes,
                             .spec = spec,
                             .path = keep(probes, spec->path),
                             .near = KRAIT_SUGGEST(spec->glob, strlen(spec->glob)) };
    if (spec->arguments && (search.arguments = keep(probes, spec->arguments)))
        search.arguments[strlen(search.arguments) - 1] = '\0'; /* the parenthesis */
    if (!search.path || (spec->arguments && !search.arguments))
        return krait_err_set(err, -ENOMEM, "out of memory");
    if (strpbrk(spec->path, " \t\n"))
        return krait_err_set(err, -ENOTSUP, "%s: the kernel takes no names with blanks", spec->path);
    int rc = krait_elf_open(&elf, spec->path);
    if (rc)
        return krait_err_set(err, rc, "cannot read %s: %s", spec->path,
                             rc == -ENOEXEC ? "it is no program or library" : strerror(-rc));
    rc = krait_probes_each(&elf, look_at, &search);
    krait_elf_done(&elf);
    if (rc)
        return krait_err_set(err, rc, "out of memory");
    return search.found ? 0 : none_found(&search, err);
}

int krait_record_probes_find(struct krait_record_probes *probes, const struct krait_opt_list *specs,
                             const char *command, struct krait_err *err)
{
    int rc = 0;
    for (size_t i = 0; i < specs->count && !rc; i++) {
        struct spec spec;
        rc = read_spec(&spec, specs->items[i], command, err);
        rc = rc ? rc : find(probes, &spec, err);
    }
    return rc;
}

void krait_record_probes_done(struct krait_record_probes *probes)
{
    free(probes->items);
    krait_arena_done(&probes->texts);
}
