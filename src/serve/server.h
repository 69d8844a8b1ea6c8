/* SPDX-License-Identifier: Apache-2.0
 *
 * The timeline's page over HTTP, on this machine alone unless it is told to listen elsewhere.
 *
 *     http://127.0.0.1:PORT/TOKEN/             the page
 *     http://127.0.0.1:PORT/TOKEN/app.js       what it needs; all of it is in the program
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
    const char *address;      /* numeric; NULL: 127.0.0.1 */
    uint16_t port;            /* 0: any that is free */
    const char *const *paths; /* of the trace, as it was opened; they must outlive the server */
    size_t path_count;
    const char *analyses; /* the user's folder of declared analyses; NULL: there is none */
    /* The page has changed declared analyses: the recording is to be shown anew, with their lanes. From any thread, soon
     * done; or NULL. */
    void (*changed)(void *ctx);
    void *ctx;
};

/* What is shown. */
struct krait_server_trace {
    struct krait_view *view; /* of `trace` */
    struct krait_trace *trace;
    bool growing; /* the recording goes on: what is recorded until then is shown, and more will follow */
    struct krait_rules rules; /* of the lanes; taken with it, and freed when it is closed */
    /* Which tracks they are of; NULL: all. */
    bool (*takes)(void *ctx, const struct krait_trace *trace, const struct krait_track *track);
    void *takes_ctx;
    /* Closes both, once nobody is answered from them any more, from any thread; NULL: they outlive the server. */
    void (*close)(struct krait_view *view, struct krait_trace *trace);
};

/* Begins to answer, in threads of its own. Returns 0, or a negative errno with err set:
 * -EADDRINUSE and others of binding, -ENOMEM. */
int krait_server_new(struct krait_server **out, const struct krait_server_trace *shown,
                     const struct krait_server_options *options, struct krait_err *err);
/* Cancels the answers that are under way, and waits until they have ended: soon. */
void krait_server_free(struct krait_server *server);

/* From now on shows the same recording as it was opened again. Ids of functions, texts and tracks may be others: the
 * endpoint `trace` counts them as another generation. Returns 0 or -ENOMEM: `shown` is then not taken. */
int krait_server_show(struct krait_server *server, const struct krait_server_trace *shown);

/* Where the page is. */
const char *krait_server_url(const struct krait_server *server);

#endif
