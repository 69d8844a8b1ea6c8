/* SPDX-License-Identifier: Apache-2.0
 *
 * The sums of krait top --exact. Its loop for short events takes calls without callees at once: it must count what the
 * code for single events counts, which gets each event in a packet of its own here.
 */
#include "live/live.h"

#include "event/payload.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { EVENTS = 4000, STREAMS = 50, CODES = 6, EVENT_BYTES = 8, LOOKS = 40, PID = 10, TID = 11 };

/* Events as a program could write them, and some as only a damaged one does. */
struct stream {
    uint8_t bytes[EVENTS * EVENT_BYTES];
    size_t ends[EVENTS]; /* of each event */
    uint64_t times[EVENTS];
    uint64_t random;
};

static uint32_t draw(struct stream *s, uint32_t below)
{
    s->random = s->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(s->random >> 33) % below;
}

/* The n-th of the events whose bits are set. */
static uint32_t nth_of(uint32_t bits, uint32_t n)
{
    for (n %= (uint32_t)__builtin_popcount(bits); n; n--)
        bits &= bits - 1;
    return (uint32_t)__builtin_ctz(bits);
}

static bool has_payload(uint32_t id)
{
    return krait_event_bit(id) & KRAIT_CALL_BEGINS || id == KRAIT_EVENT_python_unwind_of ||
           id == KRAIT_EVENT_c_raise_of;
}

static void make_stream(struct stream *s, uint64_t seed)
{
    uint64_t t = 1000;
    size_t n = 0;
    uint32_t in_c = 0; /* one bit for each open call, the innermost lowest */
    s->random = seed;
    for (int i = 0; i < EVENTS; i++) {
        bool begins = draw(s, 9) < (i % 2 ? 4 : 5), is_wrong = !draw(s, 50);
        uint32_t c = begins ? draw(s, 2) : (in_c ^ is_wrong) & 1;
        uint32_t bits = begins ? KRAIT_CALL_BEGINS : KRAIT_CALL_ENDS;
        uint32_t id = nth_of(c ? bits & KRAIT_CALL_IN_C : bits & ~(uint32_t)KRAIT_CALL_IN_C, draw(s, 8));
        uint32_t word = krait_head_pack(id, t += draw(s, 100)), code = 1 + draw(s, CODES);
        memcpy(s->bytes + n, &word, sizeof(word));
        memcpy(s->bytes + n + sizeof(word), &code, sizeof(code));
        n += has_payload(id) ? 8 : 4;
        s->ends[i] = n;
        s->times[i] = t;
        in_c = begins ? in_c << 1 | c : in_c >> 1;
    }
}

static void define(const struct krait_tap *tap)
{
    for (uint32_t id = 1; id <= CODES; id++) {
        uint8_t bytes[sizeof(struct krait_event_extended) + KRAIT_PAYLOAD_MAX];
        char name[2] = { (char)('a' + id), 0 };
        const struct krait_payload_code_define code = {
            .id = id, .module = "m", .qualname = name, .file = "/m.py", .line = id
        };
        size_t n = krait_head_extend(bytes, KRAIT_EVENT_code_define, 0);
        n += krait_put_code_define(bytes + n, &code);
        tap->defines(tap->ctx, 0, bytes, n);
    }
}

/* What was counted, as text. */
struct sums {
    char text[64 * 1024];
    size_t n;
};

static int add_row(void *ctx, const struct krait_live_row *row)
{
    struct sums *sums = ctx;
    sums->n += (size_t)snprintf(sums->text + sums->n, sizeof(sums->text) - sums->n, "%s %lu %lu %lu%s",
                                row->func->name, row->all.calls, row->all.own, row->all.total,
                                row->all_states ? "" : "\n");
    for (int i = 0; row->all_states && i < KRAIT_LIVE_STATES; i++)
        sums->n += (size_t)snprintf(sums->text + sums->n, sizeof(sums->text) - sums->n, " %u%s",
                                    row->all_states[i], i == KRAIT_LIVE_STATES - 1 ? "\n" : "");
    return 0;
}

static int add_ray(void *ctx, const struct krait_live_ray *ray)
{
    struct sums *sums = ctx;
    sums->n += (size_t)snprintf(sums->text + sums->n, sizeof(sums->text) - sums->n, "%s %.3f %lu\n",
                                ray->func->name, ray->angle, ray->ns);
    return 0;
}

static void look(struct krait_live *live, struct stream *s)
{
    for (uint32_t i = 0; i < LOOKS; i++) {
        uint64_t t = s->times[(i + 1) * (EVENTS / LOOKS) - 1] - draw(s, 3);
        krait_live_look(
            live, &(struct krait_live_look){ .pid = PID, .tid = TID, .t = t, .state = i % 4, .gil = 8 });
    }
}

enum { ALONE = 1, RAYS = 2, LOOKED_AT = 4, WAYS = 8 };

static void count(struct stream *s, unsigned how, struct sums *sums)
{
    static const struct krait_clock clock = { .freq = KRAIT_NS_PER_S };
    struct krait_live *live;
    assert_int_equal(krait_live_new(&live), 0);
    krait_live_set_clock(live, &clock);
    const struct krait_tap *tap = krait_live_tap(live);
    tap->process_begins(tap->ctx, 0, PID);
    define(tap);
    tap->thread_begins(tap->ctx, 0, 0, TID);
    if (how & RAYS)
        assert_int_equal(krait_live_watch(live, s->times[EVENTS - 1] * 2), 0);
    if (how & LOOKED_AT)
        look(live, s);
    size_t events = how & ALONE ? 1 : EVENTS, at = 0, counted = 0;
    for (size_t i = events - 1; i < EVENTS; i += events) {
        const struct krait_packet_head head = { .timestamp_begin =
                                                    i && events == 1 ? s->times[i - 1] : s->times[0] };
        counted += tap->events(tap->ctx, 0, &head, s->bytes + at, s->ends[i] - at);
        at = s->ends[i];
    }
    assert_int_equal(counted, EVENTS);
    krait_live_turn(live, s->times[EVENTS - 1]);
    sums->n = 0;
    krait_live_each(live, add_row, sums);
    krait_live_each_ray(live, s->times[EVENTS - 1], add_ray, sums);
    krait_live_free(live);
}

static void events_at_once_count_as_they_do_alone(void **state)
{
    static struct stream s;
    static struct sums at_once, alone;
    for (uint64_t seed = 0; seed < STREAMS; seed++) {
        make_stream(&s, seed);
        for (unsigned how = 0; how < WAYS; how += 2) {
            uint64_t random = s.random;
            count(&s, how, &at_once);
            s.random = random;
            count(&s, how | ALONE, &alone);
            assert_true(at_once.n > 100);
            assert_string_equal(at_once.text, alone.text);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_at_once_count_as_they_do_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
