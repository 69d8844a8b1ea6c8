/* SPDX-License-Identifier: Apache-2.0
 *
 * Names what an executor is handed: the function that the program asked for, inside what wraps it on the way.
 *
 *   functools.partial(f, 1)                  f, also of a partial of a partial
 *   a bound method                           its function
 *   contextvars.Context.run, with f          f: asyncio.to_thread hands in a partial of it
 *   functions of executors' own, with f      f: ProcessPoolExecutor.map, Pool.map, trio's and anyio's
 *   functools.lru_cache(f)                   f
 *   a class; an object with a __call__       the class
 */
#ifndef KRAIT_PYTHON_CALLABLES_H
#define KRAIT_PYTHON_CALLABLES_H

#include "python/agent.h"
#include "python/compat/running.h"

/* In a note: the id of its name. That is the function's own where its calls are recorded and it was called before, else an id
 * of kind name with the same text. `args` is the tuple of its arguments, if it is one. Both are borrowed, and may be NULL.
 * Runs no code of the program's. 0: not known. GIL held; keeps no exception. */
uint32_t krait_callable_id(struct krait_interp *in, PyObject *callable, PyObject *args);
/* The interpreter ends. GIL held. */
void krait_callables_done(struct krait_interp *in);

#endif
