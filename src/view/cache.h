/* SPDX-License-Identifier: Apache-2.0
 *
 * Stores the index of a trace in a file, so that it is built only once. The file is DIR/.krait-view in the trace's
 * folder. If that folder is not writable, or several traces are viewed as one, the file is in $XDG_CACHE_HOME/krait/
 * (~/.cache/krait/).
 *
 *   ┌──────────────────────────────────────────────┬──────────┬────────┬─────────┬─────────┬────┬─────┐
 *   │ head                                         │ machines │ texts  │ track   │ track   │ …  │ sum │
 *   │ magic version identity counts length_ns size │          │ ids, 0 │         │         │    │ 8   │
 *   └──────────────────────────────────────────────┴──────────┴────────┴─────────┴─────────┴────┴─────┘
 *   machine ┌─────────────────────────────────┬─────────┬──────┐  the list of the kernel's tracks, of each machine
 *           │ krait_cache_machine: the counts │ threads │ CPUs │  (trace/kernel/kernel_list.h)
 *           └─────────────────────────────────┴─────────┴──────┘
 *   track  ┌──────────────────────────┬─────────────────────────────┬──────┬─────────────────┬────────┬────────┐
 *          │ krait_cache_track:       │ for each pyramid level its  │ deep │ blocks, bytes,  │ places │ frames │
 *          │ track id and all counts  │ cells, then its calls       │      │ moments         │        │        │
 *          └──────────────────────────┴─────────────────────────────┴──────┴─────────────────┴────────┴────────┘
 *
 * The parts have the layout of the writer's memory and are padded to 8 bytes, so that a reader maps them instead of
 * copying. Exceptions: texts end with NUL, and the trace copies places and the lists of machines. The sum covers all
 * 8-byte words before it. The file does not contain declared lanes (trace/lanes.h): they are the last tracks, and cheap to
 * compute.
 *
 * The identity covers the names, sizes and modification times of all files of the trace, the version of krait, and the
 * version of this format. If the identity or the sum is wrong, or the contents are not valid, krait builds the index
 * again and replaces the file. Replacing is atomic (base/outfile.h), so two viewers do not disturb each other. krait
 * ignores errors while writing, because the file is only a cache.
 *
 * The file is opened before the trace's tracks are looked for, because its lists save a run over all events of the kernel.
 * If what follows the lists is not valid, the trace forgets these tracks and looks for them itself. A file has no lists
 * if the kernel was not recorded, or if that run met damage.
 *
 * Version rule: any change of these bytes increases KRAIT_CACHE_VERSION.
 */
#ifndef KRAIT_VIEW_CACHE_H
#define KRAIT_VIEW_CACHE_H

#include "view/index_own.h"

enum { KRAIT_CACHE_VERSION = 11 };

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
    uint32_t machines, zero;
};

struct krait_cache_machine {
    int64_t begin_ns, end_ns;
    uint32_t threads, cpus;
};

struct krait_cache_track {
    uint32_t track;
    uint8_t kind, has_pyramid, first, zero;
    uint64_t cells[KRAIT_PYRAMID_LEVELS], calls[KRAIT_PYRAMID_LEVELS];
    uint64_t deep, pyramid_calls;
    uint64_t moments, spans, span_blocks, span_bytes, end_ns; /* of the columns */
    uint64_t places, frames;
};

/* Computes the identity of the trace in options->paths. Returns 0, or a negative errno if files cannot be read. */
int krait_cache_identity(const struct krait_view_options *options, uint64_t identity[2]);

enum { KRAIT_CACHE_PLACES = 2 }; /* beside the trace, and the user's folder */

/* Maps the first file from *place on whose head and sum are right, and hands its lists to the trace. Call it before the
 * trace's tracks are looked for. Sets *place to the place after that file's. Returns 0, -ENOENT if there is no such file,
 * or -ENOMEM. */
int krait_cache_open(struct krait_view *view, uint32_t *place);

/* Loads the index from the file that krait_cache_open has mapped. Call it before anything is built. Returns 0 or -ENOMEM;
 * or -ESTALE if the file is not valid: close the view, have the trace forget the lists, and open the view again. */
int krait_cache_load(struct krait_view *view);

/* Writes the file when the whole index is built. Ignores errors. */
void krait_cache_store(struct krait_view *view);

/* Unmaps the file that krait_cache_open has mapped. */
void krait_cache_done(struct krait_view *view);

#endif
