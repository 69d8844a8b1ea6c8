/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/running.h"

#include "base/clock.h"
#include "serve/sockets.h"

#include <pthread.h>

#define LONG_NS \
    (100 * KRAIT_NS_PER_MS) /* shorter answers are neither reported nor checked for cancellation */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct krait_running *all; /* under the lock */
static _Thread_local struct krait_running *own;

void krait_running_begin(struct krait_running *running)
{
    running->begun_ns = running->looked_ns = krait_clock_ns(CLOCK_MONOTONIC);
    running->fd = -1;
    own = running;
    pthread_mutex_lock(&lock);
    running->next = all;
    all = running;
    pthread_mutex_unlock(&lock);
}

void krait_running_end(struct krait_running *running)
{
    own = NULL;
    pthread_mutex_lock(&lock);
    struct krait_running **at = &all;
    while (*at != running)
        at = &(*at)->next;
    *at = running->next;
    pthread_mutex_unlock(&lock);
}

/* Whether the browser has closed the connection, because it cancelled the request or is gone. */
static void look_for_client(struct krait_running *running)
{
    uint64_t now_ns = krait_clock_ns(CLOCK_MONOTONIC);
    if (!running->client || now_ns - running->looked_ns < LONG_NS)
        return;
    running->looked_ns = now_ns;
    if (running->fd < 0)
        running->fd = krait_socket_of(running->server, running->client);
    if (running->fd >= 0 && krait_socket_is_closed(running->fd))
        __atomic_store_n(&running->cancelled, true, __ATOMIC_RELAXED);
}

bool krait_running_goes_on(void)
{
    if (!own)
        return true;
    look_for_client(own);
    return !__atomic_load_n(&own->cancelled, __ATOMIC_RELAXED);
}

bool krait_running_progress(void *ctx, uint64_t bytes)
{
    (void)ctx;
    if (own)
        __atomic_fetch_add(&own->done, bytes, __ATOMIC_RELAXED);
    return krait_running_goes_on();
}

void krait_running_cancel_all(void)
{
    pthread_mutex_lock(&lock);
    for (struct krait_running *at = all; at; at = at->next)
        __atomic_store_n(&at->cancelled, true, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&lock);
}

void krait_running_each(void (*fn)(void *ctx, const struct krait_running *running), void *ctx)
{
    uint64_t now_ns = krait_clock_ns(CLOCK_MONOTONIC);
    pthread_mutex_lock(&lock);
    for (const struct krait_running *at = all; at; at = at->next) {
        if (now_ns - at->begun_ns >= LONG_NS)
            fn(ctx, at);
    }
    pthread_mutex_unlock(&lock);
}
