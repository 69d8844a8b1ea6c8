/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/request.h"

#include "base/array.h"
#include "serve/serving.h"

#include <string.h>

enum param_kind { NUMBER, IDS, TEXT };

static const struct {
    const char *name;
    enum param_kind kind;
    const char *doc;
} params[] = {
#define KRAIT_PARAM(name, kind, doc) { #name, kind, doc },
#include "serve/params.def"
#undef KRAIT_PARAM
};

#define P(name) (1u << KRAIT_PARAM_##name)
#define JSON    KRAIT_ENDPOINT_JSON
#define BYTES   KRAIT_ENDPOINT_BYTES
#define KEPT    KRAIT_ENDPOINT_KEPT
#define SENT    KRAIT_ENDPOINT_SENT
static const struct krait_endpoint endpoints[] = {
#define KRAIT_ENDPOINT(name, type, params, doc) { #name, type, params, doc, krait_answer_##name },
#include "serve/endpoints.def"
#undef KRAIT_ENDPOINT
};
#undef P
#undef JSON
#undef BYTES
#undef KEPT
#undef SENT

const struct krait_endpoint *krait_request_endpoint(uint32_t i)
{
    return i < KRAIT_ARRAY_LEN(endpoints) ? &endpoints[i] : NULL;
}

const char *krait_request_param_name(enum krait_param param)
{
    return params[param].name;
}

const char *krait_request_param_kind(enum krait_param param)
{
    static const char *const kinds[] = {
        [NUMBER] = "number", [IDS] = "numbers and ranges, as 3,7-9", [TEXT] = "text"
    };
    return kinds[params[param].kind];
}

const char *krait_request_param_doc(enum krait_param param)
{
    return params[param].doc;
}

/* A decimal without sign or blanks that ends at `end`. */
static bool parse_number(uint64_t *number, const char *text, const char *end)
{
    *number = 0;
    if (text == end)
        return false;
    for (; text < end; text++) {
        if (*text < '0' || *text > '9' || __builtin_mul_overflow(*number, 10u, number) ||
            __builtin_add_overflow(*number, (uint64_t)(*text - '0'), number))
            return false;
    }
    return true;
}

/* "7", or "7-9". */
static bool parse_id_range(struct krait_id_range *range, const char *text, const char *end)
{
    const char *dash = memchr(text, '-', (size_t)(end - text));
    uint64_t first, last;
    if (!parse_number(&first, text, dash ? dash : end) || !parse_number(&last, dash ? dash + 1 : text, end) ||
        last > UINT32_MAX || first > last)
        return false;
    *range = (struct krait_id_range){ (uint32_t)first, (uint32_t)last };
    return true;
}

static int by_first(const void *a, const void *b)
{
    const struct krait_id_range *x = a, *y = b;
    return (x->first > y->first) - (x->first < y->first);
}

/* Merges overlapping ranges, so that they can be searched. */
static void join_ids(struct krait_request *request)
{
    uint32_t count = 0;
    qsort(request->ids, request->id_count, sizeof(*request->ids), by_first);
    for (uint32_t i = 0; i < request->id_count; i++) {
        struct krait_id_range *last = count ? &request->ids[count - 1] : NULL;
        if (last && request->ids[i].first <= last->last)
            last->last = KRAIT_MAX(last->last, request->ids[i].last);
        else
            request->ids[count++] = request->ids[i];
    }
    request->id_count = count;
}

static int parse_ids(struct krait_request *request, const char *text, const char *end)
{
    uint32_t cap = request->id_count;
    while (text < end) {
        const char *comma = memchr(text, ',', (size_t)(end - text));
        const char *stop = comma ? comma : end;
        struct krait_id_range range;
        if (!parse_id_range(&range, text, stop) || request->id_count == KRAIT_REQUEST_IDS_MAX)
            return -EINVAL;
        if (!KRAIT_GROW(request->ids, cap, request->id_count + 1))
            return -ENOMEM;
        request->ids[request->id_count++] = range;
        text = comma ? comma + 1 : end;
    }
    if (request->id_count)
        join_ids(request);
    return 0;
}

bool krait_request_has_id(const struct krait_request *request, uint32_t id)
{
    uint32_t low = (uint32_t)KRAIT_PARTITION_POINT(i, request->id_count, request->ids[i].last < id);
    return low < request->id_count && request->ids[low].first <= id;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Decodes a percent-encoded text (RFC 3986, 2.1); '+' is a blank, and NUL is an error. */
static int parse_text(char to[KRAIT_REQUEST_TEXT_MAX + 1], const char *text, const char *end)
{
    size_t n = 0;
    while (text < end) {
        char c = *text++;
        if (c == '%') {
            int high = end - text >= 2 ? hex_digit(text[0]) : -1, low = high < 0 ? -1 : hex_digit(text[1]);
            if (low < 0)
                return -EINVAL;
            c = (char)(high << 4 | low);
            text += 2;
        } else if (c == '+')
            c = ' ';
        if (!c || n == KRAIT_REQUEST_TEXT_MAX)
            return -EINVAL;
        to[n++] = c;
    }
    to[n] = '\0';
    return 0;
}

/* Returns KRAIT_PARAMS if there is no parameter of that name. */
static uint32_t find_param(const char *name, size_t n)
{
    uint32_t i = 0;
    while (i < KRAIT_PARAMS && (strlen(params[i].name) != n || memcmp(params[i].name, name, n) != 0))
        i++;
    return i;
}

static int parse_param(struct krait_request *request, const char *at, const char *end, struct krait_err *err)
{
    const char *equals = memchr(at, '=', (size_t)(end - at));
    const char *value = equals ? equals + 1 : end;
    uint32_t i = find_param(at, (size_t)((equals ? equals : end) - at));
    if (i == KRAIT_PARAMS || !(request->endpoint->params >> i & 1) || request->given >> i & 1)
        return krait_err_set(err, -EINVAL, "%s: a parameter is unknown, or is given twice",
                             request->endpoint->name);
    int rc = params[i].kind == IDS ? parse_ids(request, value, end)
             : params[i].kind == TEXT
                 ? parse_text(i == KRAIT_PARAM_words ? request->words : request->text, value, end)
             : parse_number(&request->numbers[i], value, end) ? 0
                                                              : -EINVAL;
    request->given |= 1u << i;
    return rc ? krait_err_set(err, rc, "%s: invalid value of %s", request->endpoint->name, params[i].name)
              : 0;
}

int krait_request_parse(struct krait_request *request, const char *name, const char *query,
                        struct krait_err *err)
{
    *request = (struct krait_request){ 0 };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(endpoints) && !request->endpoint; i++) {
        if (strcmp(endpoints[i].name, name) == 0)
            request->endpoint = &endpoints[i];
    }
    if (!request->endpoint)
        return krait_err_set(err, -ENOENT, "there is no such endpoint");
    int rc = 0;
    for (const char *at = query ? query : ""; *at && !rc;) {
        const char *end = strchrnul(at, '&');
        rc = parse_param(request, at, end, err);
        at = *end ? end + 1 : end;
    }
    return rc;
}

void krait_request_done(struct krait_request *request)
{
    free(request->ids);
}

int krait_request_needs(const struct krait_request *request, uint32_t wanted, struct krait_err *err)
{
    for (uint32_t i = 0; i < KRAIT_PARAMS; i++) {
        if (wanted >> i & 1 && !krait_request_has(request, (enum krait_param)i))
            return krait_err_set(err, -EINVAL, "%s needs %s", request->endpoint->name, params[i].name);
    }
    return 0;
}
