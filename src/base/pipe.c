/* SPDX-License-Identifier: Apache-2.0 */
#include "base/pipe.h"

#include <pthread.h>

enum { SLOTS = 32 };

struct krait_pipe {
    int (*use)(void *ctx, void *slot);
    void *ctx;
    char *slots;
    size_t size;
    pthread_t thread;
    pthread_mutex_t lock; /* of all that follows */
    pthread_cond_t changed;
    uint64_t put, used; /* slots so far */
    bool closed;
    int rc;
};

static void *slot_at(const struct krait_pipe *pipe, uint64_t number)
{
    return pipe->slots + number % SLOTS * pipe->size;
}

/* The next slot to use; NULL: there will be none. */
static void *wait_for_some(struct krait_pipe *pipe)
{
    pthread_mutex_lock(&pipe->lock);
    while (pipe->put == pipe->used && !pipe->closed)
        pthread_cond_wait(&pipe->changed, &pipe->lock);
    void *slot = pipe->put == pipe->used ? NULL : slot_at(pipe, pipe->used);
    pthread_mutex_unlock(&pipe->lock);
    return slot;
}

static void *use_all(void *ctx)
{
    struct krait_pipe *pipe = ctx;
    void *slot;
    int rc = 0;
    while ((slot = wait_for_some(pipe))) {
        rc = rc ? rc : pipe->use(pipe->ctx, slot);
        pthread_mutex_lock(&pipe->lock);
        pipe->used++;
        pipe->rc = rc;
        pthread_cond_signal(&pipe->changed);
        pthread_mutex_unlock(&pipe->lock);
    }
    return NULL;
}

static void destroy(struct krait_pipe *pipe)
{
    pthread_cond_destroy(&pipe->changed);
    pthread_mutex_destroy(&pipe->lock);
    free(pipe->slots);
    free(pipe);
}

int krait_pipe_open(struct krait_pipe **out, size_t size, int (*use)(void *ctx, void *slot), void *ctx)
{
    struct krait_pipe *pipe = calloc(1, sizeof(*pipe));
    char *slots = calloc(SLOTS, size); /* not touched before they are used */
    if (!pipe || !slots) {
        free(pipe);
        free(slots);
        return -ENOMEM;
    }
    *pipe = (struct krait_pipe){ .use = use, .ctx = ctx, .slots = slots, .size = size };
    pthread_mutex_init(&pipe->lock, NULL);
    pthread_cond_init(&pipe->changed, NULL);
    int rc = -pthread_create(&pipe->thread, NULL, use_all, pipe);
    if (rc) {
        destroy(pipe);
        return rc;
    }
    *out = pipe;
    return 0;
}

void *krait_pipe_slot(struct krait_pipe *pipe, int *rc)
{
    pthread_mutex_lock(&pipe->lock);
    while (pipe->put - pipe->used == SLOTS)
        pthread_cond_wait(&pipe->changed, &pipe->lock);
    void *slot = slot_at(pipe, pipe->put);
    *rc = pipe->rc;
    pthread_mutex_unlock(&pipe->lock);
    return *rc ? NULL : slot;
}

void krait_pipe_push(struct krait_pipe *pipe)
{
    pthread_mutex_lock(&pipe->lock);
    pipe->put++;
    pthread_cond_signal(&pipe->changed);
    pthread_mutex_unlock(&pipe->lock);
}

int krait_pipe_finish(struct krait_pipe *pipe)
{
    pthread_mutex_lock(&pipe->lock);
    pipe->closed = true;
    pthread_cond_signal(&pipe->changed);
    pthread_mutex_unlock(&pipe->lock);
    pthread_join(pipe->thread, NULL);
    return pipe->rc;
}

void krait_pipe_free(struct krait_pipe *pipe, void (*done)(void *slot))
{
    for (uint64_t i = 0; done && i < SLOTS; i++)
        done(slot_at(pipe, i));
    destroy(pipe);
}
