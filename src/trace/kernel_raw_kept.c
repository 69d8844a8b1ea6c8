/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/kernel_raw_kept.h"

#include "base/array.h"
#include "base/buf.h"
#include "base/map.h"
#include "trace/kernel/kernel.h"

#include <pthread.h>
#include <string.h>

/* Of the events and their texts, which may be empty. What comes after that is read by each walk. */
#define MOST_BYTES ((size_t)128 << 20)

struct event {
    uint64_t t_ns;
    int64_t tid, pid;
    size_t text;
    int32_t cpu;
    uint32_t name, host; /* in `names` */
};

struct krait_raw_kept {
    uint32_t refs;        /* atomic */
    pthread_mutex_t lock; /* one walk at a time */
    struct event *events;
    size_t count, cap;
    struct krait_buf texts;
    struct krait_strtab names;
    struct krait_strtab classes; /* of events, as far as some were met */
    bool *wanted;                /* by class */
    uint32_t wanted_cap;
    int64_t until_ns;             /* all before is kept; INT64_MIN: nothing was read */
    uint64_t print;               /* krait_kernel_events_print of that */
    int64_t runs[KRAIT_RAW_CPUS]; /* krait_raw_walk.runs, behind it */
    bool is_full;
};

static void forget(struct krait_raw_kept *kept)
{
    free(kept->events);
    free(kept->wanted);
    krait_buf_done(&kept->texts);
    krait_strtab_done(&kept->names);
    krait_strtab_done(&kept->classes);
    kept->events = NULL;
    kept->wanted = NULL;
    kept->count = kept->cap = 0;
    kept->wanted_cap = 0;
    kept->texts = (struct krait_buf){ 0 };
    kept->names = kept->classes = (struct krait_strtab){ 0 };
    kept->until_ns = INT64_MIN;
    kept->is_full = false;
    memset(kept->runs, 0xff, sizeof(kept->runs)); /* not known */
}

struct krait_raw_kept *krait_raw_kept_new(void)
{
    struct krait_raw_kept *kept = calloc(1, sizeof(*kept));
    if (!kept)
        return NULL;
    kept->refs = 1;
    forget(kept);
    pthread_mutex_init(&kept->lock, NULL);
    return kept;
}

struct krait_raw_kept *krait_raw_kept_ref(struct krait_raw_kept *kept)
{
    __atomic_fetch_add(&kept->refs, 1, __ATOMIC_RELAXED);
    return kept;
}

void krait_raw_kept_unref(struct krait_raw_kept *kept)
{
    if (!kept || __atomic_sub_fetch(&kept->refs, 1, __ATOMIC_ACQ_REL))
        return;
    forget(kept);
    pthread_mutex_destroy(&kept->lock);
    free(kept);
}

/* -- keeping -- */

/* A walk over new events. */
struct keeping {
    struct krait_raw_kept *kept;
    const struct krait_raw_walk *walk; /* whose events they are */
    uint64_t full_ns;                  /* where there was no more room; 0: there was */
    bool failed;
};

static bool wants(void *ctx, const char *name)
{
    struct keeping *keeping = ctx;
    struct krait_raw_kept *kept = keeping->kept;
    bool wanted = keeping->walk->wants(keeping->walk->ctx, name);
    uint32_t id = krait_strtab_add(&kept->classes, name, strlen(name));
    keeping->failed |= id == KRAIT_NO_ID || !KRAIT_GROW(kept->wanted, kept->wanted_cap, id + 1);
    if (!keeping->failed)
        kept->wanted[id] = wanted;
    return wanted;
}

static int keep(void *ctx, const struct krait_raw_event *event)
{
    struct keeping *keeping = ctx;
    struct krait_raw_kept *kept = keeping->kept;
    bool is_later = kept->count && kept->events[kept->count - 1].t_ns < event->t_ns;
    if (kept->texts.len + kept->count * sizeof(*kept->events) > MOST_BYTES && is_later) {
        keeping->full_ns = event->t_ns;
        return 1;
    }
    const struct event own = { .t_ns = event->t_ns,
                               .tid = event->tid,
                               .pid = event->pid,
                               .text = kept->texts.len,
                               .cpu = (int32_t)event->cpu,
                               .name = krait_strtab_add(&kept->names, event->name, strlen(event->name)),
                               .host = krait_strtab_add(&kept->names, event->host, strlen(event->host)) };
    krait_buf_add(&kept->texts, event->fields, strlen(event->fields) + 1);
    if (keeping->failed || kept->texts.failed || own.name == KRAIT_NO_ID || own.host == KRAIT_NO_ID ||
        !KRAIT_GROW(kept->events, kept->cap, kept->count + 1))
        return -ENOMEM;
    kept->events[kept->count++] = own;
    return 0;
}

/* Whether the walk wants of all classes that were met what is kept. Asks about each: some are told so of what they get. */
static bool wants_the_same(const struct krait_raw_kept *kept, const struct krait_raw_walk *walk)
{
    bool same = true;
    for (uint32_t i = 0; i < kept->classes.len; i++)
        same &= walk->wants(walk->ctx, kept->classes.texts[i]) == kept->wanted[i];
    return same;
}

/* Forgets what does not hold any more. */
static int check(struct krait_raw_kept *kept, struct krait_kernel_events *events,
                 const struct krait_raw_walk *walk)
{
    uint64_t print;
    if (kept->until_ns == INT64_MIN)
        return 0;
    int rc = krait_kernel_events_print(events, kept->until_ns, &print);
    if (!rc && (print != kept->print || !wants_the_same(kept, walk)))
        forget(kept);
    return rc;
}

/* Keeps what is new up to a time. */
static int keep_new(struct krait_raw_kept *kept, const struct krait_trace *trace,
                    struct krait_kernel_events *events, const struct krait_raw_walk *walk,
                    krait_raw_read_fn *read, int64_t until_ns, char *damage, size_t size)
{
    struct keeping keeping = { .kept = kept, .walk = walk };
    const struct krait_raw_walk fresh = { .ctx = &keeping,
                                          .range = { (uint64_t)KRAIT_MAX(kept->until_ns, 0),
                                                     (uint64_t)until_ns },
                                          .wants = wants,
                                          .take = keep,
                                          .runs = kept->runs };
    if (kept->is_full || until_ns <= kept->until_ns)
        return 0;
    int rc = read(trace, &fresh, damage, size);
    kept->is_full = keeping.full_ns;
    kept->until_ns = keeping.full_ns ? (int64_t)keeping.full_ns : until_ns;
    rc = keeping.failed ? -ENOMEM : KRAIT_MIN(rc, 0);
    return rc ? rc : krait_kernel_events_print(events, kept->until_ns, &kept->print);
}

/* -- walking -- */

static int hand_out(const struct krait_raw_kept *kept, const struct krait_raw_walk *walk)
{
    const struct event *all = kept->events;
    size_t i = KRAIT_PARTITION_POINT(at, kept->count, all[at].t_ns < walk->range.from_ns);
    int rc = 0;
    for (; i < kept->count && all[i].t_ns < walk->range.to_ns && !rc; i++) {
        const struct krait_raw_event event = { .t_ns = all[i].t_ns,
                                               .name = kept->names.texts[all[i].name],
                                               .fields = kept->texts.data + all[i].text,
                                               .host = kept->names.texts[all[i].host],
                                               .cpu = all[i].cpu,
                                               .tid = all[i].tid,
                                               .pid = all[i].pid };
        rc = walk->take(walk->ctx, &event);
    }
    return rc;
}

static bool wants_rest(void *ctx, const char *name)
{
    const struct krait_raw_walk *walk = ctx;
    return walk->wants(walk->ctx, name);
}

static int take_rest(void *ctx, const struct krait_raw_event *event)
{
    const struct krait_raw_walk *walk = ctx;
    return event->t_ns < walk->range.from_ns ? 0 : walk->take(walk->ctx, event);
}

/* What is not kept: from there on even if the range begins later, to know which threads run. */
static int walk_rest(const struct krait_raw_kept *kept, const struct krait_trace *trace,
                     const struct krait_raw_walk *walk, krait_raw_read_fn *read, char *damage, size_t size)
{
    KRAIT_AUTO_FREE int64_t *runs = malloc(sizeof(kept->runs));
    const struct krait_raw_walk rest = { .ctx = (void *)walk,
                                         .range = { (uint64_t)KRAIT_MAX(kept->until_ns, 0),
                                                    walk->range.to_ns },
                                         .wants = wants_rest,
                                         .take = take_rest,
                                         .runs = runs };
    if (!runs)
        return -ENOMEM;
    memcpy(runs, kept->runs, sizeof(kept->runs));
    return rest.range.from_ns < rest.range.to_ns ? read(trace, &rest, damage, size) : 0;
}

int krait_raw_kept_walk(struct krait_raw_kept *kept, const struct krait_trace *trace,
                        const struct krait_raw_walk *walk, krait_raw_read_fn *read, char *damage, size_t size)
{
    struct krait_kernel_events *events;
    struct krait_err ignored;
    int64_t until_ns, end_ns;
    if (!krait_kernel_settled(trace, &until_ns, &end_ns) || krait_trace_kernel(trace, &events, &ignored))
        return read(trace, walk, damage, size);
    pthread_mutex_lock(&kept->lock);
    int rc = check(kept, events, walk);
    rc = rc ? rc : keep_new(kept, trace, events, walk, read, until_ns, damage, size);
    if (rc)
        forget(kept);
    rc = rc ? rc : hand_out(kept, walk);
    rc = rc ? rc : walk_rest(kept, trace, walk, read, damage, size);
    pthread_mutex_unlock(&kept->lock);
    return rc;
}
