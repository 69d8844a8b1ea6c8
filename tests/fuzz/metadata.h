/* SPDX-License-Identifier: Apache-2.0
 *
 * What the targets for metadata do with it: parsed or refused with a reason, then every scope is compiled.
 */
#ifndef KRAIT_TESTS_FUZZ_METADATA_H
#define KRAIT_TESTS_FUZZ_METADATA_H

#include "ctf/meta/open.h"
#include "ctf/read/program.h"

static void fuzz_compile(struct krait_arena *arena, const struct krait_fc *fc)
{
    struct krait_program program;
    if (krait_program_new(&program, arena, &fc, 1))
        abort();
}

static void fuzz_compile_all(const struct krait_ctf_metadata *md)
{
    struct krait_arena arena = { 0 };
    fuzz_compile(&arena, md->packet_header);
    for (uint32_t s = 0; s < md->stream_count; s++) {
        const struct krait_stream_class *stream = md->streams[s];
        fuzz_compile(&arena, stream->packet_context);
        fuzz_compile(&arena, stream->event_header);
        fuzz_compile(&arena, stream->event_context);
        for (uint32_t i = 0; i < stream->event_count; i++) {
            fuzz_compile(&arena, stream->events[i]->context);
            fuzz_compile(&arena, stream->events[i]->fields);
        }
    }
    krait_arena_done(&arena);
}

static int fuzz_metadata(const void *bytes, size_t size)
{
    struct krait_ctf_metadata *md = NULL;
    struct krait_err err = { 0 };
    int rc = krait_ctf_metadata_parse(&md, "fuzz", bytes, size, &err);
    if (rc ? md != NULL || !err.text[0] : md == NULL)
        abort();
    if (!rc)
        fuzz_compile_all(md);
    krait_ctf_metadata_free(md);
    return 0;
}

#endif
