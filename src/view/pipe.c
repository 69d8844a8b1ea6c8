/* SPDX-License-Identifier: Apache-2.0 */
#include "view/pipe.h"

#include <pthread.h>
#include <string.h>

enum { SLOTS = 32, ENTRIES = 2048 };

struct slot {
    uint32_t n;
    uint64_t t_ns[ENTRIES];
    uint32_t func[ENTRIES];
    uint8_t kind[ENTRIES];
};

struct krait_pipe {
    krait_call_batch_fn *fn;
    void *ctx;
    pthread_t thread;
    pthread_mutex_t lock; /* of all that follows but the slots' contents */
    pthread_cond_t changed;
    uint64_t put, used; /* slots so far */
    bool closed;
    int rc;
    struct slot slots[SLOTS];
};

/* The next slot to use; NULL: there will be none. */
static const struct slot *wait_for_some(struct krait_pipe *pipe)
{
    pthread_mutex_lock(&pipe->lock);
    while (pipe->put == pipe->used && !pipe->closed)
        pthread_cond_wait(&pipe->changed, &pipe->lock);
    const struct slot *slot = pipe->put == pipe->used ? NULL : &pipe->slots[pipe->used % SLOTS];
    pthread_mutex_unlock(&pipe->lock);
    return slot;
}

static void *use(void *ctx)
{
    struct krait_pipe *pipe = ctx;
    const struct slot *slot;
    int rc = 0;
    while ((slot = wait_for_some(pipe))) {
        const struct krait_call_batch batch = {
            .n = slot->n, .t_ns = slot->t_ns, .func = slot->func, .kind = slot->kind
        };
        rc = rc ? rc : pipe->fn(pipe->ctx, &batch);
        pthread_mutex_lock(&pipe->lock);
        pipe->used++;
        pipe->rc = rc;
        pthread_cond_signal(&pipe->changed);
        pthread_mutex_unlock(&pipe->lock);
    }
    return NULL;
}

static int free_pipe(struct krait_pipe *pipe)
{
    int rc = pipe->rc;
    pthread_cond_destroy(&pipe->changed);
    pthread_mutex_destroy(&pipe->lock);
    free(pipe);
    return rc;
}

int krait_pipe_open(struct krait_pipe **out, krait_call_batch_fn *fn, void *ctx)
{
    struct krait_pipe *pipe = malloc(sizeof(*pipe)); /* the slots are not touched before they are used */
    if (!pipe)
        return -ENOMEM;
    memset(pipe, 0, offsetof(struct krait_pipe, slots));
    pipe->fn = fn;
    pipe->ctx = ctx;
    pthread_mutex_init(&pipe->lock, NULL);
    pthread_cond_init(&pipe->changed, NULL);
    int rc = -pthread_create(&pipe->thread, NULL, use, pipe);
    if (rc) {
        free_pipe(pipe);
        return rc;
    }
    *out = pipe;
    return 0;
}

static struct slot *wait_for_room(struct krait_pipe *pipe, int *rc)
{
    pthread_mutex_lock(&pipe->lock);
    while (pipe->put - pipe->used == SLOTS)
        pthread_cond_wait(&pipe->changed, &pipe->lock);
    struct slot *slot = &pipe->slots[pipe->put % SLOTS];
    *rc = pipe->rc;
    pthread_mutex_unlock(&pipe->lock);
    return slot;
}

static int put_part(struct krait_pipe *pipe, const struct krait_call_batch *batch, uint32_t at, uint32_t n)
{
    int rc;
    struct slot *slot = wait_for_room(pipe, &rc);
    if (rc)
        return rc;
    slot->n = n;
    memcpy(slot->t_ns, batch->t_ns + at, n * sizeof(*slot->t_ns));
    memcpy(slot->func, batch->func + at, n * sizeof(*slot->func));
    memcpy(slot->kind, batch->kind + at, n * sizeof(*slot->kind));
    pthread_mutex_lock(&pipe->lock);
    pipe->put++;
    pthread_cond_signal(&pipe->changed);
    pthread_mutex_unlock(&pipe->lock);
    return 0;
}

int krait_pipe_put(void *ctx, const struct krait_call_batch *batch)
{
    int rc = 0;
    for (uint32_t at = 0; at < batch->n && !rc; at += ENTRIES)
        rc = put_part(ctx, batch, at, KRAIT_MIN(batch->n - at, (uint32_t)ENTRIES));
    return rc;
}

int krait_pipe_close(struct krait_pipe *pipe)
{
    pthread_mutex_lock(&pipe->lock);
    pipe->closed = true;
    pthread_cond_signal(&pipe->changed);
    pthread_mutex_unlock(&pipe->lock);
    pthread_join(pipe->thread, NULL);
    return free_pipe(pipe);
}
