/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/http.h"

#include <dlfcn.h>

int krait_http_load(const struct krait_http **out, struct krait_err *err)
{
    static struct krait_http http;
    void *library = dlopen("libcivetweb.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return krait_err_set(
            err, -ENOENT,
            "the page needs civetweb, which is not here; install it (Debian: libcivetweb1), or draw "
            "a picture: --svg FILE");
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
