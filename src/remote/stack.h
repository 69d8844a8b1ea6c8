/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside of remote/: one thread's stack.
 */
#ifndef KRAIT_REMOTE_STACK_H
#define KRAIT_REMOTE_STACK_H

#include "remote/remote.h"

struct krait_raw_frame {
    uint64_t addr;
    uint64_t code;  /* the code object */
    int64_t offset; /* of the instruction, in bytes; negative: not begun */
    bool entry;     /* C code called it */
    uint64_t mark;  /* as in krait_remote_frame */
};

/* What one thread's stack is read with; zeroed at first, and used for one thread after the other. */
struct krait_stack_reader {
    struct krait_raw_frame *frames; /* the result, innermost first */
    uint32_t count, cap;
    struct krait_raw_frame *second;
    uint32_t second_cap;
    uint64_t *known; /* addresses of frames, of an earlier try */
    uint32_t known_count, known_cap;
    uint64_t root; /* the outermost one */
    struct krait_stack_region *regions;
    uint32_t region_count, region_cap;
    char *bytes; /* what the regions held, twice */
    uint32_t byte_cap;
};

void krait_stack_reader_done(struct krait_stack_reader *reader);

/* Copies the stack of the thread state at `thread` once: for a thread that does not run. Returns 0; -EAGAIN: it ran, or is
 * between two stacks; or as krait_memory_read. */
int krait_stack_copy(struct krait_remote *remote, struct krait_stack_reader *reader, uint64_t thread);

/* The same of one that runs, again and again. Returns 0; -EAGAIN: it changed all the time; or as krait_memory_read. */
int krait_stack_read(struct krait_remote *remote, struct krait_stack_reader *reader, uint64_t thread);

/* The code object at `addr`, read again if another one is there now; NULL if none is. */
const struct krait_remote_code *krait_code_read(struct krait_remote *remote, uint64_t addr);

/* The same of all frames of a stack, with one system call: true if all of them are known and have stayed; `codes` has room for
 * `count`. */
bool krait_codes_known(struct krait_remote *remote, const struct krait_raw_frame *frames, uint32_t count,
                       const struct krait_remote_code **codes);

/* The frame of a code object and an instruction. False if the code object cannot be read. */
bool krait_frame_make(struct krait_remote *remote, const struct krait_raw_frame *raw,
                      struct krait_remote_frame *frame);

/* Finds a section in the interpreter's own file, or in a mapped one whose name begins with `prefix`; its address there.
 * -ENOENT: there is none. */
int krait_find_section(const struct krait_remote *remote, const char *prefix, const char *section,
                       uint64_t *address);

#endif
