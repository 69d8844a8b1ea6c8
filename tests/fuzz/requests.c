/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as requests, NAME?QUERY a line, to the server of a trace with calls, states, system calls and wake-ups: each
 * is refused with a reason or answered, with valid JSON where it says so.
 */
#include "packets.h"

#include "base/json_read.h"
#include "serve/serving.h"
#include "trace/track.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

static const char metadata[] =
    "typealias integer { size = 8; align = 8; signed = true; } := i8;\n"
    "typealias integer { size = 16; align = 8; map = clock.m.value; } := t16;\n"
    "trace { major = 1; minor = 8; byte_order = le; };\n"
    "clock { name = m; };\n"
    "stream { packet.context := struct { i8 cpu_id; };\n"
    "event.header := struct { integer { size = 8; align = 8; } id; t16 timestamp; };\n"
    "event.context := struct { i8 _vtid; i8 _vpid; }; };\n"
    "event { name = \"sched_switch\"; id = 0; fields := struct { i8 prev_tid; i8 prev_state; i8 next_tid; }; };\n"
    "event { name = \"sched_wakeup\"; id = 1; fields := struct { i8 tid; }; };\n"
    "event { name = \"syscall_entry_read\"; id = 2; };\n"
    "event { name = \"syscall_exit_read\"; id = 3; fields := struct { i8 ret; }; };\n"
    "event { name = \"lttng_ust_cyg_profile:func_entry\"; id = 4; fields := struct { i8 addr; i8 call_site; }; };\n"
    "event { name = \"lttng_ust_cyg_profile:func_exit\"; id = 5; fields := struct { i8 addr; i8 call_site; }; };\n";

/* CPU 0; then events: id, time, vtid, vpid, fields. */
static const uint8_t stream[] = {
    0,  /**/ 0, 1, 0,      5,      5,      0,  0,      5, /* 5 runs */
    4,  10,     0, 5,      5,      64,     1,  /**/ 4, 20,
    0,  5,      5, 80,     1,      /**/ 5, 40, 0,      5,
    5,  80,     1, 2,      50,     0,      5,  5,      /* reads, and sleeps until 6 wakes it */ 0,
    60, 0,      5, 5,      5,      1,      6,  1,      90,
    0,  6,      6, 5,      /**/ 0, 100,    0,  6,      6,
    6,  1,      5, /**/ 3, 110,    0,      5,  5,      3,
    5,  120,    0, 5,      5,      64,     1,  /**/ 0, 130,
    0,  5,      5, 5,      1,      0,
};

static struct krait_serving serving;
static const char *paths[] = { fuzz_dir };

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    struct krait_err err = { 0 };
    struct krait_trace *trace;
    const struct krait_view_options options = { .paths = paths,
                                                .path_count = 1,
                                                .flags = KRAIT_VIEW_NO_CACHE };
    int rc = fuzz_make_dir();
    fuzz_write_file("metadata", metadata, sizeof(metadata) - 1);
    fuzz_write_file("s0", stream, sizeof(stream));
    if (rc || krait_trace_open(&trace, paths, 1, 0, &err) ||
        krait_view_open(&serving.view, trace, &options, &err) || krait_view_wait(serving.view))
        return 1;
    serving.trace = trace;
    serving.origin_ns = krait_view_origin(serving.view);
    serving.paths = paths;
    serving.path_count = 1;
    pthread_mutex_init(&serving.one, NULL);
    if (!trace->func_count || !trace->has_kernel || !trace->thread_count)
        abort(); /* the trace is not what it is meant to be */
    return 0;
}

static void check_json(const struct krait_buf *out)
{
    struct krait_arena arena = { 0 };
    struct krait_json *value;
    struct krait_err err = { 0 };
    if (krait_json_read(&value, &arena, out->data, out->len, 0, &err))
        abort();
    krait_arena_done(&arena);
}

static void ask(char *line)
{
    struct krait_request request;
    KRAIT_AUTO_BUF out = { 0 };
    struct krait_err err = { 0 };
    char *query = strchr(line, '?');
    if (query)
        *query++ = '\0';
    int rc = krait_request_parse(&request, line, query, &err);
    rc = rc ? rc : request.endpoint->answer(&serving, &request, &out, &err);
    if (rc && !err.text[0])
        abort();
    if (!rc && request.endpoint->type != KRAIT_ENDPOINT_BYTES)
        check_json(&out);
    krait_request_done(&request);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    KRAIT_AUTO_BUF text = { 0 };
    krait_buf_add(&text, (const char *)data, size);
    krait_buf_char(&text, '\0');
    for (char *line = text.data, *next; line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        ask(line);
    }
    return 0;
}
