/* SPDX-License-Identifier: Apache-2.0
 *
 * Internal to remote/: reading one thread's stack.
 */
#ifndef KRAIT_REMOTE_STACK_H
#define KRAIT_REMOTE_STACK_H

#include "remote/memory.h"
#include "remote/remote.h"

struct krait_call;

struct krait_raw_frame {
    uint64_t addr;
    uint64_t code;  /* the code object */
    int64_t offset; /* of the instruction, in bytes; negative: not begun */
    bool entry;     /* C code called it */
    uint64_t mark;  /* as in krait_remote_frame */
};

/* Buffers for reading stacks; zeroed at first, then used for one thread after the other. */
enum { KRAIT_INNERMOST_MAX = 1024, KRAIT_CALLED_PIECES = 2 };

/* What the innermost frame's instruction calls with (called.h). */
struct krait_called_values {
    const struct krait_remote_code *code; /* of the frame; NULL: nothing is known */
    const struct krait_call *call;        /* NULL: nothing, or it is not certain what */
    uint64_t words[2];                    /* as enum krait_call_shape says */
    bool which;                           /* of them is called */
    bool is_method;                       /* with its object above it */
    bool is_certain;                      /* what lies there is called, or has been */
    uint64_t head[KRAIT_OBJECT_HEAD / 8]; /* of the callable, once its pieces are read */
    uint64_t type;                        /* of the object */
};

struct krait_stack_reader {
    struct krait_raw_frame *frames; /* the result, innermost first */
    uint32_t count, cap;
    char innermost
        [KRAIT_INNERMOST_MAX]; /* of krait_stack_copy: what lies at the innermost one, as far as it was read */
    uint32_t innermost_size;
    struct krait_called_values called;
    struct krait_raw_frame *second;
    uint32_t second_cap;
    uint64_t *known; /* addresses of frames, of an earlier try */
    uint32_t known_count, known_cap;
    uint64_t root; /* the outermost one */
    struct krait_stack_region *regions;
    uint32_t region_count, region_cap;
    char *bytes; /* two copies of the regions */
    uint32_t byte_cap;
};

void krait_stack_reader_done(struct krait_stack_reader *reader);

/* Copies the stack of the thread state at `thread` once. The thread must not run. `places` is where the stack was before, and
 * becomes where it is: zeroed at first. Returns 0; -EAGAIN: it ran, or is between two stacks; or the errors of
 * krait_memory_read. */
int krait_stack_copy(struct krait_remote *remote, struct krait_stack_reader *reader, uint64_t thread,
                     struct krait_stack_places *places);

/* After krait_stack_copy: `size` bytes that lie `at` bytes from the begin of the innermost frame. False: they cannot be read. */
bool krait_stack_innermost(const struct krait_remote *remote, const struct krait_stack_reader *reader,
                           uint64_t at, void *to, size_t size);

/* Copies the stack of a running thread, again and again until it is consistent. Returns 0; -EAGAIN: the stack
 * changed each time; or the errors of krait_memory_read. */
int krait_stack_read(struct krait_remote *remote, struct krait_stack_reader *reader, uint64_t thread);

/* The code object at `addr`; krait reads it again if another one is there now. NULL if there is none. */
const struct krait_remote_code *krait_code_read(struct krait_remote *remote, uint64_t addr);

/* Begins a sweep if many code objects were read: then all stacks are to be read, and krait_codes_sweep is to follow. Returns
 * false if not. */
bool krait_codes_begin_sweep(struct krait_remote *remote);
/* Frees the code objects that were not met since the sweep began. */
void krait_codes_sweep(struct krait_remote *remote);
void krait_codes_done(struct krait_codes *codes);

/* A code object that is kept is needed. NULL: none is. */
static inline void krait_code_meet(const struct krait_remote *remote, const struct krait_remote_code *code)
{
    if (code)
        ((struct krait_remote_code *)code)->met = remote->codes.sweeps;
}

/* Checks the code objects of all frames of a stack with one system call, which also reads `more` pieces. Returns true if all
 * are known and unchanged, and those read. `codes` has room for `count`. */
bool krait_codes_known(struct krait_remote *remote, const struct krait_raw_frame *frames, uint32_t count,
                       const struct krait_remote_code **codes, const struct krait_memory_piece *more,
                       uint32_t more_count);

/* Makes a frame from a code object and an instruction. Returns false if the code object cannot be read. */
bool krait_frame_make(struct krait_remote *remote, const struct krait_raw_frame *raw,
                      struct krait_remote_frame *frame);

/* From what a frame says of its instruction: its offset in bytes; negative: not begun. */
int64_t krait_frame_offset(const struct krait_remote *remote, uint64_t at, uint64_t code);

/* Finds a section in the interpreter's own file, or in a mapped one whose name begins with `prefix`; its address there.
 * -ENOENT: there is none. */
int krait_find_section(const struct krait_remote *remote, const char *prefix, const char *section,
                       uint64_t *address);

#endif
