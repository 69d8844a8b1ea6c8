/* SPDX-License-Identifier: Apache-2.0 */
#include "python/log_inside.h"

#include "base/array.h"
#include "base/log_level.h"
#include "python/codes.h"
#include "python/compat/running.h"
#include "python/green_tasks.h"
#include "python/modules.h"

#include <fnmatch.h>
#include <string.h>

enum {
    MESSAGE_BYTES = 8192,
    EXCEPTION_BYTES = 2048,
    FRAMES = 20, /* of a traceback */
    FILE_BYTES = KRAIT_SAID_FILE_BYTES,
    NAME_BYTES = KRAIT_SAID_NAME_BYTES,
    SPECS = 64,
    PATCHES = 16,
};

/* The attributes that logging itself gives a record, in the order in which LogRecord.__init__ does. */
enum attribute {
    A_NAME,
    A_MSG,
    A_ARGS,
    A_LEVELNO = 4,
    A_PATHNAME,
    A_EXC_INFO = 8,
    A_LINENO = 11,
    A_FUNC,
    A_TASK = 20,
};

static const char *const attributes[] = {
    "name",        "msg",     "args",     "levelname",       "levelno",    "pathname",
    "filename",    "module",  "exc_info", "exc_text",        "stack_info", "lineno",
    "funcName",    "created", "msecs",    "relativeCreated", "thread",     "threadName",
    "processName", "process", "taskName", "message",         "asctime",
};

enum { ATTRIBUTES = KRAIT_ARRAY_LEN(attributes), A_NONE = ATTRIBUTES };

struct spec {
    const char *name;  /* in the shared memory */
    const char *level; /* NULL: what the program lets through */
    size_t name_bytes;
};

struct krait_log {
    struct krait_patched patched[PATCHES];
    PyObject *names[ATTRIBUTES]; /* interned */
    struct krait_map index;      /* a logger's name, hashed, to its index in loggers */
    struct krait_logger *loggers;
    uint32_t count, cap;
};

static struct krait_log *new_log(void)
{
    struct krait_log *log = calloc(1, sizeof(*log));
    for (size_t i = 0; log && i < ATTRIBUTES; i++)
        log->names[i] = PyUnicode_InternFromString(attributes[i]);
    return log;
}

/* NULL without memory. */
static struct krait_log *log_of(struct krait_interp *in)
{
    if (!in->log)
        in->log = new_log();
    return in->log;
}

/* ---- what is asked for ---- */

static struct spec specs[SPECS];
static size_t spec_count;
static bool asks_dropped;

/* NAME[:LEVEL]. The root logger has no name: it is above all. */
static struct spec read_spec(const char *text)
{
    const char *colon = strrchr(text, ':');
    size_t n = colon ? (size_t)(colon - text) : strlen(text);
    bool is_root = n == strlen("root") && strncmp(text, "root", n) == 0;
    return (struct spec){ text, colon ? colon + 1 : NULL, is_root ? 0 : n };
}

void krait_log_read(void)
{
    const char *text = NULL;
    spec_count = 0;
    asks_dropped = false;
    while (spec_count < SPECS && (text = krait_filters_next(&krait_agent, text, KRAIT_FILTER_LOG))) {
        specs[spec_count] = read_spec(text);
        asks_dropped |= specs[spec_count].level != NULL;
        spec_count++;
    }
}

static bool is_glob(const struct spec *spec)
{
    return strcspn(spec->name, "*?[") < spec->name_bytes;
}

/* A logger is meant by its name, and by one above it. */
static bool is_meant(const struct spec *spec, const char *logger)
{
    char glob[NAME_BYTES];
    size_t n = spec->name_bytes;
    if (!n)
        return true;
    if (is_glob(spec)) {
        snprintf(glob, sizeof(glob), "%.*s", (int)n, spec->name);
        return fnmatch(glob, logger, 0) == 0;
    }
    return strncmp(logger, spec->name, n) == 0 && (!logger[n] || logger[n] == '.');
}

/* The one that says most of the name; of equals the last. */
static const struct spec *find_spec(const char *logger)
{
    const struct spec *found = NULL;
    for (size_t i = 0; i < spec_count; i++) {
        if (is_meant(&specs[i], logger) && (!found || specs[i].name_bytes >= found->name_bytes))
            found = &specs[i];
    }
    return found;
}

/* A level that the program has named by logging.addLevelName; false: it has not, so far. */
static bool programs_level(const char *name, int32_t *level)
{
    PyObject *names = krait_module_item(krait_module("logging"), "_nameToLevel");
    PyObject *value = names && PyDict_Check(names) ? PyDict_GetItemString(names, name) : NULL;
    long n = value && PyLong_Check(value) ? PyLong_AsLong(value) : -1;
    PyErr_Clear();
    *level = (int32_t)n;
    return n >= 0 && n < INT32_MAX;
}

/* The level that a spec names; false: nothing has that name. Who mistyped it is told at the end, by two bits for each
 * spec, behind those of the other filters: that it was asked for, and that it was known. */
static bool read_level(const struct spec *spec, int32_t *level)
{
    size_t bit = krait_agent.filter_count + 2 * (size_t)(spec - specs);
    bool is_known = krait_log_level(spec->level, level) || programs_level(spec->level, level);
    krait_filters_note_met(&krait_agent, bit + is_known);
    return is_known;
}

/* ---- loggers ---- */

/* Who mistyped a name is told at the end. */
static void note_logger(const char *name)
{
    uint64_t meant = 0, asked = 0;
    for (size_t i = 0; i < spec_count; i++) {
        asked |= 1ull << i;
        meant |= (uint64_t)is_meant(&specs[i], name) << i;
    }
    krait_names_met_note(&krait_agent.writer.shm.control->names_met[KRAIT_NAMED_LOGGER],
                         *name ? name : "root", meant, asked);
}

static struct krait_logger *add_logger(struct krait_log *log, uint64_t key, struct krait_logger logger)
{
    if (!KRAIT_GROW(log->loggers, log->cap, log->count + 1) || krait_map_put(&log->index, key, log->count))
        return NULL;
    log->loggers[log->count] = logger;
    return &log->loggers[log->count++];
}

static struct krait_logger *new_logger(struct krait_interp *in, const char *name, uint64_t key)
{
    const struct spec *spec = find_spec(name);
    note_logger(name);
    struct krait_logger logger = { .level = spec ? INT32_MIN : INT32_MAX, .dropped = spec && spec->level };
    if (spec && spec->level && !read_level(spec, &logger.level))
        logger.open = spec; /* it may have the name later */
    return add_logger(in->log, key, logger);
}

/* By its name; NULL where its level is not known, or memory is out. Valid until the next. */
static struct krait_logger *find_logger(struct krait_interp *in, const char *name)
{
    uint64_t key = krait_hash_bytes(name, strlen(name));
    const uint64_t *known = krait_map_get(&in->log->index, key);
    struct krait_logger *logger = known ? &in->log->loggers[*known] : new_logger(in, name, key);
    if (known && logger->open && read_level(logger->open, &logger->level))
        logger->open = NULL;
    return logger && !logger->open ? logger : NULL;
}

void krait_log_forget(struct krait_interp *in)
{
    if (!in->log)
        return;
    krait_map_done(&in->log->index);
    in->log->count = 0;
}

/* ---- muting ---- */

/* The frame that a record is made into text for, or NO_FRAME; not owned. NULL: none is made. */
static __thread PyObject *muted;

static char no_frame;
#define NO_FRAME ((PyObject *)&no_frame)

struct krait_log_mute krait_log_mute(void)
{
    struct krait_log_mute before = { muted };
    PyObject *frame =
        (PyObject *)PyEval_GetFrame(); /* whoever runs now: it stays alive as long as this lasts */
    muted = frame ? frame : NO_FRAME;
    return before;
}

void krait_log_unmute(struct krait_log_mute before)
{
    muted = before.outer;
}

/* Another greenlet of this thread may run meanwhile: it is not below that frame. */
bool krait_log_is_muted(void)
{
    if (KRAIT_LIKELY(!muted))
        return false;
    PyObject *frame = (PyObject *)PyEval_GetFrame();
    Py_XINCREF(frame);
    while (frame && frame != muted) {
        PyObject *back = krait_frame_back(frame);
        Py_DECREF(frame);
        frame = back;
    }
    bool is_below = frame || muted == NO_FRAME;
    Py_XDECREF(frame);
    return is_below;
}

/* ---- what a record says ---- */

void krait_said_done(struct krait_said *said)
{
    krait_buf_done(&said->logger);
    krait_buf_done(&said->message);
    krait_buf_done(&said->func);
    krait_buf_done(&said->file);
    krait_buf_done(&said->task);
    krait_buf_done(&said->exception);
    krait_buf_done(&said->extra);
}

/* As LogRecord.getMessage does; new reference. */
static PyObject *format(PyObject *msg, PyObject *args)
{
    PyObject *template = PyObject_Str(msg);
    int has_args = template && args ? PyObject_IsTrue(args) : 0;
    if (!has_args)
        return template;
    PyObject *text = has_args > 0 ? PyUnicode_Format(template, args) : NULL;
    Py_DECREF(template);
    return text;
}

static PyObject *ask(PyObject *record, PyObject *msg, PyObject *args)
{
    return record ? PyObject_CallMethod(record, "getMessage", NULL) : format(msg, args);
}

/* A message that cannot be formatted fails again. What a signal's handler raised while it was formatted does not come
 * twice: that is the program's. Returns false with it set; *text is NULL where the message cannot be formatted. */
static bool try_message(PyObject **text, PyObject *record, PyObject *msg, PyObject *args)
{
    PyObject *type, *value, *traceback;
    *text = ask(record, msg, args);
    if (*text || !PyErr_Occurred())
        return true;
    PyErr_Fetch(&type, &value, &traceback);
    *text = ask(record, msg, args);
    bool was_signal = *text || !PyErr_GivenExceptionMatches(type, PyExc_Exception);
    if (was_signal) {
        PyErr_Restore(type, value, traceback);
        Py_CLEAR(*text);
        return false;
    }
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    return krait_text_swallow();
}

/* `count %d % ('x',)` */
static bool add_unformatted(struct krait_buf *to, PyObject *msg, PyObject *args)
{
    bool whole = !msg || krait_text_of(to, msg, KRAIT_TEXT_CALLS, MESSAGE_BYTES / 2);
    krait_buf_str(to, " % ");
    return whole && (!args || krait_text_repr(to, args, KRAIT_TEXT_CALLS, MESSAGE_BYTES / 2 - 128));
}

bool krait_said_message(struct krait_said *said, PyObject *record, PyObject *msg, PyObject *args)
{
    PyObject *text;
    if (!try_message(&text, record, msg, args))
        return false;
    if (!text)
        return add_unformatted(&said->message, msg, args);
    krait_text_str(&said->message, text, MESSAGE_BYTES);
    Py_DECREF(text);
    return true;
}

/* -- exceptions -- */

static PyObject *tuple_item(PyObject *tuple, Py_ssize_t i)
{
    return PyTuple_Check(tuple) && PyTuple_Size(tuple) == 3 ? PyTuple_GetItem(tuple, i) : NULL;
}

/* `ValueError: it is bad`, as traceback writes it. */
static bool add_raised(struct krait_buf *to, PyObject *exception)
{
    char module[NAME_BYTES], name[NAME_BYTES];
    KRAIT_AUTO_BUF text = { 0 };
    PyObject *type = (PyObject *)Py_TYPE(exception);
    krait_text_attr(type, "__module__", module, sizeof(module));
    krait_text_attr(type, "__qualname__", name, sizeof(name));
    bool is_short = strcmp(module, "builtins") == 0 || strcmp(module, "__main__") == 0;
    krait_buf_fmt(to, "%s%s%s", is_short ? "" : module, is_short ? "" : ".", name);
    bool whole = krait_text_of(&text, exception, KRAIT_TEXT_CALLS, EXCEPTION_BYTES);
    if (text.len)
        krait_buf_fmt(to, ": %s", text.data);
    return whole;
}

static void add_frame(struct krait_buf *to, PyObject *traceback)
{
    char file[FILE_BYTES], name[NAME_BYTES];
    PyObject *frame = krait_traceback_frame(traceback);
    PyObject *line = PyObject_GetAttrString(traceback, "tb_lineno");
    PyObject *code = frame ? krait_frame_code(frame) : NULL;
    if (code && line) {
        krait_text_attr(code, "co_filename", file, sizeof(file));
        krait_text_attr(code, "co_name", name, sizeof(name));
        krait_buf_fmt(to, "\n  File \"%s\", line %ld, in %s", file, PyLong_AsLong(line), name);
    }
    Py_XDECREF(code);
    Py_XDECREF(line);
    Py_XDECREF(frame);
    PyErr_Clear();
}

/* The innermost frames, innermost first: where the text is cut, the outer ones go. */
static void add_traceback(struct krait_buf *to, PyObject *traceback)
{
    PyObject *last[FRAMES] = { NULL };
    size_t n = 0;
    Py_XINCREF(traceback);
    while (traceback && traceback != Py_None) {
        PyObject *next = PyObject_GetAttrString(traceback, "tb_next");
        Py_XDECREF(last[n % FRAMES]);
        last[n++ % FRAMES] = traceback;
        traceback = next;
    }
    Py_XDECREF(traceback);
    for (size_t i = 0; i < KRAIT_MIN(n, (size_t)FRAMES); i++)
        add_frame(to, last[(n - 1 - i) % FRAMES]);
    if (n > FRAMES)
        krait_buf_fmt(to, "\n  ... %zu more", n - FRAMES);
    for (size_t i = 0; i < FRAMES; i++)
        Py_XDECREF(last[i]);
    PyErr_Clear();
}

bool krait_said_exception(struct krait_said *said, PyObject *exception, PyObject *traceback)
{
    if (!exception || !PyExceptionInstance_Check(exception))
        return true;
    PyObject *its = traceback ? NULL : PyObject_GetAttrString(exception, "__traceback__");
    bool whole = add_raised(&said->exception, exception);
    add_traceback(&said->exception, traceback ? traceback : its);
    Py_XDECREF(its);
    PyErr_Clear();
    return whole;
}

/* -- the task -- */

/* asyncio's task that this thread runs; new reference or NULL. */
static PyObject *asyncio_task(void)
{
    PyObject *running = krait_module_item(krait_module("_asyncio"), "_get_running_loop");
    PyObject *loop = running ? PyObject_CallObject(running, NULL) : NULL;
    PyObject *ask =
        loop && loop != Py_None ? krait_module_item(krait_module("asyncio.tasks"), "current_task") : NULL;
    PyObject *task = ask ? PyObject_CallFunctionObjArgs(ask, loop, NULL) : NULL;
    Py_XDECREF(loop);
    PyErr_Clear();
    return task;
}

/* The same of trio. */
static PyObject *trio_task(void)
{
    PyObject *run = krait_module_item(krait_module("trio._core._run"), "GLOBAL_RUN_CONTEXT");
    PyObject *task =
        run ? PyObject_GetAttrString(run, "task") : NULL; /* none in a thread that runs no loop */
    PyErr_Clear();
    return task;
}

/* Takes the references to both; either may be NULL. */
static void take_name(struct krait_said *said, PyObject *task, PyObject *name)
{
    krait_text_str(&said->task, name, NAME_BYTES);
    Py_XDECREF(name);
    Py_XDECREF(task);
    PyErr_Clear();
}

void krait_said_task(struct krait_said *said)
{
    char greenlet[NAME_BYTES];
    PyObject *task = asyncio_task();
    take_name(said, task, task && task != Py_None ? PyObject_CallMethod(task, "get_name", NULL) : NULL);
    task = said->task.len ? NULL : trio_task();
    take_name(said, task, task ? PyObject_GetAttrString(task, "name") : NULL);
    if (!said->task.len && krait_green_tasks_name(greenlet, sizeof(greenlet)))
        krait_buf_str(&said->task, greenlet);
}

/* -- logging's records -- */

struct record {
    PyObject *values[ATTRIBUTES]; /* references, NULL where the record has none */
    PyObject *dict;
};

static void record_done(struct record *record)
{
    for (size_t i = 0; i < ATTRIBUTES; i++)
        Py_XDECREF(record->values[i]);
    Py_XDECREF(record->dict);
}

/* Which of logging's attributes it is; A_NONE: the program's own. `near` is where it is looked for first. */
static size_t find_attribute(const struct krait_log *log, PyObject *key, size_t near)
{
    for (size_t i = 0; i < ATTRIBUTES; i++) {
        size_t at = (near + i) % ATTRIBUTES;
        if (log->names[at] == key)
            return at;
    }
    for (size_t i = 0; i < ATTRIBUTES; i++) { /* what was unpickled has strings of its own */
        if (PyUnicode_Compare(log->names[i], key) == 0)
            return i;
    }
    return A_NONE;
}

/* Takes it apart. Returns how many attributes are the program's own. */
static size_t read_record(const struct krait_log *log, PyObject *record, struct record *out)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    size_t near = 0, extra = 0;
    out->dict = PyObject_GetAttrString(record, "__dict__");
    while (out->dict && PyDict_Check(out->dict) && PyDict_Next(out->dict, &at, &key, &value)) {
        size_t is = PyUnicode_Check(key) ? find_attribute(log, key, near) : A_NONE;
        extra += is == A_NONE;
        if (is == A_NONE || out->values[is])
            continue;
        Py_INCREF(value);
        out->values[is] = value;
        near = is + 1;
    }
    PyErr_Clear();
    return extra;
}

/* An object of those attributes, for as long as they fit. */
static bool add_extra(const struct krait_log *log, struct krait_buf *to, PyObject *dict)
{
    struct krait_text_object object = { .to = to, .most = KRAIT_SAID_EXTRA_BYTES, .calls = KRAIT_TEXT_CALLS };
    PyObject *key, *value;
    Py_ssize_t at = 0;
    bool whole = true;
    while (whole && PyDict_Next(dict, &at, &key, &value)) {
        if (!PyUnicode_Check(key) || find_attribute(log, key, 0) == A_NONE)
            whole = krait_text_object_add(&object, key, value);
    }
    krait_text_object_end(&object);
    return whole;
}

long krait_long_of(PyObject *value)
{
    long n = value && PyLong_Check(value) ? PyLong_AsLong(value) : 0;
    PyErr_Clear();
    return n;
}

/* The exception of an exc_info triple, and its traceback; borrowed. */
static bool add_exc_info(struct krait_said *said, PyObject *exc_info)
{
    PyObject *exception = exc_info ? tuple_item(exc_info, 1) : NULL;
    return !exception || krait_said_exception(said, exception, tuple_item(exc_info, 2));
}

/* Whether the message of a record is made as format() does. */
static bool is_standard(PyObject *record)
{
    return (PyObject *)Py_TYPE(record) == krait_module_item(krait_module("logging"), "LogRecord");
}

static bool fill(const struct krait_log *log, struct krait_said *said, PyObject *object,
                 const struct record *record, size_t extra)
{
    PyObject *const *values = record->values;
    krait_text_str(&said->logger, values[A_NAME], NAME_BYTES);
    said->level = krait_long_of(values[A_LEVELNO]);
    said->line = (uint32_t)krait_long_of(values[A_LINENO]);
    krait_text_str(&said->func, values[A_FUNC], NAME_BYTES);
    krait_text_str(&said->file, values[A_PATHNAME], FILE_BYTES);
    krait_text_str(&said->task, values[A_TASK], NAME_BYTES); /* 3.12 */
    if (!said->task.len)
        krait_said_task(said);
    object = is_standard(object) ? NULL : object;
    return krait_said_message(said, object, values[A_MSG], values[A_ARGS]) &&
           add_exc_info(said, values[A_EXC_INFO]) && (!extra || add_extra(log, &said->extra, record->dict));
}

/* ---- recording ---- */

const char *krait_said_text(const struct krait_buf *text, const char *none)
{
    return text->len && !text->failed ? text->data : none;
}

void krait_said_write(struct krait_interp *in, const struct krait_said *said)
{
    struct krait_note note;
    KRAIT_AUTO_BUF payload = { 0 };
    if (krait_note_begin(&note, in, said->moment)) {
        const struct krait_payload_log_record record = {
            .level = (int32_t)KRAIT_MIN(KRAIT_MAX(said->level, (long)INT32_MIN), (long)INT32_MAX),
            .logger = krait_code_name(in, krait_said_text(&said->logger, "root")),
            .message = krait_said_text(&said->message, ""),
            .func = krait_said_text(&said->func, KRAIT_NO_TEXT),
            .file = krait_said_text(&said->file, KRAIT_NO_TEXT),
            .line = said->line,
            .task = krait_said_text(&said->task, KRAIT_NO_TEXT),
            .exception = krait_said_text(&said->exception, KRAIT_NO_TEXT),
            .extra = krait_said_text(&said->extra, KRAIT_NO_FIELDS),
        };
        uint8_t *at = (uint8_t *)krait_buf_room(&payload, KRAIT_PAYLOAD_MAX);
        if (at)
            krait_note_put(&note, KRAIT_EVENT_log_record, at, krait_put_log_record(at, &record));
    }
    krait_note_end(&note);
}

/* A record that handlers of the program have now. Its address alone: it means nothing once callHandlers has returned. What
 * gives a handler records without that, as loguru does, may make each one where the last one was. */
struct handled {
    PyObject *record;
    bool is_recorded;
    struct handled *outer;
};

/* Of this thread, the newest first. No stack: another greenlet may begin and end its own in the middle of one. */
static __thread struct handled *handled;

static struct handled *find_handled(const PyObject *record)
{
    struct handled *at = handled;
    while (at && at->record != record)
        at = at->outer;
    return at;
}

/* NULL without memory: then a handler records it too. */
static struct handled *begin_handled(PyObject *record)
{
    struct handled *own = malloc(sizeof(*own));
    if (own) {
        *own = (struct handled){ record, false, handled };
        handled = own;
    }
    return own;
}

static void end_handled(struct handled *own)
{
    struct handled **at = &handled;
    while (*at && *at != own)
        at = &(*at)->outer;
    if (*at)
        *at = own->outer;
    free(own);
}

static bool record_it(struct krait_interp *in, PyObject *object, bool is_asked_for)
{
    KRAIT_CLEANUP(krait_said_done) struct krait_said said = { .moment = krait_moment_now() };
    struct record record = { 0 };
    size_t extra = read_record(in->log, object, &record);
    char name[NAME_BYTES];
    krait_text_name(record.values[A_NAME], name, sizeof(name));
    bool whole = true;
    bool is_wanted =
        krait_log_wants(in, name, krait_long_of(record.values[A_LEVELNO])); /* it notes the logger */
    if (is_wanted || is_asked_for) {
        struct krait_log_mute before = krait_log_mute();
        whole = fill(in->log, &said, object, &record, extra);
        krait_log_unmute(before);
        if (whole)
            krait_said_write(in, &said);
        struct handled *now = find_handled(object);
        if (now)
            now->is_recorded = true;
    }
    record_done(&record);
    return whole;
}

bool krait_log_wants(struct krait_interp *in, const char *name, long level)
{
    const struct krait_logger *logger = in->log ? find_logger(in, name) : NULL;
    return logger && level >= logger->level && logger->level < INT32_MAX;
}

bool krait_log_wants_dropped(struct krait_interp *in, const char *name, long level)
{
    return krait_log_wants(in, name, level) && find_logger(in, name)->dropped;
}

/* Logger.callHandlers(self, record). */
static PyObject *on_call_handlers(PyObject *function, PyObject *const *args, size_t nargs, PyObject *names)
{
    if (krait_log_is_muted())
        Py_RETURN_NONE;
    struct krait_interp *in = krait_agent_interp();
    bool records = in && in->log && krait_agent_records(in) && KRAIT_NARGS(nargs) == 2 && !names;
    struct handled *own = records ? begin_handled(args[1]) : NULL;
    PyObject *result = NULL;
    if (!records || record_it(in, args[1], false))
        result = krait_call_original(function, args, nargs, names);
    end_handled(own);
    return result;
}

bool krait_log_handle(struct krait_interp *in, PyObject *record)
{
    const struct handled *now = find_handled(record);
    return (now && now->is_recorded) || krait_log_is_muted() || !log_of(in) || record_it(in, record, true);
}

/* ---- putting it in ---- */

static const struct krait_patch_python patches[] = {
    { "logging", "Logger", "callHandlers", on_call_handlers },
};

void krait_log_see(struct krait_interp *in)
{
    if (!log_of(in))
        return;
    krait_patch_python(patches, in->log->patched, KRAIT_ARRAY_LEN(patches));
    if (asks_dropped)
        krait_patch_python(krait_log_dropped_patches, in->log->patched + KRAIT_ARRAY_LEN(patches),
                           krait_log_dropped_patch_count);
}

void krait_log_end(struct krait_interp *in)
{
    if (!in->log)
        return;
    krait_unpatch_python(patches, in->log->patched, KRAIT_ARRAY_LEN(patches));
    krait_unpatch_python(krait_log_dropped_patches, in->log->patched + KRAIT_ARRAY_LEN(patches),
                         krait_log_dropped_patch_count);
}

/* What it has of the interpreter went with that. */
void krait_log_done(struct krait_interp *in)
{
    if (!in->log)
        return;
    krait_log_forget(in);
    free(in->log->loggers);
    free(in->log);
    in->log = NULL;
}
