// SPDX-License-Identifier: Apache-2.0
// Who a task waits for, and who woke it: the value of a task's state (src/trace/track.h).

import { Call, Trace, Track } from './model';
import { Fetch, spanAt } from './spans';

export interface Ties { waitsFor?: Track; wokenBy?: Track; at: bigint } // at: when it was woken, or else the state's begin

/** Of a state named so. After a wait that krait saw end, the task is ready; that state has the waker. A greenlet runs at once; then that state has it. */
export async function tiesOf(fetch: Fetch, trace: Trace, state: Call, name: string): Promise<Ties> {
  const track = trace.tracks[state.track];
  const task = (number?: number): Track | undefined => (number ? trace.tracks.find((t) => t.of === 'task' && t.kind === 'states' && t.process === track.process && t.number === number) : undefined);
  if (track.of !== 'task' || track.kind !== 'states') return { at: state.begin };
  if (name === 'ready' || name === 'running') return { wokenBy: task(state.value), at: state.begin };
  const next = await spanAt(fetch, state.track, state.end);
  return { waitsFor: task(state.value), wokenBy: task(next?.value), at: state.end };
}
