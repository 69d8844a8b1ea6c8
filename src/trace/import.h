/* SPDX-License-Identifier: Apache-2.0
 *
 * The importer's own side of struct krait_trace: what walking a thread needs beyond the model.
 */
#ifndef KRAIT_TRACE_IMPORT_H
#define KRAIT_TRACE_IMPORT_H

#include "trace/packets.h"
#include "trace/ticks.h"
#include "trace/trace.h"

enum {
    /* Code ids above this and above the size of the definitions cannot be honest. */
    KRAIT_CODES_MIN = 1 << 20,
    KRAIT_LOST_VALUES = 256,       /* a reason is a u8; those of later versions are kept too */
    KRAIT_FUNC_UNKNOWN_PYTHON = 0, /* the first two functions: calls whose code has no definition */
    KRAIT_FUNC_UNKNOWN_C = 1,
};

/* Code that is left out from a time on. */
struct krait_omit {
    uint64_t t_ns;
    uint32_t code;
};

/* A name that a thread has from a time on. */
struct krait_naming {
    uint64_t t_ns;
    uint32_t tid;
    const char *name;
};

/* A process image: one CTF trace. */
struct krait_image {
    char *dir;
    uint8_t uuid[16];
    struct krait_ticks clock;
    uint32_t *code_func; /* by code id: func, or KRAIT_NO_ID */
    uint32_t code_count;
    struct krait_map exceptions; /* code id to index in trace->exceptions */
    struct krait_omit *omits;    /* by time */
    uint32_t omit_count, omit_cap;
    struct krait_naming *namings; /* in the order of the stream */
    uint32_t naming_count, naming_cap;
    uint64_t start_ns, exit_ns; /* of process:start and process:exit; 0 where not said */
    bool has_no_gil_waits;      /* its metadata says so */
    bool followed;              /* by the program that it executed: nothing of it is later than exit_ns */
    uint64_t lost[KRAIT_LOST_VALUES];
    uint64_t discarded; /* by the heads of its threads' packets */
};

struct krait_trace_impl {
    struct krait_arena arena;
    struct krait_strtab keys;       /* what makes a function distinct; its ids are the func ids */
    struct krait_image *images;     /* by process index */
    char **streams;                 /* files, by thread index */
    struct krait_strtab exceptions; /* their labels; its ids are those of trace->exceptions */
    uint32_t func_cap, thread_cap, omitted_cap;
    struct krait_map omitted; /* func to index in trace->omitted */
};

/* Reads DIR/definitions into the process `index` of the trace. Damage is said in trace->damage; only -ENOMEM
 * fails. */
int krait_definitions_read(struct krait_trace *trace, uint32_t index);

/* The func id of what is described (strings are copied when it is new), or KRAIT_NO_ID when memory is out. */
uint32_t krait_trace_intern(struct krait_trace *trace, const struct krait_func *func);

#endif
