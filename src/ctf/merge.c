/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams by time: a tree of losers (Knuth, TAOCP 3, 5.4.1) over the cursors. A replay costs one comparison a
 * level.
 */
#include "ctf/reader.h"

struct krait_ctf_merge {
    struct krait_ctf_reader *reader;
    struct krait_ctf_cursor *cursors; /* by rank: the lower goes first at equal times */
    bool *live;
    uint32_t count;
    uint32_t *losers; /* [1, count): inner nodes; [0]: the winner */
    bool started;
    struct krait_err damage;
};

static bool goes_first(const struct krait_ctf_merge *m, uint32_t a, uint32_t b)
{
    if (!m->live[a] || !m->live[b])
        return m->live[a] || (!m->live[b] && a < b);
    int64_t x = m->cursors[a].ns, y = m->cursors[b].ns;
    return x != y ? x < y : a < b;
}

static void advance(struct krait_ctf_merge *m, uint32_t i)
{
    struct krait_ctf_cursor *cursor = &m->cursors[i];
    int rc = cursor->err.code ? cursor->err.code : krait_ctf_next(cursor);
    m->live[i] = rc > 0;
    if (rc < 0 && !m->damage.code)
        m->damage = cursor->err;
}

/* Plays stream i up to the root. */
static void replay(struct krait_ctf_merge *m, uint32_t i)
{
    uint32_t winner = i;
    for (uint32_t node = (i + m->count) / 2; node > 0; node /= 2) {
        uint32_t other = m->losers[node];
        if (other != KRAIT_NO_ID && goes_first(m, other, winner)) {
            m->losers[node] = winner;
            winner = other;
        }
    }
    m->losers[0] = winner;
}

/* Builds the tree: the winner below each node, from the leaves up. */
static uint32_t play(struct krait_ctf_merge *m, uint32_t node)
{
    if (node >= m->count)
        return node - m->count;
    uint32_t a = play(m, node * 2), b = play(m, node * 2 + 1);
    bool first = goes_first(m, a, b);
    m->losers[node] = first ? b : a;
    return first ? a : b;
}

static void start(struct krait_ctf_merge *m)
{
    m->started = true;
    for (uint32_t i = 0; i < m->count; i++)
        advance(m, i);
    m->losers[0] = m->count > 1 ? play(m, 1) : 0;
}

int krait_ctf_merge_new(struct krait_ctf_merge **out, struct krait_ctf_reader *reader, struct krait_err *err)
{
    struct krait_ctf_merge *m = calloc(1, sizeof(*m));
    size_t n = KRAIT_MAX(reader->stream_count, 1u);
    if (m) {
        m->reader = reader;
        m->cursors = calloc(n, sizeof(*m->cursors));
        m->live = calloc(n, sizeof(*m->live));
        m->losers = calloc(n, sizeof(*m->losers));
    }
    if (!m || !m->cursors || !m->live || !m->losers) {
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
    free(m->live);
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
    if (!m->count)
        return NULL;
    if (!m->started) {
        start(m);
    } else {
        uint32_t last = m->losers[0];
        advance(m, last);
        if (m->count > 1)
            replay(m, last);
    }
    uint32_t winner = m->losers[0];
    return m->live[winner] ? &m->cursors[winner] : NULL;
}

const struct krait_err *krait_ctf_merge_damage(const struct krait_ctf_merge *m)
{
    return &m->damage;
}
