/* SPDX-License-Identifier: Apache-2.0
 *
 * civetweb, loaded when a server begins: the other verbs work where it is not installed.
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

/* Its functions, for as long as the process lives. Returns 0, or -ENOENT with err set where the library is not there. */
int krait_http_load(const struct krait_http **out, struct krait_err *err);

#endif
