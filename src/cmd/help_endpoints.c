/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait help endpoints`: writes docs/view_api.md from the tables of endpoints and parameters.
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
        "After this page you can query a running `krait view` from a script:\n\n"
        "    krait view krait-app --no-open >link &\n"
        "    url=$(cat link)\n"
        "    curl \"${url}api/trace\"\n"
        "    curl \"${url}api/functions?from=1000000000&until=1500000000\"\n\n"
        "These answers are made for krait's own page and may change with each version. `make reference` writes the\n"
        "tables from `src/serve/endpoints.def` and `params.def`.\n\n"
        "An endpoint takes the parameters of its row and refuses others. Times are nanoseconds from the beginning of the\n"
        "recording. JSON has a time as text if the number could be too large for a double. A request that fails returns an\n"
        "object with the key `error`, and status 400 (a parameter is wrong), 404 (there is no such thing) or 503 (the index\n"
        "is not complete yet, or the request was cancelled). To cancel a request, close its connection.\n\n"
        "| endpoint | parameters | answer | |\n|---|---|---|---|\n",
        to);
    for (uint32_t i = 0; (endpoint = krait_request_endpoint(i)); i++)
        endpoint_row(endpoint, to);
    fputs("\n## Parameters\n\n| parameter | value | |\n|---|---|---|\n", to);
    for (uint32_t i = 0; i < KRAIT_PARAMS; i++)
        fprintf(to, "| `%s` | %s | %s |\n", krait_request_param_name((enum krait_param)i),
                krait_request_param_kind((enum krait_param)i), krait_request_param_doc((enum krait_param)i));
}
