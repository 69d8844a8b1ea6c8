/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/kernel_class.h"

#include "base/array.h"
#include "kernel/kernel_op.h"
#include "kernel/tracefs.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>

/* ---- the table ---- */

struct row {
    const char *path; /* of an event; NULL: a field of the event above */
    const char *name; /* LTTng's */
    enum krait_kernel_group group;
    enum krait_kernel_conversion how;
    const char *from;
};

static const struct row rows[] = {
#define KRAIT_KERNEL_EVENT(group, path, name) { path, name, KRAIT_KERNEL_##group, 0, NULL },
#define KRAIT_KERNEL_FIELD(name, how, from)   { NULL, #name, 0, KRAIT_CONVERT_##how, from },
#include "kernel/kernel_events.def"
};

static const char *const group_names[KRAIT_KERNEL_GROUPS] = { "sched", "syscalls", "irq",
                                                              "net",   "block",    "power" };

static int group_find(const char *word, size_t n)
{
    for (int i = 0; i < KRAIT_KERNEL_GROUPS; i++) {
        if (strlen(group_names[i]) == n && memcmp(group_names[i], word, n) == 0)
            return i;
    }
    return -1;
}

int krait_kernel_groups_parse(const char *text, uint32_t *groups, struct krait_err *err)
{
    uint32_t all = 0;
    for (const char *word = text; *text; word++) {
        size_t n = strcspn(word, ",");
        int group = group_find(word, n);
        if (group < 0)
            return krait_err_set(err, -EINVAL,
                                 "--kernel: '%.*s' is not one of sched, syscalls, irq, net, block, power",
                                 (int)n, word);
        all |= 1u << group;
        word += n;
        if (!*word)
            break;
    }
    *groups = all ? all : (1u << KRAIT_KERNEL_GROUPS) - 1;
    return 0;
}

/* ---- compiling ---- */

/* A class as it grows. */
struct draft {
    struct krait_kernel_field fields[64];
    struct krait_kernel_op ops[64];
    uint16_t field_count, op_count;
    uint32_t out_max;
};

/* Numbers and bytes that stand behind each other, here and there, are carried over at once. */
static void add_op(struct draft *draft, struct krait_kernel_op op)
{
    struct krait_kernel_op *last = draft->op_count ? &draft->ops[draft->op_count - 1] : NULL;
    draft->out_max += krait_kernel_op_max(&op);
    if (last && last->kind == KRAIT_KOP_COPY && op.kind == KRAIT_KOP_COPY &&
        last->offset + last->bytes == op.offset)
        last->bytes = (uint16_t)(last->bytes + op.bytes);
    else
        draft->ops[draft->op_count++] = op;
}

static bool add_field(struct krait_kernel_classes *classes, struct draft *draft, const char *name,
                      enum krait_kernel_conversion how, const struct krait_tracefmt_field *from)
{
    struct krait_kernel_op op;
    if (draft->field_count == KRAIT_ARRAY_LEN(draft->fields) || !krait_kernel_op_make(&op, how, from))
        return true;
    struct krait_kernel_field field = { krait_arena_strdup(&classes->arena, name),
                                        krait_kernel_conversion_type(how) };
    draft->fields[draft->field_count++] = field;
    add_op(draft, op);
    return field.name != NULL;
}

static bool draft_row(struct krait_kernel_classes *classes, struct draft *draft, const struct row *row,
                      const struct krait_tracefmt *format)
{
    bool ok = true;
    const struct row *end = rows + KRAIT_ARRAY_LEN(rows);
    for (row++; ok && row < end && !row->path; row++) {
        const struct krait_tracefmt_field *from = krait_tracefmt_find(format, row->from);
        ok = !from || add_field(classes, draft, row->name, row->how, from);
    }
    return ok;
}

/* What an argument that is a name points to: of filename it is __filename_val. NULL where that is not told. */
static const struct krait_tracefmt_field *told_text(const struct krait_tracefmt *format,
                                                    const struct krait_tracefmt_field *argument)
{
    char name[80];
    snprintf(name, sizeof(name), "__%s_val", argument->name);
    return krait_kernel_is_name(argument) ? krait_tracefmt_find(format, name) : NULL;
}

static bool is_argument(const struct krait_tracefmt_field *field)
{
    return strncmp(field->name, "common_", 7) != 0 && strncmp(field->name, "__", 2) != 0;
}

static bool draft_syscall(struct krait_kernel_classes *classes, struct draft *draft,
                          const struct krait_tracefmt *format)
{
    bool ok = true;
    for (uint32_t i = 0; ok && i < format->field_count; i++) {
        const struct krait_tracefmt_field *argument = &format->fields[i], *text = told_text(format, argument);
        const struct krait_tracefmt_field *from = text ? text : argument;
        if (is_argument(argument))
            ok = add_field(classes, draft, argument->name, krait_kernel_conversion_of(from), from);
    }
    return ok;
}

/* Of a probe: as wide as it was asked for. */
static enum krait_kernel_conversion how_of_value(const struct krait_tracefmt_field *field)
{
    if (field->is_data_loc)
        return KRAIT_CONVERT_STR;
    if (field->size <= 4)
        return field->is_signed ? KRAIT_CONVERT_I32 : KRAIT_CONVERT_U32;
    return field->is_signed ? KRAIT_CONVERT_I64 : KRAIT_CONVERT_U64;
}

static bool draft_probe(struct krait_kernel_classes *classes, struct draft *draft,
                        const struct krait_tracefmt *format)
{
    bool ok = true;
    for (uint32_t i = 0; ok && i < format->field_count; i++) {
        const struct krait_tracefmt_field *field = &format->fields[i];
        if (is_argument(field))
            ok = add_field(classes, draft, field->name, how_of_value(field), field);
    }
    return ok;
}

/* sys_enter_openat: syscall_entry_openat. */
static const char *syscall_name(struct krait_kernel_classes *classes, const char *name)
{
    static const char *const prefixes[][2] = { { "sys_enter_", "syscall_entry_" },
                                               { "sys_exit_", "syscall_exit_" } };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(prefixes); i++) {
        size_t n = strlen(prefixes[i][0]);
        char text[96];
        if (strncmp(name, prefixes[i][0], n) != 0)
            continue;
        snprintf(text, sizeof(text), "%s%s", prefixes[i][1], name + n);
        return krait_arena_strdup(&classes->arena, text);
    }
    return NULL;
}

static const struct row *row_find(const char *name)
{
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(rows); i++) {
        if (rows[i].path && strcmp(strchr(rows[i].path, '/') + 1, name) == 0)
            return &rows[i];
    }
    return NULL;
}

static uint32_t offset_of(const struct krait_tracefmt *format, const char *name)
{
    const struct krait_tracefmt_field *field = krait_tracefmt_find(format, name);
    return field ? field->offset : 0;
}

static void *keep(struct krait_kernel_classes *classes, const void *bytes, size_t n)
{
    void *to = krait_arena_alloc(&classes->arena, n + 1);
    return to ? memcpy(to, bytes, n) : NULL;
}

static int append(struct krait_kernel_classes *classes, const struct krait_kernel_class *class, uint32_t type)
{
    if (!KRAIT_GROW(classes->items, classes->cap, classes->count + 1) ||
        krait_map_put(&classes->types, type, classes->count))
        return -ENOMEM;
    classes->items[classes->count] = *class;
    classes->items[classes->count].id = (uint16_t)classes->count;
    classes->count++;
    return 0;
}

int krait_kernel_classes_add(struct krait_kernel_classes *classes, const struct krait_tracefmt *format,
                             const char *name)
{
    struct draft draft = { 0 };
    const struct row *row = name ? row_find(format->name) : NULL;
    bool is_probe = name && !row;
    bool ok = row        ? draft_row(classes, &draft, row, format)
              : is_probe ? draft_probe(classes, &draft, format)
                         : draft_syscall(classes, &draft, format);
    if (draft.out_max > KRAIT_KERNEL_OUT_MAX)
        return -E2BIG;
    struct krait_kernel_class class = {
        .name = name ? name : syscall_name(classes, format->name),
        .field_count = draft.field_count,
        .op_count = draft.op_count,
        .in_size = format->size,
        .out_max = draft.out_max,
        .fields = keep(classes, draft.fields, draft.field_count * sizeof(*draft.fields)),
        .ops = keep(classes, draft.ops, draft.op_count * sizeof(*draft.ops)),
        .tid_at = offset_of(format, "pid"),
        .flags_at = offset_of(format, "clone_flags"),
        .is_mark = is_probe || (row && row->group == KRAIT_KERNEL_MARKS),
    };
    if (!ok || !class.name || !class.fields || !class.ops)
        return -ENOMEM;
    return append(classes, &class, format->id);
}

enum { OWN_TYPES = 0x10000 }; /* above the kernel's numbers, which have 16 bits */

int krait_kernel_classes_declare(struct krait_kernel_classes *classes, const char *name,
                                 const struct krait_kernel_field *fields, uint16_t field_count)
{
    struct krait_kernel_class class = { .name = name, .fields = fields, .field_count = field_count };
    uint32_t id = (uint32_t)classes->count;
    return append(classes, &class, OWN_TYPES + id) ? -ENOMEM : (int)id;
}

/* ---- from tracefs ---- */

/* An event that the kernel does not have, or describes in a way that is not understood, is left out. */
static int load_event(struct krait_kernel_classes *classes, int dir, const char *path, const char *name)
{
    char file[160];
    KRAIT_AUTO_BUF text = { 0 };
    struct krait_tracefmt format;
    if (snprintf(file, sizeof(file), "events/%s/format", path) >= (int)sizeof(file))
        return 0;
    int rc = krait_tracefs_read(dir, file, &text);
    if (rc == -ENOMEM)
        return rc;
    if (rc || !text.data || krait_tracefmt_parse(&format, text.data, NULL))
        return 0;
    rc = krait_kernel_classes_add(classes, &format, name);
    return rc == -E2BIG ? 0 : rc;
}

int krait_kernel_classes_probe(struct krait_kernel_classes *classes, int dir, const char *path,
                               const char *name)
{
    const char *own = krait_arena_strdup(&classes->arena, name);
    return own ? load_event(classes, dir, path, own) : -ENOMEM;
}

static int is_syscall(const struct dirent *entry)
{
    return strncmp(entry->d_name, "sys_e", 5) == 0;
}

static int load_syscalls(struct krait_kernel_classes *classes, int dir)
{
    struct dirent **entries;
    int count = scandirat(dir, "events/syscalls", &entries, is_syscall, alphasort);
    int rc = 0;
    for (int i = 0; i < count; i++) {
        char path[300];
        snprintf(path, sizeof(path), "syscalls/%s", entries[i]->d_name);
        if (!rc)
            rc = load_event(classes, dir, path, NULL);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    return rc;
}

int krait_kernel_classes_load(struct krait_kernel_classes *classes, int dir, uint32_t groups,
                              struct krait_err *err)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < KRAIT_ARRAY_LEN(rows); i++) {
        if (rows[i].path && (groups >> rows[i].group & 1))
            rc = load_event(classes, dir, rows[i].path, rows[i].name);
    }
    if (!rc && (groups >> KRAIT_KERNEL_SYSCALLS & 1))
        rc = load_syscalls(classes, dir);
    if (rc)
        return krait_err_set(err, rc, "out of memory");
    if (!classes->count)
        return krait_err_set(err, -ENOENT,
                             "this kernel has none of the events; boot one with CONFIG_EVENT_TRACING and "
                             "CONFIG_FTRACE_SYSCALLS");
    return 0;
}

void krait_kernel_classes_drop_unseen(struct krait_kernel_classes *classes)
{
    for (size_t i = 0; i < classes->count; i++) {
        if (classes->items[i].is_mark && !classes->items[i].seen)
            classes->items[i].name = "";
    }
}

void krait_kernel_classes_done(struct krait_kernel_classes *classes)
{
    free(classes->items);
    krait_map_done(&classes->types);
    krait_map_done(&classes->tgids);
    krait_kernel_symbols_done(&classes->symbols);
    krait_arena_done(&classes->arena);
}

int krait_kernel_enable_event(int dir, const char *path, struct krait_err *err)
{
    char file[160];
    snprintf(file, sizeof(file), "events/%s/enable", path);
    int rc = krait_tracefs_write(dir, file, "1");
    if (!rc || rc == -ENOENT)
        return 0;
    return krait_err_set(err, rc, "cannot switch the kernel's event %s on: %s", path, strerror(-rc));
}

int krait_kernel_enable(int dir, uint32_t groups, struct krait_err *err)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < KRAIT_ARRAY_LEN(rows); i++) {
        if (rows[i].path && (groups >> rows[i].group & 1))
            rc = krait_kernel_enable_event(dir, rows[i].path, err);
    }
    if (!rc && (groups >> KRAIT_KERNEL_SYSCALLS & 1))
        rc = krait_kernel_enable_event(dir, "syscalls", err);
    return rc;
}

/* ---- converting ---- */

enum { TYPE_AT = 0, TID_AT = 4, COMMON_BYTES = 8 };

const struct krait_kernel_class *krait_kernel_class_of(const struct krait_kernel_classes *classes,
                                                       const uint8_t *event, size_t n)
{
    uint16_t type;
    if (n < COMMON_BYTES)
        return NULL;
    memcpy(&type, event + TYPE_AT, sizeof(type));
    const uint64_t *index = krait_map_get(&classes->types, type);
    const struct krait_kernel_class *class = index ? &classes->items[*index] : NULL;
    return class && class->in_size <= n ? class : NULL;
}

int32_t krait_kernel_tid(const uint8_t *event)
{
    int32_t tid;
    memcpy(&tid, event + TID_AT, sizeof(tid));
    return tid;
}

/* A new thread belongs to its maker's process, or begins one (clone(2), CLONE_THREAD). */
static void note_newtask(struct krait_kernel_classes *classes, const struct krait_kernel_class *class,
                         const uint8_t *event)
{
    int32_t tid;
    uint32_t flags; /* the low half holds what counts, whatever the width */
    memcpy(&tid, event + class->tid_at, sizeof(tid));
    memcpy(&flags, event + class->flags_at, sizeof(flags));
    int32_t tgid = flags & CLONE_THREAD ? krait_kernel_tgid(classes, krait_kernel_tid(event)) : tid;
    krait_map_put(&classes->tgids, (uint32_t)tid, (uint32_t)tgid);
}

size_t krait_kernel_convert(struct krait_kernel_classes *classes, const struct krait_kernel_class *class,
                            const uint8_t *event, size_t n, uint8_t *out)
{
    if (KRAIT_UNLIKELY(!class->name[0])) {
        note_newtask(classes, class, event);
        return 0;
    }
    uint8_t *to = out;
    for (uint16_t i = 0; i < class->op_count; i++)
        to = krait_kernel_op_run(&class->ops[i], classes, event, n, to);
    return (size_t)(to - out);
}
