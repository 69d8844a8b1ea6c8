/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/gil_holders.h"

#include "base/array.h"
#include "trace/import.h"

struct wait {
    uint64_t begin_ns, end_ns;
    uint32_t tid, process;
};

/* From ns on, up to the process's next one. */
struct turn {
    uint64_t ns;
    uint32_t holder; /* or who takes it next, where it is free; 0: not known */
    uint8_t state;   /* enum krait_gil_state */
};

/* A wait for another GIL than the main interpreter's. */
struct elsewhere {
    uint64_t begin_ns, end_ns;
    uint32_t tid, of;
};

/* The turns of a GIL, up to those of the next one. */
struct gil {
    uint32_t of; /* the interpreter that has it for itself; 0: the main interpreter's */
    uint32_t first_turn;
};

struct krait_gil_holders {
    struct wait *waits;          /* by thread and time */
    struct elsewhere *elsewhere; /* the same */
    struct turn *turns;          /* by process, GIL and time */
    struct gil *gils;            /* by process and `of`; and one more, where the last turns end */
    uint32_t wait_count, wait_cap, turn_count, turn_cap;
    uint32_t elsewhere_count, elsewhere_cap, gil_count, gil_cap;
    uint32_t *first_gil; /* of each process, and the end of the last */
};

/* In the order in which they happen at one time. */
enum moment_kind { DROP, TAKE, WAIT };

struct moment {
    uint64_t ns, end_ns; /* of a wait; else 0 */
    uint32_t who;        /* has it: drops it, takes it, is waited for; 0: not known */
    uint32_t of;         /* the GIL */
    enum moment_kind kind;
};

struct moments {
    struct moment *items;
    uint32_t count, cap;
};

/* -- what happened in a process -- */

static int add_moment(struct moments *moments, struct moment moment)
{
    if (!KRAIT_GROW(moments->items, moments->cap, moments->count + 1))
        return -ENOMEM;
    moments->items[moments->count++] = moment;
    return 0;
}

static int add_wait(struct krait_gil_holders *h, struct wait wait)
{
    if (!KRAIT_GROW(h->waits, h->wait_cap, h->wait_count + 1))
        return -ENOMEM;
    h->waits[h->wait_count++] = wait;
    return 0;
}

static int add_elsewhere(struct krait_gil_holders *h, struct elsewhere wait)
{
    if (!KRAIT_GROW(h->elsewhere, h->elsewhere_cap, h->elsewhere_count + 1))
        return -ENOMEM;
    h->elsewhere[h->elsewhere_count++] = wait;
    return 0;
}

static int add_thread(struct krait_gil_holders *h, struct moments *moments, const struct krait_trace *trace,
                      uint32_t thread)
{
    KRAIT_CLEANUP(krait_gil_waits_done) struct krait_gil_waits waits = { 0 };
    KRAIT_CLEANUP(krait_gil_turns_done) struct krait_gil_turns turns = { 0 };
    const struct krait_thread *t = &trace->threads[thread];
    int rc = krait_gil_turns_read(&waits, &turns, trace, thread);
    for (uint32_t i = 0; !rc && i < waits.count; i++) {
        const struct krait_gil_wait *w = &waits.items[i];
        rc = w->of ? add_elsewhere(h, (struct elsewhere){ w->begin_ns, w->end_ns, t->tid, w->of }) : 0;
        if (rc || !w->taken)
            continue;
        rc = add_wait(h, (struct wait){ w->begin_ns, w->end_ns, t->tid, t->process }) ||
             add_moment(
                 moments,
                 (struct moment){
                     .ns = w->begin_ns, .end_ns = w->end_ns, .who = w->holder, .of = w->of, .kind = WAIT });
    }
    for (uint32_t i = 0; !rc && i < turns.count; i++) {
        const struct krait_gil_turn *turn = &turns.items[i];
        rc = add_moment(
            moments, (struct moment){
                         .ns = turn->ns, .who = t->tid, .of = turn->of, .kind = turn->taken ? TAKE : DROP });
    }
    return rc ? -ENOMEM : 0;
}

/* -- who had it -- */

struct replay {
    struct krait_gil_holders *out;
    uint32_t first;     /* of the GIL's turns */
    uint32_t holder;    /* 0: nobody, or not known */
    bool dropped;       /* nobody, as the last turn says */
    uint64_t waited_ns; /* up to here somebody waits, so that all is told */
    uint64_t blind_ns;  /* up to here it is not to be said */
};

static struct turn *last_turn(const struct replay *r)
{
    return r->out->turn_count > r->first ? &r->out->turns[r->out->turn_count - 1] : NULL;
}

static int set_turn(struct replay *r, struct turn turn)
{
    struct krait_gil_holders *h = r->out;
    const struct turn *last = last_turn(r);
    if (last && last->ns >= turn.ns) {
        turn.ns = last->ns;
        h->turn_count--;
        last = last_turn(r);
    }
    if (last && last->holder == turn.holder && last->state == turn.state)
        return 0;
    if (!KRAIT_GROW(h->turns, h->turn_cap, h->turn_count + 1))
        return -ENOMEM;
    h->turns[h->turn_count++] = turn;
    return 0;
}

/* It was dropped, and this is what is known next: a thread takes it, or one has it that took it unseen. */
static void end_dropped(struct replay *r, const struct moment *m)
{
    struct turn *last = r->dropped ? last_turn(r) : NULL;
    if (last && m->who) {
        last->holder = m->who; /* who takes it is waited for since it was dropped */
        last->state = m->kind == TAKE ? KRAIT_GIL_FREE : KRAIT_GIL_UNKNOWN;
    }
}

/* From where it is not known any more. */
static int forget(struct replay *r, uint64_t ns)
{
    r->holder = 0;
    r->dropped = false;
    return set_turn(r, (struct turn){ .ns = ns });
}

static int happens(struct replay *r, const struct moment *m)
{
    bool contradicts = r->holder && m->who && m->who != r->holder;
    int rc = 0;
    if (r->dropped && m->ns <= r->waited_ns)
        end_dropped(r, m);
    if (m->ns >= r->waited_ns)
        rc = forget(r, r->waited_ns);
    else if (contradicts) {
        r->blind_ns = r->waited_ns;
        rc = forget(r, m->ns);
    }
    r->waited_ns = KRAIT_MAX(r->waited_ns, m->end_ns);
    if (rc || m->ns < r->blind_ns || (m->kind == WAIT && !m->who))
        return rc;
    r->dropped = m->kind == DROP;
    r->holder = r->dropped ? 0 : m->who;
    return set_turn(r, (struct turn){ m->ns, r->holder, r->dropped ? KRAIT_GIL_FREE : KRAIT_GIL_HELD });
}

static int by_gil_and_time(const void *a, const void *b)
{
    const struct moment *x = a, *y = b;
    if (x->of != y->of)
        return x->of < y->of ? -1 : 1;
    if (x->ns != y->ns)
        return x->ns < y->ns ? -1 : 1;
    return (x->kind > y->kind) - (x->kind < y->kind);
}

static int start_gil(struct krait_gil_holders *h, uint32_t of)
{
    if (!KRAIT_GROW(h->gils, h->gil_cap, h->gil_count + 1))
        return -ENOMEM;
    h->gils[h->gil_count++] = (struct gil){ of, h->turn_count };
    return 0;
}

/* What happens to the GIL of the i-th moment; moves to the first of the next one. */
static int add_gil(struct krait_gil_holders *h, const struct moments *moments, uint32_t *i)
{
    struct replay replay = { .out = h, .first = h->turn_count };
    uint32_t of = moments->items[*i].of;
    int rc = start_gil(h, of);
    for (; !rc && *i < moments->count && moments->items[*i].of == of; ++*i)
        rc = happens(&replay, &moments->items[*i]);
    return rc ? rc : forget(&replay, replay.waited_ns);
}

static int add_process(struct krait_gil_holders *h, const struct krait_trace *trace, uint32_t first,
                       uint32_t end)
{
    struct moments moments = { 0 };
    int rc = 0;
    for (uint32_t i = first; !rc && end - first > 1 && i < end; i++)
        rc = add_thread(h, &moments, trace, i);
    if (!rc && moments.count)
        qsort(moments.items, moments.count, sizeof(*moments.items), by_gil_and_time);
    for (uint32_t i = 0; !rc && i < moments.count;)
        rc = add_gil(h, &moments, &i);
    free(moments.items);
    return rc;
}

/* -- all of it -- */

static int by_thread(const void *a, const void *b)
{
    const struct wait *x = a, *y = b;
    if (x->tid != y->tid)
        return x->tid < y->tid ? -1 : 1;
    return (x->begin_ns > y->begin_ns) - (x->begin_ns < y->begin_ns);
}

static int elsewhere_by_thread(const void *a, const void *b)
{
    const struct elsewhere *x = a, *y = b;
    if (x->tid != y->tid)
        return x->tid < y->tid ? -1 : 1;
    return (x->begin_ns > y->begin_ns) - (x->begin_ns < y->begin_ns);
}

static int add_all(struct krait_gil_holders *h, const struct krait_trace *trace)
{
    uint32_t thread = 0;
    int rc = 0;
    h->first_gil = calloc((size_t)trace->process_count + 1, sizeof(*h->first_gil));
    if (!h->first_gil)
        return -ENOMEM;
    for (uint32_t process = 0; !rc && process < trace->process_count; process++) {
        uint32_t first = thread;
        while (thread < trace->thread_count && trace->threads[thread].process == process)
            thread++;
        rc = add_process(h, trace, first, thread);
        h->first_gil[process + 1] = h->gil_count;
    }
    rc = rc ? rc : start_gil(h, 0);
    if (!rc && h->elsewhere_count)
        qsort(h->elsewhere, h->elsewhere_count, sizeof(*h->elsewhere), elsewhere_by_thread);
    if (!rc && h->wait_count)
        qsort(h->waits, h->wait_count, sizeof(*h->waits), by_thread);
    return rc;
}

int krait_gil_holders_new(struct krait_gil_holders **out, const struct krait_trace *trace)
{
    struct krait_gil_holders *h = calloc(1, sizeof(*h));
    int rc = h ? add_all(h, trace) : -ENOMEM;
    if (rc)
        krait_gil_holders_free(h);
    else
        *out = h;
    return rc;
}

void krait_gil_holders_free(struct krait_gil_holders *h)
{
    if (!h)
        return;
    free(h->waits);
    free(h->turns);
    free(h->elsewhere);
    free(h->gils);
    free(h->first_gil);
    free(h);
}

/* -- asked -- */

/* How many waits begin up to a thread's time. */
static uint32_t waits_up_to(const struct krait_gil_holders *h, uint32_t tid, uint64_t t_ns)
{
    const struct wait *w = h->waits;
    return (uint32_t)KRAIT_PARTITION_POINT(i, h->wait_count,
                                           w[i].tid < tid || (w[i].tid == tid && w[i].begin_ns <= t_ns));
}

/* Which GIL a thread waits for at a time. */
static uint32_t waited_for(const struct krait_gil_holders *h, uint32_t tid, uint64_t t_ns)
{
    const struct elsewhere *w = h->elsewhere;
    size_t n = KRAIT_PARTITION_POINT(i, h->elsewhere_count,
                                     w[i].tid < tid || (w[i].tid == tid && w[i].begin_ns <= t_ns));
    return n && w[n - 1].tid == tid && t_ns < w[n - 1].end_ns ? w[n - 1].of : 0;
}

struct turns {
    uint32_t first, end;
};

/* Those of the GIL that a thread of the process waits for at a time. */
static struct turns turns_of(const struct krait_gil_holders *h, uint32_t process, uint32_t tid, uint64_t t_ns)
{
    uint32_t of = waited_for(h, tid, t_ns), first = h->first_gil[process];
    uint32_t count = h->first_gil[process + 1] - first;
    uint32_t at = first + (uint32_t)KRAIT_PARTITION_POINT(i, count, h->gils[first + i].of < of);
    bool has = at < first + count && h->gils[at].of == of;
    return has ? (struct turns){ h->gils[at].first_turn, h->gils[at + 1].first_turn } : (struct turns){ 0 };
}

/* The first that is later than a time, or their end. */
static uint32_t turn_after(const struct krait_gil_holders *h, struct turns turns, uint64_t t_ns)
{
    uint32_t first = turns.first, count = turns.end - first;
    return first + (uint32_t)KRAIT_PARTITION_POINT(i, count, h->turns[first + i].ns <= t_ns);
}

struct krait_gil_hold krait_gil_hold_at(const struct krait_gil_holders *h, uint32_t tid, uint64_t t_ns)
{
    uint32_t next = waits_up_to(h, tid, t_ns);
    const struct wait *w = next ? &h->waits[next - 1] : NULL;
    if (!w || w->tid != tid || w->end_ns <= t_ns) {
        bool again = next < h->wait_count && h->waits[next].tid == tid;
        return (struct krait_gil_hold){ .until_ns = again ? h->waits[next].begin_ns : UINT64_MAX };
    }
    const struct turns turns = turns_of(h, w->process, tid, t_ns);
    uint32_t turn = turn_after(h, turns, t_ns), end = turns.end;
    uint32_t holder = turn > turns.first ? h->turns[turn - 1].holder : 0;
    while (turn < end &&
           h->turns[turn].holder == holder) /* who takes it is waited for since it was dropped */
        turn++;
    bool is_last = turn == end;
    return (struct krait_gil_hold){ .until_ns = is_last ? w->end_ns : KRAIT_MIN(w->end_ns, h->turns[turn].ns),
                                    .wait_end_ns = w->end_ns,
                                    .holder = holder == tid ? 0 : holder };
}

/* A process with one recorded thread has no turns: that wait says who had it, whom nobody saw drop it. */
bool krait_gil_part_next(const struct krait_gil_holders *h, const struct krait_thread *thread,
                         const struct krait_gil_wait *wait, struct krait_gil_part *part)
{
    uint64_t at = part->end_ns ? part->end_ns : wait->begin_ns;
    if (at >= wait->end_ns)
        return false;
    const struct turns turns = turns_of(h, thread->process, thread->tid, at);
    uint32_t first = turns.first, end = turns.end, turn = turn_after(h, turns, at);
    const struct turn *now = turn > first ? &h->turns[turn - 1] : NULL;
    *part = (struct krait_gil_part){ at, wait->end_ns, now ? now->holder : 0,
                                     now ? now->state : KRAIT_GIL_UNKNOWN };
    if (turn < end)
        part->end_ns = KRAIT_MIN(wait->end_ns, h->turns[turn].ns);
    if (first == end && wait->holder)
        *part = (struct krait_gil_part){ at, wait->end_ns, wait->holder, KRAIT_GIL_HELD };
    else if (part->state == KRAIT_GIL_HELD && part->holder == thread->tid) /* contradicts its wait */
        *part = (struct krait_gil_part){ at, part->end_ns, 0, KRAIT_GIL_UNKNOWN };
    return true;
}

void krait_gil_split_add(struct krait_gil_split *split, const struct krait_gil_holders *h,
                         const struct krait_thread *thread, const struct krait_gil_wait *wait)
{
    struct krait_gil_part part = { 0 };
    while (krait_gil_part_next(h, thread, wait, &part))
        split->ns[part.state] += part.end_ns - part.begin_ns;
}
