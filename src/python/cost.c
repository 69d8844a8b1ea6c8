/* SPDX-License-Identifier: Apache-2.0
 *
 * A hook reads the clock once: last at a begin, first at an end. What comes before that reading at a begin, and after it at
 * an end, is time of the caller; the rest lies inside the call. Readers subtract both (analysis/cost.h), so they must know
 * how long they are. That depends on the interpreter, the processor and the kind of hooks, so it is measured here, once
 * in each program that is executed:
 *
 *     python():  f(); f(); ... f()        c():  n(); n(); ... n()
 *
 * are called from C, before the hooks are there and with them. f has no body and n is written in C and does nothing. What
 * is added by the hooks is inside and outside together. What lies between the recorded begin and end of f, or of n, is
 * inside, but for the time of n itself, which is timed apart; that of f is a few nanoseconds. The hooks are the real ones;
 * they write into a ring of this file.
 *
 * A process that was attached to is not measured: other threads run there, and other tools would see the calls.
 */
#include "python/cost.h"

#include "base/buf.h"
#include "python/codes.h"
#include "python/packet.h"

#include <string.h>

enum {
    CALLS = 16,
    WARM = 32, /* the interpreter specialises what has run a few times */
    ROUNDS = 25,
    RING_BYTES = 16 * (CALLS + 1) + KRAIT_RING_MARGIN,
    OWN_ID = 1, /* of all functions here; nobody reads it */
};

/* Ticks of each round. */
struct rounds {
    uint64_t ticks[ROUNDS];
};

struct krait_cost_trial {
    PyObject *globals, *no_op;
    PyObject *functions[2];  /* python and c */
    PyObject *codes[3];      /* of f, python and c */
    struct rounds bare[2];   /* without hooks */
    struct rounds inside[2]; /* between begins and ends of CALLS calls */
    struct rounds no_op_itself;
    struct krait_ring ring;
    uint8_t bytes[RING_BYTES];
};

static __thread const struct krait_ring *tried; /* the trial's, while its calls run */

bool krait_cost_is_tried(void)
{
    return KRAIT_UNLIKELY(tried != NULL);
}

static PyObject *nothing(PyObject *self, PyObject *none)
{
    (void)self;
    (void)none;
    Py_RETURN_NONE;
}

static PyMethodDef no_op = { "n", nothing, METH_NOARGS, NULL };

static PyObject *compile_calls(void)
{
    KRAIT_AUTO_BUF text = { 0 };
    krait_buf_str(&text, "def f():\n pass\n");
    for (int c = 0; c < 2; c++) {
        krait_buf_str(&text, c ? "def c():\n " : "def python():\n ");
        for (int i = 0; i < CALLS; i++)
            krait_buf_str(&text, c ? "n();" : "f();");
        krait_buf_char(&text, '\n');
    }
    krait_buf_char(&text, '\0');
    return text.failed ? NULL : Py_CompileString((const char *)text.data, "<krait>", KRAIT_COMPILE_FILE);
}

static PyObject *code_of(PyObject *function)
{
    return function ? PyObject_GetAttrString(function, "__code__") : NULL;
}

static bool make_functions(struct krait_cost_trial *trial)
{
    PyObject *code = compile_calls();
    trial->globals = PyDict_New();
    trial->no_op = PyCFunction_NewEx(&no_op, NULL, NULL);
    bool ready = code && trial->globals && trial->no_op &&
                 PyDict_SetItemString(trial->globals, "__builtins__", trial->globals) == 0 &&
                 PyDict_SetItemString(trial->globals, "n", trial->no_op) == 0;
    PyObject *done = ready ? PyEval_EvalCode(code, trial->globals, trial->globals) : NULL;
    Py_XDECREF(code);
    Py_XDECREF(done);
    if (!done)
        return false;
    static const char *const names[] = { "python", "c", "f" };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(names); i++) {
        PyObject *function = PyDict_GetItemString(trial->globals, names[i]); /* borrowed */
        if (i < KRAIT_ARRAY_LEN(trial->functions))
            trial->functions[i] = function;
        trial->codes[i] = code_of(function);
        if (!trial->codes[i])
            return false;
    }
    return true;
}

static void trial_free(struct krait_cost_trial *trial)
{
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(trial->codes); i++)
        Py_XDECREF(trial->codes[i]);
    if (trial->globals)
        PyDict_Clear(trial->globals); /* its functions name it */
    Py_XDECREF(trial->globals);
    Py_XDECREF(trial->no_op);
    PyErr_Clear();
    free(trial);
}

/* ---- timing ---- */

/* Returns what one call of the function took, ticks; 0 if it failed. */
static uint64_t time_round(struct krait_interp *in, PyObject *function)
{
    uint64_t begin = krait_writer_now(&in->agent->writer);
    PyObject *done = PyObject_CallObject(function, NULL);
    uint64_t ticks = krait_writer_now(&in->agent->writer) - begin;
    Py_XDECREF(done);
    return done ? ticks : 0;
}

static bool time_bare(struct krait_interp *in, PyObject *function, struct rounds *rounds)
{
    for (int i = 0; i < WARM; i++)
        time_round(in, function);
    bool all = true;
    for (int i = 0; i < ROUNDS; i++)
        all &= (rounds->ticks[i] = time_round(in, function)) != 0;
    return all;
}

/* CALLS calls of n without the interpreter's loop. */
static bool time_no_op(struct krait_interp *in, struct krait_cost_trial *trial)
{
    bool all = true;
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t begin = krait_writer_now(&in->agent->writer);
        for (int n = 0; n < CALLS; n++) {
            PyObject *done = PyObject_CallObject(trial->no_op, NULL);
            all &= done != NULL;
            Py_XDECREF(done);
        }
        trial->no_op_itself.ticks[i] = krait_writer_now(&in->agent->writer) - begin;
    }
    return all;
}

/* The least: what interrupts a round, or slows it down, is not to be taken off a program that it did not slow down. */
static double least(const struct rounds *rounds)
{
    uint64_t ticks = rounds->ticks[0];
    for (int i = 1; i < ROUNDS; i++)
        ticks = KRAIT_MIN(ticks, rounds->ticks[i]);
    return (double)ticks;
}

/* Of one round: the sum of the times between a begin and the end that follows it at once. False if calls are missing,
 * since the ring was full or the clock's upper bits changed. */
static bool sum_inside(const struct krait_cost_trial *trial, uint64_t begin, uint64_t *sum)
{
    struct krait_cursor cursor = { trial->bytes, trial->ring.cur };
    struct krait_packet_event e = { .head = { .t = begin } };
    uint64_t last_begin = 0;
    int calls = 0;
    *sum = 0;
    while (cursor.at < cursor.end && krait_packet_read(&cursor, &e)) {
        bool is_begin = krait_event_bit(e.head.id) & KRAIT_CALL_BEGINS;
        if (!is_begin && last_begin) {
            *sum += e.head.t - last_begin;
            calls++;
        }
        last_begin = is_begin ? e.head.t : 0;
    }
    return calls == CALLS;
}

/* Returns whether enough rounds were whole; the others count as the last whole one before them. */
static bool time_recorded(struct krait_interp *in, struct krait_cost_trial *trial, int c,
                          struct rounds *rounds)
{
    int whole = 0;
    uint64_t ticks = 0, inside = 0;
    for (int i = -WARM; i < ROUNDS; i++) {
        uint64_t begin = krait_writer_now(&in->agent->writer), sum;
        trial->ring.cur = trial->bytes;
        trial->ring.window = begin >> KRAIT_CTF_TS_BITS;
        uint64_t took = time_round(in, trial->functions[c]);
        if (took && sum_inside(trial, begin, &sum)) {
            ticks = took;
            inside = sum;
            whole += i >= 0;
        }
        if (i >= 0) {
            rounds->ticks[i] = ticks;
            trial->inside[c].ticks[i] = inside;
        }
    }
    return whole > ROUNDS / 2;
}

/* ---- what follows from it ---- */

static uint32_t as_ns(const struct krait_interp *in, double ticks)
{
    double ns = ticks * (double)KRAIT_NS_PER_S / (double)in->agent->writer.shm.control->clock_freq;
    return ns > 0 ? (uint32_t)(ns + 0.5) : 0;
}

static struct krait_cost_of cost_of(const struct krait_interp *in, double all, double inside)
{
    inside = KRAIT_MIN(inside, KRAIT_MAX(all, 0));
    return (struct krait_cost_of){ as_ns(in, inside), as_ns(in, all - inside) };
}

/* `recorded`: of python and of c. A round of python is CALLS + 1 calls of Python functions, one of c is one and CALLS of
 * n. */
static void set_cost(struct krait_interp *in, const struct krait_cost_trial *trial,
                     const struct rounds recorded[2])
{
    struct krait_agent *agent = in->agent;
    double python = (least(&recorded[0]) - least(&trial->bare[0])) / (CALLS + 1);
    agent->cost.python = cost_of(in, python, least(&trial->inside[0]) / CALLS);
    if (agent->c_calls) {
        double c = (least(&recorded[1]) - least(&trial->bare[1]) - python) / CALLS;
        double inside = (least(&trial->inside[1]) - least(&trial->no_op_itself)) / CALLS;
        agent->cost.c = cost_of(in, c, KRAIT_MAX(inside, 0));
    }
    agent->cost.known = python > 0;
}

static void lend_ids(struct krait_interp *in, const struct krait_cost_trial *trial, uint32_t id)
{
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(trial->codes); i++)
        krait_code_lend(in, trial->codes[i], id);
    krait_code_lend(in, &no_op, id);
}

/* The governor is to count none of these calls. */
static void measure(struct krait_interp *in, struct krait_cost_trial *trial)
{
    struct krait_governor kept = in->governor;
    struct krait_ring *ring = krait_this_ring;
    struct rounds recorded[2];
    in->governor.left = INT64_MAX;
    in->governor.window = 0;
    trial->ring.limit = trial->bytes + RING_BYTES - KRAIT_RING_MARGIN;
    trial->ring.open_packet = UINT32_MAX;
    krait_this_ring = &trial->ring;
    tried = &trial->ring;
    lend_ids(in, trial, OWN_ID);
    bool whole = time_recorded(in, trial, 0, &recorded[0]);
    whole = whole && (!in->agent->c_calls || time_recorded(in, trial, 1, &recorded[1]));
    lend_ids(in, trial, 0);
    tried = NULL;
    krait_this_ring = ring;
    in->governor = kept;
    if (whole)
        set_cost(in, trial, recorded);
}

struct krait_cost_trial *krait_cost_begin(struct krait_interp *in)
{
    struct krait_agent *agent = in->agent;
    /* With call sites each call takes the slow path; what that takes depends on the program. */
    if (!agent->measures_cost || agent->cost.known || agent->call_sites || in->id)
        return NULL;
    agent->measures_cost = false;
    struct krait_cost_trial *trial = calloc(1, sizeof(*trial));
    if (!trial)
        return NULL;
    bool ready = make_functions(trial) && time_bare(in, trial->functions[0], &trial->bare[0]) &&
                 time_bare(in, trial->functions[1], &trial->bare[1]) && time_no_op(in, trial);
    if (ready)
        return trial;
    trial_free(trial);
    return NULL;
}

void krait_cost_end(struct krait_interp *in, struct krait_cost_trial *trial, bool hooked)
{
    if (!trial)
        return;
    if (hooked)
        measure(in, trial);
    trial_free(trial);
}

void krait_cost_say(struct krait_interp *in)
{
    const struct krait_cost *cost = &in->agent->cost;
    uint8_t payload[KRAIT_BYTES_process_cost];
    if (!cost->known || !in->definitions)
        return;
    size_t n = krait_put_process_cost(payload, &(struct krait_payload_process_cost){
                                                   .python_inside_ns = cost->python.inside_ns,
                                                   .python_outside_ns = cost->python.outside_ns,
                                                   .c_inside_ns = cost->c.inside_ns,
                                                   .c_outside_ns = cost->c.outside_ns,
                                               });
    krait_writer_event(&in->agent->writer, in->definitions, KRAIT_EVENT_process_cost, payload, n);
}
