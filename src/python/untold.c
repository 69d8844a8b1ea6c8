/* SPDX-License-Identifier: Apache-2.0
 *
 * Unwinds of frames whose begin was never told. 3.11 is seen to in profile.c.
 *
 * From 3.13 on INSTRUMENTED_RESUME runs signal handlers before it calls PY_START or PY_RESUME
 * (Python/bytecodes.c: _CHECK_PERIODIC before _MONITOR_RESUME). When one raises, PY_UNWIND comes for a frame
 * whose begin never came. A function then unwinds from its RESUME instruction. A generator's body has a
 * handler around it, from which it unwinds; but its traceback says where the exception was raised. That is at
 * a RESUME also where somebody threw the exception into it, which PY_THROW told: what is open in the thread's
 * own packet tells the two apart.
 *
 * What stands before the first RESUME 0 has not begun either: from 3.15 on a generator expression asks for
 * its iterator there, which may raise.
 */
#include "python/codes.h"
#include "python/compat.h"

#include <limits.h>

static uint8_t resume_opcode; /* 0 before 3.13 */

/* The opcode of RESUME is another in each version: it is what any code begins with. */
void krait_untold_init(void)
{
    enum { EVAL_INPUT = 258 }; /* Py_eval_input */
    if (resume_opcode || krait_compat.version < 0x030d)
        return;
    PyObject *code = Py_CompileString("0", "<krait>", EVAL_INPUT);
    PyObject *bytes = code ? PyObject_GetAttrString(code, "co_code") : NULL;
    if (bytes && PyBytes_Check(bytes) && PyBytes_Size(bytes) > 0)
        resume_opcode = (uint8_t)PyBytes_AsString(bytes)[0];
    Py_XDECREF(bytes);
    Py_XDECREF(code);
    PyErr_Clear();
}

/* ---- where it was raised ---- */

static long attr_long(PyObject *obj, const char *name)
{
    PyObject *value = PyObject_GetAttrString(obj, name);
    long n = value && PyLong_Check(value) ? PyLong_AsLong(value) : -1;
    Py_XDECREF(value);
    PyErr_Clear();
    return n;
}

/* Whether the instruction at `offset` is a RESUME or comes before the one that tells of the start. Cache
 * entries read as 0 in co_code. */
static bool is_before_begin(PyObject *code, Py_ssize_t offset)
{
    PyObject *bytes = PyObject_GetAttrString(code, "co_code");
    bool there = bytes && PyBytes_Check(bytes) && offset >= 0 && offset + 1 < PyBytes_Size(bytes);
    const uint8_t *at = there ? (const uint8_t *)PyBytes_AsString(bytes) : NULL;
    Py_ssize_t start = 0;
    while (at && start < offset && (at[start] != resume_opcode || at[start + 1] != 0))
        start += 2;
    bool before = at && (start >= offset || at[offset] == resume_opcode);
    Py_XDECREF(bytes);
    PyErr_Clear();
    return before;
}

/* The offset at which the innermost frame of the traceback raised; -1 where there is none. */
static long raised_at(PyObject *exception)
{
    PyObject *traceback = PyObject_GetAttrString(exception, "__traceback__");
    long offset = traceback && traceback != Py_None ? attr_long(traceback, "tb_lasti") : -1;
    Py_XDECREF(traceback);
    PyErr_Clear();
    return offset;
}

/* What an instruction of a function is, looked up once: instructions stand at even offsets. */
enum place {
    PLACE_SUSPENDS = 1 << 0, /* of a generator or its like */
    PLACE_BEFORE = 1 << 1,   /* what is raised here may be raised before the begin is told */
};

static uint64_t place_at(struct krait_interp *in, uint32_t id, PyObject *code, long offset)
{
    uint64_t key = (uint64_t)id << 32 | (uint32_t)offset;
    const uint64_t *known = krait_map_get(&in->resumes, key);
    if (known)
        return *known;
    uint64_t place = attr_long(code, "co_flags") & KRAIT_CO_SUSPENDS ? PLACE_SUSPENDS : 0;
    place |= is_before_begin(code, offset) ? PLACE_BEFORE : 0;
    krait_map_put(&in->resumes, key, place);
    return place;
}

/* ---- what was thrown ---- */

/* The generators' code and what was thrown into them, by address: compared, never followed. What is gone may
 * have left both addresses to others; then an unwind is told that need not be. */
struct thrown_into {
    const PyObject *code, *exception;
};

static __thread struct {
    struct thrown_into last[8];
    unsigned next;
} thrown;

void krait_untold_throw(const PyObject *code, const PyObject *exception)
{
    thrown.last[thrown.next++ % KRAIT_ARRAY_LEN(thrown.last)] = (struct thrown_into){ code, exception };
}

static bool was_thrown(const PyObject *code, const PyObject *exception)
{
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(thrown.last); i++) {
        if (thrown.last[i].exception == exception && thrown.last[i].code == code)
            return true;
    }
    return false;
}

/* ---- who goes on ----
 *
 * 3.11: a coroutine that awaits an asynchronous generator goes on without a RESUME when what was thrown into
 * the generator ends it or makes it yield. The object that aclose() or asend() gave stands between the two:
 * the generator's frame does not name the coroutine. The thread's next event comes from it, or tells its
 * throw.
 */

static __thread struct {
    uint64_t t; /* 0: nobody */
    const PyObject *back;
} going_on;

void krait_untold_goes_on(uint64_t t, const PyObject *back)
{
    struct krait_ring *ring = krait_this_ring;
    if (ring == &krait_no_ring)
        return;
    going_on.t = t;
    going_on.back = back;
    ring->window = UINT64_MAX; /* the next event comes by the slow path */
}

bool krait_untold_pending(void)
{
    return going_on.t != 0;
}

uint64_t krait_untold_resumed(PyObject *code)
{
    uint64_t t = going_on.t;
    going_on.t = 0;
    return code != going_on.back && krait_code_suspends(code) ? t : 0;
}

/* ---- what the thread's packet says ---- */

enum { DEPTH_MAX = 512 };

struct opened {
    uint32_t code[DEPTH_MAX];
    size_t depth;
    bool deeper; /* than there is room for: nothing is known */
};

static void follow(struct opened *opened, uint32_t event, uint32_t code)
{
    if (event > KRAIT_EVENT_python_stack) /* of no call */
        return;
    if (krait_event_payload_bytes[event] == sizeof(code)) { /* a begin; ends have no payload */
        opened->deeper |= opened->depth == DEPTH_MAX;
        if (opened->deeper)
            return;
        opened->code[opened->depth++] = code;
    } else if (krait_event_payload_bytes[event] == 0) {
        opened->depth -= opened->depth > 0;
    } else { /* the stack is said: what is open is not known from here */
        opened->depth = 0;
    }
}

/* Reads the event at `at`; returns its size. */
static size_t read_event(const uint8_t *at, uint32_t *event, uint32_t *code)
{
    struct krait_event_extended head;
    size_t n = sizeof(uint32_t);
    memcpy(&head.tag, at, sizeof(head.tag));
    memcpy(event, at, sizeof(*event));
    *event &= KRAIT_CTF_ID_MASK;
    if (*event == KRAIT_CTF_EXTENDED) {
        memcpy(&head, at, sizeof(head));
        n = sizeof(head);
        *event = head.id & KRAIT_CTF_ID_MASK;
    }
    memcpy(code, at + n, sizeof(*code)); /* a ring's margin follows its last event */
    return n + krait_event_payload_bytes[*event];
}

bool krait_has_begun(uint32_t id)
{
    const struct krait_ring *ring = krait_this_ring;
    struct opened opened;
    opened.depth = 0;
    opened.deeper = false;
    if (!ring->limit || ring->open_packet == UINT32_MAX)
        return true;
    size_t packet_bytes = krait_agent.writer.shm.control->packet_bytes;
    const uint8_t *at = ring->packets + ring->open_packet * packet_bytes + sizeof(struct krait_packet_head);
    while (at < ring->cur) {
        uint32_t read, code;
        size_t n = read_event(at, &read, &code);
        if (n >= KRAIT_PAYLOAD_VARIES)
            return true;
        follow(&opened, read, code);
        at += n;
    }
    if (!opened.depth || opened.deeper)
        return true;
    /* With call sites a function has an id for each line. */
    return krait_agent.call_sites || opened.code[opened.depth - 1] == id;
}

bool krait_untold(struct krait_interp *in, PyObject *code, PyObject *offset, PyObject *exception)
{
    if (!resume_opcode)
        return false;
    const struct krait_code *slot = krait_code_find(in, code);
    if (!slot || !slot->id)
        return !slot; /* never seen to begin, or left out */
    uint32_t id = slot->id;
    uint64_t place = place_at(in, id, code, PyLong_AsSsize_t(offset));
    if (!(place & PLACE_SUSPENDS))
        return place & PLACE_BEFORE;
    long raised = raised_at(exception);
    bool before = raised >= 0 && place_at(in, id, code, raised) & PLACE_BEFORE;
    return before && !was_thrown(code, exception) && !krait_has_begun(id);
}
