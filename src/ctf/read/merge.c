/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams by time: a tree of losers (Knuth, TAOCP 3, 5.4.1) over the cursors. A replay costs one comparison a
 * level. Mostly it needs none: events come in bursts, and a stream goes on as long as it is before the first
 * of all others, which is known.
 */
#include "ctf/read/merge.h"

/* A stream's next event: its time, and below it the cursor's rank, by which equal times go. So a match is one
 * comparison of two numbers, and reads no cursor. */
typedef __int128 player;

enum { OUT = 1u << 31 }; /* in the rank, with the last of all times: a stream that has come to its end */

struct krait_ctf_merge {
    struct krait_ctf_reader *reader;
    struct krait_ctf_cursor *cursors; /* by rank */
    uint32_t count;
    struct krait_ctf_cursor *first; /* the winner; NULL before the start, and behind the last event */
    player second;                  /* the first of the others */
    player *losers; /* [1, count): inner nodes; behind them, while the tree is built, the streams */
    bool started;
    struct krait_err damage;
};

static inline player player_at(int64_t ns, uint32_t rank)
{
    return (player)ns * ((player)1 << 64) + rank;
}

static inline int64_t ns_of(player p)
{
    return (int64_t)(p >> 64);
}

static inline uint32_t rank_of(player p)
{
    return (uint32_t)p;
}

static inline uint32_t leaf_of(const struct krait_ctf_merge *m, player p)
{
    return m->count + (rank_of(p) & ~(uint32_t)OUT);
}

/* Returns 1, or what is no more: 0 at the end, a negative errno with cursor->err set. */
static inline int advance(struct krait_ctf_cursor *cursor)
{
    return KRAIT_UNLIKELY(cursor->err.code) ? cursor->err.code : krait_ctf_next(cursor);
}

/* What came of advancing the stream. */
static player player_of(struct krait_ctf_merge *m, uint32_t i, int rc)
{
    if (KRAIT_LIKELY(rc > 0))
        return player_at(krait_ctf_turn(&m->cursors[i]), i);
    if (rc < 0 && !m->damage.code)
        m->damage = m->cursors[i].err;
    return player_at(INT64_MAX, i | OUT);
}

/* Plays the stream that has won before up to the root. */
static player replay(struct krait_ctf_merge *m, player winner)
{
    for (uint32_t node = leaf_of(m, winner) / 2; node > 0; node /= 2) {
        player other = m->losers[node];
        m->losers[node] = KRAIT_MAX(other, winner);
        winner = KRAIT_MIN(other, winner);
    }
    return winner;
}

/* Who is first but for the winner has lost against nobody else. */
static player find_second(const struct krait_ctf_merge *m, player winner)
{
    player second = player_at(INT64_MAX, UINT32_MAX);
    for (uint32_t node = leaf_of(m, winner) / 2; node > 0; node /= 2)
        second = KRAIT_MIN(second, m->losers[node]);
    return second;
}

/* Builds the tree: the winner below each node, from the leaves up. */
static player play(struct krait_ctf_merge *m, uint32_t node)
{
    if (node >= m->count)
        return m->losers[node];
    player a = play(m, node * 2), b = play(m, node * 2 + 1);
    m->losers[node] = KRAIT_MAX(a, b);
    return KRAIT_MIN(a, b);
}

static struct krait_ctf_cursor *set_winner(struct krait_ctf_merge *m, player winner)
{
    m->second = find_second(m, winner);
    m->first = rank_of(winner) & OUT ? NULL : &m->cursors[rank_of(winner)];
    return m->first;
}

static KRAIT_COLD struct krait_ctf_cursor *start(struct krait_ctf_merge *m)
{
    if (m->started || !m->count)
        return NULL;
    m->started = true;
    for (uint32_t i = 0; i < m->count; i++)
        m->losers[m->count + i] = player_of(m, i, advance(&m->cursors[i]));
    return set_winner(m, play(m, 1));
}

/* The winner is no longer before all others. */
static KRAIT_APART struct krait_ctf_cursor *change(struct krait_ctf_merge *m, int rc)
{
    return set_winner(m, replay(m, player_of(m, (uint32_t)(m->first - m->cursors), rc)));
}

int krait_ctf_merge_new(struct krait_ctf_merge **out, struct krait_ctf_reader *reader, struct krait_err *err)
{
    struct krait_ctf_merge *m = calloc(1, sizeof(*m));
    size_t n = KRAIT_MAX(reader->stream_count, 1u);
    if (m) {
        m->reader = reader;
        m->cursors = calloc(n, sizeof(*m->cursors));
        m->losers = calloc(n * 2, sizeof(*m->losers));
    }
    if (!m || !m->cursors || !m->losers) {
        krait_ctf_merge_free(m);
        return krait_err_set(err, -ENOMEM, "out of memory");
    }
    m->damage = reader->damage;
    for (; m->count < reader->stream_count; m->count++)
        krait_ctf_cursor_init(&m->cursors[m->count], reader, reader->streams[m->count]);
    *out = m;
    return 0;
}

void krait_ctf_merge_free(struct krait_ctf_merge *m)
{
    if (!m)
        return;
    for (uint32_t i = 0; i < m->count; i++)
        krait_ctf_cursor_done(&m->cursors[i]);
    free(m->cursors);
    free(m->losers);
    free(m);
}

void krait_ctf_merge_by_turn(struct krait_ctf_merge *m)
{
    for (uint32_t i = 0; i < m->count; i++)
        m->cursors[i].by_turn = true;
}

void krait_ctf_merge_range(struct krait_ctf_merge *m, int64_t from_ns, int64_t to_ns)
{
    for (uint32_t i = 0; i < m->count; i++)
        krait_ctf_cursor_range(&m->cursors[i], from_ns, to_ns);
}

struct krait_ctf_cursor *krait_ctf_merge_next(struct krait_ctf_merge *m)
{
    struct krait_ctf_cursor *first = m->first;
    if (KRAIT_UNLIKELY(!first))
        return start(m);
    int rc = advance(first);
    return KRAIT_LIKELY(rc > 0 && krait_ctf_turn(first) < ns_of(m->second)) ? first : change(m, rc);
}

const struct krait_err *krait_ctf_merge_damage(const struct krait_ctf_merge *m)
{
    return &m->damage;
}
