/* SPDX-License-Identifier: Apache-2.0
 *
 * A request: an endpoint and its parameters. Data from the network is untrusted until it was checked here.
 */
#ifndef KRAIT_SERVE_REQUEST_H
#define KRAIT_SERVE_REQUEST_H

#include "base/buf.h"
#include "base/err.h"

enum krait_param {
#define KRAIT_PARAM(name, kind, doc) KRAIT_PARAM_##name,
#include "serve/params.def"
#undef KRAIT_PARAM
    KRAIT_PARAMS,
};

enum { KRAIT_REQUEST_IDS_MAX = 4096, KRAIT_REQUEST_TEXT_MAX = 1024, KRAIT_REQUEST_BODY_MAX = 64 << 10 };

struct krait_serving;
struct krait_request;

struct krait_endpoint {
    const char *name;
    enum krait_endpoint_type {
        KRAIT_ENDPOINT_JSON,
        KRAIT_ENDPOINT_BYTES,
        KRAIT_ENDPOINT_KEPT,
        KRAIT_ENDPOINT_SENT
    } type;
    uint32_t params; /* bits by enum krait_param */
    const char *doc; /* description of the answer */
    /* Appends the answer. Returns 0, or a negative errno with err set: -EINVAL 400, -ENOENT 404, others 500. */
    int (*answer)(struct krait_serving *serving, const struct krait_request *request, struct krait_buf *out,
                  struct krait_err *err);
};

/* A range of ids. */
struct krait_id_range {
    uint32_t first, last;
};

struct krait_request {
    const struct krait_endpoint *endpoint;
    uint32_t given; /* bits by enum krait_param */
    uint64_t numbers[KRAIT_PARAMS];
    struct krait_id_range *ids; /* ids of threads or tracks, ordered by `first` */
    uint32_t id_count;
    char text[KRAIT_REQUEST_TEXT_MAX + 1],
        words[KRAIT_REQUEST_TEXT_MAX + 1]; /* values of the parameters of these names */
    const char *body;                      /* body of PUT and POST, not owned; otherwise NULL */
    size_t body_len;
};

/* Parses a request. `name` is the endpoint's, `query` the text after the question mark (NULL: none). Returns 0, or
 * with err set -ENOENT no such endpoint, -EINVAL a parameter that the endpoint does not take, or an invalid value,
 * -ENOMEM. Call krait_request_done in any case. */
int krait_request_parse(struct krait_request *request, const char *name, const char *query,
                        struct krait_err *err);
void krait_request_done(struct krait_request *request);

/* The rows of endpoints.def in their order, then NULL; and those of params.def, for the documentation. */
const struct krait_endpoint *krait_request_endpoint(uint32_t i);
const char *krait_request_param_name(enum krait_param param);
const char *krait_request_param_kind(enum krait_param param); /* "number" */
const char *krait_request_param_doc(enum krait_param param);

static inline bool krait_request_has(const struct krait_request *request, enum krait_param param)
{
    return request->given >> param & 1;
}

/* Whether the request contains an id. */
bool krait_request_has_id(const struct krait_request *request, uint32_t id);

/* The parameter's number, or the default. */
static inline uint64_t krait_request_number(const struct krait_request *request, enum krait_param param,
                                            uint64_t otherwise)
{
    return krait_request_has(request, param) ? request->numbers[param] : otherwise;
}

/* Returns -EINVAL with err set if one of these parameters is missing. */
int krait_request_needs(const struct krait_request *request, uint32_t params, struct krait_err *err);

#endif
