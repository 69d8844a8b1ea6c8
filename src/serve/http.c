/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/http.h"

#include <dlfcn.h>
#include <sys/random.h>

int krait_http_load(const struct krait_http **out, struct krait_err *err)
{
    static struct krait_http http;
    void *library = dlopen("libcivetweb.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return krait_err_set(
            err, -ENOENT,
            "the page needs civetweb, which is not installed; install it (Debian: libcivetweb1), or draw a picture: --svg FILE");
#define X(name)                                                                           \
    http.name = (__typeof__(http.name))dlsym(library, #name);                             \
    if (!http.name)                                                                       \
        return krait_err_set(err, -ENOENT,                                                \
                             "libcivetweb.so.1 has no function " #name ": not a version " \
                             "that krait knows");
    KRAIT_HTTP_FUNCTIONS(X)
#undef X
    *out = &http;
    return 0;
}

int krait_http_listen(struct mg_context **out, const struct krait_http *http, const char *port,
                      int (*answer)(struct mg_connection *conn), struct krait_err *err)
{
    /* A connection occupies a thread from begin to end, and browsers open connections that they do not use. */
    const char *const options[] = { "listening_ports",
                                    port,
                                    "num_threads",
                                    "48",
                                    "request_timeout_ms",
                                    "10000",
                                    "enable_keep_alive",
                                    "yes",
                                    "keep_alive_timeout_ms",
                                    "5000",
                                    "decode_url",
                                    "no",
                                    "enable_directory_listing",
                                    "no",
                                    "access_control_allow_origin",
                                    "",
                                    "access_control_allow_methods",
                                    "",
                                    "access_control_allow_headers",
                                    "",
                                    "max_request_size",
                                    "16384",
                                    NULL };
    const struct mg_callbacks callbacks = { .begin_request = answer };
    http->mg_init_library(0);
    errno = 0;
    *out = http->mg_start(&callbacks, NULL, (const char **)options);
    if (*out)
        return 0;
    int code = errno ? errno : EADDRINUSE;
    http->mg_exit_library();
    return krait_err_set(err, -code, "cannot listen on %s; another program may have that port", port);
}

void krait_http_end(const struct krait_http *http, struct mg_context *civetweb)
{
    http->mg_stop(civetweb);
    http->mg_exit_library();
}

int krait_http_token(char token[KRAIT_HTTP_TOKEN_SIZE], struct krait_err *err)
{
    uint8_t bytes[KRAIT_HTTP_TOKEN_SIZE / 2];
    if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
        return krait_err_set(err, -EIO, "cannot get random numbers from the kernel");
    for (size_t i = 0; i < sizeof(bytes); i++)
        snprintf(token + 2 * i, 3, "%02x", bytes[i]);
    return 0;
}
