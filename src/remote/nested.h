/* SPDX-License-Identifier: Apache-2.0
 *
 * Internal to remote/: the one stack of a thread that has states in several interpreters.
 *
 * Code of one interpreter has called another one, as run_string() does; each has a chain of frames of its own. Which one is above
 * the other is told by the C stack. From 3.12 on, a frame that C code has called has behind it a frame of no function, which is a
 * local variable of the interpreter's loop; on 3.10 and 3.11 the loop has another such variable, the _PyCFrame:
 *
 *     C stack            state of interpreter 1    state of interpreter 0
 *
 *     loop      0x7f10   work, inside
 *     loop      0x7f80   <module>
 *     run_string
 *     loop      0x80f0                             outer, <module>
 *
 * So the frames go together in the order of these addresses, all of which have to be in the C stack of the thread.
 *
 * Up to 3.9 no frame tells where the loop is that runs it. There one interpreter is above another one if the innermost frame of the
 * other one calls run_string() of the module _xxsubinterpreters with its number. Frames of other interpreters are left out.
 */
#ifndef KRAIT_REMOTE_NESTED_H
#define KRAIT_REMOTE_NESTED_H

#include "remote/stack.h"

/* The thread on whose C stack the frames of a state are: the one that has made it, if the state has none. `others`: also one that
 * made no state. 0: not known. The thread may run meanwhile, and the result be wrong. */
pid_t krait_nested_thread(struct krait_remote *remote, const struct krait_remote_stacks *stacks,
                          struct krait_remote_state *state, bool others);

/* krait_stack_copy of all states of a thread; orders them. What krait_stack_innermost tells is of the innermost frame of all. Sets
 * stacks->misplaced if a state is not there any more, or is on another thread's stack: its frames are left out. */
int krait_nested_copy(struct krait_remote *remote, struct krait_remote_stacks *stacks,
                      struct krait_stack_reader *reader, struct krait_remote_thread *thread);

#endif
