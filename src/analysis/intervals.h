/* SPDX-License-Identifier: Apache-2.0
 *
 * Intervals between messages: from one that matches a rule's start to one that matches its stop. The message of an
 * instant is its first field named message, msg, text or buf; without such a field, its name with all fields. A rule may
 * also take the calls of a function.
 *
 *   thread 1   Start a ──── Stop a        Start b ─ Stop b
 *   thread 2         Start c ───────────────────────────── Stop c
 *
 * Or a rule has states: each message that matches names a state, which lasts until the next message that matches.
 *
 *   thread 1   to idle ── to busy ─────── to idle ── to done
 *
 * Or a rule is a signal: each message that matches has a number, which holds until the next.
 *
 * trigger.h describes which events match.
 *
 * Without a key, a start and a stop belong together if they are in one thread. If a stream has instants of several
 * threads, their field vtid, tid or thread distinguishes them. With a key, a start and a stop belong together if the key
 * has the same text, in any thread, process or recording.
 */
#ifndef KRAIT_ANALYSIS_INTERVALS_H
#define KRAIT_ANALYSIS_INTERVALS_H

#include "analysis/match.h"
#include "analysis/trigger.h"
#include "base/buf.h"
#include "trace/track.h"

/* Which of the open starts a stop ends. */
enum krait_pairing {
    KRAIT_PAIR_ORDER,  /* the oldest */
    KRAIT_PAIR_NESTED, /* the newest; those before it stay open */
    KRAIT_PAIR_LATEST, /* the newest; those before it never stop */
};

enum krait_rule_kind {
    KRAIT_RULE_PAIRS,  /* triggers of starts and of stops; if they are the same, from each to the next */
    KRAIT_RULE_CALLS,  /* of a function */
    KRAIT_RULE_SPANS,  /* and other slices */
    KRAIT_RULE_STATES, /* triggers of states */
    KRAIT_RULE_SIGNAL, /* triggers of values */
};

struct krait_interval_rule {
    enum krait_rule_kind kind;
    enum krait_pairing pairing;
    const char *name;
    const char *given[2]; /* its patterns as given, two for a pair; only printed */
    struct krait_trigger *triggers;
    uint32_t trigger_count;
    struct krait_match *match;       /* which functions, or which spans */
    const char *declared_at;         /* FILE:LINE of `match`, if a file declares it; or an option */
    const char *key;                 /* of spans: a field; of calls: an argument */
    const char *key_at;              /* what a message about it begins with; NULL: it may be missing */
    bool is_of_steps;                /* of calls: each step of a coroutine, not the whole call */
    bool is_outermost;               /* of calls: only those that begin in no other call of `match` */
    bool by_key;                     /* a row for each key, or for each value that the triggers' `by` names */
    struct krait_provider *provider; /* of states, in place of triggers: provider.h */
    uint32_t told_by; /* of segments and calls: 1 + the index of the rule whose provider tells of them */
    const char *const *fields; /* of segments: the names of all that they may have, then NULL; NULL: none */
    bool is_of_many;           /* its file is for many traces, of which some rightly lack the key */
    bool is_hidden;            /* only for other rules that are within it */
    bool is_undrawn;           /* calls: the lane of their stacks draws them */
    uint32_t within; /* 1 + the index of the rule whose intervals contain those of this one; 0: none */
    const char *within_name; /* the name of that rule, if a file declares it; only printed */
    uint32_t line;           /* where the file has that name */
    bool is_unmet;           /* it names what the trace does not have, which was told: rules_unmet.h */
};

struct krait_interval_options {
    const struct krait_interval_rule *rules;
    uint32_t rule_count;
    struct krait_range range;
    bool (*takes)(void *ctx, const struct krait_trace *trace, const struct krait_track *track);
    void *ctx;
    bool wants_stays; /* krait_intervals.stays */
    /* Gets a line for each rule with declared_at that krait leaves out because no function has its name, or that found no
     * span or call, and for each with key_at whose spans or calls do not have that key. NULL: the first is an error, the
     * others are not told. */
    struct krait_buf *notes;
    const char *scope; /* in these lines, of a part of the trace: " in that time"; NULL: of all */
};

struct krait_interval {
    uint64_t begin_ns, end_ns;
    uint32_t row, key;               /* KRAIT_NO_ID: it has no key */
    uint32_t begin_track, end_track; /* indices; KRAIT_NO_ID: none */
};

/* A summary of all intervals of a rule, or of a rule and key. Without intervals, times are 0. */
struct krait_interval_row {
    uint32_t rule, key; /* KRAIT_NO_ID: all keys; for a rule of states, the state */
    uint64_t count, total_ns, min_ns, max_ns, median_ns, p90_ns, p99_ns;
    double mean_ns, deviation_ns; /* of a sample: by count - 1 */
    uint64_t starts, stops;       /* messages that match */
    uint64_t no_stop, no_start;   /* starts without a stop, stops without a start */
    uint64_t no_key;              /* messages without the key */
};

/* How often a state followed another. */
struct krait_transition {
    uint32_t rule, from, to; /* keys */
    uint64_t count;
};

/* A state of one thread or key, for lanes; includes the last one, which no other state follows. */
struct krait_stay {
    uint64_t begin_ns, end_ns; /* UINT64_MAX: it has no end */
    uint32_t rule, state;      /* state: a key */
    uint32_t place;            /* whose: krait_stay_place */
};

/* One number of a signal. */
struct krait_sample {
    uint64_t t_ns;
    double value;
    uint32_t row, key; /* KRAIT_NO_ID: it has no key */
    uint32_t track;    /* KRAIT_NO_ID: none */
};

/* A summary of all numbers of a signal, or of a signal and key. Without numbers, all are 0. */
struct krait_signal_row {
    uint32_t rule, key; /* KRAIT_NO_ID: all keys */
    uint64_t count, begin_ns, end_ns;
    double total, min, max, mean, median, p90, p99, last;
    double deviation;           /* of a sample: by count - 1 */
    double per_s;               /* numbers a second, from the first to the last */
    uint64_t no_number, no_key; /* matching messages without a number, without a key */
};

struct krait_intervals {
    struct krait_interval *items; /* ordered by row, then by begin */
    size_t count, cap;
    struct krait_interval_row *rows;
    uint32_t row_count, row_cap;
    struct krait_transition *transitions; /* of rules of states; ordered by their first time */
    uint32_t transition_count, transition_cap;
    struct krait_sample *samples; /* ordered by row, then by time */
    size_t sample_count, sample_cap;
    struct krait_signal_row *signals;
    uint32_t signal_count, signal_cap;
    struct krait_strtab keys;   /* and states */
    struct krait_strtab spans;  /* the names of all spans, where a rule asks for spans */
    struct krait_strtab places; /* all that have states and are no threads: keys, streams, attributes */
    struct krait_stay *stays;   /* ordered by their ends; those of one place also by time */
    size_t stay_count, stay_cap;
    uint64_t messages, given_up; /* messages read; searches that took too many steps */
    bool of_kernel;              /* events of the kernel may be among those that rules looked for, or were */
};

/* Whether each of its triggers has a key: only then do keys tell apart what they fire for. */
bool krait_interval_rule_is_keyed(const struct krait_interval_rule *rule);

/* The kinds of tracks that rules need, for krait_tracks_find_kinds. */
unsigned krait_intervals_kinds(const struct krait_interval_rule *rules, uint32_t count);

/* Finds the intervals of all rules in a trace whose tracks of these kinds were found. `damage` (size bytes) keeps the first
 * damage. Returns 0, -ENOMEM, or -ENOENT: a rule's function is not in the trace. */
int krait_intervals_find(struct krait_intervals *intervals, const struct krait_trace *trace,
                         const struct krait_interval_options *options, char *damage, size_t size,
                         struct krait_err *err);
void krait_intervals_done(struct krait_intervals *intervals);

/* What a state belongs to: returns a thread's index, and sets *text to NULL; or returns KRAIT_NO_ID, and sets *text to the
 * key, stream or attribute. */
uint32_t krait_stay_place(const struct krait_intervals *intervals, const struct krait_stay *stay,
                          const char **text);

/* The value that a segment has in a field; NULL: it has none. */
const char *krait_interval_field(const struct krait_intervals *intervals,
                                 const struct krait_interval *interval, const char *field);

/* Appends a line that says how many searches krait gave up, and what to do; nothing if there were none. */
void krait_intervals_note_given_up(struct krait_buf *notes, const struct krait_intervals *intervals);

/* Whether any event matched a rule. */
bool krait_intervals_has_found(const struct krait_intervals *intervals, uint32_t rule);

/* Appends that no event matches a rule, or its stop or start: "no event matches the stop of 'order'", without an end of line. `end`
 * is "", "the start of " or "the stop of ". */
void krait_intervals_note_no_event(struct krait_buf *notes, const struct krait_interval_rule *rule,
                                   const char *end);

/* The name of a span that is most similar, or what is similar already; NULL: none is. */
const char *krait_intervals_near_span(const struct krait_intervals *intervals, struct krait_suggest *suggest);

/* The quantile `share` of durations, by nearest rank; it reorders `ns`. */
uint64_t krait_interval_quantile(uint64_t *ns, size_t count, double share);

#endif
