/* SPDX-License-Identifier: Apache-2.0
 *
 * Any text as a filter: refused with its reason, or asked of events of every kind of field.
 */
#include "packets.h"

#include "ctf/read/filter.h"
#include "ctf/read/merge.h"
#include "ctf/read/reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

static struct krait_ctf_reader *reader;

static void close_reader(void)
{
    krait_ctf_close(reader);
}

/* Events d, e, d, b, b and a of fuzz_mixed, then damage: found among random bytes. */
static const uint8_t trace[] = { 1,    0x03, 0x00, 0x40, 0x20, 0x41, 0x4e, 0x62, 0x9e, 0x00, 0x03, 0x02, 0x60,
                                 0x00, 0x60, 0x40, 0x00, 0x4e, 0x98, 0x40, 0x02, 0xa3, 0x03, 0x01, 0x00, 0xbb,
                                 0x20, 0x60, 0x40, 0x02, 0x60, 0x60, 0x00, 0x20, 0x20, 0x00, 0x01, 0x00, 0x20,
                                 0x00, 0x03, 0x00, 0x01, 0x77, 0x00, 0x02, 0x40, 0x60, 0x61, 0x41, 0x20, 0x20,
                                 0x41, 0x02, 0x41, 0x01, 0x03, 0x01, 0x02, 0x02, 0x01, 0x01, 0x40, 0x01, 0x02,
                                 0x00, 0x41, 0x00, 0x02, 0xef, 0x03, 0x20, 0x03, 0x01, 0x00, 0x03, 0x21, 0x20,
                                 0x40, 0x01, 0x01, 0x40, 0x2e, 0xfa, 0x00, 0x60, 0x60, 0x00, 0x40, 0x40, 0x20,
                                 0xd5, 0x17, 0x40, 0x00, 0x02, 0x40 };

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    const char *path = fuzz_dir;
    if (fuzz_make_dir())
        return 1;
    fuzz_write_trace(trace, sizeof(trace));
    return krait_ctf_open(&reader, &path, 1, NULL, NULL) || atexit(close_reader);
}

static void ask_all(const struct krait_filter *filter)
{
    struct krait_ctf_merge *merge;
    struct krait_ctf_cursor *cursor;
    if (krait_ctf_merge_new(&merge, reader, NULL))
        abort();
    while ((cursor = krait_ctf_merge_next(merge))) {
        if (krait_ctf_event_skip(cursor) == 0 && krait_filter_wants(filter, cursor) &&
            !krait_filter_may_want(filter, cursor->event))
            abort();
    }
    krait_ctf_merge_free(merge);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct krait_filter *filter = NULL;
    struct krait_err err = { 0 };
    char *text = strndup((const char *)data, size);
    if (!text)
        return 0;
    int rc = krait_filter_new(&filter, text, &err);
    if (!rc && krait_filter_bind(filter, reader, &err) == 0)
        ask_all(filter);
    else if (!err.text[0])
        abort();
    krait_filter_free(filter);
    free(text);
    return 0;
}
