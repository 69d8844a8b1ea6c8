/* SPDX-License-Identifier: Apache-2.0
 *
 * Work that a ProcessPoolExecutor hands to other processes. Both sides know it by the same id, though nothing tells one what
 * the other has seen: it is made of the pipe that all of the executor's work goes through, and of the executor's number of
 * the work.
 *
 *   parent: ProcessPoolExecutor.submit ── _WorkItem.__init__       its _call_queue, its _queue_count
 *   worker: _process_worker ── Queue.get ── pickle.loads           its call_queue, the _CallItem's work_id
 *
 * Source: Lib/concurrent/futures/process.py.
 */
#ifndef KRAIT_PYTHON_WORK_PROCESSES_H
#define KRAIT_PYTHON_WORK_PROCESSES_H

#include "python/agent.h"
#include "python/compat/running.h"

/* All: GIL held, in a note. */

/* The id of what the executor submits, whose submit() has called the innermost function; 0: not known. */
uint64_t krait_work_id_submitted(void);
/* This thread will take work out of a multiprocessing.Queue, and will record when it does. */
void krait_work_serve(const PyObject *call_queue);

/* Whether that function has called the innermost one. */
bool krait_work_is_called_by(const char *module, const char *class, const char *name);

#endif
