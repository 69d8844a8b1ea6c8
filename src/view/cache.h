/* SPDX-License-Identifier: Apache-2.0
 *
 * The index of a trace in a file, so that it is built once. The file lies beside the trace, DIR/.krait-view, or where
 * that folder cannot be written, or several traces are viewed as one, in $XDG_CACHE_HOME/krait/ (~/.cache/krait/).
 *
 *   ┌──────────────────────────────────────────────┬────────┬─────────┬─────────┬────┬─────┐
 *   │ head                                         │ texts  │ track   │ track   │ …  │ sum │
 *   │ magic version identity counts length_ns size │ ids, 0 │         │         │    │ 8   │
 *   └──────────────────────────────────────────────┴────────┴─────────┴─────────┴────┴─────┘
 *   track  ┌──────────────────────────┬─────────────────────────────┬──────┬─────────────────┬────────┬────────┐
 *          │ krait_cache_track:       │ of each pyramid level its   │ deep │ blocks, bytes,  │ places │ frames │
 *          │ which, and how many each │ cells, then its calls       │      │ moments         │        │        │
 *          └──────────────────────────┴─────────────────────────────┴──────┴─────────────────┴────────┴────────┘
 *
 * Everything is stored as it is in the memory of the machine that wrote it, in multiples of 8 bytes. It is mapped,
 * not copied. The exceptions are texts, which end with NUL, and places, which the trace copies. The sum is over all
 * words before it. Lanes that analyses made (trace/lanes.h) are not in it: they are the last tracks, and cost little.
 *
 * Identity: the names, sizes and modification times of all files of the trace, the version of krait, and that of this
 * format. A file with another identity, a wrong sum, or contents that no index has is not used; the index is built
 * again and replaces it. Files are replaced as a whole (base/outfile.h), so that two viewers do not disturb each
 * other. If no file can be written, that is no error and not reported: it is only a cache.
 *
 * Version rule: KRAIT_CACHE_VERSION changes with any change of these bytes.
 */
#ifndef KRAIT_VIEW_CACHE_H
#define KRAIT_VIEW_CACHE_H

#include "view/index_own.h"

enum { KRAIT_CACHE_VERSION = 5 };

#define KRAIT_CACHE_NAME  ".krait-view"
#define KRAIT_CACHE_MAGIC 0x5844494b54494152ull

struct krait_cache_head {
    uint64_t magic;
    uint32_t version, pointer_bytes;
    uint64_t identity[2];
    uint64_t size;  /* of the file */
    uint64_t small; /* krait_view_options */
    uint64_t length_ns;
    uint64_t text_bytes; /* padded to 8 */
    uint32_t texts, tracks, funcs, trace_tracks;
};

struct krait_cache_track {
    uint32_t track;
    uint8_t kind, has_pyramid, first, zero;
    uint64_t cells[KRAIT_PYRAMID_LEVELS], calls[KRAIT_PYRAMID_LEVELS];
    uint64_t deep, pyramid_calls;
    uint64_t moments, spans, span_blocks, span_bytes, end_ns; /* of the columns */
    uint64_t places, frames;
};

/* What makes the trace what it is; of files that can be read. */
int krait_cache_identity(const struct krait_view_options *options, uint64_t identity[2]);

/* Before anything is built: takes all from a file that fits. Returns 0, -ENOENT without one that can be used, or
 * -ENOMEM. */
int krait_cache_load(struct krait_view *view);

/* When all is built. Failing has no consequence. */
void krait_cache_store(struct krait_view *view);

/* Gives back what krait_cache_load has mapped. */
void krait_cache_done(struct krait_view *view);

#endif
