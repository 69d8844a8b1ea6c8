/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/sums.h"

#include "base/array.h"
#include "base/buf.h"

#include <string.h>

static void table_done(struct krait_sums_table *table)
{
    free(table->rows);
    free(table->places);
    krait_strtab_done(&table->place_keys);
    krait_map_done(&table->by_code);
    krait_map_done(&table->by_place);
}

void krait_sums_done(struct krait_sums *sums)
{
    table_done(&sums->functions);
    table_done(&sums->lines);
    free(sums->threads);
    krait_strtab_done(&sums->thread_keys);
    krait_arena_done(&sums->arena);
}

/* -- places -- */

/* Functions that are defined again are one place. */
static uint32_t add_place(struct krait_sums *sums, struct krait_sums_table *table,
                          const struct krait_remote_code *code, int32_t line)
{
    KRAIT_AUTO_BUF key = { 0 };
    krait_remote_put_name(&key, code);
    size_t name = key.len;
    krait_buf_fmt(&key, "\n%s\n%d", code->file, line);
    uint32_t id = key.failed ? KRAIT_NO_ID : krait_strtab_add(&table->place_keys, key.data, key.len);
    if (id == KRAIT_NO_ID || id < table->place_count)
        return id;
    struct krait_sums_place fresh = { .name = krait_arena_strndup(&sums->arena, key.data, name),
                                      .file = krait_arena_strdup(&sums->arena, code->file),
                                      .line = line };
    if (!fresh.name || !fresh.file || !KRAIT_GROW(table->places, table->place_cap, id + 1))
        return KRAIT_NO_ID;
    table->places[id] = fresh;
    table->place_count = id + 1;
    return id;
}

/* Code objects lie at multiples of 16 bytes, so that few of them and their lines share a key by chance: none, as long as
 * lines are below 2^20 and addresses below 2^48. */
static uint64_t code_key(const struct krait_remote_code *code, int32_t line)
{
    return ((uint64_t)(uintptr_t)code >> 4) << 20 ^ (uint32_t)line;
}

static uint32_t place_of(struct krait_sums *sums, struct krait_sums_table *table,
                         const struct krait_remote_code *code, int32_t line)
{
    const uint64_t *known = krait_map_get(&table->by_code, code_key(code, line));
    if (known)
        return (uint32_t)*known;
    uint32_t place = add_place(sums, table, code, line);
    if (place != KRAIT_NO_ID && krait_map_put(&table->by_code, code_key(code, line), place))
        return KRAIT_NO_ID;
    return place;
}

static struct krait_sums_row *row_of(struct krait_sums_table *table, uint32_t place, uint32_t thread)
{
    uint64_t key = (uint64_t)place << 32 | thread;
    const uint64_t *known = krait_map_get(&table->by_place, key);
    if (known)
        return &table->rows[*known];
    if (!KRAIT_GROW(table->rows, table->cap, table->count + 1) ||
        krait_map_put(&table->by_place, key, table->count))
        return NULL;
    table->rows[table->count] = (struct krait_sums_row){ .place = place, .thread = thread };
    return &table->rows[table->count++];
}

static uint32_t thread_of(struct krait_sums *sums, pid_t pid, const struct krait_remote_stacks *stacks,
                          const struct krait_remote_thread *thread)
{
    char key[64];
    int n =
        snprintf(key, sizeof(key), "%d %llx %d", pid, (unsigned long long)thread->ident, (int)thread->tid);
    const struct krait_os_task *task = krait_tasks_find(&stacks->tasks, thread->tid);
    uint32_t id = krait_strtab_add(&sums->thread_keys, key, (size_t)n);
    if (id == KRAIT_NO_ID || !KRAIT_GROW(sums->threads, sums->thread_cap, id + 1))
        return KRAIT_NO_ID;
    if (id == sums->thread_count)
        sums->threads[sums->thread_count++] =
            (struct krait_sums_thread){ .pid = pid, .ident = thread->ident };
    sums->threads[id].tid = thread->tid ? thread->tid : sums->threads[id].tid;
    if (task)
        memcpy(sums->threads[id].name, task->name, sizeof(sums->threads[id].name));
    return id;
}

/* -- counting -- */

static int count(struct krait_sums *sums, struct krait_sums_table *table,
                 const struct krait_remote_code *code, int32_t line, uint32_t thread, uint8_t state,
                 bool innermost)
{
    uint32_t place = place_of(sums, table, code, line);
    struct krait_sums_row *row = place == KRAIT_NO_ID ? NULL : row_of(table, place, thread);
    if (!row)
        return -ENOMEM;
    bool again = row->stamp == sums->stamp;
    row->stamp = sums->stamp;
    row->recent.total += !again;
    row->recent.states[state] += !again;
    row->recent.own += innermost;
    return 0;
}

/* `called`: the C function that the innermost one has called; NULL: none. Its time is that of the line that called it. */
static int add_stack(struct krait_sums *sums, const struct krait_remote_frame *frames, uint32_t n,
                     const struct krait_remote_code *called, uint32_t thread, uint8_t state)
{
    sums->stamp++;
    if (called && count(sums, &sums->functions, called, 0, thread, state, true))
        return -ENOMEM;
    for (uint32_t i = 0; i < n; i++) {
        const struct krait_remote_code *code = frames[i].code;
        if (count(sums, &sums->functions, code, code->first_line, thread, state, i == 0 && !called) ||
            count(sums, &sums->lines, code, frames[i].line, thread, state, i == 0))
            return -ENOMEM;
    }
    return 0;
}

int krait_sums_add(struct krait_sums *sums, pid_t pid, const struct krait_remote_stacks *stacks,
                   const uint8_t *states)
{
    bool gil = false;
    for (uint32_t i = 0; i < stacks->thread_count; i++) {
        const struct krait_remote_thread *thread = &stacks->threads[i];
        uint32_t id = thread->count ? thread_of(sums, pid, stacks, thread) : 0;
        sums->now.failures += thread->failed;
        sums->now.stacks += thread->count != 0;
        gil |= thread->holds_gil;
        if (id == KRAIT_NO_ID || add_stack(sums, stacks->frames + thread->first, thread->count,
                                           thread->count ? thread->called : NULL, id, states ? states[i] : 0))
            return -ENOMEM;
    }
    sums->now.gil += gil;
    sums->now.gc += stacks->collects;
    return 0;
}

static void add_round(struct krait_sums_rounds *to, const struct krait_sums_rounds *round)
{
    to->rounds += round->rounds;
    to->ns += round->ns;
    to->stacks += round->stacks;
    to->gil += round->gil;
    to->gc += round->gc;
    to->failures += round->failures;
}

void krait_sums_end_round(struct krait_sums *sums, uint64_t ns)
{
    sums->now.rounds = 1;
    sums->now.ns = ns;
    add_round(&sums->recent, &sums->now);
    sums->now = (struct krait_sums_rounds){ 0 };
}

static void add_sum(struct krait_sum *to, const struct krait_sum *more)
{
    to->own += more->own;
    to->total += more->total;
    for (size_t i = 0; i < KRAIT_SUMS_STATES; i++)
        to->states[i] += more->states[i];
}

static void turn_table(struct krait_sums_table *table)
{
    for (uint32_t i = 0; i < table->count; i++) {
        add_sum(&table->rows[i].all, &table->rows[i].recent);
        table->rows[i].last = table->rows[i].recent;
        table->rows[i].recent = (struct krait_sum){ 0 };
    }
}

void krait_sums_turn(struct krait_sums *sums)
{
    turn_table(&sums->functions);
    turn_table(&sums->lines);
    add_round(&sums->all, &sums->recent);
    sums->last = sums->recent;
    sums->recent = (struct krait_sums_rounds){ 0 };
}

static void reset_table(struct krait_sums_table *table)
{
    for (uint32_t i = 0; i < table->count; i++)
        table->rows[i].all = table->rows[i].recent = table->rows[i].last = (struct krait_sum){ 0 };
}

void krait_sums_reset(struct krait_sums *sums)
{
    reset_table(&sums->functions);
    reset_table(&sums->lines);
    sums->all = sums->recent = sums->last = (struct krait_sums_rounds){ 0 };
}

/* -- ends -- */

enum { ENDED_MOST = 64 }; /* threads that have ended and have rows of their own */

/* Rows of threads, by their new numbers; those that become one are added up. */
static int renumber_rows(struct krait_sums_table *table, const uint32_t *numbers)
{
    struct krait_sums_table old = *table;
    int rc = 0;
    table->rows = NULL;
    table->count = table->cap = 0;
    table->by_place = (struct krait_map){ 0 };
    for (uint32_t i = 0; i < old.count && !rc; i++) {
        const struct krait_sums_row *from = &old.rows[i];
        struct krait_sums_row *to = row_of(table, from->place, numbers[from->thread]);
        rc = to ? 0 : -ENOMEM;
        if (rc)
            break;
        add_sum(&to->all, &from->all);
        add_sum(&to->recent, &from->recent);
        add_sum(&to->last, &from->last);
        to->stamp = 0;
    }
    free(old.rows);
    krait_map_done(&old.by_place);
    return rc;
}

/* Threads that run keep their order; the ended ones are the last. */
static int renumber_threads(struct krait_sums *sums, uint32_t *numbers)
{
    struct krait_sums old = *sums;
    int rc = 0;
    sums->threads = NULL;
    sums->thread_count = sums->thread_cap = 0;
    sums->thread_keys = (struct krait_strtab){ 0 };
    for (uint32_t i = 0; i < old.thread_count && !rc; i++) {
        bool ended = old.threads[i].has_ended;
        const char *key = ended ? "ended" : old.thread_keys.texts[i];
        uint32_t id = krait_strtab_add(&sums->thread_keys, key, strlen(key));
        if (id == KRAIT_NO_ID || !KRAIT_GROW(sums->threads, sums->thread_cap, id + 1)) {
            rc = -ENOMEM;
            break;
        }
        if (id == sums->thread_count)
            sums->threads[sums->thread_count++] = ended ? (struct krait_sums_thread){ 0 } : old.threads[i];
        numbers[i] = id;
    }
    free(old.threads);
    krait_strtab_done(&old.thread_keys);
    return rc;
}

static int join_ended(struct krait_sums *sums)
{
    KRAIT_AUTO_FREE uint32_t *numbers = calloc((size_t)sums->thread_count + 1, sizeof(*numbers));
    int rc = numbers ? renumber_threads(sums, numbers) : -ENOMEM;
    rc = rc ? rc : renumber_rows(&sums->functions, numbers);
    return rc ? rc : renumber_rows(&sums->lines, numbers);
}

void krait_sums_forget_codes(struct krait_sums *sums)
{
    krait_map_done(&sums->functions.by_code);
    krait_map_done(&sums->lines.by_code);
}

int krait_sums_end_process(struct krait_sums *sums, pid_t pid)
{
    uint32_t ended = 0;
    krait_sums_forget_codes(sums);
    for (uint32_t i = 0; i < sums->thread_count; i++) {
        sums->threads[i].has_ended |= sums->threads[i].pid == pid;
        ended += sums->threads[i].has_ended;
    }
    return ended > ENDED_MOST ? join_ended(sums) : 0;
}
