/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a recording of krait's, which has a reader of its own (trace/): the length of its definitions
 * in two bytes, the definitions, and a thread's stream. Every walk comes to an end, with its calls balanced
 * and its times in order.
 */
#include "packets.h"
#include "tracks.h"

#include "ctf/write/tsdl_write.h"
#include "trace/trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    return fuzz_make_dir();
}

/* The packets' own uuid: behind the magic number. */
static void write_metadata(const uint8_t *stream, size_t size)
{
    struct krait_tsdl tsdl = { .clock = { .uuid = "00010203-0405-0607-0809-0a0b0c0d0e0f",
                                          .freq = 1000000000 },
                               .host = "h",
                               .procname = "p",
                               .command = "c",
                               .vpid = 10 };
    KRAIT_AUTO_BUF text = { 0 };
    if (size >= 20)
        memcpy(tsdl.uuid, stream + 4, 16);
    krait_tsdl_write(&text, &tsdl);
    fuzz_write_file("metadata", text.data, text.len);
}

struct walk {
    uint64_t depth, last_ns;
};

static int check_ops(void *ctx, const struct krait_call_batch *ops)
{
    struct walk *walk = ctx;
    for (uint32_t i = 0; i < ops->n; i++) {
        if (ops->t_ns[i] < walk->last_ns || (krait_op_is_end(ops->kind[i]) && !walk->depth))
            abort();
        walk->last_ns = ops->t_ns[i];
        walk->depth += krait_op_is_end(ops->kind[i]) ? -(uint64_t)1 : 1;
    }
    return 0;
}

static void walk_all(const struct krait_trace *trace, struct krait_range range)
{
    char damage[256] = "";
    for (uint32_t i = 0; i < trace->thread_count; i++) {
        struct walk walk = { 0 };
        if (krait_trace_walk(trace, i, range, check_ops, &walk, damage, sizeof(damage)) || walk.depth)
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct krait_trace *trace;
    struct krait_err err = { 0 };
    const char *path = fuzz_dir;
    size_t n = size >= 2 ? KRAIT_MIN((size_t)(data[0] | data[1] << 8), size - 2) : 0;
    const uint8_t *definitions = data + KRAIT_MIN(size, (size_t)2), *stream = definitions + n;
    size_t left = (size_t)(data + size - stream);
    write_metadata(stream, left);
    fuzz_write_file("definitions", definitions, n);
    fuzz_write_file("thread-10-0", stream, left);
    if (krait_trace_open(&trace, &path, 1, KRAIT_NEEDS_CALLS, &err)) {
        if (!err.text[0])
            abort();
        return 0;
    }
    walk_all(trace, KRAIT_RANGE_ALL);
    walk_all(trace, (struct krait_range){ trace->begin_ns + 1000, trace->begin_ns + 5000 });
    fuzz_tracks(trace, 1000, 5000);
    krait_trace_close(trace);
    return 0;
}
