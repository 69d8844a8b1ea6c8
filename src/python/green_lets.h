/* SPDX-License-Identifier: Apache-2.0
 *
 * For which other greenlets one waits. gevent knows it where it waits, and not later: the call of join() is on the other
 * one, that of joinall() has a list of them, and Group.join() has its group in a local variable.
 *
 *   A   joinall([B, C]) ── switch to the hub          ┌─ switch from the hub      ── switch to the hub
 *   B                                      ends ── ───│
 *
 * A waits for the same ones until it has made another call of such a function, or is left at another place: joinall()
 * goes on each time that one of them has ended. So they are read at the call, and told at each switch.
 *
 * Those that are awaited together are a set. They are told to be in it once: the next wait of the same greenlet takes the
 * same set, where all of that set which have not ended are awaited again. So a loop that waits for the first of many tells
 * of each of them once, and not once for each wait.
 */
#ifndef KRAIT_PYTHON_GREEN_LETS_H
#define KRAIT_PYTHON_GREEN_LETS_H

#include "base/map.h"
#include "python/agent.h"

/* What is known of a greenlet that has an id. */
struct krait_green_let {
    uint32_t id;
    uint32_t parent; /* the id that was written last; 0: a main greenlet; KRAIT_NO_ID: none was */
    uint64_t set;    /* that it is in; 0: in none */
    uint32_t seen;   /* by the wait of this number, in which it may be more than once */
    /* One that has not begun, and is known because another one waits for it: that one's id, and its `waits` then. Only the
     * wait keeps it at its address. 0: it has begun. */
    uint32_t named_by, named_at;
    /* The place where it waits. NULL: it does not, or nothing is known. */
    const void *frame;
    long lasti;
    uint32_t waits; /* counted */
    uint32_t on;    /* the id of the one that it waits for; 0: none is known, or there are several */
    bool has_several;
    /* Of the set of those that it waits for, or has waited for last: its key, 0: there was none; those of them that have
     * not ended; how many sets there were. */
    uint64_t own;
    uint32_t members, sets;
};

/* Those of a thread; all zeros: none. */
struct krait_green_lets {
    struct krait_map by_id; /* to a struct krait_green_let; 0: it has ended */
    size_t most;            /* of krait_map_trim */
    uint32_t numbered;      /* waits for several */
};

/* NULL: there is none. */
struct krait_green_let *krait_green_lets_find(const struct krait_green_lets *lets, uint32_t id);
/* NULL: memory is out. */
struct krait_green_let *krait_green_lets_add(struct krait_green_lets *lets, uint32_t id);
/* It has ended. */
void krait_green_lets_end(struct krait_green_lets *lets, uint32_t id);
void krait_green_lets_done(struct krait_green_lets *lets);

/* Whether one that has not begun is still the one that was named: its waiter waits. */
bool krait_green_lets_is_named(const struct krait_green_lets *lets, uint32_t id);

/* It waits for nothing that is known. */
void krait_green_let_forget(struct krait_green_let *let);
/* None of them does. */
void krait_green_lets_forget(struct krait_green_lets *lets);
/* It waits for several: their ids, of which some may be there twice, or be 0; the ids are changed. Writes
 * which of them are new in its set. */
void krait_green_lets_await(struct krait_interp *in, struct krait_green_lets *lets,
                            struct krait_green_let *let, uint32_t *ids, size_t count);

#endif
