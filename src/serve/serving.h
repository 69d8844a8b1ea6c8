/* SPDX-License-Identifier: Apache-2.0
 *
 * An open trace and its index, from which the endpoints answer requests. Several threads of the server answer at the
 * same time. `one` guards the fields that the first request fills, and files that requests write.
 */
#ifndef KRAIT_SERVE_SERVING_H
#define KRAIT_SERVE_SERVING_H

#include "analysis/rules.h"
#include "analysis/track_sums.h"
#include "analysis/wall.h"
#include "serve/request.h"
#include "view/index.h"

#include <pthread.h>

struct krait_gil_holders;
struct krait_gil_states;
struct krait_listing;
struct krait_listing_cursor;

struct krait_serving {
    uint32_t refs;       /* the server and its running answers; guarded by the server's lock */
    uint32_t generation; /* number of traces that the server has served before this one */
    uint32_t changes;    /* of declared analyses by the page that its lanes have */
    bool growing;        /* the recording still runs, so the server will replace this trace */
    void (*close)(struct krait_view *view,
                  struct krait_trace *trace); /* closes both at the end; NULL: the caller owns them */
    struct krait_view *view;
    struct krait_trace *trace; /* the view's */
    struct krait_rules rules;  /* of declared lanes; guarded by the view's lock */
    bool (*takes)(void *ctx, const struct krait_trace *trace, const struct krait_track *track);
    void *takes_ctx;         /* for takes(), which selects the tracks that declared lanes read; NULL: all */
    uint64_t origin_ns;      /* times in requests and answers count from here */
    struct krait_wall *wall; /* thread states; NULL: not in the trace, or not requested yet */
    bool has_wall;           /* the thread states were requested */
    struct krait_wall_kept *wall_kept;   /* for them, while the recording grows; the server's */
    struct krait_gil_holders *gil;       /* holders of the GIL; NULL: not requested yet */
    struct krait_gil_states *gil_states; /* NULL: no waits among the kernel's states, or not requested yet */
    bool has_gil_states;                 /* they were requested */
    const char *const *paths;            /* of the trace, as it was opened; notes are stored in the first */
    size_t path_count;
    const char *analyses; /* the user's folder of declared analyses; NULL: none */
    /* Called after a request has changed declared analyses; returns how many changes that are. NULL: nobody asks. */
    uint32_t (*changed)(void *ctx);
    void *changed_ctx;
    struct krait_listing *listing; /* all events; NULL: not requested yet */
    pthread_mutex_t one; /* held while making wall, gil, gil_states or listing, and while writing notes */
};

/* Makes a serving of an open trace. The trace and the view must outlive it, unless `close` is set. Returns 0 or
 * -ENOMEM. */
int krait_serving_new(struct krait_serving **out, struct krait_view *view, struct krait_trace *trace);
void krait_serving_free(struct krait_serving *serving);

/* The range of a request in the trace's time (ns), cut at the end of the trace. */
struct krait_range krait_serving_range(const struct krait_serving *serving,
                                       const struct krait_request *request);

/* For krait_profile_options.take_thread, with a krait_request as ctx: whether the request selects the thread. */
bool krait_serving_takes(void *request, const struct krait_trace *trace, uint32_t thread);

/* Whether the request selects a track by its parameters `tracks` or `own`. */
bool krait_serving_takes_track(const struct krait_serving *serving, const struct krait_request *request,
                               uint32_t track);

/* Begins a table in an answer: an object with the names of the columns in `columns` and an array with the name in
 * `rows`. The caller fills and closes the array and closes the object. */
void krait_serving_columns(struct krait_buf *out, const char *const *names, size_t count, const char *rows);

/* Converts an entry of krait_view_each for sums. */
static inline struct krait_entry krait_serving_entry(const struct krait_tile_call *entry)
{
    return (struct krait_entry){ entry->begin_ns, entry->end_ns, entry->value, entry->func };
}

/* Makes a cursor over all events that pass the request's filter, if it has one. The caller frees the cursor. Returns 0,
 * or a negative errno with err set. Takes `one`. */
int krait_serving_events(struct krait_serving *serving, const struct krait_request *request,
                         struct krait_listing_cursor **cursor, struct krait_err *err);

/* Threads that held the GIL while others waited. The first call computes them; serving owns them. Returns 0 or
 * -ENOMEM. Takes `one`. */
int krait_serving_holders(struct krait_serving *serving, const struct krait_gil_holders **out);

/* Waits for the GIL among the kernel's states, with times since the origin; NULL if no thread waited, or nothing tells the states.
 * The first call computes them, and the states of threads, if a thread waited; serving owns them. Returns 0, or -EAGAIN or
 * -ENOMEM with err set. Takes `one`. */
int krait_serving_gil_states(struct krait_serving *serving, const struct krait_gil_states **out,
                             struct krait_err *err);

/* The states of threads; NULL if the trace has none. The first call computes them; serving owns them. The caller says when it does
 * not need them any more: meanwhile, no later trace of the recording gets any. Takes `one`. */
const struct krait_wall *krait_serving_wall(struct krait_serving *serving);
void krait_serving_wall_used(const struct krait_wall *wall);

#define KRAIT_ENDPOINT(name, type, params, doc)                                                 \
    int krait_answer_##name(struct krait_serving *serving, const struct krait_request *request, \
                            struct krait_buf *out, struct krait_err *err);
#include "serve/endpoints.def"
#undef KRAIT_ENDPOINT

#endif
