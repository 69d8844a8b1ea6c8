/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/server.h"

#include "base/json.h"
#include "serve/http.h"
#include "serve/running.h"
#include "serve/serving.h"
#include "serve/sockets.h"

#include <arpa/inet.h>
#include <string.h>

enum {
    NAME_MAX_LEN = 64, /* of an endpoint or file */
    HOST_MAX_LEN = 128,
    TOKEN_LEN = KRAIT_HTTP_TOKEN_SIZE - 1,
};

#define STOPPING "the server is stopping"

struct krait_server {
    const struct krait_http *http;
    struct mg_context *civetweb;
    pthread_mutex_t lock;
    pthread_cond_t changed;            /* there is a trace to show, or the server is stopping */
    struct krait_serving *shown;       /* under the lock: the trace for new answers; NULL: none yet */
    struct krait_wall_kept *wall_kept; /* for the states of threads of a recording that goes on */
    struct krait_server_options options;
    bool ends; /* atomic: the server is stopping */
    char token[KRAIT_HTTP_TOKEN_SIZE];
    char address[INET6_ADDRSTRLEN];
    uint16_t port;
    char url[160];
};

#define ASSET(name)                       \
    extern const char krait_web_##name[]; \
    extern const size_t krait_web_##name##_len
ASSET(html);
ASSET(js);
ASSET(css);
#undef ASSET

static const struct asset {
    const char *path, *type;
    const char *data;
    const size_t *len;
} assets[] = {
    { "", "text/html; charset=utf-8", krait_web_html, &krait_web_html_len },
    { "app.js", "text/javascript; charset=utf-8", krait_web_js, &krait_web_js_len },
    { "app.css", "text/css; charset=utf-8", krait_web_css, &krait_web_css_len },
};

/* civetweb passes only the connection to its callbacks, so a process has one server. */
static struct krait_server *the_server;

/* ---- answers ---- */

/* The page may load nothing from elsewhere, nor be framed or sniffed; no other site learns the token in the address. */
static const char security_headers[] =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n"
    "Cross-Origin-Opener-Policy: same-origin\r\n"
    "Cache-Control: no-store\r\n";

static const char *reason_of(int status)
{
    static const struct {
        int status;
        const char *reason;
    } reasons[] = { { 200, "OK" },
                    { 400, "Bad Request" },
                    { 403, "Forbidden" },
                    { 404, "Not Found" },
                    { 405, "Method Not Allowed" },
                    { 411, "Length Required" },
                    { 413, "Content Too Large" },
                    { 503, "Service Unavailable" },
                    { 500, "Internal Server Error" } };
    size_t i = 0;
    while (reasons[i].status != status && i + 1 < KRAIT_ARRAY_LEN(reasons))
        i++;
    return reasons[i].reason;
}

/* Both return the status. */
static int send_answer(struct mg_connection *conn, int status, const char *type, const void *body, size_t n)
{
    const struct krait_server *server = the_server;
    KRAIT_AUTO_BUF head = { 0 };
    krait_buf_fmt(&head, "HTTP/1.1 %d %s\r\n%sContent-Type: %s\r\nContent-Length: %zu\r\n\r\n", status,
                  reason_of(status), security_headers, type, n);
    bool has_body = n && strcmp(server->http->mg_get_request_info(conn)->request_method, "HEAD") != 0;
    if (head.failed || server->http->mg_write(conn, head.data, head.len) <= 0)
        return status; /* the client is gone, or memory is out */
    if (has_body)
        server->http->mg_write(conn, body, n);
    return status;
}

static void put_error(struct krait_buf *out, const char *text)
{
    krait_buf_char(out, '{');
    krait_json_key_text(out, "error", text);
    krait_buf_str(out, "}\n");
}

static int send_error(struct mg_connection *conn, int status, const char *text)
{
    KRAIT_AUTO_BUF body = { 0 };
    put_error(&body, text);
    return send_answer(conn, status, "application/json", body.data, body.failed ? 0 : body.len);
}

/* Reads the body of a PUT or POST, which has to give its length. Returns 0 or the status to answer with. */
static int read_body(const struct krait_server *server, struct mg_connection *conn, struct krait_buf *body)
{
    char part[8192];
    long long n = server->http->mg_get_request_info(conn)->content_length;
    if (n < 0 || n > KRAIT_REQUEST_BODY_MAX)
        return n < 0 ? 411 : 413;
    while ((long long)body->len < n) {
        size_t wanted = KRAIT_MIN(sizeof(part), (size_t)n - body->len);
        int got = server->http->mg_read(conn, part, wanted);
        if (got <= 0)
            return 400;
        krait_buf_add(body, part, (size_t)got);
    }
    return body->failed ? 500 : 0;
}

static int status_of(int rc)
{
    return !rc                                 ? 200
           : rc == -ENOENT                     ? 404
           : rc == -EINVAL                     ? 400
           : rc == -EAGAIN || rc == -ECANCELED ? 503
                                               : 500;
}

/* Waits for the first one; NULL: the server is stopping. */
static struct krait_serving *take_shown(struct krait_server *server)
{
    pthread_mutex_lock(&server->lock);
    while (!server->shown && !__atomic_load_n(&server->ends, __ATOMIC_RELAXED))
        pthread_cond_wait(&server->changed, &server->lock);
    struct krait_serving *shown = server->shown;
    if (shown)
        shown->refs++;
    pthread_mutex_unlock(&server->lock);
    return shown;
}

static void give_back(struct krait_server *server, struct krait_serving *serving)
{
    pthread_mutex_lock(&server->lock);
    bool is_last = serving && --serving->refs == 0;
    pthread_mutex_unlock(&server->lock);
    if (is_last)
        krait_serving_free(serving);
}

static int run_answer(struct krait_server *server, const struct mg_request_info *info,
                      struct krait_request *request, struct krait_buf *out, struct krait_err *err)
{
    struct krait_serving *serving = take_shown(server);
    if (!serving)
        return krait_err_set(err, -EAGAIN, STOPPING);
    struct krait_running running = { .name = request->endpoint->name,
                                     .total = serving->trace->bytes,
                                     .server = server->port,
                                     .client = (uint16_t)info->remote_port };
    krait_running_begin(&running);
    int rc = request->endpoint->answer(serving, request, out, err);
    krait_running_end(&running);
    give_back(server, serving);
    return rc == -ECANCELED ? krait_err_set(err, rc, "the request was cancelled") : rc;
}

/* Puts the answer, or the error, into `out`. */
static int make_answer(struct krait_server *server, const struct mg_request_info *info,
                       struct krait_request *request, struct krait_buf *out)
{
    struct krait_err err = { 0 };
    int rc = run_answer(server, info, request, out, &err);
    if (!rc && out->failed)
        rc = krait_err_set(&err, -ENOMEM, "out of memory");
    if (rc) {
        out->len = 0;
        put_error(out, err.text);
    }
    return rc;
}

/* The type of endpoint that takes a method with a body; other endpoints take only GET. */
static const struct sending {
    const char *method;
    enum krait_endpoint_type type;
} sendings[] = { { "PUT", KRAIT_ENDPOINT_KEPT }, { "POST", KRAIT_ENDPOINT_SENT } };

/* NULL: the method has no body. */
static const struct sending *sending_of(const char *method)
{
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(sendings); i++) {
        if (strcmp(sendings[i].method, method) == 0)
            return &sendings[i];
    }
    return NULL;
}

static int answer_api(struct krait_server *server, struct mg_connection *conn, const char *name,
                      const struct sending *sending)
{
    KRAIT_CLEANUP(krait_request_done) struct krait_request request = { 0 };
    KRAIT_AUTO_BUF out = { 0 };
    KRAIT_AUTO_BUF body = { 0 };
    struct krait_err err = { 0 };
    const struct mg_request_info *info = server->http->mg_get_request_info(conn);
    int rc = krait_request_parse(&request, name, info->query_string, &err);
    if (rc)
        return send_error(conn, status_of(rc), err.text);
    if (sending && request.endpoint->type != sending->type)
        return send_error(conn, 405, "the endpoint does not take this method");
    int status = sending ? read_body(server, conn, &body) : 0;
    if (status)
        return send_error(conn, status, "the body has no length, is too long, or is incomplete");
    request.body = sending ? body.len ? body.data : "" : NULL;
    request.body_len = body.len;
    rc = make_answer(server, info, &request, &out);
    bool is_bytes = !rc && request.endpoint->type == KRAIT_ENDPOINT_BYTES;
    return send_answer(conn, status_of(rc), is_bytes ? "application/octet-stream" : "application/json",
                       out.data, out.failed ? 0 : out.len);
}

/* ---- who may ask ---- */

/* Compares in constant time, so that the time does not tell how much of the token is right. */
static bool is_token(const char *text, const char *token)
{
    unsigned char differs = 0;
    for (size_t i = 0; i < TOKEN_LEN; i++)
        differs |= (unsigned char)(text[i] ^ token[i]);
    return !differs;
}

/* "127.0.0.1:4711", "localhost:4711", "[::1]:4711". A name that somebody's DNS has pointed here is none of these. */
static bool is_own_host(const struct krait_server *server, const char *host)
{
    char own[HOST_MAX_LEN];
    const char *format = strchr(server->address, ':') ? "[%s]:%u" : "%s:%u";
    snprintf(own, sizeof(own), format, server->address, server->port);
    if (strcmp(host, own) == 0)
        return true;
    snprintf(own, sizeof(own), "localhost:%u", server->port);
    if (strcmp(host, own) == 0)
        return true;
    /* A server that listens everywhere accepts any numeric address, but no names. */
    bool everywhere = strcmp(server->address, "0.0.0.0") == 0 || strcmp(server->address, "::") == 0;
    const char *colon = strrchr(host, ':');
    struct in_addr four;
    struct in6_addr six;
    if (!everywhere || !colon || (size_t)(colon - host) >= sizeof(own))
        return false;
    bool bracketed = *host == '[' && colon > host + 2 && colon[-1] == ']';
    snprintf(own, sizeof(own), "%.*s", (int)(colon - host) - 2 * bracketed, host + bracketed);
    return inet_pton(AF_INET, own, &four) == 1 || (bracketed && inet_pton(AF_INET6, own, &six) == 1);
}

static bool may_ask(const struct krait_server *server, const struct mg_connection *conn)
{
    const char *host = server->http->mg_get_header(conn, "Host"),
               *origin = server->http->mg_get_header(conn, "Origin");
    const char *site = server->http->mg_get_header(conn, "Sec-Fetch-Site");
    if (!host || !is_own_host(server, host))
        return false;
    if (origin && (strncmp(origin, "http://", 7) != 0 || strcmp(origin + 7, host) != 0))
        return false;
    return !site || strcmp(site, "same-origin") == 0 || strcmp(site, "none") == 0;
}

/* The path after "/TOKEN/"; NULL if the token is wrong. */
static const char *behind_token(const struct krait_server *server, const char *path)
{
    bool right = *path == '/' && strlen(path) > TOKEN_LEN + 1 && is_token(path + 1, server->token);
    return right && path[TOKEN_LEN + 1] == '/' ? path + TOKEN_LEN + 2 : NULL;
}

static int on_request(struct mg_connection *conn)
{
    struct krait_server *server = the_server;
    const struct mg_request_info *info = server->http->mg_get_request_info(conn);
    /* The address is not decoded: krait's own addresses need no decoding. */
    const char *path = info->request_uri ? behind_token(server, info->request_uri) : NULL;
    if (!path || !may_ask(server, conn)) {
        return send_answer(conn, 403, "text/plain", "", 0);
    }
    if (__atomic_load_n(&server->ends, __ATOMIC_RELAXED))
        return send_error(conn, 503, STOPPING);
    bool is_api = strncmp(path, "api/", 4) == 0;
    const struct sending *sending = sending_of(info->request_method);
    bool is_get = strcmp(info->request_method, "GET") == 0 || strcmp(info->request_method, "HEAD") == 0;
    if (!is_get && !(sending && is_api))
        return send_error(conn, 405, "the server takes GET, and for some endpoints PUT or POST");
    if (is_api)
        return answer_api(server, conn, path + 4, sending);
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(assets); i++) {
        if (strcmp(assets[i].path, path) == 0) {
            return send_answer(conn, 200, assets[i].type, assets[i].data, *assets[i].len);
        }
    }
    return send_error(conn, 404, "there is no such page");
}

/* ---- beginning and end ---- */

/* "[::1]:0": civetweb's form of a listening port. */
static int make_address(struct krait_server *server, const struct krait_server_options *options, char *port,
                        size_t size, struct krait_err *err)
{
    const char *address = options->address ? options->address : "127.0.0.1";
    uint8_t bytes[sizeof(struct in6_addr)];
    bool six = inet_pton(AF_INET6, address, bytes) == 1;
    if (!six && inet_pton(AF_INET, address, bytes) != 1)
        return krait_err_set(err, -EINVAL, "%s is not a numeric address such as 127.0.0.1 or ::1", address);
    snprintf(server->address, sizeof(server->address), "%s", address);
    snprintf(port, size, six ? "[%s]:%u" : "%s:%u", address, options->port);
    return 0;
}

static int start(struct krait_server *server, const char *port, struct krait_err *err)
{
    struct mg_server_port ports[1];
    int rc = krait_http_listen(&server->civetweb, server->http, port, on_request, err);
    if (rc)
        return rc;
    if (server->http->mg_get_server_ports(server->civetweb, 1, ports) != 1)
        return krait_err_set(err, -EIO, "cannot learn which port was opened for %s", port);
    server->port = (uint16_t)ports[0].port;
    return 0;
}

static int make_serving(struct krait_serving **out, const struct krait_server *server,
                        const struct krait_server_trace *shown)
{
    int rc = krait_serving_new(out, shown->view, shown->trace);
    if (rc)
        return rc;
    (*out)->growing = shown->growing;
    (*out)->wall_kept = server->wall_kept;
    (*out)->changes = shown->changes;
    (*out)->close = shown->close;
    (*out)->rules = shown->rules;
    (*out)->takes = shown->takes;
    (*out)->takes_ctx = shown->takes_ctx;
    (*out)->paths = server->options.paths;
    (*out)->path_count = server->options.path_count;
    (*out)->analyses = server->options.analyses;
    (*out)->changed = server->options.changed;
    (*out)->changed_ctx = server->options.ctx;
    return 0;
}

static void make_url(struct krait_server *server)
{
    bool everywhere = strcmp(server->address, "0.0.0.0") == 0 || strcmp(server->address, "::") == 0;
    const char *host = everywhere ? "127.0.0.1" : server->address;
    snprintf(server->url, sizeof(server->url), strchr(host, ':') ? "http://[%s]:%u/%s/" : "http://%s:%u/%s/",
             host, server->port, server->token);
}

int krait_server_new(struct krait_server **out, const struct krait_server_options *options,
                     struct krait_err *err)
{
    char port[INET6_ADDRSTRLEN + 16];
    struct krait_server *server = calloc(1, sizeof(*server));
    if (!server)
        return krait_err_set(err, -ENOMEM, "out of memory");
    server->options = *options;
    pthread_mutex_init(&server->lock, NULL);
    pthread_cond_init(&server->changed, NULL);
    the_server = server;
    int rc = krait_http_load(&server->http, err);
    if (!rc && krait_wall_kept_new(&server->wall_kept))
        rc = krait_err_set(err, -ENOMEM, "out of memory");
    rc = rc ? rc : make_address(server, options, port, sizeof(port), err);
    rc = rc ? rc : krait_http_token(server->token, err);
    rc = rc ? rc : start(server, port, err);
    if (rc) {
        krait_server_free(server);
        return rc;
    }
    make_url(server);
    *out = server;
    return 0;
}

int krait_server_show(struct krait_server *server, const struct krait_server_trace *shown)
{
    struct krait_serving *next;
    int rc = make_serving(&next, server, shown);
    if (rc)
        return rc;
    pthread_mutex_lock(&server->lock);
    struct krait_serving *before = server->shown;
    next->generation = before ? before->generation + 1 : 0;
    server->shown = next;
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
    give_back(server, before);
    return 0;
}

/* civetweb checks only every two seconds whether to stop, unless something happens on its sockets. */
static void stop(struct krait_server *server)
{
    pthread_mutex_lock(&server->lock);
    __atomic_store_n(&server->ends, true, __ATOMIC_RELAXED);
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
    krait_running_cancel_all();
    krait_sockets_shut(server->port);
    krait_http_end(server->http, server->civetweb);
}

void krait_server_free(struct krait_server *server)
{
    if (!server)
        return;
    if (server->civetweb)
        stop(server);
    the_server = NULL;
    krait_serving_free(server->shown);
    krait_wall_kept_free(server->wall_kept);
    pthread_mutex_destroy(&server->lock);
    pthread_cond_destroy(&server->changed);
    free(server);
}

const char *krait_server_url(const struct krait_server *server)
{
    return server->url;
}
