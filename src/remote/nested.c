/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/nested.h"

#include "base/array.h"
#include "remote/called.h"
#include "remote/object.h"
#include "remote/states.h"
#include "remote/value.h"

#include <string.h>

/* Frames that one activation of the interpreter's loop runs. */
struct run {
    uint64_t mark;
    uint32_t first, count; /* in stack_reader.second */
    struct krait_remote_state *state;
};

struct nested {
    struct krait_remote *remote;
    struct krait_stack_reader *reader;
    struct krait_remote_thread *thread;
    struct run *runs;
    uint32_t run_count, run_cap;
    uint32_t frame_count; /* in reader->second */
    uint64_t lowest;      /* of the runs; `innermost` is of that one */
    char innermost[KRAIT_INNERMOST_MAX];
    uint32_t innermost_size;
};

/* -- where the loop is -- */

static bool has_cframes(const struct krait_remote *remote)
{
    return remote->layout.at[KRAIT_AT_THREAD_CFRAME] != KRAIT_NOWHERE;
}

static bool is_in_state(const struct krait_remote_state *state, uint64_t addr)
{
    enum { THREAD_STATE_MAX = 1024 };
    return addr - state->addr < THREAD_STATE_MAX;
}

static bool has_marks(const struct krait_remote *remote)
{
    return has_cframes(remote) || (remote->layout.at[KRAIT_AT_FRAME_OWNER] != KRAIT_NOWHERE &&
                                   remote->layout.at[KRAIT_AT_FRAME_ENTRY] == KRAIT_NOWHERE);
}

/* Gives frames that C code has called the addresses of the loops that run them: each has a _PyCFrame, and the outermost of all,
 * in the thread state, is no loop's. -EAGAIN: there are more of these, or fewer. */
static int mark_by_cframes(const struct krait_remote *remote, const struct krait_remote_state *state,
                           struct krait_stack_reader *reader)
{
    const uint32_t *at = remote->layout.at;
    struct krait_memory_block block = { .pid = remote->pid };
    uint64_t place = state->addr + at[KRAIT_AT_THREAD_CFRAME], cframe = 0;
    int rc = krait_memory_read(remote->pid, place, &cframe, sizeof(cframe));
    for (uint32_t i = 0; i < reader->count && !rc; i++) {
        if (!reader->frames[i].entry)
            continue;
        reader->frames[i].mark = cframe;
        rc = is_in_state(state, cframe)
                 ? -EAGAIN
                 : krait_memory_near(&block, cframe + at[KRAIT_AT_CFRAME_BACK], &cframe);
    }
    return rc || is_in_state(state, cframe) ? rc : -EAGAIN;
}

static int copy_marked(struct krait_remote *remote, struct krait_stack_reader *reader,
                       struct krait_remote_state *state)
{
    int rc = krait_stack_copy(remote, reader, state->addr, &state->places);
    return rc || !has_cframes(remote) ? rc : mark_by_cframes(remote, state, reader);
}

/* The address of the innermost one; 0: none, or not known. */
static uint64_t innermost_mark(const struct krait_stack_reader *reader)
{
    uint32_t i = 0;
    while (i < reader->count && !reader->frames[i].entry)
        i++;
    return i < reader->count ? reader->frames[i].mark : 0;
}

/* Looks at the states from `first` on, up to `end`, with one system call. False: one of them cannot be read any more. */
static bool look_at(const struct krait_remote *remote, struct krait_remote_state *first,
                    const struct krait_remote_state *end)
{
    enum { STATES = 128, FIELDS = 3 };
    static const enum krait_at fields[FIELDS] = { KRAIT_AT_THREAD_INTERP, KRAIT_AT_THREAD_ID,
                                                  KRAIT_AT_THREAD_FRAME };
    struct krait_memory_piece pieces[STATES * FIELDS];
    uint64_t values[STATES][FIELDS];
    size_t count = 0;
    struct krait_remote_state *s = first;
    pieces[0].size = 0; /* gcc does not see that there is a state */
    for (; s != end && count < STATES; s = s->next, count++) {
        for (size_t i = 0; i < FIELDS; i++)
            pieces[count * FIELDS + i] = (struct krait_memory_piece){ s->addr + remote->layout.at[fields[i]],
                                                                      &values[count][i], sizeof(uint64_t) };
    }
    if (krait_memory_pieces(remote->pid, pieces, count * FIELDS))
        return false;
    s = first;
    for (size_t i = 0; i < count; i++, s = s->next) {
        s->is_there = values[i][0] == s->interp && values[i][1] == s->ident;
        s->has_frames = s->is_there && values[i][2] && !is_in_state(s, values[i][2]);
    }
    return s == end || look_at(remote, s, end);
}

static void look_at_all(const struct krait_remote *remote, struct krait_remote_state *first)
{
    bool all = look_at(remote, first, NULL);
    for (struct krait_remote_state *s = first; s && !all; s = s->next) {
        s->is_there = s->has_frames = false;
        look_at(remote, s, s->next);
    }
}

/* -- runs -- */

/* Whether the frames that were copied are on the C stack of the thread, the innermost nearest to its end. */
static bool are_on_stack(const struct nested *n)
{
    const struct krait_stack_reader *reader = n->reader;
    uint64_t before = 0;
    bool fits = reader->count && reader->frames[reader->count - 1].entry;
    for (uint32_t i = 0; i < reader->count && fits; i++) {
        uint64_t mark = reader->frames[i].mark;
        if (!reader->frames[i].entry)
            continue;
        fits = mark > before && krait_c_stack_of(&n->remote->c_stacks, mark) == n->thread->tid;
        before = mark;
    }
    return fits;
}

static int add_run(struct nested *n, const struct run *run)
{
    const struct krait_stack_reader *reader = n->reader;
    if (!KRAIT_GROW(n->runs, n->run_cap, n->run_count + 1))
        return -ENOMEM;
    n->runs[n->run_count++] = *run;
    if (run->mark > n->lowest)
        return 0;
    n->lowest = run->mark;
    n->innermost_size = reader->innermost_size;
    memcpy(n->innermost, reader->innermost, reader->innermost_size);
    return 0;
}

/* Keeps the frames that were copied. */
static int add_runs(struct nested *n, struct krait_remote_state *state)
{
    struct krait_stack_reader *reader = n->reader;
    if (!KRAIT_GROW(reader->second, reader->second_cap, n->frame_count + reader->count))
        return -ENOMEM;
    memcpy(reader->second + n->frame_count, reader->frames, reader->count * sizeof(*reader->frames));
    int rc = 0;
    for (uint32_t i = 0, first = 0; i < reader->count && !rc; i++) {
        if (!reader->frames[i].entry)
            continue;
        rc =
            add_run(n, &(struct run){ reader->frames[i].mark, n->frame_count + first, i + 1 - first, state });
        first = i + 1;
    }
    n->frame_count += reader->count;
    return rc;
}

/* Copies the frames of one state. `*misplaced` becomes true if they are not the thread's. */
static int add_state(struct nested *n, struct krait_remote_state *state, bool *misplaced)
{
    *misplaced |= !state->is_there;
    if (!state->has_frames)
        return 0;
    int rc = copy_marked(n->remote, n->reader, state);
    if (rc || !n->reader->count)
        return rc;
    if (are_on_stack(n))
        return add_runs(n, state);
    *misplaced = true;
    return 0;
}

static int by_mark(const void *a, const void *b)
{
    const struct run *x = a, *y = b;
    return (x->mark > y->mark) - (x->mark < y->mark);
}

/* -- together -- */

/* States in the order of their innermost runs, then those that run nothing. */
static void order_states(const struct nested *n)
{
    struct krait_remote_thread *thread = n->thread;
    struct krait_remote_state *all = thread->states, *state, **end = &thread->states;
    for (uint32_t i = 0; i < n->run_count; i++) {
        struct krait_remote_state **at = &all;
        while (*at && *at != n->runs[i].state)
            at = &(*at)->next;
        state = *at;
        if (!state) /* it has an inner run */
            continue;
        *at = state->next;
        *end = state;
        end = &state->next;
    }
    *end = all;
}

/* Makes the stack of the runs. */
static int put_together(struct nested *n)
{
    struct krait_stack_reader *reader = n->reader;
    qsort(n->runs, n->run_count, sizeof(*n->runs), by_mark);
    if (!KRAIT_GROW(reader->frames, reader->cap, n->frame_count))
        return -ENOMEM;
    reader->count = 0;
    for (uint32_t i = 0; i < n->run_count; i++) {
        memcpy(reader->frames + reader->count, reader->second + n->runs[i].first,
               n->runs[i].count * sizeof(*reader->frames));
        reader->count += n->runs[i].count;
    }
    reader->innermost_size = n->innermost_size;
    memcpy(reader->innermost, n->innermost, n->innermost_size);
    return 0;
}

static void nested_done(struct nested *n)
{
    free(n->runs);
}

static int copy_by_marks(struct nested *n, bool *misplaced)
{
    int rc = 0;
    for (struct krait_remote_state *s = n->thread->states; s && !rc; s = s->next)
        rc = add_state(n, s, misplaced);
    return rc;
}

/* -- up to 3.9 -- */

/* The number of the interpreter that the innermost frame runs code in; 0: in none. */
static uint64_t interpreter_called(struct krait_remote *remote, const struct krait_stack_reader *reader)
{
    char type[KRAIT_TYPE_NAME_MAX];
    KRAIT_AUTO_BUF text = { 0 };
    uint64_t number = 0;
    uint64_t id = krait_called_argument(remote, reader, "_xxsubinterpreters", "run_string");
    if (!id || !krait_object_type(remote, id, type))
        return 0;
    if (strcmp(type, "InterpreterID") == 0)
        return krait_memory_read(remote->pid, id + KRAIT_INTERPRETER_ID, &number, sizeof(number)) ? 0
                                                                                                  : number;
    krait_value_show(remote, id, &text);
    return text.data ? strtoull(text.data, NULL, 10) : 0;
}

/* Of the states from `first` on the newest of an interpreter, which run_string() takes; NULL: there is none. */
static struct krait_remote_state *state_of(struct krait_remote_state *first, uint64_t interpreter)
{
    struct krait_remote_state *found = NULL;
    for (struct krait_remote_state *s = first; s; s = s->next)
        found = s->interp_id == interpreter && (!found || s > found) ? s : found;
    return found;
}

static bool has_run_of(const struct nested *n, const struct krait_remote_state *state)
{
    uint32_t i = 0;
    while (i < n->run_count && n->runs[i].state != state)
        i++;
    return i < n->run_count;
}

/* Adds the frames of a state above those that there are. */
static int add_above(struct nested *n, struct krait_remote_state *state)
{
    struct krait_stack_reader *reader = n->reader;
    int rc = copy_marked(n->remote, reader, state);
    if (rc || !reader->count)
        return rc;
    if (!KRAIT_GROW(reader->second, reader->second_cap, n->frame_count + reader->count))
        return -ENOMEM;
    memcpy(reader->second + n->frame_count, reader->frames, reader->count * sizeof(*reader->frames));
    rc = add_run(n, &(struct run){ UINT32_MAX - n->run_count, n->frame_count, reader->count, state });
    n->frame_count += reader->count;
    return rc;
}

static int copy_by_calls(struct nested *n)
{
    const struct krait_remote_thread *thread = n->thread;
    struct krait_remote_state *state = thread->states;
    while (state->addr != thread->addr && state->next)
        state = state->next;
    int rc = add_above(n, state);
    for (struct krait_remote_state *s = thread->states; s && !rc && !n->run_count; s = s->next)
        rc = s->has_frames ? add_above(n, s) : 0;
    while (!rc && n->reader->count) {
        uint64_t called = interpreter_called(n->remote, n->reader);
        state = called ? state_of(thread->states, called) : NULL;
        if (!state || has_run_of(n, state) || !state->has_frames)
            break;
        rc = add_above(n, state);
    }
    return rc;
}

/* The state whose code has called a state's; NULL: none. */
static const struct krait_remote_state *caller_of(struct krait_remote *remote,
                                                  const struct krait_remote_stacks *stacks,
                                                  const struct krait_remote_state *state)
{
    KRAIT_CLEANUP(krait_stack_reader_done) struct krait_stack_reader reader = { 0 };
    const struct krait_remote_state *found = NULL;
    for (uint32_t i = 0; i < stacks->state_count && !found; i++) {
        struct krait_remote_state *s = &stacks->states[i];
        bool calls = s != state && !copy_marked(remote, &reader, s) &&
                     interpreter_called(remote, &reader) == state->interp_id;
        found = calls ? s : NULL;
    }
    return found;
}

/* -- a thread's states -- */

pid_t krait_nested_thread(struct krait_remote *remote, const struct krait_remote_stacks *stacks,
                          struct krait_remote_state *state, bool others)
{
    KRAIT_CLEANUP(krait_stack_reader_done) struct krait_stack_reader reader = { 0 };
    if (copy_marked(remote, &reader, state) || !reader.count)
        return state->tid;
    if (has_marks(remote)) {
        uint64_t mark = innermost_mark(&reader);
        pid_t tid = krait_c_stack_of(&remote->c_stacks, mark);
        return tid || !others ? tid
                              : krait_c_stacks_add(&remote->c_stacks, remote->pid, &stacks->tasks, mark);
    }
    const struct krait_remote_state *caller = state, *next = state;
    for (uint32_t i = 0; i < stacks->state_count && next && !caller->is_first; i++) {
        next = caller_of(remote, stacks, caller);
        caller = next ? next : caller;
    }
    return caller->tid;
}

int krait_nested_copy(struct krait_remote *remote, struct krait_remote_stacks *stacks,
                      struct krait_stack_reader *reader, struct krait_remote_thread *thread)
{
    KRAIT_CLEANUP(nested_done)
    struct nested n = { .remote = remote, .reader = reader, .thread = thread, .lowest = UINT64_MAX };
    look_at_all(remote, thread->states);
    int rc = has_marks(remote) ? copy_by_marks(&n, &stacks->misplaced) : copy_by_calls(&n);
    if (rc)
        return rc;
    if (!n.run_count)
        return krait_stack_copy(remote, reader, thread->addr, &thread->places);
    rc = put_together(&n);
    if (!rc)
        order_states(&n);
    return rc;
}
