/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/locals.h"

#include "remote/memory.h"
#include "remote/object.h"
#include "remote/value.h"

#include <string.h>

struct names {
    uint64_t items[KRAIT_LOCALS_MAX];
    uint32_t count;
};

/* One reading. */
struct reading {
    uint64_t values[KRAIT_LOCALS_MAX]; /* addresses */
    size_t at[KRAIT_LOCALS_MAX];       /* in the texts: the name and the value, each with a NUL behind it */
    struct krait_buf texts;
};

static void reading_done(struct reading *reading)
{
    krait_buf_done(&reading->texts);
}

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

static int read_once(const struct krait_remote *remote, const struct krait_remote_frame *frame,
                     const struct names *names, struct reading *to)
{
    krait_buf_clear(&to->texts);
    if (krait_memory_read(remote->pid, frame->addr + remote->layout.at[KRAIT_AT_FRAME_LOCALS], to->values,
                          names->count * sizeof(*to->values)))
        return -EAGAIN;
    for (uint32_t i = 0; i < names->count; i++) {
        to->at[i] = to->texts.len;
        to->values[i] &= ~KRAIT_REFERENCE_TAGS;
        krait_object_text(remote, names->items[i], KRAIT_TEXT_MAX, &to->texts);
        krait_buf_char(&to->texts, '\0');
        if (to->values[i])
            krait_value_show_variable(remote, to->values[i], &to->texts);
        krait_buf_char(&to->texts, '\0');
    }
    return to->texts.failed ? -ENOMEM : runs(remote, frame) ? 0 : -EAGAIN;
}

static struct krait_local local_of(const struct reading *reading, uint32_t i)
{
    const char *name = reading->texts.data + reading->at[i];
    return (struct krait_local){ name, name + strlen(name) + 1, false };
}

static bool is_same(const struct reading *a, const struct reading *b, uint32_t i)
{
    return a->values[i] == b->values[i] && strcmp(local_of(a, i).value, local_of(b, i).value) == 0;
}

static bool are_same(const struct reading *a, const struct reading *b, const struct names *names)
{
    uint32_t i = 0;
    while (i < names->count && is_same(a, b, i))
        i++;
    return i == names->count;
}

int krait_locals_read(const struct krait_remote *remote, const struct krait_remote_frame *frame,
                      krait_local_fn *each, void *ctx)
{
    enum { TRIES = 3 };
    static const enum krait_at lists[] = { KRAIT_AT_CODE_LOCALS, KRAIT_AT_CODE_CELLS, KRAIT_AT_CODE_FREE };
    KRAIT_CLEANUP(reading_done) struct reading first = { .at = { 0 } };
    KRAIT_CLEANUP(reading_done) struct reading second = { .at = { 0 } };
    struct reading *last = &second, *before = &first;
    struct names names = { .count = 0 };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(lists) && !frame->code->native; i++)
        add_names(remote, frame->code->addr, lists[i], &names);
    int rc = read_once(remote, frame, &names, last);
    for (int i = 0; i < TRIES && !rc && (!i || !are_same(before, last, &names)); i++) {
        struct reading *oldest = before;
        before = last;
        last = oldest;
        rc = read_once(remote, frame, &names, last);
    }
    for (uint32_t i = 0; i < names.count && !rc; i++) {
        struct krait_local local = local_of(last, i);
        local.changed = !is_same(before, last, i);
        if (*local.name && *local.value)
            each(ctx, &local);
    }
    return rc;
}
