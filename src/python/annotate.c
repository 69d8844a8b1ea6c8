/* SPDX-License-Identifier: Apache-2.0 */
#include "python/annotate.h"

#include "python/codes.h"
#include "python/compat/running.h"
#include "python/fields.h"
#include "python/notes.h"
#include "python/text.h"

#include <string.h>
#include <structmember.h>

enum { NAME_BYTES = 200 };

static inline bool is_running(void)
{
    return atomic_load_explicit(&krait_agent.running, memory_order_relaxed);
}

/* The calling interpreter, if it is recorded. */
static inline struct krait_interp *recorded(void)
{
    if (KRAIT_LIKELY(!is_running()))
        return NULL;
    struct krait_interp *in = krait_agent_interp();
    return in && krait_agent_records(in) ? in : NULL;
}

/* Whether so many arguments were given, and no named ones where `names` says which. */
static bool takes(const char *function, size_t nargs, Py_ssize_t wanted, PyObject *names)
{
    Py_ssize_t given = (Py_ssize_t)KRAIT_NARGS(nargs);
    if (KRAIT_UNLIKELY(given != wanted))
        PyErr_Format(PyExc_TypeError, "%s() takes %zd positional argument%s but %zd were given", function,
                     wanted, wanted == 1 ? "" : "s", given);
    else if (KRAIT_UNLIKELY(names && PyTuple_Size(names)))
        PyErr_Format(PyExc_TypeError, "%s() takes no keyword arguments", function);
    else
        return true;
    return false;
}

/* -- marks, counters, flows -- */

static void put(struct krait_interp *in, uint32_t event, const void *payload, size_t n)
{
    struct krait_note note;
    if (KRAIT_LIKELY(krait_note_quick(in, event, payload, n)))
        return;
    if (krait_note_begin(&note, in, krait_moment_now()))
        krait_note_put(&note, event, payload, n);
    krait_note_end(&note);
}

/* The id of a name; 0: it cannot have one. */
static uint32_t name_id(struct krait_interp *in, const char *name)
{
    struct krait_note note;
    uint32_t id = krait_code_name_known(in, name);
    if (KRAIT_LIKELY(id))
        return id;
    if (krait_note_begin(&note, in, krait_moment_now()))
        id = krait_code_name(in, name);
    krait_note_end(&note);
    return id;
}

PyDoc_STRVAR(
    mark_doc,
    "mark(text, /, **fields)\n\n"
    "Say that the program is here. The recording shows it as a moment of this thread, with its fields.\n"
    "Nothing happens where nobody records.");

static PyObject *mark(PyObject *self, PyObject *const *args, size_t nargs, PyObject *names)
{
    if (!takes("mark", nargs, 1, NULL))
        return NULL;
    struct krait_interp *in = recorded();
    if (!in)
        Py_RETURN_NONE;
    uint8_t payload[KRAIT_PAYLOAD_MAX];
    size_t n = krait_fields_put_mark(payload, args[0], args + 1, names);
    if (!n)
        return NULL;
    put(in, KRAIT_EVENT_user_mark, payload, n);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(counter_doc,
             "counter(name, value, /)\n\n"
             "Say that a number of the program's has this value from now on: a length, a size, a rate.\n"
             "What is no number is not recorded.");

static PyObject *counter(PyObject *self, PyObject *const *args, size_t nargs, PyObject *names)
{
    if (!takes("counter", nargs, 2, names))
        return NULL;
    struct krait_interp *in = recorded();
    if (!in)
        Py_RETURN_NONE;
    KRAIT_AUTO_BUF own = { 0 };
    bool whole;
    const char *name = krait_fields_text(args[0], &own, NAME_BYTES, &whole);
    double value = whole ? PyFloat_AsDouble(args[1]) : 0;
    if (PyErr_Occurred()) {
        if (!krait_text_swallow())
            return NULL;
        Py_RETURN_NONE;
    }
    uint8_t payload[KRAIT_BYTES_user_counter];
    const struct krait_payload_user_counter event = { .name = name_id(in, name), .value = value };
    if (event.name)
        put(in, KRAIT_EVENT_user_counter, payload, krait_put_user_counter(payload, &event));
    Py_RETURN_NONE;
}

PyDoc_STRVAR(
    flow_doc,
    "flow(id, /)\n\n"
    "Say that something passes here: a request, a job. `id` is an int, or a text, the same wherever it\n"
    "passes: in any thread or process.");

static PyObject *flow(PyObject *self, PyObject *const *args, size_t nargs, PyObject *names)
{
    if (!takes("flow", nargs, 1, names))
        return NULL;
    struct krait_interp *in = recorded();
    if (!in)
        Py_RETURN_NONE;
    KRAIT_AUTO_BUF own = { 0 };
    bool whole = true;
    uint64_t id = 0;
    if (PyLong_Check(args[0])) {
        id = PyLong_AsUnsignedLongLongMask(args[0]);
    } else {
        const char *text = krait_fields_text(args[0], &own, NAME_BYTES, &whole);
        id = krait_hash_bytes(text, strlen(text));
    }
    if (!whole)
        return NULL;
    uint8_t payload[KRAIT_BYTES_user_flow];
    const struct krait_payload_user_flow event = { .id = id };
    put(in, KRAIT_EVENT_user_flow, payload, krait_put_user_flow(payload, &event));
    Py_RETURN_NONE;
}

/* -- spans -- */

enum {
    NESTED = 4, /* with statements of one span object in each other */
    FEW = 4,    /* fields of most spans, in the object */
    SPARE = 8,
    DEEPEST = 64, /* spans that are freed in each other */
};

struct span {
    PyObject_HEAD krait_vectorcall *call;
    PyObject *name;
    PyObject *names;      /* of its fields, a tuple; NULL: it has none */
    PyObject **values;    /* ... as many, in `few` if they fit there */
    PyObject *late;       /* a dict, of set() */
    uint64_t ids[NESTED]; /* as many as `depth`; 0: began without a recording */
    uint32_t depth;
    struct span *next; /* to be freed */
    PyObject *few[FEW];
};

struct krait_note_types krait_note_types;
static krait_vectorcall span_call;

/* Most spans live for one with statement: their memory is used again. Under the GIL. */
static struct {
    struct span *spans[SPARE];
    uint32_t count;
} spare;

static struct span *take_span(void)
{
    if (!spare.count)
        return (struct span *)PyType_GenericAlloc(krait_note_types.span, 0);
    /* Field by field: for a memset gcc has `rep stos`, which takes longer than all else here. */
    struct span *span = spare.spans[--spare.count];
    span->names = NULL;
    span->values = NULL;
    span->late = NULL;
    span->depth = 0;
    return (struct span *)PyObject_Init((PyObject *)span, krait_note_types.span);
}

/* Returns false with an exception set. */
static KRAIT_APART bool keep_fields(struct span *span, PyObject *const *values, PyObject *names)
{
    Py_ssize_t n = PyTuple_Size(names);
    if (!n)
        return true;
    span->values = n <= FEW ? span->few : PyMem_Malloc((size_t)n * sizeof(*values));
    if (!span->values) {
        PyErr_NoMemory();
        return false;
    }
    Py_INCREF(names);
    span->names = names;
    for (Py_ssize_t i = 0; i < n; i++) {
        Py_INCREF(values[i]);
        span->values[i] = values[i];
    }
    return true;
}

/* `names`: of the values, or NULL. */
static PyObject *new_span(PyObject *name, PyObject *const *values, PyObject *names)
{
    struct span *span = take_span();
    if (!span)
        return NULL;
    Py_INCREF(name);
    span->call = span_call;
    span->name = name;
    if (names && !keep_fields(span, values, names))
        Py_CLEAR(span);
    return (PyObject *)span;
}

PyDoc_STRVAR(
    span_doc,
    "span(name, /, **fields)\n\n"
    "A piece of work with a name, which need not be a call:\n\n"
    "    with krait.span(\"load\", path=path) as span:\n"
    "        ...\n\n"
    "    @krait.span(\"handle\")\n"
    "    async def handle(request): ...\n\n"
    "As a decorator it is a span for each call; of a coroutine or a generator from its first step to its\n"
    "last. A bare @krait.span has the function's name. Names are few: what differs from call to call belongs\n"
    "into fields.");

/* As a decorator: in Python, which has coroutines. */
static KRAIT_APART PyObject *decorate(PyObject *span, PyObject *function)
{
    PyObject *package = PyImport_ImportModule("krait");
    PyObject *wrapped = package ? PyObject_CallMethod(package, "_wrapped", "OO", function, span) : NULL;
    Py_XDECREF(package);
    return wrapped;
}

/* Of a bare @krait.span. Objects such as functools.partial's have no name: their class has. */
static KRAIT_APART PyObject *decorate_by_name(PyObject *function)
{
    PyObject *name = PyObject_GetAttrString(function, "__qualname__");
    if (!name) {
        PyErr_Clear();
        name = PyObject_GetAttrString((PyObject *)Py_TYPE(function), "__qualname__");
    }
    PyObject *span = name ? new_span(name, NULL, NULL) : NULL;
    PyObject *wrapped = span ? decorate(span, function) : NULL;
    Py_XDECREF(name);
    Py_XDECREF(span);
    return wrapped;
}

/* Names are texts, but may be anything: classes and spans can be called, too. */
static bool is_function(PyObject *name)
{
    PyTypeObject *type = Py_TYPE(name);
    return KRAIT_UNLIKELY(type != &PyUnicode_Type) && type != krait_note_types.span &&
           PyCallable_Check(name) && !PyType_Check(name);
}

static PyObject *span_new(PyObject *self, PyObject *const *args, size_t nargs, PyObject *names)
{
    if (!takes("span", nargs, 1, NULL))
        return NULL;
    return is_function(args[0]) && !names ? decorate_by_name(args[0]) : new_span(args[0], args + 1, names);
}

static KRAIT_APART void drop_fields(struct span *span)
{
    for (Py_ssize_t n = PyTuple_Size(span->names); n-- > 0;)
        Py_DECREF(span->values[n]);
    if (span->values != span->few)
        PyMem_Free(span->values);
    Py_DECREF(span->names);
}

static void free_span(struct span *span)
{
    PyTypeObject *type = Py_TYPE((PyObject *)span);
    Py_XDECREF(span->name);
    if (span->names)
        drop_fields(span);
    Py_XDECREF(span->late);
    if (spare.count < SPARE && type == krait_note_types.span)
        spare.spans[spare.count++] = span;
    else
        PyObject_Free(span);
    Py_DECREF(type);
}

/* A field, or the name, may be a span that has such a one in turn: a chain of them must not need the whole stack. */
static void span_dealloc(PyObject *self)
{
    static struct { /* under the GIL; any thread may free what another one puts off */
        struct span *later;
        uint32_t deep;
    } freeing;
    struct span *span = (struct span *)self;
    if (!span->names && Py_TYPE(span->name) != krait_note_types.span) {
        free_span(span);
        return;
    }
    span->next = freeing.later;
    freeing.later = span;
    while (freeing.later && freeing.deep < DEEPEST) {
        span = freeing.later;
        freeing.later = span->next;
        freeing.deep++;
        free_span(span);
        freeing.deep--;
    }
}

/* Another span of the same name and fields, for each call of what it decorates. */
static PyObject *span_again(PyObject *self, PyObject *none)
{
    const struct span *span = (const struct span *)self;
    return new_span(span->name, span->values, span->names);
}

/* The span that a method of it is called with, or NULL with an exception set. */
static struct span *span_of(PyObject *const *args, size_t nargs)
{
    if (KRAIT_NARGS(nargs) && Py_TYPE(args[0]) == krait_note_types.span)
        return (struct span *)args[0];
    PyErr_SetString(PyExc_TypeError, "a method of krait.span needs a span");
    return NULL;
}

/* Returns its id; 0 where something raised. */
static uint64_t begin_span(struct krait_interp *in, const struct span *span)
{
    char few[KRAIT_FIELDS_FEW];
    KRAIT_AUTO_BUF own = { 0 };
    KRAIT_AUTO_BUF fields = KRAIT_BUF_IN(few);
    bool whole;
    const char *name = krait_fields_text(span->name, &own, NAME_BYTES, &whole);
    if (!whole || (span->names && !krait_fields_add(&fields, span->values, span->names)))
        return 0;
    return krait_note_begin_span(in, KRAIT_span_category_user, name, krait_fields_json(&fields));
}

static PyObject *entered(struct span *span, uint64_t id)
{
    if (span->depth < NESTED)
        span->ids[span->depth] = id;
    span->depth++;
    Py_INCREF(span);
    return (PyObject *)span;
}

/* Here and below, what records is apart: where nobody does, a span saves no registers for it. */
static KRAIT_APART PyObject *enter_while_running(struct span *span)
{
    struct krait_interp *in = recorded();
    uint64_t id = in ? begin_span(in, span) : 0;
    return in && !id ? NULL : entered(span, id);
}

static PyObject *enter_span(struct span *span)
{
    return KRAIT_UNLIKELY(is_running()) ? enter_while_running(span) : entered(span, 0);
}

static PyObject *span_enter(PyObject *self, PyObject *const *args, size_t nargs, PyObject *names)
{
    struct span *span = span_of(args, nargs);
    return span ? enter_span(span) : NULL;
}

/* set(**fields): for the end. */
static PyObject *span_set(PyObject *self, PyObject *const *args, size_t nargs, PyObject *names)
{
    struct span *span = span_of(args, nargs);
    if (!span || !takes("set", nargs - 1, 0, NULL))
        return NULL;
    if (!span->late && !(span->late = PyDict_New()))
        return NULL;
    PyObject *late = span->late; /* what is replaced may end the span */
    bool whole = true;
    Py_INCREF(late);
    for (Py_ssize_t i = 0; whole && names && i < PyTuple_Size(names); i++)
        whole = PyDict_SetItem(late, PyTuple_GetItem(names, i), args[1 + i]) == 0;
    Py_DECREF(late);
    if (!whole)
        return NULL;
    Py_RETURN_NONE;
}

/* What set() was given, and the type that raised. The span no longer has it: texts of the program's may call its methods.
 * Returns false where a signal's handler raised. */
static bool end_fields(struct krait_buf *to, struct span *span, PyObject *raised)
{
    PyObject *name = raised ? PyObject_GetAttrString(raised, "__qualname__") : NULL;
    PyObject *late = span->late;
    span->late = NULL;
    if (name && !late)
        late = PyDict_New();
    if (name && late)
        PyDict_SetItemString(late, "exception", name);
    Py_XDECREF(name);
    PyErr_Clear();
    bool whole = !late || krait_fields_add_dict(to, late);
    Py_XDECREF(late);
    return whole;
}

/* Of a span that has begun in a recording, or that has what set() was given. */
static KRAIT_APART PyObject *leave_with(struct span *span, uint64_t id, PyObject *raised)
{
    struct krait_interp *in = id ? recorded() : NULL;
    char few[KRAIT_FIELDS_FEW];
    KRAIT_AUTO_BUF fields = KRAIT_BUF_IN(few);
    if (!in)
        Py_CLEAR(span->late);
    else if (!end_fields(&fields, span, raised != Py_None ? raised : NULL))
        return NULL;
    else
        krait_note_end_span(in, id, krait_fields_json(&fields));
    Py_RETURN_NONE;
}

/* `raised`: the exception's type, or None. */
static PyObject *leave_span(struct span *span, PyObject *raised)
{
    if (!span->depth)
        Py_RETURN_NONE;
    uint64_t id = --span->depth < NESTED ? span->ids[span->depth] : 0;
    if (KRAIT_UNLIKELY(id || span->late))
        return leave_with(span, id, raised);
    Py_RETURN_NONE;
}

/* __exit__(type, value, traceback) */
static PyObject *span_exit(PyObject *self, PyObject *const *args, size_t nargs, PyObject *names)
{
    struct span *span = span_of(args, nargs);
    return span ? leave_span(span, KRAIT_NARGS(nargs) > 1 ? args[1] : Py_None) : NULL;
}

/* What a with statement finds as the __enter__ and __exit__ of a span is the span (entry_get), so that no method objects
 * are made for it; how many arguments there are tells them apart. */
static PyObject *span_call(PyObject *self, PyObject *const *args, size_t nargs, PyObject *names)
{
    enum { ENTER = 0, DECORATE = 1, EXIT = 3 };
    struct span *span = (struct span *)self;
    size_t given = KRAIT_NARGS(nargs);
    if (given == EXIT && !names)
        return leave_span(span, args[0]);
    if (given == ENTER && !names)
        return enter_span(span);
    return takes("span", nargs, DECORATE, names) ? decorate(self, args[0]) : NULL;
}

static PyMethodDef span_methods[] = {
    { "_again", span_again, METH_NOARGS, NULL },
    { NULL, NULL, 0, NULL },
};

static PyObject *new_span_type(void)
{
    static PyMemberDef members[] = {
        { "__vectorcalloffset__", T_PYSSIZET, offsetof(struct span, call), READONLY, NULL },
        { NULL, 0, 0, 0, NULL },
    };
    PyType_Slot slots[] = {
        { Py_tp_dealloc, (void *)span_dealloc },
        { Py_tp_methods, span_methods },
        { Py_tp_members, members },
        { Py_tp_call, (void *)krait_compat.vectorcall_call },
        { Py_tp_doc, (void *)span_doc },
        { 0, NULL },
    };
    PyType_Spec spec = {
        .name = "krait.Span",
        .basicsize = sizeof(struct span),
        .flags = Py_TPFLAGS_DEFAULT | KRAIT_TPFLAGS_HAVE_VECTORCALL,
        .slots = slots,
    };
    PyObject *type = PyType_FromSpec(&spec);
    if (type)
        krait_type_set_vectorcall(type, offsetof(struct span, call));
    return type;
}

/* -- what OpenTelemetry's spans need: python/krait/_opentelemetry.py -- */

PyDoc_STRVAR(rename_doc, "_rename(name, /)\n\nThe span has another name than at its begin.");

static PyObject *span_rename(PyObject *self, PyObject *const *args, size_t nargs, PyObject *names)
{
    struct span *span = span_of(args, nargs);
    if (!span || !takes("_rename", nargs - 1, 1, names))
        return NULL;
    struct krait_interp *in = recorded();
    if (!in || !span->depth || span->depth > NESTED)
        Py_RETURN_NONE;
    KRAIT_AUTO_BUF own = { 0 };
    bool whole;
    const char *name = krait_fields_text(args[1], &own, NAME_BYTES, &whole);
    if (!whole)
        return NULL;
    uint8_t payload[KRAIT_BYTES_span_rename];
    const struct krait_payload_span_rename event = { .id = span->ids[span->depth - 1],
                                                     .name = name_id(in, name) };
    if (event.id && event.name)
        put(in, KRAIT_EVENT_span_rename, payload, krait_put_span_rename(payload, &event));
    Py_RETURN_NONE;
}

_Static_assert(KRAIT_BYTES_link_from == KRAIT_BYTES_link_to, "both have an id alone");

static PyObject *put_link(const char *function, uint32_t event, PyObject *const *args, size_t nargs,
                          PyObject *names)
{
    if (!takes(function, nargs, 1, names))
        return NULL;
    const struct krait_payload_link_from link = { .id = PyLong_AsUnsignedLongLongMask(args[0]) };
    if (PyErr_Occurred())
        return NULL;
    uint8_t payload[KRAIT_BYTES_link_from];
    struct krait_interp *in = recorded();
    if (in)
        put(in, event, payload, krait_put_link_from(payload, &link));
    Py_RETURN_NONE;
}

PyDoc_STRVAR(link_from_doc, "_link_from(id, /)\n\nA span begins here that others may link to.");

static PyObject *link_from(PyObject *self, PyObject *const *args, size_t nargs, PyObject *names)
{
    return put_link("_link_from", KRAIT_EVENT_link_from, args, nargs, names);
}

PyDoc_STRVAR(link_to_doc, "_link_to(id, /)\n\nA span begins here that has a link to the one of this id.");

static PyObject *link_to(PyObject *self, PyObject *const *args, size_t nargs, PyObject *names)
{
    return put_link("_link_to", KRAIT_EVENT_link_to, args, nargs, names);
}

/* How long ago it was. What is in the future is now. */
static uint64_t ago(uint64_t now_ns, uint64_t t_ns)
{
    return now_ns > t_ns ? now_ns - t_ns : 0;
}

/* A note whose moment is that of *now_ns, in nanoseconds since the epoch. Both clocks are read each time, for they drift and one
 * of them may be set; of some looks the shortest counts, in which nothing else ran. */
static bool tell(struct krait_note *note, struct krait_interp *in, uint64_t *now_ns)
{
    enum { LOOKS = 3 };
    bool may = krait_note_begin(note, in, krait_moment_now());
    uint64_t shortest = UINT64_MAX;
    for (int i = 0; i < LOOKS; i++) {
        struct krait_moment moment = krait_moment_now();
        uint64_t ns = krait_clock_ns(CLOCK_REALTIME), took = krait_moment_now().t - moment.t;
        if (took >= shortest)
            continue;
        shortest = took;
        note->moment = moment;
        *now_ns = ns;
    }
    return may;
}

/* What is told has a text, times in nanoseconds since the epoch, and fields: the arguments in this order. */
struct told {
    struct krait_interp *in;
    const char *text;
    uint64_t ns[2];
    struct krait_buf own, fields;
};

struct telling {
    const char *function;
    uint32_t times;
    size_t most; /* bytes of the text */
    void (*write)(const struct told *told);
};

static void told_done(struct told *told)
{
    krait_buf_done(&told->own);
    krait_buf_done(&told->fields);
}

/* Returns false with an exception set. Without `in`, nobody records. */
static bool read_told(struct told *told, const struct telling *how, PyObject *const *args)
{
    bool whole = true;
    for (uint32_t i = 0; i < how->times; i++) {
        told->ns[i] = PyLong_AsUnsignedLongLong(args[1 + i]);
        if (PyErr_Occurred())
            return false;
    }
    told->in = recorded();
    if (!told->in)
        return true;
    told->text = krait_fields_text(args[0], &told->own, how->most, &whole);
    return whole && krait_fields_add_dict(&told->fields, args[1 + how->times]);
}

static PyObject *tell_by(const struct telling *how, PyObject *const *args, size_t nargs, PyObject *names)
{
    KRAIT_CLEANUP(told_done) struct told told = { 0 };
    if (!takes(how->function, nargs, how->times + 2, names) || !read_told(&told, how, args))
        return NULL;
    if (told.in)
        how->write(&told);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(tell_span_doc,
             "_tell_span(name, began_ns, ended_ns, fields, /)\n\nA span has ended, with its times in "
             "nanoseconds since the epoch.");

static void write_span(const struct told *told)
{
    struct krait_note note;
    uint64_t now_ns = 0;
    uint8_t payload[KRAIT_PAYLOAD_MAX];
    struct krait_payload_told_span event = { .name = name_id(told->in, told->text),
                                             .fields = krait_fields_json(&told->fields) };
    if (tell(&note, told->in, &now_ns) && event.name) {
        event.began_ago = ago(now_ns, told->ns[0]);
        event.ended_ago = KRAIT_MIN(ago(now_ns, told->ns[1]), event.began_ago);
        krait_note_put(&note, KRAIT_EVENT_told_span, payload, krait_put_told_span(payload, &event));
    }
    krait_note_end(&note);
}

static PyObject *tell_span(PyObject *self, PyObject *const *args, size_t nargs, PyObject *names)
{
    static const struct telling how = { "_tell_span", 2, NAME_BYTES, write_span };
    return tell_by(&how, args, nargs, names);
}

PyDoc_STRVAR(tell_mark_doc, "_tell_mark(text, t_ns, fields, /)\n\nSomething happened at a time, in "
                            "nanoseconds since the epoch.");

static void write_mark(const struct told *told)
{
    struct krait_note note;
    uint64_t now_ns = 0;
    uint8_t payload[KRAIT_PAYLOAD_MAX];
    struct krait_payload_told_mark event = { .text = told->text, .fields = krait_fields_json(&told->fields) };
    if (tell(&note, told->in, &now_ns)) {
        event.ago = ago(now_ns, told->ns[0]);
        krait_note_put(&note, KRAIT_EVENT_told_mark, payload, krait_put_told_mark(payload, &event));
    }
    krait_note_end(&note);
}

static PyObject *tell_mark(PyObject *self, PyObject *const *args, size_t nargs, PyObject *names)
{
    static const struct telling how = { "_tell_mark", 1, KRAIT_MARK_TEXT_BYTES, write_mark };
    return tell_by(&how, args, nargs, names);
}

/* -- functions that are no functions -- */

struct function {
    PyObject_HEAD krait_vectorcall *call;
    PyObject *name, *doc;
};

/* As a method of a class, it is bound to its object. */
static PyObject *method_get(PyObject *self, PyObject *obj, PyObject *type)
{
    if (obj && obj != Py_None)
        return krait_compat.method_new(self, obj);
    Py_INCREF(self);
    return self;
}

static PyObject *entry_get(PyObject *self, PyObject *obj, PyObject *type)
{
    PyObject *found = obj && obj != Py_None ? obj : self;
    Py_INCREF(found);
    return found;
}

/* What kinds of functions there are: of the module, of a span, and those that a with statement calls. */
enum kind { FUNCTION, METHOD, ENTRY, KINDS };

static const struct {
    const char *name;
    descrgetfunc get;
} kinds[KINDS] = {
    [FUNCTION] = { "krait.function", NULL },
    [METHOD] = { "krait.method", method_get },
    [ENTRY] = { "krait.entry", entry_get },
};

/* Functions are kept for good. */
static PyObject *new_function_type(enum kind kind)
{
    static PyMemberDef members[] = {
        { "__vectorcalloffset__", T_PYSSIZET, offsetof(struct function, call), READONLY, NULL },
        { "__name__", T_OBJECT, offsetof(struct function, name), READONLY, NULL },
        { "__doc__", T_OBJECT, offsetof(struct function, doc), READONLY, NULL },
        { NULL, 0, 0, 0, NULL },
    };
    PyType_Slot slots[] = {
        { Py_tp_members, members },
        { Py_tp_call, (void *)krait_compat.vectorcall_call },
        { kinds[kind].get ? Py_tp_descr_get : 0, (void *)kinds[kind].get },
        { 0, NULL },
    };
    PyType_Spec spec = {
        .name = kinds[kind].name,
        .basicsize = sizeof(struct function),
        .flags = Py_TPFLAGS_DEFAULT | KRAIT_TPFLAGS_HAVE_VECTORCALL,
        .slots = slots,
    };
    return PyType_FromSpec(&spec);
}

static PyObject *new_function(PyObject *type, const char *name, krait_vectorcall *call, const char *doc)
{
    struct function *it = (struct function *)PyType_GenericAlloc((PyTypeObject *)type, 0);
    if (!it)
        return NULL;
    it->call = call;
    it->name = PyUnicode_InternFromString(name);
    it->doc = PyUnicode_FromString(doc);
    return (PyObject *)it;
}

/* -- the module -- */

static const struct {
    const char *name;
    krait_vectorcall *call;
    const char *doc;
    enum kind kind;
} functions[] = {
    { "mark", mark, mark_doc, FUNCTION },
    { "counter", counter, counter_doc, FUNCTION },
    { "flow", flow, flow_doc, FUNCTION },
    { "span", span_new, span_doc, FUNCTION },
    { "__enter__", span_enter, "The span begins.", ENTRY },
    { "__exit__", span_exit, "The span ends.", ENTRY },
    { "set", span_set, "set(**fields)\n\nFields that are known later: the span's end has them.", METHOD },
    { "_rename", span_rename, rename_doc, METHOD },
    { "_link_from", link_from, link_from_doc, FUNCTION },
    { "_link_to", link_to, link_to_doc, FUNCTION },
    { "_tell_span", tell_span, tell_span_doc, FUNCTION },
    { "_tell_mark", tell_mark, tell_mark_doc, FUNCTION },
};

static int add_function(PyObject *to, PyObject *type, size_t i)
{
    PyObject *function = new_function(type, functions[i].name, functions[i].call, functions[i].doc);
    int rc = function ? PyObject_SetAttrString(to, functions[i].name, function) : -1;
    Py_XDECREF(function);
    return rc;
}

int krait_notes_add_functions(PyObject *module)
{
    PyObject *spans = new_span_type(), *types[KINDS] = { NULL };
    int rc = spans ? 0 : -1;
    for (enum kind kind = 0; kind < KINDS && !rc; kind++) {
        if ((types[kind] = new_function_type(kind)))
            krait_type_set_vectorcall(types[kind], offsetof(struct function, call));
        else
            rc = -1;
    }
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(functions) && !rc; i++)
        rc = add_function(functions[i].kind == FUNCTION ? module : spans, types[functions[i].kind], i);
    if (!rc) { /* they are kept for good */
        krait_note_types =
            (struct krait_note_types){ (PyTypeObject *)types[FUNCTION], (PyTypeObject *)spans };
        types[FUNCTION] = NULL;
    }
    for (enum kind kind = 0; kind < KINDS; kind++)
        Py_XDECREF(types[kind]);
    return rc;
}
