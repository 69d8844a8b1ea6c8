/* SPDX-License-Identifier: Apache-2.0
 *
 * civetweb, loaded when a server starts, so that the other verbs work if it is not installed.
 */
#ifndef KRAIT_SERVE_HTTP_H
#define KRAIT_SERVE_HTTP_H

#include "base/err.h"

#include <civetweb.h>

#define KRAIT_HTTP_FUNCTIONS(X) \
    X(mg_init_library)          \
    X(mg_exit_library)          \
    X(mg_start)                 \
    X(mg_stop)                  \
    X(mg_get_server_ports)      \
    X(mg_get_request_info)      \
    X(mg_get_header)            \
    X(mg_read)                  \
    X(mg_write)

struct krait_http {
#define X(name) __typeof__(&name) name;
    KRAIT_HTTP_FUNCTIONS(X)
#undef X
};

/* Loads its functions, for the life of the process. Returns 0, or -ENOENT with err set if the library is not
 * installed. */
int krait_http_load(const struct krait_http **out, struct krait_err *err);

/* Starts to listen at `port`, in civetweb's form ("127.0.0.1:0"), and to call `answer` for requests, in threads of
 * its own. Returns 0, or a negative errno with err set: -EADDRINUSE and other errors of bind(2). krait_http_end
 * stops it. */
int krait_http_listen(struct mg_context **out, const struct krait_http *http, const char *port,
                      int (*answer)(struct mg_connection *conn), struct krait_err *err);
void krait_http_end(const struct krait_http *http, struct mg_context *civetweb);

enum { KRAIT_HTTP_TOKEN_SIZE = 33 };

/* A random token, as hexadecimal digits. Returns 0 or -EIO with err set. */
int krait_http_token(char token[KRAIT_HTTP_TOKEN_SIZE], struct krait_err *err);

#endif
