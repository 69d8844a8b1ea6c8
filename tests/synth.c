/* SPDX-License-Identifier: Apache-2.0
 *
 * synth OUTDIR < SCRIPT: writes a recording with given times, by the code that real recordings are written with, so
 * that tests know what must come out. Time 0 is 2026-01-01 00:00:00 UTC, the clock's frequency 1 GHz. Words are
 * separated by blanks; in a word %20 is a blank, %XX any byte. One command a line, # begins a comment:
 *
 *   process PID NAME [PPID [COMMAND]]        a new process; what follows is in it
 *   code ID python|c|exception|name MODULE QUALNAME FILE LINE [SITE SITELINE]   ("-" is an empty string)
 *   suspends ID KIND                         code:suspends in the definitions, KIND a number
 *   cost PYTHON_INSIDE PYTHON_OUTSIDE C_INSIDE C_OUTSIDE   process:cost in the definitions, ns
 *   thread TID [NAME]                        a new stream, or goes on with the one of this tid
 *   TIME call|resume|throw|ccall ID          TIME in ns, or with us, ms, s
 *   TIME return|yield|unwind|creturn|craise  TIME unwindof|craiseof ID
 *   TIME gilwait HOLDER      TIME giltake|gilswitch|gildrop      TIME gilof ID   of the next one
 *   TIME switch FROM TO      TIME mark TEXT [FIELDS]
 *   TIME spanbegin ID CODE CATEGORY [FIELDS]   TIME spanend ID [FIELDS]
 *   TIME args|returned ID FIELDS             of the call of that function, which has just begun, or is about to end
 *   TIME counter CODE VALUE  TIME flow ID    TIME linkfrom|linkto ID
 *   TIME submit|start|done|result ID         of work for executors
 *   task ID CODE NAME                        task:define in the definitions
 *   TIME nursery TASK ADDRESS                task:nursery in the definitions
 *   TIME run TASK            TIME leave TASK REASON [ON [AT]]   TIME wake ON   (REASON a number)
 *   TIME wakeby TASK BY                      TIME await TASK ON SET
 *   TIME parent TASK PARENT                  task:parent in the definitions
 *   TIME frame ID DEPTH      TIME stack DEPTH      TIME omit ID CALLS (in the definitions)
 *   TIME recording STATE     switched off (0) or on (1), in the definitions
 *   TIME set WHAT            krait ctl set, in the definitions
 *   packet [LOST]                            ends the stream's packet; LOST events are missing before the next
 *   lost REASON COUNT                        krait:lost in the definitions, REASON a number
 *   exit HOW STATUS                          process:exit in the definitions, HOW a number
 *   repeat N ... end                         the lines between, N times, each time later by their last time
 */
#define KRAIT_PAYLOAD_MAX 16384 /* for names that are longer than the recorder writes */
#include "base/buf.h"
#include "event/payload.h"
#include "record/tracedir.h"

#include <string.h>
#include <sys/stat.h>

enum { THREADS = 64, WORDS = 12, PACKET = 32 * 1024 };

#define EPOCH_NS 1767225600000000000ull

struct packet {
    struct krait_stream *stream;
    uint32_t tid;
    uint64_t lost, last;
    size_t n;
    uint8_t bytes[PACKET + 4096];
};

struct synth {
    const char *out;
    struct krait_clock clock;
    struct krait_tracedir *dir;
    struct packet definitions;
    struct packet *threads;
    size_t thread_count;
    struct packet *thread;
    uint64_t base, last; /* of repeat */
    unsigned line;
};

static void die(const struct synth *s, const char *what)
{
    fprintf(stderr, "synth: line %u: %s\n", s->line, what);
    exit(1);
}

static void flush(struct synth *s, struct packet *p)
{
    if (p->n <= sizeof(struct krait_packet_head))
        return;
    struct krait_packet_head *head = (struct krait_packet_head *)p->bytes;
    head->timestamp_end = p->last;
    head->events_discarded = p->lost;
    struct krait_err err;
    if (krait_tracedir_write(s->dir, p->stream, head, head + 1, p->n - sizeof(*head), &err))
        die(s, err.text);
    p->n = 0;
}

static void put(struct synth *s, struct packet *p, uint64_t t, uint32_t id, const void *payload, size_t n)
{
    if (p->n + n > PACKET)
        flush(s, p);
    struct krait_packet_head *head = (struct krait_packet_head *)p->bytes;
    if (!p->n) {
        memset(head, 0, sizeof(*head));
        head->timestamp_begin = p->last = t;
        p->n = sizeof(*head);
    }
    if (p == &s->definitions || id >= KRAIT_CTF_EXTENDED ||
        t >> KRAIT_CTF_TS_BITS != p->last >> KRAIT_CTF_TS_BITS) {
        p->n += krait_head_extend(p->bytes + p->n, id, t);
    } else {
        uint32_t word = krait_head_pack(id, t);
        memcpy(p->bytes + p->n, &word, sizeof(word));
        p->n += sizeof(word);
    }
    if (n)
        memcpy(p->bytes + p->n, payload, n);
    p->n += n;
    p->last = t;
}

static void unescape(char *word)
{
    char *to = word;
    for (const char *p = word; *p; p++) {
        unsigned byte;
        if (*p == '%' && sscanf(p + 1, "%2x", &byte) == 1) {
            *to++ = (char)byte;
            p += 2;
        } else {
            *to++ = *p;
        }
    }
    *to = '\0';
}

static uint32_t number(const struct synth *s, char **words, int i)
{
    if (!words[i])
        die(s, "a number is missing");
    return (uint32_t)strtoul(words[i], NULL, 10);
}

static const char *text(const char *word)
{
    return strcmp(word, "-") == 0 ? "" : word;
}

static void define(struct synth *s, uint32_t id, const void *payload, size_t n)
{
    struct packet *p = &s->definitions;
    put(s, p, s->base + s->last, id, payload, n);
    uint64_t first, last;
    n += sizeof(struct krait_event_extended);
    krait_tracedir_define(s->dir, p->bytes + p->n - n, n, &first, &last);
}

static void end_process(struct synth *s)
{
    if (!s->dir)
        return;
    struct krait_err err;
    for (size_t i = 0; i < s->thread_count; i++)
        flush(s, &s->threads[i]);
    flush(s, &s->definitions);
    if (krait_tracedir_write_metadata(s->dir, &err))
        die(s, err.text);
    krait_tracedir_free(s->dir);
    s->dir = NULL;
    s->thread = NULL;
    s->thread_count = 0;
}

static void do_process(struct synth *s, char **w)
{
    end_process(s);
    const char *command = w[3] && w[4] ? w[4] : w[2];
    struct krait_err err;
    struct krait_tracedir_options options = {
        .parent = s->out,
        .name = w[2],
        .pid = number(s, w, 1),
        .command = command,
        .clock = &s->clock,
    };
    if (krait_tracedir_new(&s->dir, &options, &err))
        die(s, err.text);
    memset(&s->definitions, 0, sizeof(s->definitions));
    if (krait_tracedir_stream(s->dir, 0, &s->definitions.stream, &err))
        die(s, err.text);
    uint8_t payload[KRAIT_PAYLOAD_MAX];
    size_t n = krait_put_process_start(payload, &(struct krait_payload_process_start){
                                                    .vpid = options.pid,
                                                    .vppid = w[3] ? number(s, w, 3) : 1,
                                                    .runtime = "CPython 3.13.0",
                                                    .command = text(command),
                                                });
    define(s, KRAIT_EVENT_process_start, payload, n);
}

static enum krait_event_enum_value kind_of(const char *word)
{
    return strcmp(word, "exception") == 0 ? KRAIT_code_kind_exception
           : strcmp(word, "c") == 0       ? KRAIT_code_kind_c
           : strcmp(word, "name") == 0    ? KRAIT_code_kind_name
                                          : KRAIT_code_kind_python;
}

static void do_code(struct synth *s, char **w)
{
    uint8_t payload[KRAIT_PAYLOAD_MAX];
    size_t n = krait_put_code_define(payload, &(struct krait_payload_code_define){
                                                  .id = number(s, w, 1),
                                                  .kind = (uint8_t)kind_of(w[2]),
                                                  .line = number(s, w, 6),
                                                  .module = text(w[3]),
                                                  .qualname = text(w[4]),
                                                  .file = text(w[5]),
                                                  .site = w[7] ? number(s, w, 7) : 0,
                                                  .site_line = w[7] ? number(s, w, 8) : 0,
                                              });
    define(s, KRAIT_EVENT_code_define, payload, n);
}

static void do_thread(struct synth *s, char **w)
{
    uint32_t tid = number(s, w, 1);
    s->thread = NULL;
    for (size_t i = 0; i < s->thread_count; i++) {
        if (s->threads[i].tid == tid)
            s->thread = &s->threads[i];
    }
    if (!s->thread) {
        if (s->thread_count == THREADS)
            die(s, "too many threads");
        struct krait_err err;
        s->thread = &s->threads[s->thread_count++];
        memset(s->thread, 0, sizeof(*s->thread));
        s->thread->tid = tid;
        if (krait_tracedir_stream(s->dir, tid, &s->thread->stream, &err))
            die(s, err.text);
    }
    if (w[2]) {
        uint8_t payload[KRAIT_PAYLOAD_MAX];
        size_t n = krait_put_thread_name(
            payload, &(struct krait_payload_thread_name){ .vtid = tid, .name = text(w[2]) });
        define(s, KRAIT_EVENT_thread_name, payload, n);
    }
}

static void do_lost(struct synth *s, char **w)
{
    uint8_t payload[KRAIT_BYTES_lost];
    krait_put_lost(payload, &(struct krait_payload_lost){ .reason = (uint8_t)number(s, w, 1),
                                                          .count = number(s, w, 2) });
    define(s, KRAIT_EVENT_lost, payload, sizeof(payload));
}

static void do_cost(struct synth *s, char **w)
{
    uint8_t payload[KRAIT_BYTES_process_cost];
    krait_put_process_cost(
        payload, &(struct krait_payload_process_cost){ .python_inside_ns = (uint32_t)number(s, w, 1),
                                                       .python_outside_ns = (uint32_t)number(s, w, 2),
                                                       .c_inside_ns = (uint32_t)number(s, w, 3),
                                                       .c_outside_ns = (uint32_t)number(s, w, 4) });
    define(s, KRAIT_EVENT_process_cost, payload, sizeof(payload));
}

static void do_suspends(struct synth *s, char **w)
{
    uint8_t payload[KRAIT_BYTES_code_suspends];
    krait_put_code_suspends(payload, &(struct krait_payload_code_suspends){ .code = (uint32_t)number(s, w, 1),
                                                                            .as = (uint8_t)number(s, w, 2) });
    define(s, KRAIT_EVENT_code_suspends, payload, sizeof(payload));
}

static void do_task(struct synth *s, char **w)
{
    uint8_t payload[KRAIT_PAYLOAD_MAX];
    size_t n = krait_put_task_define(
        payload, &(struct krait_payload_task_define){
                     .id = number(s, w, 1), .coroutine = number(s, w, 2), .name = text(w[3]) });
    define(s, KRAIT_EVENT_task_define, payload, n);
}

static void do_exit(struct synth *s, char **w)
{
    uint8_t payload[KRAIT_BYTES_process_exit];
    krait_put_process_exit(payload,
                           &(struct krait_payload_process_exit){ .how = (uint8_t)number(s, w, 1),
                                                                 .status = (int32_t)number(s, w, 2) });
    define(s, KRAIT_EVENT_process_exit, payload, sizeof(payload));
}

static const struct {
    const char *word;
    uint32_t event;
} event_words[] = {
    { "call", KRAIT_EVENT_python_call },
    { "return", KRAIT_EVENT_python_return },
    { "yield", KRAIT_EVENT_python_yield },
    { "resume", KRAIT_EVENT_python_resume },
    { "throw", KRAIT_EVENT_python_throw },
    { "unwind", KRAIT_EVENT_python_unwind },
    { "ccall", KRAIT_EVENT_c_call },
    { "creturn", KRAIT_EVENT_c_return },
    { "craise", KRAIT_EVENT_c_raise },
    { "frame", KRAIT_EVENT_python_frame },
    { "unwindof", KRAIT_EVENT_python_unwind_of },
    { "craiseof", KRAIT_EVENT_c_raise_of },
    { "stack", KRAIT_EVENT_python_stack },
    { "omit", KRAIT_EVENT_code_omit },
    { "recording", KRAIT_EVENT_recording_switch },
    { "set", KRAIT_EVENT_recording_set },
    { "gilwait", KRAIT_EVENT_gil_wait },
    { "giltake", KRAIT_EVENT_gil_take },
    { "gilswitch", KRAIT_EVENT_gil_switch },
    { "gildrop", KRAIT_EVENT_gil_drop },
    { "gilof", KRAIT_EVENT_gil_interpreter },
    { "switch", KRAIT_EVENT_python_switch },
    { "mark", KRAIT_EVENT_user_mark },
    { "spanbegin", KRAIT_EVENT_span_begin },
    { "spanend", KRAIT_EVENT_span_end },
    { "args", KRAIT_EVENT_call_args },
    { "returned", KRAIT_EVENT_call_result },
    { "counter", KRAIT_EVENT_user_counter },
    { "flow", KRAIT_EVENT_user_flow },
    { "submit", KRAIT_EVENT_work_submit },
    { "start", KRAIT_EVENT_work_start },
    { "done", KRAIT_EVENT_work_done },
    { "result", KRAIT_EVENT_work_result },
    { "oldsubmit", KRAIT_EVENT_work_submit_id },
    { "oldstart", KRAIT_EVENT_work_start_id },
    { "olddone", KRAIT_EVENT_work_done_id },
    { "oldresult", KRAIT_EVENT_work_result_id },
    { "linkfrom", KRAIT_EVENT_link_from },
    { "linkto", KRAIT_EVENT_link_to },
    { "nursery", KRAIT_EVENT_task_nursery },
    { "run", KRAIT_EVENT_task_run },
    { "leave", KRAIT_EVENT_task_leave },
    { "wake", KRAIT_EVENT_task_wake },
    { "wakeby", KRAIT_EVENT_task_wake_by },
    { "await", KRAIT_EVENT_task_await },
    { "parent", KRAIT_EVENT_task_parent },
};

static uint64_t parse_time(const char *word)
{
    char *unit;
    double x = strtod(word, &unit);
    double scale = strcmp(unit, "us") == 0   ? 1e3
                   : strcmp(unit, "ms") == 0 ? 1e6
                   : strcmp(unit, "s") == 0  ? 1e9
                                             : 1;
    return (uint64_t)(x * scale + 0.5);
}

/* The words after an event's name; returns their bytes. */
static size_t put_fields(const struct synth *s, char **w, uint32_t event, uint8_t *payload)
{
    if (event == KRAIT_EVENT_user_mark)
        return krait_put_user_mark(payload, &(struct krait_payload_user_mark){
                                                .text = text(w[2]), .fields = text(w[3] ? w[3] : "-") });
    uint32_t first = krait_event_find(event)->field_count ? number(s, w, 2) : 0;
    switch (event) {
    case KRAIT_EVENT_python_stack:
        return krait_put_python_stack(payload,
                                      &(struct krait_payload_python_stack){ .depth = (uint16_t)first });
    case KRAIT_EVENT_python_frame:
        return krait_put_python_frame(payload, &(struct krait_payload_python_frame){
                                                   .code = first, .depth = (uint16_t)number(s, w, 3) });
    case KRAIT_EVENT_code_omit:
        return krait_put_code_omit(
            payload, &(struct krait_payload_code_omit){ .id = first, .calls = number(s, w, 3) });
    case KRAIT_EVENT_task_nursery:
        return krait_put_task_nursery(
            payload, &(struct krait_payload_task_nursery){ .task = first, .nursery = number(s, w, 3) });
    case KRAIT_EVENT_task_parent:
        return krait_put_task_parent(
            payload, &(struct krait_payload_task_parent){ .task = first, .parent = number(s, w, 3) });
    case KRAIT_EVENT_task_await:
        return krait_put_task_await(payload, &(struct krait_payload_task_await){ .task = first,
                                                                                 .on = number(s, w, 3),
                                                                                 .set = number(s, w, 4) });
    case KRAIT_EVENT_recording_switch:
        return krait_put_recording_switch(
            payload, &(struct krait_payload_recording_switch){ .state = (uint8_t)first });
    case KRAIT_EVENT_recording_set:
        return krait_put_recording_set(payload, &(struct krait_payload_recording_set){ .what = text(w[2]) });
    case KRAIT_EVENT_python_switch:
        return krait_put_python_switch(
            payload, &(struct krait_payload_python_switch){ .from = (uint16_t)first,
                                                            .to = (uint16_t)number(s, w, 3) });
    case KRAIT_EVENT_span_begin:
        return krait_put_span_begin(payload,
                                    &(struct krait_payload_span_begin){ .category = (uint8_t)number(s, w, 4),
                                                                        .id = first,
                                                                        .name = number(s, w, 3),
                                                                        .fields = text(w[5] ? w[5] : "{}") });
    case KRAIT_EVENT_span_end:
        return krait_put_span_end(
            payload, &(struct krait_payload_span_end){ .id = first, .fields = text(w[3] ? w[3] : "{}") });
    case KRAIT_EVENT_call_args:
    case KRAIT_EVENT_call_result: /* alike */
        return krait_put_call_args(
            payload, &(struct krait_payload_call_args){ .code = first, .args = text(w[3] ? w[3] : "{}") });
    case KRAIT_EVENT_user_counter:
        return krait_put_user_counter(
            payload, &(struct krait_payload_user_counter){ .name = first, .value = strtod(w[3], NULL) });
    case KRAIT_EVENT_work_submit:
    case KRAIT_EVENT_work_start:
    case KRAIT_EVENT_work_done:
    case KRAIT_EVENT_work_result: /* alike; an id of these has 64 bits */
        return krait_put_work_submit(
            payload, &(struct krait_payload_work_submit){ .id = w[2] ? strtoull(w[2], NULL, 10) : 0,
                                                          .function = w[2] && w[3] ? number(s, w, 3) : 0,
                                                          .pool = w[2] && w[3] && w[4] && number(s, w, 4) });
    case KRAIT_EVENT_work_submit_id:
    case KRAIT_EVENT_work_start_id:
    case KRAIT_EVENT_work_done_id:
    case KRAIT_EVENT_work_result_id:
        return krait_put_work_submit_id(
            payload, &(struct krait_payload_work_submit_id){ .id = w[2] ? strtoull(w[2], NULL, 10) : 0 });
    case KRAIT_EVENT_user_flow:
        return krait_put_user_flow(payload, &(struct krait_payload_user_flow){ .id = first });
    case KRAIT_EVENT_link_from:
        return krait_put_link_from(payload, &(struct krait_payload_link_from){ .id = first });
    case KRAIT_EVENT_link_to:
        return krait_put_link_to(payload, &(struct krait_payload_link_to){ .id = first });
    case KRAIT_EVENT_task_run:
        return krait_put_task_run(payload, &(struct krait_payload_task_run){ .task = first });
    case KRAIT_EVENT_task_leave:
        return krait_put_task_leave(payload,
                                    &(struct krait_payload_task_leave){ .task = first,
                                                                        .reason = (uint8_t)number(s, w, 3),
                                                                        .on = w[4] ? number(s, w, 4) : 0,
                                                                        .at = w[5] ? number(s, w, 5) : 0 });
    case KRAIT_EVENT_task_wake:
        return krait_put_task_wake(payload, &(struct krait_payload_task_wake){ .on = first });
    case KRAIT_EVENT_task_wake_by:
        return krait_put_task_wake_by(
            payload, &(struct krait_payload_task_wake_by){ .task = first, .by = number(s, w, 3) });
    case KRAIT_EVENT_gil_wait:
        return krait_put_gil_wait(payload, &(struct krait_payload_gil_wait){ .holder = first });
    default: /* begins */
        return krait_event_find(event)->field_count
                   ? krait_put_python_call(payload, &(struct krait_payload_python_call){ .code = first })
                   : 0;
    }
}

static void do_event(struct synth *s, char **w)
{
    uint32_t event = UINT32_MAX;
    for (size_t i = 0; w[1] && i < KRAIT_ARRAY_LEN(event_words); i++) {
        if (strcmp(w[1], event_words[i].word) == 0)
            event = event_words[i].event;
    }
    if (event == UINT32_MAX)
        die(s, "no such command");
    s->last = parse_time(w[0]);
    uint8_t payload[KRAIT_PAYLOAD_MAX];
    size_t n = put_fields(s, w, event, payload);
    if (event == KRAIT_EVENT_code_omit || event == KRAIT_EVENT_recording_switch ||
        event == KRAIT_EVENT_recording_set || event == KRAIT_EVENT_task_nursery ||
        event == KRAIT_EVENT_task_parent) {
        define(s, event, payload, n);
        return;
    }
    if (!s->thread)
        die(s, "no thread yet");
    put(s, s->thread, s->base + s->last, event, payload, n);
}

static void do_line(struct synth *s, char *line)
{
    char *words[WORDS] = { 0 };
    size_t n = 0;
    char *rest;
    for (char *w = strtok_r(line, " \t\n", &rest); w && n < WORDS - 1 && w[0] != '#';
         w = strtok_r(NULL, " \t\n", &rest))
        unescape(words[n++] = w);
    if (!n)
        return;
    if (strcmp(words[0], "process") == 0) {
        do_process(s, words);
        return;
    }
    if (!s->dir)
        die(s, "no process yet");
    if (strcmp(words[0], "code") == 0) {
        do_code(s, words);
    } else if (strcmp(words[0], "thread") == 0) {
        do_thread(s, words);
    } else if (strcmp(words[0], "packet") == 0) {
        flush(s, s->thread);
        s->thread->lost += words[1] ? number(s, words, 1) : 0;
    } else if (strcmp(words[0], "lost") == 0) {
        do_lost(s, words);
    } else if (strcmp(words[0], "cost") == 0) {
        do_cost(s, words);
    } else if (strcmp(words[0], "exit") == 0) {
        do_exit(s, words);
    } else if (strcmp(words[0], "suspends") == 0) {
        do_suspends(s, words);
    } else if (strcmp(words[0], "task") == 0) {
        do_task(s, words);
    } else {
        do_event(s, words);
    }
}

/* Runs the lines of `text`; a repeat runs its own part again and again. */
static void run(struct synth *s, const char *text, const char *end)
{
    while (text < end) {
        const char *eol = memchr(text, '\n', (size_t)(end - text));
        const char *next = eol ? eol + 1 : end;
        s->line++;
        unsigned times;
        if (sscanf(text, " repeat %u", &times) == 1) {
            const char *stop = strstr(text, "\nend");
            if (!stop)
                die(s, "repeat without end");
            unsigned line = s->line;
            for (unsigned i = 0; i < times; i++) {
                s->line = line;
                run(s, next, stop + 1);
                s->base += s->last;
            }
            text = stop + 4;
            continue;
        }
        KRAIT_AUTO_FREE char *line = strndup(text, (size_t)(next - text));
        do_line(s, line);
        text = next;
    }
}

int main(int argc, char **argv)
{
    static struct packet threads[THREADS];
    static struct synth s;
    if (argc != 2 || (mkdir(argv[1], 0777) < 0 && errno != EEXIST)) {
        fprintf(stderr, "usage: synth OUTDIR < SCRIPT\n");
        return 1;
    }
    s.out = argv[1];
    s.threads = threads;
    s.clock = (struct krait_clock){ .freq = KRAIT_NS_PER_S, .first = { .realtime_ns = EPOCH_NS } };
    KRAIT_AUTO_BUF text = { 0 };
    if (krait_buf_read_file(&text, "/dev/stdin") || !text.data)
        die(&s, "cannot read the script");
    run(&s, text.data, text.data + text.len);
    end_process(&s);
    return 0;
}
