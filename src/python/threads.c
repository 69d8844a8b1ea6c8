/* SPDX-License-Identifier: Apache-2.0
 *
 * A thread's first event gives it a ring; its end gives the ring back. Threads that run already when a recording
 * starts get theirs from the thread that starts it, with their stacks, and find them at their own first event.
 */
#include "base/array.h"
#include "python/codes.h"
#include "python/compat/running.h"
#include "python/gil.h"
#include "python/green_tasks.h"
#include "python/modules.h"
#include "python/tasks.h"
#include "python/work_processes.h"
#include "record/frames.h"

#include <string.h>
#include <sys/syscall.h>

struct krait_ring krait_no_ring;
__thread struct krait_ring *krait_this_ring __attribute__((tls_model("initial-exec"))) = &krait_no_ring;

/* Code ids of a stack's frames. */
struct frames {
    uint32_t *ids;
    size_t n, cap;
};

static void frames_done(struct frames *frames)
{
    free(frames->ids);
    *frames = (struct frames){ 0 };
}

/* Who has a ring: so that a stop can take the rings away from threads that run on. Entries are used again,
 * never freed: `tls` is NULL in a free one. */
struct thread_entry {
    struct krait_ring **_Atomic tls;
    struct thread_entry *next;
    uint64_t none_at;   /* the clock's window in which no ring was free; else 0 */
    struct frames said; /* of a stack that did not fit the ring's room: what it has of it, outermost first */
};

static struct thread_entry *_Atomic thread_entries;
static pthread_key_t thread_key;

/* Rings of threads that have not come by yet, by pthread_self. Who adds one writes the thread's stack into it: with the
 * GIL, and while C code's notes are not taken. A thread takes its own with the GIL or without, and under the lock. */
static struct waiting {
    pthread_t thread;
    struct krait_ring *ring;
} * waiting;
static size_t waiting_count, waiting_cap;
static pthread_mutex_t waiting_lock = PTHREAD_MUTEX_INITIALIZER;

/* Held while another thread's `tls` is followed, and by a thread that ends: it takes its storage away. Who
 * stops the recording holds it while it takes the rings from all threads, and unmaps them later. Never on the
 * way of an event. */
static pthread_mutex_t entries_lock = PTHREAD_MUTEX_INITIALIZER;

static bool claim(struct thread_entry *entry)
{
    struct krait_ring **none = NULL;
    return atomic_compare_exchange_strong(&entry->tls, &none, &krait_this_ring);
}

static struct thread_entry *new_entry(void)
{
    for (struct thread_entry *e = atomic_load(&thread_entries); e; e = e->next) {
        if (claim(e)) {
            e->none_at = 0;
            return e;
        }
    }
    struct thread_entry *entry = calloc(1, sizeof(*entry));
    if (!entry)
        return NULL;
    atomic_store(&entry->tls, &krait_this_ring);
    entry->next = atomic_load(&thread_entries);
    while (!atomic_compare_exchange_weak(&thread_entries, &entry->next, entry))
        ;
    return entry;
}

/* pthread's destructor: the thread ends. No GIL. */
static void on_thread_exit(void *value)
{
    struct thread_entry *entry = value;
    pthread_mutex_lock(&entries_lock);
    if (krait_this_ring != &krait_no_ring)
        krait_writer_ring_close(krait_this_ring);
    krait_this_ring = &krait_no_ring;
    frames_done(&entry->said);
    krait_greenlets_end();
    krait_tasks_thread_end();
    atomic_store(&entry->tls, NULL);
    pthread_mutex_unlock(&entries_lock);
}

int krait_threads_init(void)
{
    static bool done;
    if (done)
        return 0;
    int rc = pthread_key_create(&thread_key, on_thread_exit);
    done = rc == 0;
    return -rc;
}

void krait_threads_forked(void)
{
    pthread_mutex_init(&entries_lock, NULL);
    pthread_mutex_init(&waiting_lock, NULL);
    for (struct thread_entry *e = atomic_load(&thread_entries); e; e = e->next) {
        e->none_at = 0; /* the child may have one where its parent had none */
        if (atomic_load(&e->tls) == &krait_this_ring)
            continue;
        e->said = (struct frames){ 0 }; /* its thread may have been in free(): never twice */
        atomic_store(&e->tls, NULL);
    }
    waiting_count = 0;
}

void krait_threads_forget(void)
{
    pthread_mutex_lock(&entries_lock);
    for (struct thread_entry *e = atomic_load(&thread_entries); e; e = e->next) {
        struct krait_ring **tls = atomic_load(&e->tls);
        if (tls)
            *tls = &krait_no_ring;
    }
    pthread_mutex_unlock(&entries_lock);
    pthread_mutex_lock(&waiting_lock);
    waiting_count = 0;
    pthread_mutex_unlock(&waiting_lock);
}

static void resync_for(struct krait_ring *ring, enum krait_resync why)
{
    atomic_fetch_or(&ring->resync, why);
    ring->window = UINT64_MAX; /* to the slow path, where resync is looked at */
}

static void resync(struct krait_ring *ring)
{
    resync_for(ring, KRAIT_RESYNC_GO_ON);
}

void krait_thread_resync(enum krait_resync why)
{
    if (krait_this_ring != &krait_no_ring)
        resync_for(krait_this_ring, why);
}

static void break_ring(struct krait_ring *ring)
{
    atomic_fetch_or(&ring->resync, KRAIT_RESYNC_GO_ON);
    if (ring->cur < ring->limit) /* else it has been moved, or the room beyond it is being used up */
        ring->limit = ring->cur;
}

static void look_ring(struct krait_ring *ring)
{
    ring->window = UINT64_MAX;
}

/* Other threads' rings are written here: with the GIL held their owners do not. */
static void each_ring(void (*f)(struct krait_ring *))
{
    pthread_mutex_lock(&entries_lock);
    for (struct thread_entry *e = atomic_load(&thread_entries); e; e = e->next) {
        struct krait_ring **tls = atomic_load(&e->tls);
        if (tls && *tls != &krait_no_ring)
            f(*tls);
    }
    pthread_mutex_unlock(&entries_lock);
}

void krait_threads_break(void)
{
    each_ring(break_ring);
}

void krait_threads_look(void)
{
    each_ring(look_ring);
}

void krait_threads_resync(void)
{
    each_ring(resync);
}

void krait_thread_break(void)
{
    if (krait_this_ring != &krait_no_ring)
        break_ring(krait_this_ring);
}

/* ---- names ---- */

enum { NAME_MAX_BYTES = 200 };

/* A hash of this thread's name: the name itself would be much for the static TLS block. */
static __thread uint32_t told_name;

static uint32_t hash_name(const char *name)
{
    return (uint32_t)krait_hash_bytes(name, strlen(name));
}

static void write_name(struct krait_interp *in, uint32_t tid, const char *name)
{
    uint8_t payload[KRAIT_PAYLOAD_MAX];
    size_t n =
        krait_put_thread_name(payload, &(struct krait_payload_thread_name){ .vtid = tid, .name = name });
    if (in->definitions)
        krait_writer_event(&in->agent->writer, in->definitions, KRAIT_EVENT_thread_name, payload, n);
}

/* A threading.Thread's name as UTF-8; false when it has none. */
static bool thread_name(PyObject *thread, char *text)
{
    PyObject *name = PyObject_GetAttrString(thread, "_name");
    PyObject *bytes =
        name && PyUnicode_Check(name) ? PyUnicode_AsEncodedString(name, "utf-8", "backslashreplace") : NULL;
    if (bytes)
        snprintf(text, NAME_MAX_BYTES, "%s", PyBytes_AsString(bytes));
    Py_XDECREF(bytes);
    Py_XDECREF(name);
    PyErr_Clear();
    return bytes != NULL;
}

/* A thread that threading is just starting is not in its table yet: its outermost frame is Thread._bootstrap,
 * whose self it is. New reference. */
static PyObject *starting_thread(void)
{
    PyObject *frame = (PyObject *)PyEval_GetFrame();
    Py_XINCREF(frame);
    for (PyObject *back; frame && (back = krait_frame_back(frame));) {
        Py_DECREF(frame);
        frame = back;
    }
    PyObject *locals = frame ? PyObject_GetAttrString(frame, "f_locals") : NULL;
    PyObject *self = locals ? PyMapping_GetItemString(locals, "self") : NULL;
    PyObject *type = krait_module_item(krait_module("threading"), "Thread");
    Py_XINCREF(type);
    PyErr_Clear();
    if (self && !(type && PyObject_IsInstance(self, type) == 1)) {
        Py_DECREF(self);
        self = NULL;
    }
    Py_XDECREF(type);
    Py_XDECREF(locals);
    Py_XDECREF(frame);
    PyErr_Clear();
    return self;
}

static void tell_name(struct krait_interp *in, uint32_t tid, const char *name)
{
    told_name = hash_name(name);
    write_name(in, tid, name);
}

static void name_this_thread(struct krait_interp *in, uint32_t tid)
{
    char name[NAME_MAX_BYTES];
    PyObject *thread = krait_active_thread((unsigned long)pthread_self());
    if (!thread)
        thread = starting_thread();
    if (thread && thread_name(thread, name))
        tell_name(in, tid, name);
    else if (!thread && tid == (uint32_t)getpid())
        tell_name(in, tid, "MainThread");
    Py_XDECREF(thread);
}

void krait_thread_look_at_name(struct krait_interp *in)
{
    char name[NAME_MAX_BYTES];
    PyObject *thread = krait_active_thread((unsigned long)pthread_self());
    if (thread && thread_name(thread, name) && hash_name(name) != told_name)
        tell_name(in, (uint32_t)syscall(SYS_gettid), name);
    Py_XDECREF(thread);
}

/* ---- rings ---- */

/* A thread that began after one had ended without an event may have its pthread_self, and another number. */
static struct krait_ring *waiting_ring(uint32_t tid)
{
    struct krait_ring *ring = NULL;
    pthread_mutex_lock(&waiting_lock);
    for (size_t i = 0; i < waiting_count && !ring; i++) {
        bool is_here = waiting[i].ring && pthread_equal(waiting[i].thread, pthread_self());
        if (is_here && waiting[i].ring->tid == tid) {
            ring = waiting[i].ring;
            waiting[i].ring = NULL;
        }
    }
    pthread_mutex_unlock(&waiting_lock);
    return ring;
}

static struct thread_entry *own_entry(void)
{
    struct thread_entry *entry = pthread_getspecific(thread_key);
    if (!entry) {
        entry = new_entry();
        if (!entry || pthread_setspecific(thread_key, entry))
            return NULL;
    }
    return entry;
}

/* What the thread has kept for another ring goes. NULL: it has no ring that waits. */
static struct krait_ring *begin_with_waiting_ring(struct thread_entry *entry, uint32_t tid)
{
    frames_done(&entry->said);
    krait_greenlets_forget();
    struct krait_ring *ring = waiting_ring(tid);
    if (ring)
        krait_gil_drop_pending();
    return ring;
}

bool krait_thread_begin_native(void)
{
    int saved = errno;
    struct thread_entry *entry = own_entry();
    uint32_t tid = (uint32_t)syscall(SYS_gettid);
    struct krait_ring *ring = entry ? begin_with_waiting_ring(entry, tid) : NULL;
    if (entry && !ring) {
        ring = krait_writer_ring_new(&krait_agent.writer, KRAIT_RING_THREAD, tid);
        if (ring)
            atomic_fetch_or(&ring->resync, KRAIT_RESYNC_GO_ON);
    }
    errno = saved;
    if (!ring)
        return false;
    krait_this_ring = ring;
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load(&krait_agent.running))
        return true; /* a stop that comes now finds the ring */
    krait_this_ring = &krait_no_ring;
    return false;
}

/* NULL: none is free. Looking through all rings takes a while, and so does looking for threads that have ended: not more
 * often than the clock's window changes. */
static struct krait_ring *new_ring(struct krait_interp *in, struct thread_entry *entry, uint32_t tid)
{
    uint64_t window = krait_writer_now(&in->agent->writer) >> KRAIT_CTF_TS_BITS;
    if (entry->none_at == window)
        return NULL;
    struct krait_ring *ring = krait_writer_ring_new(&in->agent->writer, KRAIT_RING_THREAD, tid);
    if (!ring) {
        entry->none_at = window;
        krait_threads_sweep();
    }
    return ring;
}

bool krait_thread_begin(struct krait_interp *in)
{
    struct thread_entry *entry = own_entry();
    if (!entry)
        return false;
    uint32_t tid = (uint32_t)syscall(SYS_gettid);
    struct krait_ring *ring = begin_with_waiting_ring(entry, tid);
    if (ring) {
        krait_this_ring = ring;
        return true;
    }
    ring = new_ring(in, entry, tid);
    if (!ring) {
        krait_writer_lost(&in->agent->writer, KRAIT_lost_reason_no_ring, 1);
        return false;
    }
    atomic_fetch_or(&ring->resync, KRAIT_RESYNC_GO_ON);
    ring->pauses = in->governor.pauses * 2;
    krait_this_ring = ring;
    krait_gil_flush();
    name_this_thread(in, tid);
    return true;
}

/* ---- stacks ---- */

/* Writes the frames from *i on and the end of the run; *i is then how many are written. Returns false when the
 * ring was full before the end. */
static bool put_frames(struct krait_writer *writer, struct krait_ring *ring, uint64_t t,
                       const struct frames *frames, size_t *i)
{
    enum { BYTES = sizeof(struct krait_event_extended) + KRAIT_FRAME_BYTES };
    uint8_t payload[KRAIT_FRAME_BYTES];
    ring->stated = t;
    for (;; ++*i) {
        if (krait_writer_room(writer, ring, t, BYTES) == KRAIT_ROOM_NONE)
            return false;
        size_t n;
        bool last = *i == frames->n;
        uint32_t event = last ? krait_put_depth(payload, (uint32_t)*i, &n)
                              : krait_put_frame(payload, frames->ids[*i], (uint32_t)*i, &n);
        krait_writer_put_small(ring, t, event, payload, n);
        if (last)
            return true;
    }
}

static bool frames_add(struct frames *frames, uint32_t id)
{
    if (!KRAIT_GROW(frames->ids, frames->cap, frames->n + 1))
        return false;
    frames->ids[frames->n++] = id;
    return true;
}

static void frames_turn(struct frames *frames)
{
    for (size_t i = 0, j = frames->n; i + 1 < j; i++) {
        uint32_t id = frames->ids[--j];
        frames->ids[j] = frames->ids[i];
        frames->ids[i] = id;
    }
}

/* The frames from `frame` outwards, outermost first; those that are left out are not among them. Returns false without
 * memory. */
static bool frames_from(struct krait_interp *in, PyObject *frame, struct frames *frames)
{
    bool whole = true;
    Py_XINCREF(frame);
    while (frame) {
        PyObject *code = krait_frame_code(frame);
        struct krait_code *slot = code ? krait_code_find(in, code) : NULL;
        if (code && (!slot || (!slot->id && !(slot->flags & KRAIT_CODE_OMIT))))
            slot = krait_code_define(in, code, frame);
        PyObject *back = krait_frame_back(frame);
        if (whole && !(slot && slot->flags & KRAIT_CODE_OMIT)) {
            uint32_t id = slot ? slot->id : 0;
            id = id && in->agent->call_sites ? krait_code_at_site(in, id, NULL, code, back) : id;
            whole = frames_add(frames, id);
        }
        Py_XDECREF(code);
        Py_DECREF(frame);
        frame = back;
    }
    frames_turn(frames);
    return whole;
}

/* Nothing is open from now on. */
static void close_ring(struct krait_ring *ring)
{
    struct krait_writer *writer = &krait_agent.writer;
    atomic_store(&ring->resync, 0);
    ring->pauses = 0;
    put_frames(writer, ring, krait_writer_now(writer), &(struct frames){ 0 }, &(size_t){ 0 });
    resync(ring);
}

/* A thread in an interpreter with a GIL of its own may be writing: it states its stack itself, before its next event. */
static void close_or_ask(struct krait_ring *ring)
{
    if (ring == krait_this_ring || krait_is_alone())
        close_ring(ring);
    else
        atomic_fetch_or(&ring->resync, KRAIT_RESYNC_ANEW);
}

/* Who writes to other threads' rings has the lock meanwhile. */
void krait_threads_see_interp(void)
{
    pthread_mutex_lock(&entries_lock);
    krait_see_another_interp();
    pthread_mutex_unlock(&entries_lock);
}

void krait_threads_close(void)
{
    each_ring(close_or_ask);
    pthread_mutex_lock(&waiting_lock);
    for (size_t i = 0; i < waiting_count; i++) {
        if (waiting[i].ring)
            close_or_ask(waiting[i].ring);
    }
    pthread_mutex_unlock(&waiting_lock);
}

static void put_pause(struct krait_interp *in, struct krait_ring *ring, uint64_t t, uint32_t event)
{
    struct krait_writer *writer = &in->agent->writer;
    enum { BYTES = sizeof(struct krait_event_extended) + 4 };
    if (krait_writer_room(writer, ring, t, BYTES) != KRAIT_ROOM_NONE) /* the packet may be of a later event */
        krait_writer_put(ring, KRAIT_MAX(t, krait_writer_begin(writer, ring)), event, in->governor.pause_id);
    ring->pauses++;
    if (event == KRAIT_EVENT_python_call)
        krait_tasks_paused(in, ring, t);
}

void krait_thread_say_pause(struct krait_interp *in, uint64_t t)
{
    if (krait_this_ring != &krait_no_ring && in->governor.pause_id)
        put_pause(in, krait_this_ring, t, KRAIT_EVENT_python_call);
}

/* A function of krait's own stands for the pause, so that its time is nobody else's. */
static void begin_pause(struct krait_interp *in, struct krait_ring *ring)
{
    const struct krait_governor *g = &in->governor;
    ring->pauses = g->pauses * 2 - 2;
    put_pause(in, ring, KRAIT_MAX(g->pause_ticks, krait_gil_last()), KRAIT_EVENT_python_call);
}

/* Returns whether there was one. */
static bool end_pause(struct krait_interp *in, struct krait_ring *ring)
{
    const struct krait_governor *g = &in->governor;
    if (!g->pause_id || ring->pauses / 2 >= g->pauses)
        return false;
    if (ring->pauses % 2 == 0)
        begin_pause(in, ring);
    put_pause(in, ring, KRAIT_MAX(g->resume_ticks, krait_gil_last()), KRAIT_EVENT_python_return);
    ring->pauses = g->pauses * 2;
    return true;
}

void krait_thread_tell_pause(struct krait_interp *in)
{
    struct krait_ring *ring = krait_this_ring;
    const struct krait_governor *g = &in->governor;
    if (g->paused && g->pause_id && ring->pauses % 2 == 0 && ring->pauses / 2 < g->pauses)
        begin_pause(in, ring);
}

static size_t count_same(const struct frames *a, const struct frames *b)
{
    size_t n = KRAIT_MIN(a->n, b->n), i = 0;
    while (i < n && a->ids[i] == b->ids[i])
        i++;
    return i;
}

static bool say_tasks(struct krait_interp *in, struct krait_ring *ring, uint64_t t)
{
    return krait_green_tasks_say(in, ring, t) && krait_tasks_say(in, ring, t);
}

/* A deep stack may need more room than the ring has, mostly after a loss: then it is said in parts, the
 * outermost frames first. Each part takes up where the one before stopped, or where the stack has changed
 * since. `said` is NULL without memory. */
static bool say_frames(struct krait_interp *in, struct krait_ring *ring, uint64_t t, PyObject *frame,
                       struct frames *said)
{
    KRAIT_CLEANUP(frames_done) struct frames frames = { 0 };
    const struct krait_ring *mine = krait_this_ring;
    const uint8_t *cur = ring->cur;
    bool whole = frames_from(in, frame, &frames);
    if (!whole || mine != krait_this_ring) /* naming ran Python code, which stopped the recording or forked */
        return false;
    t = krait_thread_time_after(cur, t);
    bool was_paused = said && end_pause(in, ring);
    uint32_t why = atomic_exchange(&ring->resync, 0);
    bool anew = why & KRAIT_RESYNC_ANEW;
    if (said && why & ~(uint32_t)KRAIT_RESYNC_STACK)
        krait_greenlets_forget();
    size_t i = said && !anew ? count_same(said, &frames) : 0;
    t = KRAIT_MAX(t, krait_gil_last());
    bool all = put_frames(&in->agent->writer, ring, t, &frames, &i);
    if (said) {
        frames_done(said);
        if (!all) {
            *said = frames;
            said->n = i;
            frames = (struct frames){ 0 };
        }
    }
    if (was_paused)
        krait_tasks_resumed(in, frame);
    if (mine != krait_this_ring) /* that ran Python code too */
        return false;
    if (all && said && (was_paused || why & ~(uint32_t)KRAIT_RESYNC_STACK))
        all = say_tasks(in, ring, t);
    return all;
}

static struct frames *said_of_this_thread(void)
{
    struct thread_entry *entry = pthread_getspecific(thread_key);
    return entry ? &entry->said : NULL;
}

PyObject *krait_thread_frame(enum krait_begin_what top)
{
    PyObject *frame = (PyObject *)PyEval_GetFrame();
    if (frame && top == KRAIT_TOP_IS_NEW)
        return krait_frame_back(frame);
    Py_XINCREF(frame);
    return frame;
}

static bool is_left_out(struct krait_interp *in, PyObject *frame)
{
    PyObject *code = krait_frame_code(frame);
    const struct krait_code *slot = code ? krait_code_find(in, code) : NULL;
    Py_XDECREF(code);
    return slot && slot->flags & KRAIT_CODE_OMIT;
}

bool krait_thread_say_stack(struct krait_interp *in, uint64_t t, enum krait_begin_what top)
{
    uint64_t begin = krait_writer_now(&in->agent->writer);
    PyObject *frame = krait_thread_frame(top);
    bool all = say_frames(in, krait_this_ring, t, frame, said_of_this_thread());
    Py_XDECREF(frame);
    in->governor.said_ticks += krait_writer_now(&in->agent->writer) - begin;
    return all;
}

void krait_thread_say_top(struct krait_interp *in, uint64_t t, enum krait_begin_what top)
{
    KRAIT_CLEANUP(frames_done) struct frames frames = { 0 };
    struct krait_ring *ring = krait_this_ring;
    const uint8_t *cur = ring->cur;
    PyObject *frame = krait_thread_frame(top);
    bool whole = frames_from(in, frame, &frames); /* names what is new */
    bool is_recorded = frame && !is_left_out(in, frame) && frames.n;
    Py_XDECREF(frame);
    if (!whole || !is_recorded || ring != krait_this_ring || atomic_load(&ring->resync))
        return; /* the next event says the whole stack, or there is none */
    size_t i = frames.n - 1;
    t = krait_thread_time_after(cur, KRAIT_MAX(t, krait_gil_last()));
    put_frames(&in->agent->writer, ring, t, &frames, &i);
}

void krait_thread_settle(struct krait_interp *in)
{
    struct krait_ring *ring = krait_this_ring;
    struct krait_writer *writer = &in->agent->writer;
    if (ring != &krait_no_ring && krait_thread_say_stack(in, krait_writer_now(writer), KRAIT_TOP_IS_OLD))
        put_frames(writer, ring, krait_writer_now(writer), &(struct frames){ 0 }, &(size_t){ 0 });
}

/* ---- krait's own functions ----
 *
 * Hooks that look at each function pass over krait's own as over all that is left out. Those that do not look
 * are kept from telling by a ring without room: then each event comes by the slow path, which asks here. */

static __thread bool suppressed; /* until a look at the frames says otherwise */

void krait_thread_suppress(struct krait_interp *in)
{
    if (in->agent->selective)
        return;
    krait_thread_break();
    suppressed = true;
}

bool krait_thread_is_suppressed(struct krait_interp *in, enum krait_begin_what top)
{
    if (!suppressed || in->agent->selective)
        return false;
    PyObject *frame = krait_thread_frame(top);
    suppressed = false;
    while (frame && !suppressed) {
        suppressed = is_left_out(in, frame);
        PyObject *back = krait_frame_back(frame);
        Py_DECREF(frame);
        frame = back;
    }
    Py_XDECREF(frame);
    return suppressed;
}

/* ---- threads that run already ---- */

/* Of a thread that has one since recording was switched off. */
static struct krait_ring *ring_of(uint32_t tid)
{
    struct krait_ring *found = NULL;
    pthread_mutex_lock(&entries_lock);
    for (struct thread_entry *e = atomic_load(&thread_entries); e && tid; e = e->next) {
        struct krait_ring **tls = atomic_load(&e->tls);
        found = tls && *tls != &krait_no_ring && (*tls)->tid == tid ? *tls : found;
    }
    pthread_mutex_unlock(&entries_lock);
    pthread_mutex_lock(&waiting_lock);
    for (size_t i = 0; i < waiting_count; i++)
        found = waiting[i].ring && waiting[i].ring->tid == tid ? waiting[i].ring : found;
    pthread_mutex_unlock(&waiting_lock);
    return found;
}

/* A ring that its thread finds at its first event. NULL without memory or a free ring. */
static struct krait_ring *ring_for(struct krait_interp *in, unsigned long ident, uint32_t tid)
{
    struct krait_ring *ring = NULL;
    pthread_mutex_lock(&waiting_lock);
    if (tid && KRAIT_GROW(waiting, waiting_cap, waiting_count + 1))
        ring = krait_writer_ring_new(&in->agent->writer, KRAIT_RING_THREAD, tid);
    if (ring)
        waiting[waiting_count++] = (struct waiting){ .thread = (pthread_t)ident, .ring = ring };
    pthread_mutex_unlock(&waiting_lock);
    return ring;
}

/* Runs no Python code: the thread waits for the GIL until its stack is written. A ring that it has since the recording
 * was switched off gets its stack once more before the next event. */
static void put_seed(struct krait_interp *in, unsigned long ident, uint32_t tid, const struct frames *frames,
                     const char *name)
{
    struct krait_writer *writer = &in->agent->writer;
    struct krait_ring *own = ring_of(tid);
    if (own && !atomic_load(&own->resync))
        return; /* it has had its first event meanwhile */
    struct krait_ring *ring = own ? own : ring_for(in, ident, tid);
    if (!ring)
        return; /* its stack is said at its first event */
    atomic_store(&ring->resync, 0);
    uint64_t t = KRAIT_MAX(krait_writer_now(writer), krait_gil_last());
    if (!put_frames(writer, ring, t, frames, &(size_t){ 0 }) || own)
        resync(ring);
    if (!own && name)
        write_name(in, tid, name);
}

static void seed_one(struct krait_interp *in, unsigned long ident, PyObject *frame)
{
    KRAIT_CLEANUP(frames_done) struct frames frames = { 0 };
    const struct krait_ring *mine = krait_this_ring;
    char text[NAME_MAX_BYTES];
    bool whole = frames_from(in, frame, &frames); /* may run Python code, and the thread go on meanwhile */
    PyObject *thread = krait_active_thread(ident);
    uint32_t tid = krait_native_id(ident, thread);
    const char *name = thread && thread_name(thread, text)    ? text
                       : !thread && tid == (uint32_t)getpid() ? "MainThread"
                                                              : NULL;
    /* Looked up again: a thread that went on may run in another interpreter now, and write to its ring. */
    if (whole && mine == krait_this_ring && krait_agent_records(in) && krait_is_alone())
        put_seed(in, ident, tid, &frames, name);
    Py_XDECREF(thread);
}

void krait_threads_seed(struct krait_interp *in)
{
    PyObject *frames = krait_frames_of_threads();
    PyObject *key, *frame;
    Py_ssize_t at = 0;
    bool is_dict = frames && PyDict_Check(frames);
    if (is_dict)
        krait_work_look(in, frames);
    while (is_dict && PyDict_Next(frames, &at, &key, &frame)) {
        unsigned long ident = PyLong_AsUnsignedLong(key);
        if (ident != (unsigned long)pthread_self())
            seed_one(in, ident, frame);
    }
    Py_XDECREF(frames);
    PyErr_Clear();
}

/* Takes rings of threads that have ended without an event out of those that wait, and returns how many. A ring that was
 * taken leaves its place. */
static size_t take_ended(struct krait_ring **ended, size_t most)
{
    static size_t next;
    size_t n = 0;
    pthread_mutex_lock(&waiting_lock);
    for (size_t tries = KRAIT_MIN(most, waiting_count); tries && waiting_count; tries--) {
        struct waiting *w = &waiting[next++ % waiting_count];
        bool ends = w->ring && syscall(SYS_tgkill, getpid(), w->ring->tid, 0) && errno == ESRCH;
        if (ends)
            ended[n++] = w->ring;
        if (ends || !w->ring)
            *w = waiting[--waiting_count];
    }
    pthread_mutex_unlock(&waiting_lock);
    return n;
}

void krait_threads_sweep(void)
{
    struct krait_ring *ended[64];
    int saved = errno;
    size_t n = take_ended(ended, KRAIT_ARRAY_LEN(ended));
    errno = saved;
    for (size_t i = 0; i < n; i++) {
        close_ring(ended[i]);
        krait_writer_ring_close(ended[i]);
    }
}

void krait_thread_seed(struct krait_interp *in)
{
    if (krait_this_ring == &krait_no_ring && !krait_thread_begin(in))
        return;
    krait_thread_say_stack(in, krait_writer_now(&in->agent->writer), KRAIT_TOP_IS_OLD);
    krait_thread_suppress(in);
}
