/* SPDX-License-Identifier: Apache-2.0
 *
 * Serves the timeline's page over HTTP, only to this machine unless `address` says otherwise.
 *
 *     http://127.0.0.1:PORT/TOKEN/             the page
 *     http://127.0.0.1:PORT/TOKEN/app.js       its files; all are embedded in the program
 *     http://127.0.0.1:PORT/TOKEN/api/NAME     endpoints.def
 *
 * Who has no token gets nothing, and neither does a page of another origin: the Host has to be this server's, an Origin
 * its own. The page may load nothing from elsewhere (Content-Security-Policy), and nothing of a trace becomes markup.
 */
#ifndef KRAIT_SERVE_SERVER_H
#define KRAIT_SERVE_SERVER_H

#include "analysis/rules.h"
#include "base/err.h"
#include "view/index.h"

/* Where the page keeps declared analyses, in the recording's folder: for krait_declared_read. */
#define KRAIT_DECLARED_BESIDE ".krait-lanes.toml"

struct krait_server; /* opaque */

struct krait_server_options {
    const char *address;      /* numeric address; NULL: 127.0.0.1 */
    uint16_t port;            /* 0: any free port */
    const char *const *paths; /* of the trace, as it was opened; they must outlive the server */
    size_t path_count;
    const char *analyses; /* the user's folder of declared analyses; NULL: none */
    /* The page has changed declared analyses: the recording is to be shown anew, with their lanes. Returns how many
     * changes that are. From any thread, soon done; or NULL. */
    uint32_t (*changed)(void *ctx);
    void *ctx;
};

/* The trace that the server shows. */
struct krait_server_trace {
    struct krait_view *view; /* of `trace` */
    struct krait_trace *trace;
    uint32_t changes; /* as many of the page's changes (options.changed) are in its lanes */
    bool growing;     /* the recording goes on: this shows its present state, and a later one will follow */
    struct krait_rules rules; /* of the lanes; taken with it, and freed when it is closed */
    /* Which tracks they are of; NULL: all. */
    bool (*takes)(void *ctx, const struct krait_trace *trace, const struct krait_track *track);
    void *takes_ctx;
    /* Closes both, from any thread, after the last answer that uses them; NULL: they outlive the server. */
    void (*close)(struct krait_view *view, struct krait_trace *trace);
};

/* Starts to answer, in threads of its own. Nothing is shown yet: requests of the endpoints wait for the first
 * krait_server_show. Returns 0, or a negative errno with err set: -EADDRINUSE and other errors of bind(2), -ENOMEM. */
int krait_server_new(struct krait_server **out, const struct krait_server_options *options,
                     struct krait_err *err);
/* Cancels the current answers, and waits until they have ended, which is soon. */
void krait_server_free(struct krait_server *server);

/* Shows the recording from now on; or shows it again, after it was opened anew. Ids of functions, texts and tracks may have
 * changed then, so the endpoint `trace` reports another generation. Returns 0, or -ENOMEM: the caller keeps `shown`. */
int krait_server_show(struct krait_server *server, const struct krait_server_trace *shown);

/* The address of the page. */
const char *krait_server_url(const struct krait_server *server);

#endif
