/* SPDX-License-Identifier: Apache-2.0
 *
 * Events go into the ring of the thread, as those of Python do; a thread of C's own gets one. A stop of the recording
 * takes rings away from threads, and waits until nobody is in here before it unmaps the memory.
 *
 * Names are looked up without a lock in a table that only grows. Whoever adds one holds a lock; it has a ring of
 * definitions of its own, since those of interpreters are written with the GIL held.
 */
#include "python/annotate_native.h"

#include "base/json.h"
#include "krait/annotate.h"
#include "python/agent.h"
#include "python/gil.h"
#include "python/notes.h"
#include "python/text.h"

#include <dlfcn.h>
#include <link.h>
#include <sched.h>
#include <string.h>

enum {
    TEXT_BYTES = 1024,
    FIELDS_BYTES = 1536,
    NAME_BYTES = 200,
    NAMES = 8192, /* a power of two; half of them are used */
    OBJECTS = 2048,
};

/* ---- who may write ---- */

static _Atomic int inside; /* threads that are in here */

/* Whether this thread can write, which ends with leave() in either case. */
static bool enter(void)
{
    struct krait_agent *agent = &krait_agent;
    atomic_fetch_add(&inside, 1);
    atomic_fetch_add(&agent->inside, 1);
    return atomic_load(&agent->running) && !atomic_load(&agent->off) && !atomic_load(&agent->forked) &&
           krait_writer_is_own(&agent->writer) &&
           (krait_this_ring != &krait_no_ring || krait_thread_begin_native());
}

static void leave(void)
{
    atomic_fetch_sub(&krait_agent.inside, 1);
    atomic_fetch_sub(&inside, 1);
}

/* What they do is short, and needs nothing that the caller has. */
void krait_native_notes_wait(void)
{
    uint64_t last = krait_clock_ns(CLOCK_MONOTONIC) + KRAIT_NS_PER_S;
    while (atomic_load(&inside) && krait_clock_ns(CLOCK_MONOTONIC) < last)
        sched_yield();
}

static void put_slowly(struct krait_ring *ring, uint64_t t, uint32_t event, const void *payload, size_t n)
{
    int saved = errno;
    bool look = krait_note_waits(ring);
    size_t bytes = sizeof(struct krait_event_extended) + n;
    if (krait_writer_room(&krait_agent.writer, ring, t, bytes) != KRAIT_ROOM_NONE) {
        look = look || krait_note_waits(ring);
        krait_writer_put_extended(ring, t, event, payload, n);
    }
    if (look ||
        krait_note_waits(ring)) /* another thread, which has the GIL, may have asked for it meanwhile */
        ring->window = UINT64_MAX;
    errno = saved;
}

/* The window stays as it is: what waits for a call's slow path, or is looked at there now and then, waits on. */
static void put(uint32_t event, const void *payload, size_t n)
{
    struct krait_ring *ring = krait_this_ring;
    if (ring == &krait_no_ring) /* the recording has been stopped meanwhile */
        return;
    krait_gil_before_note();
    uint64_t t = KRAIT_MAX(krait_writer_now(&krait_agent.writer), krait_gil_last()), window = ring->window;
    if (ring->cur < ring->limit && krait_ring_fits(ring, sizeof(struct krait_event_extended) + n)) {
        krait_writer_put_small(ring, t, event, payload, n);
        ring->window = krait_note_waits(ring) ? UINT64_MAX : window;
    } else {
        put_slowly(ring, t, event, payload, n);
    }
    krait_gil_after(t);
}

/* ---- names ---- */

static struct name {
    _Atomic uint64_t key; /* 0: free */
    uint32_t id;
} names[NAMES];

static struct {
    pthread_mutex_t lock;
    struct krait_ring *ring; /* of definitions */
    uint32_t used;
    _Atomic uint64_t life; /* counts recordings and forks: each has ids of its own */
    uint32_t starts;       /* the recording that the ring is of */
} naming = { .lock = PTHREAD_MUTEX_INITIALIZER };

void krait_native_notes_forked(void)
{
    pthread_mutex_init(&naming.lock, NULL); /* another thread may have held it */
    naming.ring = NULL;
    atomic_store(&inside, 0);
}

static uint64_t key_of(const char *name, uint64_t life)
{
    return krait_hash_u64(krait_hash_bytes(name, strlen(name)) + life) | 1;
}

/* The name's place, or a free one. */
static struct name *place_of(uint64_t key)
{
    size_t i = (key >> 1) % NAMES;
    uint64_t there;
    while ((there = atomic_load_explicit(&names[i].key, memory_order_acquire)) && there != key)
        i = (i + 1) % NAMES;
    return &names[i];
}

static uint32_t define(const char *name)
{
    uint8_t payload[KRAIT_PAYLOAD_MAX];
    char text[NAME_BYTES + 1];
    struct krait_writer *writer = &krait_agent.writer;
    uint32_t id = krait_writer_new_code(writer);
    snprintf(text, sizeof(text), "%s", *name ? name : KRAIT_NO_TEXT);
    const struct krait_payload_code_define code = { .id = id,
                                                    .kind = KRAIT_code_kind_name,
                                                    .module = KRAIT_NO_TEXT,
                                                    .qualname = text,
                                                    .file = KRAIT_NO_TEXT };
    size_t n = krait_put_code_define(payload, &code);
    return id && krait_writer_event(writer, naming.ring, KRAIT_EVENT_code_define, payload, n) ? id : 0;
}

/* The lock held. */
static uint32_t add_name(const char *name)
{
    uint32_t starts = atomic_load(&krait_agent.starts);
    if (!naming.ring || naming.starts != starts) {
        naming.ring = krait_writer_ring_new(&krait_agent.writer, KRAIT_RING_DEFINITIONS, 0);
        naming.starts = starts;
        atomic_fetch_add(&naming.life, 1);
    }
    uint64_t key = key_of(name, atomic_load(&naming.life));
    struct name *place = place_of(key);
    if (atomic_load(&place->key))
        return place->id; /* another thread was first */
    uint32_t id = naming.ring && naming.used < NAMES / 2 ? define(name) : 0;
    if (!id)
        return 0;
    naming.used++;
    place->id = id;
    atomic_store_explicit(&place->key, key, memory_order_release);
    return id;
}

/* 0: it cannot have one. */
static uint32_t id_of(const char *name)
{
    struct name *place = place_of(key_of(name, atomic_load(&naming.life)));
    bool is_known = naming.ring && naming.starts == atomic_load(&krait_agent.starts) &&
                    atomic_load_explicit(&place->key, memory_order_acquire);
    if (KRAIT_LIKELY(is_known))
        return place->id;
    int saved = errno;
    pthread_mutex_lock(&naming.lock);
    uint32_t id = add_name(name);
    pthread_mutex_unlock(&naming.lock);
    errno = saved;
    return id;
}

/* ---- what is said ---- */

static const char *fields_or_none(const char *fields)
{
    return fields && *fields && strnlen(fields, FIELDS_BYTES + 1) <= FIELDS_BYTES ? fields : KRAIT_NO_FIELDS;
}

/* Of a text that is longer than this. */
static const char *cut_text(char cut[TEXT_BYTES + 1], const char *text)
{
    size_t n = krait_utf8_whole(text, TEXT_BYTES + 1, TEXT_BYTES);
    memcpy(cut, text, n);
    cut[n] = '\0';
    return cut;
}

static void say_mark(const char *text, const char *fields)
{
    uint8_t payload[KRAIT_PAYLOAD_MAX];
    char cut[TEXT_BYTES + 1];
    if (enter()) {
        text = text && *text ? text : KRAIT_NO_TEXT;
        if (strnlen(text, sizeof(cut)) == sizeof(cut))
            text = cut_text(cut, text);
        const struct krait_payload_user_mark mark = { .text = text, .fields = fields_or_none(fields) };
        put(KRAIT_EVENT_user_mark, payload, krait_put_user_mark(payload, &mark));
    }
    leave();
}

static uint64_t say_begin(const char *name, const char *fields)
{
    uint8_t payload[KRAIT_PAYLOAD_MAX];
    struct krait_payload_span_begin begin = { .category = KRAIT_span_category_user,
                                              .fields = fields_or_none(fields) };
    if (enter() && (begin.name = id_of(name ? name : ""))) {
        begin.id = krait_note_span_id(KRAIT_span_category_user);
        put(KRAIT_EVENT_span_begin, payload, krait_put_span_begin(payload, &begin));
    }
    leave();
    return begin.id;
}

static void say_end(uint64_t id, const char *fields)
{
    uint8_t payload[KRAIT_PAYLOAD_MAX];
    const struct krait_payload_span_end end = { .id = id, .fields = fields_or_none(fields) };
    if (enter())
        put(KRAIT_EVENT_span_end, payload, krait_put_span_end(payload, &end));
    leave();
}

static void say_counter(const char *name, double value)
{
    uint8_t payload[KRAIT_BYTES_user_counter];
    struct krait_payload_user_counter counter = { .value = value };
    if (enter() && (counter.name = id_of(name ? name : "")))
        put(KRAIT_EVENT_user_counter, payload, krait_put_user_counter(payload, &counter));
    leave();
}

static void say_flow(uint64_t id)
{
    uint8_t payload[KRAIT_BYTES_user_flow];
    const struct krait_payload_user_flow flow = { .id = id };
    if (enter())
        put(KRAIT_EVENT_user_flow, payload, krait_put_user_flow(payload, &flow));
    leave();
}

static const struct krait_annotate_functions annotations = { .size = sizeof(annotations),
                                                             .mark = say_mark,
                                                             .span_begin = say_begin,
                                                             .span_end = say_end,
                                                             .counter = say_counter,
                                                             .flow = say_flow };

/* ---- telling them ---- */

struct objects {
    char *paths[OBJECTS];
    size_t count;
};

/* dlopen may not be called in here. */
static int note_object(struct dl_phdr_info *object, size_t size, void *data)
{
    struct objects *objects = data;
    char *path = objects->count < OBJECTS && *object->dlpi_name ? strdup(object->dlpi_name) : NULL;
    if (path)
        objects->paths[objects->count++] = path;
    return 0;
}

static void tell(void *handle, bool records)
{
    const struct krait_annotate_functions **where = dlsym(handle, "krait_annotate_recorder");
    if (where)
        __atomic_store_n(where, records ? &annotations : NULL, __ATOMIC_RELEASE);
}

void krait_native_notes_offer(bool records)
{
    struct objects *objects = calloc(1, sizeof(*objects));
    tell(RTLD_DEFAULT, records);
    if (objects)
        dl_iterate_phdr(note_object, objects);
    for (size_t i = 0; objects && i < objects->count; i++) {
        void *handle = dlopen(objects->paths[i], RTLD_LAZY | RTLD_NOLOAD);
        if (handle) {
            tell(handle, records);
            dlclose(handle);
        }
        free(objects->paths[i]);
    }
    free(objects);
}
