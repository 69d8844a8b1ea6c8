/* SPDX-License-Identifier: Apache-2.0
 *
 * A thread's first event gives it a ring; its end gives the ring back. Threads that run already when a
 * recording starts get theirs from the thread that starts it, with their stacks, and find them at their own
 * first event.
 */
#include "python/codes.h"
#include "python/compat.h"
#include "python/gil.h"

#include <string.h>
#include <sys/syscall.h>

struct krait_ring krait_no_ring;
__thread struct krait_ring *krait_this_ring __attribute__((tls_model("initial-exec"))) = &krait_no_ring;

/* Who has a ring: so that a stop can take the rings away from threads that run on. Entries are used again,
 * never freed: `tls` is NULL in a free one. */
struct thread_entry {
    struct krait_ring **_Atomic tls;
    struct thread_entry *next;
    uint64_t none_at; /* the clock's window in which no ring was free; else 0 */
};

static struct thread_entry *_Atomic thread_entries;
static pthread_key_t thread_key;

/* Rings of threads that have not come by yet, by pthread_self. */
static struct waiting {
    pthread_t thread;
    struct krait_ring *ring;
} waiting[256];
static size_t waiting_count;

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
    for (struct thread_entry *e = atomic_load(&thread_entries); e; e = e->next) {
        if (atomic_load(&e->tls) != &krait_this_ring)
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
    waiting_count = 0;
}

void krait_thread_resync(void)
{
    struct krait_ring *ring = krait_this_ring;
    if (ring == &krait_no_ring)
        return;
    atomic_store(&ring->resync, 1);
    ring->window = UINT64_MAX; /* to the slow path, where resync is looked at */
}

static void break_ring(struct krait_ring *ring)
{
    if (ring == &krait_no_ring)
        return;
    atomic_store(&ring->resync, 1);
    ring->limit = ring->limit ? ring->cur : NULL;
}

/* Other threads' rings are written here: with the GIL held their owners do not. */
void krait_threads_break(void)
{
    pthread_mutex_lock(&entries_lock);
    for (struct thread_entry *e = atomic_load(&thread_entries); e; e = e->next) {
        struct krait_ring **tls = atomic_load(&e->tls);
        if (tls)
            break_ring(*tls);
    }
    pthread_mutex_unlock(&entries_lock);
}

void krait_thread_break(void)
{
    break_ring(krait_this_ring);
}

/* ---- names ---- */

enum { NAME_MAX_BYTES = 200 };

/* A hash of this thread's name: the name itself would be much for the static TLS block. */
static __thread uint64_t told_name;

static uint64_t hash_name(const char *name)
{
    return krait_hash_bytes(name, strlen(name));
}

static void write_name(struct krait_interp *in, uint32_t tid, const char *name)
{
    struct krait_payload p = { 0 };
    krait_payload_u32(&p, tid);
    krait_payload_str(&p, name, NAME_MAX_BYTES - 1);
    if (in->definitions)
        krait_writer_event(&in->agent->writer, in->definitions, KRAIT_EVENT_thread_name, &p);
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

/* threading's module object if the program has imported it; borrowed. */
static PyObject *threading_module(void)
{
    PyObject *modules = PySys_GetObject("modules"); /* PyImport_GetModuleDict kills one that is ending, 3.8 */
    return modules && PyDict_Check(modules) ? PyDict_GetItemString(modules, "threading") : NULL;
}

/* threading._active[ident]; new reference, NULL when not there. */
static PyObject *active_thread(unsigned long ident)
{
    PyObject *module = threading_module();
    PyObject *active = module ? PyObject_GetAttrString(module, "_active") : NULL;
    PyObject *key = PyLong_FromUnsignedLong(ident);
    PyObject *thread = active && key && PyDict_Check(active) ? PyDict_GetItem(active, key) : NULL;
    Py_XINCREF(thread);
    Py_XDECREF(key);
    Py_XDECREF(active);
    PyErr_Clear();
    return thread;
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
    PyObject *module = threading_module();
    PyObject *type = module ? PyObject_GetAttrString(module, "Thread") : NULL;
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
    PyObject *thread = active_thread((unsigned long)pthread_self());
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
    PyObject *thread = active_thread((unsigned long)pthread_self());
    if (thread && thread_name(thread, name) && hash_name(name) != told_name)
        tell_name(in, (uint32_t)syscall(SYS_gettid), name);
    Py_XDECREF(thread);
}

/* ---- rings ---- */

static struct krait_ring *waiting_ring(void)
{
    for (size_t i = 0; i < waiting_count; i++) {
        if (waiting[i].ring && pthread_equal(waiting[i].thread, pthread_self())) {
            struct krait_ring *ring = waiting[i].ring;
            waiting[i].ring = NULL;
            return ring;
        }
    }
    return NULL;
}

bool krait_thread_begin(struct krait_interp *in)
{
    struct thread_entry *entry = pthread_getspecific(thread_key);
    if (!entry) {
        entry = new_entry();
        if (!entry || pthread_setspecific(thread_key, entry))
            return false;
    }
    struct krait_ring *ring = waiting_ring();
    if (ring) {
        krait_this_ring = ring;
        krait_gil_drop_pending();
        return true;
    }
    /* Looking through all rings takes a while: not more often than the clock's window changes. */
    uint64_t window = krait_writer_now(&in->agent->writer) >> KRAIT_CTF_TS_BITS;
    uint32_t tid = (uint32_t)syscall(SYS_gettid);
    ring =
        entry->none_at == window ? NULL : krait_writer_ring_new(&in->agent->writer, KRAIT_RING_THREAD, tid);
    if (!ring) {
        entry->none_at = window;
        krait_writer_lost(&in->agent->writer, KRAIT_lost_reason_no_ring, 1);
        return false;
    }
    atomic_store(&ring->resync, 1);
    krait_this_ring = ring;
    krait_gil_flush();
    name_this_thread(in, tid);
    return true;
}

/* ---- stacks ---- */

enum { STACK_MAX = 2048 };

static bool put_frames(struct krait_writer *writer, struct krait_ring *ring, uint64_t t, const uint32_t *ids,
                       size_t n)
{
    enum { BYTES = sizeof(struct krait_event_extended) + 6 };
    for (size_t i = 0; i <= n; i++) {
        if (krait_writer_room(writer, ring, t, BYTES) == KRAIT_ROOM_NONE)
            return false;
        bool last = i == n;
        struct krait_payload p = { 0 };
        if (!last)
            krait_payload_u32(&p, ids[n - 1 - i]);
        krait_payload_u16(&p, (uint16_t)KRAIT_MIN(i, (size_t)UINT16_MAX));
        krait_writer_put_extended(ring, t, last ? KRAIT_EVENT_python_stack : KRAIT_EVENT_python_frame,
                                  p.bytes, p.n);
    }
    return true;
}

/* Ids of the frames from `frame` outwards, innermost first; frames that are left out are not among them.
 * Deeper stacks than STACK_MAX keep their innermost part. Steals `frame`. */
static size_t frame_ids(struct krait_interp *in, PyObject *frame, uint32_t *ids)
{
    size_t n = 0;
    while (frame) {
        PyObject *code = krait_frame_code(frame);
        struct krait_code *slot = code ? krait_code_find(in, code) : NULL;
        if (code && (!slot || (!slot->id && !(slot->flags & KRAIT_CODE_OMIT))))
            slot = krait_code_define(in, code, frame);
        PyObject *back = krait_frame_back(frame);
        if (n < STACK_MAX && !(slot && slot->flags & KRAIT_CODE_OMIT)) {
            uint32_t id = slot ? slot->id : 0;
            ids[n++] = id && in->agent->call_sites ? krait_code_at_site(in, id, NULL, code, back) : id;
        }
        Py_XDECREF(code);
        Py_DECREF(frame);
        frame = back;
    }
    return n;
}

static bool say_frames(struct krait_interp *in, struct krait_ring *ring, uint64_t t, PyObject *frame)
{
    KRAIT_AUTO_FREE uint32_t *ids = calloc(STACK_MAX, sizeof(*ids));
    if (!ids) {
        Py_XDECREF(frame);
        return false;
    }
    const struct krait_ring *mine = krait_this_ring;
    size_t n = frame_ids(in, frame, ids);
    if (mine != krait_this_ring) /* naming ran Python code, which stopped the recording or forked */
        return false;
    atomic_store_explicit(&ring->resync, 0, memory_order_relaxed);
    return put_frames(&in->agent->writer, ring, KRAIT_MAX(t, krait_gil_last()), ids, n);
}

PyObject *krait_thread_frame(enum krait_begin_what top)
{
    PyObject *frame = (PyObject *)PyEval_GetFrame();
    if (frame && top == KRAIT_TOP_IS_NEW)
        return krait_frame_back(frame);
    Py_XINCREF(frame);
    return frame;
}

bool krait_thread_say_stack(struct krait_interp *in, uint64_t t, enum krait_begin_what top)
{
    return say_frames(in, krait_this_ring, t, krait_thread_frame(top));
}

void krait_thread_settle(struct krait_interp *in)
{
    struct krait_ring *ring = krait_this_ring;
    struct krait_writer *writer = &in->agent->writer;
    if (ring != &krait_no_ring && krait_thread_say_stack(in, krait_writer_now(writer), KRAIT_TOP_IS_OLD))
        put_frames(writer, ring, krait_writer_now(writer), NULL, 0);
}

/* ---- krait's own functions ----
 *
 * Hooks that look at each function pass over krait's own as over all that is left out. Those that do not look
 * are kept from telling by a ring without room: then each event comes by the slow path, which asks here. */

static __thread bool hushed; /* until a look at the frames says otherwise */

void krait_thread_hush(struct krait_interp *in)
{
    if (in->agent->selective)
        return;
    krait_thread_break();
    hushed = true;
}

static bool is_left_out(struct krait_interp *in, PyObject *frame)
{
    PyObject *code = krait_frame_code(frame);
    const struct krait_code *slot = code ? krait_code_find(in, code) : NULL;
    Py_XDECREF(code);
    return slot && slot->flags & KRAIT_CODE_OMIT;
}

bool krait_thread_is_hushed(struct krait_interp *in, enum krait_begin_what top)
{
    if (!hushed || in->agent->selective)
        return false;
    PyObject *frame = krait_thread_frame(top);
    hushed = false;
    while (frame && !hushed) {
        hushed = is_left_out(in, frame);
        PyObject *back = krait_frame_back(frame);
        Py_DECREF(frame);
        frame = back;
    }
    Py_XDECREF(frame);
    return hushed;
}

/* ---- threads that run already ---- */

static uint32_t native_id(PyObject *thread)
{
    PyObject *value = PyObject_GetAttrString(thread, "_native_id"); /* 3.8 on */
    unsigned long tid = value && PyLong_Check(value) ? PyLong_AsUnsignedLong(value) : 0;
    Py_XDECREF(value);
    if (PyErr_Occurred())
        PyErr_Clear();
    return (uint32_t)tid;
}

static void seed_one(struct krait_interp *in, unsigned long ident, PyObject *frame)
{
    char name[NAME_MAX_BYTES];
    PyObject *thread = active_thread(ident);
    uint32_t tid = thread ? native_id(thread) : 0;
    bool seen = tid && waiting_count < KRAIT_ARRAY_LEN(waiting);
    struct krait_ring *ring = seen ? krait_writer_ring_new(&in->agent->writer, KRAIT_RING_THREAD, tid) : NULL;
    if (ring) {
        Py_INCREF(frame);
        say_frames(in, ring, krait_writer_now(&in->agent->writer), frame);
        if (thread_name(thread, name))
            write_name(in, tid, name);
    }
    Py_XDECREF(thread);
    if (!ring || waiting_count == KRAIT_ARRAY_LEN(waiting))
        return; /* its stack is said at its first event */
    waiting[waiting_count++] = (struct waiting){ .thread = (pthread_t)ident, .ring = ring };
}

void krait_threads_seed(struct krait_interp *in)
{
    PyObject *frames = krait_compat.current_frames ? krait_compat.current_frames() : NULL;
    if (!frames || !PyDict_Check(frames)) {
        PyErr_Clear();
        Py_XDECREF(frames);
        return;
    }
    PyObject *key, *frame;
    Py_ssize_t at = 0;
    while (PyDict_Next(frames, &at, &key, &frame)) {
        unsigned long ident = PyLong_AsUnsignedLong(key);
        if (ident != (unsigned long)pthread_self())
            seed_one(in, ident, frame);
    }
    Py_DECREF(frames);
    PyErr_Clear();
}

void krait_thread_seed(struct krait_interp *in)
{
    if (krait_this_ring == &krait_no_ring && !krait_thread_begin(in))
        return;
    krait_thread_say_stack(in, krait_writer_now(&in->agent->writer), KRAIT_TOP_IS_OLD);
    krait_thread_hush(in);
}
