/* SPDX-License-Identifier: Apache-2.0
 *
 * What a request asks: an endpoint and its parameters, checked. What comes from the network is hostile until it has
 * gone through here.
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
    const char *doc; /* what it answers */
    /* Appends the answer. Returns 0, or a negative errno with err set: -EINVAL 400, -ENOENT 404, others 500. */
    int (*answer)(struct krait_serving *serving, const struct krait_request *request, struct krait_buf *out,
                  struct krait_err *err);
};

/* Ids in a row. */
struct krait_id_range {
    uint32_t first, last;
};

struct krait_request {
    const struct krait_endpoint *endpoint;
    uint32_t given; /* bits by enum krait_param */
    uint64_t numbers[KRAIT_PARAMS];
    struct krait_id_range *ids; /* of threads or tracks, by first */
    uint32_t id_count;
    char text[KRAIT_REQUEST_TEXT_MAX + 1],
        words[KRAIT_REQUEST_TEXT_MAX + 1]; /* of the parameters of that name */
    const char *body;                      /* of PUT and POST, not owned; else NULL */
    size_t body_len;
};

/* `name` is the endpoint's, `query` what stands behind the question mark (NULL: nothing). Returns 0, or with err set
 * -ENOENT no such endpoint, -EINVAL a parameter that it does not take, or that is none, -ENOMEM. krait_request_done in
 * any case. */
int krait_request_parse(struct krait_request *request, const char *name, const char *query,
                        struct krait_err *err);
void krait_request_done(struct krait_request *request);

/* The rows of endpoints.def in their order, NULL behind the last; of params.def, for who describes them. */
const struct krait_endpoint *krait_request_endpoint(uint32_t i);
const char *krait_request_param_name(enum krait_param param);
const char *krait_request_param_kind(enum krait_param param); /* "number" */
const char *krait_request_param_doc(enum krait_param param);

static inline bool krait_request_has(const struct krait_request *request, enum krait_param param)
{
    return request->given >> param & 1;
}

/* Whether an id is among those that were given. */
bool krait_request_has_id(const struct krait_request *request, uint32_t id);

/* The number that was given, or another. */
static inline uint64_t krait_request_number(const struct krait_request *request, enum krait_param param,
                                            uint64_t otherwise)
{
    return krait_request_has(request, param) ? request->numbers[param] : otherwise;
}

/* -EINVAL with err set where one of these is missing. */
int krait_request_needs(const struct krait_request *request, uint32_t params, struct krait_err *err);

#endif
