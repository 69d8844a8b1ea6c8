/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as changes of an index's cache file (view/cache.h) with a sum that fits: it is used or built again, and
 * tiles of all tracks are made of it. An input that begins with 0 is such a file itself; else each 5 bytes change one
 * byte, or eight, of a good one.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* nftw */
#endif

#include "../unit/made_kernel.h"
#include "../unit/made_view.h"
#include "view/cache_own.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

static struct made *made;
static struct krait_buf good;
static char path[96];

static void remove_all(void)
{
    made_free(made);
}

static void write_file(const void *bytes, size_t n)
{
    FILE *file = fopen(path, "w");
    if (!file || fwrite(bytes, 1, n, file) != n)
        abort();
    fclose(file);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    made = made_new();
    made_thread(made, 10);
    run(made, &(struct shape){ .step = 500, .pause = 10, .depth = 150, .losses = true }, 1200, 3);
    const struct krait_payload_gil_wait wait = { .holder = 11 };
    uint8_t payload[KRAIT_BYTES_gil_wait];
    for (uint32_t i = 0; i < 50; i++) {
        made->t += 100 + i;
        made_put(made, KRAIT_EVENT_gil_wait, payload, krait_put_gil_wait(payload, &wait));
        made->t += 50 * i;
        made_end(made, KRAIT_EVENT_gil_take);
    }
    made_close(made);
    made_kernel(made, 100);
    snprintf(path, sizeof(path), "%s/" KRAIT_CACHE_NAME, made->parent);
    struct opened index = open_view(made, 0);
    if (krait_view_wait(index.view))
        abort();
    close_view(&index);
    atexit(remove_all);
    return krait_buf_read_file(&good, path);
}

/* The last 8 bytes are the sum. */
static void set_sum(uint8_t *bytes, size_t n)
{
    if (n < 16 || n % 8)
        return;
    uint64_t sum = krait_cache_sum(0, bytes, n - 8);
    memcpy(bytes + n - 8, &sum, sizeof(sum));
}

static void change(uint8_t *bytes, size_t *n, const uint8_t *edit)
{
    size_t at = (edit[0] | (size_t)edit[1] << 8 | (size_t)edit[2] << 16) % *n;
    uint64_t word;
    switch (edit[3] % 4) {
    case 0:
        bytes[at] = edit[4];
        break;
    case 1: /* large or small */
        at = KRAIT_MIN(at & ~(size_t)7, *n - 8);
        word = (uint64_t)(int64_t)(int8_t)edit[4] << edit[3] / 4;
        memcpy(bytes + at, &word, sizeof(word));
        break;
    case 2: /* a number that is there elsewhere */
        memmove(bytes + KRAIT_MIN(at & ~(size_t)7, *n - 8), bytes + ((size_t)edit[4] * 8) % (*n & ~(size_t)7),
                8);
        break;
    default:
        *n = KRAIT_MAX(*n - KRAIT_MIN(*n, (size_t)edit[4] * 8), (size_t)16);
    }
}

static void ask_all(struct opened *opened)
{
    for (uint32_t track = 0; track < opened->trace->track_count; track++) {
        for (uint8_t level = 0; level <= KRAIT_WIRE_LEVEL_MAX; level += 6) {
            for (uint64_t tile = 0; tile < 2; tile++) {
                KRAIT_AUTO_BUF out = { 0 };
                const struct krait_view_query query = { track, level, tile };
                int rc = krait_view_tile(opened->view, &query, &out);
                if (rc && rc != -EINVAL)
                    abort();
            }
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    KRAIT_AUTO_BUF bytes = { 0 };
    bool is_whole = size && !data[0];
    krait_buf_add(&bytes, is_whole ? (const void *)(data + 1) : good.data, is_whole ? size - 1 : good.len);
    size_t n = bytes.len;
    for (size_t i = 0; i + 5 <= size && !is_whole; i += 5)
        change((uint8_t *)bytes.data, &n, data + i);
    set_sum((uint8_t *)bytes.data, n);
    write_file(bytes.data ? bytes.data : "", n);
    struct opened index = open_view(made, 0);
    struct krait_view_progress progress;
    krait_view_progress(index.view, &progress);
    if (progress.is_cached)
        ask_all(&index);
    close_view(&index);
    return 0;
}
