/* SPDX-License-Identifier: Apache-2.0
 *
 * The contents of the recording, and all names: the page asks for these first.
 */
#include "base/clock.h"
#include "base/json.h"
#include "base/shell.h"
#include "serve/running.h"
#include "serve/serving.h"
#include "trace/kernel/kernel.h"
#include "view/classes.h"

#include <string.h>

enum { PAGE = 1024, FOUND = 200 };

/* After 104 days, nanoseconds exceed the exact range of a double, so they are sent as texts. */
static void json_ns(struct krait_buf *out, const char *key, uint64_t ns)
{
    krait_json_key(out, key);
    krait_buf_fmt(out, "\"%llu\"", (unsigned long long)ns);
}

static uint64_t since(const struct krait_serving *serving, uint64_t t_ns)
{
    return t_ns > serving->origin_ns ? t_ns - serving->origin_ns : 0;
}

static uint32_t recording_of(const struct krait_serving *serving, const char *dir)
{
    return krait_folders_path_of(serving->paths, serving->path_count, dir);
}

static void put_processes(struct krait_buf *out, const struct krait_serving *serving)
{
    const struct krait_trace *trace = serving->trace;
    krait_json_key_open(out, "processes", '[');
    for (uint32_t i = 0; i < trace->process_count; i++) {
        const struct krait_process *p = &trace->processes[i];
        krait_json_item(out, "\n{");
        krait_json_key_u64(out, "pid", p->pid);
        krait_json_key_u64(out, "ppid", p->ppid);
        krait_json_key_text(out, "name", p->name);
        krait_json_key_text(out, "command", p->command);
        krait_json_key_text(out, "runtime", p->runtime);
        krait_json_key_text(out, "host", p->host);
        krait_json_key_u64(out, "recording", recording_of(serving, p->dir));
        krait_json_key_text(out, "end", p->end);
        json_ns(out, "begin", since(serving, p->begin_ns));
        json_ns(out, "until", since(serving, p->end_ns));
        krait_buf_char(out, '}');
    }
    krait_buf_char(out, ']');
}

static void put_threads(struct krait_buf *out, const struct krait_serving *serving)
{
    const struct krait_trace *trace = serving->trace;
    krait_json_key_open(out, "threads", '[');
    for (uint32_t i = 0; i < trace->thread_count; i++) {
        const struct krait_thread *t = &trace->threads[i];
        krait_json_item(out, "\n{");
        krait_json_key_u64(out, "process", t->process);
        krait_json_key_u64(out, "tid", t->tid);
        krait_json_key_text(out, "name", t->name);
        json_ns(out, "begin", since(serving, t->begin_ns));
        json_ns(out, "until", since(serving, t->end_ns));
        krait_buf_char(out, '}');
    }
    krait_buf_char(out, ']');
}

/* For kernel traces without a program's part; none if there is only one machine. */
static void put_machines(struct krait_buf *out, const struct krait_serving *serving)
{
    uint32_t count = krait_kernel_machines(serving->trace);
    krait_json_key_open(out, "machines", '[');
    for (uint32_t i = 0; count > 1 && i < count; i++) {
        const struct krait_range range = krait_kernel_range(serving->trace, i);
        krait_json_item(out, "\n{");
        krait_json_key_u64(out, "recording", recording_of(serving, krait_kernel_dir(serving->trace, i)));
        krait_json_key_text(out, "host", krait_kernel_host(serving->trace, i));
        json_ns(out, "begin", since(serving, range.from_ns));
        json_ns(out, "until", since(serving, range.to_ns));
        krait_buf_char(out, '}');
    }
    krait_buf_char(out, ']');
}

static void put_id(struct krait_buf *out, const char *key, uint32_t id)
{
    krait_json_key_u64_or_null(out, key, id != KRAIT_NO_ID, id);
}

static void put_tracks(struct krait_buf *out, const struct krait_serving *serving)
{
    static const char *const kinds[] = {
        [KRAIT_TRACK_CALLS] = "calls",     [KRAIT_TRACK_SLICES] = "slices",
        [KRAIT_TRACK_STATES] = "states",   [KRAIT_TRACK_INSTANTS] = "instants",
        [KRAIT_TRACK_COUNTER] = "counter", [KRAIT_TRACK_FLOWS] = "flows",
    };
    static const char *const places[] = {
        [KRAIT_OF_THREAD] = "thread",   [KRAIT_OF_CPU] = "cpu",     [KRAIT_OF_TASK] = "task",
        [KRAIT_OF_PROCESS] = "process", [KRAIT_OF_GROUP] = "group", [KRAIT_OF_LANE] = "lane"
    };
    const struct krait_trace *trace = serving->trace;
    krait_json_key_open(out, "tracks", '[');
    for (uint32_t i = 0; i < trace->track_count; i++) {
        const struct krait_track *t = &trace->tracks[i];
        krait_json_item(out, "\n{");
        krait_json_key_u64(out, "id", i);
        krait_json_key_text(out, "kind", kinds[t->kind]);
        krait_json_key_text(out, "of", places[t->of]);
        put_id(out, "process", t->process);
        put_id(out, "thread", t->thread);
        krait_json_key_u64(out, "number", t->number);
        krait_json_key_u64(out, "machine", t->machine);
        krait_json_key_u64(out, "pid", t->pid);
        krait_json_key_text(out, "processName", t->process_name ? t->process_name : "");
        krait_json_key_text(out, "threadName", t->thread_name ? t->thread_name : "");
        krait_json_key_text(out, "name", t->name);
        krait_json_key_text(out, "unit", t->unit ? t->unit : "");
        krait_json_key_u64(out, "parts", KRAIT_MAX(t->parts, 1u));
        krait_json_key_u64(out, "flags", t->flags);
        krait_buf_char(out, '}');
    }
    krait_buf_char(out, ']');
}

static void put_missing(struct krait_buf *out, const struct krait_serving *serving)
{
    const struct krait_trace *trace = serving->trace;
    krait_json_key_open(out, "lost", '[');
    for (uint32_t i = 0; i < trace->lost_count; i++) {
        krait_json_item(out, "{");
        krait_json_key_u64(out, "count", trace->lost[i].count);
        krait_json_key_text(out, "reason", trace->lost[i].reason);
        krait_json_key_text(out, "advice", trace->lost[i].advice);
        krait_buf_char(out, '}');
    }
    krait_buf_str(out, "]");
    krait_json_key_open(out, "dropped", '[');
    for (uint32_t i = 0; i < trace->omitted_count; i++) {
        krait_json_item(out, "{");
        krait_json_key_u64(out, "func", trace->omitted[i].func);
        krait_json_key_text(out, "reason", trace->omitted[i].reason);
        krait_json_key_u64(out, "calls", trace->omitted[i].calls);
        json_ns(out, "at", since(serving, trace->omitted[i].first_ns));
        krait_buf_char(out, '}');
    }
    krait_buf_str(out, "]");
    krait_json_key_open(out, "sets", '[');
    for (uint32_t i = 0; i < trace->set_count; i++) {
        krait_json_item(out, "{");
        json_ns(out, "at", since(serving, trace->sets[i].t_ns));
        krait_json_key_text(out, "what", trace->sets[i].what);
        krait_buf_char(out, '}');
    }
    krait_buf_char(out, ']');
    krait_json_key_text_or_null(out, "damage", trace->damage);
}

/* What a recording of samples is made of. */
static void put_samples(struct krait_buf *out, const struct krait_trace_samples *samples)
{
    if (!samples->rate) {
        krait_json_key_null(out, "samples");
        return;
    }
    krait_json_key_open(out, "samples", '{');
    krait_json_key_u64(out, "taken", samples->taken);
    krait_json_key_u64(out, "interval", samples->interval_ns);
    krait_buf_char(out, '}');
}

static void put_index(struct krait_buf *out, const struct krait_serving *serving)
{
    struct krait_view_progress progress;
    krait_view_progress(serving->view, &progress);
    krait_json_key_open(out, "index", '{');
    krait_json_key(out, "share");
    krait_buf_fmt(out, "%.4f", progress.share);
    krait_json_key_bool(out, "done", progress.is_done);
    krait_json_key_bool(out, "cached", progress.is_cached);
    krait_json_key_bool(out, "whole", progress.is_done && !progress.rc);
    krait_json_key_u64(out, "bytes", progress.bytes);
    krait_json_key_u64(out, "took", progress.took_ns);
    krait_json_key_u64(out, "read", krait_trace_bytes_read(serving->trace));
    krait_buf_char(out, '}');
}

/* The meaning of the hues of states. */
static void put_classes(struct krait_buf *out)
{
    krait_json_key_open(out, "classes", '[');
    for (uint32_t i = 0; i < krait_class_count; i++) {
        krait_json_item(out, "{");
        krait_json_key_text(out, "name", krait_classes[i].name);
        krait_json_key_text(out, "role", krait_classes[i].role);
        krait_buf_char(out, '}');
    }
    krait_buf_char(out, ']');
}

/* As words of a command that a user can paste into a shell. */
static void put_folders(struct krait_buf *out, const struct krait_serving *serving)
{
    krait_json_key_open(out, "folders", '[');
    for (size_t i = 0; i < serving->path_count; i++) {
        KRAIT_AUTO_BUF word = { 0 };
        krait_shell_file(&word, serving->paths[i]);
        krait_buf_char(&word, '\0');
        krait_json_item(out, "");
        krait_json_cstr(out, word.failed ? "" : word.data);
        out->failed |= word.failed;
    }
    krait_buf_char(out, ']');
}

/* Whether krait ctl has switched off the recording of all processes that still run. */
static bool is_switched_off(const struct krait_trace *trace)
{
    bool is_off = false;
    for (uint32_t i = 0; i < trace->process_count; i++) {
        const struct krait_process *process = &trace->processes[i];
        if (*process->end)
            continue;
        is_off = process->gap_count && process->gaps[process->gap_count - 1].to_ns >= process->end_ns;
        if (!is_off)
            break;
    }
    return is_off;
}

int krait_answer_trace(struct krait_serving *serving, const struct krait_request *request,
                       struct krait_buf *out, struct krait_err *err)
{
    const struct krait_trace *trace = serving->trace;
    const struct krait_process *first = trace->process_count ? &trace->processes[0] : NULL;
    krait_buf_char(out, '{');
    krait_json_key_text(out, "version", KRAIT_VERSION);
    krait_json_key_text(out, "title", first ? *first->command ? first->command : first->name : "");
    put_folders(out, serving);
    json_ns(out, "origin", serving->origin_ns);
    json_ns(out, "duration", krait_view_length(serving->view));
    krait_json_key_bool(out, "growing", serving->growing);
    krait_json_key_bool(out, "off", serving->growing && is_switched_off(trace));
    krait_json_key_u64(out, "generation", serving->generation);
    krait_json_key_u64(out, "changes", serving->changes);
    put_index(out, serving);
    krait_json_key_u64(out, "traceBytes", trace->bytes);
    krait_json_key_u64(out, "funcs", trace->func_count);
    krait_json_key_u64(out, "texts", krait_view_text_count(serving->view));
    krait_json_key_bool(out, "kernel", trace->has_kernel);
    put_samples(out, &trace->samples);
    put_processes(out, serving);
    put_threads(out, serving);
    put_machines(out, serving);
    put_tracks(out, serving);
    put_classes(out);
    put_missing(out, serving);
    krait_buf_str(out, "}\n");
    return 0;
}

/* ---- answers that are being made ---- */

static void put_running(void *ctx, const struct krait_running *running)
{
    struct krait_buf *out = ctx;
    uint64_t done = __atomic_load_n(&running->done, __ATOMIC_RELAXED);
    double share = running->total ? (double)done / (double)running->total : 0;
    krait_json_item(out, "\n{");
    krait_json_key_text(out, "name", running->name);
    krait_json_key(out, "share");
    krait_buf_fmt(out, "%.3f", KRAIT_MIN(share, 0.999));
    krait_json_key_u64(out, "took", krait_clock_ns(CLOCK_MONOTONIC) - running->begun_ns);
    krait_buf_char(out, '}');
}

int krait_answer_progress(struct krait_serving *serving, const struct krait_request *request,
                          struct krait_buf *out, struct krait_err *err)
{
    krait_buf_str(out, "[");
    krait_running_each(put_running, out);
    krait_buf_str(out, "]\n");
    return 0;
}

static int page_of(const struct krait_request *request, uint32_t count, uint32_t *begin, uint32_t *end)
{
    uint64_t page = krait_request_number(request, KRAIT_PARAM_page, 0);
    *begin = page <= count / PAGE ? (uint32_t)page * PAGE : count;
    *end = KRAIT_MIN(count, *begin + PAGE);
    return 0;
}

static void put_func(struct krait_buf *out, const struct krait_serving *serving, uint32_t func)
{
    const struct krait_func *f = &serving->trace->funcs[func];
    krait_json_item(out, "\n[");
    krait_json_cstr(out, f->name);
    krait_buf_char(out, ',');
    krait_json_cstr(out, f->module);
    krait_buf_char(out, ',');
    krait_json_cstr(out, f->file);
    krait_buf_fmt(out, ",%u,%u,%u,%d]", f->line, (unsigned)f->kind, krait_view_func_hue(serving->view, func),
                  f->holds_dropped);
}

int krait_answer_funcs(struct krait_serving *serving, const struct krait_request *request,
                       struct krait_buf *out, struct krait_err *err)
{
    uint32_t begin, end;
    page_of(request, serving->trace->func_count, &begin, &end);
    krait_buf_char(out, '[');
    for (uint32_t i = begin; i < end; i++)
        put_func(out, serving, i);
    krait_buf_str(out, "]\n");
    return 0;
}

int krait_answer_texts(struct krait_serving *serving, const struct krait_request *request,
                       struct krait_buf *out, struct krait_err *err)
{
    uint32_t begin, end;
    page_of(request, krait_view_text_count(serving->view), &begin, &end);
    krait_buf_char(out, '[');
    for (uint32_t i = begin; i < end; i++) {
        krait_json_item(out, "\n");
        krait_json_cstr(out, krait_view_text(serving->view, i));
    }
    krait_buf_str(out, "]\n");
    return 0;
}

/* ---- search ---- */

static bool has_text(const char *in, const char *text)
{
    return strcasestr(in, text) != NULL;
}

static bool func_has(const struct krait_func *func, const char *text)
{
    char label[512];
    return has_text(krait_func_label(func, label, sizeof(label)), text) || has_text(func->file, text);
}

int krait_answer_search(struct krait_serving *serving, const struct krait_request *request,
                        struct krait_buf *out, struct krait_err *err)
{
    const struct krait_trace *trace = serving->trace;
    uint64_t limit = krait_request_number(request, KRAIT_PARAM_limit, FOUND), found = 0;
    int rc = krait_request_needs(request, 1u << KRAIT_PARAM_text, err);
    if (rc)
        return rc;
    krait_buf_char(out, '{');
    krait_json_key_open(out, "funcs", '[');
    for (uint32_t i = 0; i < trace->func_count; i++) {
        if (!func_has(&trace->funcs[i], request->text) || found++ >= limit)
            continue;
        krait_json_item(out, "");
        krait_json_u64(out, i);
    }
    krait_buf_char(out, ']');
    krait_json_key_u64(out, "found", found);
    krait_json_key_open(out, "threads", '[');
    for (uint32_t i = 0; i < trace->thread_count; i++) {
        char tid[16];
        snprintf(tid, sizeof(tid), "%u", trace->threads[i].tid);
        if (!has_text(trace->threads[i].name, request->text) && strcmp(tid, request->text) != 0)
            continue;
        krait_json_item(out, "");
        krait_json_u64(out, i);
    }
    krait_buf_str(out, "]}\n");
    return 0;
}
