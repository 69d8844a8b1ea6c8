/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/sums.h"

#include "base/array.h"
#include "base/buf.h"

void krait_sums_done(struct krait_sums *sums)
{
    free(sums->rows);
    krait_strtab_done(&sums->keys);
    krait_map_done(&sums->by_code);
    krait_arena_done(&sums->arena);
}

/* The row of a function that was not met with this code object; functions that are defined again share one. */
static int new_row(struct krait_sums *sums, const struct krait_remote_code *code, uint32_t *row)
{
    KRAIT_AUTO_BUF key = { 0 };
    krait_buf_fmt(&key, "%s\n%s\n%d", code->name, code->file, code->first_line);
    uint32_t before = sums->keys.len;
    *row = key.failed ? KRAIT_NO_ID : krait_strtab_add(&sums->keys, key.data, key.len);
    if (*row == KRAIT_NO_ID || krait_map_put(&sums->by_code, (uintptr_t)code, *row))
        return -ENOMEM;
    if (*row < before)
        return 0;
    struct krait_sums_row fresh = { .name = krait_arena_strdup(&sums->arena, code->name),
                                    .file = krait_arena_strdup(&sums->arena, code->file),
                                    .line = code->first_line };
    if (!fresh.name || !fresh.file || !KRAIT_GROW(sums->rows, sums->cap, *row + 1))
        return -ENOMEM;
    sums->rows[*row] = fresh;
    sums->count = *row + 1;
    return 0;
}

static int add_stack(struct krait_sums *sums, const struct krait_remote_frame *frames, uint32_t count)
{
    sums->stamp++;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t *known = krait_map_get(&sums->by_code, (uintptr_t)frames[i].code);
        uint32_t row = known ? (uint32_t)*known : 0;
        if (!known && new_row(sums, frames[i].code, &row))
            return -ENOMEM;
        struct krait_sums_row *to = &sums->rows[row];
        bool again = to->stamp == sums->stamp;
        to->stamp = sums->stamp;
        to->all.total += !again;
        to->recent.total += !again;
        to->all.own += i == 0;
        to->recent.own += i == 0;
    }
    return 0;
}

static void add_round(struct krait_sums_rounds *to, const struct krait_sums_rounds *round)
{
    to->rounds += round->rounds;
    to->ns += round->ns;
    to->threads += round->threads;
    to->gil += round->gil;
    to->failures += round->failures;
}

int krait_sums_add(struct krait_sums *sums, const struct krait_remote_stacks *stacks, uint64_t ns)
{
    struct krait_sums_rounds round = { .rounds = 1, .ns = ns };
    for (uint32_t i = 0; i < stacks->thread_count; i++) {
        const struct krait_remote_thread *thread = &stacks->threads[i];
        round.failures += thread->failed;
        round.threads += thread->count != 0;
        round.gil |= thread->holds_gil;
        if (add_stack(sums, stacks->frames + thread->first, thread->count))
            return -ENOMEM;
    }
    add_round(&sums->all, &round);
    add_round(&sums->recent, &round);
    return 0;
}

void krait_sums_turn(struct krait_sums *sums)
{
    for (uint32_t i = 0; i < sums->count; i++) {
        sums->rows[i].last = sums->rows[i].recent;
        sums->rows[i].recent = (struct krait_sum){ 0 };
    }
    sums->last = sums->recent;
    sums->recent = (struct krait_sums_rounds){ 0 };
}

void krait_sums_reset(struct krait_sums *sums)
{
    for (uint32_t i = 0; i < sums->count; i++)
        sums->rows[i].all = sums->rows[i].recent = sums->rows[i].last = (struct krait_sum){ 0 };
    sums->all = sums->recent = sums->last = (struct krait_sums_rounds){ 0 };
}
