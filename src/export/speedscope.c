/* SPDX-License-Identifier: Apache-2.0
 *
 * speedscope's own format: the functions once, then a profile of kind "evented" for each thread that called
 * anything, streamed. Times count from the recording's beginning, so that the threads' profiles have one time
 * axis. How a call began or ended other than by call and return has no place in the format. Source:
 * file-format-schema.json of the npm package speedscope 1.25.
 */
#include "base/json.h"
#include "export/formats.h"

struct speedscope {
    struct krait_export_job *job;
    struct krait_outfile *out;
    uint32_t thread;
    uint64_t last_ns;
    bool in_profile;  /* this thread has its profile open */
    bool in_profiles; /* there is a profile already */
};

#define ADD(buf, literal) krait_buf_add(buf, literal, sizeof(literal) - 1)

static void add_frame(struct krait_buf *buf, const struct krait_func *func)
{
    KRAIT_AUTO_BUF label = { 0 };
    krait_export_func_label(&label, func);
    ADD(buf, KRAIT_JSON_FIRST("name"));
    krait_json_str(buf, label.data, label.len);
    if (*func->file) {
        krait_json_key_text(buf, "file", func->file);
    }
    if (func->line) {
        krait_json_key_u64(buf, "line", func->line);
    }
    krait_buf_char(buf, '}');
    buf->failed |= label.failed;
}

static void add_frames(const struct krait_trace *trace, struct krait_outfile *out)
{
    for (uint32_t i = 0; i < trace->func_count && !krait_outfile_spill(out); i++) {
        krait_buf_str(&out->buf, i ? ",\n" : "\n");
        add_frame(&out->buf, &trace->funcs[i]);
    }
}

static void add_profile_name(struct krait_buf *buf, const struct krait_trace *trace, uint32_t index)
{
    const struct krait_thread *thread = &trace->threads[index];
    const struct krait_process *process = &trace->processes[thread->process];
    KRAIT_AUTO_BUF name = { 0 };
    krait_buf_fmt(&name, "%s %u, %s %u", krait_export_process_name(process), process->pid,
                  krait_export_thread_name(trace, thread), thread->tid);
    krait_json_str(buf, name.data, name.len);
    buf->failed |= name.failed;
}

static void open_profile(struct speedscope *scope, uint64_t from_ns)
{
    struct krait_buf *buf = &scope->out->buf;
    krait_buf_str(buf, scope->in_profiles ? ",\n" : "\n");
    krait_buf_char(buf, '{');
    krait_json_key_text(buf, "type", "evented");
    krait_json_key(buf, "name");
    add_profile_name(buf, scope->job->trace, scope->thread);
    krait_json_key_text(buf, "unit", "nanoseconds");
    krait_json_key_u64(buf, "startValue", from_ns);
    krait_json_key_open(buf, "events", '[');
    scope->in_profile = scope->in_profiles = true;
}

static void close_profile(struct speedscope *scope)
{
    ADD(&scope->out->buf, "\n]");
    krait_json_key_u64(&scope->out->buf, "endValue", scope->last_ns);
    krait_buf_char(&scope->out->buf, '}');
    scope->in_profile = false;
}

static void add_event(struct speedscope *scope, uint64_t at, uint32_t func, bool is_end)
{
    struct krait_buf *buf = &scope->out->buf;
    if (scope->in_profile) {
        krait_buf_char(buf, ',');
    } else {
        open_profile(scope, at);
    }
    ADD(buf, "\n" KRAIT_JSON_FIRST("type") "\"");
    krait_buf_char(buf, is_end ? 'C' : 'O');
    ADD(buf, "\"" KRAIT_JSON_NEXT("frame"));
    krait_json_u64(buf, func);
    ADD(buf, KRAIT_JSON_NEXT("at"));
    krait_json_u64(buf, at);
    krait_buf_char(buf, '}');
    scope->last_ns = at;
}

static int add_ops(void *ctx, const struct krait_call_batch *ops)
{
    struct speedscope *scope = ctx;
    for (uint32_t i = 0; i < ops->n; i++) {
        add_event(scope, krait_export_since_begin(scope->job, ops->t_ns[i]), ops->func[i],
                  krait_op_is_end(ops->kind[i]));
        if (krait_outfile_spill(scope->out))
            return scope->out->error;
    }
    return 0;
}

static int add_thread(void *ctx, uint32_t thread)
{
    struct speedscope *scope = ctx;
    scope->thread = thread;
    int rc = krait_export_walk(scope->job, thread, add_ops, scope);
    if (scope->in_profile)
        close_profile(scope);
    return rc;
}

/* The reader takes the file's name where the format's own name is absent; what was recorded says more. */
static const char *title(const struct krait_trace *trace)
{
    for (uint32_t i = 0; i < trace->process_count; i++) {
        if (*trace->processes[i].command)
            return trace->processes[i].command;
    }
    return "krait";
}

int krait_export_write_speedscope(struct krait_export_job *job, struct krait_outfile *out,
                                  struct krait_err *err)
{
    struct speedscope scope = { .job = job, .out = out };
    struct krait_buf *buf = &out->buf;
    krait_buf_char(buf, '{');
    krait_json_key_text(buf, "$schema", "https://www.speedscope.app/file-format-schema.json");
    krait_json_key_text(buf, "exporter", "krait " KRAIT_VERSION);
    krait_json_key_text(buf, "name", title(job->trace));
    krait_json_key_u64(buf, "activeProfileIndex", 0);
    krait_json_key_open(buf, "shared", '{');
    krait_json_key_open(buf, "frames", '[');
    add_frames(job->trace, out);
    ADD(buf, "\n]}");
    krait_json_key_open(buf, "profiles", '[');
    int rc = krait_export_each_thread(job, add_thread, &scope);
    ADD(buf, "\n]}\n");
    return rc ? krait_err_set(err, rc, "cannot read the calls") : 0;
}
