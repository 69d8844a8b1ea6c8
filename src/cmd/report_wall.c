/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait report`: what threads did with their time, where the kernel was recorded too.
 */
#include "base/fmt.h"
#include "base/json.h"
#include "cmd/ending.h"
#include "cmd/report.h"
#include "cmd/state.h"
#include "trace/gil.h"

#include <string.h>

static const struct {
    const char *key, *title, *words;
} states[] = {
#define X(name, text, title, words) { text, title, words },
    KRAIT_WALL_STATES(X)
#undef X
};

/* -- loading -- */

static void note_kernel(struct report *report)
{
    if (krait_wall_own(report->wall))
        krait_buf_str(
            &report->notes,
            "missing: what threads waited for, except page faults, and how long they were ready then "
            "(recorded without root): all of it counts as other\n");
    krait_state_note_stolen(&report->notes, &report->stolen);
    krait_ending_note_damage(&report->notes, krait_wall_damage(report->wall)->text, "");
}

/* What keeps the kernel's part from being read is said, and no failure. */
static int load_kernel(struct report *report, unsigned flags, struct krait_err *err)
{
    struct krait_err why = { 0 };
    int rc = krait_wall_new(&report->wall, report->trace, flags | KRAIT_WALL_KERNEL, &why);
    if (rc == -ENOMEM)
        return krait_err_set(err, rc, "%s", why.text);
    if (!rc) {
        if (krait_state_stolen(&report->stolen, report->trace, report->range, &report->options->select.parts))
            return krait_err_set(err, -ENOMEM, "out of memory");
        note_kernel(report);
        return 0;
    }
    krait_buf_str(&report->notes, "what threads did is not known: ");
    krait_fmt_safe(&report->notes, why.text);
    krait_buf_char(&report->notes, '\n');
    return 0;
}

/* Cycles are counted in the place of time, which is then not split. */
static int take_clock(struct report *report, struct krait_err *err)
{
    if (!report->wall || !krait_wall_clocked(report->wall))
        return krait_err_set(
            err, -ENODATA,
            "--cycles: the recording does not tell the frequency of the CPUs (power_cpu_frequency): "
            "record with --kernel where it changes; virtual machines do not say it");
    report->clock = report->wall;
    report->wall = NULL;
    krait_buf_str(&report->notes,
                  "numbers are processor cycles, not time: those that the program ran, from each CPU's "
                  "first frequency on\n");
    return 0;
}

static int load(struct report *report, struct krait_err *err)
{
    int waits = krait_gil_was_waited_for(report->trace), rc = 0;
    if (waits < 0)
        return krait_err_set(err, waits, "out of memory");
    unsigned flags = waits ? KRAIT_WALL_WAITS | KRAIT_WALL_HOLDERS : 0;
    flags |= report->trace->samples.rate ? KRAIT_WALL_SAMPLES : 0;
    if (report->trace->has_kernel)
        rc = load_kernel(report, flags, err);
    if (!rc && flags && !report->wall)
        rc = krait_wall_new(&report->wall, report->trace, flags, err);
    return rc;
}

int krait_report_wall_load(struct report *report, struct krait_err *err)
{
    int rc = load(report, err);
    return rc || !report->options->cycles ? rc : take_clock(report, err);
}

bool krait_report_wall_shows(const struct report *report, enum krait_wall_state state,
                             const uint64_t ns[KRAIT_WALL_COUNT])
{
    return ns[state] && (state != KRAIT_WALL_UNKNOWN || krait_wall_has_states(report->wall));
}

/* -- in words -- */

/* The state with most time of those that were not said; KRAIT_WALL_COUNT: all that are shown were. */
static unsigned next_state(const struct report *report, const uint64_t ns[KRAIT_WALL_COUNT],
                           const bool said[KRAIT_WALL_COUNT])
{
    unsigned most = KRAIT_WALL_COUNT;
    for (unsigned i = 0; i < KRAIT_WALL_COUNT; i++) {
        bool shown = !said[i] && krait_report_wall_shows(report, (enum krait_wall_state)i, ns);
        if (shown && (most == KRAIT_WALL_COUNT || ns[i] > ns[most]))
            most = i;
    }
    return most;
}

void krait_report_wall_words(struct report *report, const uint64_t ns[KRAIT_WALL_COUNT], uint32_t indent)
{
    char share[KRAIT_FMT_SIZE], word[2 * KRAIT_FMT_SIZE];
    bool said[KRAIT_WALL_COUNT] = { false };
    uint64_t all = 0;
    size_t column = indent;
    for (unsigned i = 0; i < KRAIT_WALL_COUNT; i++)
        all += ns[i];
    if (next_state(report, ns, said) == KRAIT_WALL_COUNT)
        return;
    krait_buf_fmt(&report->out, "%*s", (int)indent, "");
    for (unsigned state; (state = next_state(report, ns, said)) < KRAIT_WALL_COUNT; said[state] = true) {
        int n = snprintf(word, sizeof(word), "%s %s", states[state].words,
                         krait_fmt_share(share, ns[state], all));
        bool fits = !report->look.width || column + (size_t)n + strlen(", ,") <= report->look.width;
        if (column > indent)
            krait_buf_fmt(&report->out, fits ? ", " : ",\n%*s", (int)indent, "");
        column = (fits ? column + strlen(", ") : indent) + (size_t)n;
        krait_buf_str(&report->out, word);
    }
    krait_buf_char(&report->out, '\n');
}

const char *krait_report_wall_key(enum krait_wall_state state)
{
    return states[state].key;
}

const char *krait_report_wall_word(enum krait_wall_state state)
{
    return states[state].words;
}

void krait_report_wall_heading(struct report *report, const uint64_t ns[KRAIT_WALL_COUNT])
{
    if (!report->wall || !report->look.width || report->format != REPORT_TABLE)
        return;
    krait_report_wall_words(report, ns, 0);
    krait_buf_char(&report->out, '\n');
}

struct krait_column krait_report_wall_column(enum krait_wall_state state, const uint64_t ns[KRAIT_WALL_COUNT])
{
    uint32_t greater = 0;
    for (size_t i = 0; i < KRAIT_WALL_COUNT; i++)
        greater += ns[i] > ns[state];
    return (struct krait_column){ states[state].title, 0, 0, 1 + greater };
}

/* The part of the state GIL in which another thread held it. */
static uint64_t held_ns(const uint64_t ns[KRAIT_WALL_PARTS])
{
    return ns[KRAIT_WALL_GIL] - ns[KRAIT_WALL_GIL_FREE] - ns[KRAIT_WALL_GIL_UNKNOWN];
}

void krait_report_note_gil(struct report *report, const uint64_t ns[KRAIT_WALL_PARTS])
{
    char share[KRAIT_FMT_SIZE];
    uint64_t all = ns[KRAIT_WALL_GIL], free_ns = ns[KRAIT_WALL_GIL_FREE],
             unknown = ns[KRAIT_WALL_GIL_UNKNOWN];
    struct krait_buf *notes = &report->notes;
    if (!all || krait_wall_has_states(report->wall))
        return;
    krait_buf_fmt(notes, "gil: of the time in waits, another thread held the GIL for %s",
                  krait_fmt_share(share, held_ns(ns), all));
    if (free_ns)
        krait_buf_fmt(notes, "; for %s it was free, but no waiting thread was running yet",
                      krait_fmt_share(share, free_ns, all));
    if (unknown)
        krait_buf_fmt(notes, "; for %s it is not known", krait_fmt_share(share, unknown, all));
    krait_buf_char(notes, '\n');
}

void krait_report_wall_note(struct report *report, const uint64_t ns[KRAIT_WALL_PARTS])
{
    if (krait_wall_has_samples(report->wall))
        krait_buf_fmt(&report->notes, "%s\n", krait_state_of_samples);
    if (ns)
        krait_report_note_gil(report, ns);
}

/* -- for programs -- */

void krait_report_json_kernel(struct report *report)
{
    struct krait_buf *out = &report->out;
    if (report->wall && krait_wall_has_samples(report->wall))
        krait_json_key_bool(out, "sampled_states", true);
    if (!report->wall || !krait_wall_has_kernel(report->wall))
        return;
    krait_json_key_open(out, "kernel", '{');
    krait_json_key_bool(out, "own_only", krait_wall_own(report->wall));
    krait_json_key_u64(out, "lost", krait_wall_lost(report->wall));
    krait_json_lost_events(out, krait_wall_lost(report->wall));
    krait_state_json_stolen(out, &report->stolen);
    krait_json_key_text_or_null(out, "damage", krait_wall_damage(report->wall)->text);
    krait_buf_char(out, '}');
}

void krait_report_json_wall(struct krait_buf *out, const char *key, const uint64_t ns[KRAIT_WALL_COUNT])
{
    krait_json_key_open(out, key, '{');
    for (unsigned i = 0; i < KRAIT_WALL_COUNT; i++)
        krait_json_key_u64(out, states[i].key, ns[i]);
    krait_buf_char(out, '}');
}

void krait_report_json_gil(struct report *report, const uint64_t ns[KRAIT_WALL_PARTS])
{
    struct krait_buf *out = &report->out;
    if (!report->wall || krait_wall_has_samples(report->wall))
        return;
    krait_json_key_open(out, "gil", '{');
    krait_json_key_u64(out, "held_ns", held_ns(ns));
    krait_json_key_u64(out, "free_ns", ns[KRAIT_WALL_GIL_FREE]);
    krait_json_key_u64(out, "unknown_ns", ns[KRAIT_WALL_GIL_UNKNOWN]);
    krait_buf_char(out, '}');
}

/* As many cells, each named after the column's key: wall_self_ns is wall_self_gil_ns and so on. */
static void wall_heads(struct krait_buf *out, const struct krait_sheet_column *column)
{
    int stem = (int)(strlen(column->key) - strlen("_ns"));
    for (unsigned i = 0; i < KRAIT_WALL_COUNT; i++)
        krait_buf_fmt(out, "%s%.*s_%s_ns", i ? "," : "", stem, column->key, states[i].key);
}

static void wall_csv(struct krait_buf *out, const struct krait_sheet_spot *at)
{
    const uint64_t *ns = at->cell.object;
    for (unsigned i = 0; i < KRAIT_WALL_COUNT; i++)
        krait_buf_fmt(out, "%s%llu", i ? "," : "", (unsigned long long)ns[i]);
}

static void wall_json(struct krait_buf *out, const struct krait_sheet_spot *at)
{
    krait_report_json_wall(out, at->column->key, at->cell.object);
}

const struct krait_sheet_kind krait_report_kind_wall = { .heads = wall_heads,
                                                         .csv = wall_csv,
                                                         .json = wall_json };
