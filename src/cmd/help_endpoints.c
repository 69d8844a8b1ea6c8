/* SPDX-License-Identifier: Apache-2.0
 *
 * docs/view_api.md, from the rows of what the server of `krait view` answers: `krait help endpoints`.
 */
#include "cmd/help.h"
#include "serve/request.h"

static void parameters(const struct krait_endpoint *endpoint, FILE *to)
{
    const char *between = "";
    for (uint32_t i = 0; i < KRAIT_PARAMS; i++) {
        if (endpoint->params >> i & 1) {
            fprintf(to, "%s`%s`", between, krait_request_param_name((enum krait_param)i));
            between = " ";
        }
    }
}

static void endpoint_row(const struct krait_endpoint *endpoint, FILE *to)
{
    static const char *const types[] = { [KRAIT_ENDPOINT_JSON] = "JSON",
                                         [KRAIT_ENDPOINT_BYTES] = "bytes",
                                         [KRAIT_ENDPOINT_KEPT] = "JSON; `PUT` keeps",
                                         [KRAIT_ENDPOINT_SENT] = "JSON, to `POST`" };
    fprintf(to, "| `%s` | ", endpoint->name);
    parameters(endpoint, to);
    fprintf(to, " | %s | %s |\n", types[endpoint->type], endpoint->doc);
}

void krait_help_endpoints(FILE *to)
{
    const struct krait_endpoint *endpoint;
    fputs(
        "# What the server of `krait view` answers\n\n"
        "After this page you can ask a running `krait view` yourself, from a script:\n\n"
        "    krait view krait-app --no-open >link &\n"
        "    url=$(cat link)\n"
        "    curl \"${url}api/trace\"\n"
        "    curl \"${url}api/functions?from=1000000000&until=1500000000\"\n\n"
        "The table is made by `make reference` from the rows of `src/serve/endpoints.def` and `params.def`. These answers "
        "are made\nfor krait's own page: they may change with each version.\n\n"
        "`GET` takes the parameters of the endpoint's row and no others. Times are nanoseconds from the beginning of the "
        "recording.\nIn JSON they are texts where they may be longer than a double holds exactly. An error is an object "
        "with `error`: 400 for a\nparameter that is wrong, 404 for what is not there, 503 for what is not built yet or is "
        "cancelled. An answer is cancelled when\nits connection is closed.\n\n"
        "| endpoint | parameters | answer | |\n|---|---|---|---|\n",
        to);
    for (uint32_t i = 0; (endpoint = krait_request_endpoint(i)); i++)
        endpoint_row(endpoint, to);
    fputs("\n## Parameters\n\n| parameter | value | |\n|---|---|---|\n", to);
    for (uint32_t i = 0; i < KRAIT_PARAMS; i++)
        fprintf(to, "| `%s` | %s | %s |\n", krait_request_param_name((enum krait_param)i),
                krait_request_param_kind((enum krait_param)i), krait_request_param_doc((enum krait_param)i));
}
