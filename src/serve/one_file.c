/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/one_file.h"

#include "base/buf.h"
#include "serve/http.h"
#include "serve/sockets.h"

#include <string.h>
#include <sys/stat.h>

enum { CHUNK = 64 << 10 };

/* civetweb passes only the connection to its callbacks. */
static struct {
    const struct krait_http *http;
    struct mg_context *civetweb;
    struct krait_one_file file;
    uint64_t size;
    char path[128]; /* "/TOKEN.NAME" */
    char host[32];
} served;

static int send_head(struct mg_connection *conn, const char *status, uint64_t size)
{
    KRAIT_AUTO_BUF head = { 0 };
    krait_buf_fmt(
        &head,
        "HTTP/1.1 %s\r\nAccess-Control-Allow-Origin: %s\r\nAccess-Control-Allow-Methods: GET\r\n"
        "Access-Control-Allow-Private-Network: true\r\nVary: Origin\r\nX-Content-Type-Options: nosniff\r\n"
        "Cache-Control: no-store\r\nContent-Type: application/octet-stream\r\nContent-Length: %llu\r\n\r\n",
        status, served.file.origin, (unsigned long long)size);
    return head.failed ? -1 : served.http->mg_write(conn, head.data, head.len);
}

static void send_file(struct mg_connection *conn)
{
    char chunk[CHUNK];
    uint64_t at = 0;
    int sent = send_head(conn, "200 OK", served.size);
    while (sent > 0 && at < served.size) {
        ssize_t n = pread(served.file.fd, chunk, sizeof(chunk), (off_t)at);
        sent = n > 0 ? served.http->mg_write(conn, chunk, (size_t)n) : -1;
        at += (uint64_t)KRAIT_MAX(n, 0);
    }
}

/* Another origin than the page's. curl, and a browser without a page, send none. */
static bool is_refused(const struct mg_connection *conn, const char *uri)
{
    const char *host = served.http->mg_get_header(conn, "Host");
    const char *origin = served.http->mg_get_header(conn, "Origin");
    return !host || strcmp(host, served.host) != 0 || (origin && strcmp(origin, served.file.origin) != 0) ||
           !uri || strcmp(uri, served.path) != 0;
}

static int refuse(struct mg_connection *conn, int status, const char *reason)
{
    KRAIT_AUTO_BUF head = { 0 };
    krait_buf_fmt(&head, "HTTP/1.1 %d %s\r\nContent-Length: 0\r\n\r\n", status, reason);
    if (!head.failed)
        served.http->mg_write(conn, head.data, head.len);
    return status;
}

static int on_request(struct mg_connection *conn)
{
    const struct mg_request_info *info = served.http->mg_get_request_info(conn);
    if (is_refused(conn, info->request_uri))
        return refuse(conn, 403, "Forbidden");
    if (strcmp(info->request_method, "OPTIONS") == 0)
        send_head(conn, "200 OK", 0);
    else if (strcmp(info->request_method, "GET") == 0)
        send_file(conn);
    else
        return refuse(conn, 405, "Method Not Allowed");
    return 200;
}

int krait_one_file_serve(const struct krait_one_file *file, char *url, size_t size, struct krait_err *err)
{
    char port[32], token[KRAIT_HTTP_TOKEN_SIZE];
    struct stat st;
    served.file = *file;
    snprintf(served.host, sizeof(served.host), "127.0.0.1:%u", file->port);
    snprintf(port, sizeof(port), "127.0.0.1:%u", file->port);
    int rc = krait_http_load(&served.http, err);
    if (!rc && fstat(file->fd, &st))
        rc = krait_err_errno(err, "%s", file->name);
    rc = rc ? rc : krait_http_token(token, err);
    if (rc)
        return rc;
    served.size = (uint64_t)st.st_size;
    snprintf(served.path, sizeof(served.path), "/%s.%s", token, file->name);
    snprintf(url, size, "http://%s%s", served.host, served.path);
    return krait_http_listen(&served.civetweb, served.http, port, on_request, err);
}

void krait_one_file_end(void)
{
    krait_sockets_shut(served.file.port);
    krait_http_end(served.http, served.civetweb);
}
