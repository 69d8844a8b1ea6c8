/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams by time: a tree of losers (Knuth, TAOCP 3, 5.4.1) over the cursors. A replay costs one comparison a
 * level.
 */
#include "ctf/read/merge.h"

/* A stream's next event. What decides lies together, so that a match reads two of these and no cursor. */
struct player {
    int64_t ns;
    uint32_t rank; /* of the cursor; the lower goes first at equal times */
};

enum { OUT = 1u << 31 }; /* in `rank`, with the last of all times: a stream that has come to its end */

struct krait_ctf_merge {
    struct krait_ctf_reader *reader;
    struct krait_ctf_cursor *cursors; /* by rank */
    uint32_t count;
    struct player winner;
    struct player *losers; /* [1, count): inner nodes; behind them, while the tree is built, the streams */
    bool started;
    struct krait_err damage;
};

static inline bool goes_first(struct player a, struct player b)
{
    return (a.ns < b.ns) | ((a.ns == b.ns) & (a.rank < b.rank));
}

static struct player advance(struct krait_ctf_merge *m, uint32_t i)
{
    struct krait_ctf_cursor *cursor = &m->cursors[i];
    int rc = KRAIT_UNLIKELY(cursor->err.code) ? cursor->err.code : krait_ctf_next(cursor);
    if (KRAIT_LIKELY(rc > 0))
        return (struct player){ .ns = cursor->ns, .rank = i };
    if (rc < 0 && !m->damage.code)
        m->damage = cursor->err;
    return (struct player){ .ns = INT64_MAX, .rank = i | OUT };
}

/* Plays the stream that has won before up to the root. */
static inline struct player replay(struct krait_ctf_merge *m, uint32_t i, struct player winner)
{
    for (uint32_t node = (i + m->count) / 2; node > 0; node /= 2) {
        struct player other = m->losers[node];
        bool first = goes_first(other, winner);
        m->losers[node] = first ? winner : other;
        winner = first ? other : winner;
    }
    return winner;
}

/* Builds the tree: the winner below each node, from the leaves up. */
static struct player play(struct krait_ctf_merge *m, uint32_t node)
{
    if (node >= m->count)
        return m->losers[node];
    struct player a = play(m, node * 2), b = play(m, node * 2 + 1);
    bool first = goes_first(a, b);
    m->losers[node] = first ? b : a;
    return first ? a : b;
}

static void start(struct krait_ctf_merge *m)
{
    m->started = true;
    for (uint32_t i = 0; i < m->count; i++)
        m->losers[m->count + i] = advance(m, i);
    m->winner = m->count ? play(m, 1) : (struct player){ .rank = OUT };
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

void krait_ctf_merge_range(struct krait_ctf_merge *m, int64_t from_ns, int64_t to_ns)
{
    for (uint32_t i = 0; i < m->count; i++)
        krait_ctf_cursor_range(&m->cursors[i], from_ns, to_ns);
}

struct krait_ctf_cursor *krait_ctf_merge_next(struct krait_ctf_merge *m)
{
    uint32_t last = m->winner.rank;
    if (KRAIT_UNLIKELY(!m->started))
        start(m);
    else if (!(last & OUT))
        m->winner = replay(m, last, advance(m, last));
    return m->winner.rank & OUT ? NULL : &m->cursors[m->winner.rank];
}

const struct krait_err *krait_ctf_merge_damage(const struct krait_ctf_merge *m)
{
    return &m->damage;
}
