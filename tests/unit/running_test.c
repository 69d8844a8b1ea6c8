/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers that nobody wants any more are ended: the walk that one waits for, by the connection that is closed.
 */
#include "made_trace.h"

#include "serve/running.h"
#include "serve/sockets.h"
#include "trace/trace.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <sys/socket.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <time.h>

#include <cmocka.h>

struct pair {
    int server, client;
    uint16_t server_port, client_port;
};

static uint16_t port_of(int fd)
{
    struct sockaddr_in address;
    socklen_t size = sizeof(address);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    return ntohs(address.sin_port);
}

static struct pair connect_pair(void)
{
    struct pair pair;
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(listener, 1), 0);
    pair.server_port = port_of(listener);
    address.sin_port = htons(pair.server_port);
    pair.client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(pair.client, (struct sockaddr *)&address, sizeof(address)), 0);
    pair.server = accept(listener, NULL, NULL);
    pair.client_port = port_of(pair.client);
    close(listener);
    return pair;
}

static bool goes_on_after(long ms)
{
    nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000 }, NULL);
    return krait_running_goes_on();
}

static void a_closed_connection_ends_its_answer(void **state)
{
    struct pair pair = connect_pair();
    struct krait_running running = { .name = "functions",
                                     .server = pair.server_port,
                                     .client = pair.client_port };
    krait_running_begin(&running);
    assert_int_equal(krait_socket_of(pair.server_port, pair.client_port), pair.server);
    assert_true(goes_on_after(150));
    close(pair.client);
    bool goes_on = true;
    for (int i = 0; i < 100 && goes_on; i++) /* seconds: the kernel passes it on at once */
        goes_on = goes_on_after(120);
    assert_false(goes_on);
    krait_running_end(&running);
    assert_true(krait_running_goes_on());
    close(pair.server);
}

static void connections_that_are_shut_are_closed(void **state)
{
    struct pair pair = connect_pair(), other = connect_pair();
    char byte;
    krait_sockets_shut(pair.server_port);
    assert_int_equal(read(pair.client, &byte, 1), 0);
    assert_true(krait_socket_is_closed(pair.client));
    assert_false(krait_socket_is_closed(other.client));
    close(pair.server), close(pair.client), close(other.server), close(other.client);
}

/* Cancels in the middle of the trace. */
static bool enough(void *ctx, uint64_t bytes)
{
    uint64_t *left = ctx;
    *left -= KRAIT_MIN(*left, bytes);
    if (!*left)
        krait_running_cancel_all();
    return krait_running_progress(NULL, bytes);
}

static int count(void *ctx, const struct krait_call_batch *ops)
{
    *(uint64_t *)ctx += ops->n;
    return 0;
}

static struct krait_trace *open_made(struct made *made)
{
    const char *path = made->parent;
    struct krait_trace *trace;
    made_thread(made, 11);
    for (int i = 0; i < 100000; i++) {
        made->t += 10;
        made_begin(made, KRAIT_EVENT_python_call, 1);
        made->t += 10;
        made_end(made, KRAIT_EVENT_python_return);
    }
    made_close(made);
    assert_int_equal(krait_trace_open(&trace, &path, 1, KRAIT_NEEDS_CALLS, NULL), 0);
    return trace;
}

static void a_walk_that_nobody_wants_ends(void **state)
{
    struct made *made = made_new();
    struct krait_trace *trace = open_made(made);
    uint64_t ops = 0, left = trace->bytes / 2;
    struct krait_running running = { .name = "functions", .total = trace->bytes };
    trace->progress = enough;
    trace->progress_ctx = &left;
    krait_running_begin(&running);
    assert_int_equal(krait_trace_walk(trace, 0, KRAIT_RANGE_ALL, count, &ops, NULL, 0), -ECANCELED);
    assert_in_range(running.done, trace->bytes / 4, trace->bytes * 3 / 4);
    assert_in_range(ops, 10000, 190000);
    krait_running_end(&running);
    left = UINT64_MAX;
    ops = 0;
    assert_int_equal(krait_trace_walk(trace, 0, KRAIT_RANGE_ALL, count, &ops, NULL, 0), 0);
    assert_int_equal(ops, 200000);
    krait_trace_close(trace);
    made_free(made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_closed_connection_ends_its_answer),
        cmocka_unit_test(connections_that_are_shut_are_closed),
        cmocka_unit_test(a_walk_that_nobody_wants_ends),
    };
    return cmocka_run_group_tests_name("running", tests, NULL, NULL);
}
