/* SPDX-License-Identifier: Apache-2.0
 *
 * What a server that is traced with LTTng-UST says of itself: functions entered and left (lttng-ust-cyg-
 * profile), requests, log records, queries, memory, locks; and, in a second channel, the hundreds of small
 * tracepoints that a large program has, each rare.
 */
#include "ust_events.h"

#define UNSIGNED(n, b, l, h)                                                        \
    {                                                                               \
        .name = n, .kind = UST_UNSIGNED, .bits = b, .base = 10, .low = l, .high = h \
    }
#define SIGNED(n, b, l, h)                                                        \
    {                                                                             \
        .name = n, .kind = UST_SIGNED, .bits = b, .base = 10, .low = l, .high = h \
    }
#define HEX(n, b, s)                                                        \
    {                                                                       \
        .name = n, .kind = UST_UNSIGNED, .bits = b, .base = 16, .source = s \
    }
#define COUNTER(n, b)                                                               \
    {                                                                               \
        .name = n, .kind = UST_UNSIGNED, .bits = b, .base = 10, .source = UST_COUNT \
    }
#define FLOAT(n, b, h)                                     \
    {                                                      \
        .name = n, .kind = UST_FLOAT, .bits = b, .high = h \
    }
#define STRING(n, w, most)                                         \
    {                                                              \
        .name = n, .kind = UST_STRING, .words = &w, .length = most \
    }
#define TEXT(n, size, w)                                         \
    {                                                            \
        .name = n, .kind = UST_TEXT, .words = &w, .length = size \
    }
#define ARRAY(n, b, size, h)                                                           \
    {                                                                                  \
        .name = n, .kind = UST_ARRAY, .bits = b, .base = 10, .length = size, .high = h \
    }
#define SEQUENCE(n, b, m, h)                                                           \
    {                                                                                  \
        .name = n, .kind = UST_SEQUENCE, .bits = b, .base = 10, .length = m, .high = h \
    }
#define LABELS(n, b, w)                                                     \
    {                                                                       \
        .name = n, .kind = UST_UNSIGNED, .bits = b, .base = 10, .words = &w \
    }
#define CONTEXT_ID(n, s)                                                   \
    {                                                                      \
        .name = n, .kind = UST_SIGNED, .bits = 32, .base = 10, .source = s \
    }
#define CONTEXT_NAME(n, size)                                           \
    {                                                                   \
        .name = n, .kind = UST_TEXT, .length = size, .source = UST_NAME \
    }

static const struct ust_words methods = { 4, { "GET", "POST", "PUT", "DELETE" } };
static const struct ust_words outcomes = { 5, { "OK", "NOT_FOUND", "DENIED", "TIMEOUT", "FAILED" } };
static const struct ust_words states = { 6, { "NEW", "READY", "RUNNING", "WAITING", "STOPPED", "GONE" } };
static const struct ust_words urls = {
    8,
    { "/", "/index.html", "/api/v1/orders", "/api/v1/orders/4711/lines", "/static/app.js", "/login",
      "/api/v1/customers/17?expand=addresses", "/health" },
};
static const struct ust_words loggers = { 5, { "root", "app.http", "app.db.pool", "app.cache", "asyncio" } };
static const struct ust_words files = {
    6, { "server.c", "pool.c", "/usr/src/app/cache.c", "http/request.c", "main.c", "db/statement.c" }
};
static const struct ust_words functions = {
    6, { "handle", "execute", "read_line", "<module>", "flush", "lookup" }
};
static const struct ust_words threads = { 4, { "MainThread", "worker-1", "worker-2", "Thread-17 (poll)" } };
static const struct ust_words speech = {
    12,
    { "connection", "from", "10.0.3.17", "closed", "after", "retry", "timeout", "while", "waiting", "for",
      "cache", "miss" },
};
static const struct ust_words sql = {
    8,
    { "SELECT id, name", "FROM orders", "WHERE customer = $1", "AND state <> $2", "ORDER BY created",
      "LIMIT 50", "JOIN lines USING (id)", "FOR UPDATE" },
};

static struct ust_event app_events[] = {
    { "lttng_ust_cyg_profile:func_entry",
      300,
      12,
      { HEX("addr", 64, UST_CALL), HEX("call_site", 64, UST_POINTER) } },
    { "lttng_ust_cyg_profile:func_exit",
      300,
      12,
      { HEX("addr", 64, UST_RETURN), HEX("call_site", 64, UST_POINTER) } },
    { "lttng_ust_libc:malloc", 60, 13, { UNSIGNED("size", 64, 8, 4096), HEX("ptr", 64, UST_POINTER) } },
    { "lttng_ust_libc:free", 60, 13, { HEX("ptr", 64, UST_POINTER) } },
    { "lttng_ust_pthread:pthread_mutex_lock_req", 40, 13, { HEX("mutex", 64, UST_POINTER) } },
    { "lttng_ust_pthread:pthread_mutex_lock_acq",
      40,
      13,
      { HEX("mutex", 64, UST_POINTER), SIGNED("status", 32, 0, 0) } },
    { "lttng_ust_pthread:pthread_mutex_unlock",
      40,
      13,
      { HEX("mutex", 64, UST_POINTER), SIGNED("status", 32, 0, 0) } },
    { "app:request_begin",
      30,
      6,
      { COUNTER("request_id", 64), LABELS("method", 8, methods), STRING("url", urls, 1),
        SIGNED("fd", 32, 4, 900), ARRAY("address", 8, 4, 255), UNSIGNED("port", 16, 1024, 65535) } },
    { "app:request_end",
      30,
      6,
      { COUNTER("request_id", 64), LABELS("outcome", 32, outcomes), SIGNED("status", 32, 200, 503),
        UNSIGNED("bytes", 64, 0, 100000), FLOAT("seconds", 64, 2) } },
    { "app:log",
      25,
      6,
      { SIGNED("level", 32, 0, 7), STRING("logger", loggers, 1), STRING("msg", speech, 9),
        STRING("file", files, 1), SIGNED("line", 32, 1, 2000) } },
    { "db:query",
      15,
      10,
      { STRING("sql", sql, 6), SEQUENCE("params", 64, 4, 1000000), SIGNED("connection", 32, 1, 40) } },
    { "db:row", 20, 13, { COUNTER("row", 64), SEQUENCE("bytes", 8, 40, 255) } },
    { "cache:lookup",
      30,
      13,
      { HEX("key", 64, UST_POINTER), UNSIGNED("hit", 8, 0, 1), FLOAT("load", 32, 1),
        UNSIGNED("bucket", 32, 0, 65535) } },
    { "app:state",
      20,
      10,
      { SIGNED("task", 32, 1, 4000), LABELS("state", 32, states), TEXT("name", 16, functions) } },
    { "app:sample",
      15,
      14,
      { ARRAY("counters", 64, 4, 1000000000), FLOAT("load", 64, 16), FLOAT("temperature", 32, 90) } },
    { "app:poll",
      25,
      13,
      { SIGNED("timeout", 32, -1, 1000), SEQUENCE("fds", 32, 6, 900), SIGNED("ready", 32, 0, 3) } },
    { "lttng_python:event",
      5,
      14,
      { STRING("asctime", threads, 1), STRING("msg", speech, 8), STRING("logger_name", loggers, 1),
        STRING("funcName", functions, 1), UNSIGNED("lineno", 32, 1, 900),
        UNSIGNED("int_loglevel", 32, 10, 50), UNSIGNED("thread", 32, 1, 2000000000),
        STRING("threadName", threads, 1) } },
};

static struct ust_event lib_events[UST_EVENTS];

struct ust_channel ust_channels[UST_CHANNELS] = {
    { .name = "app",
      .packet = 128 * 1024,
      .context = { CONTEXT_ID("vtid", UST_THREAD), CONTEXT_NAME("procname", 17) },
      .count = sizeof(app_events) / sizeof(*app_events),
      .events = app_events },
    { .name = "lib",
      .large = true,
      .packet = 256 * 1024,
      .context = { CONTEXT_ID("vpid", UST_PROCESS), CONTEXT_ID("vtid", UST_THREAD) },
      .count = UST_EVENTS,
      .events = lib_events },
};

/* Objects by address, numbers of some sizes, a flag, now and then a name: each class has two to six of them.
 */
static const struct ust_field recipe[] = {
    HEX("object", 64, UST_POINTER), UNSIGNED("offset", 64, 0, 1 << 30), SIGNED("ret", 32, -110, 4096),
    UNSIGNED("len", 32, 0, 65536),  UNSIGNED("flags", 8, 0, 1),         STRING("name", functions, 1),
    HEX("opaque", 64, UST_POINTER), SIGNED("queue", 16, 0, 15),         LABELS("state", 32, states),
};

void ust_channels_complete(void)
{
    static char names[UST_EVENTS][32];
    enum { KINDS = sizeof(recipe) / sizeof(*recipe) };
    for (unsigned i = 0; i < UST_EVENTS; i++) {
        struct ust_event *event = &lib_events[i];
        snprintf(names[i], sizeof(names[i]), "device%u:operation_%u", i % 7, i);
        event->name = names[i];
        event->weight = 1 + 64 / (i + 1); /* few are frequent (Zipf) */
        event->level = 13;
        for (unsigned k = 0; k < 2 + i % 5; k++)
            event->fields[k] = recipe[(i + k * (1 + i / KINDS % 2)) % KINDS];
    }
}
