/* SPDX-License-Identifier: Apache-2.0
 *
 * Work that executors hand to other processes. Both sides know it by the same id, though nothing tells one what the other has
 * seen: it is made of the pipe that all of the executor's work goes through, and of the executor's number of the work.
 *
 *   ProcessPoolExecutor.submit ── _WorkItem.__init__       its _call_queue, its _queue_count
 *   _process_worker ── Queue.get ── pickle.loads           its call_queue, the _CallItem's work_id
 *
 *   ApplyResult.__init__, at its end                       the pool's _inqueue, its _job
 *   worker ── SimpleQueue.get ── pickle.loads              its inqueue, the tuple's first item
 *
 * A pool divides a job into parts. The first part has the job's id. A thread of the pool's sends them to the workers, and so
 * submits the others:
 *
 *   Pool._handle_tasks ── _ConnectionBase.send             the connection's pipe, the tuple's first items
 *   MapResult._set, IMapIterator._set                      its id, its argument i
 *   IMapIterator.next                                      its id; how many items were taken before tells i, or which _set it was
 *
 * The threads of multiprocessing's ThreadPool run the same worker(), whose inqueue is a queue.SimpleQueue of C.
 *
 * Source: Lib/concurrent/futures/process.py, Lib/multiprocessing/pool.py.
 */
#ifndef KRAIT_PYTHON_WORK_PROCESSES_H
#define KRAIT_PYTHON_WORK_PROCESSES_H

#include "event/payload.h"
#include "python/agent.h"
#include "python/compat/running.h"
#include "python/notes.h"

/* All: GIL held. */

/* In a note: the id of what the executor submits, whose submit() has called the innermost function; 0: not known. */
uint64_t krait_work_id_submitted(void);
/* The id of what the pool submits, by its ApplyResult or IMapIterator that has been made; 0: not known. */
uint64_t krait_work_id_of_result(PyObject *result);
/* In a note: this thread will take work out of a queue of multiprocessing, and will record when it does. */
void krait_work_serve(PyObject *queue);

/* From now on, krait_work_submitted is called for what pools submit: by then it has its number. */
void krait_work_see_pools(struct krait_interp *in);
/* The recording begins: sees pools that are there already, and their workers, and executors', in a dict of all threads' innermost
 * frames. */
void krait_work_look(struct krait_interp *in, PyObject *frames);
bool krait_work_sees_pools(const struct krait_interp *in);
void krait_work_end(struct krait_interp *in);
/* A pool has submitted work: work.c. `is_items`: of imap, which has no start without the id of krait_work_id_of_result. */
void krait_work_submitted(struct krait_interp *in, PyObject *result, bool is_items);

/* The program has taken an item out of an iterator of imap, the item-th in its order: work.c. */
void krait_work_item_taken(struct krait_interp *in, PyObject *iterator, long item);
/* How many items have been taken out of an iterator of imap, or of imap_unordered; -1: it is none. Keeps no exception. */
long krait_work_items_taken(PyObject *iterator);
/* Whether it is one of imap_unordered. */
bool krait_work_is_unordered(const PyObject *iterator);

/* In a note: an event of work. They all have the same fields. A function that is not known is "<unknown>". */
void krait_work_put(struct krait_note *note, uint32_t event, const struct krait_payload_work_submit *work);

/* Whether a frame is of a function of that module with that co_name. */
bool krait_work_is_frame(PyObject *frame, const char *module, const char *name);
/* Whether that function has called the innermost one. */
bool krait_work_is_called_by(const char *module, const char *class, const char *name);

#endif
