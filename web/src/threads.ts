// SPDX-License-Identifier: Apache-2.0
// Which thread an id means. The kernel uses ids again, and several recordings may have the same ones, so the model's
// threads are distinguished by process and time.

import { Thread, Trace, Track } from './model';

/** Threads of recorded programs; in a kernel trace, all. */
export function threadCount({ threads, tracks }: Pick<Trace, 'threads' | 'tracks'>): number {
  return threads.length || tracks.filter((track) => track.of === 'thread' && track.kind === 'states').length;
}

/** The distance of a moment from a thread's life. */
function distance(life: { begin: bigint; until: bigint }, at: bigint): bigint {
  return at < life.begin ? life.begin - at : at > life.until ? at - life.until : 0n;
}

/** The recorded thread that has an id at a moment, or had it nearest to that moment; pid: only of that process. */
export function threadAt(trace: Trace, tid: number, at: bigint, pid?: number): number | undefined {
  let best: number | undefined, least = 0n;
  trace.threads.forEach((thread, i) => {
    if (thread.tid !== tid || (pid !== undefined && trace.processes[thread.process]?.pid !== pid)) return;
    const far = distance(thread, at);
    if (best === undefined || far < least) [best, least] = [i, far];
  });
  return best;
}

/** "worker-1 4711". */
export function threadName(thread: Thread | undefined): string {
  return thread ? `${thread.name} ${thread.tid}`.trim() : '';
}

/** The owner of a track: "worker-1 4711", "CPU 0", "python3 4711". */
export function trackName(trace: Trace, id: number): string {
  const track: Track | undefined = trace.tracks[id];
  if (!track) return '';
  if (track.of === 'cpu') return `CPU ${track.number}`;
  if (track.of === 'group') return track.name;
  if (track.of === 'process') return `${track.processName} ${track.pid}`.trim();
  if (track.of === 'task' || track.of === 'lane') return track.threadName;
  const thread = track.thread !== null ? trace.threads[track.thread] : null;
  return `${thread?.name || track.threadName} ${thread?.tid ?? track.number}`.trim();
}
