/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a trace's metadata: parsed or refused, and then compiled.
 */
#include "ctf/program.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void compile(const struct krait_ctf_metadata *md)
{
    struct krait_arena arena = { 0 };
    struct krait_program program;
    for (uint32_t s = 0; s < md->stream_count; s++) {
        const struct krait_stream_class *stream = md->streams[s];
        struct krait_program_scope header = { stream->event_header, "header", true };
        krait_program_new(&program, &arena, &header, 1, KRAIT_SCOPE_EVENT_HEADER, 0);
        for (uint32_t i = 0; i < stream->event_count; i++) {
            struct krait_program_scope fields = { stream->events[i]->fields, "fields", true };
            krait_program_new(&program, &arena, &fields, 1, KRAIT_SCOPE_EVENT, KRAIT_TEXT_FIELD_NAMES);
        }
    }
    krait_arena_done(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct krait_ctf_metadata *md = NULL;
    struct krait_err err = { 0 };
    int rc = krait_ctf_metadata_parse(&md, "fuzz", data, size, &err);
    if (rc ? md != NULL || !err.text[0] : md == NULL)
        abort();
    if (!rc)
        compile(md);
    krait_ctf_metadata_free(md);
    return 0;
}
