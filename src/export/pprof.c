/* SPDX-License-Identifier: Apache-2.0
 *
 * pprof's profile.proto, gzip-compressed: a sample for each distinct stack of each thread, with how often its
 * innermost function was called and the time that belongs to it alone; labels tell process and thread. A
 * function is one location: its first line. Messages are compressed as they are made. Source:
 * proto/profile.proto and its comments in github.com/google/pprof.
 */
#include "export/formats.h"
#include "export/proto.h"

#include <string.h>
#include <zlib.h>

enum {
    PROFILE_SAMPLE_TYPE = 1,
    PROFILE_SAMPLE = 2,
    PROFILE_MAPPING = 3,
    PROFILE_LOCATION = 4,
    PROFILE_FUNCTION = 5,
    PROFILE_STRING = 6,
    PROFILE_TIME = 9,
    PROFILE_DURATION = 10,
    PROFILE_PERIOD_TYPE = 11,
    PROFILE_PERIOD = 12,
    PROFILE_DEFAULT_TYPE = 14,
};
enum { VALUE_TYPE = 1, VALUE_UNIT = 2 };
enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE = 2, SAMPLE_LABEL = 3 };
enum { LABEL_KEY = 1, LABEL_TEXT = 2, LABEL_NUMBER = 3 };
/* The mapping is there because readers ask for one; its flags tell them not to look for symbols themselves. */
enum { MAPPING_ID = 1, MAPPING_FILE = 5, MAPPING_FUNCTIONS = 7, MAPPING_FILES = 8, MAPPING_LINES = 9 };
enum { LOCATION_ID = 1, LOCATION_MAPPING = 2, LOCATION_LINE = 4, LINE_FUNCTION = 1, LINE_LINE = 2 };
enum { FUNCTION_ID = 1, FUNCTION_NAME = 2, FUNCTION_SYSTEM_NAME = 3, FUNCTION_FILE = 4, FUNCTION_LINE = 5 };

/* The string table begins with these, the empty one first as the format demands. Then a name and a file for
 * each function, then the groups' labels. */
static const char *const words[] = { "", "calls", "count", "time", "nanoseconds", "process", "thread" };
enum {
    WORD_CALLS = 1,
    WORD_COUNT,
    WORD_TIME,
    WORD_NANOSECONDS,
    WORD_PROCESS,
    WORD_THREAD,
    WORD_PROGRAM,
    WORDS
};

enum { CHUNK = 64 * 1024, GZIP_WINDOW = 15 + 16 /* zlib.h, deflateInit2: 16 asks for gzip's header */ };

struct pprof {
    struct krait_export_job *job;
    const struct krait_calltree *tree;
    struct krait_outfile *out;
    struct krait_buf raw; /* not compressed yet */
    z_stream gzip;
};

static uint64_t name_word(uint32_t func)
{
    return WORDS + 2ull * func;
}

static uint64_t label_word(const struct krait_trace *trace, uint32_t label)
{
    return WORDS + 2ull * trace->func_count + label;
}

/* Compresses what is in `raw`. */
static int compress_raw(struct pprof *pprof, int flush)
{
    z_stream *gzip = &pprof->gzip;
    gzip->next_in = (Bytef *)pprof->raw.data;
    gzip->avail_in = (uInt)pprof->raw.len;
    do {
        char *to = krait_buf_room(&pprof->out->buf, CHUNK);
        if (!to)
            return -ENOMEM;
        gzip->next_out = (Bytef *)to;
        gzip->avail_out = CHUNK;
        if (deflate(gzip, flush) == Z_STREAM_ERROR)
            return -EINVAL;
        pprof->out->buf.len += CHUNK - gzip->avail_out;
        if (krait_outfile_spill(pprof->out))
            return pprof->out->error;
    } while (!gzip->avail_out);
    krait_buf_clear(&pprof->raw);
    return 0;
}

/* After each message. */
static int spill(struct pprof *pprof)
{
    if (pprof->raw.failed)
        return -ENOMEM;
    return pprof->raw.len < CHUNK ? 0 : compress_raw(pprof, Z_NO_FLUSH);
}

static void add_value_type(struct krait_buf *buf, uint32_t field, uint64_t type, uint64_t unit)
{
    size_t value = krait_pb_begin(buf, field);
    krait_pb_u64(buf, VALUE_TYPE, type);
    krait_pb_u64(buf, VALUE_UNIT, unit);
    krait_pb_end(buf, value);
}

static void add_head(struct pprof *pprof)
{
    const struct krait_trace *trace = pprof->job->trace;
    struct krait_range range = pprof->job->what.range;
    uint64_t from = KRAIT_MAX(range.from_ns, krait_trace_kept(trace)),
             to = KRAIT_MIN(range.to_ns, trace->end_ns);
    struct krait_buf *buf = &pprof->raw;
    add_value_type(buf, PROFILE_SAMPLE_TYPE, WORD_CALLS, WORD_COUNT);
    add_value_type(buf, PROFILE_SAMPLE_TYPE, WORD_TIME, WORD_NANOSECONDS);
    add_value_type(buf, PROFILE_PERIOD_TYPE, WORD_TIME, WORD_NANOSECONDS);
    krait_pb_u64(buf, PROFILE_PERIOD, 1);
    krait_pb_u64(buf, PROFILE_DEFAULT_TYPE, WORD_TIME);
    krait_pb_u64(buf, PROFILE_TIME, from);
    krait_pb_u64(buf, PROFILE_DURATION, to > from ? to - from : 0);
}

static void add_mapping(struct krait_buf *buf)
{
    size_t mapping = krait_pb_begin(buf, PROFILE_MAPPING);
    krait_pb_u64(buf, MAPPING_ID, 1);
    krait_pb_u64(buf, MAPPING_FILE, WORD_PROGRAM);
    krait_pb_u64(buf, MAPPING_FUNCTIONS, 1);
    krait_pb_u64(buf, MAPPING_FILES, 1);
    krait_pb_u64(buf, MAPPING_LINES, 1);
    krait_pb_end(buf, mapping);
}

static int add_strings(struct pprof *pprof)
{
    const struct krait_trace *trace = pprof->job->trace;
    const struct krait_strtab *labels = &pprof->tree->labels;
    int rc = 0;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(words); i++)
        krait_pb_cstr(&pprof->raw, PROFILE_STRING, words[i]);
    krait_pb_cstr(&pprof->raw, PROFILE_STRING,
                  trace->process_count ? krait_export_process_name(&trace->processes[0]) : "");
    for (uint32_t i = 0; !rc && i < trace->func_count; i++) {
        KRAIT_AUTO_BUF label = { 0 };
        krait_export_func_label(&label, &trace->funcs[i]);
        krait_pb_str(&pprof->raw, PROFILE_STRING, label.data, label.len);
        krait_pb_cstr(&pprof->raw, PROFILE_STRING, trace->funcs[i].file);
        rc = label.failed ? -ENOMEM : spill(pprof);
    }
    for (uint32_t i = 0; !rc && i < labels->len; i++) {
        krait_pb_str(&pprof->raw, PROFILE_STRING, labels->texts[i], labels->lens[i]);
        rc = spill(pprof);
    }
    return rc;
}

static void add_function(struct krait_buf *buf, uint32_t id, uint32_t line)
{
    size_t function = krait_pb_begin(buf, PROFILE_FUNCTION);
    krait_pb_u64(buf, FUNCTION_ID, (uint64_t)id + 1);
    krait_pb_u64(buf, FUNCTION_NAME, name_word(id));
    krait_pb_u64(buf, FUNCTION_SYSTEM_NAME, name_word(id));
    krait_pb_u64(buf, FUNCTION_FILE, name_word(id) + 1);
    krait_pb_u64(buf, FUNCTION_LINE, line);
    krait_pb_end(buf, function);
    size_t location = krait_pb_begin(buf, PROFILE_LOCATION);
    krait_pb_u64(buf, LOCATION_ID, (uint64_t)id + 1);
    krait_pb_u64(buf, LOCATION_MAPPING, 1);
    size_t where = krait_pb_begin(buf, LOCATION_LINE);
    krait_pb_u64(buf, LINE_FUNCTION, (uint64_t)id + 1);
    krait_pb_u64(buf, LINE_LINE, line);
    krait_pb_end(buf, where);
    krait_pb_end(buf, location);
}

static int add_functions(struct pprof *pprof)
{
    int rc = 0;
    for (uint32_t i = 0; !rc && i < pprof->job->trace->func_count; i++) {
        add_function(&pprof->raw, i, pprof->job->trace->funcs[i].line);
        rc = spill(pprof);
    }
    return rc;
}

static void add_label(struct pprof *pprof, const struct krait_tree_node *group)
{
    size_t label = krait_pb_begin(&pprof->raw, SAMPLE_LABEL);
    krait_pb_u64(&pprof->raw, LABEL_KEY, group->depth == 1 ? WORD_PROCESS : WORD_THREAD);
    krait_pb_u64(&pprof->raw, LABEL_TEXT, label_word(pprof->job->trace, group->label));
    krait_pb_end(&pprof->raw, label);
}

/* The stack of a node, the innermost first, and its labels. */
static void add_stack(struct pprof *pprof, uint32_t node)
{
    const struct krait_tree_node *nodes = pprof->tree->nodes;
    struct krait_buf *buf = &pprof->raw;
    size_t stack = krait_pb_begin(buf, SAMPLE_LOCATION);
    for (; nodes[node].func != KRAIT_NO_ID; node = nodes[node].parent)
        krait_pb_varint(buf, (uint64_t)nodes[node].func + 1);
    krait_pb_end(buf, stack);
    for (; nodes[node].label != KRAIT_NO_ID; node = nodes[node].parent)
        add_label(pprof, &nodes[node]);
}

static void add_sample(struct pprof *pprof, uint32_t node)
{
    struct krait_buf *buf = &pprof->raw;
    size_t sample = krait_pb_begin(buf, PROFILE_SAMPLE);
    add_stack(pprof, node);
    size_t values = krait_pb_begin(buf, SAMPLE_VALUE);
    krait_pb_varint(buf, pprof->tree->nodes[node].calls);
    krait_pb_varint(buf, pprof->tree->nodes[node].self_ns);
    krait_pb_end(buf, values);
    krait_pb_end(buf, sample);
}

static int add_samples(struct pprof *pprof)
{
    int rc = 0;
    for (uint32_t i = 0; !rc && i < pprof->tree->count; i++) {
        const struct krait_tree_node *node = &pprof->tree->nodes[i];
        if (node->func == KRAIT_NO_ID || !(node->self_ns | node->calls))
            continue;
        add_sample(pprof, i);
        rc = spill(pprof);
    }
    return rc;
}

static int write_all(struct pprof *pprof)
{
    add_head(pprof);
    add_mapping(&pprof->raw);
    int rc = add_strings(pprof);
    if (!rc)
        rc = add_functions(pprof);
    if (!rc)
        rc = add_samples(pprof);
    return rc ? rc : compress_raw(pprof, Z_FINISH);
}

int krait_export_write_pprof(struct krait_export_job *job, struct krait_outfile *out, struct krait_err *err)
{
    KRAIT_AUTO_TREE *tree = NULL;
    int rc = krait_export_tree(job, KRAIT_TREE_BY_THREAD, &tree, err);
    if (rc)
        return rc;
    struct pprof pprof = { .job = job, .tree = tree, .out = out };
    if (deflateInit2(&pprof.gzip, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) !=
        Z_OK)
        return krait_err_set(err, -ENOMEM, "out of memory for the compression");
    rc = write_all(&pprof);
    deflateEnd(&pprof.gzip);
    krait_buf_done(&pprof.raw);
    return rc ? krait_err_set(err, rc, "cannot write the samples: %s", strerror(-rc)) : 0;
}
