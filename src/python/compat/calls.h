/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a function calls others, and where on its frame's stack the callables lie. The depth of the stack at an instruction is
 * stored nowhere; it follows from the code, as the compiler has made it: whichever way an instruction is reached, the stack is as
 * deep there.
 */
#ifndef KRAIT_PYTHON_COMPAT_CALLS_H
#define KRAIT_PYTHON_COMPAT_CALLS_H

#include "base/arena.h"
#include "python/compat/layout.h"

/* What lies where on the stack of an instruction that calls, from the bottom. */
enum krait_call_shape {
    KRAIT_CALL_NONE,
    KRAIT_CALL_PLAIN,         /* callable, arguments; its result replaces the callable */
    KRAIT_CALL_METHOD_FIRST,  /* NULL, callable, arguments; or method, its object, arguments */
    KRAIT_CALL_METHOD_SECOND, /* callable, NULL, arguments; or method, its object, arguments */
    KRAIT_CALL_PRECALL,       /* KRAIT_CALL_METHOD_FIRST of 3.11, in its first instruction */
};

/* Where the code has a callable from. */
enum krait_call_source {
    KRAIT_SOURCE_NONE,        /* not known */
    KRAIT_SOURCE_NAME,        /* a global variable or an attribute: `index` in the names */
    KRAIT_SOURCE_LOCAL,       /* a local variable, which has not been set since: `index` in the frame */
    KRAIT_SOURCE_LOCAL_PAIR,  /* of opcodes alone: two local variables */
    KRAIT_SOURCE_STORE_LOCAL, /* ... sets one, and then takes one */
    KRAIT_SOURCE_CELL, /* a variable that functions share, which has not been set since: `index` in the cells */
    KRAIT_SOURCE_STORE, /* of opcodes alone: sets variables */
};

struct krait_call {
    uint32_t offset; /* of the instruction, in bytes */
    uint32_t slot;   /* of the first value, from the bottom of the stack; the second lies above */
    uint32_t depth;  /* values on the stack while it calls */
    uint8_t shape;   /* enum krait_call_shape, but not KRAIT_CALL_PRECALL */
    struct {
        uint8_t source; /* enum krait_call_source: KRAIT_SOURCE_NONE, _NAME, _LOCAL or _CELL */
        uint16_t index;
    } of[2]; /* of these two values */
};

/* Those of a code object, in their order. */
struct krait_calls {
    struct krait_call *items;
    uint32_t count;
};

/* Instructions of a code object as they lie in a running interpreter, and its exception table (before 3.11 none). Any bytes are
 * allowed. Calls are left out whose place is not certain. Returns 0, or -ENOMEM. */
int krait_calls_make(struct krait_calls *calls, struct krait_arena *arena,
                     const struct krait_layout_of *version, const uint8_t *code, size_t size,
                     const uint8_t *exceptions, size_t exceptions_size);

/* The call at an instruction; NULL: it calls nothing, or its place is not certain. */
const struct krait_call *krait_calls_find(const struct krait_calls *calls, int64_t offset);

#endif
