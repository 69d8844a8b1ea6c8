/* SPDX-License-Identifier: Apache-2.0 */
#include "sample/sample.h"

#include "base/array.h"
#include "ctf/write/tsdl_write.h"
#include "record/folder.h"
#include "record/frames.h"
#include "remote/kernel_stack.h"
#include "sample/tasks.h"

#include <string.h>

/* A thread that was met. */
struct sampled {
    pid_t tid;
    uint64_t addr; /* of its state */
    struct krait_sample_stream stream;
    uint32_t *codes; /* its stack, the outermost first */
    uint32_t depth, cap;
    uint32_t line;
    uint32_t task; /* that it runs a step of; 0: of none */
    enum krait_event_enum_value state;
    uint64_t round;     /* the last one that it was met in */
    uint64_t sampled_t; /* 0: never */
    bool open;          /* it has a stack */
};

struct krait_sampler {
    struct krait_remote *remote;
    struct krait_remote_stacks stacks;
    struct krait_tracedir *dir;
    struct krait_sample_stream definitions;
    struct krait_sample_codes codes;
    struct krait_sample_tasks tasks;
    struct sampled *threads;
    uint32_t count, cap;
    uint32_t flags;
    bool kernel;
    struct krait_remote_frame *merged; /* a thread's frames with those on top that are read apart */
    uint32_t merged_cap;
    uint64_t round, begin_ns, found_ns, flushed_ns, told_ns;
    bool stale; /* the threads may be others by now */
    struct krait_clock clock;
    struct krait_tsdl_samples samples;
    struct krait_tsdl_recording recording;
    uint64_t metadata_bytes;
};

enum {
    FIND_NS = 50 * KRAIT_NS_PER_MS, /* how often threads are looked for */
    FLUSH_NS = KRAIT_NS_PER_S,
};

/* -- opening -- */

void krait_sampler_free(struct krait_sampler *s)
{
    if (!s)
        return;
    for (uint32_t i = 0; i < s->count; i++) {
        krait_sample_stream_done(&s->threads[i].stream);
        free(s->threads[i].codes);
    }
    free(s->threads);
    free(s->merged);
    krait_sample_stream_done(&s->definitions);
    krait_sample_codes_done(&s->codes);
    krait_sample_tasks_done(&s->tasks);
    krait_tracedir_free(s->dir);
    krait_remote_stacks_done(&s->stacks);
    krait_remote_free(s->remote);
    free(s);
}

/* What the process is called: the kernel's name of its first thread. */
static void read_name(pid_t pid, char *name, size_t size)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/comm", pid);
    KRAIT_AUTO_FILE FILE *file = fopen(path, "re");
    if (!file || !fgets(name, (int)size, file))
        snprintf(name, size, "python");
    name[strcspn(name, "\n")] = '\0';
}

static int put_start(struct krait_sampler *s, const char *command, struct krait_err *err)
{
    char runtime[64];
    uint8_t payload[KRAIT_PAYLOAD_MAX];
    snprintf(runtime, sizeof(runtime), "CPython %s", s->remote->version);
    struct krait_payload_process_start start = { .vpid = (uint32_t)s->remote->pid,
                                                 .origin = KRAIT_process_origin_attach,
                                                 .runtime = runtime,
                                                 .command = command };
    size_t n = krait_put_process_start(payload, &start);
    return krait_sample_stream_put(&s->definitions, krait_clock_now(&s->clock), KRAIT_EVENT_process_start,
                                   payload, n, err);
}

static int open_dir(struct krait_sampler *s, const struct krait_sampler_options *sampled,
                    struct krait_err *err)
{
    KRAIT_AUTO_BUF command = { 0 };
    char name[32];
    read_name(s->remote->pid, name, sizeof(name));
    krait_task_command(&command, s->remote->pid);
    struct krait_tracedir_options options = { .parent = sampled->dir,
                                              .name = name,
                                              .pid = (uint32_t)s->remote->pid,
                                              .command = command.data ? command.data : "",
                                              .clock = &s->clock,
                                              .recording = &s->recording,
                                              .metadata_bytes = &s->metadata_bytes,
                                              .reads_labels = true,
                                              .spare_fds = sampled->spare_fds };
    int rc = krait_tracedir_new(&s->dir, &options, err);
    rc = rc ? rc : krait_sample_stream_open(&s->definitions, s->dir, 0, err);
    return rc ? rc : put_start(s, options.command, err);
}

int krait_sampler_new(struct krait_sampler **out, const struct krait_sampler_options *options,
                      struct krait_err *err)
{
    bool made = false;
    struct krait_sampler *s = calloc(1, sizeof(*s));
    if (!s)
        return krait_err_set(err, -ENOMEM, "out of memory");
    s->samples.rate = options->rate;
    s->kernel = options->kernel;
    s->flags = KRAIT_READ_PROVED | KRAIT_READ_WAITS | KRAIT_READ_AGAIN |
               (options->alone ? KRAIT_READ_STAY : 0) |
               (options->alone || options->native ? KRAIT_READ_SWITCHES : 0) |
               (options->no_tasks ? 0 : KRAIT_READ_TASKS) |
               (options->native ? KRAIT_READ_NATIVE : KRAIT_READ_CALLED);
    s->recording.samples = &s->samples;
    int rc = krait_remote_open(&s->remote, options->pid, err);
    rc = rc || !s->kernel ? rc : krait_kernel_stack_check(options->pid, err);
    rc = rc || options->joins ? rc : krait_folder_make(options->dir, &made, err);
    if (!rc) {
        krait_clock_init(&s->clock);
        rc = open_dir(s, options, err);
    }
    if (rc) {
        krait_sampler_free(s);
        if (made)
            rmdir(options->dir);
        return rc;
    }
    *out = s;
    return 0;
}

/* -- threads -- */

static int put_name(struct krait_sampler *s, const struct sampled *to, struct krait_err *err)
{
    const struct krait_os_task *task = krait_tasks_find(&s->stacks.tasks, to->tid);
    const char *name = to->tid == s->remote->pid ? "MainThread" : task ? task->name : "";
    uint8_t payload[KRAIT_PAYLOAD_MAX];
    size_t n = krait_put_thread_name(
        payload, &(struct krait_payload_thread_name){ .vtid = (uint32_t)to->tid, .name = name });
    return krait_sample_stream_put(&s->definitions, krait_clock_now(&s->clock), KRAIT_EVENT_thread_name,
                                   payload, n, err);
}

/* The record of a thread, made if it is met first. */
static int find_sampled(struct krait_sampler *s, const struct krait_remote_thread *thread,
                        struct sampled **out, struct krait_err *err)
{
    for (uint32_t i = 0; i < s->count; i++) {
        if (s->threads[i].tid == thread->tid && s->threads[i].addr == thread->addr) {
            *out = &s->threads[i];
            return 0;
        }
    }
    if (!KRAIT_GROW(s->threads, s->cap, s->count + 1))
        return krait_err_set(err, -ENOMEM, "out of memory");
    struct sampled *made = &s->threads[s->count];
    *made = (struct sampled){ .tid = thread->tid, .addr = thread->addr };
    int rc = krait_sample_stream_open(&made->stream, s->dir, (uint32_t)thread->tid, err);
    if (rc)
        return rc;
    s->count++;
    *out = made;
    return put_name(s, made, err);
}

/* -- events -- */

static int put_sample(struct sampled *to, uint64_t t, struct krait_err *err)
{
    uint8_t payload[KRAIT_BYTES_python_sample];
    size_t n = krait_put_python_sample(
        payload, &(struct krait_payload_python_sample){ .line = to->line, .state = (uint8_t)to->state });
    return krait_sample_stream_put(&to->stream, t, KRAIT_EVENT_python_sample, payload, n, err);
}

static int put_depth(struct sampled *to, uint64_t t, struct krait_err *err)
{
    uint8_t payload[KRAIT_FRAME_BYTES];
    size_t n;
    uint32_t event = krait_put_depth(payload, to->depth, &n);
    return krait_sample_stream_put(&to->stream, t, event, payload, n, err);
}

/* The frames that differ from those of the sample before. */
static int put_stack(struct krait_sampler *s, struct sampled *to, uint64_t t,
                     const struct krait_remote_frame *frames, uint32_t count, struct krait_err *err)
{
    bool differs = count != to->depth;
    int rc = KRAIT_GROW(to->codes, to->cap, count) ? 0 : krait_err_set(err, -ENOMEM, "out of memory");
    for (uint32_t i = 0, above = 0; i < count && !rc; i++) {
        uint32_t id = 0;
        rc = krait_sample_code(&s->codes, &s->definitions, t, frames[count - 1 - i].code, &id, err);
        if (rc || (!above && i < to->depth && to->codes[i] == id))
            continue;
        uint8_t payload[KRAIT_FRAME_BYTES];
        size_t n;
        uint32_t event = krait_put_frame(payload, id, i, &n);
        rc = krait_sample_stream_put(&to->stream, t, event, payload, n, err);
        to->codes[i] = id;
        above = 1;
        differs = true;
    }
    to->depth = count;
    to->open = true;
    return rc || !differs ? rc : put_depth(to, t, err);
}

static int put_task(struct krait_sampler *s, struct sampled *to, uint64_t t,
                    const struct krait_running_task *task, struct krait_err *err)
{
    uint32_t id = 0, before = to->task;
    int rc = task ? krait_sample_task(&s->tasks, &s->codes, &s->definitions, t, task, &id, err) : 0;
    to->task = rc ? before : id;
    return rc ? rc : krait_sample_task_put(&to->stream, t, before, id, err);
}

static enum krait_event_enum_value state_of(const struct krait_remote_thread *thread)
{
    if (thread->state == 'R')
        return KRAIT_sample_state_runs;
    return thread->gil_wait ? KRAIT_sample_state_gil : KRAIT_sample_state_blocked;
}

/* The line of the innermost Python function. */
static uint32_t line_of(const struct krait_remote_frame *frames, uint32_t count)
{
    uint32_t i = 0;
    while (i < count && (frames[i].code->native || frames[i].code->module))
        i++;
    return i < count ? (uint32_t)KRAIT_MAX(frames[i].line, 0) : 0;
}

/* The thread's frames, innermost first, with the function written in C that the first has called, and what of the kernel it
 * waits in. */
static const struct krait_remote_frame *frames_of(struct krait_sampler *s,
                                                  const struct krait_remote_thread *thread, uint32_t *count)
{
    const struct krait_remote_frame *own = s->stacks.frames + thread->first;
    *count = thread->count;
    bool waits = s->kernel && !thread->same && thread->state != 'R';
    if (!(waits || thread->called) ||
        !KRAIT_GROW(s->merged, s->merged_cap, KRAIT_KERNEL_DEPTH_MAX + 1 + thread->count))
        return own;
    uint32_t n = waits ? krait_kernel_stack_read(s->remote, thread, s->merged) : 0;
    if (thread->called)
        s->merged[n++] = (struct krait_remote_frame){ .code = thread->called };
    if (thread->count)
        memcpy(s->merged + n, own, thread->count * sizeof(*own));
    *count = n + thread->count;
    return s->merged;
}

/* How long a thread's last sample counts for. On a busy machine some count for many times as long as others. */
static void count_interval(struct krait_sampler *s, struct sampled *to, uint64_t t)
{
    double ns = to->sampled_t ? (double)(t - to->sampled_t) * 1e9 / (double)s->clock.freq : 0;
    to->sampled_t = t;
    s->samples.intervals_ns += ns;
    s->samples.squares_ns2 += ns * ns;
}

static int add_thread(struct krait_sampler *s, const struct krait_remote_thread *thread,
                      struct krait_err *err)
{
    struct sampled *to = NULL;
    int rc = find_sampled(s, thread, &to, err);
    if (rc)
        return rc;
    uint64_t t = krait_clock_now(&s->clock);
    to->round = s->round;
    s->stale |= thread->failed;
    s->samples.dropped += thread->failed;
    if (thread->failed)
        return 0;
    uint32_t count;
    const struct krait_remote_frame *frames = frames_of(s, thread, &count);
    to->state = state_of(thread);
    to->line = thread->same ? to->line : line_of(frames, count);
    s->samples.taken++;
    count_interval(s, to, t);
    rc = put_sample(to, t, err);
    rc = rc || thread->same ? rc : put_stack(s, to, t, frames, count, err);
    return rc || thread->same ? rc : put_task(s, to, t, thread->task, err);
}

/* Threads that are there no more have no stack from now on. */
static int close_threads(struct krait_sampler *s, struct krait_err *err)
{
    int rc = 0;
    for (uint32_t i = 0; i < s->count && !rc; i++) {
        struct sampled *thread = &s->threads[i];
        if (!thread->open || thread->round == s->round)
            continue;
        thread->open = false;
        thread->depth = 0;
        uint64_t t = krait_clock_now(&s->clock);
        rc = put_depth(thread, t, err);
        rc = rc ? rc : krait_sample_task_put(&thread->stream, t, thread->task, 0, err);
        thread->task = 0;
        rc = rc ? rc : krait_sample_stream_flush(&s->definitions, err); /* they name what the thread has */
        rc = rc ? rc : krait_sample_stream_rest(&thread->stream, err);
        free(thread->codes);
        thread->codes = NULL;
        thread->cap = 0;
    }
    return rc;
}

/* Definitions first: they name what the others say. */
static int flush_all(struct krait_sampler *s, struct krait_err *err)
{
    int rc = krait_sample_stream_flush(&s->definitions, err);
    for (uint32_t i = 0; i < s->count && !rc; i++)
        rc = krait_sample_stream_flush(&s->threads[i].stream, err);
    return rc ? rc : krait_tracedir_refresh_metadata(s->dir, err);
}

/* What the metadata says of the samples is an eighth of the time old at most, where krait is killed or looked at meanwhile:
 * that takes few writes however long it goes on. */
static void outdate_metadata(struct krait_sampler *s, uint64_t now)
{
    if (now - s->told_ns < (now - s->begin_ns) / 8)
        return;
    s->told_ns = now;
    krait_tracedir_outdate_metadata(s->dir);
}

/* Whether threads are to be looked for then; at first, too. */
static bool must_find(const struct krait_sampler *s, uint64_t at)
{
    return s->stale || at - s->found_ns >= FIND_NS;
}

/* A new program may have something readable at the same addresses. */
static int read_stacks(struct krait_sampler *s, bool finds, struct krait_err *err)
{
    if (finds && krait_remote_has_executed(s->remote))
        return -ESTALE;
    int rc = krait_remote_read(s->remote, &s->stacks, s->flags | (finds ? 0 : KRAIT_READ_KNOWN), err);
    if (!rc || rc == -ESRCH || rc == -ENOMEM)
        return rc;
    return krait_remote_has_executed(s->remote) ? -ESTALE : -EAGAIN;
}

int krait_sampler_round(struct krait_sampler *s, struct krait_err *err)
{
    uint64_t now = krait_clock_ns(CLOCK_MONOTONIC);
    bool finds = must_find(s, now);
    int rc = read_stacks(s, finds, err);
    if (rc)
        return rc;
    s->stale = false;
    s->round++;
    s->found_ns = finds ? now : s->found_ns;
    s->begin_ns = s->samples.rounds++ ? s->begin_ns : now;
    s->samples.ns = now - s->begin_ns;
    for (uint32_t i = 0; i < s->stacks.thread_count && !rc; i++)
        rc = s->stacks.threads[i].tid ? add_thread(s, &s->stacks.threads[i], err) : 0;
    if (finds && !rc)
        rc = close_threads(s, err);
    if (must_find(s, now + KRAIT_NS_PER_S / s->samples.rate)) /* that takes its time, which is no thread's */
        krait_still_leave(&s->remote->still);
    if (!rc && now - s->flushed_ns >= FLUSH_NS) {
        s->flushed_ns = now;
        outdate_metadata(s, now);
        rc = flush_all(s, err);
    }
    return rc;
}

/* -- the end -- */

int krait_sampler_finish(struct krait_sampler *s, enum krait_event_enum_value how, int status,
                         const char *limit, struct krait_sampler_summary *summary, struct krait_err *err)
{
    uint8_t payload[KRAIT_BYTES_process_exit];
    size_t n = krait_put_process_exit(
        payload, &(struct krait_payload_process_exit){ .how = (uint8_t)how, .status = status });
    s->recording.limit = limit;
    *summary = (struct krait_sampler_summary){ .begin_ns = s->begin_ns,
                                               .duration_ns = s->samples.ns,
                                               .samples = s->samples.taken,
                                               .dropped = s->samples.dropped,
                                               .rounds = s->samples.rounds,
                                               .threads = s->count };
    int rc = krait_sample_stream_put(&s->definitions, krait_clock_now(&s->clock), KRAIT_EVENT_process_exit,
                                     payload, n, err);
    rc = rc ? rc : flush_all(s, err);
    krait_clock_refine(&s->clock);
    rc = rc ? rc : krait_tracedir_write_metadata(s->dir, err);
    summary->bytes = s->metadata_bytes + s->definitions.stream->bytes;
    for (uint32_t i = 0; i < s->count; i++)
        summary->bytes += s->threads[i].stream.stream->bytes;
    return rc;
}
